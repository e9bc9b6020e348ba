// Softmax and layer normalisation of rows. Built with -ffast-math, so that the
// compiler vectorises sums, and libmvec, for exp.
#include <algorithm>
#include <cmath>
#include <vector>

#include "bench/peers.h"

namespace peers {

void softmax(const float* x, float* out, size_t rows, size_t columns) {
#pragma omp parallel for schedule(static)
  for (size_t r = 0; r < rows; ++r) {
    const float* from = x + r * columns;
    float* to = out + r * columns;
    float top = from[0], total = 0;
    for (size_t i = 0; i < columns; ++i) top = std::max(top, from[i]);
    for (size_t i = 0; i < columns; ++i) {
      to[i] = std::exp(from[i] - top);
      total += to[i];
    }
    const float scale = 1 / total;
    for (size_t i = 0; i < columns; ++i) to[i] *= scale;
  }
}

void layer_norm(const float* x, const float* gain, const float* bias,
                float* out, size_t rows, size_t columns) {
#pragma omp parallel for schedule(static)
  for (size_t r = 0; r < rows; ++r) {
    const float* from = x + r * columns;
    float* to = out + r * columns;
    float total = 0, squares = 0;
    for (size_t i = 0; i < columns; ++i) total += from[i];
    const float mean = total / static_cast<float>(columns);
    for (size_t i = 0; i < columns; ++i)
      squares += (from[i] - mean) * (from[i] - mean);
    const float scale =
        1 / std::sqrt(squares / static_cast<float>(columns) + 1e-5f);
    for (size_t i = 0; i < columns; ++i)
      to[i] = (from[i] - mean) * scale * gain[i] + bias[i];
  }
}

void softmax_gradient(const float* x, const float* c, float* by_x, size_t rows,
                      size_t columns) {
#pragma omp parallel for schedule(static)
  for (size_t r = 0; r < rows; ++r) {
    const float *from = x + r * columns, *along = c + r * columns;
    float* to = by_x + r * columns;
    float top = from[0], total = 0, product = 0;
    for (size_t i = 0; i < columns; ++i) top = std::max(top, from[i]);
    for (size_t i = 0; i < columns; ++i) {
      to[i] = std::exp(from[i] - top);
      total += to[i];
      product += to[i] * along[i];
    }
    const float scale = 1 / total, mean = product * scale;
    for (size_t i = 0; i < columns; ++i) to[i] *= scale * (along[i] - mean);
  }
}

void layer_norm_gradient(const float* x, const float* gain, const float* c,
                         float* by_x, float* by_gain, float* by_bias,
                         size_t rows, size_t columns) {
  for (size_t i = 0; i < columns; ++i) by_gain[i] = by_bias[i] = 0;
#pragma omp parallel
  {
    std::vector<float> gains(columns, 0), biases(columns, 0);
    const auto n = static_cast<float>(columns);
#pragma omp for schedule(static)
    for (size_t r = 0; r < rows; ++r) {
      const float *from = x + r * columns, *along = c + r * columns;
      float* to = by_x + r * columns;
      float total = 0, squares = 0, sum = 0, product = 0;
      for (size_t i = 0; i < columns; ++i) total += from[i];
      const float mean = total / n;
      for (size_t i = 0; i < columns; ++i)
        squares += (from[i] - mean) * (from[i] - mean);
      const float scale = 1 / std::sqrt(squares / n + 1e-5f);
      for (size_t i = 0; i < columns; ++i) {
        const float h = (from[i] - mean) * scale, d = along[i] * gain[i];
        sum += d;
        product += d * h;
        gains[i] += along[i] * h;
        biases[i] += along[i];
      }
      sum /= n;
      product /= n;
      for (size_t i = 0; i < columns; ++i)
        to[i] =
            (along[i] * gain[i] - sum - (from[i] - mean) * scale * product) *
            scale;
    }
#pragma omp critical
    for (size_t i = 0; i < columns; ++i) {
      by_gain[i] += gains[i];
      by_bias[i] += biases[i];
    }
  }
}

}  // namespace peers
