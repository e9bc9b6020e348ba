#include "jit/ir/dim.h"

#include "jit/ir/type.h"

#include <doctest/doctest.h>

using namespace unisono;
using ir::Dim;

namespace {
const Dim n = Dim::symbol(1, "n"), m = Dim::symbol(2, "m"),
          d = Dim::symbol(3, "d");
}

TEST_CASE("sizes print in one normal form") {
  CHECK((n + 1).to_string() == "n + 1");
  CHECK((1 + n).to_string() == "n + 1");
  CHECK((2 * n - 3).to_string() == "2*n - 3");
  CHECK((Dim(0) - n).to_string() == "-n");
  CHECK((m * n).to_string() == "n*m");
  CHECK((n * n + n).to_string() == "n*n + n");
  CHECK(Dim(12).to_string() == "12");
  CHECK(floor_div(n + 1, 2).to_string() == "((n + 1) // 2)");
  CHECK(floor_mod(n, 2).to_string() == "n - 2*(n // 2)");
  CHECK(ir::Type{DType::F32, {n, 3}}.to_string() == "f32[n, 3]");
  CHECK(ir::Type{DType::I32, {}}.to_string() == "i32");
}

TEST_CASE("equal sizes are equal however they are written") {
  CHECK(n + m == m + n);
  CHECK((n + 1) * (n - 1) == n * n - 1);
  CHECK(n - n == Dim(0));
  CHECK((n - n).is_constant());
  CHECK(!(n == m));
  CHECK(!(n + 1 == n));
  CHECK(n == Dim::symbol(1, "another name"));
  CHECK(floor_div(n + 1, 2) == floor_div(1 + n, 2));
  CHECK(!(floor_div(n + 1, 2) == floor_div(n, 2)));
}

TEST_CASE("quotients cancel what divides") {
  CHECK(floor_div(2 * n, 2) == n);
  CHECK(floor_div(2 * n + 1, 2) == n);
  CHECK(floor_div(n * m, m) == n);
  CHECK(floor_div(n * m + d * m, n + d) == m);
  CHECK(floor_div(n + 4, 2) == floor_div(n, 2) + 2);
  CHECK(floor_div(floor_div(n, 2), 3) == floor_div(n, 6));
  CHECK(floor_div(2 * n + 1, 4) == floor_div(n, 2));
  CHECK(floor_div(Dim(-7), 2) == Dim(-4));
  CHECK(floor_mod(Dim(-7), 2) == Dim(1));
  CHECK(floor_mod(Dim(7), -2) == Dim(-1));
  CHECK(floor_div(n, -1) == 0 - n);
  CHECK(floor_div(n, 2) * 2 + floor_mod(n, 2) == n);
  CHECK(exact_div(6 * n, 3) == 2 * n);
  CHECK(exact_div(n * m, n) == m);
  CHECK(!exact_div(n + 1, 2));
  CHECK(!exact_div(n, 0));
  CHECK(exact_div(Dim(12), 4) == Dim(3));
  CHECK(!exact_div(Dim(13), 4));
}

TEST_CASE("substitution agrees with evaluation") {
  const Dim expressions[] = {
      n * n - 3 * m + 1, floor_div(3 * n + 5, 4), floor_div(n * m + d, m),
      floor_div(floor_div(n, 3) - m, d), floor_mod(5 * n - 7, 6)};
  for (int64_t a = 1; a < 8; ++a)
    for (int64_t b = 1; b < 6; ++b)
      for (int64_t c = 1; c < 4; ++c) {
        const Dim values[] = {0, a, b, c};
        const auto put = [&](uint32_t id) { return std::optional(values[id]); };
        const auto fdiv = [](int64_t x, int64_t y) {
          return x / y - ((x % y != 0) && ((x < 0) != (y < 0)));
        };
        const int64_t expected[] = {a * a - 3 * b + 1, fdiv(3 * a + 5, 4),
                                    fdiv(a * b + c, b), fdiv(fdiv(a, 3) - b, c),
                                    (5 * a - 7) - 6 * fdiv(5 * a - 7, 6)};
        for (int i = 0; i < 5; ++i)
          CHECK(expressions[i].substitute(put) == Dim(expected[i]));
      }
  CHECK(floor_div(n, m)
            .substitute([](uint32_t) { return std::optional<Dim>(0); })
            .overflowed());
  CHECK((n + m).symbols() == std::vector<uint32_t>{1, 2});
}

TEST_CASE("sizes that are too large are marked, never wrapped") {
  const Dim big(INT64_MAX);
  CHECK((big + 1).overflowed());
  CHECK((big * 2 - 5).overflowed());
  CHECK((Dim(INT64_MIN) - 1).overflowed());
  CHECK((n * INT64_MAX * 2).overflowed());
  CHECK(!(big + 0).overflowed());
  CHECK(floor_div(Dim(INT64_MIN), -1).overflowed());
  Dim power = n + m + d;
  for (int i = 0; i < 100; ++i) power = power * (n + m + d + 1);
  CHECK(power.overflowed());
  Dim nested = n;
  for (int i = 0; i < 1000; ++i) nested = floor_div(nested + m, nested - 1);
  CHECK(nested.overflowed());
}

TEST_CASE("the number of elements of a type") {
  CHECK(ir::element_count({n, 3, n}) == 3 * n * n);
  CHECK(ir::element_count({}) == Dim(1));
  const ir::Type huge{DType::F64, {int64_t{1} << 40, int64_t{1} << 40}};
  CHECK(huge.elements() == INT64_MAX);
  CHECK(huge.bytes() == INT64_MAX);
  const ir::Type none{DType::F64, {int64_t{1} << 40, int64_t{1} << 40, 0}};
  CHECK(none.bytes() == 0);
}
