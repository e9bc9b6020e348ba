// Casts against exact arithmetic in long double: floats to integers saturate,
// everything to floats is rounded once.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <vector>

#include "jit/scalar/element.h"

namespace unisono::jit {
namespace {

template <DType D>
using Storage = typename StorageOf<D>::type;

template <DType From, DType To>
Storage<To> cast(Storage<From> x) {
  Storage<To> result;
  const void* in[] = {&x};
  const int64_t stride[] = {1};
  cast_loop(From, To)(&result, in, stride, 1, nullptr);
  return result;
}

/// All finite non-negative values of a 16-bit float, ascending, by its bits.
template <class Half>
std::vector<double> all_values(uint16_t infinity) {
  std::vector<double> values;
  for (uint32_t bits = 0; bits < infinity; ++bits) {
    Half half;
    half.bits = static_cast<uint16_t>(bits);
    values.push_back(static_cast<double>(static_cast<float>(half)));
  }
  return values;
}

/// The bits nearest to |x|, ties to even; past the last value infinity is one
/// step further.
uint16_t nearest(const std::vector<double>& values, long double x) {
  x = std::abs(x);
  const size_t last = values.size() - 1;
  auto above = std::lower_bound(values.begin(), values.end(), x);
  size_t high = static_cast<size_t>(above - values.begin());
  if (high == 0) return 0;
  const long double step = values[last] - values[last - 1];
  const long double upper = high > last
                                ? values[last] + step
                                : static_cast<long double>(values[high]);
  const long double lower = values[high - 1];
  if (x >= upper) return static_cast<uint16_t>(high);
  const long double up = upper - x, down = x - lower;
  if (up < down || (up == down && high % 2 == 0))
    return static_cast<uint16_t>(high);
  return static_cast<uint16_t>(high - 1);
}

/// Values at, next to, and around ties of the 16-bit float.
template <class T>
std::vector<T> near_ties(const std::vector<double>& values) {
  std::mt19937_64 random(11);
  std::vector<T> result;
  for (int i = 0; i < 3000; ++i) {
    const size_t k = random() % (values.size() - 1);
    const double tie = values[k] + (values[k + 1] - values[k]) / 2;
    for (double x : {tie, std::nextafter(tie, 0.0), std::nextafter(tie, 1e300),
                     values[k], tie * (1 + 0x1p-30), tie * (1 - 0x1p-30)}) {
      if constexpr (std::is_floating_point_v<T>) {
        result.push_back(static_cast<T>(i % 2 == 0 ? x : -x));
      } else if (std::abs(x) <
                 static_cast<double>(std::numeric_limits<T>::max())) {
        const T whole = static_cast<T>(x);
        result.insert(result.end(), {whole, static_cast<T>(whole + 1),
                                     static_cast<T>(whole - 1)});
      }
    }
    result.push_back(static_cast<T>(random() >> (random() % 64)));
  }
  return result;
}

template <DType From, DType To>
void check_sixteen_bits(uint16_t infinity) {
  using T = Storage<From>;
  const std::vector<double> values = all_values<Storage<To>>(infinity);
  int wrong = 0;
  for (T x : near_ties<T>(values)) {
    const long double exact = static_cast<long double>(x);
    const uint16_t sign = exact < 0 ? 0x8000 : 0;
    const uint16_t expected =
        static_cast<uint16_t>(nearest(values, exact) | sign);
    const uint16_t actual = cast<From, To>(x).bits;
    if (actual == expected || ++wrong > 3) continue;
    INFO(static_cast<double>(x));
    CHECK(actual == expected);
  }
  CHECK(wrong == 0);
}

template <DType From>
void check_sixteen_bits() {
  check_sixteen_bits<From, DType::F16>(0x7c00);
  check_sixteen_bits<From, DType::BF16>(0x7f80);
}

TEST_CASE("casts: to 16-bit floats round once") {
  check_sixteen_bits<DType::F32>();
  check_sixteen_bits<DType::F64>();
  check_sixteen_bits<DType::I32>();
  check_sixteen_bits<DType::U32>();
  check_sixteen_bits<DType::I64>();
  check_sixteen_bits<DType::U64>();
}

TEST_CASE("casts: 16-bit floats widen exactly and come back") {
  for (uint32_t bits = 0; bits < 0x10000; ++bits) {
    Half half;
    half.bits = static_cast<uint16_t>(bits);
    const double wide = cast<DType::F16, DType::F64>(half);
    const int exponent = bits >> 10 & 31, mantissa = bits & 1023;
    double expected = std::ldexp(exponent == 0 ? mantissa : mantissa + 1024,
                                 std::max(exponent, 1) - 25);
    if (exponent == 31) expected = mantissa == 0 ? INFINITY : NAN;
    if (bits & 0x8000) expected = -expected;
    if (std::isnan(expected)) {
      CHECK(std::isnan(wide));
    } else {
      CHECK(wide == expected);
      CHECK(cast<DType::F64, DType::F16>(wide).bits == bits);
    }
  }
}

template <DType From, DType To>
void check_saturation() {
  using F = Storage<From>;
  using L = std::numeric_limits<Storage<To>>;
  std::mt19937_64 random(13);
  std::vector<F> values = {0,
                           F(0.5),
                           F(-0.5),
                           F(-0.99),
                           F(1.5),
                           F(1e30),
                           F(-1e30),
                           std::numeric_limits<F>::infinity(),
                           -std::numeric_limits<F>::infinity(),
                           static_cast<F>(L::max()),
                           static_cast<F>(L::min())};
  for (int i = 0; i < 1000; ++i) {
    values.push_back(std::ldexp(static_cast<F>(random() % 1000) - 500,
                                static_cast<int>(random() % 70) - 5));
  }
  for (F edge : {static_cast<F>(L::max()), static_cast<F>(L::min())}) {
    values.push_back(std::nextafter(edge, F(0)));
    values.push_back(std::nextafter(edge, 2 * edge));
  }
  for (F x : values) {
    const long double whole = std::trunc(static_cast<long double>(x));
    Storage<To> expected = static_cast<Storage<To>>(0);
    if (whole >= static_cast<long double>(L::max()))
      expected = L::max();
    else if (whole <= static_cast<long double>(L::min()))
      expected = L::min();
    else
      expected = static_cast<Storage<To>>(whole);
    INFO(x);
    CHECK(+cast<From, To>(x) == +expected);
  }
  CHECK(+cast<From, To>(std::numeric_limits<F>::quiet_NaN()) == 0);
}

template <DType From>
void check_saturation() {
  check_saturation<From, DType::I8>();
  check_saturation<From, DType::U8>();
  check_saturation<From, DType::I16>();
  check_saturation<From, DType::U16>();
  check_saturation<From, DType::I32>();
  check_saturation<From, DType::U32>();
  check_saturation<From, DType::I64>();
  check_saturation<From, DType::U64>();
}

TEST_CASE("casts: floats to integers saturate") {
  check_saturation<DType::F32>();
  check_saturation<DType::F64>();
}

TEST_CASE("casts: to bool is != 0") {
  CHECK(cast<DType::F32, DType::Bool>(NAN) == 1);
  CHECK(cast<DType::F32, DType::Bool>(-0.0f) == 0);
  CHECK(cast<DType::F64, DType::Bool>(5e-324) == 1);
  CHECK(cast<DType::I8, DType::Bool>(-128) == 1);
  CHECK(cast<DType::Bool, DType::F64>(1) == 1.0);
  CHECK(cast<DType::Bool, DType::I32>(2) == 1);
}

}  // namespace
}  // namespace unisono::jit
