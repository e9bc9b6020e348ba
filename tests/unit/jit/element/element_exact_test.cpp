// What docs/accuracy.md says of operations on floats without a bound: they are
// exact or correctly rounded; and of 16-bit floats: they are computed in f32.
#include <doctest/doctest.h>

#include <cmath>
#include <cstring>
#include <random>
#include <set>
#include <vector>

#include "jit/ir/kinds.h"
#include "jit/scalar/element.h"
#include "jit/scalar/element_rows.h"

namespace unisono::jit {
namespace {

using ir::Op;

constexpr Op rows[] = {
#define UNARY(name, ...) Op::name,
#define BINARY UNARY
#include "jit/ir/ops.def"
};

bool has_bound(Op op) {
#define ACCURACY(name, ...) \
  if (op == Op::name) return true;
#define ACCURACY2 ACCURACY
#define ACCURACY_APART ACCURACY
#include "tests/unit/jit/element/accuracy.def"
  return false;
}

template <class T>
std::vector<T> patterns(size_t n, uint32_t seed) {
  std::mt19937_64 random(seed);
  std::vector<T> out(n);
  for (size_t i = 0; i < n; ++i) {
    const uint64_t bits = random();
    std::memcpy(&out[i], &bits, sizeof(T));
    // Half of them of like magnitude, so that sums round.
    if (i % 2) out[i] = static_cast<T>(static_cast<int64_t>(bits)) / 0x1p60;
  }
  return out;
}

template <class T, class Wide>
void check_rounded(DType dtype) {
  constexpr int64_t n = 1 << 16;
  const std::vector<T> x = patterns<T>(n, 1), y = patterns<T>(n, 2);
  std::vector<T> out(n);
  const void* in[] = {x.data(), y.data()};
  const int64_t stride[] = {1, 1};
  struct Row {
    Op op;
    Wide (*exact)(Wide, Wide);
  };
  const Row arithmetic[] = {{Op::add, [](Wide a, Wide b) { return a + b; }},
                            {Op::sub, [](Wide a, Wide b) { return a - b; }},
                            {Op::mul, [](Wide a, Wide b) { return a * b; }},
                            {Op::div, [](Wide a, Wide b) { return a / b; }}};
  for (const Row& row : arithmetic) {
    element_loop(row.op, dtype)(out.data(), in, stride, n, nullptr);
    int wrong = 0;
    for (int64_t i = 0; i < n; ++i) {
      // Twice the digits and two more: rounding twice is rounding once.
      const T want = static_cast<T>(row.exact(x[i], y[i]));
      const bool same =
          std::isnan(want)
              ? std::isnan(out[i])
              : want == out[i] && std::signbit(want) == std::signbit(out[i]);
      if (same || ++wrong > 3) continue;
      FAIL_CHECK(ir::name(row.op), " of ", x[i], " and ", y[i]);
    }
    CHECK(wrong == 0);
  }
}

TEST_CASE("exact: every operation on floats is, or has a bound") {
  const std::set<Op> exact = {
      Op::neg,     Op::abs,          Op::sign, Op::floor,    Op::ceil,
      Op::trunc,   Op::round,        Op::add,  Op::sub,      Op::mul,
      Op::div,     Op::floor_div,    Op::mod,  Op::copysign, Op::maximum,
      Op::minimum, Op::stop_gradient};
  for (Op op : rows) {
    if (!ir::admits(op, DType::F32)) continue;
    INFO(ir::name(op));
    CHECK(exact.contains(op) != has_bound(op));
  }
}

TEST_CASE("exact: sums, products and quotients are correctly rounded") {
  check_rounded<float, double>(DType::F32);
  check_rounded<double, __float128>(DType::F64);
}

TEST_CASE("exact: 16-bit floats are computed in f32, and rounded once") {
  constexpr int64_t n = 1 << 16;
  const int64_t stride[] = {1, 1};
  std::mt19937 random(3);
  std::vector<uint16_t> x(n), y(n);
  for (int64_t i = 0; i < n; ++i) {
    x[i] = static_cast<uint16_t>(i);  // every one
    y[i] = static_cast<uint16_t>(random());
  }
  for (DType dtype : {DType::F16, DType::BF16}) {
    std::vector<float> wide_x(n), wide_y(n), wide(n);
    const void* in[] = {x.data(), y.data()};
    cast_loop(dtype, DType::F32)(wide_x.data(), &in[0], stride, n, nullptr);
    cast_loop(dtype, DType::F32)(wide_y.data(), &in[1], stride, n, nullptr);
    for (Op op : rows) {
      if (!ir::admits(op, dtype)) continue;
      std::vector<uint16_t> have(n), want(n);
      element_loop(op, dtype)(have.data(), in, stride, n, nullptr);
      const void* wide_in[] = {wide_x.data(), wide_y.data()};
      element_loop(op, DType::F32)(wide.data(), wide_in, stride, n, nullptr);
      const void* result = wide.data();
      cast_loop(DType::F32, dtype)(want.data(), &result, stride, n, nullptr);
      INFO(ir::name(op), " of ", name(dtype));
      int wrong = 0;
      for (int64_t i = 0; i < n; ++i)
        wrong += have[i] != want[i] && !std::isnan(wide[i]);
      CHECK(wrong == 0);
    }
  }
}

}  // namespace
}  // namespace unisono::jit
