#include "lang/context/literals.h"

#include <fmt/format.h>

#include <array>
#include <cstring>

#include "jit/ir/kinds.h"
#include "jit/scalar/element.h"
#include "lang/context/walk.h"
#include "lang/syntax/literal_range.h"
#include "runtime/recycling.h"

namespace unisono::lang {
namespace {

std::string_view range_of(DType dtype) {
  if (dtype == DType::F16) return "-65504 to 65504";
  return dtype == DType::BF16 ? "-3.39e38 to 3.39e38"
                              : "-3.4028e38 to 3.4028e38";
}

}  // namespace

void require_finite(Walk& walk, double value, DType dtype, Span where) {
  if (stays_finite(value, dtype)) return;
  walk.fail(
      diagnostic(Code::literal_range, where, fmt::format("{}", value),
                 name(dtype), range_of(dtype))
          .set_help(dtype == DType::F32
                        ? fmt::format("write it with its type: `{}f64`; "
                                      "`inf` is infinite",
                                      value)
                        : "it needs a wider type, such as `f32`; `inf` is "
                          "infinite"));
}

std::string integer_range(DType dtype) {
  return with_dtype(dtype, []<DType D>() -> std::string {
    using T = typename ComputeOf<D>::type;
    return fmt::format("{} to {}", +std::numeric_limits<T>::lowest(),
                       +std::numeric_limits<T>::max());
  });
}

// ---- weak numbers ----------------------------------------------------------

DType default_dtype(const ArrayCell& array) {
  if (!array.weak) return array.type.dtype;
  return is_floating(array.type.dtype) ? DType::F32 : DType::I32;
}

ir::Type shown_type(const ArrayCell& array) {
  return {default_dtype(array), array.type.shape};
}

namespace {
template <class T>
T element_of(const ArrayCell& array) {
  T value;
  std::memcpy(&value, array.constant->data(), sizeof value);
  return value;
}
}  // namespace

std::optional<double> literal_of(const Value& value) {
  if (const auto* i = value.get_if<IntValue>())
    return i->value.is_constant()
               ? std::optional<double>(static_cast<double>(i->value.value()))
               : std::nullopt;
  const ArrayCell* array = value.array();
  if (!array || !array->literal || !array->constant) return std::nullopt;
  if (array->type.dtype == DType::F64) return element_of<double>(*array);
  if (array->type.dtype == DType::U64)
    return static_cast<double>(element_of<uint64_t>(*array));
  return static_cast<double>(element_of<int64_t>(*array));
}

std::optional<int64_t> known_integer(const ArrayCell& array) {
  if (!array.weak || !array.constant || array.type.dtype != DType::I64)
    return std::nullopt;
  return element_of<int64_t>(array);
}

void give_up_int_argument(Span where) {
  throw Failure{diagnostic(Code::argument_not_known, where, "an int"), true};
}

void require_known(const CallNumbers& numbers, Span where) {
  if (numbers.empty()) return;
  for (const auto& number : numbers) number->needed = true;
  give_up_int_argument(where);
}

void require_known(const ArrayCell& number, Span where) {
  if (number.weak) require_known(number.call_numbers, where);
}

std::optional<ArrayValue> fold_literals(ir::Op op,
                                        std::span<const ArrayValue> operands,
                                        DType result) {
  constexpr size_t most = 3;
  if (ir::kind(op) != ir::Kind::map || operands.empty() ||
      operands.size() > most)
    return std::nullopt;
  bool literal = true;
  std::array<const void*, most> in = {};
  for (size_t i = 0; i < operands.size(); ++i) {
    const ArrayCell& operand = *operands[i];
    if (!operand.weak || !operand.constant) return std::nullopt;
    literal &= operand.literal;
    in[i] = operand.constant->data();
  }
  const DType dtype = operands.back()->type.dtype;
  const jit::ElementLoop loop = op == ir::Op::cast
                                    ? jit::cast_loop(dtype, result)
                                    : jit::element_loop(op, dtype);
  if (!loop) return std::nullopt;
  const std::array<int64_t, most> stride = {};
  std::vector<uint8_t> bytes(static_cast<size_t>(byte_size(result)));
  jit::ElementError error;
  loop(bytes.data(), in.data(), stride.data(), 1, &error);
  if (error.fault != jit::Fault::none) return std::nullopt;
  auto cell = make_recycled<ArrayCell>();
  cell->type.dtype = result;
  cell->constant = make_recycled<std::vector<uint8_t>>(std::move(bytes));
  cell->weak = !is_bool(result);
  cell->literal = cell->weak && literal;
  return cell;
}

ArrayValue adopt_dtype(Walk& walk, const ArrayCell& constant, DType dtype,
                       Span where) {
  const DType own = constant.type.dtype;
  // What a `var` holds is converted as compiled code does, which does not know
  // it: only a number as the program says it has to fit.
  if (own == DType::I64 && constant.literal)
    return walk.constant_int(element_of<int64_t>(constant), dtype, false,
                             where);
  if (own == DType::U64 && is_integer(dtype) && dtype != DType::U64 &&
      constant.literal)
    walk.fail(diagnostic(Code::literal_range, where,
                         element_of<uint64_t>(constant), name(dtype),
                         integer_range(dtype))
                  .set_help("`u64` holds up to 2**64 - 1"));
  if (own == DType::F64 && constant.literal)
    require_finite(walk, element_of<double>(constant), dtype, where);
  std::vector<uint8_t> bytes(static_cast<size_t>(byte_size(dtype)));
  const void* in[] = {constant.constant->data()};
  const int64_t stride[] = {0};
  jit::cast_loop(own, dtype)(bytes.data(), in, stride, 1, nullptr);
  return walk.constant_array({dtype, {}}, std::move(bytes), where);
}

}  // namespace unisono::lang
