// Functions that the host defines, in each place where a program may call one:
// by the reference evaluator, in compiled code, and on simulated GPUs.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <cmath>
#include <cstring>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "host/session/session.h"
#include "tests/unit/host/simulation.h"

namespace unisono::host {
namespace {

using Arrays = std::vector<jit::HostArray>;

template <class T>
T element(const jit::HostArray& array, size_t i = 0) {
  T value;
  std::memcpy(&value, array.bytes.data() + i * sizeof value, sizeof value);
  return value;
}
template <class T>
void set(jit::HostArray& array, T value, size_t i = 0) {
  std::memcpy(array.bytes.data() + i * sizeof value, &value, sizeof value);
}
size_t floats(const jit::HostArray& array) { return array.bytes.size() / 4; }

std::string plain(const std::string& text);

/// A session with these functions; `log` is what those with effects saw.
struct Host {
  explicit Host(const std::string& devices) {
    SessionOptions options;
    options.cpu_devices = 3;
    if (devices == "sim") {
      auto gpus = testing::simulated_gpus("devices=3");
      REQUIRE(gpus);
      options.devices = *std::move(gpus);
    }
    options.reference_only = devices == "reference";
    options.compile_threshold = devices == "compiled" ? 0 : 64 * 1024;
    options.output = [this](std::string_view text) { printed += text; };
    session = std::make_unique<Session>(std::move(options));
    define("def halve(x: f32[n]) -> f32[n]", true,
           [this](const Arrays& x, Arrays& y) {
             ++calls;
             for (size_t i = 0; i < floats(x[0]); ++i)
               set(y[0], element<float>(x[0], i) / 2, i);
             return Unit{};
           });
    define("def extremes(x: f32[n]) -> (least: f32, most: f32, size: i32)",
           true, [](const Arrays& x, Arrays& y) {
             for (size_t i = 0; i < floats(x[0]); ++i) {
               const auto v = element<float>(x[0], i);
               if (i == 0 || v < element<float>(y[0])) set(y[0], v);
               if (i == 0 || v > element<float>(y[1])) set(y[1], v);
             }
             set(y[2], static_cast<int32_t>(floats(x[0])));
             return Unit{};
           });
    define("def note(what: str, k: int, x: f32)", false,
           [this](const Arrays& x, Arrays&) {
             log += std::string(x[0].bytes.begin(), x[0].bytes.end()) + ":" +
                    std::to_string(element<int64_t>(x[1])) + ":" +
                    std::to_string(static_cast<int>(element<float>(x[2]))) +
                    " ";
             return Unit{};
           });
    define("def next(x: f32) -> i32", false, [this](const Arrays&, Arrays& y) {
      set(y[0], ++counter);
      return Unit{};
    });
    define("def root(x: f32) -> f32", true,
           [](const Arrays& x, Arrays& y) -> Status {
             const auto v = element<float>(x[0]);
             if (v < 0)
               return Error{.kind = Error::Kind::check_failed,
                            .message = "it is negative"};
             set(y[0], std::sqrt(v));
             return Unit{};
           });
  }

  void define(const char* declaration, bool pure,
              decltype(lang::HostFunction::call) call) {
    REQUIRE(session->define(declaration, pure, std::move(call)));
  }
  std::string run(const std::string& text) {
    printed.clear(), log.clear();
    const lang::Program* program = session->check("test.uni", text);
    if (program) session->run(*program);
    const std::string messages = lang::render(session->diagnostics());
    session->diagnostics().truncate(0);
    return messages.empty() ? plain(printed) : printed + messages;
  }

  std::string printed, log;
  int calls = 0;
  int32_t counter = 0;
  std::unique_ptr<Session> session;
};

/// Without what lines numbers up: "[1. 2.5]" is "[1 2.5]".
std::string plain(const std::string& text) {
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    const char next = i + 1 < text.size() ? text[i + 1] : ' ';
    if (text[i] == '.' && (next < '0' || next > '9')) continue;
    if (text[i] == ' ' &&
        (next == ' ' || out.empty() || out.back() == '[' || out.back() == '\n'))
      continue;
    out += text[i];
  }
  return out;
}

const char* everywhere[] = {"reference", "compiled", "cpu", "sim"};

}  // namespace

