#pragma once
// Kernels for GPUs that are the same in all programs: kernel_library/*.cc,
// which clang turns into PTX when this is built, for the oldest compute
// capability that is supported and, where that helps, for newer ones. The
// structures of constants have the layouts that those files declare.
#include <compare>
#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "runtime/dtype.h"
#include "runtime/grid.h"

namespace unisono {

/// The PTX of one file for one compute capability: the name "dot_f16-80" is
/// dot_f16.cc for sm_80, "-90a" for sm_90 alone.
struct KernelModule {
  const char *name, *ptx;
};
/// All files of the library; generated.
const std::vector<KernelModule>& kernel_modules();

/// The kernels of one file, by its name without ending, which must exist
/// (CHECK). Thread-safe.
std::shared_ptr<const GridCode> kernel_library(std::string_view name);

/// The constants of sort.cc and radix.cc; sort_key.h says what they mean.
struct SortCall {
  int64_t rows = 1, length = 1;
  int64_t run = 1;
  uint64_t infinity = 0;
  int32_t kind = 0;
};
/// Elements of a line that one block sorts at first, or moves in a pass of a
/// radix sort.
inline constexpr int64_t sort_tile = 1024, radix_tile = 6144;
/// Tiles that a block of a radix sort counts, and words of its counters that
/// are before the totals.
inline constexpr int64_t radix_counted = 4, radix_tickets = 4;

/// The constants of combine.cc, which says what they mean.
struct CombineCall {
  int64_t elements = 0;
  int32_t op = 0;
  int32_t small = 0;
};

/// The constants of the files of products (product.h).
struct DotCall {
  int64_t batch = 1, m = 1, n = 1, k = 1;
  int64_t a_offset = 0, a_batch = 0, a_row = 0, a_column = 1;
  int64_t b_offset = 0, b_batch = 0, b_row = 0, b_column = 1;
  int64_t c_offset = 0;
  auto operator<=>(const DotCall&) const = default;
};
/// A product of matrices that may be summed in any order; with `tf32` its
/// operands may be rounded to that format.
struct MatrixProduct {
  DType dtype = DType::F32;
  bool tf32 = false;
  DotCall sizes;
  auto operator<=>(const MatrixProduct&) const = default;
};

}  // namespace unisono
