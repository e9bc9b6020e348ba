// Arguments of maps that were moved to the devices: how often they are moved
// again.
#include <doctest/doctest.h>

#include <string>

#include "tests/unit/lang/counting_host.h"
#include "tests/unit/moved.h"

namespace unisono::lang {
namespace {

constexpr int64_t bytes = 400'000;  // of `w`
// Of what `f` maps, and of each result that is printed, for all calls here.
constexpr int64_t few = 10'000;

const char* const names =
    "var w = sin(arange(100_000, f32))\n"
    "let x = ones(f32[4])\n"
    "let f = pmap(fn(w, x) => sum(w) * x, in_axes=(none, split(0)))\n"
    "let rows = pmap(fn(w) => sum(w), in_axes=split(0))\n";

/// Whether so many times the array was copied, and next to nothing else.
void check_times(int64_t copied, int64_t times) {
  CHECK(copied >= times * bytes);
  CHECK(copied < times * bytes + few);
}

}  // namespace

TEST_CASE("an argument that a name holds is moved once") {
  CountingHost host(4);
  check_times(host.copied(names), 0);
  // The first device has it.
  check_times(host.copied("for i in range(50) { f(w, x) }"), 3);
  check_times(host.copied("let same = w\nf(same, x)"), 0);
  check_times(host.copied("def of(v) { f(v, x); f(v, x) }\nof(w)"), 0);
  check_times(host.copied("for i in range(50) { rows(w) }"), 1);
  CHECK(host.copied("for i in range(50) { rows(w); f(w, x) }") < few);
  // Of a tuple or record that a name holds.
  host.run("let t = (sin(w), (w=cos(w), b=1.0))\nlet a = x");
  host.run(
      "let g = pmap(fn(t, x) => sum(t[0] + t[1].w) * x,"
      "            in_axes=(none, split(0)))");
  check_times(host.copied("for i in range(50) { g(t, x) }"), 6);
  check_times(host.copied("for i in range(50) { g(t=t, x=x) }"), 0);
}

TEST_CASE("arguments that are not worth keeping are moved each time") {
  CountingHost host(4);
  host.run(names);
  host.run("let small = sin(arange(16_000, f32))");
  CHECK(host.copied("for i in range(50) { f(small, x) }") >= 50 * 3 * 64'000);
  check_times(host.copied("for i in range(5) { f(w + 1.0, x) }"), 15);
  // What was kept goes with the array.
  const int64_t before = host.in_use();
  host.run("f(w, x)");
  CHECK(host.in_use() >= before + 3 * bytes);
  host.run("w = x");
  CHECK(host.in_use() < before);
}

TEST_CASE("a write takes copies of what was") {
  CountingHost host(4);
  host.run(names);
  host.run("f(w, x)");
  // In place, although the first device had its copy in the array's own block.
  check_times(host.copied("w[5] = 1e6"), 0);
  check_times(host.copied("print(f(w, x)[0, 0] > 9e5)"), 3);
  check_times(host.copied("w[7:9] = 2e6\nprint(f(w, x)[3, 0] > 4e6)"), 3);
  check_times(
      host.copied("w[arange(20_000)] += 1e6\nprint(f(w, x)[3, 0] > 2e10)"), 3);
  CHECK(host.take_printed() == "true\ntrue\ntrue\n");
  // Another name still holds what was, and its copies.
  check_times(host.copied("let v = w\nw[0] = 0.0"), 1);
  check_times(host.copied("f(v, x)"), 0);
  check_times(host.copied("f(w, x)"), 3);
  // Of a split array, of which one device is to have all.
  host.run(
      "let each = pmap(fn(v) => v * 2.0, in_axes=split(0), out_axes=split(0))");
  host.run("var s = each(w)\nlet total = jit(fn(v) => sum(v))\ntotal(s)");
  CHECK(host.copied("total(s)") < few);
  check_times(host.copied("s[99_999] = 1e9\nprint(total(s) > 5e8)"), 1);
  CHECK(host.take_printed() == "true\n");
}

TEST_CASE("an argument that is given away is not kept") {
  CountingHost host(4);
  host.run(names);
  host.run(
      "let take = pmap(fn(w, x) => sum(w) * x, in_axes=(none, split(0)),"
      "               donate=\"w\")");
  check_times(host.copied("f(w, x)\nf(w, x)"), 3);
  // What the devices have is theirs to write to; nothing is moved.
  host.copied("take(w, x)");
  check_times(host.copied("w = cos(arange(100_000, f32))\ntake(w, x)"), 3);
  CHECK_FALSE(host.run("f(w, x)"));
}

TEST_CASE("memory that is short takes what was kept") {
  CountingHost host(4, Machine().compile_threshold, 150'000'000);
  host.run(names);
  host.run("let a = f(w, x)\nlet b = f(w, x)");
  CHECK(host.in_use() >= 4 * bytes);
  // There is no room for this anyway.
  CHECK_FALSE(host.run("let y = sin(arange(50_000_000, f32))"));
  CHECK(host.in_use() < 2 * bytes);
  // From now on each call moves it: what is kept would be in the way again.
  check_times(host.copied("let c = f(w, x)\nlet d = f(w, x)"), 6);
  host.run("print(all(a == c), all(b == d))");
  CHECK(host.take_printed() == "true true\n");
  CHECK(host.in_use() < 2 * bytes);
}

TEST_CASE("an array of one element's shape keeps nothing of another's") {
  CountingHost host(4);
  host.run(
      "let c = ones(f32[1, 100_000])\n"
      "let f = pmap(fn(w, x) => sum(w) * x, in_axes=(none, split(0)))\n"
      "let x = ones(f32[4])\nprint(f(c, x)[3])\n"
      "let d = broadcast_to(c, (2, 100_000))\nprint(f(d, x)[3])");
  CHECK(host.take_printed() == "[100000.]\n[200000.]\n");
}

}  // namespace unisono::lang
