#pragma once
// How a nest runs: the order of its axes, which one is vectorised and how wide,
// what the units of parallel work are; and the two stages of large reductions.
#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "jit/ir/reduce_order.h"
#include "jit/kernel/kernel.h"
#include "runtime/tuning/tuning.h"

namespace unisono::jit {

/// What kernels are made for: unless it is said otherwise, one CPU's threads.
struct Machine {
  int vector_bytes = 16;          // of a register
  bool masked_bytes = false;      // masked loads and stores of 1 and 2 bytes
  bool native_half = false;       // half <-> float in hardware
  bool native_exponents = false;  // AVX-512's instructions for exponents
  unsigned row_lanes = 0;         // see EmitContext
  int64_t last_level_cache = 32 << 20;  // bytes

  /// A reduction to few points is done in two kernels, the first one of which
  /// does its chunks: to fewer than `kept` points, each of at least `reduced`
  /// elements, `elements` in all. So by the order of combination.
  struct TwoStages {
    int64_t kept = 0;
    int64_t reduced = 0, elements = 0;
  };
  TwoStages lanes = {
      tuning().cpu_two_stage_lanes_kept,
      tuning().cpu_two_stage_lanes_chunks* orders().reduce_chunk};
  TwoStages runs = {tuning().cpu_two_stage_runs_kept,
                    tuning().cpu_two_stage_runs* orders().reduce_run,
                    tuning().cpu_two_stage_runs_elements};
  TwoStages members = runs;
  TwoStages chains = {
      tuning().cpu_two_stage_products_kept,
      tuning().cpu_two_stage_products_chains* orders().dot_chain};
  /// Leaves of a members tree that the first of its two stages combines.
  int64_t members_leaf = orders().reduce_run;
  /// Of runs, the first stage combines several of a column as long as that many
  /// results are left; 0: it does not.
  int64_t enough_runs = 0;

  /// What a later loop over the same row computes again, in flops of an
  /// element: at most so many in all, and up to so many of one value rather
  /// than have it stored and loaded.
  int recomputed_flops = tuning().cpu_recomputed_flops,
      few_flops_again = tuning().cpu_recomputed_few;

  /// Of a loop that is known to take so many turns: they are counted, instead
  /// of asking after each one.
  bool counts_turns = false;
  /// Whether a kernel can be stopped before its end, so that a loop in it may
  /// take any time.
  bool stops_kernels = true;
};

/// Whether a reduction is done in two kernels, as Machine::TwoStages tells.
bool needs_two_stages(int64_t kept, int64_t reduced, CombineOrder order,
                      const Machine& machine);

/// If the kernel's one nest is such a reduction: makes the kernel reduce chunks
/// into new buffers, which `add_buffer` gives, and returns the kernel that
/// combines them and does what follows.
std::optional<Kernel> split_stages(
    Kernel& kernel, const Machine& machine,
    const std::function<int32_t(DType, int64_t elements)>& add_buffer);

/// Puts kept axes before reduced ones, drops those of extent 1, and joins
/// neighbours that every access crosses alike.
void merge_axes(Nest& nest);

/// Puts the axis last, of those that a product keeps, along which vectors of
/// its chains cost least.
void choose_vector_axis(Nest& nest, const Kernel& kernel,
                        const Machine& machine);

/// Cuts what does not fill whole squares off a nest that is best done in
/// squares; gives the nests in place of it.
std::vector<Nest> cut_tiles(Nest nest, const Kernel& kernel,
                            const Machine& machine);

/// Whether what argument `read` holds may be overwritten by argument `written`:
/// every element is read where, and before, it is written.
bool may_overwrite(const Kernel& kernel, int read, int written);

/// Whether argument `early`, which the kernel stores and reads again later, may
/// lie where it then stores argument `late`.
bool may_share(const Kernel& kernel, int early, int late);

/// How the points of a nest are walked.
enum class Form : uint8_t {
  map,      // vectors along the last axis
  tiles,    // the same, in squares with another axis that loads run along
  lanes,    // vectors along the reduced axes, which are innermost
  columns,  // vectors along the last kept axis; reduced axes in order
  scan,     // along the reduced axis
  scatter,  // points of the reduced axes in order
};

Form form_of(const Nest& nest);

/// The axis that loads run along which cross the last axis in strides; -1 if
/// there is none, or less than `size` of it.
int tile_axis(const Nest& nest, int64_t size);

/// A nest arranged: kept axes come first. A unit is one point of the kept axes
/// but the vectorised one, and one block of that.
struct Schedule {
  Form form = Form::map;
  int vector_axis = -1;  // -1: there is none, values are scalars
  int tile_axis = -1;    // tiles: the other axis of the squares
  int lanes = 1;         // elements per vector
  int64_t block = 1;     // extent of a unit along the vectorised kept axis
  int64_t blocks = 1;    // how many there are
  int64_t units = 1;
  int64_t grain = 1;
  int rows_axis = -1;  // map: a unit has so many rows along this axis, too
  int64_t rows = 1;
  bool streaming = false;     // stores bypass the cache
  bool scalar_tails = false;  // masks are slow for some element's size
  bool all_masked = false;    // one loop, masked, instead of a loop and a tail
  /// columns of fma chains: so many elements along the last axis, which is
  /// reduced, are loaded of each lane at once and transposed in registers; or
  /// so many rows of columns are combined with what a unit's columns have so
  /// far, which lies in memory. 0: neither.
  int64_t square = 0, rows_at_once = 0;
};
Schedule schedule(const Nest& nest, const Kernel& kernel,
                  const Machine& machine);

/// What the kernel stores, without its sums. From half of the last-level cache
/// on its stores bypass that; of a nest that is cut, those of all parts.
int64_t stored_bytes(const Kernel& kernel);

}  // namespace unisono::jit
