#pragma once
// The logarithm of the gamma function, and its derivatives.
#include <array>
#include <tuple>

#include "jit/scalar/exp.h"
#include "jit/scalar/log.h"
#include "jit/scalar/power.h"
#include "jit/scalar/trig.h"

namespace unisono::jit::inline UNISONO_INSTRUCTIONS::scalar {

/// log gamma(2 + d) / d for |d| <= 1/2.
template <DoubleValue V>
V log_gamma_core(V d) {
  return horner(
      d, V(0x1.3fa932309fc53p-22), V(-0x1.37b6c6dfc4896p-21),
      0x1.e32151df4797dp-21, -0x1.090e81e0352eep-19, 0x1.26d82045d2f33p-18,
      -0x1.3d4b19cdfe8d6p-17, 0x1.57fe0cd67d754p-16, -0x1.78d910c603d78p-15,
      0x1.a1282787ee64fp-14, -0x1.d3fd69d9be224p-13, 0x1.0b36ae819680ap-11,
      -0x1.38ac5bfe58877p-10, 0x1.7add6eb02219p-9, -0x1.e404fc21d6157p-8,
      0x1.51322ac7d6f96p-6, -0x1.13e001a55755ep-4, 0x1.4a34cc4a60fa8p-2,
      0x1.b0ee6072093cep-2);
}

/// log gamma(y) for y >= 0: near 2 by the core; below 8 by a product that leads
/// there; from 8 on by Stirling's series. One logarithm serves all.
template <DoubleValue V>
V log_gamma_positive(V y) {
  V d = y - 2.0;
  V factor = V(1.0) + (y - y);
  for (int step = 1; step <= 6; ++step) {
    auto above = y >= step + 1.5;
    factor = select(above, factor * (y - static_cast<double>(step)), factor);
    d = select(above, y - (step + 2.0), d);
  }
  auto low = y < 1.5, lowest = y < 0.5, high = y >= 8.0;
  factor = select(low, y, select(high, y, factor));
  d = select(low, y - 1.0, d);
  factor = select(lowest, fma(y, y, y), factor);
  d = select(lowest, y, d);
  d = select(high, 0.0, d);
  V logarithm = log(factor);
  V core = d * log_gamma_core(d);
  V near = select(low, core - logarithm, core + logarithm);
  V inverse = 1.0 / y;
  V series = horner(inverse * inverse, V(-0x1.a5c71dc327fd8p-10),
                    V(0x1.b5f263314edbep-11), -0x1.380a56d52f1b4p-11,
                    0x1.a019f4babf757p-11, -0x1.6c16c169f2344p-9,
                    0x1.5555555555516p-4);
  // (y - 1/2) log y - y + log(2 pi) / 2.
  V far =
      fma(y - 0.5, logarithm - 1.0, fma(series, inverse, 0x1.acfe390c97d69p-2));
  return select(high, far, near);
}

/// |sin(pi x)| and |cos(pi x)|.
template <DoubleValue V>
struct HalfTurns {
  V sine;
  V cosine;
};
template <DoubleValue V>
HalfTurns<V> half_turns(V x) {
  V r = abs(x - rint(x));
  auto steep = r > 0.25;
  V turns = select(steep, 0.5 - r, r);
  V high = turns * 0x1.921fb54442d18p1;
  V low = fma(turns, 0x1.921fb54442d18p1, -high);
  Quarter<V> angle = {high, fma(turns, 0x1.1a62633145c07p-53, low),
                      bits_of(high)};
  V sine = quarter_sin(angle), cosine = quarter_cos(angle);
  return {select(steep, cosine, sine), select(steep, sine, cosine)};
}

/// log |gamma(x)|; infinite at 0 and the negative integers. The error is
/// relative for x > 0, and absolute around the zeros between negative integers.
template <DoubleValue V>
V lgamma(V x) {
  auto negative = x < 0.0;
  V y = log_gamma_positive(select(negative, 1.0 - x, x));
  // gamma(x) gamma(1 - x) = pi / sin(pi x), and 1 / |x| for tiny x.
  V size = abs(x);
  auto tiny = size < 0x1p-60;
  V sine = select(tiny, size, half_turns(x).sine);
  V log_pi = select(tiny, 0.0, V(0x1.250d048e7a1bdp0));
  V mirrored = log_pi - log(sine) - y;
  mirrored = select(sine == 0.0, infinity<V>, mirrored);
  return select(is_inf(x), infinity<V>, select(negative, mirrored, y));
}

// Asymptotic series: Abramowitz and Stegun, 6.3.18 and 6.4.12; the reflections
// are 6.3.7 and 6.4.7. Coefficients are fits on 0 <= 1/y^2 <= 1/64.

/// digamma(y) for 1 <= y <= 2: the zero's distance times a polynomial, so that
/// the error is relative there, too.
template <DoubleValue V>
V digamma_core(V y) {
  V p = horner(
      y - 1.5, V(-0x1.6b107f71aa124p-13), V(0x1.104c9d0897b58p-12),
      -0x1.3db05b36d9a48p-13, 0x1.dc8ae08af0fc4p-13, -0x1.f99f529bd0771p-12,
      0x1.7b3b41b0b38cdp-11, -0x1.1002aaf6255f5p-10, 0x1.980fc9c9f0be8p-10,
      -0x1.33661f9073563p-9, 0x1.cd3e42d157015p-9, -0x1.5a071c746535bp-8,
      0x1.03c00801ba958p-7, -0x1.86355f6f68797p-7, 0x1.256475e5ac975p-6,
      -0x1.b9f8b1367959dp-6, 0x1.4de9aa05d3418p-5, -0x1.fb442029cdbf4p-5,
      0x1.8512e5905d18p-4, -0x1.2feeeb98a7cd8p-3, 0x1.eca189b8e6da1p-3,
      -0x1.b1cb63005ee97p-2, 0x1.e6f0cbb873617p-1);
  return ((y - 0x1.762d86356be3fp0) - 0x1.b86a722197829p-54) * p;
}

/// digamma(y) for y >= 0: below 8 by a sum of reciprocals, as one quotient,
/// that leads to [1, 2]; from 8 on by the asymptotic series.
template <DoubleValue V>
V digamma_positive(V y) {
  V near = y;
  V numerator = y - y, denominator = numerator + 1.0;
  for (int step = 1; step <= 6; ++step) {
    auto above = y >= step + 1.0;
    V factor = y - static_cast<double>(step);
    numerator = select(above, fma(numerator, factor, denominator), numerator);
    denominator = select(above, denominator * factor, denominator);
    near = select(above, factor, near);
  }
  auto low = y < 1.0, high = y >= 8.0;
  near = select(low, y + 1.0, near);
  numerator = select(low, -1.0, select(high, 1.0, numerator));
  denominator = select(low | high, y, denominator);
  V quotient = numerator / denominator;
  V series = horner(quotient * quotient, V(0x1.0497fbf0fa8abp-4),
                    V(-0x1.531da6b6dedbfp-6), 0x1.f037df4b69ba2p-8,
                    -0x1.1110b33fc17d6p-8, 0x1.041040c62923cp-8,
                    -0x1.11111111095e6p-7, 0x1.5555555555555p-4);
  V far = log(y) - quotient * fma(quotient, series, 0.5);
  return select(high, far, digamma_core(near) + quotient);
}

/// The derivative of lgamma; NaN at the negative integers, infinite at 0. As
/// lgamma's, the error is absolute around the zeros between negative integers.
template <DoubleValue V>
V digamma(V x) {
  auto negative = x < 0.0;
  V y = digamma_positive(select(negative, 1.0 - x, x));
  // digamma(1 - x) - digamma(x) = pi / tan(pi x).
  auto [sine, cosine] = half_turns(x);
  V cotangent = copysign(cosine / sine, x - rint(x));
  V mirrored = fma(cotangent, -0x1.921fb54442d18p1, y);
  mirrored = select(sine == 0.0, not_a_number<V>, mirrored);
  return select(negative, mirrored, y);
}

/// trigamma(y) for y >= 0: below 8 the first eight terms of the sum of
/// 1 / (y + k)^2, seven of them as one quotient; then the asymptotic series.
template <DoubleValue V>
V trigamma_positive(V y) {
  auto near = y < 8.0;
  V numerator = y - y, denominator = numerator + 1.0;
  for (int k = 1; k <= 7; ++k) {
    V root = y + static_cast<double>(k);
    V square = root * root;
    numerator = fma(numerator, square, denominator);
    denominator = denominator * square;
  }
  V inverse = 1.0 / select(near, y + 8.0, y);
  V square = inverse * inverse;
  V series =
      horner(square, V(0x1.b7a5f47721ecbp-1), V(-0x1.f9d9c7216c73ap-3),
             0x1.360bc3ac05fb3p-4, -0x1.11105c888595ep-5, 0x1.86186098270b1p-6,
             -0x1.11111110f37eep-5, 0x1.5555555555551p-3);
  V far = fma(square, fma(series, inverse, 0.5), inverse);
  V first = 1.0 / (y * y);
  return select(near, far + numerator / denominator + first, far);
}

/// The derivative of digamma; infinite at 0 and the negative integers.
template <DoubleValue V>
V trigamma(V x) {
  auto negative = x < 0.0;
  V y = trigamma_positive(select(negative, 1.0 - x, x));
  // trigamma(x) + trigamma(1 - x) = (pi / sin(pi x))^2.
  V root = V(0x1.921fb54442d18p1) / half_turns(x).sine;
  return select(negative, fma(root, root, -y), y);
}

/// n!, as doubles that are exact.
inline constexpr auto exact_factorials = [] {
  std::array<double, 23> values{};
  values[0] = 1;
  for (size_t n = 1; n < values.size(); ++n)
    values[n] = static_cast<double>(n) * values[n - 1];
  return values;
}();

/// n! times the sum of 1 / (y + k)^(n + 1) over k >= 0, for y >= 0, n >= 1:
/// eight terms by themselves, the rest by the Euler-Maclaurin formula (NIST
/// Handbook, 25.11.5), all as multiples of 1 / y^n.
template <DoubleValue V>
V polygamma_size(V n, V y) {
  const V s = n + 1.0, one = (n - n) + 1.0;
  auto [terms, next] = iterate(
      std::tuple(one, one), [](auto state) { return std::get<1>(state) < 8.0; },
      [&](auto state) {
        auto [sum, k] = state;
        return std::tuple(sum + pow(y / (y + k), s), k + 1.0);
      });
  // B(2j) / (2j)!, the last first.
  constexpr double bernoulli[] = {-174611.0 / 802857662698291200000.0,
                                  43867.0 / 5109094217170944000.0,
                                  -3617.0 / 10670622842880000.0,
                                  1.0 / 74724249600.0,
                                  -691.0 / 1307674368000.0,
                                  1.0 / 47900160.0,
                                  -1.0 / 1209600.0,
                                  1.0 / 30240.0,
                                  -1.0 / 720.0,
                                  1.0 / 12.0};
  const V from = y + 8.0, inverse = 1.0 / from;
  V series = V(0.0);
  for (int j = 10; j >= 1; --j) {
    V factor = (s + (2.0 * j - 1)) * inverse * ((s + 2.0 * j) * inverse);
    series = fma(series, factor, V(bernoulli[10 - j]));
  }
  series = fma(series * inverse, s * inverse, fma(inverse, 0.5, 1.0 / n));
  const V weight = pow(y / from, n);
  const V rest = select(weight == 0.0, 0.0, weight * series);
  auto small = n <= 22.0;
  const V factorial =
      lookup(exact_factorials, convert<int32_t>(select(small, n, 0.0)));
  const V lead = select(small, factorial * pow(y, -n),
                        exp(log_gamma_positive(s) - n * log(y)));
  return select(y == infinity<V>, 0.0, lead * (terms / y + rest));
}

/// The functions that follow trigamma.
struct HigherPolygamma {
  static constexpr const char* name = "polygamma";
  template <DoubleValue V>
  std::tuple<V> operator()(V n, V x) const {
    // All lattice points x + k, k of any sign, less those below x; what the
    // lattice gives depends on the distance to the nearest integer alone.
    auto negative = x < 0.0;
    auto even = rint(n * 0.5) * 2.0 == n;
    const V turn = x - rint(x), distance = abs(turn);
    const V flip = select(even, -1.0, V(1.0));
    const V side = select(turn < 0.0, flip, 1.0);
    const V last = select(negative, 2.0, V(0.0)), zero = n - n;
    auto [size, step] = iterate(
        std::tuple(zero, zero),
        [&](auto state) { return std::get<1>(state) <= last; },
        [&](auto state) {
          auto [sum, i] = state;
          V y = select(negative, distance, abs(x)), sign = V(1.0);
          sign = select(negative, side, sign);
          y = select(i == 1.0, 1.0 - distance, y);
          sign = select(i == 1.0, side * flip, sign);
          y = select(i == 2.0, 1.0 - x, y);
          sign = select(i == 2.0, -flip, sign);
          return std::tuple(fma(sign, polygamma_size(n, y), sum), i + 1.0);
        });
    const V result = flip * size;
    return {select(negative & even & (turn == 0.0), not_a_number<V>, result)};
  }
};

/// Derivative number n of digamma; NaN where n is no integer from 0 on. At 0
/// and the negative integers as digamma for even n, as trigamma for odd. Its
/// error is relative for x > 0 and n <= 22, and grows with n log n beyond.
template <DoubleValue V>
V polygamma(V n, V x) {
  auto order = (n >= 2.0) & (n <= 0x1p53) & (trunc(n) == n);
  V low = select(n == 0.0, digamma(x),
                 select(n == 1.0, trigamma(x), not_a_number<V>));
  return std::get<0>(rare<HigherPolygamma>(order, std::tuple(low), n, x));
}

}  // namespace unisono::jit::inline UNISONO_INSTRUCTIONS::scalar
