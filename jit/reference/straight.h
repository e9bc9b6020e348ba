#pragma once
// Graphs without control, evaluated where their arrays lie, and about what that
// takes: the host decides by it whether code for a statement pays
// (lang/walk/compute.cpp).
#include <span>
#include <vector>

#include "jit/ir/graph.h"
#include "jit/reference/value.h"
#include "runtime/result.h"

namespace unisono::jit::reference {

/// Whether the evaluator's loops do all of a graph: it has no control,
/// collective or call of the host.
bool is_straight(const ir::Graph& graph);

/// The outputs of a straight graph, by the loops of `evaluate`, so with its
/// bits. The inputs, one for each of the graph's, are dense and outlive the
/// outputs, which may share their bytes. Fails as `evaluate` does.
Result<std::vector<Value>> evaluate_straight(const ir::Graph& graph,
                                             std::span<const Value> inputs,
                                             bool checked);

/// Nanoseconds that a straight graph takes.
struct Estimate {
  double evaluate = 0;  // by the loops of this room, on one processor
  double compile = 0;   // into code, before that runs
};

/// An estimate by operations and sizes alone, so that two runs, and all
/// processes, decide alike. Within a factor of 3 on a machine of 2024.
Estimate estimate(const ir::Graph& graph);

}  // namespace unisono::jit::reference
