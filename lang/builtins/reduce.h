#pragma once
#include "jit/ir/graph.h"
#include "lang/context/builtin.h"

namespace unisono::lang {

/// The builtin of a REDUCE or SCAN row of ops.def.
Value reduction(BuiltinCall& call, ir::Op op);
Value running_total(BuiltinCall& call, ir::Op op);

template <ir::Op op>
Value reduction(BuiltinCall& call) {
  return reduction(call, op);
}
template <ir::Op op>
Value running_total(BuiltinCall& call) {
  return running_total(call, op);
}

}  // namespace unisono::lang
