#pragma once
// The map rows of ops.def as types: one struct per row, whose `apply` is the
// row's scalar expression over any algebra (scalar.h).
#include <tuple>

#include "jit/ir/graph.h"
#include "jit/ir/table.h"
#include "jit/ir/type_class.h"
#include "jit/scalar/math.h"
#include "jit/scalar/ops.h"
#include "jit/scalar/threefry.h"

namespace unisono::jit::inline UNISONO_INSTRUCTIONS::rows {

#define ROW1(name, types, is_bool, how_dear, expression)              \
  struct name##_row {                                                 \
    static constexpr ir::TypeClass type_class = ir::TypeClass::types; \
    static constexpr int operands = 1;                                \
    static constexpr bool gives_bool = is_bool;                       \
    static constexpr ir::Cost cost = ir::Cost::how_dear;              \
    template <class V>                                                \
    static auto apply(V x) {                                          \
      return expression;                                              \
    }                                                                 \
  };
#define ROW2(name, types, is_bool, how_dear, expression)              \
  struct name##_row {                                                 \
    static constexpr ir::TypeClass type_class = ir::TypeClass::types; \
    static constexpr int operands = 2;                                \
    static constexpr bool gives_bool = is_bool;                       \
    static constexpr ir::Cost cost = ir::Cost::how_dear;              \
    template <class V>                                                \
    static auto apply(V x, V y) {                                     \
      return expression;                                              \
    }                                                                 \
  };
#define UNARY(name, types, expression, factor, cost, ...) \
  ROW1(name, types, false, cost, expression)
#define BINARY(name, types, expression, by_x, by_y, cost, ...) \
  ROW2(name, types, false, cost, expression)
#define PREDICATE(name, types, expression, ...) \
  ROW1(name, types, true, cheap, expression)
#define COMPARE(name, types, expression, ...) \
  ROW2(name, types, true, cheap, expression)
#include "jit/ir/ops.def"
#undef ROW1
#undef ROW2

}  // namespace unisono::jit::inline UNISONO_INSTRUCTIONS::rows

namespace unisono::jit::inline UNISONO_INSTRUCTIONS {

/// Whether `op` is a map row with a scalar expression.
constexpr bool has_row(ir::Op op) {
  switch (op) {
#define UNARY(name, ...) case ir::Op::name:
#define BINARY(name, ...) case ir::Op::name:
#define COMPARE(name, ...) case ir::Op::name:
#define PREDICATE(name, ...) case ir::Op::name:
#include "jit/ir/ops.def"
    return true;
#define REDUCE(name, ...) case ir::Op::name:
#define SCAN(name, ...) case ir::Op::name:
#define OTHER(name, ...) case ir::Op::name:
#include "jit/ir/ops.def"
    return false;
  }
  __builtin_unreachable();
}

/// Calls `f.template operator()<Row>()` with the struct of `op`, a map row.
template <class F>
decltype(auto) with_row(ir::Op op, F&& f) {
  switch (op) {
#define UNARY(name, ...) \
  case ir::Op::name: return f.template operator()<rows::name##_row>();
#define BINARY UNARY
#define COMPARE UNARY
#define PREDICATE UNARY
#include "jit/ir/ops.def"
#define REDUCE(name, ...) case ir::Op::name:
#define SCAN(name, ...) case ir::Op::name:
#define OTHER(name, ...) case ir::Op::name:
#include "jit/ir/ops.def"
    break;
  }
  __builtin_unreachable();
}

}  // namespace unisono::jit::inline UNISONO_INSTRUCTIONS
