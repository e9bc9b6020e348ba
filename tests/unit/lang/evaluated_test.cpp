// Statements of the host that no code is made for: they cost less than it.
#include <doctest/doctest.h>

#include <string>

#include "tests/unit/lang/counting_host.h"

namespace unisono::lang {
namespace {

struct Host : CountingHost {
  explicit Host(int64_t threshold = 64 * 1024) : CountingHost(1, threshold) {}
};

// Each has an array of 64 KiB or more, and a size or place that is new in each
// turn.
const char* const moving[] = {
    "for i in range(200) { s += f64(sum(x[i:i + 20000])) }",
    "for i in range(200) { s += f64(sum(x[:20000 + i] * 2.0)) }",
    "for i in range(200) { s += f64(sum(x[x > f32(i)])) }",
    "for i in range(20) { s += f64(mean(x[i::2]) + std(exp(-x[i:]))) }",
    "for i in range(100) { y = concat((y, x[:20000])); s += f64(len(y)) }",
    "for i in range(100) { y = y[1:]; s += f64(y[0]) }",
    "for i in range(50) { s += f64(x[:20000 + i] @ x[i:20000 + 2 * i]) }",
    "for i in range(50) { s += f64(cumsum(x[i:i + 20000])[7]) }",
    "for i in range(50) { s += f64(sum(q[i, 1:] * q[1:, i])) }",
};

}  // namespace

TEST_CASE("sizes and places that come once are not compiled") {
  for (const std::string loop : moving) {
    CAPTURE(loop);
    const std::string program =
        "let x = arange(50000, f32) * 0.01\n"
        "let q = reshape(arange(90000, f32), (300, 300))\n"
        "var y = x\nvar s = 0.0f64\n" +
        loop + "\nprint(s)\n";
    Host host;
    CHECK(host.compiled(program) <= 1);
    Host compiling(0);
    CHECK(compiling.compiled(program) > 1);
    CHECK(host.printed == compiling.printed);
  }
}

TEST_CASE("what recurs is compiled once, when evaluating has cost as much") {
  // 50,000 elements: an addition is some 30 us, compiling 2.2 ms.
  Host host;
  const std::string first = "let x = arange(50000, f32)\nvar y = x\n";
  CHECK(host.compiled(first + "for i in range(20) { y = y + x }\n") == 0);
  CHECK(host.compiled("for i in range(200) { y = y + x }\nprint(y[1])\n") == 1);
  CHECK(host.compiled("for i in range(200) { y = y + x }\n") <= 1);
  CHECK(host.printed == "221.0\n");
}

TEST_CASE("large work is compiled at once") {
  Host host;
  CHECK(host.compiled("let x = arange(4000000, f32)\n"
                      "let y = sqrt(x) + x * 2.0\nprint(y[4])\n") >= 1);
  CHECK(host.printed == "10.0\n");
}

TEST_CASE("an evaluated statement reports its error at its place") {
  Host host;
  const SourceFile& file = host.sources.add(
      "test.uni",
      "let x = arange(50000, i32)\nprint(1)\nlet y = x // (x - 7)\n");
  const auto program = parse(file, host.diagnostics).program;
  REQUIRE(host.walk->check(*program));
  CHECK(!host.walk->run(*program));
  const std::string said = render(host.diagnostics);
  CHECK_MESSAGE(said.find("U0501") != std::string::npos, said);
  CHECK_MESSAGE(said.find("test.uni:3") != std::string::npos, said);
  CHECK(host.compiler.programs_compiled() == 0);
  CHECK(host.printed == "1\n");
}

}  // namespace unisono::lang
