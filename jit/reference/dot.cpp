// dot: both operands are packed so that for each batch position they are
// matrices (M, K) and (K, N) of the accumulating type; each result element is
// a sum of fma chains (reduce_products).
#include <algorithm>
#include <type_traits>
#include <vector>

#include "jit/ir/reduce_order.h"
#include "jit/reference/kernels.h"
#include "jit/reference/product.h"
#include "jit/reference/walk.h"
#include "jit/scalar/scalar.h"
#include "runtime/check.h"
#include "runtime/tuning/tuning.h"

// An fma instruction where the processor has one (a call of libm gives the
// same bits). ThreadSanitizer does not start before the loader has chosen.
#if defined(__x86_64__) && !__has_feature(thread_sanitizer)
#define UNISONO_WITH_FMA \
  __attribute__((target_clones("default", "arch=x86-64-v3")))
#else
#define UNISONO_WITH_FMA
#endif

namespace unisono::jit::reference {
namespace {

/// sums[i] += a * b[i], rounded once.
UNISONO_WITH_FMA void add_products_f32(float a, const float* b, float* sums,
                                       int64_t n) {
  for (int64_t i = 0; i < n; ++i) sums[i] = __builtin_fmaf(a, b[i], sums[i]);
}
UNISONO_WITH_FMA void add_products_f64(double a, const double* b, double* sums,
                                       int64_t n) {
  for (int64_t i = 0; i < n; ++i) sums[i] = __builtin_fma(a, b[i], sums[i]);
}

float fma_of(float a, float b, float c) { return __builtin_fmaf(a, b, c); }
double fma_of(double a, double b, double c) { return __builtin_fma(a, b, c); }

/// `rows` rows of a product, as many sums at once as registers hold: columns go
/// in blocks, each sum is one chain.
template <int rows, int columns, class T>
[[gnu::always_inline]] inline void multiply_block(const T* a, const T* b,
                                                  int64_t k, int64_t n,
                                                  T* out) {
  T sums[rows][columns] = {};
  for (int64_t i = 0; i < k; ++i)
    for (int r = 0; r < rows; ++r)
      for (int j = 0; j < columns; ++j)
        sums[r][j] = fma_of(a[r * k + i], b[i * n + j], sums[r][j]);
  for (int r = 0; r < rows; ++r)
    std::copy(sums[r], sums[r] + columns, out + r * n);
}

template <int rows, class T>
[[gnu::always_inline]] inline void multiply_rows(const T* a, const T* b,
                                                 int64_t k, int64_t n, T* out) {
  int64_t j = 0;
  for (; j + 16 <= n; j += 16)
    multiply_block<rows, 16>(a, b + j, k, n, out + j);
  for (; j + 8 <= n; j += 8) multiply_block<rows, 8>(a, b + j, k, n, out + j);
  for (; j + 4 <= n; j += 4) multiply_block<rows, 4>(a, b + j, k, n, out + j);
  for (; j < n; ++j) multiply_block<rows, 1>(a, b + j, k, n, out + j);
}

template <class T>
[[gnu::always_inline]] inline void multiply_all(const T* a, const T* b,
                                                int64_t m, int64_t k, int64_t n,
                                                T* out) {
  int64_t i = 0;
  for (; i + 4 <= m; i += 4) multiply_rows<4>(a + i * k, b, k, n, out + i * n);
  for (; i < m; ++i) multiply_rows<1>(a + i * k, b, k, n, out + i * n);
}

UNISONO_WITH_FMA void multiply_f32(const float* a, const float* b, int64_t m,
                                   int64_t k, int64_t n, float* out) {
  multiply_all(a, b, m, k, n, out);
}
UNISONO_WITH_FMA void multiply_f64(const double* a, const double* b, int64_t m,
                                   int64_t k, int64_t n, double* out) {
  multiply_all(a, b, m, k, n, out);
}

/// sums[r] of the chain that begins at r * k: each waits for its own fmas
/// alone.
template <int chains, class T>
[[gnu::always_inline]] inline void sum_chains(const T* a, const T* b, int64_t k,
                                              T* sums) {
  T now[chains] = {};
  for (int64_t i = 0; i < k; ++i)
    for (int r = 0; r < chains; ++r)
      now[r] = fma_of(a[r * k + i], b[r * k + i], now[r]);
  std::copy(now, now + chains, sums);
}
UNISONO_WITH_FMA void sum_chain(const float* a, const float* b, int64_t k,
                                float* sum) {
  sum_chains<1>(a, b, k, sum);
}
UNISONO_WITH_FMA void sum_chain(const double* a, const double* b, int64_t k,
                                double* sum) {
  sum_chains<1>(a, b, k, sum);
}
UNISONO_WITH_FMA void sum_four_chains(const float* a, const float* b, int64_t k,
                                      float* sums) {
  sum_chains<4>(a, b, k, sums);
}
UNISONO_WITH_FMA void sum_four_chains(const double* a, const double* b,
                                      int64_t k, double* sums) {
  sum_chains<4>(a, b, k, sums);
}

/// A row times a column, of n >= 1 elements.
template <class T>
T multiply_vectors(const T* a, const T* b, int64_t n) {
  const int64_t size = orders().dot_chain;
  std::vector<T> sums(static_cast<size_t>((n + size - 1) / size));
  for (int64_t i = 0; i < n;) {
    poll_stop();
    const bool four = i + 4 * size <= n;
    T* sum = &sums[static_cast<size_t>(i / size)];
    if (four)
      sum_four_chains(a + i, b + i, size, sum);
    else
      sum_chain(a + i, b + i, std::min(size, n - i), sum);
    i += four ? 4 * size : size;
  }
  return reduce_products(
      n,
      [&](int64_t begin, int64_t) {
        return sums[static_cast<size_t>(begin / size)];
      },
      [](T x, T y) { return x + y; });
}

template <class T>
void add_products(T a, const T* b, T* sums, int64_t n) {
  if constexpr (std::is_same_v<T, float>) {
    add_products_f32(a, b, sums, n);
  } else if constexpr (std::is_same_v<T, double>) {
    add_products_f64(a, b, sums, n);
  } else if constexpr (!std::is_same_v<T, bool>) {
    using S = scalar::Scalar<T>;
    for (int64_t i = 0; i < n; ++i)
      sums[i] = (S(a) * S(b[i]) + S(sums[i])).value();
  }
}

/// The elements in computing form, axes in the order of the lists.
template <DType D>
class Packed {
 public:
  Packed(View x, std::initializer_list<const std::vector<int>*> lists) {
    using T = typename ComputeOf<D>::type;
    using Stored = typename StorageOf<D>::type;
    const auto sizes = x.type.sizes();
    const auto strides = dense_strides(sizes);
    Axes axes;
    for (const auto* list : lists)
      for (int axis : *list) axes.add(sizes[axis], strides[axis]);
    const auto* elements = reinterpret_cast<const Stored*>(x.data);
    if constexpr (std::is_same_v<T, Stored>) {
      const Axes all = merged(axes);
      if (all.sizes.size() == 1 && all.strides[0] == 1) {
        data_ = elements;
        return;
      }
    }
    own_.reserve(static_cast<size_t>(x.type.elements()));
    for_each_offset(axes, 0, [&](int64_t i) {
      own_.push_back(static_cast<T>(elements[i]));
    });
    data_ = own_.data();
  }
  Packed(const Packed&) = delete;
  const typename ComputeOf<D>::type* data() const { return data_; }

