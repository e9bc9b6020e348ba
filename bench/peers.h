#pragma once
// Hand-written C++ for the same work: OpenMP, -O3 -march=native. Arrays are
// aligned to 64 bytes and lengths are multiples of 4,096.
#include <cstddef>
#include <cstdint>

namespace peers {

/// Wakes the threads that do the peers' work.
void wake(bool openmp, bool openblas);

/// t = x; then, in turn, + y, * 0.9, max(-1), - y: `operations` of them
/// (1, 4 or 16).
void chain(int operations, const float* x, const float* y, float* out,
           size_t n);
/// European call and put (Abramowitz and Stegun's polynomial for the normal
/// distribution function), r = 0.02, v = 0.3. Built with -ffast-math and
/// libmvec: the best build there is.
void black_scholes(const float* s, const float* k, const float* t, float* call,
                   float* put, size_t n);

/// Random numbers of the key (k0, k1), n < 2^32: between 0 and 1, and of the
/// normal distribution. Built as black_scholes.
void uniform(uint32_t k0, uint32_t k1, float* out, size_t n);
void normal(uint32_t k0, uint32_t k1, float* out, size_t n);

/// Softmax of each row; and layer norm of each row.
void softmax(const float* x, float* out, size_t rows, size_t columns);
void layer_norm(const float* x, const float* gain, const float* bias,
                float* out, size_t rows, size_t columns);

/// The gradients for a cotangent `c` of the result: by x; by x, gain and bias.
void softmax_gradient(const float* x, const float* c, float* by_x, size_t rows,
                      size_t columns);
void layer_norm_gradient(const float* x, const float* gain, const float* c,
                         float* by_x, float* by_gain, float* by_bias,
                         size_t rows, size_t columns);

/// Turns of Lorenz's equations by RK4, steps of 1e-5, in place: of one system,
/// or of each of a multiple of 16.
void lorenz(float* x, float* y, float* z, size_t systems, int turns);
/// The gradient of x + y + z after these turns by where one system began, and
/// the sum; `states` has room for three floats a turn.
float lorenz_gradient(float* x, float* y, float* z, int turns, float* states);
/// The negative log likelihood of n measurements under a Kalman filter of three
/// states; and its derivatives by q and r.
float kalman(const float* measured, size_t n, float q, float r);
float kalman_gradient(const float* measured, size_t n, float q, float r,
                      float* by_q, float* by_r);
/// The sum of the squares of the last h of an LSTM cell of 64 with as many
/// inputs, and its gradients by w, f32[128, 256], whose first rows are for the
/// inputs, and by b: gates are i, f, u, o. Steps are a multiple of 4.
float lstm_gradient(const float* w, const float* b, const float* xs,
                    size_t steps, float* by_w, float* by_b);

/// Loops in loops, by elements: the sum of all shortest ways between n nodes;
/// the edit distance of two rows of numbers; the longest of Collatz's sequences
/// that begin below n; how many of n x n points are in Mandelbrot's set; how
/// many primes there are below n; and the sum of the Cholesky factor of a
/// matrix of n rows.
float shortest_ways(const float* w, size_t n);
float edit_distance(const float* a, size_t n, const float* b, size_t m);
float collatz(int64_t n);
float mandelbrot(int n);
float sieve(size_t n);
float cholesky(const float* a, size_t n);

/// So many multiply-adds of f32 as fast as they go: what the machine can do.
float multiply_adds(double count);

/// What lies around an array, for a step of the heat equation.
enum class Edge : uint8_t {
  zeros,          // zeros, around it
  wrapped,        // its other side
  fixed,          // its first and last rows and columns, which become 0
  fixed_columns,  // its first and last columns, which become 0, and rows of 0
};
/// A step of the heat equation; `zeros`: a row of them.
void heat(const float* u, float* out, const float* zeros, size_t rows,
          size_t columns, Edge edge);

float sum(const float* x, size_t n);
/// One pass, both sums shifted by the first element.
void mean_variance(const float* x, size_t n, float* mean, float* variance);
float max(const float* x, size_t n);
int64_t argmax(const float* x, size_t n);

void cumsum(const float* x, float* out, size_t n);
/// Radix sort, three digits of 11 bits.
void sort(const float* x, float* out, size_t n);
void argsort(const float* x, int32_t* out, size_t n);
/// Each row by std::sort.
void sort_rows(const float* x, float* out, size_t rows, size_t columns);
/// Those above 0, in order: counted in one pass, written in a second. Gives
/// their number.
size_t select_positive(const float* x, float* out, size_t n);
/// `turns` times, in out, a copy of x of a power of two of elements: x[i] is
/// halved if it is above 0, at i = 7919 * turn.
void halve_some(const float* x, float* out, size_t n, int turns);
/// Likewise x[i] and x[j] are swapped, j the place after i.
void swap_some(const float* x, float* out, size_t n, int turns);
/// n passes over all neighbours.
void bubble_sort(const float* x, float* out, size_t n);
/// The lengths of common subsequences of i * 7919 % 13 and i * 104729 % 11,
/// i < n: (n + 1) x (n + 1), row-major.
void common_table(float* out, size_t n);
/// In each row of out, a copy of x, one element becomes -1.
void mark_rows(const float* x, const int32_t* index, float* out, size_t rows,
               size_t columns);
/// out[j, i] = x[i, j], n x n.
void transpose(const float* x, float* out, size_t n);
void gather(const float* x, const int32_t* index, float* out, size_t n);
void gather_rows(const float* x, const int32_t* index, float* out, size_t rows,
                 size_t columns);
/// Non-temporal copy: the limit of memory-bound work.
void copy(const float* x, float* out, size_t n);

}  // namespace peers