TEST_CASE("a function of the host is like any function") {
  for (const char* devices : everywhere) {
    CAPTURE(devices);
    Host host(devices);
    CHECK(host.run("print(halve([2.0, 3.0]), halve(arange(0, f32)))") ==
          "[1 1.5] []\n");
    CHECK(host.run("let e = extremes([3.0, -1.0, 2.0])\nprint(e, e.size)") ==
          "(least = -1.0, most = 3.0, size = 3) 3\n");
    CHECK(host.run(
              "let f = jit(fn(x) => sum(halve(x * 4.0)) + extremes(x).most)\n"
              "print(f([1.0, 2.0]), f([5.0]))") == "8.0 15.0\n");
    CHECK(host.run("note(\"a\", 3, 7.0)") == "");
    CHECK(host.log == "a:3:7 ");
    CHECK(host.run("for i in unrolled(3) { note(\"loop\", i, f32(i)) }") == "");
    CHECK(host.log == "loop:0:0 loop:1:1 loop:2:2 ");
    CHECK(host.run(
              "let g = jit(fn(x) => {\n  var s = x\n  for i in range(3) { s = "
              "halve(s) }\n  while s[0] > 0.1 { s = halve(s) }\n  s\n})\n"
              "print(g([8.0, 16.0]))") == "[0.0625 0.125 ]\n");
  }
}

TEST_CASE("members of maps call a function of the host, each its own") {
  for (const char* devices : everywhere) {
    CAPTURE(devices);
    Host host(devices);
    CHECK(host.run("print(vmap(halve)([[2.0, 4.0], [6.0, 8.0]]))") ==
          "[[1 2]\n[3 4]]\n");
    CHECK(host.run("print([root(x) for x in [1.0, 4.0, 9.0]])") == "[1 2 3]\n");
    // Only who takes part calls: -4 has no root.
    CHECK(host.run("print([if x > 0.0 { root(x) } else { x } for x in "
                   "[1.0, -4.0, 9.0]])") == "[1 -4 3]\n");
    CHECK(host.run("print(vmap(vmap(root))([[1.0, 4.0, 9.0], [16.0, 25.0, "
                   "36.0]]))") == "[[1 2 3]\n[4 5 6]]\n");
    CHECK(
        host.run("print(vmap(fn(r) => [if r[i] > f32(i) { root(r[i] - f32(i)) "
                 "} else { f32(i) } for i in range(3)])([[1.0, 0.0, 3.0], "
                 "[4.0, 2.0, 0.0]]))") == "[[1 1 1]\n[2 1 2]]\n");
    CHECK(
        host.run("axis dev = devices()\n"
                 "let p = pmap(fn(x) => psum(sum(halve(x)), dev) + root(x[0]), "
                 "over=dev)\nprint(p([[1.0, 1.0], [4.0, 0.0], [9.0, 1.0]]))\n"
                 "print(p(reshape(arange(12, f32) ** 2, (6, 2))))") ==
        "[9 10 11]\n[253 255 257 259 261 263]\n");
    // One call where all members' is the same.
    host.calls = 0;
    CHECK(host.run("print(vmap(fn(x) => x + sum(halve([2.0, 4.0])))(arange(4, "
                   "f32)))") == "[3 4 5 6]\n");
    CHECK(host.calls == 1);
  }
}

