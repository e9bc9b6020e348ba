// The products that LAPACK calls, and factors of matrices that are large enough
// for them; small ones are held to SciPy
// (tests/programs/library/linalg_scipy.uni).
#include "runtime/lapack/lapack.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <vector>

using namespace unisono;

extern "C" {
void dgemm_(const char*, const char*, const int*, const int*, const int*,
            const double*, const double*, const int*, const double*, const int*,
            const double*, double*, const int*, size_t, size_t);
void sgemm_(const char*, const char*, const int*, const int*, const int*,
            const float*, const float*, const int*, const float*, const int*,
            const float*, float*, const int*, size_t, size_t);
}

namespace {

constexpr auto gemm(double) { return dgemm_; }
constexpr auto gemm(float) { return sgemm_; }

template <class T>
std::vector<T> random_numbers(int64_t count, unsigned seed) {
  std::mt19937 bits(seed);
  std::vector<T> out(static_cast<size_t>(count));
  for (T& x : out) x = static_cast<T>(bits() % 2001) / 1000 - 1;
  return out;
}

/// The largest distance of C = -1.5 * op(A) @ op(B) + beta * C from what it
/// is, in roundings of k terms; columns lie further apart than rows need.
template <class T>
double product_error(int m, int n, int k, char a_is, char b_is, T beta) {
  const int rows_a = a_is == 'N' ? m : k, columns_a = a_is == 'N' ? k : m;
  const int rows_b = b_is == 'N' ? k : n, columns_b = b_is == 'N' ? n : k;
  const int lda = rows_a + 2, ldb = rows_b + 1, ldc = m + 3;
  const auto a = random_numbers<T>(int64_t{lda} * columns_a, 1),
             b = random_numbers<T>(int64_t{ldb} * columns_b, 2),
             before = random_numbers<T>(int64_t{ldc} * n, 3);
  auto c = before;
  const T alpha = -1.5;
  gemm(T())(&a_is, &b_is, &m, &n, &k, &alpha, a.data(), &lda, b.data(), &ldb,
            &beta, c.data(), &ldc, 1, 1);
  double worst = 0;
  for (int j = 0; j < n; ++j)
    for (int i = 0; i < ldc; ++i) {
      const double old = before[j * ldc + i];
      double sum = 0;
      for (int l = 0; i < m && l < k; ++l)
        sum += double{a_is == 'N' ? a[l * lda + i] : a[i * lda + l]} *
               double{b_is == 'N' ? b[j * ldb + l] : b[l * ldb + j]};
      const double expected = i < m ? alpha * sum + beta * old : old;
      worst = std::max(worst, std::abs(expected - c[j * ldc + i]) / (2 + k));
    }
  return worst / std::numeric_limits<T>::epsilon();
}

template <class T>
void check_products() {
  for (const int m : {1, 3, 8, 17, 100, 130})
    for (const int n : {1, 4, 5, 33})
      for (const int k : {0, 1, 2, 64, 257, 600})
        for (const char a_is : {'N', 'T'})
          for (const char b_is : {'N', 'T'})
            for (const T beta : {T(0), T(1), T(0.5)}) {
              CAPTURE(m);
              CAPTURE(n);
              CAPTURE(k);
              CAPTURE(a_is);
              CAPTURE(b_is);
              CHECK(product_error<T>(m, n, k, a_is, b_is, beta) < 2);
            }
}

/// x @ y of row-major matrices.
std::vector<double> times(int64_t m, int64_t k, int64_t n,
                          const std::vector<double>& x,
                          const std::vector<double>& y) {
  std::vector<double> out(static_cast<size_t>(m * n));
  for (int64_t i = 0; i < m; ++i)
    for (int64_t l = 0; l < k; ++l)
      for (int64_t j = 0; j < n; ++j)
        out[i * n + j] += x[i * k + l] * y[l * n + j];
  return out;
}

double distance(const std::vector<double>& x, const std::vector<double>& y) {
  double worst = 0;
  for (size_t i = 0; i < x.size(); ++i)
    worst = std::max(worst, std::abs(x[i] - y[i]));
  return worst;
}

std::vector<double> transposed(int64_t m, int64_t n,
                               const std::vector<double>& x) {
  std::vector<double> out(x.size());
  for (int64_t i = 0; i < m; ++i)
    for (int64_t j = 0; j < n; ++j) out[j * m + i] = x[i * n + j];
  return out;
}

}  // namespace

TEST_CASE("products of matrices for LAPACK") {
  check_products<double>();
  check_products<float>();
}

TEST_CASE("0 * beta forgets what was not a number") {
  CHECK(product_error<double>(40, 40, 40, 'N', 'N', 0) < 2);
  const int n = 40;
  std::vector<double> a(1600, 1.0), c(1600, std::nan(""));
  const double one = 1, zero = 0;
  dgemm_("N", "N", &n, &n, &n, &one, a.data(), &n, a.data(), &n, &zero,
         c.data(), &n, 1, 1);
  CHECK(std::ranges::all_of(c, [](double x) { return x == 40; }));
}

TEST_CASE("factors of matrices of some hundred rows") {
  for (const int64_t n : {65, 100, 129, 200}) {
    CAPTURE(n);
    auto a = random_numbers<double>(n * n, 7);
    for (int64_t i = 0; i < n; ++i) a[i * n + i] += 3;
    const auto b = random_numbers<double>(n * 20, 8);
    std::vector<double> x(b.size()), l(a.size()), q(a.size()), r(a.size());
    lapack::solve(n, int64_t{20}, a.data(), b.data(), x.data());
    CHECK(distance(times(n, n, 20, a, x), b) < 1e-10);

    const auto positive = times(n, n, n, a, transposed(n, n, a));
    lapack::cholesky(n, positive.data(), l.data());
    CHECK(distance(times(n, n, n, l, transposed(n, n, l)), positive) < 1e-10);
    for (const auto triangle :
         {lapack::Triangle::lower, lapack::Triangle::upper}) {
      const bool lower = triangle == lapack::Triangle::lower;
      const auto t = lower ? l : transposed(n, n, l);
      lapack::solve_triangular(triangle, n, int64_t{20}, t.data(), b.data(),
                               x.data());
      CHECK(distance(times(n, n, 20, t, x), b) < 1e-10);
    }

    lapack::qr(n, n, n, a.data(), q.data(), r.data());
    CHECK(distance(times(n, n, n, q, r), a) < 1e-10);

    std::vector<double> w(n), v(a.size()), scaled(a.size());
    lapack::eigh(n, positive.data(), w.data(), v.data());
    for (int64_t i = 0; i < n * n; ++i) scaled[i] = v[i] * w[i % n];
    CHECK(distance(times(n, n, n, scaled, transposed(n, n, v)), positive) <
          1e-9);
    CHECK(std::ranges::is_sorted(w));

    std::vector<double> u(a.size()), s(n), vt(a.size());
    lapack::svd(n, n, false, a.data(), u.data(), s.data(), vt.data());
    for (int64_t i = 0; i < n * n; ++i) scaled[i] = u[i] * s[i % n];
    CHECK(distance(times(n, n, n, scaled, vt), a) < 1e-10);
  }
}
