// Counter-based random numbers: one block of Threefry-2x32, 20 rounds, for
// each.
#include <cmath>

#include "bench/peers.h"

namespace peers {
namespace {

inline uint32_t rotated(uint32_t x, int n) { return x << n | x >> (32 - n); }

template <int... n>
inline void rounds(uint32_t& a, uint32_t& b) {
  ((a += b, b = rotated(b, n) ^ a), ...);
}

/// Word 0 xor word 1 of block i.
inline uint32_t bits(uint32_t k0, uint32_t k1, uint32_t i) {
  const uint32_t k2 = k0 ^ k1 ^ 0x1bd11bda;
  uint32_t a = k0, b = i + k1;
  rounds<13, 15, 26, 6>(a, b);
  a += k1, b += k2 + 1;
  rounds<17, 29, 16, 24>(a, b);
  a += k2, b += k0 + 2;
  rounds<13, 15, 26, 6>(a, b);
  a += k0, b += k1 + 3;
  rounds<17, 29, 16, 24>(a, b);
  a += k1, b += k2 + 4;
  rounds<13, 15, 26, 6>(a, b);
  a += k2, b += k0 + 5;
  return a ^ b;
}

inline float fraction(uint32_t word) {
  return static_cast<float>(static_cast<int32_t>(word >> 9)) * 0x1p-23f;
}

inline float horner(float x, const float* c, int n) {
  float p = c[0];
  for (int i = 1; i < n; ++i) p = std::fma(p, x, c[i]);
  return p;
}

/// Giles's polynomials; std::log is libmvec's.
inline float erf_inv(float x) {
  constexpr float middle[] = {
      2.81022636e-08f,  3.43273939e-07f, -3.5233877e-06f,
      -4.39150654e-06f, 0.00021858087f,  -0.00125372503f,
      -0.00417768164f,  0.246640727f,    1.50140941f};
  constexpr float tail[] = {-0.000200214257f, 0.000100950558f, 0.00134934322f,
                            -0.00367342844f,  0.00573950773f,  -0.0076224613f,
                            0.00943887047f,   1.00167406f,     2.83297682f};
  const float w = -std::log(std::fma(-x, x, 1.0f));
  const float near = horner(w - 2.5f, middle, 9);
  const float far = horner(std::sqrt(w) - 3.0f, tail, 9);
  return x * (w < 5 ? near : far);
}

}  // namespace

void uniform(uint32_t k0, uint32_t k1, float* out, size_t n) {
#pragma omp parallel for simd schedule(static)
  for (size_t i = 0; i < n; ++i)
    out[i] = fraction(bits(k0, k1, static_cast<uint32_t>(i)));
}

void normal(uint32_t k0, uint32_t k1, float* out, size_t n) {
#pragma omp parallel for simd schedule(static)
  for (size_t i = 0; i < n; ++i) {
    const float u = fraction(bits(k0, k1, static_cast<uint32_t>(i)));
    out[i] = 1.41421356f * erf_inv(u * 2.0f - 0x1.fffffep-1f);
  }
}

}  // namespace peers
