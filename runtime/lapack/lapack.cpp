#include "runtime/lapack/lapack.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstring>
#include <limits>
#include <memory>
#include <utility>
#include <vector>

#include "runtime/check.h"
#include "runtime/lapack/kernels.h"

// Fortran: arguments are pointers, integers have 32 bits, and the length of
// each text follows behind all arguments.
extern "C" {
#define ROUTINES(T, x)                                                        \
  void x##potrf_(const char* uplo, const int* n, T* a, const int* lda,        \
                 int* info, size_t);                                          \
  void x##getrf_(const int* m, const int* n, T* a, const int* lda,            \
                 int* pivots, int* info);                                     \
  void x##trsm_(const char* side, const char* uplo, const char* trans,        \
                const char* diag, const int* m, const int* n, const T* alpha, \
                const T* a, const int* lda, T* b, const int* ldb, size_t,     \
                size_t, size_t, size_t);                                      \
  void x##geqrf_(const int* m, const int* n, T* a, const int* lda, T* tau,    \
                 T* work, const int* lwork, int* info);                       \
  void x##orgqr_(const int* m, const int* n, const int* k, T* a,              \
                 const int* lda, const T* tau, T* work, const int* lwork,     \
                 int* info);                                                  \
  void x##syevd_(const char* jobz, const char* uplo, const int* n, T* a,      \
                 const int* lda, T* w, T* work, const int* lwork, int* iwork, \
                 const int* liwork, int* info, size_t, size_t);               \
  void x##gesdd_(const char* jobz, const int* m, const int* n, T* a,          \
                 const int* lda, T* s, T* u, const int* ldu, T* vt,           \
                 const int* ldvt, T* work, const int* lwork, int* iwork,      \
                 int* info, size_t);
ROUTINES(float, s)
ROUTINES(double, d)
#undef ROUTINES

// What the archives of LAPACK need besides the C library is here, so that no
// runtime of Fortran is linked: who is told of a wrong argument, and `a // b`.
// In place of LAPACK's own are two functions that it calls wherever it is long
// without a product: they look for the stop flag. Roots of secular equations
// and iterations for values alone ask for the machine's numbers, which compares
// letters; norms ask of each element whether it is a number.
void xerbla_(const char* /*routine*/, const int* /*argument*/, size_t) {
  unisono::check_failed("an argument that LAPACK refuses", __FILE__, __LINE__);
}
// NOLINTNEXTLINE(bugprone-reserved-identifier): the compiler's name for it
void _gfortran_concat_string(size_t size, char* out, size_t size_a,
                             const char* a, size_t size_b, const char* b) {
  for (size_t i = 0; i < size; ++i)
    out[i] = i < size_a ? a[i] : i - size_a < size_b ? b[i - size_a] : ' ';
}
int lsame_(const char* a, const char* b, size_t, size_t) {
  unisono::poll_stop();
  return unisono::lapack::is(a, static_cast<char>(*b & ~0x20));
}
int disnan_(const double* x) {
  unisono::poll_stop();
  return std::isnan(*x);
}
int sisnan_(const float* x) {
  unisono::poll_stop();
  return std::isnan(*x);
}
}  // extern "C"

namespace unisono::lapack {
namespace {

/// The routines of an element type.
template <class T>
struct Routines;
#define ROUTINES(T, x)                       \
  template <>                                \
  struct Routines<T> {                       \
    static constexpr auto potrf = x##potrf_; \
    static constexpr auto getrf = x##getrf_; \
    static constexpr auto trsm = x##trsm_;   \
    static constexpr auto geqrf = x##geqrf_; \
    static constexpr auto orgqr = x##orgqr_; \
    static constexpr auto syevd = x##syevd_; \
    static constexpr auto gesdd = x##gesdd_; \
  };
ROUTINES(float, s)
ROUTINES(double, d)
#undef ROUTINES

int size(int64_t n) {
  CHECK(n >= 0 && n <= std::numeric_limits<int>::max());
  return static_cast<int>(n);
}

/// f(i, j) for all places of a matrix, in squares that lie in the cache both
/// ways; workers share rows of squares.
template <class F>
void each_place(int64_t rows, int64_t columns, const F& f) {
  constexpr int64_t edge = 32, moved = 16;  // multiplications, about
  share((rows + edge - 1) / edge, edge * columns * moved,
        [&](int64_t begin, int64_t end) {
          for (int64_t i0 = begin * edge; i0 < end * edge; i0 += edge)
            for (int64_t j0 = 0; j0 < columns; j0 += edge)
              for (int64_t i = i0; i < std::min(i0 + edge, rows); ++i)
                for (int64_t j = j0; j < std::min(j0 + edge, columns); ++j)
                  f(i, j);
        });
}

/// A matrix by columns, as LAPACK has it; its elements are anything to begin
/// with.
template <class T>
struct Columns {
  Columns(int64_t rows, int64_t columns)
      : rows(size(rows)),
        columns(size(columns)),
        elements(std::make_unique_for_overwrite<T[]>(
            static_cast<size_t>(rows * columns))) {}
  Columns(int64_t rows, int64_t columns, const T* from)
      : Columns(rows, columns) {
    each([&](int64_t i, int64_t j) { at(i, j) = from[i * this->columns + j]; });
  }

