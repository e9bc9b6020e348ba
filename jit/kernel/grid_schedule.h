#pragma once
// How a nest runs on a grid: its form, and who does a unit of it.
#include "jit/kernel/schedule.h"
#include "runtime/tuning/tuning.h"

namespace unisono::jit {

/// Threads of a block, of a warp, and warps of a block.
inline constexpr int grid_threads = 256, warp_threads = 32,
                     block_warps = grid_threads / warp_threads;
/// Rows and columns of a square that a block does through shared memory, of
/// small arrays and of large ones, of which more has to be under way at once.
inline constexpr int64_t grid_tile = 32, large_grid_tile = 64;
/// Bytes of shared memory: every GPU gives a block 48 KiB, of which a table of
/// eight rows (jit/scalar/scalar.h) may take a part.
inline constexpr int64_t grid_table_bytes = 256,
                         grid_shared_bytes = (48 << 10) - grid_table_bytes;

/// A GPU takes tens of thousands of threads to be busy, and a block does a
/// members tree of some tiles; a longer one is done tile by tile, by many. It
/// computes an exponential in the time in which it moves a byte or two, so
/// nothing is stored that a later loop can compute. Its kernels are put on a
/// queue, so what asks after each turn of a loop waits for the GPU. A thread's
/// values are scalars.
inline Machine grid_machine() {
  return {
      .lanes = {tuning().gpu_two_stage_lanes_kept,
                tuning().gpu_two_stage_lanes_chunks * orders().reduce_chunk},
      .runs = {tuning().gpu_two_stage_runs_kept,
               tuning().gpu_two_stage_runs * orders().reduce_run,
               tuning().gpu_two_stage_runs_elements},
      .members = {tuning().gpu_two_stage_members_kept,
                  tuning().gpu_two_stage_members},
      .members_leaf = grid_threads,
      .enough_runs = tuning().gpu_enough_runs,
      .recomputed_flops = tuning().gpu_recomputed_flops,
      .few_flops_again = tuning().gpu_recomputed_few,
      .counts_turns = true,
      .stops_kernels = false};
}

/// What does one unit of a nest.
enum class Workers : uint8_t { thread, warp, block };

struct GridSchedule {
  Schedule plan;  // of values of width 1; `block`: elements of a unit of a map
  Workers workers = Workers::thread;
  int64_t repeats = 1;  // of all units: one for each position that is sorted
  /// Units that a thread does one after another, as the threads of a block do
  /// neighbours: addresses and constants are there from the first one on.
  int64_t turns = 1;
  int64_t blocks = 1;  // of threads
};
GridSchedule grid_schedule(const Nest& nest, const Kernel& kernel);

/// A large map, whose accesses of 16 bytes would not be aligned or whose rows
/// would not fill units: its edges are cut off. The first part is the inside.
std::vector<Nest> cut_edges(Nest nest, const Kernel& kernel);

/// Whether a square of what is loaded, along the two axes, is turned round in
/// shared memory: it lies along the first one, and is stored along the other.
bool goes_through_square(const Expr& expr, int down, int along);

/// Whether elements begin ... begin + width - 1 along `axis` lie together, at a
/// multiple of `width` elements, wherever `begin` is a multiple of `width`.
bool aligned_along(const Affine& at, int axis, int64_t width);

}  // namespace unisono::jit
