#include "bench/peers.h"

#include <cblas.h>
#include <immintrin.h>
#include <omp.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <utility>
#include <vector>

namespace peers {
namespace {

typedef float Vec __attribute__((vector_size(64)));
constexpr size_t lanes = 16, block = 4096;

Vec load(const float* p) { return *reinterpret_cast<const Vec*>(p); }
void stream(float* p, Vec v) {
  __builtin_nontemporal_store(v, reinterpret_cast<Vec*>(p));
}
Vec splat(float x) { return x - Vec{}; }
Vec vmax(Vec a, Vec b) { return a > b ? a : b; }
float lane_sum(Vec v) {
  float s = 0;
  for (size_t i = 0; i < lanes; ++i) s += v[i];
  return s;
}
float lane_max(Vec v) {
  float m = v[0];
  for (size_t i = 1; i < lanes; ++i) m = std::max(m, v[i]);
  return m;
}

template <int operations>
Vec chain_element(Vec t, Vec y) {
#pragma clang loop unroll(full)
  for (int k = 0; k < operations; ++k) {
    if (k % 4 == 0) t = t + y;
    if (k % 4 == 1) t = t * splat(0.9f);
    if (k % 4 == 2) t = vmax(t, splat(-1.0f));
    if (k % 4 == 3) t = t - y;
  }
  return t;
}
template <int operations>
void chain_loop(const float* x, const float* y, float* out, size_t n) {
#pragma omp parallel for schedule(static)
  for (size_t i = 0; i < n; i += 2 * lanes) {
    stream(out + i, chain_element<operations>(load(x + i), load(y + i)));
    stream(out + i + lanes,
           chain_element<operations>(load(x + i + lanes), load(y + i + lanes)));
  }
  _mm_sfence();
}

/// The sum of `count` elements, in 4 vectors of lanes.
float block_sum(const float* x, size_t count) {
  Vec v[4] = {};
  for (size_t i = 0; i < count; i += 4 * lanes)
    for (size_t k = 0; k < 4; ++k) v[k] += load(x + i + k * lanes);
  return lane_sum((v[0] + v[1]) + (v[2] + v[3]));
}
float block_max(const float* x) {
  Vec m[4] = {load(x), load(x), load(x), load(x)};
  for (size_t i = 0; i < block; i += 4 * lanes)
    for (size_t k = 0; k < 4; ++k) m[k] = vmax(m[k], load(x + i + k * lanes));
  return lane_max(vmax(vmax(m[0], m[1]), vmax(m[2], m[3])));
}

/// Inclusive prefix sum of n elements from `carry`; gives the last.
float scan(const float* x, float* out, size_t n, float carry) {
  __m256 c = _mm256_set1_ps(carry);
  for (size_t i = 0; i < n; i += 8) {
    __m256 v = _mm256_load_ps(x + i);
    v = _mm256_add_ps(
        v, _mm256_castsi256_ps(_mm256_slli_si256(_mm256_castps_si256(v), 4)));
    v = _mm256_add_ps(
        v, _mm256_castsi256_ps(_mm256_slli_si256(_mm256_castps_si256(v), 8)));
    const __m256 low = _mm256_permute2f128_ps(v, v, 0x08);
    v = _mm256_add_ps(_mm256_add_ps(v, _mm256_permute_ps(low, 0xff)), c);
    _mm256_stream_ps(out + i, v);
    c = _mm256_permutevar8x32_ps(v, _mm256_set1_epi32(7));
  }
  return c[0];
}

uint32_t sortable(float x) {
  uint32_t u;
  std::memcpy(&u, &x, 4);
  return u ^
         (static_cast<uint32_t>(-static_cast<int32_t>(u >> 31)) | 0x80000000u);
}
float unsortable(uint32_t u) {
  u ^= ((u >> 31) - 1) | 0x80000000u;
  float x;
  std::memcpy(&x, &u, 4);
  return x;
}

/// Least-significant-digit radix sort, each thread its part of the input.
template <bool with_index>
void radix(const float* x, float* out, int32_t* out_index, size_t n) {
  constexpr int digits = 2048;
  const int threads = omp_get_max_threads();
  static std::vector<uint32_t> a, b, ia, ib, histogram;
  a.resize(n);
  b.resize(n);
  if (with_index) ia.resize(n), ib.resize(n);
  histogram.assign(static_cast<size_t>(threads) * digits, 0);
#pragma omp parallel
  {
    const size_t t = omp_get_thread_num(), low = n / threads * t;
    const size_t high =
        t + 1 == static_cast<size_t>(threads) ? n : low + n / threads;
    uint32_t *s = a.data(), *d = b.data(), *si = ia.data(), *di = ib.data();
    for (size_t i = low; i < high; ++i) {
      a[i] = sortable(x[i]);
      if (with_index) ia[i] = static_cast<uint32_t>(i);
    }
    uint32_t* count = histogram.data() + t * digits;
    for (int shift = 0; shift < 33; shift += 11) {
      std::fill(count, count + digits, 0);
      for (size_t i = low; i < high; ++i) ++count[(s[i] >> shift) % digits];
#pragma omp barrier
#pragma omp single
      {
        uint32_t total = 0;
        for (int k = 0; k < digits; ++k)
          for (int q = 0; q < threads; ++q)
            total += std::exchange(histogram[q * digits + k], total);
      }
      for (size_t i = low; i < high; ++i) {
        const uint32_t to = count[(s[i] >> shift) % digits]++;
        d[to] = s[i];
        if (with_index) di[to] = si[i];
      }
#pragma omp barrier
      std::swap(s, d);
      std::swap(si, di);
    }
    for (size_t i = low; i < high; ++i)
      if (with_index)
        out_index[i] = static_cast<int32_t>(si[i]);
      else
        out[i] = unsortable(s[i]);
  }
}

/// An 8 x 8 tile at x (row length n) to out, transposed.
void transpose_tile(const float* x, float* out, size_t n) {
  __m256 r[8], t[8];
  for (int k = 0; k < 8; ++k) r[k] = _mm256_load_ps(x + k * n);
  for (int k = 0; k < 4; ++k) {
    t[2 * k] = _mm256_unpacklo_ps(r[2 * k], r[2 * k + 1]);
    t[2 * k + 1] = _mm256_unpackhi_ps(r[2 * k], r[2 * k + 1]);
  }
  for (int k = 0; k < 2; ++k) {
    const __m256* q = t + 4 * k;
    r[4 * k] = _mm256_shuffle_ps(q[0], q[2], 0x44);
    r[4 * k + 1] = _mm256_shuffle_ps(q[0], q[2], 0xee);
    r[4 * k + 2] = _mm256_shuffle_ps(q[1], q[3], 0x44);
    r[4 * k + 3] = _mm256_shuffle_ps(q[1], q[3], 0xee);
  }
  for (int k = 0; k < 4; ++k) {
    _mm256_stream_ps(out + k * n, _mm256_permute2f128_ps(r[k], r[k + 4], 0x20));
    _mm256_stream_ps(out + (k + 4) * n,
                     _mm256_permute2f128_ps(r[k], r[k + 4], 0x31));
  }
}

}  // namespace

void wake(bool openmp, bool openblas) {
  if (openmp) {
#pragma omp parallel
    {
      volatile int here = 0;
      (void)here;
    }
  }
  if (openblas) {
    constexpr int n = 256;
    static const std::vector<float> a(n * n, 1.0f);
    static std::vector<float> c(n * n);
    cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, n, n, n, 1, a.data(),
                n, a.data(), n, 0, c.data(), n);
  }
}

