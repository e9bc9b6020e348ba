// Functions that are compiled and checked once.
#include <doctest/doctest.h>

#include <array>
#include <cstdint>
#include <string>
#include <thread>
#include <tuple>
#include <vector>

#include "embed/unisono.hpp"

using unisono::Kind;
using unisono::Value;

struct Particle {
  std::array<float, 3> at{}, speed{};
  bool operator==(const Particle&) const = default;
};
UNISONO_RECORD(Particle, at, speed)

TEST_CASE("scalars") {
  unisono::Engine engine;
  auto session = engine.session();
  session.eval("def f(x: f32, k: f32) -> f32 { x * k + 1.0 }").value();
  const auto f = session.function("f")->typed<float(float, float)>().value();
  CHECK(f(2, 3).value() == 7);
  for (int i = 0; i < 1000; ++i)
    CHECK(f(static_cast<float>(i), 2).value() == 2.0f * i + 1);
}

TEST_CASE("structures, arrays, several results") {
  unisono::Engine engine;
  auto session = engine.session();
  session
      .eval(
          "def move(p: (at: f32[3], speed: f32[3]), dt: f32) {\n"
          "  ((at = p.at + dt * p.speed, speed = p.speed), sum(p.speed))\n}")
      .value();
  const auto move = session.function("move")
                        ->typed<std::tuple<Particle, float>(Particle, float)>()
                        .value();
  const auto [p, total] = move({{1, 2, 3}, {2, 4, 6}}, 0.5f).value();
  CHECK(p == Particle{{2, 4, 6}, {2, 4, 6}});
  CHECK(total == 12);
}

TEST_CASE("types that do not fit") {
  unisono::Engine engine;
  auto session = engine.session();
  session.eval("def f(x: f32) -> f32 { x }\nlet n = 3").value();
  const auto f = session.function("f").value();
  CHECK(f.typed<double(float)>().error().kind() == Kind::misuse);
  CHECK(f.typed<float(double)>().error().kind() == Kind::check);
  CHECK(f.typed<float(float, float)>().error().kind() == Kind::check);
  CHECK(f.typed<std::tuple<float, float>(float)>().error().kind() ==
        Kind::misuse);
  // The results are named.
  const auto error = f.typed<double(float)>().error();
  CHECK(error.summary().find("f32") != std::string::npos);
}

TEST_CASE("arrays of any size, and what is outside") {
  unisono::Engine engine;
  auto session = engine.session();
  session
      .eval(
          "let table = [10.0, 20.0, 30.0]\n"
          "def f(x: f32[3], k: int) { (x * table * f32(k), x, table) }")
      .value();
  const Value function = session.get("f").value();
  const Value x = Value::of(std::vector<float>{0, 0, 0}), k = 2;
  const UnisonoValue* examples[] = {x.handle(), k.handle()};
  UnisonoTyped* typed = nullptr;
  REQUIRE(unisono_typed_create(function.handle(), examples, 2, &typed) ==
          nullptr);
  CHECK(unisono_typed_argument_count(typed) == 1);
  REQUIRE(unisono_typed_result_count(typed) == 3);
  UnisonoTensor type{};
  CHECK(unisono_typed_result(typed, 2, &type) == 1);
  CHECK(type.shape[0] == 3);
  CHECK(unisono_typed_result(typed, 3, &type) == 0);
  const std::vector<float> in{1, 2, 3};
  std::vector<float> a(3), b(3), c(3);
  const void* arguments[] = {in.data()};
  void* results[] = {a.data(), b.data(), c.data()};
  REQUIRE(unisono_typed_call(typed, arguments, results, nullptr) == nullptr);
  CHECK(a == std::vector<float>{20, 80, 180});
  CHECK(b == in);
  CHECK(c == std::vector<float>{10, 20, 30});
  UnisonoError* error = unisono_typed_call(typed, nullptr, results, nullptr);
  CHECK(unisono_error_kind(error) == UNISONO_MISUSE);
  unisono_error_release(error);
  unisono_typed_release(typed);
}

TEST_CASE("results that are not aligned") {
  unisono::Engine engine;
  auto session = engine.session();
  session.eval("def f(x: f32[n]) -> f32[n] { x + 1.0 }").value();
  const Value x = Value::of(std::vector<float>(1000));
  const Value function = session.get("f").value();
  const UnisonoValue* examples[] = {x.handle()};
  UnisonoTyped* typed = nullptr;
  REQUIRE(unisono_typed_create(function.handle(), examples, 1, &typed) ==
          nullptr);
  std::vector<float> in(1001, 1), out(1001);
  const void* arguments[] = {&in[1]};
  void* results[] = {&out[1]};
  REQUIRE(unisono_typed_call(typed, arguments, results, nullptr) == nullptr);
  CHECK(out[0] == 0);
  CHECK(out[1] == 2);
  CHECK(out[1000] == 2);
  unisono_typed_release(typed);
}

TEST_CASE("an error of a typed function has its place") {
  unisono::Engine engine;
  auto session = engine.session();
  session
      .eval("def f(i: i32) -> f32 {\n  let t = [1.0, 2.0]\n  t[i]\n}",
            "table.uni")
      .value();
  const auto f = session.function("f")->typed<float(int32_t)>().value();
  CHECK(f(1).value() == 2);
  const auto error = f(2).error();
  CHECK(error.kind() == Kind::runtime);
  REQUIRE(error.messages().size() == 1);
  CHECK(error.messages()[0].where.line == 3);
  CHECK(f(0).value() == 1);
}

TEST_CASE("on several devices, and without a compiler") {
  for (const unisono::EngineOptions& options :
       {unisono::EngineOptions{.devices = "cpu:2"},
        unisono::EngineOptions{.reference_only = true}}) {
    unisono::Engine engine(options);
    auto session = engine.session();
    session
        .eval(
            "axis d = devices()\n"
            "let g = pmap(fn(x) => psum(x, d), over=d, out_axes=none)\n"
            "def f(x: f32[2]) { g(x[:len(devices())]) * 1.0 }")
        .value();
    const auto f =
        session.function("f")->typed<float(std::array<float, 2>)>().value();
    const float sum = f({3, 4}).value();
    CHECK(sum == (options.devices ? 7 : 3));
  }
}

TEST_CASE("many threads call it at once") {
  unisono::Engine engine({.workers = 2});
  auto session = engine.session();
  session.eval("def f(x: f32) -> f32 { x * x }").value();
  const auto f = session.function("f")->typed<float(float)>().value();
  std::vector<std::jthread> threads;
  for (int t = 0; t < 8; ++t)
    threads.emplace_back([&, t] {
      for (int i = 0; i < 2000; ++i)
        if (f(static_cast<float>(t)).value() != static_cast<float>(t * t))
          std::abort();
    });
}
