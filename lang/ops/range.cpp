#include "lang/ops/range.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <vector>

#include "lang/ops/array_ops.h"
#include "lang/ops/operators.h"

namespace unisono::lang {
namespace {

/// Whether a 64-bit pattern is below another one, as numbers of the type.
bool less(uint64_t a, uint64_t b, DType dtype) {
  return is_signed(dtype) ? static_cast<int64_t>(a) < static_cast<int64_t>(b)
                          : a < b;
}

bool is_negative(uint64_t a, DType dtype) { return less(a, 0, dtype); }

/// A scalar constant's element as a 64-bit pattern.
std::optional<uint64_t> known_element(const ArrayValue& array) {
  if (!array->constant) return std::nullopt;
  const DType dtype = array->type.dtype;
  const auto size = static_cast<size_t>(byte_size(dtype));
  uint64_t bits = 0;
  std::memcpy(&bits, array->constant->data(), size);  // little endian
  const auto unused = static_cast<int>(64 - 8 * size);
  if (!is_signed(dtype)) return bits;
  return static_cast<uint64_t>(static_cast<int64_t>(bits << unused) >> unused);
}

}  // namespace

DType range_type(Walk& walk, const RangeValue& range, Span where) {
  const std::vector<Value>& parts = *range.start_stop_step;
  const CallArgument operands[] = {
      {parts[0], where}, {parts[1], where}, {parts[2], where}};
  const DType dtype = promoted_type(walk, operands, "`range`").dtype;
  if (is_integer(dtype)) return dtype;
  std::string others;
  for (const Value& part : parts)
    if (!part.is<IntValue>())
      others += (others.empty() ? "" : ", ") + type_name(part);
  walk.fail(diagnostic(Code::no_common_integer, where, "`range`", others)
                .set_help("convert them to one type: `cast(n, i64)`"));
}

ir::Dim range_count(Walk& walk, const RangeValue& range, std::string_view what,
                    Span where) {
  ir::Dim parts[3];
  for (int i = 0; i < 3; ++i) {
    const auto* known = (*range.start_stop_step)[i].get_if<IntValue>();
    if (!known)
      walk.fail(diagnostic(Code::not_known_int, where, what,
                           type_name((*range.start_stop_step)[i])));
    parts[i] = known->value;
  }
  if (parts[2] == ir::Dim(0))
    walk.fail(diagnostic(Code::zero_step, where, std::string_view("`range`")));
  const ir::Dim distance = parts[1] - parts[0];
  if (parts[2] == ir::Dim(1) && !distance.is_constant()) return distance;
  const ir::Dim count = ir::Dim(0) - floor_div(ir::Dim(0) - distance, parts[2]);
  return count.is_constant() && count.value() < 0 ? ir::Dim(0) : count;
}

uint64_t KnownRange::turns() const {
  if (is_negative(step, dtype))
    return less(stop, start, dtype) ? (start - stop - 1) / (0 - step) + 1 : 0;
  return less(start, stop, dtype) ? (stop - start - 1) / step + 1 : 0;
}

RangeArrays range_arrays(Walk& walk, const RangeValue& range, Span where) {
  const std::vector<Value>& parts = *range.start_stop_step;
  const DType dtype = range_type(walk, range, where);
  const auto part = [&](int i) {
    return to_dtype(walk, {parts[i], where}, {dtype, false}, "`range`");
  };
  RangeArrays out{part(0), part(1), part(2), std::nullopt, std::nullopt};
  const auto start = known_element(out.start), stop = known_element(out.stop),
             step = known_element(out.step);
  if (step == uint64_t{0})
    walk.fail(diagnostic(Code::zero_step, where, "`range`"));
  if (start && stop && step)
    out.known = KnownRange{dtype, *start, *stop, *step};
  if (step == uint64_t{1}) out.unit = 1;
  if (step == ~uint64_t{0} && is_signed(dtype)) out.unit = -1;
  return out;
}

ArrayValue range_number(Walk& walk, const RangeArrays& range,
                        const ArrayValue& turn, Span where) {
  const ArrayValue k = cast_to(walk, turn, range.start->type.dtype, where);
  const bool by_one = range.known && range.known->step == 1;
  const ArrayValue far =
      by_one ? k : walk.add(ir::Op::mul, {k, range.step}, ir::NoAttrs{}, where);
  if (range.known && range.known->start == 0) return far;
  return walk.add(ir::Op::add, {range.start, far}, ir::NoAttrs{}, where);
}

ArrayValue count_turns(Walk& walk, const RangeArrays& range, Span where) {
  constexpr int64_t most = std::numeric_limits<int64_t>::max();
  if (range.known) {  // 2**63 turns take centuries
    const uint64_t turns = std::min<uint64_t>(range.known->turns(), most);
    return walk.constant_int(static_cast<int64_t>(turns), DType::I64, false,
                             where);
  }
  const DType dtype = range.start->type.dtype;
  const auto op = [&](ir::Op what, const ArrayValue& a, const ArrayValue& b) {
    return walk.add(what, {a, b}, ir::NoAttrs{}, where);
  };
  const auto choose = [&](const ArrayValue& condition, const ArrayValue& a,
                          const ArrayValue& b) {
    return walk.add(ir::Op::select, {condition, a, b}, ir::NoAttrs{}, where);
  };
  const auto bits = [&](const ArrayValue& x) {  // extended, then as it is
    const DType wide = is_signed(dtype) ? DType::I64 : DType::U64;
    return cast_to(walk, cast_to(walk, x, wide, where), DType::U64, where);
  };
  const auto number = [&](int64_t value) {
    return walk.constant_int(value, DType::U64, false, where);
  };
  const ArrayValue zero = walk.constant_int(0, dtype, false, where);
  const ArrayValue down = op(ir::Op::lt, range.step, zero);
  const ArrayValue first = choose(down, range.stop, range.start);
  const ArrayValue last = choose(down, range.start, range.stop);
  const ArrayValue step = bits(range.step);
  const ArrayValue stride =
      choose(down, op(ir::Op::sub, number(0), step), step);
  const ArrayValue distance = op(ir::Op::sub, bits(last), bits(first));
  const ArrayValue steps =
      op(ir::Op::floor_div, op(ir::Op::sub, distance, number(1)), stride);
  const ArrayValue turns =
      op(ir::Op::minimum, steps, number(most - 1));  // and one more
  const ArrayValue none = op(ir::Op::le, last, first);
  const ArrayValue idle =
      op(ir::Op::bit_or, none, op(ir::Op::eq, range.step, zero));
  return cast_to(walk,
                 choose(idle, number(0), op(ir::Op::add, turns, number(1))),
                 DType::I64, where);
}

// ---- rows -------------------------------------------------------------------

std::string Rows::type_name() const {
  return "rows of " + lang::type_name(tree_);
}

Value Rows::enumerated(Walk&) const {
  const Value numbers = RangeValue{std::make_shared<const std::vector<Value>>(
      std::vector<Value>{IntValue{0}, IntValue{length_}, IntValue{1}})};
  return IterableValue{
      std::make_shared<const Rows>(make_tuple({numbers, tree_}), length_)};
}

Value Rows::row(Walk& walk, const ArrayValue& number, Span where) const {
  return map_leaves(tree_, [&](const Value& leaf) -> Value {
    const auto* array = leaf.get_if<ArrayValue>();
    return array ? gather(walk, *array, {number}, {0}, false, where) : number;
  });
}

Value Rows::columns(Walk& walk, Span where) const {
  return map_leaves(tree_, [&](const Value& leaf) -> Value {
    if (leaf.is<ArrayValue>()) return leaf;
    return iota(walk, {DType::I32, {length_}}, 0, where);
  });
}

std::shared_ptr<const Rows> rows_of(const Value& value) {
  if (const auto* made = value.get_if<IterableValue>()) {
    if (!made->iterable->rows()) return nullptr;
    return std::static_pointer_cast<const Rows>(made->iterable);
  }
  const ArrayCell* array = value.array();
  if (!array || array->type.rank() == 0) return nullptr;
  return std::make_shared<const Rows>(value, array->type.shape[0]);
}

}  // namespace unisono::lang
