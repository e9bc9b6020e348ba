// The error of every elementary function, in units in the last place: float
// against the C library's double, double against its long double.
#include <doctest/doctest.h>

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

/// By Halley's iteration, on erfc where erf is near 1.
template <class W>
W inverse_of_erf(W x) {
  if (x == 0 || std::isnan(x)) return x;
  const W a = std::abs(x);
  if (a > 1) return std::numeric_limits<W>::quiet_NaN();
  if (a == 1) return std::copysign(std::numeric_limits<W>::infinity(), x);
  const W root_of_pi = std::sqrt(std::acos(W(-1)));
  if (a < W(1e-15)) return x * root_of_pi / 2;
  // The start: S. Winitzki's approximation.
  const W l = std::log1p(-a * a), b = 2 / (W(0.147) * std::acos(W(-1))) + l / 2;
  W y = std::sqrt(std::sqrt(b * b - l / W(0.147)) - b);
  for (int i = 0; i < 6; ++i) {
    const W off = a < W(0.5) ? std::erf(y) - a : (1 - a) - std::erfc(y);
    const W step = off * root_of_pi / 2 * std::exp(y * y);
    y -= step / (1 + y * step);
  }
  return std::copysign(y, x);
}

/// Terms of digamma's series: B(2n) / 2n.
template <class W>
constexpr W digamma_terms[] = {
    W(1) / 12,        W(-1) / 120,      W(1) / 252, W(-1) / 240,
    W(5) / 660,       W(-691) / 32760,  W(1) / 12,  W(-3617) / 8160,
    W(43867) / 14364, W(-174611) / 6600};
/// log(y) - digamma(y) - 1 / 2y for y >= 20.
template <class W>
W digamma_rest(W y) {
  W sum = 0, power = 1;
  for (W term : digamma_terms<W>) sum += term * (power /= y * y);
  return sum;
}

/// As digamma(x) - digamma(zero), which loses nothing near that zero; negative
/// x by reflection.
template <class W>
W digamma_of(W x) {
  if (x == 0) return std::copysign(std::numeric_limits<W>::infinity(), -x);
  if (x < 0) {
    const W pi = std::acos(W(-1)), r = x - std::rint(x);
    if (!(r != 0)) return std::numeric_limits<W>::quiet_NaN();
    return digamma_of(1 - x) - pi / std::tan(pi * r);
  }
  if (x > 1000) return std::log(x) - 1 / (2 * x) - digamma_rest(x);
  const W zero = 1.46163214496836234126265954233L, d = x - zero;
  W sum = 0;
  for (int k = 0; k < 20; ++k) sum += d / ((zero + k) * (x + k));
  const W a = zero + 20, b = x + 20;
  return sum + std::log1p(d / a) + d / (2 * a * b) +
         (digamma_rest(a) - digamma_rest(b));
}

