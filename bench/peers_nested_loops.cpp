// Loops in loops, as one writes them in C++. Built as peers_loops.cpp is.
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <vector>

#include "bench/peers.h"

namespace peers {

float shortest_ways(const float* w, size_t n) {
  std::vector<float> d(w, w + n * n);
  for (size_t k = 0; k < n; ++k)
    for (size_t i = 0; i < n; ++i)
      for (size_t j = 0; j < n; ++j)
        d[i * n + j] = std::min(d[i * n + j], d[i * n + k] + d[k * n + j]);
  return std::accumulate(d.begin(), d.end(), 0.0f);
}

float edit_distance(const float* a, size_t n, const float* b, size_t m) {
  const size_t row = m + 1;
  std::vector<int32_t> d((n + 1) * row);
  for (size_t i = 0; i <= n; ++i) d[i * row] = static_cast<int32_t>(i);
  for (size_t j = 0; j <= m; ++j) d[j] = static_cast<int32_t>(j);
  for (size_t i = 0; i < n; ++i)
    for (size_t j = 0; j < m; ++j) {
      const int32_t change = d[i * row + j] + (a[i] != b[j] ? 1 : 0);
      d[(i + 1) * row + j + 1] = std::min(
          change, std::min(d[i * row + j + 1], d[(i + 1) * row + j]) + 1);
    }
  return static_cast<float>(d.back());
}

float collatz(int64_t n) {
  int32_t most = 0;
  for (int64_t i = 1; i < n; ++i) {
    int64_t c = i;
    int32_t turns = 0;
    for (; c != 1; ++turns) c = c % 2 == 0 ? c / 2 : 3 * c + 1;
    most = std::max(most, turns);
  }
  return static_cast<float>(most);
}

float mandelbrot(int n) {
  int inside = 0;
  for (int i = 0; i < n; ++i)
    for (int j = 0; j < n; ++j) {
      const double a = j * 3.0 / n - 2.0, b = i * 2.0 / n - 1.0;
      double x = 0, y = 0;
      int t = 0;
      for (; t < 100 && x * x + y * y < 4.0; ++t) {
        const double next = x * x - y * y + a;
        y = 2.0 * x * y + b;
        x = next;
      }
      inside += t == 100 ? 1 : 0;
    }
  return static_cast<float>(inside);
}

float sieve(size_t n) {
  std::vector<uint8_t> prime(n, 1);
  for (size_t i = 2; i * i < n; ++i)
    if (prime[i])
      for (size_t j = i * i; j < n; j += i) prime[j] = 0;
  return static_cast<float>(
      std::accumulate(prime.begin(), prime.end(), int32_t{0}) - 2);
}

float cholesky(const float* a, size_t n) {
  std::vector<float> l(n * n);
  for (size_t i = 0; i < n; ++i)
    for (size_t j = 0; j <= i; ++j) {
      float s = a[i * n + j];
      for (size_t k = 0; k < j; ++k) s -= l[i * n + k] * l[j * n + k];
      l[i * n + j] = i == j ? std::sqrt(s) : s / l[j * n + j];
    }
  return static_cast<float>(std::accumulate(l.begin(), l.end(), 0.0));
}

}  // namespace peers
