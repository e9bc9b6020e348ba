#pragma once
#include "jit/ir/graph.h"
#include "lang/context/call_of.h"

namespace unisono::lang {

/// The builtin of a REDUCE or SCAN row of ops.def; rows of one kind have one
/// signature.
Value reduction(CallOf<"sum">& call, ir::Op op);
Value running_total(CallOf<"cumsum">& call, ir::Op op);

template <ir::Op op>
Value reduction(CallOf<"sum">& call) {
  return reduction(call, op);
}
template <ir::Op op>
Value running_total(CallOf<"cumsum">& call) {
  return running_total(call, op);
}

}  // namespace unisono::lang