TEST_CASE("effects of the host happen once each, in the program's order") {
  for (const char* devices : everywhere) {
    CAPTURE(devices);
    Host host(devices);
    CHECK(host.run(
              "let e = jit(fn(x) => {\n  note(\"a\", 1, x)\n  let k = next(x)\n"
              "  note(\"b\", 2, f32(k))\n  next(x) * 10 + k\n})\n"
              "print(e(5.0))") == "21\n");
    CHECK(host.log == "a:1:5 b:2:1 ");
    host.counter = 0;
    CHECK(host.run("print([next(0.0) for _ in range(4)])") == "[1 2 3 4]\n");
    host.run(
        "let v = [{ if x > 1.0 { note(\"v\", 0, x) }\n x } for x in arange(4, "
        "f32)]");
    CHECK(host.log == "v:0:2 v:0:3 ");
    host.run(
        "axis dev = devices()\npmap(fn(x) => { note(\"p\", 0, x)\n"
        "note(\"q\", 0, x)\n x }, over=dev)(arange(3, f32))");
    CHECK(host.log == "p:0:0 q:0:0 p:0:1 q:0:1 p:0:2 q:0:2 ");
    host.counter = 0;
    // Around a map all devices have one call and its result.
    CHECK(host.run(
              "axis dev = devices()\nlet n = jit(fn(x) => {\n"
              "  let k = next(x[0])\n"
              "  pmap(fn(y) => y + f32(k), over=dev)(x) + f32(next(x[1]))\n})\n"
              "print(n(arange(3, f32)))") == "[3 4 5]\n");
    CHECK(host.counter == 2);
  }
}

TEST_CASE("mistakes with functions of the host") {
  for (const char* devices : everywhere) {
    CAPTURE(devices);
    Host host(devices);
    const std::string failed = host.run("let x = -1.0\nprint(root(x))");
    CHECK(failed.find("error[U0510]: `root` failed: it is negative") !=
          failed.npos);
    CHECK(failed.find("test.uni:2:7") != failed.npos);
    const std::string inside = host.run(
        "let f = jit(fn(x) => root(x) + 1.0)\n"
        "print(f(-2.0))");
    CHECK(inside.find("[U0510]") != inside.npos);
    CHECK(inside.find("test.uni:1:22") != inside.npos);
    const std::string member = host.run(
        "axis dev = devices()\nprint(pmap(root, over=dev)([1.0, -1.0, "
        "-2.0]))");
    CHECK(member.find("[U0510]") != member.npos);
    CHECK(member.find(":1") != member.npos);
    CHECK(host.run("halve(3)").find("[U0309]") != std::string::npos);
    CHECK(host.run("halve()").find("error[") != std::string::npos);
    CHECK(host.run("print(1)") == "1\n");
    host.define("def throws(x: f32) -> f32", true,
                [](const Arrays&, Arrays&) -> Status {
                  throw std::runtime_error("no more of this");
                });
    CHECK(
        host.run("print(jit(throws)(1.0))").find("`throws` failed: no more") !=
        std::string::npos);
  }
  Host host("cpu");
  const auto refused = [&](const char* declaration) {
    CHECK(!host.session->define(declaration, true, {}));
    const std::string text = lang::render(host.session->diagnostics());
    host.session->diagnostics().truncate(0);
    return text;
  };
  CHECK(refused("let x = 1").find("[U0220]") != std::string::npos);
  CHECK(refused("def f(x: f32) -> f32 = x").find("[U0220]") !=
        std::string::npos);
  CHECK(refused("def f(x) -> f32").find("[U0220]") != std::string::npos);
  CHECK(refused("def f(x: f32) -> str").find("[U0220]") != std::string::npos);
  CHECK(refused("def f(x: f32) -> f32[m]").find("error[") != std::string::npos);
  CHECK(refused("def f(x: f32) -> f32[m]").find("`?k`") == std::string::npos);
  for (const char* unknown :
       {"f32[?k]", "f32[_]", "f32[n, ?k]", "f32[...]", "(f32[n], f32[?k])",
        "(a: f32, b: f32[?k])", "Open", "Some", "f32[?k + 1]"}) {
    CAPTURE(unknown);
    host.run("type Some = f32[?k]\ntype Open[d] = (f32[d], f32[d])");
    const std::string text =
        refused(fmt::format("def f(x: f32[n]) -> {}", unknown).c_str());
    CHECK(text.find("error[U") != text.npos);
    CHECK(text.find("<host>:1:") != text.npos);
  }
  for (const char* known :
       {"f32[n // 2]", "f32[maximum(n, m)]", "f32[2 * n, m]", "Pair[n + m]"}) {
    CAPTURE(known);
    host.run("type Pair[d] = (f32[d], f32[d])");
    CHECK(host.session->define(
        fmt::format("def f(x: f32[n], y: f32[m]) -> {}", known), true, {}));
  }
  CHECK(refused("def f(x: f32").find("error[") != std::string::npos);
  CHECK(refused("def f(x: floot) -> f32").find("error[") != std::string::npos);
  CHECK(refused("").find("[U0220]") != std::string::npos);
}

