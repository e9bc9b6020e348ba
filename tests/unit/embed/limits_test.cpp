// Limits, on both of their sides, and calls that are ended from outside.
#include <doctest/doctest.h>

#include <atomic>
#include <chrono>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "embed/unisono.hpp"

using unisono::Kind;
using unisono::Value;
using namespace std::chrono_literals;

namespace {

unisono::CallOptions steps(int64_t count) {
  return {.limits = {.steps = count}};
}

/// The least limit with which `fits` is true, between two that it is not and is
/// true for.
template <class Fits>
int64_t least(int64_t no, int64_t yes, Fits fits) {
  REQUIRE(!fits(no));
  REQUIRE(fits(yes));
  while (yes - no > 1) {
    const int64_t middle = no + (yes - no) / 2;
    (fits(middle) ? yes : no) = middle;
  }
  return yes;
}

}  // namespace

TEST_CASE("steps") {
  unisono::Engine engine;
  auto session = engine.session();
  const char* program = "var i = 0\nwhile i < 100 { i += 1 }\ni";
  const auto kind = [&](int64_t limit) {
    auto result = session.eval(program, "steps", steps(limit));
    return result ? Kind::none : result.error().kind();
  };
  const int64_t enough =
      least(1, 1'000'000, [&](int64_t n) { return kind(n) == Kind::none; });
  CHECK(enough > 100);
  CHECK(kind(enough) == Kind::none);
  CHECK(kind(enough - 1) == Kind::limit);
  CHECK(session.eval(program, "steps", steps(3))
            .error()
            .text()
            .starts_with("error[U0703]: this takes more than the 3 steps "));
  CHECK(kind(0) == Kind::none);
  CHECK(kind(-1) == Kind::misuse);
  // Each call has its own.
  for (int i = 0; i < 3; ++i) CHECK(kind(enough) == Kind::none);
}

TEST_CASE("depth") {
  unisono::Engine engine;
  const char* program =
      "def f(n: int) -> int { if n == 0 { 0 } else { f(n - 1) } }";
  auto session = engine.session({.depth = 20});
  session.eval(program).value();
  const auto f = session.function("f").value();
  const int64_t deepest =
      least(1, 100, [&](int64_t n) { return !f.call({Value(n)}); });
  CHECK(deepest >= 18);
  CHECK(deepest <= 22);
  CHECK(f.call({Value(deepest)}).error().kind() == Kind::limit);
  CHECK(f.call({Value(deepest - 1)}).value().as<int>().value() == 0);
  CHECK_THROWS_AS(engine.session({.depth = 1001}), unisono::Exception);
}

TEST_CASE("bytes of devices") {
  unisono::Engine engine;
  auto session = engine.session({.device_bytes = 32 << 20});
  const auto kind = [&](const char* program) {
    auto result = session.eval(program);
    return result ? Kind::none : result.error().kind();
  };
  CHECK(kind("let a = arange(1024 * 1024)") == Kind::none);
  CHECK(kind("let b = arange(16 * 1024 * 1024)") == Kind::memory);
  CHECK(kind("sum(a)") == Kind::none);
  // Another session has as many.
  auto other = engine.session({.device_bytes = 32 << 20});
  CHECK(bool(other.eval("let a = arange(4 * 1024 * 1024)")));
  CHECK_THROWS_AS(engine.session({.device_bytes = -1}), unisono::Exception);
}