template <class W>
W trigamma_of(W x) {
  if (x <= 0) {
    const W pi = std::acos(W(-1)), r = x - std::rint(x);
    if (r == 0) return std::numeric_limits<W>::infinity();
    const W root = pi / std::sin(pi * r);
    return root * root - trigamma_of(1 - x);
  }
  W sum = 0;
  W y = x;
  for (; y < 20; ++y) sum += 1 / y / y;
  W series = 0, power = 1 / y;
  for (int n = 1; n <= 10; ++n)
    series += digamma_terms<W>[n - 1] * 2 * n * (power /= y * y);
  return 1 / y + 1 / y / y / 2 + series + sum;
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

/// Their error in double is absolute there.
bool has_zeros_below_0(ir::Op op) {
  return op == ir::Op::lgamma || op == ir::Op::digamma;
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
  BOTH(name, f32, f64, reference, has_zeros_below_0(ir::Op::name))
#define ACCURACY2(name, f32, f64, reference) \
  BOTH(name, f32, f64, reference, false)
#include "tests/unit/jit/element/accuracy.def"
};

TEST_CASE("accuracy: every elementary function keeps its bound") {
  for (const Row& row : rows) {
    const Worst single = row.f32(size_t{1} << 19);
    INFO(row.name, " of f32 ", single.x, " ", single.y);
    CHECK(single.error <= row.bound_f32);
    const Worst twice = row.f64(size_t{1} << 16);
    INFO(row.name, " of f64 ", twice.x, " ", twice.y);
    CHECK(twice.error <= row.bound_f64);
  }
}

void check_below_0(ir::Op op, long double (*reference)(long double),
                   double bound) {
  std::mt19937_64 random(7);
  std::uniform_real_distribution<double> near(-30, 0);
  for (int i = 0; i < 100'000; ++i) {
    const double x = near(random) * (i % 10 == 0 ? 1e3 : 1);
    double actual;
    const void* in[] = {&x};
    const int64_t stride[] = {1};
    element_loop(op, DType::F64)(&actual, in, stride, 1, nullptr);
    const auto expected = static_cast<double>(reference(x));
    INFO(x);
    CHECK(std::abs(actual - expected) <=
          bound * std::max(1.0, std::abs(expected)));
  }
}

TEST_CASE(
    "accuracy: of negative doubles lgamma, digamma are absolutely right") {
  check_below_0(ir::Op::lgamma, log_gamma<long double>, 2e-15);
  check_below_0(ir::Op::digamma, digamma_of<long double>, 4e-15);
}

/// y to the power -n, by squares: a twentieth of the time of powl.
long double inverse_power(long double y, int n) {
  long double power = 1;
  for (long double square = y; n > 0; n /= 2, square *= square)
    if (n % 2 == 1) power *= square;
  return 1 / power;
}

/// polygamma for n from 1 on: 200 terms of the sum, then the Euler-Maclaurin
/// formula; of negative x by as many steps up.
long double polygamma_of(int n, long double x) {
  using W = long double;
  W sum = 0;
  W y = x;
  for (; y < 0; ++y) sum += inverse_power(y, n + 1);
  for (int k = 0; k < 200; ++k, ++y) sum += inverse_power(y, n + 1);
  sum += inverse_power(y, n) / n + inverse_power(y, n + 1) / 2 +
         (n + 1) * inverse_power(y, n + 2) / 12 -
         W(n + 1) * (n + 2) * (n + 3) * inverse_power(y, n + 4) / 720;
  return (n % 2 == 0 ? -1 : 1) * std::tgamma(W(n + 1)) * sum;
}

TEST_CASE("accuracy: polygamma") {
  std::mt19937_64 random(7);
  std::uniform_real_distribution<double> positive(0.05, 40), negative(-12, 0);
  const auto computed = [](double n, double x) {
    double actual;
    const void* in[] = {&n, &x};
    const int64_t stride[] = {1, 1};
    element_loop(ir::Op::polygamma, DType::F64)(&actual, in, stride, 1,
                                                nullptr);
    return actual;
  };
  for (const int n : {1, 2, 3, 4, 5, 8, 12, 22, 23, 40, 100}) {
    double worst = 0, worst_below = 0;
    for (int i = 0; i < 3000; ++i) {
      const double x = positive(random);
      const auto expected = polygamma_of(n, x);
      INFO(n, " ", x);
      worst = std::max(worst, static_cast<double>(std::abs(
                                  (computed(n, x) - expected) / expected)));
      const double below = negative(random);
      if (std::abs(below - std::rint(below)) < 0.05) continue;
      const auto mirrored = polygamma_of(n, below);
      // Beside the terms, as their sum may be 0.
      const double r = std::abs(below - std::rint(below));
      worst_below = std::max(
          worst_below,
          static_cast<double>(std::abs(computed(n, below) - mirrored) /
                              (polygamma_of(n, r) * (n % 2 == 0 ? -1 : 1))));
    }
    INFO("n = ", n, ": ", worst, ", below 0 ", worst_below);
    CHECK(worst < (n <= 22 ? 2e-15 + n * 2e-16 : 2e-15 * n));
    CHECK(worst_below < (n <= 22 ? 4e-15 + n * 4e-16 : 4e-15 * n));
  }
  const double inf = std::numeric_limits<double>::infinity();
  CHECK(computed(0, 2.5) == doctest::Approx(0.7031566406452432));
  for (const double n : {-1.0, 0.5, inf, -inf, std::nan("")})
    CHECK(std::isnan(computed(n, 1.5)));
  CHECK(computed(2, 0) == -inf);
  CHECK(computed(3, 0) == inf);
  CHECK(std::isnan(computed(2, -3)));
  CHECK(computed(3, -3) == inf);
  CHECK(computed(2, inf) == 0);
  CHECK(std::isnan(computed(2, std::nan(""))));
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
