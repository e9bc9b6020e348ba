#include "runtime/lapack/kernels.h"

#include <algorithm>
#include <cstring>

namespace unisono::lapack {
namespace {

// Bodies of loops are inlined into functions that may use more of a processor
// than the rest of the program.
#define BODY [[gnu::always_inline]] inline

template <class T>
constexpr int lanes = 64 / sizeof(T);
template <class T>
using Vector = T __attribute__((ext_vector_type(lanes<T>)));

template <class T>
BODY void load(Vector<T>& to, const T* from) {
  std::memcpy(&to, from, sizeof(to));
}
template <class T>
BODY void store(T* to, const Vector<T>& from) {
  std::memcpy(to, &from, sizeof(from));
}
/// sum = fma(a, b, sum)
template <class T>
BODY void multiply_add(Vector<T>& sum, const Vector<T>& a, const Vector<T>& b) {
  sum = __builtin_elementwise_fma(a, b, sum);
}
BODY float multiply_add(float a, float b, float sum) {
  return __builtin_fmaf(a, b, sum);
}
BODY double multiply_add(double a, double b, double sum) {
  return __builtin_fma(a, b, sum);
}
/// The sum of the lanes, after `rest` more products of a and x in the first of
/// them: lane i and lane i + half are added until one is left.
template <class T>
BODY T sum_of_lanes(const Vector<T>& sums, int64_t rest, const T* a,
                    const T* x) {
  T all[lanes<T>];
  store(all, sums);
  for (int64_t i = 0; i < rest; ++i) all[i] = multiply_add(a[i], x[i], all[i]);
  for (int half = lanes<T> / 2; half > 0; half /= 2)
    for (int i = 0; i < half; ++i) all[i] += all[i + half];
  return all[0];
}

template <class T, int vectors, int columns>
BODY void multiply_body(int64_t k, const T* a, const T* b, T alpha, T* c,
                        int64_t step, int64_t m, int64_t n) {
  constexpr int rows = vectors * lanes<T>;
  Vector<T> sums[columns][vectors] = {};
  for (int64_t l = 0; l < k; ++l, a += rows, b += columns) {
    Vector<T> left[vectors];
#pragma clang loop unroll(full)
    for (int v = 0; v < vectors; ++v) load(left[v], a + v * lanes<T>);
#pragma clang loop unroll(full)
    for (int j = 0; j < columns; ++j) {
      const Vector<T> right = b[j];
#pragma clang loop unroll(full)
      for (int v = 0; v < vectors; ++v)
        multiply_add<T>(sums[j][v], left[v], right);
    }
  }
  const Vector<T> factor = alpha;
  if (m == rows && n == columns) {
#pragma clang loop unroll(full)
    for (int j = 0; j < columns; ++j)
#pragma clang loop unroll(full)
      for (int v = 0; v < vectors; ++v) {
        T* to = c + j * step + v * lanes<T>;
        Vector<T> old;
        load(old, to);
        multiply_add<T>(old, factor, sums[j][v]);
        store(to, old);
      }
    return;
  }
  T tile[columns][rows];
  std::memcpy(tile, sums, sizeof(tile));
  for (int64_t j = 0; j < n; ++j)
    for (int64_t i = 0; i < m; ++i) {
      T& to = c[j * step + i];
      to = multiply_add(tile[j][i], alpha, to);
    }
}

template <class T, int columns>
BODY void add_some_columns(int64_t m, const T* a, int64_t step,
                           const T* factors, T* y) {
  int64_t i = 0;
  for (; i + lanes<T> <= m; i += lanes<T>) {
    Vector<T> sum, element;
    load(sum, y + i);
#pragma clang loop unroll(full)
    for (int j = 0; j < columns; ++j) {
      load(element, a + j * step + i);
      multiply_add<T>(sum, element, Vector<T>(factors[j]));
    }
    store(y + i, sum);
  }
  for (; i < m; ++i) {
    T sum = y[i];
    for (int j = 0; j < columns; ++j)
      sum = multiply_add(a[j * step + i], factors[j], sum);
    y[i] = sum;
  }
}

template <class T>
BODY void add_columns_body(int64_t m, int64_t n, T alpha, const T* a,
                           int64_t step, const T* x, int64_t x_step, T* y) {
  int64_t j = 0;
  for (; j + 4 <= n; j += 4) {
    const T factors[4] = {alpha * x[j * x_step], alpha * x[(j + 1) * x_step],
                          alpha * x[(j + 2) * x_step],
                          alpha * x[(j + 3) * x_step]};
    add_some_columns<T, 4>(m, a + j * step, step, factors, y);
  }
  for (; j < n; ++j) {
    const T factor = alpha * x[j * x_step];
    add_some_columns<T, 1>(m, a + j * step, step, &factor, y);
  }
}

template <class T, int columns>
BODY void add_some_dots(int64_t m, T alpha, const T* a, int64_t step,
                        const T* x, T* y, int64_t y_step) {
  Vector<T> sums[columns] = {};
  int64_t i = 0;
  for (; i + lanes<T> <= m; i += lanes<T>) {
    Vector<T> right, element;
    load(right, x + i);
#pragma clang loop unroll(full)
    for (int j = 0; j < columns; ++j) {
      load(element, a + j * step + i);
      multiply_add<T>(sums[j], element, right);
    }
  }
  for (int j = 0; j < columns; ++j)
    y[j * y_step] +=
        alpha * sum_of_lanes<T>(sums[j], m - i, a + j * step + i, x + i);
}

template <class T>
BODY void add_dots_body(int64_t m, int64_t n, T alpha, const T* a, int64_t step,
                        const T* x, T* y, int64_t y_step) {
  int64_t j = 0;
  for (; j + 4 <= n; j += 4)
    add_some_dots<T, 4>(m, alpha, a + j * step, step, x, y + j * y_step,
                        y_step);
  for (; j < n; ++j)
    add_some_dots<T, 1>(m, alpha, a + j * step, step, x, y + j * y_step,
                        y_step);
}

template <class T>
BODY T add_and_dot_body(int64_t m, const T* a, T factor, const T* x, T* y) {
  Vector<T> sum = {};
  int64_t i = 0;
  for (; i + lanes<T> <= m; i += lanes<T>) {
    Vector<T> element, left, right;
    load(element, a + i);
    load(left, y + i);
    load(right, x + i);
    multiply_add<T>(left, element, Vector<T>(factor));
    multiply_add<T>(sum, element, right);
    store(y + i, left);
  }
  for (int64_t k = i; k < m; ++k) y[k] = multiply_add(a[k], factor, y[k]);
  return sum_of_lanes<T>(sum, m - i, a + i, x + i);
}

template <class T>
BODY void divide_body(int64_t n, bool lower, bool unit, const T* a,
                      int64_t columns, T* b, int64_t step) {
  constexpr int64_t size = small_triangle, together = 4;
  for (int64_t j = 0; j < columns; j += together) {
    const int64_t some = std::min(together, columns - j);
    T x[together][size] = {};
    for (int64_t c = 0; c < some; ++c)
      for (int64_t i = 0; i < n; ++i) x[c][i] = b[(j + c) * step + i];
    for (int64_t i = 0; i < n; ++i) {
      const int64_t l = lower ? i : n - 1 - i;
      const T* column = a + l * size;
      for (int64_t c = 0; c < some; ++c) {
        const T found = unit ? x[c][l] : x[c][l] / column[l];
#pragma clang loop unroll(full)
        for (int64_t v = 0; v < size; v += lanes<T>) {
          Vector<T> rest, factor;
          load(rest, x[c] + v);
          load(factor, column + v);
          multiply_add<T>(rest, factor, Vector<T>(-found));
          store(x[c] + v, rest);
        }
        x[c][l] = found;
      }
    }
    for (int64_t c = 0; c < some; ++c)
      for (int64_t i = 0; i < n; ++i) b[(j + c) * step + i] = x[c][i];
  }
}

#define KERNELS(name, vectors, wide, attributes)                               \
  template <class T>                                                           \
  struct name {                                                                \
    attributes static void multiply(int64_t k, const T* a, const T* b,         \
                                    T alpha, T* c, int64_t step, int64_t m,    \
                                    int64_t n) {                               \
      multiply_body<T, vectors, wide>(k, a, b, alpha, c, step, m, n);          \
    }                                                                          \
    attributes static void add_columns(int64_t m, int64_t n, T alpha,          \
                                       const T* a, int64_t step, const T* x,   \
                                       int64_t x_step, T* y) {                 \
      add_columns_body(m, n, alpha, a, step, x, x_step, y);                    \
    }                                                                          \
    attributes static void add_dots(int64_t m, int64_t n, T alpha, const T* a, \
                                    int64_t step, const T* x, T* y,            \
                                    int64_t y_step) {                          \
      add_dots_body(m, n, alpha, a, step, x, y, y_step);                       \
    }                                                                          \
    attributes static T add_and_dot(int64_t m, const T* a, T factor,           \
                                    const T* x, T* y) {                        \
      return add_and_dot_body(m, a, factor, x, y);                             \
    }                                                                          \
    attributes static void divide(int64_t n, bool lower, bool unit,            \
                                  const T* a, int64_t columns, T* b,           \
                                  int64_t step) {                              \
      divide_body(n, lower, unit, a, columns, b, step);                        \
    }                                                                          \
    static constexpr Kernels<T> all = {                                        \
        (vectors) * lanes<T>, wide,  multiply, add_columns, add_dots,          \
        add_and_dot,          divide};                                         \
  };
KERNELS(Plain, 1, 4, )
#if defined(__x86_64__)
KERNELS(Avx2, 1, 6, __attribute__((target("avx2,fma"))))
KERNELS(Avx512, 3, 8, __attribute__((target("avx512f,avx2,fma"))))
#endif
#undef KERNELS

#if defined(__x86_64__)
bool has_avx2() {
  return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
}
bool has_avx512() { return __builtin_cpu_supports("avx512f") && has_avx2(); }
#endif

}  // namespace

template <class T>
const Kernels<T>& kernels() {
#if defined(__x86_64__)
  if (has_avx512()) return Avx512<T>::all;
  if (has_avx2()) return Avx2<T>::all;
#endif
  return Plain<T>::all;
}
template const Kernels<float>& kernels();
template const Kernels<double>& kernels();

template <class T>
std::vector<Kernels<T>> all_kernels() {
  std::vector<Kernels<T>> out = {Plain<T>::all};
#if defined(__x86_64__)
  if (has_avx2()) out.push_back(Avx2<T>::all);
  if (has_avx512()) out.push_back(Avx512<T>::all);
#endif
  return out;
}
template std::vector<Kernels<float>> all_kernels();
template std::vector<Kernels<double>> all_kernels();

}  // namespace unisono::lapack