void chain(int operations, const float* x, const float* y, float* out,
           size_t n) {
  if (operations == 1) return chain_loop<1>(x, y, out, n);
  if (operations == 4) return chain_loop<4>(x, y, out, n);
  chain_loop<16>(x, y, out, n);
}

float sum(const float* x, size_t n) {
  double total = 0;
#pragma omp parallel for reduction(+ : total) schedule(static)
  for (size_t b = 0; b < n; b += block) total += block_sum(x + b, block);
  return static_cast<float>(total);
}

void mean_variance(const float* x, size_t n, float* mean, float* variance) {
  double s = 0, q = 0;
  const Vec shift = splat(x[0]);
#pragma omp parallel for reduction(+ : s, q) schedule(static)
  for (size_t b = 0; b < n; b += block) {
    Vec v[4] = {}, w[4] = {};
    for (size_t i = b; i < b + block; i += 4 * lanes) {
      for (size_t k = 0; k < 4; ++k) {
        const Vec d = load(x + i + k * lanes) - shift;
        v[k] += d;
        w[k] += d * d;
      }
    }
    s += lane_sum((v[0] + v[1]) + (v[2] + v[3]));
    q += lane_sum((w[0] + w[1]) + (w[2] + w[3]));
  }
  const double d = s / n;
  *mean = static_cast<float>(x[0] + d);
  *variance = static_cast<float>(q / n - d * d);
}

