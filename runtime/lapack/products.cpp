// Products of matrices for LAPACK, in place of the reference BLAS's: most of
// what large factors cost. Rows of A and columns of B are packed, in parts of k
// that fit a cache, and tiles of C are computed in registers.
#include <algorithm>
#include <cstddef>
#include <cstring>
#include <memory>

#include "runtime/lapack/kernels.h"

namespace unisono::lapack {
namespace {

constexpr int64_t part_of_k = 256, packed_rows = 96;
/// Fewer multiplications than these are not worth packing.
constexpr int64_t few = 1024;

int64_t rounded_up(int64_t n, int64_t to) { return (n + to - 1) / to * to; }

/// Groups of lines, of each group element l of all its lines after one another;
/// zeros behind the last line. The lines are x's rows.
template <class T>
void pack(int64_t lines, int64_t group, int64_t k, Operand<T> x, T* to) {
  for (int64_t first = 0; first < lines; first += group, to += group * k) {
    const int64_t some = std::min(group, lines - first);
    const Operand<T> from = x.block(first, 0);
    if (some < group) std::fill_n(to, group * k, T(0));
    if (x.row == 1 && some == group)
      for (int64_t l = 0; l < k; ++l)
        std::memcpy(to + l * group, from.elements + l * from.column,
                    static_cast<size_t>(group) * sizeof(T));
    else if (x.row == 1)
      for (int64_t l = 0; l < k; ++l)
        std::copy_n(from.elements + l * from.column, some, to + l * group);
    else
      for (int64_t i = 0; i < some; ++i)
        for (int64_t l = 0; l < k; ++l) to[l * group + i] = from.at(i, l);
  }
}

template <class T>
std::unique_ptr<T[]> room_for(int64_t lines, int64_t group, int64_t k) {
  return std::make_unique_for_overwrite<T[]>(
      static_cast<size_t>(rounded_up(lines, group) * k));
}

}  // namespace

template <class T>
void add_product(int64_t m, int64_t n, int64_t k, T alpha, Operand<T> a,
                 Operand<T> b, T* c, int64_t step) {
  if (alpha == 0 || m == 0 || n == 0 || k == 0) return;
  if (m * n * k <= few) {
    for (int64_t j = 0; j < n; ++j)
      for (int64_t l = 0; l < k; ++l) {
        const T factor = alpha * b.at(l, j);
        for (int64_t i = 0; i < m; ++i) c[j * step + i] += factor * a.at(i, l);
      }
    return;
  }
  const Kernels<T>& use = kernels<T>();
  const int64_t longest = std::min(k, part_of_k);
  const auto packed_a =
      room_for<T>(std::min(m, packed_rows), use.rows, longest);
  const auto packed_b = room_for<T>(n, use.columns, longest);
  for (int64_t l = 0; l < k; l += part_of_k) {
    const int64_t part = std::min(part_of_k, k - l);
    pack(n, use.columns, part, b.block(l, 0).transposed(), packed_b.get());
    for (int64_t i0 = 0; i0 < m; i0 += packed_rows) {
      const int64_t some = std::min(packed_rows, m - i0);
      pack(some, use.rows, part, a.block(i0, l), packed_a.get());
      for (int64_t j = 0; j < n; j += use.columns)
        for (int64_t i = 0; i < some; i += use.rows)
          use.multiply(part, packed_a.get() + i * part,
                       packed_b.get() + j * part, alpha, c + j * step + i0 + i,
                       step, std::min<int64_t>(use.rows, some - i),
                       std::min<int64_t>(use.columns, n - j));
    }
  }
}
template void add_product(int64_t, int64_t, int64_t, float, Operand<float>,
                          Operand<float>, float*, int64_t);
template void add_product(int64_t, int64_t, int64_t, double, Operand<double>,
                          Operand<double>, double*, int64_t);

namespace {

/// C = alpha * op(A) @ op(B) + beta * C: BLAS's gemm.
template <class T>
void product(const char* a_is, const char* b_is, int64_t m, int64_t n,
             int64_t k, T alpha, Operand<T> a, Operand<T> b, T beta, T* c,
             int64_t step) {
  scale(m, n, beta, c, step);
  add_product(m, n, k, alpha, is(a_is, 'N') ? a : a.transposed(),
              is(b_is, 'N') ? b : b.transposed(), c, step);
}

}  // namespace
}  // namespace unisono::lapack

#define GEMM(name, T)                                                          \
  extern "C" void name(const char* a_is, const char* b_is, const int* m,       \
                       const int* n, const int* k, const T* alpha, const T* a, \
                       const int* lda, const T* b, const int* ldb,             \
                       const T* beta, T* c, const int* ldc, size_t, size_t) {  \
    unisono::lapack::product<T>(a_is, b_is, *m, *n, *k, *alpha, {a, 1, *lda},  \
                                {b, 1, *ldb}, *beta, c, *ldc);                 \
  }
GEMM(dgemm_, double)
GEMM(sgemm_, float)
