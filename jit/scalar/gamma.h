#pragma once
// The logarithm of the gamma function.
#include "jit/scalar/log.h"
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

/// |sin(pi x)|.
template <DoubleValue V>
V sine_of_half_turns(V x) {
  V r = abs(x - rint(x));
  auto steep = r > 0.25;
  V turns = select(steep, 0.5 - r, r);
  V high = turns * 0x1.921fb54442d18p1;
  V low = fma(turns, 0x1.921fb54442d18p1, -high);
  Quarter<V> angle = {high, fma(turns, 0x1.1a62633145c07p-53, low),
                      bits_of(high)};
  return select(steep, quarter_cos(angle), quarter_sin(angle));
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
  V sine = select(tiny, size, sine_of_half_turns(x));
  V log_pi = select(tiny, 0.0, V(0x1.250d048e7a1bdp0));
  V mirrored = log_pi - log(sine) - y;
  mirrored = select(sine == 0.0, infinity<V>, mirrored);
  return select(is_inf(x), infinity<V>, select(negative, mirrored, y));
}

}  // namespace unisono::jit::inline UNISONO_INSTRUCTIONS::scalar
