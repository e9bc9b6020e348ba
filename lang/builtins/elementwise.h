#pragma once
#include "jit/ir/graph.h"
#include "lang/context/builtin.h"

namespace unisono::lang {

/// The builtin of a row of ops.def with one or two operands.
Value elementwise_unary(BuiltinCall& call, ir::Op op);
Value elementwise_binary(BuiltinCall& call, ir::Op op);

template <ir::Op op>
Value elementwise_unary(BuiltinCall& call) {
  return elementwise_unary(call, op);
}
template <ir::Op op>
Value elementwise_binary(BuiltinCall& call) {
  return elementwise_binary(call, op);
}

}  // namespace unisono::lang
