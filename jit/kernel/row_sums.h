#pragma once
// Reductions of columns that add whole rows: a unit is a run of rows and a wide
// block of columns, whose sums so far lie in the first cache, so that memory is
// read in long pieces, in order. A vector of columns from top to bottom would
// read a few lines of each row, and the next vector the lines beside them.
#include "jit/kernel/schedule.h"

namespace unisono::jit {

/// Whether a reduction of so many points may add rows; smaller nests lie in the
/// caches, however they are read.
bool may_add_rows(CombineOrder order, int64_t points);

/// Whether the nest is a reduction in runs of columns that lie side by side in
/// all that it reads, and nothing else goes over its rows.
bool can_add_rows(const Nest& nest);

/// Rows that are added to the sums at once, by one pass over them; 0: the nest
/// is no run of rows, or too small for this to matter.
int64_t rows_at_once(const Nest& nest);

/// If the kernel's nest has more rows than a run and more than caches hold: as
/// split_stages, whose first kernel then adds rows.
std::optional<Kernel> split_rows(
    Kernel& kernel, const Machine& machine,
    const std::function<int32_t(DType, int64_t elements)>& add_buffer);

/// A kernel of two nests, of which one reduces along rows and the other adds
/// the same rows, in runs; what the first stores of a row the second may read
/// of it. A unit is a run: some rows are reduced, and added while they are in
/// the cache. The nests are merged.
struct RowsAndSums {
  Nest rows, sums;
  Schedule rows_plan, sums_plan;
};
/// Nothing if the kernel is none: its nests are then independent.
std::optional<RowsAndSums> rows_and_sums(const Kernel& kernel,
                                         const Machine& machine);

}  // namespace unisono::jit
