#pragma once
// What is kept of a computation for its derivative in reverse, and what is
// computed again.
#include <vector>

#include "jit/ir/graph.h"
#include "jit/ir/renaming.h"

namespace unisono::jit {

/// The nodes of `known` to keep, so that all `wanted` nodes can be computed
/// again from them, from the inputs that are `free` (they are there anyway) and
/// from constants: as few bytes as possible, where an operation that is done
/// twice counts as a tenth of a byte; of equal choices the earlier nodes. Maps,
/// moves and gathers may be computed again, products, sorts, reductions and
/// control not. `outputs` is what `known` is computed for besides: what only
/// the wanted nodes need is not done twice. Empty: all of it is.
std::vector<ir::NodeId> residuals(const ir::Graph& known,
                                  const std::vector<bool>& free,
                                  const std::vector<ir::NodeId>& wanted,
                                  const std::vector<ir::NodeId>& outputs = {});

/// Which nodes of `known` computing the wanted ones needs, where the kept ones
/// are there; of kept nodes nothing before them.
std::vector<bool> needed_for(const ir::Graph& known,
                             const std::vector<ir::NodeId>& kept,
                             const std::vector<ir::NodeId>& wanted);

/// Appends to `out` what computes the wanted nodes of `known` again; inputs
/// that this needs, and kept nodes, are in `have`. Nothing is checked again.
/// Gives the wanted nodes' ids in `out`.
std::vector<ir::NodeId> recompute(ir::Graph& out, const ir::Graph& known,
                                  ir::Renaming have,
                                  const std::vector<ir::NodeId>& wanted);

}  // namespace unisono::jit
