// The sorting kernels against std::sort with ties by position, in one and in
// many parts.
#include "jit/sort/sort_kernels.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstring>
#include <limits>
#include <numeric>
#include <random>

namespace unisono::jit {
namespace {

template <DType D>
auto value(typename StorageOf<D>::type x) {
  return static_cast<typename ComputeOf<D>::type>(x);
}

template <DType D>
std::vector<typename StorageOf<D>::type> sample(int64_t count, int spread) {
  using T = typename StorageOf<D>::type;
  std::mt19937_64 random(static_cast<uint64_t>(count + spread));
  std::vector<T> x(static_cast<size_t>(count));
  for (T& e : x) {
    if constexpr (D == DType::Bool) {
      e = random() % 2;
    } else if constexpr (DType::F16 <= D) {
      const double special[] = {0.0, -0.0, INFINITY, -INFINITY, NAN, -NAN};
      const auto k = random() % 64;
      e = T(static_cast<typename ComputeOf<D>::type>(
          k < 6 ? special[k]
                : static_cast<double>(random() % spread) / 8 - spread / 16.0));
    } else {
      e = static_cast<T>(spread == 1 ? random() : random() % spread);
    }
  }
  return x;
}

/// Runs the plan's launches as two halves each, in either order.
std::vector<uint8_t> run_plan(const SortPlan& plan, const void* input,
                              size_t output_bytes) {
  std::vector<uint8_t> output(output_bytes);
  std::vector<uint64_t> scratch(static_cast<size_t>(plan.scratch_bytes) / 8 +
                                1);
  void* buffers[] = {const_cast<uint8_t*>(plan.parameters.data()),
                     const_cast<void*>(input), output.data(), scratch.data()};
  ErrorWord error;
  std::atomic<bool> stop{false};
  const KernelContext context{&error, &stop, 0, &stop};
  for (const SortPlan::Launch& launch : plan.launches) {
    const int64_t half = launch.units / 2;
    launch.function(buffers, half, launch.units, &context);
    launch.function(buffers, 0, half, &context);
  }
  return output;
}

template <DType D>
void check(int64_t rows, int64_t length, int spread) {
  using T = typename StorageOf<D>::type;
  CAPTURE(name(D));
  CAPTURE(length);
  const std::vector<T> x = sample<D>(rows * length, spread);
  std::vector<int32_t> order(x.size());
  std::vector<T> sorted(x.size());
  for (int64_t r = 0; r < rows; ++r) {
    const T* line = x.data() + r * length;
    int32_t* at = order.data() + r * length;
    std::iota(at, at + length, 0);
    std::sort(at, at + length, [&](int32_t i, int32_t j) {
      const auto a = value<D>(line[i]), b = value<D>(line[j]);
      if constexpr (DType::F16 <= D) {
        if (std::isnan(a) != std::isnan(b)) return std::isnan(b);
      }
      if (a < b || b < a) return a < b;
      return i < j;
    });
    for (int64_t i = 0; i < length; ++i) sorted[r * length + i] = line[at[i]];
  }
  const auto values = run_plan(plan_sort(D, rows, length, false), x.data(),
                               x.size() * sizeof(T));
  const auto same = [](const std::vector<uint8_t>& bytes, const void* want) {
    return bytes.empty() || std::memcmp(bytes.data(), want, bytes.size()) == 0;
  };
  CHECK(same(values, sorted.data()));
  const auto positions = run_plan(plan_sort(D, rows, length, true), x.data(),
                                  x.size() * sizeof(int32_t));
  CHECK(same(positions, order.data()));
}

TEST_CASE("sort and argsort are stable, NaN last, zeros equal") {
  for (const DType dtype : all_dtypes) {
    with_dtype(dtype, [&]<DType D>() {
      for (const int64_t length : {0, 1, 2, 16, 17, 47, 48, 49, 300, 1000}) {
        check<D>(3, length, 100);
        check<D>(1, length, 2);
      }
      check<D>(1, 70'001, 50'000);
      check<D>(2, 65'536, is_integer(D) ? 1 : 7);
      check<D>(20, 5'000, 1'000'000);
    });
  }
}

TEST_CASE("sorts of long lines cut them at values") {
  check<DType::F32>(17, 66'000, 1'000'000);  // a line a unit
  check<DType::F32>(1, 1'100'000, 1'000'000);
  check<DType::F32>(1, 1'100'000, 1);  // all are alike
  check<DType::I32>(2, 600'000, 1);
  check<DType::F64>(1, 600'000, 3);
  check<DType::U64>(1, 600'000, 1);
}

}  // namespace
}  // namespace unisono::jit
