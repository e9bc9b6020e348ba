// Maps that hosts make and call: their calls have no place in a program.
#include <doctest/doctest.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "embed/unisono.hpp"

using unisono::Kind;
using unisono::Value;

namespace {

/// The first message, which has the code.
unisono::Error::Message failure(const unisono::Error& error,
                                std::string_view code) {
  auto messages = error.messages();
  REQUIRE(!messages.empty());
  CHECK(std::string_view(messages[0].code) == code);
  return messages[0];
}

bool notes(const unisono::Error::Message& message, std::string_view text) {
  return std::ranges::any_of(message.notes, [&](const auto& note) {
    return std::string_view(note.text).find(text) != std::string_view::npos;
  });
}

Value four() { return Value::of(std::vector<float>{1, 2, 3, 4}); }

}  // namespace

TEST_CASE("errors in maps that a host calls name the places that there are") {
  unisono::Engine engine({.devices = "cpu:4"});
  auto session = engine.session();
  session
      .eval(
          "axis dev = devices()\naxis batch\n"
          "def branch(x) { var y = x; if x > 0.0 { y = psum(x, dev) }; y }\n"
          "let diverging = pmap(branch, over=dev)\n"
          "let varying = pmap(fn(x) => x, over=dev, out_axes=none)\n"
          "let inner = vmap(fn(x) => psum(x, batch), over=batch)\n"
          "let twice = vmap(inner, over=batch)\n"
          "let square = ones(f32[4, 4])")
      .value();
  const auto diverging = session.function("diverging")->call({four()});
  const auto condition = failure(diverging.error(), "U0404");
  CHECK(notes(condition, "this varies over axis dev"));
  CHECK(!notes(condition, "because of this"));

  const auto varying = session.function("varying")->call({four()});
  CHECK(!notes(failure(varying.error(), "U0415"), "it varies because"));

  const auto twice =
      session.function("twice")->call({session.get("square").value()});
  CHECK(!notes(failure(twice.error(), "U0421"), "mapped by this call"));
}

TEST_CASE("a map that a host makes") {
  unisono::Engine engine({.devices = "cpu:4"});
  auto session = engine.session();
  session.eval("def add(x, y) = x + y\nlet first = fn(t) => t.a").value();
  const auto pmap = session.function("pmap").value();
  const auto made = [&](const char* function, const char* axes) {
    return unisono::Function(
        pmap.call({session.get(function).value()},
                  {{"in_axes", session.eval(axes).value()}})
            .value());
  };
  CHECK(made("add", "(0, none)")
            .call({four(), 10.0f})
            .value()
            .as<std::vector<float>>()
            .value() == std::vector<float>{11, 12, 13, 14});
  const auto count = made("add", "(0, 0, 0)").call({four(), four()});
  CHECK(failure(count.error(), "U0408").notes.empty());
  const auto tree = made("first", "((a = 0),)").call({four()});
  CHECK(failure(tree.error(), "U0406").notes.empty());
  const auto vmap = session.function("vmap").value();
  const auto none = unisono::Function(
      vmap.call({session.get("add").value()}, {{"in_axes", Value()}}).value());
  CHECK(failure(none.call({four(), four()}).error(), "U0422").notes.empty());
}

TEST_CASE("typed functions need a function; literals among examples stay") {
  unisono::Engine engine;
  auto session = engine.session();
  const Value function = session.eval("fn(x, k) => x * k").value();
  const Value x = Value::of(std::vector<float>{1, 2, 3}),
              k = session.eval("2.5").value();
  const UnisonoValue* examples[] = {x.handle(), k.handle()};
  UnisonoTyped* typed = nullptr;
  REQUIRE(unisono_typed_create(function.handle(), examples, 2, &typed) ==
          nullptr);
  CHECK(unisono_typed_argument_count(typed) == 1);
  const std::vector<float> in{1, 2, 4};
  std::vector<float> out(3);
  const void* arguments[] = {in.data()};
  void* results[] = {out.data()};
  REQUIRE(unisono_typed_call(typed, arguments, results, nullptr) == nullptr);
  CHECK(out == std::vector<float>{2.5, 5, 10});
  unisono_typed_release(typed);
  const Value number = session.eval("ones(3)").value();
  UnisonoError* error =
      unisono_typed_create(number.handle(), examples, 1, &typed);
  REQUIRE(error);
  CHECK(unisono_error_kind(error) == UNISONO_MISUSE);
  unisono_error_release(error);
}
