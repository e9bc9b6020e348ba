#include "jit/sort.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <numeric>

namespace unisono::jit {
namespace {

struct Parameters {
  int64_t length = 0;
};

/// Ascending, NaN last and all equal, -0.0 equal to 0.0.
template <class T>
bool sorts_before(T a, T b) {
  return a < b || (b != b && a == a);
}

template <DType D>
void sort_rows(void* const* buffers, int64_t begin, int64_t end,
               const KernelContext* context, bool positions) {
  using Stored = typename StorageOf<D>::type;
  using Computed = typename ComputeOf<D>::type;
  const auto* from = static_cast<const Stored*>(buffers[0]);
  Parameters parameters;
  std::memcpy(&parameters, buffers[2], sizeof parameters);
  const int64_t n = parameters.length;
  auto order = std::make_unique<int32_t[]>(static_cast<size_t>(n));
  for (int64_t row = begin; row < end; ++row) {
    if (*context->stop || *context->cancel) return;
    const Stored* line = from + row * n;
    std::iota(order.get(), order.get() + n, 0);
    auto before = [&](int32_t i, int32_t j) {
      return sorts_before(static_cast<Computed>(line[i]),
                          static_cast<Computed>(line[j]));
    };
    std::sort(order.get(), order.get() + n, [&](int32_t i, int32_t j) {
      return before(i, j) || (i < j && !before(j, i));
    });
    if (positions) {
      std::memcpy(static_cast<int32_t*>(buffers[1]) + row * n, order.get(),
                  static_cast<size_t>(n) * sizeof(int32_t));
      continue;
    }
    // Elements as stored: a NaN keeps its bits.
    Stored* out = static_cast<Stored*>(buffers[1]) + row * n;
    for (int64_t i = 0; i < n; ++i) out[i] = line[order[i]];
  }
}

template <DType D, bool positions>
void kernel(void* const* buffers, int64_t begin, int64_t end,
            const KernelContext* context) {
  sort_rows<D>(buffers, begin, end, context, positions);
}

}  // namespace

SortKernel sort_kernel(DType dtype, int64_t rows, int64_t length,
                       bool positions) {
  SortKernel result;
  result.function = with_dtype(dtype, [&]<DType D>() -> KernelFunction {
    return positions ? kernel<D, true> : kernel<D, false>;
  });
  const Parameters parameters{length};
  result.parameters.resize(sizeof parameters);
  std::memcpy(result.parameters.data(), &parameters, sizeof parameters);
  result.units = rows;
  result.grain = std::max<int64_t>(1, 1000 / std::max<int64_t>(length, 1));
  return result;
}

}  // namespace unisono::jit
