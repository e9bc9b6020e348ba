// What LAPACK is given for the reference BLAS's products, beside the loops that
// define them: all forms, sizes on both sides of each limit.
#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "runtime/lapack/kernels.h"
#include "runtime/pool.h"

extern "C" {
#define ROUTINES(T, x)                                                        \
  void x##gemm_(const char*, const char*, const int*, const int*, const int*, \
                const T*, const T*, const int*, const T*, const int*,         \
                const T*, T*, const int*, size_t, size_t);                    \
  void x##trsm_(const char*, const char*, const char*, const char*,           \
                const int*, const int*, const T*, const T*, const int*, T*,   \
                const int*, size_t, size_t, size_t, size_t);                  \
  void x##trmm_(const char*, const char*, const char*, const char*,           \
                const int*, const int*, const T*, const T*, const int*, T*,   \
                const int*, size_t, size_t, size_t, size_t);                  \
  void x##syrk_(const char*, const char*, const int*, const int*, const T*,   \
                const T*, const int*, const T*, T*, const int*, size_t,       \
                size_t);                                                      \
  void x##syr2k_(const char*, const char*, const int*, const int*, const T*,  \
                 const T*, const int*, const T*, const int*, const T*, T*,    \
                 const int*, size_t, size_t);                                 \
  void x##gemv_(const char*, const int*, const int*, const T*, const T*,      \
                const int*, const T*, const int*, const T*, T*, const int*,   \
                size_t);                                                      \
  void x##symv_(const char*, const int*, const T*, const T*, const int*,      \
                const T*, const int*, const T*, T*, const int*, size_t);      \
  void x##ger_(const int*, const int*, const T*, const T*, const int*,        \
               const T*, const int*, T*, const int*);
ROUTINES(float, s)
ROUTINES(double, d)
#undef ROUTINES
}

namespace {

template <class T>
struct Blas;
#define BLAS(T, x)                           \
  template <>                                \
  struct Blas<T> {                           \
    static constexpr auto gemm = x##gemm_;   \
    static constexpr auto trsm = x##trsm_;   \
    static constexpr auto trmm = x##trmm_;   \
    static constexpr auto syrk = x##syrk_;   \
    static constexpr auto syr2k = x##syr2k_; \
    static constexpr auto gemv = x##gemv_;   \
    static constexpr auto symv = x##symv_;   \
    static constexpr auto ger = x##ger_;     \
  };
BLAS(float, s)
BLAS(double, d)
#undef BLAS

constexpr int sizes[] = {0, 1, 2, 3, 5, 8, 15, 16, 17, 31, 33, 65, 100};
constexpr const char* forms[] = {"N", "T"};
constexpr const char* parts[] = {"L", "U"};

std::mt19937 random_bits(7);

/// By columns, with two rows of padding that nobody may touch.
template <class T>
struct Matrix {
  Matrix(int rows, int columns)
      : rows(rows),
        columns(columns),
        step(rows + 2),
        elements(static_cast<size_t>(step * (columns + 1))) {
    std::uniform_real_distribution<T> some(-1, 1);
    for (T& e : elements) e = some(random_bits);
  }
  T& operator()(int i, int j) {
    return elements[static_cast<size_t>(j) * static_cast<size_t>(step) +
                    static_cast<size_t>(i)];
  }
  T* data() { return elements.data(); }
  const T* data() const { return elements.data(); }

  int rows, columns, step;
  std::vector<T> elements;
};

template <class T>
void check_close(Matrix<T>& found, Matrix<T>& wanted) {
  const double limit = 2000 * std::numeric_limits<T>::epsilon();
  double worst = 0;
  for (size_t i = 0; i < found.elements.size(); ++i) {
    const double a = found.elements[i], b = wanted.elements[i];
    worst = std::max(worst, std::abs(a - b) / (1 + std::abs(b)));
  }
  CHECK(worst <= limit);
}

/// A triangle with a large diagonal, whose other half is not to be read.
template <class T>
Matrix<T> triangle(bool lower, int n) {
  Matrix<T> a(n, n);
  for (int j = 0; j < n; ++j)
    for (int i = 0; i < n; ++i) {
      if (lower ? i < j : i > j) a(i, j) = std::numeric_limits<T>::quiet_NaN();
      if (i != j) a(i, j) /= static_cast<T>(n);
      if (i == j) a(i, j) += a(i, j) < 0 ? T(-2) : T(2);
    }
  return a;
}

template <class T>
T element(Matrix<T>& a, bool lower, bool unit, bool transposed, int i, int j) {
  if (transposed) std::swap(i, j);
  if (i == j && unit) return 1;
  return (lower ? i < j : i > j) ? T(0) : a(i, j);
}

/// B = alpha op(A) B, or alpha B op(A), by definition.
template <class T>
void multiply(bool left, bool lower, bool unit, bool transposed, T alpha,
              Matrix<T>& a, Matrix<T>& b) {
  Matrix<T> old = b;
  for (int j = 0; j < b.columns; ++j)
    for (int i = 0; i < b.rows; ++i) {
      double sum = 0;
      for (int l = 0; l < a.rows; ++l)
        sum += left ? double(element(a, lower, unit, transposed, i, l)) *
                          double(old(l, j))
                    : double(old(i, l)) *
                          double(element(a, lower, unit, transposed, l, j));
      b(i, j) = static_cast<T>(alpha * sum);
    }
}

}  // namespace

