#pragma once
// What members give one another in a collective, once all have arrived.
#include <vector>

#include "jit/ir/graph.h"
#include "jit/reference/value.h"

namespace unisono::jit::reference {

/// The members' results, by position, from their operands (dense, of type
/// `type`). A result for which there is no memory is not ok().
std::vector<Value> meet(const ir::Node& node, const ir::Type& type,
                        const std::vector<Value>& operands);

/// `own_part` for the member at `position`.
Value own_part(const ir::Node& node, const ir::Type& type, const Value& operand,
               int64_t position);

}  // namespace unisono::jit::reference
