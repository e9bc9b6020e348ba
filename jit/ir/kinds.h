#pragma once
// What follows from a node's kind: its type, its results, whether it may go.
#include <span>

#include "jit/ir/table.h"
#include "runtime/result.h"

namespace unisono::ir {

/// The type rule of every operation: the type of the result (the first result
/// of a control operation) from operand types and attributes, with symbolic
/// sizes or constants alike. An error says in one sentence why the operands do
/// not fit; the language finds its users' mistakes earlier and says them
/// better, so an error here is a bug of a pass or of printed IR. Not for
/// `input` (its type is given) and `project` (`result_type` of its operand).
Result<Type> infer_type(Op op, std::span<const Type> operands,
                        const Attrs& attrs);

/// What a REDUCE or SCAN row says (CHECK): the operation that combines two
/// elements, and the identity as bytes of one element of `dtype`.
Op combine_op(Op reduce_or_scan);
std::vector<uint8_t> identity_element(Op reduce_or_scan, DType dtype);
/// The reduction of `dtype` that combines by this operation; there must be one
/// (CHECK).
Op reduction_by(Op combine, DType dtype);

/// Whether the row's type class admits `dtype`.
bool admits(Op op, DType dtype);
/// Number of results (not one for control and host_call only).
int result_count(const Node& node);
/// Whether `project` reads the node's results.
bool has_results(const Node& node);
/// The type of result `index` of a control node or a host_call.
Type result_type(const Node& node, int index);
/// The stack that a counted loop makes of a part of this type.
Type stack_type(const LoopAttrs& loop, Type part);
/// The same, of the attributes of a host_call.
Type result_type(const HostCallAttrs& call, int index);
/// Whether the node can raise a checked error, has an effect, or may go on for
/// ever, so that it is kept even if its result is not used.
bool must_stay(const Graph& graph, const Node& node);
/// The number of members that a collective is over, and of those that meet: all
/// of them, or the first group's.
Dim member_count(const CollectiveAttrs& a);
Dim team_size(const CollectiveAttrs& a);
/// Whether a collective gives all members of its axes the same value.
bool same_for_all(const Node& collective);

}  // namespace unisono::ir
