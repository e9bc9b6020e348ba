// What LAPACK does with triangles of matrices, in place of the reference BLAS's
// trsm, trmm, syrk and syr2k: in halves, so that what is large is products.
#include <algorithm>
#include <cstddef>

#include "runtime/lapack/kernels.h"
#include "runtime/tuning/tuning.h"

namespace unisono::lapack {
namespace {

constexpr int64_t small = small_triangle;

/// Where a triangle is divided: the first part is a whole number of small ones.
int64_t half_of(int64_t n) { return (n / 2 + small - 1) / small * small; }

/// A triangle, n by n, as the operand of a product.
template <class T>
struct Triangle {
  Operand<T> elements;
  int64_t n = 0;
  bool lower = false, unit = false;

  Triangle first(int64_t n1) const { return {elements, n1, lower, unit}; }
  Triangle second(int64_t n1) const {
    return {elements.block(n1, n1), n - n1, lower, unit};
  }
  /// The block beside the two: of a lower one below the first.
  Operand<T> beside(int64_t n1) const {
    return lower ? elements.block(n1, 0) : elements.block(0, n1);
  }
  T diagonal(int64_t i) const { return unit ? T(1) : elements.at(i, i); }
};

/// A small one in memory of its own, by columns; zeros elsewhere.
template <class T>
struct Dense {
  explicit Dense(const Triangle<T>& of) {
    std::fill_n(columns[0], of.n * small, T(0));
    for (int64_t j = 0; j < of.n; ++j)
      for (int64_t i = of.lower ? j : 0; i < (of.lower ? of.n : j + 1); ++i)
        columns[j][i] = i == j ? of.diagonal(i) : of.elements.at(i, j);
  }
  T columns[small][small];
};

// B is m by n, by columns; triangles stand to the left of it, or to the right.

/// B = the inverse of the triangle @ B
template <class T>
void divide_left(const Triangle<T>& a, int64_t columns, T* b, int64_t step) {
  const int64_t n = a.n;
  if (n > small) {
    const int64_t n1 = half_of(n), n2 = n - n1;
    T *first = b, *second = b + n1;
    if (a.lower) {
      divide_left(a.first(n1), columns, first, step);
      add_product<T>(n2, columns, n1, -1, a.beside(n1), {first, 1, step},
                     second, step);
      divide_left(a.second(n1), columns, second, step);
    } else {
      divide_left(a.second(n1), columns, second, step);
      add_product<T>(n1, columns, n2, -1, a.beside(n1), {second, 1, step},
                     first, step);
      divide_left(a.first(n1), columns, first, step);
    }
    return;
  }
  if (n <= orders().lapack_few_rows) {
    for (int64_t j = 0; j < columns; ++j)
      for (int64_t i = 0; i < n; ++i) {
        const int64_t l = a.lower ? i : n - 1 - i;
        T* x = b + j * step;
        if (!a.unit) x[l] /= a.elements.at(l, l);
        for (int64_t k = a.lower ? l + 1 : 0; k < (a.lower ? n : l); ++k)
          x[k] -= x[l] * a.elements.at(k, l);
      }
    return;
  }
  const Dense<T> dense(a);
  kernels<T>().divide(n, a.lower, a.unit, dense.columns[0], columns, b, step);
}

/// B = B @ the inverse of the triangle
template <class T>
void divide_right(int64_t m, const Triangle<T>& a, T* b, int64_t step) {
  const int64_t n = a.n;
  if (n > small) {
    const int64_t n1 = half_of(n), n2 = n - n1;
    T *first = b, *second = b + n1 * step;
    if (a.lower) {
      divide_right(m, a.second(n1), second, step);
      add_product<T>(m, n1, n2, -1, {second, 1, step}, a.beside(n1), first,
                     step);
      divide_right(m, a.first(n1), first, step);
    } else {
      divide_right(m, a.first(n1), first, step);
      add_product<T>(m, n2, n1, -1, {first, 1, step}, a.beside(n1), second,
                     step);
      divide_right(m, a.second(n1), second, step);
    }
    return;
  }
  const auto add_columns = kernels<T>().add_columns;
  for (int64_t i = 0; i < n; ++i) {
    const int64_t j = a.lower ? n - 1 - i : i;
    const int64_t from = a.lower ? j + 1 : 0, count = i;
    T* column = b + j * step;
    add_columns(m, count, -1, b + from * step, step,
                a.elements.block(from, j).elements, a.elements.row, column);
    if (a.unit) continue;
    const T divisor = a.elements.at(j, j);
    for (int64_t k = 0; k < m; ++k) column[k] /= divisor;
  }
}

/// B = the triangle @ B
template <class T>
void multiply_left(const Triangle<T>& a, int64_t columns, T* b, int64_t step) {
  const int64_t n = a.n;
  if (n > small) {
    const int64_t n1 = half_of(n), n2 = n - n1;
    T *first = b, *second = b + n1;
    if (a.lower) {
      multiply_left(a.second(n1), columns, second, step);
      add_product<T>(n2, columns, n1, 1, a.beside(n1), {first, 1, step}, second,
                     step);
      multiply_left(a.first(n1), columns, first, step);
    } else {
      multiply_left(a.first(n1), columns, first, step);
      add_product<T>(n1, columns, n2, 1, a.beside(n1), {second, 1, step}, first,
                     step);
      multiply_left(a.second(n1), columns, second, step);
    }
    return;
  }
  const Dense<T> dense(a);
  for (int64_t j = 0; j < columns; ++j) {
    T sums[small] = {};
    for (int64_t l = 0; l < n; ++l)
      for (int64_t k = 0; k < small; ++k)
        sums[k] += dense.columns[l][k] * b[j * step + l];
    std::copy_n(sums, n, b + j * step);
  }
}

/// B = B @ the triangle
template <class T>
void multiply_right(int64_t m, const Triangle<T>& a, T* b, int64_t step) {
  const int64_t n = a.n;
  if (n > small) {
    const int64_t n1 = half_of(n), n2 = n - n1;
    T *first = b, *second = b + n1 * step;
    if (a.lower) {
      multiply_right(m, a.first(n1), first, step);
      add_product<T>(m, n1, n2, 1, {second, 1, step}, a.beside(n1), first,
                     step);
      multiply_right(m, a.second(n1), second, step);
    } else {
      multiply_right(m, a.second(n1), second, step);
      add_product<T>(m, n2, n1, 1, {first, 1, step}, a.beside(n1), second,
                     step);
      multiply_right(m, a.first(n1), first, step);
    }
    return;
  }
  const auto add_columns = kernels<T>().add_columns;
  for (int64_t i = 0; i < n; ++i) {
    const int64_t j = a.lower ? i : n - 1 - i;
    const int64_t from = a.lower ? j + 1 : 0, count = n - 1 - i;
    T* column = b + j * step;
    if (const T factor = a.diagonal(j); factor != 1)
      for (int64_t k = 0; k < m; ++k) column[k] *= factor;
    add_columns(m, count, 1, b + from * step, step,
                a.elements.block(from, j).elements, a.elements.row, column);
  }
}

/// The lower or the upper triangle of C += alpha * (A @ B), n by n.
template <class T>
void add_triangle(bool lower, int64_t n, int64_t k, T alpha, Operand<T> a,
                  Operand<T> b, T* c, int64_t step) {
  constexpr int64_t most = 2 * small;
  if (n > most) {
    const int64_t n1 = half_of(n), n2 = n - n1;
    const Operand<T> below = a.block(n1, 0), beside = b.block(0, n1);
    add_triangle(lower, n1, k, alpha, a, b, c, step);
    if (lower)
      add_product(n2, n1, k, alpha, below, b, c + n1, step);
    else
      add_product(n1, n2, k, alpha, a, beside, c + n1 * step, step);
    add_triangle(lower, n2, k, alpha, below, beside, c + n1 * (step + 1), step);
    return;
  }
  T square[most * most] = {};
  const auto copy = [&](const T* from, int64_t from_step, T* to,
                        int64_t to_step) {
    for (int64_t j = 0; j < n; ++j) {
      const int64_t first = lower ? j : 0, count = lower ? n - j : j + 1;
      std::copy_n(from + j * from_step + first, count,
                  to + j * to_step + first);
    }
  };
  copy(c, step, square, n);
  add_product(n, n, k, alpha, a, b, square, n);
  copy(square, n, c, step);
}

template <class T>
void scale_triangle(bool lower, int64_t n, T beta, T* c, int64_t step) {
  for (int64_t j = 0; j < n; ++j)
    scale(lower ? n - j : j + 1, 1, beta, c + j * step + (lower ? j : 0), step);
}

template <class T>
Triangle<T> triangle(const char* part, const char* form, const char* diagonal,
                     int64_t n, const T* a, int64_t step) {
  const bool transposed = !is(form, 'N');
  Operand<T> elements{a, 1, step};
  if (transposed) elements = elements.transposed();
  return {elements, n, is(part, 'L') != transposed, is(diagonal, 'U')};
}

/// BLAS's trsm: op(A) X = alpha B, or X op(A) = alpha B.
template <class T>
void divide(const char* side, const char* part, const char* form,
            const char* diagonal, int64_t m, int64_t n, T alpha, const T* a,
            int64_t a_step, T* b, int64_t step) {
  scale(m, n, alpha, b, step);
  if (alpha == 0) return;
  if (is(side, 'L'))
    divide_left(triangle(part, form, diagonal, m, a, a_step), n, b, step);
  else
    divide_right(m, triangle(part, form, diagonal, n, a, a_step), b, step);
}

/// BLAS's trmm: alpha op(A) B, or alpha B op(A).
template <class T>
void multiply(const char* side, const char* part, const char* form,
              const char* diagonal, int64_t m, int64_t n, T alpha, const T* a,
              int64_t a_step, T* b, int64_t step) {
  scale(m, n, alpha, b, step);
  if (alpha == 0) return;
  if (is(side, 'L'))
    multiply_left(triangle(part, form, diagonal, m, a, a_step), n, b, step);
  else
    multiply_right(m, triangle(part, form, diagonal, n, a, a_step), b, step);
}

/// BLAS's syr2k, and syrk where B is null: of op(A) op(B)^T and its transpose,
/// or of op(A) op(A)^T, one triangle is added to beta times C's.
template <class T>
void rank_k(const char* part, const char* form, int64_t n, int64_t k, T alpha,
            const T* a, int64_t a_step, const T* b, int64_t b_step, T beta,
            T* c, int64_t step) {
  const bool lower = is(part, 'L');
  scale_triangle(lower, n, beta, c, step);
  Operand<T> left{a, 1, a_step}, right{b ? b : a, 1, b ? b_step : a_step};
  if (!is(form, 'N')) left = left.transposed(), right = right.transposed();
  add_triangle(lower, n, k, alpha, left, right.transposed(), c, step);
  if (b) add_triangle(lower, n, k, alpha, right, left.transposed(), c, step);
}

}  // namespace
}  // namespace unisono::lapack

