#pragma once
#include "jit/ir/graph.h"
#include "lang/context/call_of.h"

namespace unisono::lang {

/// The builtin of a row of ops.def with one or two operands.
Value elementwise_unary(Argument x, ir::Op op);
Value elementwise_binary(Argument x, Argument y, ir::Op op);

// Rows of one kind have one signature.
template <ir::Op op>
Value elementwise_unary(CallOf<"neg">& call) {
  return elementwise_unary(call["x"], op);
}
template <ir::Op op>
Value elementwise_binary(CallOf<"add">& call) {
  return elementwise_binary(call["x"], call["y"], op);
}

}  // namespace unisono::lang
