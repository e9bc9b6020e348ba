#pragma once
// Calls of the host, as the reference evaluator and compiled programs make
// them.
#include <cstdint>
#include <vector>

#include "jit/reference/reference.h"
#include "runtime/result.h"

namespace unisono::jit {

/// Makes the calls of a host_call node: one, or one for each of its members
/// that takes part (ir::HostCallAttrs::members), in order. `results` are zeros
/// of the results' types, which are replaced. An error that has no place gets
/// the node's. If `call` is null nothing happens. A routine (jit/ir/routines.h)
/// is computed here, whatever `call` is.
Status call_host(const HostCall& call, const ir::Node& node, int64_t member,
                 const std::vector<HostArray>& operands,
                 std::vector<HostArray>& results);

}  // namespace unisono::jit
