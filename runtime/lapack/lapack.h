#pragma once
// Factors of matrices, and what is solved by them, by LAPACK: one matrix at a
// time, in the thread that calls, which the workers of its pool help where
// products are large. Matrices are dense and row-major, of f32 or f64; a size
// may be 0. Exceptions are std::bad_alloc, and Stopped (runtime/stop.h) within
// some milliseconds after the thread's stop flag is set; results are then
// anything.
#include <cstdint>

namespace unisono::lapack {

/// The most rows and columns of a matrix that `eigh` and `svd` take: their work
/// arrays are counted in 32 bits.
constexpr int64_t most_rows = 16384;

/// l[n, n], lower, of which l @ l.T is the symmetric part of a, (a + a.T) / 2.
/// NaN in the lower triangle where that is not positive definite.
template <class T>
void cholesky(int64_t n, const T* a, T* l);

/// lu[n, n]: a unit lower triangle and an upper one, whose product is a with
/// row i and row pivots[i] exchanged, for i from 0 on.
template <class T>
void lu(int64_t n, const T* a, T* lu, int32_t* pivots);

/// x[n, k], of which a[n, n] @ x is b[n, k]. Where a is singular a pivot is 0,
/// by which is divided as floats are.
template <class T>
void solve(int64_t n, int64_t k, const T* a, const T* b, T* x);

/// The inverse of a[n, n], as `solve` has it.
template <class T>
void inverse(int64_t n, const T* a, T* x);

/// `solve` of a triangle of a: the other one is not read.
enum class Triangle { lower, upper };
template <class T>
void solve_triangular(Triangle triangle, int64_t n, int64_t k, const T* a,
                      const T* b, T* x);

/// q[m, k] with orthogonal columns and r[k, n], upper, of which q @ r is
/// a[m, n]; k is m or the smaller of m and n. Signs are LAPACK's.
template <class T>
void qr(int64_t m, int64_t n, int64_t k, const T* a, T* q, T* r);

/// Eigenvalues w[n], ascending, of the symmetric part of a[n, n]; eigenvectors
/// in the columns of v[n, n], unless that is null. All NaN if an element of a
/// is not finite.
template <class T>
void eigh(int64_t n, const T* a, T* w, T* v);

/// Singular values s[k], descending, k being the smaller of m and n, and
/// u[m, columns], vt[columns, n] with orthogonal columns and rows, of which
/// u[:, :k] * s @ vt[:k] is a[m, n]. `whole`: u[m, m] and vt[n, n]. Values
/// alone if u is null. All NaN if an element of a is not finite.
template <class T>
void svd(int64_t m, int64_t n, bool whole, const T* a, T* u, T* s, T* vt);

}  // namespace unisono::lapack
