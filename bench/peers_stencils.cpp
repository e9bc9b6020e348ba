// One step of the heat equation.
#include <utility>

#include "bench/peers.h"

namespace peers {
namespace {

/// A row from three; what lies left and right of it is `left` and `right`.
void heat_row(const float* above, const float* here, const float* below,
              float left, float right, float* out, size_t n) {
  const auto next = [&](size_t i, float before, float after) {
    return here[i] +
           0.1F * (below[i] + above[i] + after + before - 4.0F * here[i]);
  };
  out[0] = next(0, left, here[1]);
  for (size_t i = 1; i + 1 < n; ++i) out[i] = next(i, here[i - 1], here[i + 1]);
  out[n - 1] = next(n - 1, here[n - 2], right);
}

}  // namespace

void heat(const float* u, float* out, const float* zeros, size_t rows,
          size_t columns, Edge edge) {
#pragma omp parallel for schedule(static)
  for (size_t r = 0; r < rows; ++r) {
    const float* here = u + r * columns;
    float* to = out + r * columns;
    const bool first = r == 0, last = r + 1 == rows;
    const bool wraps = edge == Edge::wrapped;
    if (edge == Edge::fixed && (first || last)) {
      for (size_t i = 0; i < columns; ++i) to[i] = 0;
      continue;
    }
    const float* above = !first  ? here - columns
                         : wraps ? u + (rows - 1) * columns
                                 : zeros;
    const float* below = !last ? here + columns : wraps ? u : zeros;
    heat_row(above, here, below, wraps ? here[columns - 1] : 0,
             wraps ? here[0] : 0, to, columns);
    if (edge == Edge::fixed || edge == Edge::fixed_columns)
      to[0] = to[columns - 1] = 0;
  }
}

}  // namespace peers
