#pragma once
#include <optional>

#include "jit/transform/transforms.h"

namespace unisono::jit {

/// reduce_factors.cpp: the reduction `op`, in the order of members, of what all
/// devices have along the leading axis of `own`, where that is computed from
/// factors that are together much smaller, as an outer product is. The devices
/// exchange the factors, and each computes and reduces a part of the elements,
/// for all members, in place of exchanging `own`, or `stored` values of it.
/// Nothing, and nothing was appended, where `own` is not of that form.
/// `devices`: those that meet.
std::optional<NodeId> reduce_factors(Graph& graph, NodeId own, ir::Op op,
                                     int64_t stored,
                                     const ir::CollectiveAttrs& devices,
                                     uint32_t source);

}  // namespace unisono::jit