TEST_CASE("what the host computes has no derivative but by a rule") {
  const auto square = [](const Arrays& x, Arrays& y) -> Status {
    const auto v = element<double>(x[0]);
    set(y[0], v * v);
    return Unit{};
  };
  for (const char* devices : everywhere) {
    CAPTURE(devices);
    Host host(devices);
    host.define("def sq(x: f64) -> f64", true, square);
    host.define("def both(x: f64) -> (i32, f64)", true,
                [](const Arrays&, Arrays&) -> Status { return Unit{}; });
    const char* dependent[] = {
        "grad(fn(x) => sq(x))(3f64)",
        "grad(sq)(3f64)",
        "vjp(sq)(3f64, 1f64)",
        "jvp(sq)(3f64, 1f64)",
        "value_and_grad(fn(x) => x + sq(2.0 * x))(3f64)",
        "jacobian(vmap(sq))(f64([1, 2]))",
        "hessian(fn(x) => x * sq(x))(3f64)",
        "grad(jit(fn(x) => sq(x)))(3f64)",
        "grad(fn(x) => both(x).1)(3f64)",
        "grad(checkpoint(fn(x) => sq(x)))(3f64)",
        "grad(fn(x) => if x > 1f64 { sq(x) } else { x })(3f64)",
        "grad(fn(x) => sum([sq(y) for y in x]))(f64([1, 2]))",
        // It depends from the second turn on.
        ("grad(fn(x) => {\n  var y = 1f64\n"
         "  for i in range(3) { y = sq(y)\n y = y * x }\n  y\n})(3f64)"),
        "grad(fn(x) => scan(fn(c, _) => (sq(c), none), x, arange(3)).0)(3f64)",
    };
    for (const char* program : dependent) {
      CAPTURE(program);
      const std::string said = host.run(program);
      CHECK(said.find("error[U0609]: `") != said.npos);
      CHECK(said.find("` has no derivative") != said.npos);
      CHECK(said.find("--> test.uni:") != said.npos);
      CHECK(said.find("the derivative is taken here") != said.npos);
      CHECK(said.find("`@custom_jvp(rule) def ") != said.npos);
    }
    // Nothing that is a float depends on what is derived by.
    CHECK(host.run("print(grad(fn(x) => x * sq(5.0))(3f64))") == "25.0\n");
    CHECK(host.run("print(grad(fn(x) => x * sq(stop_gradient(x)))(3f64))") ==
          "9.0\n");
    CHECK(host.run("print(grad(fn(x) => x * f64(next(f32(x))))(3f64))") ==
          "1.0\n");
    CHECK(host.run("print(grad(fn(x) => { note(\"g\", 1, f32(x))\n x * x })"
                   "(3f64))") == "6.0\n");
    CHECK(host.log == "g:1:3 ");
  }
}