  T* data() { return elements.get(); }
  T& at(int64_t i, int64_t j) { return elements[j * rows + i]; }
  void fill(T value) {
    each([&](int64_t i, int64_t j) { at(i, j) = value; });
  }
  /// The distance of two columns, which LAPACK wants to be positive.
  int step() const { return std::max(rows, 1); }

  template <class F>
  void each(const F& f) const {
    each_place(rows, columns, f);
  }
  /// The first `count` columns, row-major.
  void copy_to(T* to, int64_t count) {
    each([&](int64_t i, int64_t j) {
      if (j < count) to[i * count + j] = at(i, j);
    });
  }

  int rows, columns;
  std::unique_ptr<T[]> elements;
};

/// out = (a + a.T) / 2, which is the same by rows and by columns.
template <class T>
void symmetric_part(int64_t n, const T* a, T* out) {
  const T half = 0.5;
  each_place(n, n, [&](int64_t i, int64_t j) {
    out[i * n + j] = half * a[i * n + j] + half * a[j * n + i];
  });
}

template <class T>
constexpr T nan = std::numeric_limits<T>::quiet_NaN();

/// Calls a routine twice: it says how much memory it wants to work with, then
/// gets that.
template <class T, class F>
void with_work(const F& routine) {
  T wanted = 0;
  const int ask = -1;
  routine(&wanted, &ask);
  // A float may have rounded it down.
  const auto count = static_cast<int64_t>(
      std::nextafter(wanted, std::numeric_limits<T>::max()));
  std::vector<T> work;
  work.reserve(static_cast<size_t>(count + 1));
  in_pieces(
      count + 1, tuning().lapack_between_looks,
      [&](int64_t, int64_t end) { work.resize(static_cast<size_t>(end)); });
  const int given = size(static_cast<int64_t>(work.size()));
  routine(work.data(), &given);
}

template <class T>
bool all_finite(const T* x, int64_t count) {
  bool all = true;
  in_pieces(count, tuning().lapack_between_looks,
            [&](int64_t begin, int64_t end) {
              all = all && std::all_of(x + begin, x + end,
                                       [](T e) { return std::isfinite(e); });
            });
  return all;
}

}  // namespace

template <class T>
void cholesky(int64_t n, const T* a, T* l) {
  // In its place: what is below the diagonal by rows is above it by columns.
  symmetric_part(n, a, l);
  const int rows = size(n), step = std::max(rows, 1);
  int info = 0;
  Routines<T>::potrf("U", &rows, l, &step, &info, 1);
  each_place(n, n, [&](int64_t i, int64_t j) {
    T& element = l[i * n + j];
    if (j > i)
      element = 0;
    else if (info != 0)
      element = nan<T>;
  });
}

template <class T>
void lu(int64_t n, const T* a, T* lu, int32_t* pivots) {
  Columns<T> m(n, n, a);
  const int step = m.step();
  int info = 0;
  Routines<T>::getrf(&m.rows, &m.rows, m.data(), &step, pivots, &info);
  for (int64_t i = 0; i < n; ++i) --pivots[i];  // Fortran counts from 1
  m.copy_to(lu, n);
}

namespace {

/// b = the triangle's inverse times b
template <class T>
void divide(Triangle triangle, const char* diagonal, Columns<T>& a,
            Columns<T>& b) {
  const T one = 1;
  const int a_step = a.step(), step = b.step();
  Routines<T>::trsm("L", triangle == Triangle::lower ? "L" : "U", "N", diagonal,
                    &b.rows, &b.columns, &one, a.data(), &a_step, b.data(),
                    &step, 1, 1, 1, 1);
}

}  // namespace

template <class T>
void solve(int64_t n, int64_t k, const T* a, const T* b, T* x) {
  Columns<T> m(n, n, a), out(n, k, b);
  const int step = m.step();
  std::vector<int> pivots(static_cast<size_t>(n));
  int info = 0;  // of a singular matrix the first pivot that is 0
  Routines<T>::getrf(&m.rows, &m.rows, m.data(), &step, pivots.data(), &info);
  StopPoll poll(tuning().lapack_between_looks);
  for (int64_t j = 0; j < k; ++j, poll.did(n))
    for (int64_t i = 0; i < n; ++i)
      std::swap(out.at(i, j), out.at(pivots[static_cast<size_t>(i)] - 1, j));
  divide(Triangle::lower, "U", m, out);
  divide(Triangle::upper, "N", m, out);
  out.copy_to(x, k);
}

template <class T>
void inverse(int64_t n, const T* a, T* x) {
  const auto unit =
      std::make_unique_for_overwrite<T[]>(static_cast<size_t>(n * n));
  each_place(n, n, [&](int64_t i, int64_t j) { unit[i * n + j] = i == j; });
  solve(n, n, a, unit.get(), x);
}

template <class T>
void solve_triangular(Triangle triangle, int64_t n, int64_t k, const T* a,
                      const T* b, T* x) {
  Columns<T> m(n, n, a), out(n, k, b);
  divide(triangle, "N", m, out);
  out.copy_to(x, k);
}

template <class T>
void qr(int64_t m, int64_t n, int64_t k, const T* a, T* q, T* r) {
  const int reflectors = size(std::min(m, n));
  Columns<T> factors(m, std::max(n, k));
  factors.each([&](int64_t i, int64_t j) {
    factors.at(i, j) = j < n ? a[i * n + j] : T(0);
  });
  const int step = factors.step(), columns = size(n), wanted = size(k);
  std::vector<T> tau(static_cast<size_t>(std::max(reflectors, 1)));
  int info = 0;
  with_work<T>([&](T* work, const int* count) {
    Routines<T>::geqrf(&factors.rows, &columns, factors.data(), &step,
                       tau.data(), work, count, &info);
  });
  each_place(k, n, [&](int64_t i, int64_t j) {
    r[i * n + j] = j < i ? T(0) : factors.at(i, j);
  });
  with_work<T>([&](T* work, const int* count) {
    Routines<T>::orgqr(&factors.rows, &wanted, &reflectors, factors.data(),
                       &step, tau.data(), work, count, &info);
  });
  factors.copy_to(q, k);
}

template <class T>
void eigh(int64_t n, const T* a, T* w, T* v) {
  CHECK(n <= most_rows);
  Columns<T> m(n, n);
  symmetric_part(n, a, m.data());
  const int step = m.step();
  int info = 1;
  if (all_finite(a, n * n)) {
    int wanted = 0;
    const int ask = -1;
    const char* job = v ? "V" : "N";
    T unused = 0;
    Routines<T>::syevd(job, "L", &m.rows, m.data(), &step, w, &unused, &ask,
                       &wanted, &ask, &info, 1, 1);
    std::vector<int> integers(static_cast<size_t>(std::max(wanted, 1)));
    const int count = size(static_cast<int64_t>(integers.size()));
    with_work<T>([&](T* work, const int* size) {
      Routines<T>::syevd(job, "L", &m.rows, m.data(), &step, w, work, size,
                         integers.data(), *size < 0 ? &ask : &count, &info, 1,
                         1);
    });
  }
  if (info != 0) {
    std::fill_n(w, n, nan<T>);
    m.fill(nan<T>);
  }
  if (v) m.copy_to(v, n);
}

template <class T>
void svd(int64_t m, int64_t n, bool whole, const T* a, T* u, T* s, T* vt) {
  CHECK(std::max(m, n) <= most_rows);
  const int64_t k = std::min(m, n);
  Columns<T> factors(m, n, a);
  Columns<T> left(m, !u ? 0 : whole ? m : k), right(!u ? 0 : whole ? n : k, n);
  const int step = factors.step(), left_step = left.step(),
            right_step = right.step();
  int info = 1;
  if (all_finite(a, m * n)) {
    std::vector<int> integers(static_cast<size_t>(8 * k + 1));
    with_work<T>([&](T* work, const int* count) {
      Routines<T>::gesdd(!u      ? "N"
                         : whole ? "A"
                                 : "S",
                         &factors.rows, &factors.columns, factors.data(), &step,
                         s, left.data(), &left_step, right.data(), &right_step,
                         work, count, integers.data(), &info, 1);
    });
  }
  if (info != 0) {
    std::fill_n(s, k, nan<T>);
    left.fill(nan<T>);
    right.fill(nan<T>);
  } else if (k == 0) {  // of nothing gesdd says nothing
    left.fill(0);
    right.fill(0);
    for (int64_t i = 0; i < left.columns; ++i) left.at(i, i) = 1;
    for (int64_t i = 0; i < right.rows; ++i) right.at(i, i) = 1;
  }
  if (!u) return;
  left.copy_to(u, left.columns);
  right.copy_to(vt, n);
}

#define INSTANTIATE(T)                                                 \
  template void cholesky(int64_t, const T*, T*);                       \
  template void lu(int64_t, const T*, T*, int32_t*);                   \
  template void inverse(int64_t, const T*, T*);                        \
  template void solve(int64_t, int64_t, const T*, const T*, T*);       \
  template void solve_triangular(Triangle, int64_t, int64_t, const T*, \
                                 const T*, T*);                        \
  template void qr(int64_t, int64_t, int64_t, const T*, T*, T*);       \
  template void eigh(int64_t, const T*, T*, T*);                       \
  template void svd(int64_t, int64_t, bool, const T*, T*, T*, T*);
INSTANTIATE(float)
INSTANTIATE(double)

}  // namespace unisono::lapack