#define TRIANGLES(x, T)                                                       \
  extern "C" void x##trsm_(const char* side, const char* part,                \
                           const char* form, const char* diagonal,            \
                           const int* m, const int* n, const T* alpha,        \
                           const T* a, const int* lda, T* b, const int* ldb,  \
                           size_t, size_t, size_t, size_t) {                  \
    unisono::lapack::divide<T>(side, part, form, diagonal, *m, *n, *alpha, a, \
                               *lda, b, *ldb);                                \
  }                                                                           \
  extern "C" void x##trmm_(const char* side, const char* part,                \
                           const char* form, const char* diagonal,            \
                           const int* m, const int* n, const T* alpha,        \
                           const T* a, const int* lda, T* b, const int* ldb,  \
                           size_t, size_t, size_t, size_t) {                  \
    unisono::lapack::multiply<T>(side, part, form, diagonal, *m, *n, *alpha,  \
                                 a, *lda, b, *ldb);                           \
  }                                                                           \
  extern "C" void x##syrk_(const char* part, const char* form, const int* n,  \
                           const int* k, const T* alpha, const T* a,          \
                           const int* lda, const T* beta, T* c,               \
                           const int* ldc, size_t, size_t) {                  \
    unisono::lapack::rank_k<T>(part, form, *n, *k, *alpha, a, *lda, nullptr,  \
                               0, *beta, c, *ldc);                            \
  }                                                                           \
  extern "C" void x##syr2k_(                                                  \
      const char* part, const char* form, const int* n, const int* k,         \
      const T* alpha, const T* a, const int* lda, const T* b, const int* ldb, \
      const T* beta, T* c, const int* ldc, size_t, size_t) {                  \
    unisono::lapack::rank_k<T>(part, form, *n, *k, *alpha, a, *lda, b, *ldb,  \
                               *beta, c, *ldc);                               \
  }
TRIANGLES(s, float)
TRIANGLES(d, double)
