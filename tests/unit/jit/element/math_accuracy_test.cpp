// The error of every elementary function, in units in the last place: float
// against the C library's double, double against its long double.
#include <doctest/doctest.h>
#include <math.h>

#include <bit>
#include <cmath>
#include <cstdio>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "jit/ir/kinds.h"
#include "jit/scalar/element.h"

namespace unisono::jit {
namespace {

template <class T>
struct Wide;
template <>
struct Wide<float> {
  using type = double;
  using Bits = uint32_t;
  static constexpr DType dtype = DType::F32;
};
template <>
struct Wide<double> {
  using type = long double;
  using Bits = uint64_t;
  static constexpr DType dtype = DType::F64;
};

/// The C library's lgamma without its global sign; a pole is infinite.
template <class W>
W log_gamma(W x) {
  int sign;
  if (x <= 0 && std::floor(x) == x) return std::numeric_limits<W>::infinity();
  if constexpr (std::is_same_v<W, double>)
    return lgamma_r(x, &sign);
  else
    return lgammal_r(x, &sign);
}

/// |actual - expected| in units in the last place of T near `expected`, below
/// the subnormals' in theirs. Beyond the largest finite number, infinity counts
/// as the next one.
template <class T, class W = typename Wide<T>::type>
double ulps(T actual, W expected) {
  using L = std::numeric_limits<T>;
  constexpr double wrong = 1e30;
  if (std::isnan(expected)) return std::isnan(actual) ? 0 : wrong;
  if (std::isnan(actual)) return wrong;
  const W limit = std::ldexp(W(1), L::max_exponent);
  if (std::isinf(expected)) return actual == expected ? 0 : wrong;
  if (actual == 0 && std::signbit(actual) != std::signbit(expected))
    return wrong;
  const W a = std::isinf(actual) ? std::copysign(limit, W(actual)) : W(actual);
  const W e =
      std::abs(expected) > limit ? std::copysign(limit, expected) : expected;
  if (e == 0) return a == 0 ? 0 : wrong;
  int exponent;
  std::frexp(e, &exponent);
  exponent = std::max(std::min(exponent, L::max_exponent) - L::digits,
                      L::min_exponent - L::digits);
  return static_cast<double>(std::abs(a - e) / std::ldexp(W(1), exponent));
}

template <class T>
const std::vector<T>& special_operands() {
  using L = std::numeric_limits<T>;
  static const std::vector<T> values = [] {
    std::vector<T> v = {0,
                        T(0.5),
                        1,
                        2,
                        3,
                        L::infinity(),
                        L::max(),
                        L::min(),
                        L::denorm_min(),
                        T(1e10),
                        T(1e10) + 1024,
                        L::quiet_NaN(),
                        L::epsilon()};
    for (size_t i = 0, n = v.size(); i < n; ++i) v.push_back(-v[i]);
    return v;
  }();
  return values;
}

/// A third of the samples spread over all bit patterns, a third over moderate
/// magnitudes, a third over the row's domain; special values first.
template <class T>
std::vector<T> samples(ir::Op op, size_t n, std::mt19937_64& random) {
  using Bits = typename Wide<T>::Bits;
  const auto [low, high] = ir::row(op).domain;
  std::uniform_real_distribution<double> inside(low, high);
  std::uniform_real_distribution<double> exponent(-12, 12);
  std::vector<T> values = special_operands<T>();
  const Bits stride = static_cast<Bits>(~Bits{0} / (n / 3));
  Bits pattern = 0;
  while (values.size() < n) {
    pattern += stride;
    values.push_back(std::bit_cast<T>(pattern ^ Bits(random() % stride)));
    values.push_back(
        static_cast<T>(std::exp2(exponent(random)) * (random() & 1 ? 1 : -1)));
    values.push_back(static_cast<T>(inside(random)));
  }
  return values;
}

struct Worst {
  double error = 0;
  double x = 0, y = 0;
};

template <class T, class Reference>
Worst measure(ir::Op op, size_t n, Reference reference, bool positive) {
  using W = typename Wide<T>::type;
  std::mt19937_64 random(7);
  std::vector<T> x = samples<T>(op, n, random), y = samples<T>(op, n, random);
  const size_t s = special_operands<T>().size();
  // Second operands: every special value against every other, then shuffled.
  std::shuffle(y.begin() + static_cast<ptrdiff_t>(s), y.end(), random);
  for (size_t i = 0; i < s * s && i < y.size(); ++i) {
    x[i] = special_operands<T>()[i % s];
    y[i] = special_operands<T>()[i / s];
  }
  if (positive)
    for (T& v : x) v = std::abs(v);
  std::vector<T> actual(x.size());
  const void* in[] = {x.data(), y.data()};
  const int64_t stride[] = {1, 1};
  element_loop(op, Wide<T>::dtype)(actual.data(), in, stride,
                                   static_cast<int64_t>(x.size()), nullptr);
  Worst worst;
  for (size_t i = 0; i < x.size(); ++i) {
    const double error = ulps(actual[i], reference(W(x[i]), W(y[i])));
    if (!(error <= worst.error)) worst = {error, x[i], y[i]};
  }
  return worst;
}

struct Row {
  const char* name;
  double bound_f32, bound_f64;
  Worst (*f32)(size_t);
  Worst (*f64)(size_t);
};

#define REFERENCE [](auto x, [[maybe_unused]] auto y)
#define BOTH(name, bound32, bound64, reference, positive)             \
  {#name, bound32, bound64,                                           \
   [](size_t n) {                                                     \
     return measure<float>(                                           \
         ir::Op::name, n, REFERENCE { return reference; }, false);    \
   },                                                                 \
   [](size_t n) {                                                     \
     return measure<double>(                                          \
         ir::Op::name, n, REFERENCE { return reference; }, positive); \
   }},
const Row rows[] = {
#define ACCURACY(name, f32, f64, reference) \
  BOTH(name, f32, f64, reference, ir::Op::name == ir::Op::lgamma)
#define ACCURACY2(name, f32, f64, reference) \
  BOTH(name, f32, f64, reference, false)
#include "tests/unit/jit/element/accuracy.def"
};

TEST_CASE("accuracy: every elementary function keeps its bound") {
  for (const Row& row : rows) {
    const Worst single = row.f32(size_t{1} << 20);
    INFO(row.name, " of f32 ", single.x, " ", single.y);
    CHECK(single.error <= row.bound_f32);
    const Worst twice = row.f64(size_t{1} << 17);
    INFO(row.name, " of f64 ", twice.x, " ", twice.y);
    CHECK(twice.error <= row.bound_f64);
  }
}

TEST_CASE("accuracy: lgamma of negative doubles is absolutely right") {
  std::mt19937_64 random(7);
  std::uniform_real_distribution<double> near(-30, 0);
  for (int i = 0; i < 100'000; ++i) {
    const double x = near(random) * (i % 10 == 0 ? 1e3 : 1);
    double actual;
    const void* in[] = {&x};
    const int64_t stride[] = {1};
    element_loop(ir::Op::lgamma, DType::F64)(&actual, in, stride, 1, nullptr);
    const double expected =
        static_cast<double>(log_gamma(static_cast<long double>(x)));
    INFO(x);
    CHECK(std::abs(actual - expected) <=
          2e-15 * std::max(1.0, std::abs(expected)));
  }
}

TEST_CASE("accuracy: the table of docs/accuracy.md" * doctest::skip()) {
  std::printf("| function | f32: bound | measured | f64: bound | measured |\n");
  std::printf("|---|---|---|---|---|\n");
  for (const Row& row : rows) {
    std::printf("| %s | %.1f | %.2f | %.1f | %.2f |\n", row.name, row.bound_f32,
                row.f32(size_t{1} << 24).error, row.bound_f64,
                row.f64(size_t{1} << 21).error);
  }
}

// ---- remainders, which are exact
// ------------------------------------------------

/// NumPy's divmod of floats, by the C library's exact fmod.
template <class T>
std::pair<T, T> floor_divide(T x, T y) {
  T mod = std::fmod(x, y);
  if (y == 0) return {x / y, mod};
  T quotient = (x - mod) / y;
  if (mod != 0) {
    if ((y < 0) != (mod < 0)) {
      mod += y;
      quotient -= 1;
    }
  } else {
    mod = std::copysign(T(0), y);
  }
  if (quotient == 0) return {std::copysign(T(0), x / y), mod};
  T down = std::floor(quotient);
  if (quotient - down > T(0.5)) down += 1;
  return {down, mod};
}

template <class T>
void check_remainders() {
  std::mt19937_64 random(3);
  std::vector<T> x = samples<T>(ir::Op::mod, 1 << 17, random);
  std::vector<T> y = samples<T>(ir::Op::mod, 1 << 17, random);
  std::shuffle(y.begin(), y.end(), random);
  const size_t s = special_operands<T>().size();
  for (size_t i = 0; i < s * s; ++i) {
    x[i] = special_operands<T>()[i % s];
    y[i] = special_operands<T>()[i / s];
  }
  std::vector<T> quotient(x.size()), mod(x.size());
  const void* in[] = {x.data(), y.data()};
  const int64_t stride[] = {1, 1}, n = static_cast<int64_t>(x.size());
  element_loop(ir::Op::floor_div, Wide<T>::dtype)(quotient.data(), in, stride,
                                                  n, nullptr);
  element_loop(ir::Op::mod, Wide<T>::dtype)(mod.data(), in, stride, n, nullptr);
  auto same = [](T a, T b) {
    return (std::isnan(a) && std::isnan(b)) ||
           (a == b && std::signbit(a) == std::signbit(b));
  };
  int wrong = 0;
  for (size_t i = 0; i < x.size() && wrong < 5; ++i) {
    const auto [q, m] = floor_divide(x[i], y[i]);
    if (same(q, quotient[i]) && same(m, mod[i])) continue;
    ++wrong;
    INFO(x[i], " by ", y[i], ": ", quotient[i], " ", mod[i]);
    CHECK(quotient[i] == q);
    CHECK(mod[i] == m);
  }
  CHECK(wrong == 0);
}

TEST_CASE("accuracy: floor division and remainder are NumPy's") {
  check_remainders<float>();
  check_remainders<double>();
}

}  // namespace
}  // namespace unisono::jit
