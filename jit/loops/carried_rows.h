#pragma once
#include <cstdint>
#include <optional>

#include "jit/ir/graph.h"

namespace unisono::jit {

/// An array of which a counted loop reads and writes one row in each turn: turn
/// t takes row `first` + t, or `first` - t if `descends`.
struct CarriedRows {
  /// The loop without this carry. The row as it was is the last one of its
  /// rows, if `reads`; the row as it becomes is the last one of its parts.
  ir::LoopAttrs loop;
  int64_t first = 0;
  bool descends = false;
  bool reads = true;
};

/// carried_rows.cpp: takes carry `carry` out of a counted loop, if the body
/// uses it in this way: `y[i] = v`, `y[i] += v`, also in a branch, for the `i`
/// of `for i in range(...)`. All rows lie in the array. The same bits; a turn
/// then touches its row alone, wherever it runs.
std::optional<CarriedRows> rows_of_carry(const ir::LoopAttrs& loop, int carry);

}  // namespace unisono::jit
