// One result element from one element of each operand: the rows of ops.def,
// `where`, `clip`, `cast`.
#include "lang/builtins_elementwise.h"

#include <fmt/format.h>

#include <array>

#include "jit/ir/kinds.h"
#include "lang/array_ops.h"
#include "lang/builtin_arguments.h"
#include "lang/operators.h"

namespace unisono::lang {
namespace {

/// What a row admits, for messages.
std::string_view class_text(ir::Op op) {
  const bool floats = ir::admits(op, DType::F32);
  const bool integers = ir::admits(op, DType::I32);
  const bool bools = ir::admits(op, DType::Bool);
  if (floats && integers) return "numbers";
  if (floats) return "floats";
  if (integers) return bools ? "integers and `bool`" : "integers";
  return "`bool`";
}

void check_class(BuiltinCall& call, ir::Op op, const ArrayValue& x,
                 Span where) {
  if (ir::admits(op, x->type.dtype)) return;
  Diagnostic d = diagnostic(Code::element_class, where, call.builtin.name,
                            class_text(op), x->type.to_string());
  if (is_bool(x->type.dtype)) d.set_help("count with `i32(x)`");
  if (is_floating(x->type.dtype)) d.set_help("cast with `i32(x)`");
  call.evaluator.fail(std::move(d));
}

bool floats_only(ir::Op op) {
  return ir::admits(op, DType::F32) && !ir::admits(op, DType::I32);
}

/// The operator that a binary row is, if it is one.
std::optional<BinaryOp> operator_of(ir::Op op) {
  switch (op) {
    case ir::Op::add: return BinaryOp::add;
    case ir::Op::sub: return BinaryOp::sub;
    case ir::Op::mul: return BinaryOp::mul;
    case ir::Op::div: return BinaryOp::div;
    case ir::Op::floor_div: return BinaryOp::floor_div;
    case ir::Op::mod: return BinaryOp::mod;
    case ir::Op::pow: return BinaryOp::pow;
    case ir::Op::bit_and: return BinaryOp::bit_and;
    case ir::Op::bit_or: return BinaryOp::bit_or;
    case ir::Op::bit_xor: return BinaryOp::bit_xor;
    case ir::Op::shift_left: return BinaryOp::shift_left;
    case ir::Op::shift_right: return BinaryOp::shift_right;
    case ir::Op::eq: return BinaryOp::eq;
    case ir::Op::ne: return BinaryOp::ne;
    case ir::Op::lt: return BinaryOp::lt;
    case ir::Op::le: return BinaryOp::le;
    case ir::Op::gt: return BinaryOp::gt;
    case ir::Op::ge: return BinaryOp::ge;
    default: return std::nullopt;  // a function's name only
  }
}

/// The larger or smaller of two sizes; a new symbol where that is not known.
ir::Dim extreme_size(Evaluator& evaluator, bool larger, const ir::Dim& a,
                     const ir::Dim& b) {
  const ir::Dim difference = a - b;
  if (difference.is_constant() && !difference.overflowed())
    return (difference.value() > 0) == larger ? a : b;
  return ir::Dim::symbol(
      evaluator.new_symbol_id(),
      fmt::format("{}({}, {})", larger ? "maximum" : "minimum", a.to_string(),
                  b.to_string()));
}

/// `op` of a host int, which stays one; nothing for operations on floats.
std::optional<Value> unary_of_int(ir::Op op, const ir::Dim& x) {
  const bool known = x.is_constant() && !x.overflowed();
  switch (op) {
    case ir::Op::neg: return IntValue{ir::Dim(0) - x};
    case ir::Op::bit_not: return IntValue{ir::Dim(-1) - x};
    case ir::Op::abs:
      // A symbol stands for a size, which is not negative.
      return IntValue{known && x.value() < 0 ? ir::Dim(0) - x : x};
    case ir::Op::sign:
      if (!known) return std::nullopt;
      return IntValue{ir::Dim((x.value() > 0) - (x.value() < 0))};
    default: return std::nullopt;
  }
}

ArrayValue map(BuiltinCall& call, ir::Op op, std::vector<ArrayValue> operands,
               std::span<const CallArgument> written) {
  broadcast_all(call.evaluator, operands, written, call.where,
                fmt::format("`{}`", call.builtin.name));
  return call.evaluator.add(op, operands, ir::NoAttrs{}, call.where);
}

std::vector<CallArgument> all_arguments(const BuiltinCall& call) {
  std::vector<CallArgument> out;
  for (size_t i = 0; i < call.arguments.size(); ++i)
    if (given(call, i)) out.push_back(call[i]);
  return out;
}

}  // namespace

Value elementwise_unary(BuiltinCall& call, ir::Op op) {
  if (const auto* x = call[0].value.get_if<IntValue>())
    if (auto result = unary_of_int(op, x->value)) return *result;
  const std::string what = fmt::format("`{}`", call.builtin.name);
  const std::array<CallArgument, 1> written = {call[0]};
  const ArrayValue x = floats_only(op)
                           ? promote_to_float(call.evaluator, written, what)[0]
                           : array_argument(call, 0);
  check_class(call, op, x, call[0].where);
  ArrayValue out = call.evaluator.add(op, {x}, ir::NoAttrs{}, call.where);
  out->weak = x->weak && out->type.dtype == x->type.dtype;
  return out;
}

Value elementwise_binary(BuiltinCall& call, ir::Op op) {
  if (auto symbol = operator_of(op))
    return binary(call.evaluator, *symbol, call[0], call[1], call.where,
                  call.where);
  const auto* a = call[0].value.get_if<IntValue>();
  const auto* b = call[1].value.get_if<IntValue>();
  const bool extreme = op == ir::Op::maximum || op == ir::Op::minimum;
  if (a && b && extreme)
    return IntValue{extreme_size(call.evaluator, op == ir::Op::maximum,
                                 a->value, b->value)};
  const std::vector<CallArgument> written = all_arguments(call);
  if (written.size() != 2)
    wrong_argument(call, given(call, 0) ? 1 : 0, "an array");
  const std::string what = fmt::format("`{}`", call.builtin.name);
  std::vector<ArrayValue> operands =
      floats_only(op) ? promote_to_float(call.evaluator, written, what)
                      : promote_operands(call.evaluator, written, what);
  check_class(call, op, operands[0], call.where);
  const bool weak = operands[0]->weak && operands[1]->weak;
  ArrayValue out = map(call, op, std::move(operands), written);
  out->weak = weak && is_floating(out->type.dtype);
  return out;
}

Value builtin_where(BuiltinCall& call) {
  const ArrayValue condition = array_argument(call, 0);
  if (!is_bool(condition->type.dtype))
    call.evaluator.fail(diagnostic(Code::element_class, call[0].where, "where",
                                   "a `bool` condition",
                                   condition->type.to_string())
                            .set_help("compare: `c != 0`"));
  const std::array<CallArgument, 2> branches = {call[1], call[2]};
  std::vector<ArrayValue> values =
      promote_operands(call.evaluator, branches, "`where`");
  const bool weak = values[0]->weak && values[1]->weak;
  ArrayValue out = map(call, ir::Op::select, {condition, values[0], values[1]},
                       std::array<CallArgument, 3>{call[0], call[1], call[2]});
  out->weak = weak;
  return out;
}

Value builtin_clip(BuiltinCall& call) {
  if (!given(call, 0)) wrong_argument(call, 0, "an array");
  const std::vector<CallArgument> written = all_arguments(call);
  std::vector<ArrayValue> values =
      promote_operands(call.evaluator, written, "`clip`");
  ArrayValue x = values[0];
  size_t next = 1;
  for (size_t i : {1, 2}) {
    if (!given(call, i)) continue;
    const ir::Op op = i == 1 ? ir::Op::maximum : ir::Op::minimum;
    x = map(call, op, {x, values[next]},
            std::array<CallArgument, 2>{call[0], written[next]});
    ++next;
  }
  return x;
}

Value builtin_fma(BuiltinCall& call) {
  const std::vector<CallArgument> written = all_arguments(call);
  if (written.size() != 3) wrong_argument(call, 0, "an array");
  return map(call, ir::Op::fma,
             promote_to_float(call.evaluator, written, "`fma`"), written);
}

Value builtin_cast(BuiltinCall& call) {
  const auto* type = call[1].value.get_if<TypeValue>();
  if (!type) wrong_argument(call, 1, "a type such as `f32`");
  return convert(call.evaluator, call[0], type->type, call.where);
}

Value convert(Evaluator& evaluator, const CallArgument& x, const ir::Type& type,
              Span where) {
  const std::string name = type.to_string();
  ArrayValue array = evaluator.to_array(
      x.value, x.where, fmt::format("the operand of `{}`", name));
  if (type.rank() > 0 && array->type.shape != type.shape)
    evaluator.fail(diagnostic(Code::shape_mismatch, x.where, name,
                              fmt::format("shape {}", shape_text(type.shape)),
                              array->type.to_string())
                       .set_help("a cast changes the element type alone; see "
                                 "`reshape` and `broadcast_to`"));
  // A literal is rounded once, to what it becomes.
  const bool rounds = array->weak && is_floating(type.dtype);
  if (rounds || (x.value.is<IntValue>() && is_integer(type.dtype)))
    return to_dtype(evaluator, x, WeakDType{type.dtype}, name);
  return cast_to(evaluator, array, type.dtype, where);
}

}  // namespace unisono::lang
