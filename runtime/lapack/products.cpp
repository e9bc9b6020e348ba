// Products of matrices for LAPACK, in place of the reference BLAS's: most of
// what large factors cost. Rows of A and columns of B are packed, in parts of k
// that fit a cache, and tiles of C are computed in registers.
#include <algorithm>
#include <cstddef>
#include <cstring>
#include <memory>

#include "runtime/lapack/kernels.h"
#include "runtime/tuning/tuning.h"

namespace unisono::lapack {
namespace {

constexpr int64_t packed_rows = 96;

int64_t rounded_up(int64_t n, int64_t to) { return (n + to - 1) / to * to; }

/// Groups of lines, of each group element l of all its lines after one another;
/// zeros behind the last line. The lines are x's rows.
template <class T>
void pack(int64_t lines, int64_t group, int64_t k, Operand<T> x, T* to) {
  for (int64_t first = 0; first < lines; first += group, to += group * k) {
    const int64_t some = std::min(group, lines - first);
    const Operand<T> from = x.block(first, 0);
    if (some < group) std::fill_n(to, group * k, T(0));
    constexpr int64_t line = 64 / sizeof(T);  // a tile has whole ones
    if (x.row == 1 && some == group && group % line == 0)
      for (int64_t l = 0; l < k; ++l)
        for (int64_t i = 0; i < group; i += line)
          std::memcpy(to + l * group + i, from.elements + l * from.column + i,
                      64);
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

/// `pack` by several workers.
template <class T>
void pack_shared(int64_t lines, int64_t group, int64_t k, Operand<T> x, T* to) {
  share((lines + group - 1) / group, group * k,
        [&](int64_t begin, int64_t end) {
          pack(std::min(lines, end * group) - begin * group, group, k,
               x.block(begin * group, 0), to + begin * group * k);
        });
}

/// C += alpha * A @ B of packed operands, by several workers: each has some
/// rows of C, or some of their columns where there are few rows.
template <class T>
void add_packed(int64_t m, int64_t n, int64_t k, T alpha, const T* a,
                const T* b, T* c, int64_t step) {
  const Kernels<T>& use = kernels<T>();
  const int64_t blocks = (m + packed_rows - 1) / packed_rows;
  const int64_t most_columns = tuning().lapack_columns_between_looks;
  const int64_t chunks = std::max(
      std::clamp<int64_t>(4 * workers() / blocks, 1, n / use.columns + 1),
      (n + most_columns - 1) / most_columns);
  const int64_t columns =
      chunks == 1 ? n : rounded_up((n + chunks - 1) / chunks, use.columns);
  share(blocks * chunks, packed_rows * columns * k,
        [&](int64_t begin, int64_t end) {
          for (int64_t at = begin; at < end; ++at) {
            const int64_t top = at / chunks * packed_rows;
            const int64_t bottom = std::min(m, top + packed_rows);
            const int64_t left = at % chunks * columns;
            const int64_t right = std::min(n, left + columns);
            for (int64_t j = left; j < right; j += use.columns)
              for (int64_t i = top; i < bottom; i += use.rows)
                use.multiply(k, a + i * k, b + j * k, alpha, c + j * step + i,
                             step, std::min<int64_t>(use.rows, bottom - i),
                             std::min<int64_t>(use.columns, right - j));
          }
        });
}

}  // namespace

template <class T>
void add_product(int64_t m, int64_t n, int64_t k, T alpha, Operand<T> a,
                 Operand<T> b, T* c, int64_t step) {
  if (alpha == 0 || m == 0 || n == 0 || k == 0) return;
  if (m * n * k <= orders().lapack_few) {
    for (int64_t j = 0; j < n; ++j)
      for (int64_t l = 0; l < k; ++l) {
        const T factor = alpha * b.at(l, j);
        for (int64_t i = 0; i < m; ++i) c[j * step + i] += factor * a.at(i, l);
      }
    return;
  }
  const Kernels<T>& use = kernels<T>();
  const int64_t part_of_k = orders().lapack_depth;
  const int64_t longest = std::min(k, part_of_k);
  // Alone, a worker uses what it has packed while that is in its cache.
  const int64_t rows_at_once =
      workers() == 1 || m * n * k < tuning().lapack_worth_sharing ? packed_rows
                                                                  : m;
  const auto packed_a =
      room_for<T>(std::min(m, rows_at_once), use.rows, longest);
  const auto packed_b = room_for<T>(n, use.columns, longest);
  for (int64_t l = 0; l < k; l += part_of_k) {
    const int64_t part = std::min(part_of_k, k - l);
    pack_shared(n, use.columns, part, b.block(l, 0).transposed(),
                packed_b.get());
    for (int64_t i = 0; i < m; i += rows_at_once) {
      const int64_t some = std::min(rows_at_once, m - i);
      pack_shared(some, use.rows, part, a.block(i, l), packed_a.get());
      add_packed(some, n, part, alpha, packed_a.get(), packed_b.get(), c + i,
                 step);
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
