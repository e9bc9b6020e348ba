#pragma once
// The reference evaluator, which defines every operation: one plain loop per
// kind, no LLVM.
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "jit/ir/graph.h"
#include "runtime/result.h"

namespace unisono::jit {

/// One array on the host, dense and row-major: the currency of the evaluator.
/// Elements as stored (f16 and bf16 as 16 bits, bool as 0 or 1).
struct HostArray {
  ir::Type type;  // concrete
  std::vector<uint8_t> bytes;
};

/// Makes a call of a `host_call` node for one member, -1 outside a map.
/// `results` have their types, and zeros that it replaces.
using HostCall = std::function<Status(const ir::Node& node, int64_t member,
                                      const std::vector<HostArray>& operands,
                                      std::vector<HostArray>& results)>;

struct ReferenceOptions {
  HostCall host_call;
  /// The device that a member is on: between two collectives host calls come
  /// in the order of devices, as they do when devices run. Null: all members
  /// are on one device.
  std::function<int(int64_t member)> device_of;
  /// Whose call it is: the first of those members for which it is made once.
  /// Null: each member makes its own.
  std::function<int64_t(const ir::HostCallAttrs& call, int64_t member)>
      caller_of;
  /// Polled at every loop iteration and every node; true stops evaluation.
  std::function<bool()> stop;
  /// Whether integer division by zero and bad indexes are errors.
  bool checked = true;
};

/// Evaluates `graph`, which has no collectives. Fails with integer_division,
/// index_out_of_bounds, check_failed (a negative exponent), out_of_memory (a
/// value above 2^34 bytes) or cancelled.
Result<std::vector<HostArray>> evaluate(const ir::Graph& graph,
                                        const std::vector<HostArray>& inputs,
                                        const ReferenceOptions& options = {});

/// An axis that is mapped while a graph is evaluated.
struct MemberAxis {
  ir::AxisId id = 0;
  int64_t size = 1;
};

/// Evaluates one member's graph for all members of `axes` (the first
/// outermost), in lockstep: each node for every member that takes part, before
/// the next node. inputs[m] are the arguments of member m. This is what `pmap`
/// means, whatever devices do. A collective that not all members reach together
/// is an error (check_failed). Of errors that several members have before they
/// meet again, that of the first member is given, as it would be on devices.
Result<std::vector<std::vector<HostArray>>> evaluate_members(
    const ir::Graph& graph, const std::vector<MemberAxis>& axes,
    const std::vector<std::vector<HostArray>>& inputs,
    const ReferenceOptions& options = {});
/// The same for the members of one axis, as many as there are in `inputs`.
Result<std::vector<std::vector<HostArray>>> evaluate_members(
    const ir::Graph& graph, ir::AxisId axis,
    const std::vector<std::vector<HostArray>>& inputs,
    const ReferenceOptions& options = {});

}  // namespace unisono::jit
