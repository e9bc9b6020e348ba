#pragma once
// The sizes at which compiled code goes another way, in one place: shapes just
// below, at and just above each, by what is done along which axis.
#include <cstdint>
#include <vector>

#include "jit/ir/reduce_order.h"
#include "jit/kernel/grid_schedule.h"
#include "jit/kernel/schedule.h"
#include "runtime/tuning/tuning.h"

namespace unisono::jit::testing {

/// Along which axes of an array: of a matrix the first or the last one, or all
/// axes of a line or a matrix.
enum class Along : uint8_t { first, last, all };

/// What has limits of its own.
enum class Path : uint8_t { reduction, product, scan, sort, index };

/// What the shapes are made of. Orders define what results are; `cpu` and
/// `grid` say when reductions are cut. Where UNISONO_ORDERS and UNISONO_TUNING
/// make these small, so are the shapes.
struct Limits {
  int64_t lanes = reduce_lanes, chunk = orders().reduce_chunk,
          run = orders().reduce_run, chain = orders().dot_chain,
          group = scan_lanes, block = scan_block;
  Machine cpu = {}, grid = grid_machine();
  /// Points from which on sums of columns add rows, and are cut for that
  /// (jit/kernel/row_sums.cpp).
  int64_t added_rows = tuning().least_rows_points,
          cut_rows = tuning().least_rows_split;
  /// Elements of lines that are sorted in other ways (jit/sort).
  std::vector<int64_t> sorted = {tuning().few_inserted_keys,
                                 tuning().few_radix_keys,
                                 tuning().least_parted_line};
  /// Positions that a GPU does at once, and parts into which it cuts a scan
  /// (jit/plan/gpu_stages.cpp).
  int64_t positions = tuning().gpu_least_scattered_positions,
          parts = tuning().gpu_least_scanned_parts;
  /// Larger arrays are left out.
  int64_t most_elements = 70'000;
};

using Sizes = std::vector<int64_t>;

/// Shapes of one or two axes, without repetition.
std::vector<Sizes> shapes_at_limits(Path path, Along along,
                                    const Limits& limits);

}  // namespace unisono::jit::testing