TEST_CASE_TEMPLATE("triangles are multiplied and divided by", T, float,
                   double) {
  for (const int n : sizes)
    for (const int other : {1, 3, 4, 6, 40})
      for (const char* side : {"L", "R"})
        for (const char* part : parts)
          for (const char* form : forms)
            for (const char* diagonal : {"N", "U"}) {
              CAPTURE(n);
              CAPTURE(other);
              CAPTURE(std::string(side) + part + form + diagonal);
              const bool left = *side == 'L', lower = *part == 'L';
              const bool unit = *diagonal == 'U', turned = *form == 'T';
              Matrix<T> a = triangle<T>(lower, n);
              Matrix<T> b(left ? n : other, left ? other : n);
              const Matrix<T> before = b;
              const T alpha = T(0.5), back = T(2);
              Matrix<T> wanted = b;
              multiply(left, lower, unit, turned, alpha, a, wanted);
              Blas<T>::trmm(side, part, form, diagonal, &b.rows, &b.columns,
                            &alpha, a.data(), &a.step, b.data(), &b.step, 1, 1,
                            1, 1);
              check_close(b, wanted);
              Blas<T>::trsm(side, part, form, diagonal, &b.rows, &b.columns,
                            &back, a.data(), &a.step, b.data(), &b.step, 1, 1,
                            1, 1);
              Matrix<T> again = before;
              check_close(b, again);
            }
}

TEST_CASE_TEMPLATE("products are added to a triangle", T, float, double) {
  for (const int n : sizes)
    for (const int k : {0, 1, 4, 17, 300})
      for (const char* part : parts)
        for (const char* form : forms) {
          CAPTURE(n);
          CAPTURE(k);
          CAPTURE(std::string(part) + form);
          const bool turned = *form == 'T', lower = *part == 'L';
          Matrix<T> a(turned ? k : n, turned ? n : k), b = a, c(n, n);
          for (T& e : b.elements) e += T(0.25);
          Matrix<T> once = c, twice = c, found = c;
          const T alpha = T(0.75), beta = T(-0.5);
          for (int j = 0; j < n; ++j)
            for (int i = lower ? j : 0; i < (lower ? n : j + 1); ++i) {
              double aa = 0, ab = 0;
              for (int l = 0; l < k; ++l) {
                const auto at = [&](Matrix<T>& m, int r) {
                  return double(turned ? m(l, r) : m(r, l));
                };
                aa += at(a, i) * at(a, j);
                ab += at(a, i) * at(b, j) + at(b, i) * at(a, j);
              }
              once(i, j) = static_cast<T>(alpha * aa + beta * c(i, j));
              twice(i, j) = static_cast<T>(alpha * ab + beta * c(i, j));
            }
          Blas<T>::syrk(part, form, &n, &k, &alpha, a.data(), &a.step, &beta,
                        found.data(), &found.step, 1, 1);
          check_close(found, once);
          Blas<T>::syr2k(part, form, &n, &k, &alpha, a.data(), &a.step,
                         b.data(), &b.step, &beta, c.data(), &c.step, 1, 1);
          check_close(c, twice);
        }
}

TEST_CASE_TEMPLATE("products of matrices", T, float, double) {
  for (const int m : sizes)
    for (const int n : {0, 1, 5, 16, 50})
      for (const int k : {0, 1, 7, 257})
        for (const char* a_is : forms)
          for (const char* b_is : forms) {
            Matrix<T> a(*a_is == 'N' ? m : k, *a_is == 'N' ? k : m);
            Matrix<T> b(*b_is == 'N' ? k : n, *b_is == 'N' ? n : k);
            Matrix<T> c(m, n), wanted = c;
            const T alpha = T(-1.5), beta = T(0.5);
            for (int j = 0; j < n; ++j)
              for (int i = 0; i < m; ++i) {
                double sum = 0;
                for (int l = 0; l < k; ++l)
                  sum += double(*a_is == 'N' ? a(i, l) : a(l, i)) *
                         double(*b_is == 'N' ? b(l, j) : b(j, l));
                wanted(i, j) = static_cast<T>(alpha * sum + beta * c(i, j));
              }
            Blas<T>::gemm(a_is, b_is, &m, &n, &k, &alpha, a.data(), &a.step,
                          b.data(), &b.step, &beta, c.data(), &c.step, 1, 1);
            check_close(c, wanted);
          }
}

