// Writes to elements outside compiled code: how much they copy, and that all
// who held the array see what they saw.
#include <doctest/doctest.h>

#include <string>

#include "tests/unit/lang/counting_host.h"

namespace unisono::lang {
namespace {

constexpr int64_t array_bytes = 400'000;

}  // namespace

TEST_CASE("a thousand writes copy nothing") {
  CountingHost host;
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

namespace {

/// Stores whose places or right sides are made in many ways: each of a variable
/// that `names` gives, so many times.
struct Stores {
  const char* names;
  const char* statement;  // i counts
  const char* print;
  const char* printed;
};

const Stores all_stores[] = {
    // a row: pending, of a map, cast, itself, of another array
    {"var w = zeros(f32[1000, 1000])",
     "w[i] = normal(fold_in(key(0), i), "
     "f32[1000])",
     "print(w[998] == normal(fold_in(key(0), 998), f32[1000]))", nullptr},
    {"var w = zeros(f32[1000, 5000])\nlet g = jit(fn(i) => cast(arange(5000) + "
     "i, f32))",
     "w[i] = g(i)", "print(w[997, 4], w[3, 2])", "1001.0 5.0\n"},
    {"var w = zeros(f32[1000, 5000])\nlet a = arange(5000)",
     "w[i] = cast(a + i, f32)", "print(w[997, 4], w[3, 2])", "1001.0 5.0\n"},
    {"var w = ones(f32[1000, 5000])", "w[i] = w[i - 1] + 1.0",
     "print(w[0, 0], w[999, 4999])", "2.0 1001.0\n"},
    {"var w = ones(f32[1000, 5000])\nlet z = arange(5_000_000, f32)"
     ".reshape((1000, 5000))",
     "w[i] = z[999 - i]", "print(w[0, 0], w[999, 4999])", "4995000.0 4999.0\n"},
    {"var w = ones(f32[1000, 5000])\nlet z = arange(5_000_000, f32)"
     ".reshape((1000, 5000))",
     "w[i] += z[i] * 2.0", "print(w[0, 1], w[1, 0])", "3.0 10001.0\n"},
    // tiles, columns, steps, rows for all, numbers for all
    {"var q = zeros(f32[512, 512])\nlet b = ones(f32[96, 96])",
     "q[i % 400:i % 400 + 96, i % 300:i % 300 + 96] += b",
     "print(sum(q), q[511, 511])", "9216000.0 0.0\n"},
    {"var q = zeros(f32[1000, 9000])\nlet b = arange(9000, f32)",
     "q[i:i + 1, ::-2] = b[::2] * 2.0", "print(q[999, 8997:])", "[4. 0. 0.]\n"},
    {"var q = zeros(f32[9000, 1000])\nlet b = arange(9000, f32)",
     "q[:, i] = b * 2.0", "print(q[8999, 999], q[1, 0])", "17998.0 2.0\n"},
    {"var q = zeros(f32[1000, 9000])\nlet b = arange(9000, f32)",
     "q[i:i + 3] = sqrt(b)", "print(q[999, 4], q[0, 9])", "2.0 3.0\n"},
    {"var q = zeros(i32[1000, 9000])", "q[i:i + 3, i:i + 4000] = i",
     "print(q[999, 4000], q[0, 0], q[0, 4000])", "999 0 0\n"},
    {"var q = zeros(f32[40_000])\nlet z = zeros(f32[9000])",
     "q[i] = sum(z + f32(i))", "print(q[999], q[1])", "8991000.0 9000.0\n"},
    {"var q = zeros(f32[100, 40_000])", "q[:, i:i + 3] = sin(arange(3, f32))",
     "print(q[99, 999], q[1, 1001] == sin(f32(2)))", "0.0 true\n"},
    // arrays of places: few, and many
    {"var x = zeros(f32[100_000])\nlet p = arange(900) * 7 % 100_000\n"
     "let b = ones(f32[900])",
     "x[p + i] += b", "print(sum(x))", "900000.0\n"},
    {"var x = zeros(f32[1_000_000])\nlet p = arange(30_000) * 7919 % 1_000_000"
     "\nlet b = ones(f32[30_000])",
     "x[p] += b", "print(sum(x), x[7919])", "30000000.0 1000.0\n"},
    {"var x = zeros(f32[1000, 1000])\nlet p = arange(100) * 7",
     "x[p, i] = sqrt(cast(p * p, f32))", "print(x[7, 999], x[8, 3])",
     "7.0 0.0\n"},
};

std::string thousand(const char* statement) {
  return std::string("\nfor i in range(1000) { ") + statement + " }\n";
}

}  // namespace

TEST_CASE("a thousand stores copy nothing, whatever is stored") {
  for (const Stores& stores : all_stores) {
    CAPTURE(stores.statement);
    CountingHost host;
    host.copied(stores.names);
    CHECK(host.copied(thousand(stores.statement)) == 0);
    host.copied(stores.print);
    const std::string printed = host.take_printed();
    if (stores.printed)
      CHECK(printed == stores.printed);
    else
      CHECK(printed.find("false") == std::string::npos);
  }
}

TEST_CASE("whoever else holds the array keeps what it saw, of each store") {
  for (const Stores& stores : all_stores) {
    CAPTURE(stores.statement);
    CountingHost host;
    const std::string name(1, stores.names[4]);
    host.copied(stores.names);
    const int64_t copied = host.copied(
        "let held = " + name + "\nlet before = sum(held)" +
        thousand(stores.statement) + "print(sum(held) == before, sum(abs(" +
        name + " - held)) > 0)");
    host.copied("print(typeof(held))");
    const std::string printed = host.take_printed();
    CHECK(printed.starts_with("true true\n"));
    CHECK(copied <= 2 * 36'000'000);
  }
}

TEST_CASE("stores to a split array: each block in its place") {
  // 4 blocks of 250 rows of 4 KB
  const std::string start =
      "let rows = pmap(fn(v) => v * 1.0, in_axes=split(0), out_axes=split(0))\n"
      "var y = rows(ones(f32[1000, 1000]))\n"
      "let b = arange(1000, f32)\n";
  constexpr int64_t row = 4000;
  CountingHost host(4);
  host.copied(start);
  // A row for cpu:0 is there; for each other device it is one row that moves.
  CHECK(host.copied("for i in range(1000) { y[i] = b * 2.0 + f32(i) }") ==
        750 * row);
  CHECK(host.copied("for i in range(100) { y[i, 3:5] = 7.0 }") == 0);
  CHECK(host.copied("for i in range(100) { y[i + 250, i] = 7.0 }") == 100 * 4);
  // What lies as the array does is nobody's travel.
  CHECK(host.copied("let c = rows(2.0 * y)\ny[:, 5:905] = c[:, :900]") == 0);
  CHECK(host.copied("let held = y\ny[0] = b") <= 250 * row + row);
  host.copied("print(y[0, 7], held[0, 7], held[999, 4], y[999, 4], y[99, 4])");
  CHECK(host.take_printed() == "7.0 8.0 1007.0 1007.0 7.0\n");
}

TEST_CASE("rows and boxes of a split array move alone") {
  // 4 blocks of 250 rows of 4 KB
  constexpr int64_t row = 4000;
  CountingHost host(4);
  host.copied(
      "let rows = pmap(fn(v) => v * 1.0, in_axes=split(0), out_axes=split(0))\n"
      "var y = rows(reshape(arange(1_000_000, f32), (1000, 1000)))\n"
      "let b = arange(1000, f32)\n"
      "var s = f32(0.0)\n");
  CHECK(host.copied("for j in range(1000) { s += y[j, 3] + y[j, 1:][2] }") ==
        1000 * row);
  CHECK(host.copied("for j in range(1000) { s += sum(y[j]) }") == 1000 * row);
  CHECK(host.copied("for j in range(100) { s += dot(y[j], y[j + 1]) }") ==
        200 * row);
  CHECK(host.copied("s += y[argmax(b)][0] + sum(y[argmin(b)])") == 2 * row);
  CHECK(host.copied("s += sum(y[[999, 3, 4, -1]]) + sum(exp(y[[7]]))") ==
        5 * row);
  CHECK(host.copied("s += sum(y[3:900:300, 5])") >= 3 * 4);
  // Half of the rows and more, or many short rows, are the whole array.
  CHECK(host.copied("print(sum(y[arange(900)]) > 0.0)") == 1000 * row);
  host.copied("print(y[998, 2], y[[1, 0, -1], 7], y[argmax(b)][:2])");
  CHECK(host.take_printed() ==
        "true\n998002.0 [1.00700e+03 7.00000e+00 9.99007e+05] "
        "[999000. 999001.]\n");
}

TEST_CASE("another holder keeps what it saw, by one copy") {
  for (const char* holder : {"let y = x", "let t = (x, 1)\nlet y = t.0",
                             "let r = (a = x)\nlet y = r.a", "var y = x",
                             "let y = stack((x,))[0]"}) {
    CAPTURE(holder);
    CountingHost host;
    host.copied("var x = zeros(f32[100_000])\nx[1] = 3.0");
    const std::string writes =
        "\nfor i in range(1000) { x[0] = 5.0 }\nx[1] = 4.0\n";
    CHECK(host.copied(holder + writes) <= 2 * array_bytes);
    host.copied("print(y[0], y[1], x[0], x[1])");
    CHECK(host.take_printed() == "0.0 3.0 5.0 4.0\n");
  }
}

TEST_CASE("compiled functions see each write, and hold nothing") {
  CountingHost host(2);
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
  CountingHost host;
  host.walk->interactive = true;
  CHECK(host.run("var x = zeros(f32[100_000])\nvar n = 0"));
  CHECK(host.run("x[0] = 1.0"));
  CHECK(!host.run("x[0] = 2.0\nx[3:5] = 9.0\nx[100_000 + n] = 3.0"));
  CHECK(host.run("print(x[0], x[3])"));
  CHECK(host.take_printed() == "1.0 0.0\n");
}

TEST_CASE("text grows by what is new") {
  CountingHost host;
  CHECK(
      host.copied("var s = \"\"\nvar t = s\n"
                  "for i in range(5) { s = s + \"ab\"; if i == 2 { t = s } }\n"
                  "s += t\nlet u = s\ns = s + s\nprint(s)\nprint(t, u)") == 0);
  CHECK(host.take_printed() ==
        "abababababababababababababababab\nababab abababababababab\n");
}

}  // namespace unisono::lang
