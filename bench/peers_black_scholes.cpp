// A file of its own: -ffast-math and libmvec are for this peer alone.
#include <cmath>

#include "bench/peers.h"

namespace peers {
namespace {

float normal_cdf(float x) {
  const float a = std::fabs(x), k = 1.0f / (1.0f + 0.2316419f * a);
  const float w = std::exp(-0.5f * a * a) * 0.39894228f;
  float p = 1.330274429f;
  p = p * k - 1.821255978f;
  p = p * k + 1.781477937f;
  p = p * k - 0.356563782f;
  p = p * k + 0.319381530f;
  const float c = 1.0f - w * p * k;
  return x < 0 ? 1.0f - c : c;
}

}  // namespace

void black_scholes(const float* s, const float* k, const float* t, float* call,
                   float* put, size_t n) {
  constexpr float r = 0.02f, v = 0.3f;
#pragma omp parallel for simd schedule(static)
  for (size_t i = 0; i < n; ++i) {
    const float root = std::sqrt(t[i]) * v;
    const float d1 = (std::log(s[i] / k[i]) + (r + 0.5f * v * v) * t[i]) / root;
    const float e = k[i] * std::exp(-r * t[i]);
    const float c = s[i] * normal_cdf(d1) - e * normal_cdf(d1 - root);
    call[i] = c;
    put[i] = c - s[i] + e;
  }
}

}  // namespace peers
