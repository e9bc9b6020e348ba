// Writes to elements outside compiled code: how much they copy, and that all
// who held the array see what they saw.
#include <doctest/doctest.h>

#include <string>

#include "lang/context/walk.h"
#include "lang/syntax/parser.h"
#include "runtime/recorder.h"

namespace unisono::lang {
namespace {

/// A machine that tells how many bytes its devices copied among themselves.
struct Host {
  explicit Host(int devices = 1) : runtime(devices) {
    machine.runtime = &runtime;
    machine.compiler = &compiler;
    machine.recorder = &recorder;
    machine.output = [this](std::string_view text) { printed += text; };
    walk = std::make_unique<Walk>(machine, sources, diagnostics);
  }

  bool run(std::string text) {
    const SourceFile& file = sources.add("test.uni", std::move(text));
    programs.push_back(parse(file, diagnostics).program);
    return walk->check(*programs.back()) && walk->run(*programs.back());
  }
  /// Bytes that running the text copied from device to device.
  int64_t copied(std::string text) {
    const int64_t before = total();
    const bool ok = run(std::move(text));
    CHECK_MESSAGE(ok, render(diagnostics));
    return total() - before;
  }
  int64_t total() const {
    int64_t bytes = 0;
    for (const auto& [pair, total] : recorder.copies())
      if (pair.second != Recorder::host) bytes += total.bytes;
    return bytes;
  }
  std::string take_printed() { return std::exchange(printed, ""); }

  Runtime runtime;
  jit::Compiler compiler;
  Recorder recorder{/*keep_events=*/false};
  Machine machine;
  SourceMap sources;
  Diagnostics diagnostics;
  std::vector<std::unique_ptr<Program>> programs;
  std::unique_ptr<Walk> walk;
  std::string printed;
};

constexpr int64_t array_bytes = 400'000;

}  // namespace

TEST_CASE("a thousand writes copy nothing") {
  Host host;
  CHECK(
      host.copied("var x = zeros(f32[100_000])\n"
                  "for i in range(1000) { x[i] = f32(i) }\n"
                  "for i in range(1000) { x[i] += 1.0 }\n"
                  "for i in range(100) { x[2 * i + arange(2)] = [1.0, 2.0] }\n"
                  "var m = zeros(i32[100, 1000])\n"
                  "for i in range(100) { m[i] = arange(1000) }\n"
                  "for i in range(100) { m[i, [1, 2]] = 7; m[:, i] = 8 }\n"
                  "var b = zeros(bool[100_000])\n"
                  "for i in range(100) { b[-1 - i] = true }\n") == 0);
  CHECK(host.copied("print(x[0:3], x[300], x[999], m[5, 98:102], "
                    "sum(cast(b, i32)))") < array_bytes);
  CHECK(host.take_printed() ==
        "[1. 2. 1.] 301.0 1000.0 [  8   8 100 101] 100\n"
        "");
}

TEST_CASE("another holder keeps what it saw, by one copy") {
  for (const char* holder : {"let y = x", "let t = (x, 1)\nlet y = t.0",
                             "let r = (a = x)\nlet y = r.a", "var y = x",
                             "let y = stack((x,))[0]"}) {
    CAPTURE(holder);
    Host host;
    host.copied("var x = zeros(f32[100_000])\nx[1] = 3.0");
    const std::string writes =
        "\nfor i in range(1000) { x[0] = 5.0 }\nx[1] = 4.0\n";
    CHECK(host.copied(holder + writes) <= 2 * array_bytes);
    host.copied("print(y[0], y[1], x[0], x[1])");
    CHECK(host.take_printed() == "0.0 3.0 5.0 4.0\n");
  }
}

TEST_CASE("compiled functions see each write, and hold nothing") {
  Host host(2);
  host.copied(
      "var x = zeros(f32[100_000])\nx[0] = 1.0\n"
      "let f = jit(fn() => x[0] + x[1])\n"
      "axis dev = devices()\n"
      "let g = pmap(fn(i) => x[i], over=dev)\n"
      "var seen = 0.0\nf()");
  CHECK(host.copied("for i in range(100) { x[1] = f32(i); seen += f() }") <=
        array_bytes);
  host.copied(
      "x[0] = 7.0\nprint(seen, g(arange(2)))\n"
      "x[1] = 8.0\nprint(g(arange(2)))");
  CHECK(host.take_printed() == "5050.0 [ 7. 99.]\n[7. 8.]\n");
}

TEST_CASE("an input of a session that fails changes no array") {
  Host host;
  host.walk->interactive = true;
  CHECK(host.run("var x = zeros(f32[100_000])\nvar n = 0"));
  CHECK(host.run("x[0] = 1.0"));
  CHECK(!host.run("x[0] = 2.0\nx[3:5] = 9.0\nx[100_000 + n] = 3.0"));
  CHECK(host.run("print(x[0], x[3])"));
  CHECK(host.take_printed() == "1.0 0.0\n");
}

TEST_CASE("text grows by what is new") {
  Host host;
  CHECK(
      host.copied("var s = \"\"\nvar t = s\n"
                  "for i in range(5) { s = s + \"ab\"; if i == 2 { t = s } }\n"
                  "s += t\nlet u = s\ns = s + s\nprint(s)\nprint(t, u)") == 0);
  CHECK(host.take_printed() ==
        "abababababababababababababababab\nababab abababababababab\n");
}

}  // namespace unisono::lang
