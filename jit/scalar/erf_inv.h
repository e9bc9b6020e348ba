#pragma once
// The inverse of the error function: x P(w) with w = -log(1 - x^2), by the
// polynomials of M. Giles, "Approximating the erfinv function" (GPU Computing
// Gems, Jade edition, 2012), whose relative error is 4e-7 in float and 3e-16 in
// double.
#include <tuple>

#include "jit/scalar/log.h"

namespace unisono::jit::inline UNISONO_INSTRUCTIONS::scalar {

/// erf_inv(x) / x, from w.
template <SingleValue V>
V erf_inv_ratio(V w) {
  V d = w - 2.5f;
  V middle = horner(d, V(2.81022636e-08f), V(3.43273939e-07f), -3.5233877e-06f,
                    -4.39150654e-06f, 0.00021858087f, -0.00125372503f,
                    -0.00417768164f, 0.246640727f, 1.50140941f);
  V t = sqrt(w) - 3.0f;
  V tail = horner(t, V(-0.000200214257f), V(0.000100950558f), 0.00134934322f,
                  -0.00367342844f, 0.00573950773f, -0.0076224613f,
                  0.00943887047f, 1.00167406f, 2.83297682f);
  return select(w < 5.0f, middle, tail);
}

/// The tails in double, |x| > 0.999: of uniform numbers one in a thousand.
struct ErfInvTail {
  static constexpr const char* name = "erf_inv_tail";
  template <DoubleValue V>
  std::tuple<V> operator()(V w) const {
    V root = sqrt(w);
    V s = root - 3.25;
    V near = horner(s, V(2.2137376921775787049e-09),
                    V(9.0756561938885390979e-08), -2.7517406297064545428e-07,
                    1.8239629214389227755e-08, 1.5027403968909827627e-06,
                    -4.013867526981545969e-06, 2.9234449089955446044e-06,
                    1.2475304481671778723e-05, -4.7318229009055733981e-05,
                    6.8284851459573175448e-05, 2.4031110387097893999e-05,
                    -0.0003550375203628474796, 0.00095328937973738049703,
                    -0.0016882755560235047313, 0.0024914420961078508066,
                    -0.0037512085075692412107, 0.005370914553590063617,
                    1.0052589676941592334, 3.0838856104922207635);
    V t = root - 5.0;
    V far = horner(t, V(-2.7109920616438573243e-11),
                   V(-2.5556418169965252055e-10), 1.5076572693500548083e-09,
                   -3.7894654401267369937e-09, 7.6157012080783393804e-09,
                   -1.4960026627149240478e-08, 2.9147953450901080826e-08,
                   -6.7711997758452339498e-08, 2.2900482228026654717e-07,
                   -9.9298272942317002539e-07, 4.5260625972231537039e-06,
                   -1.9681778105531670567e-05, 7.5995277030017761139e-05,
                   -0.00021503011930044477347, -0.00013871931833623122026,
                   1.0103004648645343977, 4.8499064014085844221);
    return select(w < 16.0, near, far);
  }
};

template <DoubleValue V>
V erf_inv_ratio(V w) {
  V d = w - 3.125;
  V middle = horner(d, V(-3.6444120640178196996e-21),
                    V(-1.685059138182016589e-19), 1.2858480715256400167e-18,
                    1.115787767802518096e-17, -1.333171662854620906e-16,
                    2.0972767875968561637e-17, 6.6376381343583238325e-15,
                    -4.0545662729752068639e-14, -8.1519341976054721522e-14,
                    2.6335093153082322977e-12, -1.2975133253453532498e-11,
                    -5.4154120542946279317e-11, 1.051212273321532285e-09,
                    -4.1126339803469836976e-09, -2.9070369957882005086e-08,
                    4.2347877827932403518e-07, -1.3654692000834678645e-06,
                    -1.3882523362786468719e-05, 0.0001867342080340571352,
                    -0.00074070253416626697512, -0.0060336708714301490533,
                    0.24015818242558961693, 1.6536545626831027356);
  return std::get<0>(rare<ErfInvTail>(w >= 6.25, std::tuple(middle), w));
}

/// Infinite at -1 and 1, NaN beyond.
template <FloatValue V>
V erf_inv(V x) {
  constexpr ElementOf<V> one = 1;
  // Rounded once, so that nothing is lost where x is near 1.
  V w = -log(fma(-x, x, one));
  V y = erf_inv_ratio(w) * x;
  return select(abs(x) == one, copysign(infinity<V>, x), y);
}

}  // namespace unisono::jit::inline UNISONO_INSTRUCTIONS::scalar
