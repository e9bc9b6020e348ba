#pragma once
// The inner loops of what LAPACK multiplies, with the widest vectors that the
// processor has. Each is defined over lanes of 64 bytes and fma, so that its
// bits are the same with vectors of any width.
//
// What is ours looks for the thread's stop flag (runtime/stop.h), and Stopped
// passes through LAPACK's frames.
#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "runtime/pool.h"
#include "runtime/stop.h"
#include "runtime/tuning/tuning.h"

namespace unisono::lapack {

/// Triangles up to this are not halved.
inline constexpr int64_t small_triangle = 16;

/// Matrices lie by columns: element (i, j) of `a` is a[j * step + i].
template <class T>
struct Kernels {
  /// Of a tile that `multiply` computes in registers.
  int rows = 0, columns = 0;

  /// c(i, j) = fma(alpha, s, c(i, j)) for i < m <= rows and j < n <= columns,
  /// s being the chain of fmas from 0 over l < k of a[l * rows + i] and
  /// b[l * columns + j]. Both are packed, and readable for whole tiles.
  void (*multiply)(int64_t k, const T* a, const T* b, T alpha, T* c,
                   int64_t step, int64_t m, int64_t n) = nullptr;
  /// y[i] += the sum of a(i, j) * (alpha * x[j * x_step]) over j < n, a chain
  /// of fmas in the order of the columns, for i < m.
  void (*add_columns)(int64_t m, int64_t n, T alpha, const T* a, int64_t step,
                      const T* x, int64_t x_step, T* y) = nullptr;
  /// y[j * y_step] += alpha times the sum of a(i, j) * x[i] over i < m, for
  /// j < n: lane i % 16 (f32) or i % 8 is a chain, and lanes are added in
  /// halves.
  void (*add_dots)(int64_t m, int64_t n, T alpha, const T* a, int64_t step,
                   const T* x, T* y, int64_t y_step) = nullptr;
  /// Both at once of one column: y[i] = fma(a[i], factor, y[i]), and the sum of
  /// a[i] * x[i] in lanes as above, for i < m.
  T (*add_and_dot)(int64_t m, const T* a, T factor, const T* x, T* y) = nullptr;
  /// B = the inverse of a triangle @ B, B being n by `columns`: of the triangle
  /// element (i, j) is a[j * 16 + i], with zeros elsewhere, and behind n.
  /// What is found of B is taken off the others by fma, one after the other.
  void (*divide)(int64_t n, bool lower, bool unit, const T* a, int64_t columns,
                 T* b, int64_t step) = nullptr;
};

/// Those for this processor.
template <class T>
const Kernels<T>& kernels();
/// All that run on this processor, for tests.
template <class T>
std::vector<Kernels<T>> all_kernels();

/// C += alpha * op(A) @ op(B), op(A) being m by k, and op(B) k by n: element
/// (i, l) of op(A) is a[i * a_row + l * a_column], one of these steps being 1,
/// and so for B. Parts of 256 of k are added to C one after the other.
template <class T>
struct Operand {
  const T* elements = nullptr;
  int64_t row = 1, column = 1;

  Operand block(int64_t i, int64_t j) const {
    return {elements + i * row + j * column, row, column};
  }
  Operand transposed() const { return {elements, column, row}; }
  T at(int64_t i, int64_t j) const { return elements[i * row + j * column]; }
};
template <class T>
void add_product(int64_t m, int64_t n, int64_t k, T alpha, Operand<T> a,
                 Operand<T> b, T* c, int64_t step);

/// C *= beta, of which 0 leaves nothing of C, not even NaN.
template <class T>
void scale(int64_t m, int64_t n, T beta, T* c, int64_t step) {
  StopPoll poll(tuning().lapack_between_looks);
  for (int64_t j = 0; beta != 1 && j < n; ++j) {
    for (int64_t i = 0; i < m; ++i) {
      T& element = c[j * step + i];
      element = beta == 0 ? T(0) : beta * element;
    }
    poll.did(m);
  }
}

/// How many workers may share what this thread does.
inline int workers() {
  const Pool* pool = Pool::of_this_thread();
  return pool ? pool->workers() : 1;
}

/// Calls body(begin, end) for parts of 0 ... units-1, each of `work`
/// multiplications (or copies), from several threads where there are enough.
/// What a part computes must not depend on where parts begin. Throws Stopped;
/// `body` must not.
template <class Body>
void share(int64_t units, int64_t work, Body&& body) {
  const int64_t grain = std::max<int64_t>(
      tuning().lapack_worth_sharing / 2 / std::max<int64_t>(work, 1), 1);
  if (Pool* pool = Pool::of_this_thread(); pool && units >= 2 * grain) {
    const auto stopped = [stop = stop_flag()] {
      return stop && stop->load(std::memory_order_relaxed);
    };
    pool->parallel_pieces(units, grain, &body, stopped, body);
    poll_stop();
  } else {
    in_pieces(units, 4 * grain, body);
  }
}

/// Whether Fortran's word is this letter, in either case.
inline bool is(const char* word, char letter) {
  return (*word & ~0x20) == letter;
}

}  // namespace unisono::lapack