TEST_CASE_TEMPLATE("products of a matrix and a vector", T, float, double) {
  for (const int m : sizes)
    for (const int n : sizes)
      for (const int step : {1, 3, -2}) {
        CAPTURE(m);
        CAPTURE(n);
        CAPTURE(step);
        const int stride = std::abs(step);
        Matrix<T> a(m, n), x(stride, n), y(stride, m), x2 = x, y2 = y;
        // Column j of these is element j, or n - 1 - j.
        x.step = x2.step = y.step = y2.step = stride;
        const auto at = [&](Matrix<T>& v, int count, int i) -> T& {
          return v(0, step > 0 ? i : count - 1 - i);
        };
        const T alpha = T(1.25), beta = T(-0.5);
        for (int i = 0; i < m; ++i) {
          double sum = 0;
          for (int j = 0; j < n; ++j) sum += double(a(i, j)) * at(x, n, j);
          at(y2, m, i) = static_cast<T>(alpha * sum + beta * at(y, m, i));
        }
        Blas<T>::gemv("N", &m, &n, &alpha, a.data(), &a.step, x.data(), &step,
                      &beta, y.data(), &step, 1);
        check_close(y, y2);
        for (int j = 0; j < n; ++j) {
          double sum = 0;
          for (int i = 0; i < m; ++i) sum += double(a(i, j)) * at(y, m, i);
          at(x2, n, j) = static_cast<T>(alpha * sum + beta * at(x, n, j));
        }
        Blas<T>::gemv("T", &m, &n, &alpha, a.data(), &a.step, y.data(), &step,
                      &beta, x.data(), &step, 1);
        check_close(x, x2);
        Matrix<T> wanted = a;
        for (int j = 0; j < n; ++j)
          for (int i = 0; i < m; ++i)
            wanted(i, j) += alpha * at(y, m, i) * at(x, n, j);
        Blas<T>::ger(&m, &n, &alpha, y.data(), &step, x.data(), &step, a.data(),
                     &a.step);
        check_close(a, wanted);
      }
}

TEST_CASE_TEMPLATE("products of a symmetric matrix and a vector", T, float,
                   double) {
  for (const int n : sizes)
    for (const char* part : parts) {
      CAPTURE(n);
      const bool lower = *part == 'L';
      Matrix<T> a(n, n), x(n, 1), y(n, 1), wanted = y;
      const T alpha = T(1.25), beta = 0;
      for (int i = 0; i < n; ++i) {
        double sum = 0;
        for (int j = 0; j < n; ++j)
          sum += double((lower ? i >= j : i <= j) ? a(i, j) : a(j, i)) *
                 double(x(j, 0));
        wanted(i, 0) = static_cast<T>(alpha * sum);
        y(i, 0) = std::numeric_limits<T>::quiet_NaN();  // beta is 0
      }
      const int step = 1;
      Blas<T>::symv(part, &n, &alpha, a.data(), &a.step, x.data(), &step, &beta,
                    y.data(), &step, 1);
      check_close(y, wanted);
    }
}

TEST_CASE_TEMPLATE("workers that share give the same bits", T, float, double) {
  unisono::Pool pool(4);
  // `compute` leaves what it computes in its operand.
  const auto same = [&](const Matrix<T>& begin, auto&& compute) {
    Matrix<T> alone = begin, shared = begin;
    compute(alone);
    {
      const unisono::PoolScope scope(pool);
      compute(shared);
    }
    CHECK(unisono::Pool::of_this_thread() == nullptr);
    CHECK(alone.elements == shared.elements);
  };
  const T alpha = T(-0.5), beta = 1;
  const int step = 1;
  // Many rows, many columns, much between, and all at once.
  for (const auto& [m, n, k] : {std::array{2100, 30, 40},
                                {70, 4000, 9},
                                {97, 101, 700},
                                {401, 390, 300}}) {
    const Matrix<T> a(m, k), b(k, n), c(m, n);
    same(c, [&](Matrix<T>& out) {
      Blas<T>::gemm("N", "N", &m, &n, &k, &alpha, a.data(), &a.step, b.data(),
                    &b.step, &beta, out.data(), &out.step, 1, 1);
    });
  }
  const int n = 700;
  Matrix<T> a(n, n);
  const Matrix<T> x(n, 1), y(n, 1);
  for (const char* form : forms)
    same(y, [&](Matrix<T>& out) {
      Blas<T>::gemv(form, &n, &n, &alpha, a.data(), &a.step, x.data(), &step,
                    &beta, out.data(), &step, 1);
    });
  same(a, [&](Matrix<T>& out) {
    Blas<T>::ger(&n, &n, &alpha, x.data(), &step, y.data(), &step, out.data(),
                 &out.step);
  });
  for (int i = 0; i < n; ++i) a(i, i) += T(30);
  for (const char* part : parts)
    same(Matrix<T>(n, 100), [&](Matrix<T>& out) {
      const int columns = 100;
      Blas<T>::trsm("L", part, "N", "N", &n, &columns, &alpha, a.data(),
                    &a.step, out.data(), &out.step, 1, 1, 1, 1);
    });
}

