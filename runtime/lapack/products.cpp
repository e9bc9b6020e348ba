// Products of matrices for LAPACK, in place of the reference BLAS's: most of
// what large factors cost. Rows of A and columns of B are packed, in parts of k
// that fit a cache, and tiles of C are computed in registers: for each part of
// k sums from 0 in the order of k, without fma, which are added to C in the
// order of the parts. Vectors of any width compute the same bits.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

namespace {

constexpr int columns_of_tile = 4;
constexpr int part_of_k = 256, packed_rows = 96;
/// Fewer multiplications than these are not worth packing.
constexpr int64_t few = 4096;

template <class T>
constexpr int rows_of_tile = 64 / sizeof(T);  // two vectors of 32 bytes

/// tile[j][i] = the sum over l of a[l][i] * b[l][j], of packed a and b.
#define TILE(name, T, attributes)                                \
  attributes void name(int k, const T* a, const T* b, T* tile) { \
    typedef T Vector __attribute__((vector_size(32)));           \
    constexpr int lanes = 32 / sizeof(T);                        \
    Vector sums[columns_of_tile][2] = {};                        \
    for (int l = 0; l < k; ++l) {                                \
      Vector low, high;                                          \
      std::memcpy(&low, a, 32);                                  \
      std::memcpy(&high, a + lanes, 32);                         \
      for (int j = 0; j < columns_of_tile; ++j) {                \
        sums[j][0] += low * b[j];                                \
        sums[j][1] += high * b[j];                               \
      }                                                          \
      a += 2 * lanes;                                            \
      b += columns_of_tile;                                      \
    }                                                            \
    std::memcpy(tile, sums, sizeof(sums));                       \
  }
TILE(multiply, float, )
TILE(multiply, double, )

template <class T>
using Multiply = void (*)(int k, const T* a, const T* b, T* tile);

/// With the widest vectors that the processor has, of these.
#if defined(__x86_64__)
TILE(multiply_avx2, float, __attribute__((target("avx2"))))
TILE(multiply_avx2, double, __attribute__((target("avx2"))))
template <class T>
Multiply<T> multiply_here() {
  if (__builtin_cpu_supports("avx2")) return multiply_avx2;
  return multiply;
}
#else
template <class T>
Multiply<T> multiply_here() {
  return multiply;
}
#endif
#undef TILE

/// A matrix by columns, or the transpose of one.
template <class T>
struct Operand {
  const T* elements;
  int64_t step;
  bool transposed;
  T at(int64_t i, int64_t j) const {
    return transposed ? elements[i * step + j] : elements[j * step + i];
  }
};

/// x(line, l) for l from `from` on, `count` lines after another in groups of
/// `group`; zeros behind the last.
template <class T, class F>
void pack(int64_t lines, int64_t group, int64_t from, int64_t k, T* to,
          const F& x) {
  for (int64_t first = 0; first < lines; first += group)
    for (int64_t l = 0; l < k; ++l)
      for (int64_t i = 0; i < group; ++i)
        *to++ = first + i < lines ? x(first + i, from + l) : T(0);
}

int64_t rounded_up(int64_t n, int64_t to) { return (n + to - 1) / to * to; }

/// C += alpha * A @ B, C being m by n.
template <class T>
void add_product(int64_t m, int64_t n, int64_t k, T alpha, Operand<T> a,
                 Operand<T> b, T* c, int64_t step) {
  constexpr int64_t rows = rows_of_tile<T>;
  std::vector<T> packed_a(
      static_cast<size_t>(rounded_up(std::min<int64_t>(m, packed_rows), rows) *
                          std::min<int64_t>(k, part_of_k)));
  std::vector<T> packed_b(static_cast<size_t>(rounded_up(n, columns_of_tile) *
                                              std::min<int64_t>(k, part_of_k)));
  T tile[rows * columns_of_tile];
  const Multiply<T> multiply = multiply_here<T>();
  for (int64_t l = 0; l < k; l += part_of_k) {
    const int64_t part = std::min<int64_t>(part_of_k, k - l);
    pack(n, columns_of_tile, l, part, packed_b.data(),
         [&](int64_t j, int64_t l) { return b.at(l, j); });
    for (int64_t i0 = 0; i0 < m; i0 += packed_rows) {
      const int64_t some = std::min<int64_t>(packed_rows, m - i0);
      pack(some, rows, l, part, packed_a.data(),
           [&](int64_t i, int64_t l) { return a.at(i0 + i, l); });
      for (int64_t j = 0; j < n; j += columns_of_tile)
        for (int64_t i = 0; i < some; i += rows) {
          multiply(static_cast<int>(part), packed_a.data() + i * part,
                   packed_b.data() + j * part, tile);
          const int64_t last = std::min(rows, some - i);
          for (int64_t y = 0; y < std::min<int64_t>(columns_of_tile, n - j);
               ++y)
            for (int64_t x = 0; x < last; ++x)
              c[(j + y) * step + i0 + i + x] += alpha * tile[y * rows + x];
        }
    }
  }
}

/// C = alpha * op(A) @ op(B) + beta * C: BLAS's gemm.
template <class T>
void product(bool transposed_a, bool transposed_b, int64_t m, int64_t n,
             int64_t k, T alpha, const T* a, int64_t step_a, const T* b,
             int64_t step_b, T beta, T* c, int64_t step_c) {
  for (int64_t j = 0; beta != 1 && j < n; ++j)
    for (int64_t i = 0; i < m; ++i) {
      T& element = c[j * step_c + i];
      element = beta == 0 ? T(0) : beta * element;
    }
  if (alpha == 0 || m == 0 || n == 0 || k == 0) return;
  const Operand<T> left{a, step_a, transposed_a},
      right{b, step_b, transposed_b};
  if (m * n * k > few && n >= columns_of_tile)
    return add_product(m, n, k, alpha, left, right, c, step_c);
  for (int64_t j = 0; j < n; ++j)
    for (int64_t l = 0; l < k; ++l) {
      const T factor = alpha * right.at(l, j);
      for (int64_t i = 0; i < m; ++i)
        c[j * step_c + i] += factor * left.at(i, l);
    }
}

}  // namespace

#define GEMM(name, T)                                                          \
  extern "C" void name(const char* a_is, const char* b_is, const int* m,       \
                       const int* n, const int* k, const T* alpha, const T* a, \
                       const int* lda, const T* b, const int* ldb,             \
                       const T* beta, T* c, const int* ldc, size_t, size_t) {  \
    product(*a_is != 'N' && *a_is != 'n', *b_is != 'N' && *b_is != 'n', *m,    \
            *n, *k, *alpha, a, *lda, b, *ldb, *beta, c, *ldc);                 \
  }
GEMM(dgemm_, double)
GEMM(sgemm_, float)
