// Functions that the host defines, in each place where a program may call one:
// by the reference evaluator, in compiled code, and on simulated GPUs.
#include <doctest/doctest.h>

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
  CHECK(refused("def f(x: f32").find("error[") != std::string::npos);
  CHECK(refused("def f(x: floot) -> f32").find("error[") != std::string::npos);
  CHECK(refused("").find("[U0220]") != std::string::npos);
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