float max(const float* x, size_t n) {
  float result = -std::numeric_limits<float>::infinity();
#pragma omp parallel for reduction(max : result) schedule(static)
  for (size_t b = 0; b < n; b += block)
    result = std::max(result, block_max(x + b));
  return result;
}

int64_t argmax(const float* x, size_t n) {
  float best = -std::numeric_limits<float>::infinity();
  size_t where = 0;
#pragma omp parallel
  {
    float mine = -std::numeric_limits<float>::infinity();
    size_t at = 0;
#pragma omp for schedule(static)
    for (size_t b = 0; b < n; b += block) {
      const float m = block_max(x + b);
      if (m > mine) {  // the index only when the block wins
        mine = m;
        for (at = b; x[at] != m; ++at) {
        }
      }
    }
#pragma omp critical
    if (mine > best || (mine == best && at < where)) {
      best = mine;
      where = at;
    }
  }
  return static_cast<int64_t>(where);
}

void cumsum(const float* x, float* out, size_t n) {
  const size_t threads = omp_get_max_threads();
  constexpr size_t piece = size_t{1} << 17;  // stays in the cache
  std::vector<float> sums(threads);
  float carry = 0;
#pragma omp parallel
  {
    const size_t t = omp_get_thread_num();
    for (size_t b = 0; b < n; b += piece * threads) {
      const size_t from = b + piece * t;
      const size_t count = from >= n ? 0 : std::min(piece, n - from);
      sums[t] = t + 1 < threads ? block_sum(x + from, count) : 0;
#pragma omp barrier
      float start = carry;
      for (size_t q = 0; q < t; ++q) start += sums[q];
      const float end = scan(x + from, out + from, count, start);
#pragma omp barrier
      if (t + 1 == threads) carry = end;
#pragma omp barrier
    }
    _mm_sfence();
  }
}

void sort(const float* x, float* out, size_t n) {
  radix<false>(x, out, nullptr, n);
}
void argsort(const float* x, int32_t* out, size_t n) {
  radix<true>(x, nullptr, out, n);
}

void sort_rows(const float* x, float* out, size_t rows, size_t columns) {
#pragma omp parallel for schedule(static)
  for (size_t r = 0; r < rows; ++r) {
    float* row = out + r * columns;
    std::copy(x + r * columns, x + (r + 1) * columns, row);
    std::sort(row, row + columns);
  }
}

