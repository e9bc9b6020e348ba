#include "jit/derivative/factors.h"

#include <concepts>
#include <type_traits>

#include "jit/ir/kinds.h"
#include "jit/scalar/element.h"
#include "runtime/check.h"

namespace unisono::jit {
namespace {

using ir::Graph;
using ir::NodeId;
using ir::Op;
using ir::Type;

/// Where the nodes of an expression go. All have one type, or are its masks.
struct Target {
  Graph& graph;
  Type type;
  uint32_t source;
};

/// The algebra of the column: values are nodes of a graph, and numbers.
struct Expr {
  Target* target;
  NodeId id;
};
struct Mask {
  Target* target;
  NodeId id;
};
/// What stands in a row without floats, and in one whose factor nobody knows.
struct None {};
struct Unknown {};
[[maybe_unused]] constexpr None none;
[[maybe_unused]] constexpr Unknown unknown;

NodeId operand(const Target&, Expr x) { return x.id; }
template <class T>
  requires std::is_arithmetic_v<T>
NodeId operand(Target& target, T value) {
  return target.graph.add_constant(
      target.type, element_bytes(target.type.dtype, static_cast<double>(value)),
      target.source);
}

Target& target_of(Expr x) { return *x.target; }
template <class A, class B>
Target& target_of(A a, B b) {
  if constexpr (std::same_as<A, Expr>)
    return *a.target;
  else
    return *b.target;
}

template <class... T>
concept Expression =
    (std::same_as<T, Expr> || ...) &&
    ((std::same_as<T, Expr> || std::is_arithmetic_v<T>) && ...);

template <class... T>
NodeId apply(Op op, T... x) {
  Target& to = target_of(x...);
  const std::vector<NodeId> operands = {operand(to, x)...};
  return to.graph.add(op, operands, ir::NoAttrs{}, to.source);
}

// The functions of the column are the rows of the table.
#define UNARY(name, ...)                        \
  [[maybe_unused]] Expr name(Expr x) {          \
    return {&target_of(x), apply(Op::name, x)}; \
  }
#define BINARY(name, ...)                             \
  template <class A, class B>                         \
    requires Expression<A, B>                         \
  Expr name(A x, B y) {                               \
    return {&target_of(x, y), apply(Op::name, x, y)}; \
  }
#define COMPARE(name, ...)                            \
  template <class A, class B>                         \
    requires Expression<A, B>                         \
  Mask name(A x, B y) {                               \
    return {&target_of(x, y), apply(Op::name, x, y)}; \
  }
#include "jit/ir/ops.def"

template <class A, class B>
  requires Expression<A, B>
Expr operator+(A x, B y) {
  return add(x, y);
}
template <class A, class B>
  requires Expression<A, B>
Expr operator-(A x, B y) {
  return sub(x, y);
}
template <class A, class B>
  requires Expression<A, B>
Expr operator*(A x, B y) {
  return mul(x, y);
}
template <class A, class B>
  requires Expression<A, B>
Expr operator/(A x, B y) {
  return div(x, y);
}
Expr operator-(Expr x) { return neg(x); }
template <class A, class B>
  requires Expression<A, B>
Mask operator==(A x, B y) {
  return eq(x, y);
}

template <class A, class B>
Expr where(Mask condition, A a, B b) {
  Target& to = *condition.target;
  const NodeId yes = operand(to, a), no = operand(to, b);
  return {&to, to.graph.add(Op::select, {condition.id, yes, no}, ir::NoAttrs{},
                            to.source)};
}
/// Of maximum(x, y) by x: 1 where x is the larger, a half each where they are
/// equal, 0 where one is NaN.
Expr larger(Expr x, Expr y) {
  return where(gt(x, y), 1, where(x == y, 0.5, 0));
}

Factor given(int number) {
  CHECK(number >= -1 && number <= 1);
  return {number == 0  ? Factor::Kind::zero
          : number > 0 ? Factor::Kind::one
                       : Factor::Kind::minus_one};
}
Factor given(Expr x) { return {Factor::Kind::node, x.id}; }
Factor given(None) {
  check_failed("a row of floats has a factor", __FILE__, __LINE__);
}
Factor given(Unknown) { return {Factor::Kind::unknown}; }

}  // namespace

Factor factor(Graph& graph, Op op, size_t operand, NodeId first, NodeId second,
              NodeId result, uint32_t source) {
  Target target{graph, graph.type(result), source};
  [[maybe_unused]] const Expr x{&target, first}, y{&target, second},
      r{&target, result};
  switch (op) {
#define UNARY(name, types, scalar, factor, ...) \
  case Op::name: return given(factor);
#define BINARY(name, types, scalar, by_x, by_y, ...) \
  case Op::name: return operand == 0 ? given(by_x) : given(by_y);
#include "jit/ir/ops.def"
#define COMPARE(name, ...) case Op::name:
#define PREDICATE(name, ...) case Op::name:
#define REDUCE(name, ...) case Op::name:
#define SCAN(name, ...) case Op::name:
#define OTHER(name, ...) case Op::name:
#include "jit/ir/ops.def"
    break;
  }
  check_failed("a row with factors", __FILE__, __LINE__);
}

bool has_no_factor(Op op, size_t operand) {
  if (op == Op::select) return operand == 0;
  if (op == Op::cast || op == Op::fma) return false;
  Graph scratch;
  const Type scalar{DType::F32, {}};
  const NodeId x = scratch.add_input(scalar), y = scratch.add_input(scalar),
               r = scratch.add_input(scalar);
  return factor(scratch, op, operand, x, y, r, 0).kind == Factor::Kind::zero;
}

}  // namespace unisono::jit
