// What networks are made of. Built as black_scholes.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <vector>

#include "bench/peers.h"

namespace peers {
namespace {

#ifdef __AVX512F__
constexpr size_t vector_bytes = 64;
#else
constexpr size_t vector_bytes = 32;
#endif
typedef float Vec __attribute__((vector_size(vector_bytes)));
constexpr size_t lanes = vector_bytes / sizeof(float);
/// As many chains as wait for none of their results: latency 4, two at once.
constexpr size_t chains = 12;

}  // namespace

float multiply_adds(double count) {
  float total = 0;
  const auto turns = static_cast<size_t>(count / (chains * lanes));
#pragma omp parallel reduction(+ : total)
  {
    Vec sums[chains];
    for (size_t i = 0; i < chains; ++i)
      sums[i] = Vec{} + static_cast<float>(i) * 1e-3f;
    Vec factor = Vec{} + 0.999f, term = Vec{} + 1e-3f;
    asm volatile("" : "+v"(factor), "+v"(term));  // not known
#pragma omp for
    for (size_t t = 0; t < turns; ++t) {
#pragma clang loop unroll(full)
      for (size_t i = 0; i < chains; ++i)
        sums[i] = __builtin_elementwise_fma(sums[i], factor, term);
    }
    Vec sum{};
    for (const Vec& each : sums) sum += each;
    for (size_t i = 0; i < lanes; ++i) total += sum[i];
  }
  return total;
}

namespace {

constexpr size_t width = 64, gates = 4 * width, inputs = 2 * width;

float sigmoid(float x) { return 1 / (1 + std::exp(-x)); }
float tanh_of(float x) { return 1 - 2 / (std::exp(2 * x) + 1); }

/// z = b + in W.
void gates_of(const float* w, const float* b, const float* in, float* z) {
  std::memcpy(z, b, gates * sizeof(float));
  for (size_t k = 0; k < inputs; k += 4) {
    const float* row = w + k * gates;
#pragma omp simd
    for (size_t j = 0; j < gates; ++j)
      z[j] += in[k] * row[j] + in[k + 1] * row[gates + j] +
              in[k + 2] * row[2 * gates + j] + in[k + 3] * row[3 * gates + j];
  }
}

}  // namespace

float lstm_gradient(const float* w, const float* b, const float* xs,
                    size_t steps, float* by_w, float* by_b) {
  std::vector<float> in((steps + 1) * inputs), z(steps * gates),
      c((steps + 1) * width), by_z(steps * gates);
  for (size_t t = 0; t < steps; ++t) {
    float *q = &in[t * inputs], *g = &z[t * gates], *before = &c[t * width],
          *after = before + width, *h = q + inputs + width;
    std::memcpy(q, xs + t * width, width * sizeof(float));
    gates_of(w, b, q, g);
#pragma omp simd
    for (size_t j = 0; j < width; ++j) {
      const float i = sigmoid(g[j]), f = sigmoid(g[width + j]),
                  u = tanh_of(g[2 * width + j]), o = sigmoid(g[3 * width + j]);
      after[j] = f * before[j] + i * u;
      h[j] = o * tanh_of(after[j]);
      g[j] = i, g[width + j] = f, g[2 * width + j] = u, g[3 * width + j] = o;
    }
  }
  const float* last = &in[steps * inputs + width];
  float loss = 0, by_h[width], by_c[width] = {};
  for (size_t j = 0; j < width; ++j) {
    loss += last[j] * last[j];
    by_h[j] = 2 * last[j];
  }
  for (size_t t = steps; t-- > 0;) {
    const float *g = &z[t * gates], *before = &c[t * width],
                *after = before + width;
    float* d = &by_z[t * gates];
#pragma omp simd
    for (size_t j = 0; j < width; ++j) {
      const float i = g[j], f = g[width + j], u = g[2 * width + j],
                  o = g[3 * width + j], y = tanh_of(after[j]);
      by_c[j] += by_h[j] * o * (1 - y * y);
      d[j] = by_c[j] * u * i * (1 - i);
      d[width + j] = by_c[j] * before[j] * f * (1 - f);
      d[2 * width + j] = by_c[j] * i * (1 - u * u);
      d[3 * width + j] = by_h[j] * y * o * (1 - o);
      by_c[j] *= f;
    }
    for (size_t k = 0; k < width; ++k) {
      const float* row = w + (width + k) * gates;
      float sum = 0;
#pragma omp simd reduction(+ : sum)
      for (size_t j = 0; j < gates; ++j) sum += row[j] * d[j];
      by_h[k] = sum;
    }
  }
  // One product of all steps' inputs and cotangents.
  std::fill_n(by_w, inputs * gates, 0.0f);
  std::fill_n(by_b, gates, 0.0f);
  for (size_t t = 0; t < steps; ++t)
    for (size_t j = 0; j < gates; ++j) by_b[j] += by_z[t * gates + j];
  for (size_t t = 0; t < steps; t += 4)
    for (size_t k = 0; k < inputs; ++k) {
      const float *q = &in[t * inputs + k], *d = &by_z[t * gates];
      float* row = by_w + k * gates;
#pragma omp simd
      for (size_t j = 0; j < gates; ++j)
        row[j] += q[0] * d[j] + q[inputs] * d[gates + j] +
                  q[2 * inputs] * d[2 * gates + j] +
                  q[3 * inputs] * d[3 * gates + j];
    }
  return loss;
}

}  // namespace peers