 private:
  std::vector<typename ComputeOf<D>::type> own_;
  const typename ComputeOf<D>::type* data_ = nullptr;  // there, or in place
};

std::vector<int> free_axes(int rank, const std::vector<int>& batch,
                           const std::vector<int>& contract) {
  std::vector<int> out;
  const auto has = [](const std::vector<int>& axes, int axis) {
    return std::find(axes.begin(), axes.end(), axis) != axes.end();
  };
  for (int i = 0; i < rank; ++i)
    if (!has(batch, i) && !has(contract, i)) out.push_back(i);
  return out;
}

int64_t count(const ir::Type& type, const std::vector<int>& axes) {
  int64_t out = 1;
  for (int axis : axes) out *= type.shape[axis].value();
  return out;
}

}  // namespace

void multiply(DType dtype, const void* a, const void* b, int64_t m, int64_t k,
              int64_t n, void* out) {
  CHECK(dtype == DType::F32 || dtype == DType::F64);
  CHECK(k <= orders().dot_chain);
  if (dtype == DType::F32)
    multiply_f32(static_cast<const float*>(a), static_cast<const float*>(b), m,
                 k, n, static_cast<float*>(out));
  else
    multiply_f64(static_cast<const double*>(a), static_cast<const double*>(b),
                 m, k, n, static_cast<double*>(out));
}

void dot(const ir::Node& node, View a, View b, uint8_t* out) {
  const auto& d = ir::attrs<ir::DotAttrs>(node);
  const auto free_a = free_axes(a.type.rank(), d.batch_a, d.contract_a);
  const auto free_b = free_axes(b.type.rank(), d.batch_b, d.contract_b);
  const int64_t batches = count(a.type, d.batch_a);
  const int64_t M = count(a.type, free_a), N = count(b.type, free_b);
  const int64_t K = count(a.type, d.contract_a);
  with_dtype(node.type.dtype, [&]<DType D>() {
    using T = typename ComputeOf<D>::type;
    if constexpr (std::is_same_v<T, bool>) {
      return;  // the type rule admits numbers
    } else {
      const Packed<D> left(a, {&d.batch_a, &free_a, &d.contract_a});
      const Packed<D> right(b, {&d.batch_b, &d.contract_b, &free_b});
      auto* results = reinterpret_cast<typename StorageOf<D>::type*>(out);
      if constexpr (std::is_floating_point_v<T>) {
        if (N == 1 && K > 0) {
          for (int64_t i = 0; i < batches * M; ++i)
            results[i] =
                static_cast<typename StorageOf<D>::type>(multiply_vectors(
                    left.data() + i * K, right.data() + i / M * K, K));
          return;
        }
      }
      StopPoll poll(4 * tuning().moved_between_looks);
      for (int64_t i = 0; i < batches * M; ++i) {
        const int64_t batch = i / M;
        in_pieces(
            N, tuning().moved_between_looks, [&](int64_t begin, int64_t end) {
              const int64_t columns = end - begin;
              const auto chain = [&](int64_t first, int64_t last) {
                std::vector<T> sums(static_cast<size_t>(columns), T{0});
                for (int64_t k = first; k < last; ++k) {
                  const T* row = right.data() + (batch * K + k) * N;
                  add_products(left.data()[i * K + k], row + begin, sums.data(),
                               columns);
                  poll.did(columns);
                }
                return sums;
              };
              const auto add = [&](std::vector<T> sums,
                                   const std::vector<T>& more) {
                using S = scalar::Scalar<T>;
                for (int64_t j = 0; j < columns; ++j)
                  sums[j] = (S(sums[j]) + S(more[j])).value();
                return sums;
              };
              const auto sums = K <= orders().dot_chain
                                    ? chain(0, K)
                                    : reduce_products(K, chain, add);
              for (const T sum : sums)
                *results++ = static_cast<typename StorageOf<D>::type>(sum);
            });
      }
    }
  });
}

}  // namespace unisono::jit::reference
