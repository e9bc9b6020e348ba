#pragma once
// Statements' graphs with loops, which are compiled whatever their size.
#include <vector>

#include "lang/context/walk.h"

namespace unisono::lang {

bool has_loop(const ir::Graph& graph);

/// Computes such a graph, as it was traced. What it is compiled to is kept, and
/// found again by the graph itself, in which a `scan` has the body that it had
/// before: so it is neither cleaned nor printed once more.
std::vector<unisono::Array> compute_with_loop(
    Walk& walk, const ir::Graph& traced, std::vector<unisono::Array> inputs,
    Span where);

}  // namespace unisono::lang