TEST_CASE("a function of the host may be defined with its derivative") {
  for (const char* devices : everywhere) {
    CAPTURE(devices);
    Host host(devices);
    const auto times = [](double factor, int power) {
      return [factor, power](const Arrays& x, Arrays& y) -> Status {
        set(y[0], factor * std::pow(element<double>(x[0]), power));
        return Unit{};
      };
    };
    host.define("def sq_slope(x: f64) -> f64", true, times(2, 1));
    host.define(
        "@custom_jvp(fn(x, t) => (sq(x), sq_slope(x) * t))\n"
        "def sq(x: f64) -> f64",
        true, times(1, 2));
    host.define(
        "@custom_jvp(fn(x, t) => (cube(x), 3.0 * sq(x) * t))\n"
        "def cube(x: f64) -> f64",
        true, times(1, 3));
    // The host computes the cotangent, too.
    host.define("def pulled(x: f64, g: f64) -> f64", true,
                [](const Arrays& x, Arrays& y) -> Status {
                  set(y[0], 7 * element<double>(x[0]) * element<double>(x[1]));
                  return Unit{};
                });
    host.define(
        "@custom_vjp(fn(x, g) => (back(x), pulled(x, g)))\n"
        "def back(x: f64) -> f64",
        true, times(3.5, 2));
    CHECK(host.run("print(sq(3.0), grad(sq)(3f64), jvp(sq)(3f64, 10f64))") ==
          "9.0 6.0 (9.0, 60.0)\n");
    CHECK(host.run("print(vmap(grad(sq))(f64([1, 2, 3])))") == "[2 4 6]\n");
    CHECK(host.run("print(grad(fn(x) => sum([sq(y) for y in x]))(f64([1, "
                   "5])))") == "[2 10]\n");
    CHECK(host.run("print(jit(grad(fn(x) => sq(sq(x))))(3f64))") == "108.0\n");
    CHECK(host.run("print(grad(cube)(2f64), grad(grad(cube))(2f64))") ==
          "12.0 12.0\n");
    CHECK(host.run("print(back(2.0), grad(back)(2f64), vmap(grad(back))"
                   "(f64([1, 2])))") == "14.0 14.0 [7 14]\n");
    CHECK(host.run("axis dev = devices()\n"
                   "print(pmap(grad(sq), over=dev)(f64([1, 2, 3])))") ==
          "[2 4 6]\n");
    // A derivative of the slope is nowhere.
    CHECK(host.run("grad(grad(sq))(3f64)").find("`sq_slope` has no deriv") !=
          std::string::npos);
    // The host's function of a tangent may be anything.
    host.define("def scaled(t: f64) -> f64", true, times(2, 1));
    host.define(
        "@custom_jvp(fn(x, t) => (bent(x), scaled(t)))\n"
        "def bent(x: f64) -> f64",
        true, times(1, 2));
    CHECK(host.run("grad(bent)(3f64)").find("error[U0607]") !=
          std::string::npos);
  }
}

TEST_CASE("a function of the host that gives too little is an error") {
  for (const char* devices : everywhere) {
    CAPTURE(devices);
    Host host(devices);
    host.define("def short(x: f32[n]) -> f32[n]", true,
                [](const Arrays&, Arrays& y) {
                  y[0].bytes.resize(2);
                  return Unit{};
                });
    for (const char* call :
         {"print(short([1.0, 2.0]))", "print(jit(short)([1.0, 2.0]))",
          "print(vmap(short)([[1.0, 2.0], [3.0, 4.0]]))"})
      CHECK(host.run(call).find("`short` failed: it gave another number") !=
            std::string::npos);
  }
}

TEST_CASE("a function of the host may be defined anew") {
  Host host("compiled");
  CHECK(host.run("def twice(x) = jit(fn(y) => halve(y) * 2.0)(x)\n"
                 "print(twice([3.0]))") == "[3]\n");
  host.define("def halve(x: f32[n]) -> f32[n]", true,
              [](const Arrays& x, Arrays& y) {
                y[0].bytes = x[0].bytes;
                return Unit{};
              });
  CHECK(host.run("print(twice([3.0]))") == "[6]\n");
}

}  // namespace unisono::host