TEST_CASE_TEMPLATE("vectors of any width give the same bits", T, float,
                   double) {
  namespace lapack = unisono::lapack;
  constexpr int lanes = 64 / sizeof(T);
  Matrix<T> a(70, 70), b(70, 70);
  for (const lapack::Kernels<T>& kernels : lapack::all_kernels<T>())
    for (const int m : {0, 1, 7, 16, 45}) {
      CAPTURE(kernels.rows);
      CAPTURE(m);
      const int n = 7;
      const T alpha = T(0.7);
      // One column after the other, one element at a time.
      Matrix<T> sums(1, m);
      for (int i = 0; i < m; ++i) {
        sums(0, i) = b(i, 0);
        for (int j = 0; j < n; ++j)
          sums(0, i) = std::fma(a(i, j), alpha * b(j, 1), sums(0, i));
      }
      std::vector<T> y(b.data(), b.data() + m);
      kernels.add_columns(m, n, alpha, a.data(), a.step, b.data() + b.step, 1,
                          y.data());
      for (int i = 0; i < m; ++i)
        CHECK(y[static_cast<size_t>(i)] == sums(0, i));
      // In lanes, and these in halves.
      std::vector<T> dots(static_cast<size_t>(n), T(0.25));
      kernels.add_dots(m, n, alpha, a.data(), a.step, b.data(), dots.data(), 1);
      for (int j = 0; j < n; ++j) {
        T lane[lanes] = {};
        for (int i = 0; i < m; ++i)
          lane[i % lanes] = std::fma(a(i, j), b(i, 0), lane[i % lanes]);
        for (int half = lanes / 2; half > 0; half /= 2)
          for (int i = 0; i < half; ++i) lane[i] += lane[i + half];
        CHECK(dots[static_cast<size_t>(j)] == T(0.25) + alpha * lane[0]);
        std::vector<T> other(static_cast<size_t>(m), T(1));
        const T dot = kernels.add_and_dot(m, a.data() + j * a.step, alpha,
                                          b.data(), other.data());
        CHECK(dot == lane[0]);
        for (int i = 0; i < m; ++i)
          CHECK(other[static_cast<size_t>(i)] ==
                std::fma(a(i, j), alpha, T(1)));
      }
      // A tile, and a part of one.
      const int64_t rows = kernels.rows, columns = kernels.columns, k = m;
      std::vector<T> left, right;
      for (int64_t l = 0; l < k; ++l) {
        for (int64_t i = 0; i < rows; ++i)
          left.push_back(T(0.01) * T(i - 3 * l));
        for (int64_t j = 0; j < columns; ++j)
          right.push_back(b(int(l), int(j)));
      }
      for (const bool whole : {true, false}) {
        const int64_t height = whole ? rows : rows - 3;
        const int64_t width = whole ? columns : columns - 1;
        Matrix<T> c{int(rows), int(columns)}, wanted = c;
        for (int j = 0; j < width; ++j)
          for (int i = 0; i < height; ++i) {
            T sum = 0;
            for (int64_t l = 0; l < k; ++l)
              sum = std::fma(left[static_cast<size_t>(l * rows + i)],
                             right[static_cast<size_t>(l * columns + j)], sum);
            wanted(i, j) = std::fma(alpha, sum, c(i, j));
          }
        kernels.multiply(k, left.data(), right.data(), alpha, c.data(), c.step,
                         height, width);
        CHECK(c.elements == wanted.elements);
      }
    }
  // Small triangles.
  for (const bool lower : {true, false})
    for (const int n : {1, 3, 9, 16}) {
      std::vector<T> triangle(256, T(0)), first;
      for (int j = 0; j < n; ++j)
        for (int i = lower ? j : 0; i < (lower ? n : j + 1); ++i)
          triangle[static_cast<size_t>(j) * 16 + static_cast<size_t>(i)] =
              a(i, j) + (i == j ? T(2) : T(0));
      for (const lapack::Kernels<T>& kernels : lapack::all_kernels<T>()) {
        Matrix<T> x = b;
        kernels.divide(n, lower, false, triangle.data(), 6, x.data(), x.step);
        if (first.empty()) first = x.elements;
        CHECK(x.elements == first);
      }
    }
}
