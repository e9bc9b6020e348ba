// Softmax and layer normalisation of rows. Built with -ffast-math, so that the
// compiler vectorises sums, and libmvec, for exp.
#include <algorithm>
#include <cmath>

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

}  // namespace peers