size_t select_positive(const float* x, float* out, size_t n) {
  constexpr size_t part = 1 << 16;
  const size_t parts = (n + part - 1) / part;
  std::vector<size_t> begins(parts + 1);
#pragma omp parallel for schedule(static)
  for (size_t p = 0; p < parts; ++p) {
    size_t count = 0;
    for (size_t i = p * part; i < std::min(n, (p + 1) * part); ++i)
      count += x[i] > 0 ? 1 : 0;
    begins[p + 1] = count;
  }
  for (size_t p = 0; p < parts; ++p) begins[p + 1] += begins[p];
#pragma omp parallel for schedule(static)
  for (size_t p = 0; p < parts; ++p) {
    // Each element is stored, and the next one over it if it is not wanted.
    float* to = out + begins[p];
    float* const end = out + begins[p + 1];
    for (size_t i = p * part; i < (p + 1) * part && to != end; ++i) {
      *to = x[i];
      to += x[i] > 0 ? 1 : 0;
    }
  }
  return begins[parts];
}

void halve_some(const float* x, float* out, size_t n, int turns) {
  std::memcpy(out, x, n * sizeof(float));
  for (int t = 0; t < turns; ++t) {
    float& element = out[static_cast<uint32_t>(t) * 7919U & (n - 1)];
    if (element > 0) element *= 0.5F;
  }
}

void swap_some(const float* x, float* out, size_t n, int turns) {
  std::memcpy(out, x, n * sizeof(float));
  for (int t = 0; t < turns; ++t) {
    const size_t i = static_cast<uint32_t>(t) * 7919U & (n - 1);
    std::swap(out[i], out[(i + 1) & (n - 1)]);
  }
}

void bubble_sort(const float* x, float* out, size_t n) {
  std::memcpy(out, x, n * sizeof(float));
  for (size_t i = 0; i < n; ++i)
    for (size_t j = 0; j + 1 < n; ++j)
      if (out[j] > out[j + 1]) std::swap(out[j], out[j + 1]);
}

void common_table(float* out, size_t n) {
  std::vector<int32_t> a(n), b(n);
  for (size_t i = 0; i < n; ++i) {
    a[i] = static_cast<int32_t>(i * 7919 % 13);
    b[i] = static_cast<int32_t>(i * 104'729 % 11);
  }
  const size_t width = n + 1;
  std::memset(out, 0, width * width * sizeof(float));
  for (size_t i = 0; i < n; ++i)
    for (size_t j = 0; j < n; ++j)
      out[(i + 1) * width + j + 1] =
          a[i] == b[j]
              ? out[i * width + j] + 1
              : std::max(out[i * width + j + 1], out[(i + 1) * width + j]);
}

void mark_rows(const float* x, const int32_t* index, float* out, size_t rows,
               size_t columns) {
#pragma omp parallel for schedule(static)
  for (size_t r = 0; r < rows; ++r) {
    std::memcpy(out + r * columns, x + r * columns, columns * sizeof(float));
    out[r * columns + static_cast<size_t>(index[r])] = -1;
  }
}

void transpose(const float* x, float* out, size_t n) {
  constexpr size_t tile = 64, small = 8;
#pragma omp parallel for collapse(2) schedule(static)
  for (size_t bi = 0; bi < n; bi += tile) {
    for (size_t bj = 0; bj < n; bj += tile) {
      for (size_t j = bj; j < bj + tile; j += small)
        for (size_t i = bi; i < bi + tile; i += small)
          transpose_tile(x + i * n + j, out + j * n + i, n);
    }
  }
  _mm_sfence();
}

void gather(const float* x, const int32_t* index, float* out, size_t n) {
#pragma omp parallel for schedule(static)
  for (size_t i = 0; i < n; ++i) out[i] = x[index[i]];
}

void gather_rows(const float* x, const int32_t* index, float* out, size_t rows,
                 size_t columns) {
#pragma omp parallel for schedule(static)
  for (size_t r = 0; r < rows; ++r) {
    const float* from = x + static_cast<size_t>(index[r]) * columns;
    for (size_t i = 0; i < columns; i += lanes)
      stream(out + r * columns + i, load(from + i));
  }
  _mm_sfence();
}

void copy(const float* x, float* out, size_t n) {
#pragma omp parallel for schedule(static)
  for (size_t i = 0; i < n; i += lanes) stream(out + i, load(x + i));
  _mm_sfence();
}

}  // namespace peers
