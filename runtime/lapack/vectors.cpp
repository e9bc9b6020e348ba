// Products of matrices and vectors for LAPACK, in place of the reference BLAS's
// gemv, symv and ger: half of what eigenvalues and singular values cost.
#include <algorithm>
#include <cstddef>
#include <type_traits>
#include <vector>

#include "runtime/lapack/kernels.h"

namespace unisono::lapack {
namespace {

/// What an element costs that is read and multiplied once, in multiplications
/// of products; and the rows that workers share are a multiple of these.
constexpr int64_t read = 8, rows = 64;

/// A vector of Fortran: `step` apart, from the last on if that is negative.
template <class T>
struct Strided {
  Strided(T* elements, int64_t count, int64_t step)
      : first(step < 0 ? elements - (count - 1) * step : elements),
        count(count),
        step(step) {}
  /// The elements beside one another: where they are, or copied into `room`.
  T* dense(std::vector<std::remove_const_t<T>>& room) const {
    if (step == 1) return first;
    for (int64_t i = 0; i < count; ++i) room.push_back(first[i * step]);
    return room.data();
  }
  void take(const T* from) const {
    for (int64_t i = 0; step != 1 && i < count; ++i) first[i * step] = from[i];
  }

  T* first;
  int64_t count, step;
};

/// y = alpha * op(A) @ x + beta * y, A being m by n: BLAS's gemv.
template <class T>
void add_vector_product(bool transposed, int64_t m, int64_t n, T alpha,
                        const T* a, int64_t step, const T* x, int64_t x_step,
                        T beta, T* y, int64_t y_step) {
  const Strided<const T> from(x, transposed ? m : n, x_step);
  const Strided<T> to(y, transposed ? n : m, y_step);
  scale(1, to.count, beta, to.first, to.step);
  if (alpha == 0) return;
  std::vector<T> room;
  if (transposed) {
    const T* in = from.dense(room);
    share(n, m * read, [&](int64_t begin, int64_t end) {
      kernels<T>().add_dots(m, end - begin, alpha, a + begin * step, step, in,
                            to.first + begin * to.step, to.step);
    });
    return;
  }
  T* out = to.dense(room);
  share((m + rows - 1) / rows, rows * n * read,
        [&](int64_t begin, int64_t end) {
          begin *= rows, end = std::min(m, end * rows);
          kernels<T>().add_columns(end - begin, n, alpha, a + begin, step,
                                   from.first, from.step, out + begin);
        });
  to.take(out);
}

/// y = alpha * A @ x + beta * y, of whose symmetric A one triangle is there:
/// BLAS's symv.
template <class T>
void add_symmetric(bool lower, int64_t n, T alpha, const T* a, int64_t step,
                   const T* x, int64_t x_step, T beta, T* y, int64_t y_step) {
  const Strided<const T> from(x, n, x_step);
  const Strided<T> to(y, n, y_step);
  std::vector<T> x_room, y_room;
  const T* in = from.dense(x_room);
  T* out = to.dense(y_room);
  scale(n, 1, beta, out, 1);
  const auto add_and_dot = kernels<T>().add_and_dot;
  StopPoll poll(tuning().lapack_between_looks / read);
  for (int64_t j = 0; alpha != 0 && j < n; ++j) {
    const int64_t first = lower ? j + 1 : 0, count = lower ? n - j - 1 : j;
    const T dot = add_and_dot(count, a + j * step + first, alpha * in[j],
                              in + first, out + first);
    out[j] += alpha * (a[j * step + j] * in[j] + dot);
    poll.did(count + 1);
  }
  to.take(out);
}

/// A += alpha * x @ y^T: BLAS's ger.
template <class T>
void add_outer(int64_t m, int64_t n, T alpha, const T* x, int64_t x_step,
               const T* y, int64_t y_step, T* a, int64_t step) {
  if (alpha == 0) return;
  std::vector<T> room;
  const T* left = Strided<const T>(x, m, x_step).dense(room);
  const Strided<const T> right(y, n, y_step);
  const auto add_columns = kernels<T>().add_columns;
  share(n, m * read, [&](int64_t begin, int64_t end) {
    for (int64_t j = begin; j < end; ++j)
      add_columns(m, 1, alpha, left, m, right.first + j * right.step, 1,
                  a + j * step);
  });
}

}  // namespace
}  // namespace unisono::lapack

#define VECTORS(x, T)                                                          \
  extern "C" void x##gemv_(const char* form, const int* m, const int* n,       \
                           const T* alpha, const T* a, const int* lda,         \
                           const T* in, const int* incx, const T* beta,        \
                           T* out, const int* incy, size_t) {                  \
    unisono::lapack::add_vector_product<T>(!unisono::lapack::is(form, 'N'),    \
                                           *m, *n, *alpha, a, *lda, in, *incx, \
                                           *beta, out, *incy);                 \
  }                                                                            \
  extern "C" void x##symv_(const char* part, const int* n, const T* alpha,     \
                           const T* a, const int* lda, const T* in,            \
                           const int* incx, const T* beta, T* out,             \
                           const int* incy, size_t) {                          \
    unisono::lapack::add_symmetric<T>(unisono::lapack::is(part, 'L'), *n,      \
                                      *alpha, a, *lda, in, *incx, *beta, out,  \
                                      *incy);                                  \
  }                                                                            \
  extern "C" void x##ger_(const int* m, const int* n, const T* alpha,          \
                          const T* left, const int* incx, const T* right,      \
                          const int* incy, T* a, const int* lda) {             \
    unisono::lapack::add_outer<T>(*m, *n, *alpha, left, *incx, right, *incy,   \
                                  a, *lda);                                    \
  }
VECTORS(s, float)
VECTORS(d, double)