TEST_CASE("bytes of the host") {
  unisono::Engine engine;
  auto session = engine.session({.host_bytes = 10'000});
  const auto kind = [&](const std::string& program) {
    auto result = session.eval(program);
    return result ? Kind::none : result.error().kind();
  };
  const int64_t most = least(1, 100'000, [&](int64_t n) {
    return kind("len(\"x\" * " + std::to_string(n) + ")") == Kind::limit;
  });
  CHECK(most > 9'000);
  CHECK(most <= 10'001);
  CHECK(kind("var s = \"x\"\nwhile true { s = s + s }") == Kind::limit);
  CHECK(kind("1 + 1") == Kind::none);
}

namespace {
std::string repeated(std::string_view text, int count) {
  std::string out;
  for (int i = 0; i < count; ++i) out += text;
  return out;
}
}  // namespace

TEST_CASE("what bounds every program") {
  unisono::Engine engine;
  auto session = engine.session();
  const auto kind = [&](const std::string& program) {
    auto result = session.eval(program);
    return result ? Kind::none : result.error().kind();
  };
  // Texts, trees, array literals, files, and depth.
  for (const std::string& program :
       {std::string("var s = \"x\"\nwhile true { s = s + s }"),
        std::string("\"x\" * 20000000"),
        std::string("var s = \"x\" * 16000000\n"
                    "for i in range(1000000) { s += \"y\" }"),
        std::string("def f(n: int) {\n  var s = \"ab\"\n"
                    "  for i in range(n) { s = s + s }\n  len(s)\n}\n"
                    "for k in range(20, 30) { f(k) }"),
        std::string("var t = (1,)\nwhile true { t = t + t }"),
        std::string(5'000'000, ' '), "let s = 1" + repeated("+1", 20'000),
        std::string(5'000, '(') + "1" + std::string(5'000, ')'),
        std::string("def f(n) = f(n + 1)\nf(1)")}) {
    CAPTURE(program.substr(0, 60));
    CHECK(kind(program) == Kind::limit);
  }
  CHECK(kind("let = 3") == Kind::syntax);
  // Other kinds of which the code does not say it.
  CHECK(kind("grad(fn(n) => polygamma(n, 2.0))(2.0)") == Kind::check);
  CHECK(kind("grad(fn(x) => x)([1.0])") == Kind::check);
  CHECK(kind("var x = 1\nwhile x > 0, max=3 { x += 1 }") == Kind::runtime);
  CHECK(kind("save(\"x.npy\", [1])") == Kind::file);
}

TEST_CASE("time") {
  unisono::Engine engine;
  auto session = engine.session();
  const auto end = [&](const char* program, std::chrono::nanoseconds wall) {
    const auto begin = std::chrono::steady_clock::now();
    auto result = session.eval(program, "time", {.limits = {.wall = wall}});
    CHECK(std::chrono::steady_clock::now() - begin >= (result ? 0ns : wall));
    return result ? Kind::none : result.error().kind();
  };
  CHECK(end("while true { }", 20ms) == Kind::limit);
  CHECK(end("1 + 1", 100s) == Kind::none);
  CHECK(end("def g(x: f32) -> f32 {\n  var y = x\n"
            "  while y >= 0.0 { y = y + 1.0 - 1.0 }\n  y\n}\njit(g)(1f32)",
            20ms) == Kind::limit);
  CHECK(end("1 + 1", 0ns) == Kind::none);
  session
      .eval(
          "def f(x: f32) -> f32 { var y = x\n"
          "while y >= 0.0 { y = y + 1.0 - 1.0 }\ny }")
      .value();
  const auto f = session.function("f")->typed<float(float)>().value();
  CHECK(f.call({.limits = {.wall = 20ms}}, 1).error().kind() == Kind::limit);
  CHECK(f.call({.limits = {.wall = 100s}}, -1).value() == -1);
  // A deadline leaves nothing behind.
  CHECK(session.eval("2 + 2").value().as<int>().value() == 4);
}

TEST_CASE("a stop that was requested before ends calls at once") {
  unisono::Engine engine;
  auto session = engine.session();
  std::stop_source stop;
  stop.request_stop();
  CHECK(session.eval("while true { }", "x", {.stop = stop.get_token()})
            .error()
            .kind() == Kind::cancelled);
  UnisonoStop* plain = nullptr;
  REQUIRE(unisono_stop_create(&plain) == nullptr);
  unisono_stop_request(plain);
  UnisonoCallOptions options = UNISONO_CALL_OPTIONS_INIT;
  options.stop = plain;
  UnisonoError* error =
      unisono_eval(session.handle(), "1", 1, nullptr, &options, nullptr);
  CHECK(unisono_error_kind(error) == UNISONO_CANCELLED);
  unisono_error_release(error);
  unisono_stop_reset(plain);
  CHECK(unisono_eval(session.handle(), "1", 1, nullptr, &options, nullptr) ==
        nullptr);
  unisono_stop_release(plain);
}

TEST_CASE("factors of matrices and loops without an end are ended") {
  unisono::Engine engine({.workers = 2});
  auto session = engine.session();
  session
      .eval(
          "import linalg\n"
          "let x = reshape(sin(arange(1_000_000, f64) ** 2.0), (1000, 1000))\n"
          "def svd(x) = sum(linalg.svd(x).1)\n"
          "def forever(x) { while sum(x) > 0.0 { } }\n"
          "def goes_on(x) { forever(abs(x))\nsum(x) }\n")
      .value();
  std::mt19937 random(11);
  for (const char* program :
       {"print(svd(x))", "print(jit(svd)(x))",
        "print(sum(vmap(svd)(stack((x, x)))))", "print(sum(grad(svd)(x)))",
        "print(goes_on(x))", "print(jit(goes_on)(x))",
        "print(vmap(goes_on)(x))"}) {
    INFO(std::string(program));
    const std::chrono::milliseconds wall(10 + random() % 100);
    const auto late = session.eval(program, "late", {.limits = {.wall = wall}});
    CHECK_MESSAGE(late.error().kind() == Kind::limit,
                  std::string(late.error().text()));
    std::stop_source stop;
    std::jthread host([&, after = random() % 100] {
      std::this_thread::sleep_for(std::chrono::milliseconds(after));
      stop.request_stop();
    });
    const auto stopped =
        session.eval(program, "stopped", {.stop = stop.get_token()});
    CHECK_MESSAGE(stopped.error().kind() == Kind::cancelled,
                  std::string(stopped.error().text()));
  }
  CHECK(session.eval("2 + 2").value().as<int>().value() == 4);
}

TEST_CASE("1,000 calls ended at random times") {
  // Either they are done, or stopped, and the session goes on.
  unisono::Engine engine({.workers = 2});
  auto session = engine.session({.print = [](std::string_view) {}});
  session
      .eval(
          "@jit\ndef halve(x: f32[n]) -> f32[n] {\n"
          "  var y = x\n  for _ in range(1000) { y = y * 0.5 }\n  y\n}\n"
          "def work(n: int) {\n"
          "  var s = zeros(8)\n"
          "  for i in range(n) { s = s + f32(i)\nprint(s[0]) }\n"
          "  sum(halve(s))\n}")
      .value();
  const auto work = session.function("work").value();
  work.call({20}).value();
  std::mt19937 random(7);
  std::atomic<bool> done{false};
  std::atomic<UnisonoStop*> current{nullptr};
  std::atomic<int64_t> after{0};
  std::jthread stopper([&] {
    while (!done) {
      UnisonoStop* stop = current.exchange(nullptr);
      if (!stop) {
        std::this_thread::yield();
        continue;
      }
      const auto until = std::chrono::steady_clock::now() +
                         std::chrono::microseconds(after.load());
      while (std::chrono::steady_clock::now() < until)
        std::this_thread::yield();
      unisono_stop_request(stop);
      unisono_stop_release(stop);
    }
  });
  int stopped = 0;
  for (int i = 0; i < 1000; ++i) {
    UnisonoStop* stop = nullptr;
    REQUIRE(unisono_stop_create(&stop) == nullptr);
    UnisonoCallOptions options = UNISONO_CALL_OPTIONS_INIT;
    options.stop = stop;
    const Value n = 20;
    const UnisonoValue* arguments[] = {n.handle()};
    after = static_cast<int64_t>(random() % 600);
    current = unisono_stop_retain(stop);
    UnisonoError* error = unisono_call(work.value().handle(), arguments, 1,
                                       nullptr, nullptr, 0, &options, nullptr);
    if (error) {
      ++stopped;
      CHECK(unisono_error_kind(error) == UNISONO_CANCELLED);
    }
    unisono_error_release(error);
    unisono_stop_release(current.exchange(nullptr));
    unisono_stop_release(stop);
  }
  done = true;
  MESSAGE(stopped << " of 1000 were stopped");
  CHECK(work.call({20}).value().as<float>().value() == 0);
}
