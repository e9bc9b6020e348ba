#include "lang/ops/small_work.h"

#include <array>
#include <bit>
#include <cmath>
#include <cstring>

#include "jit/ir/kinds.h"
#include "jit/reference/nodes.h"
#include "jit/reference/product.h"
#include "jit/scalar/element.h"
#include "lang/context/literals.h"
#include "lang/ops/elements.h"
#include "lang/ops/operators.h"
#include "runtime/tuning/tuning.h"

namespace unisono::lang {
namespace {

constexpr size_t most_operands = 8;

/// Whether there are few enough bytes that no compiled code would be worth it.
/// A part of an array costs what the part does.
bool is_small(const Machine& machine, ir::Op op,
              std::span<const ArrayValue> operands, const ir::Type& type) {
  const int64_t most = machine.compile_threshold / 4;
  const bool takes_part = op == ir::Op::gather || op == ir::Op::slice;
  int64_t bytes = type.bytes();
  for (size_t i = takes_part ? 1 : 0; i < operands.size() && bytes < most; ++i)
    bytes += std::min(operands[i]->type.bytes(), most);
  return bytes < most;
}

/// The elements of an operand; nothing where they are not there.
std::optional<jit::reference::Value> value_of(const ArrayCell& cell) {
  using jit::reference::Value;
  if (cell.constant) {
    const auto held = static_cast<int64_t>(cell.constant->size());
    Value value = Value::view(cell.constant->data(), held);
    value.set_repeated(held != cell.type.bytes());
    return value;
  }
  const uint8_t* elements = readable_elements(cell);
  if (!elements) return std::nullopt;
  return Value::view(elements, cell.type.bytes());
}

}  // namespace

ArrayValue compute_small(Walk& walk, ir::Op op,
                         std::span<const ArrayValue> operands,
                         const ir::Attrs& attrs, const ir::Type& type) {
  const Machine& machine = walk.machine();
  if (!is_computed_here(walk) || operands.size() > most_operands ||
      !jit::reference::evaluates(ir::kind(op)) ||
      !is_small(machine, op, operands, type))
    return nullptr;
  std::array<jit::reference::Value, most_operands> values;
  std::array<jit::reference::Operand, most_operands> given;
  for (size_t i = 0; i < operands.size(); ++i) {
    auto value = value_of(*operands[i]);
    if (!value) return nullptr;
    values[i] = std::move(*value);
    given[i] = {&operands[i]->type, &values[i]};
  }
  const ir::Node node{op, {}, attrs, type, 0};
  const auto result = jit::reference::run_node(
      node, std::span(given).first(operands.size()), machine.checked);
  if (!result) return nullptr;
  auto [out, data] = unset_array(walk, type);
  if (!out) return nullptr;
  jit::reference::copy_dense(*result, type, data);
  return out;
}

namespace {

/// The one element type of two operands, of which one may be a number that
/// adopts the other's; nothing where there is more to be said.
std::optional<DType> one_dtype(const Value& a, const Value& b) {
  const ArrayCell *x = a.array(), *y = b.array();
  const auto adopts = [](const Value& number, DType dtype) {
    const ArrayCell* cell = number.array();
    const bool is_int =
        cell ? is_integer(cell->type.dtype) : number.is<IntValue>();
    if (cell && !cell->constant) return false;
    if (cell && cell->type.dtype == DType::U64) return false;  // beyond i64
    return is_floating(dtype) ? cell || is_int : is_integer(dtype) && is_int;
  };
  if (x && !x->weak) {
    const DType dtype = x->type.dtype;
    if (y && !y->weak)
      return dtype == y->type.dtype ? std::optional(dtype) : std::nullopt;
    return adopts(b, dtype) ? std::optional(dtype) : std::nullopt;
  }
  if (!y || y->weak) return std::nullopt;
  return adopts(a, y->type.dtype) ? std::optional(y->type.dtype) : std::nullopt;
}

/// A number as an element, if that is one without more ado: a number that the
/// type may be too narrow for is looked at where it becomes an array.
bool put_number(const Value& number, DType dtype, uint64_t& element) {
  uint64_t from = 0;
  DType own = DType::I64;
  if (const auto* i = number.get_if<IntValue>()) {
    from = static_cast<uint64_t>(i->value.value());
  } else {
    const ArrayCell& cell = *number.array();
    own = cell.type.dtype;
    std::memcpy(&from, cell.constant->data(), sizeof from);
  }
  // What all types hold.
  constexpr int64_t most_whole = 127;
  constexpr double most = 1e4;
  if (own == DType::I64) {
    const auto value = static_cast<int64_t>(from);
    if (value < 0 || value > most_whole) return false;
  } else if (!(std::abs(std::bit_cast<double>(from)) < most)) {
    return false;
  }
  const void* in[] = {&from};
  const int64_t stride[] = {0};
  jit::cast_loop(own, dtype)(&element, in, stride, 1, nullptr);
  return true;
}

/// A number as an element.
ArrayValue adopted(Walk& walk, const CallArgument& number, DType dtype) {
  if (const auto* i = number.value.get_if<IntValue>())
    return walk.constant_int(i->value.value(), dtype, false, number.where);
  return adopt_dtype(walk, *number.value.array(), dtype, number.where);
}

}  // namespace

ArrayValue small_binary(Walk& walk, BinaryOp op, const CallArgument& a,
                        const CallArgument& b) {
  const bool comparison = class_of(op) == OpClass::comparison;
  if (!is_computed_here(walk) ||
      !(comparison || class_of(op) == OpClass::arithmetic))
    return nullptr;
  const auto dtype = one_dtype(a.value, b.value);
  const ir::Op operation = *operation_of(op);
  if (!dtype || !ir::admits(operation, *dtype)) return nullptr;

  // Its own shape if it is an array, else none.
  const ArrayCell *x = a.value.array(), *y = b.value.array();
  const bool x_scalar = !x || x->type.shape.empty();
  const bool y_scalar = !y || y->type.shape.empty();
  if (!x_scalar && !y_scalar && x->type.shape != y->type.shape) return nullptr;
  const ArrayCell& shaped = x_scalar && y ? *y : *x;
  // A number without a type may be wider than what it becomes.
  const int64_t elements = shaped.type.elements();
  if (3 * elements * byte_size(*dtype) >= walk.machine().compile_threshold / 4)
    return nullptr;

  ArrayValue numbers[2];
  uint64_t elements_of_numbers[2] = {};
  const void* in[2];
  const int64_t strides[2] = {x_scalar ? 0 : 1, y_scalar ? 0 : 1};
  const CallArgument* operands[2] = {&a, &b};
  for (int i = 0; i < 2; ++i) {
    const ArrayCell* cell = operands[i]->value.array();
    if (!cell || cell->weak) continue;
    in[i] = readable_elements(*cell);
    if (!in[i]) return nullptr;
  }
  for (int i = 0; i < 2; ++i) {
    const ArrayCell* cell = operands[i]->value.array();
    if (cell && !cell->weak) continue;
    if (put_number(operands[i]->value, *dtype, elements_of_numbers[i])) {
      in[i] = &elements_of_numbers[i];
      continue;
    }
    numbers[i] = adopted(walk, *operands[i], *dtype);
    in[i] = numbers[i]->constant->data();
  }
  auto [out, data] =
      unset_array(walk, comparison ? DType::Bool : *dtype, shaped.type.shape);
  if (!out) return nullptr;
  jit::ElementError error;
  jit::element_loop(operation, *dtype)(
      data, in, strides, elements, walk.machine().checked ? &error : nullptr);
  return error.fault == jit::Fault::none ? std::move(out) : nullptr;
}

ArrayValue number_binary(Walk& walk, BinaryOp op, const CallArgument& a,
                         const CallArgument& b) {
  if (walk.mode() != Mode::run) return nullptr;
  const ir::Op operation = *operation_of(op);
  const OpClass cls = class_of(op);
  const bool comparison = cls == OpClass::comparison;
  if (!comparison && cls != OpClass::arithmetic) return nullptr;
  const ArrayCell *x = a.value.array(), *y = b.value.array();
  if (!x && !y) return nullptr;
  const DType dtype = (x ? x : y)->type.dtype;
  if (!ir::admits(operation, dtype)) return nullptr;
  ArrayValue numbers[2];
  const CallArgument* operands[2] = {&a, &b};
  for (int i = 0; i < 2; ++i) {
    const CallArgument& operand = *operands[i];
    if (const auto* cell = operand.value.get_if<ArrayValue>()) {
      const bool plain =
          (*cell)->weak && (*cell)->constant && (*cell)->type.dtype == dtype;
      if (!plain) return nullptr;
      numbers[i] = *cell;
      continue;
    }
    const auto* n = operand.value.get_if<IntValue>();
    if (!n || dtype != DType::I64) return nullptr;
    numbers[i] =
        walk.constant_int(n->value.value(), dtype, true, operand.where);
  }
  return fold_literals(operation, numbers, comparison ? DType::Bool : dtype)
      .value_or(nullptr);
}

ArrayValue small_product(Walk& walk, const Value& a, const Value& b) {
  const ArrayCell *x = a.array(), *y = b.array();
  if (!x || !y || !is_computed_here(walk)) return nullptr;
  const DType dtype = x->type.dtype;
  const ir::Shape &left = x->type.shape, &right = y->type.shape;
  if ((dtype != DType::F32 && dtype != DType::F64) || y->type.dtype != dtype ||
      left.size() != 2 || right.size() != 2 || left[1] != right[0])
    return nullptr;
  const int64_t m = left[0].value(), k = left[1].value(), n = right[1].value();
  const int64_t most = walk.machine().compile_threshold / 4 / byte_size(dtype);
  // None is so large that their products overflow.
  if (m >= most || n >= most || k > orders().dot_chain ||
      m * k + k * n + m * n >= most)
    return nullptr;
  const uint8_t *in = readable_elements(*x), *other = readable_elements(*y);
  if (!in || !other) return nullptr;
  auto [out, data] = unset_array(walk, dtype, {left[0], right[1]});
  if (out) jit::reference::multiply(dtype, in, other, m, k, n, data);
  return out;
}

}  // namespace unisono::lang
