#include "lang/ops/array_ops.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>

#include "lang/context/literals.h"
#include "lang/ops/operators.h"
#include "runtime/tuning/tuning.h"

namespace unisono::lang {

ArrayValue reshape(Walk& walk, const ArrayValue& x, ir::Shape shape,
                   Span where) {
  if (x->type.shape == shape) return x;
  const bool open = compare(ir::element_count(x->type.shape),
                            ir::element_count(shape)) == ir::Comparison::open;
  if (open) return taken_for(walk, x, std::move(shape));
  if (x->constant)
    return walk.constant_array({x->type.dtype, std::move(shape)}, *x->constant,
                               where);
  return walk.add(ir::Op::reshape, {x}, ir::ShapeAttrs{std::move(shape)},
                  where);
}

ArrayValue transpose(Walk& walk, const ArrayValue& x,
                     const std::vector<int>& axes, Span where) {
  if (std::is_sorted(axes.begin(), axes.end())) return x;
  return walk.add(ir::Op::transpose, {x}, ir::AxesAttrs{axes}, where);
}

ArrayValue flip(Walk& walk, const ArrayValue& x, std::vector<int> axes,
                Span where) {
  if (axes.empty()) return x;
  return walk.add(ir::Op::flip, {x}, ir::AxesAttrs{std::move(axes)}, where);
}

ArrayValue slice_axis(Walk& walk, const ArrayValue& x, int axis, ir::Dim start,
                      ir::Dim size, Span where) {
  if (size == x->type.shape[axis]) return x;
  const size_t rank = x->type.shape.size();
  ir::SliceAttrs attrs{ir::Shape(rank, ir::Dim(0)), ir::Shape(rank, ir::Dim(1)),
                       x->type.shape};
  attrs.start[axis] = std::move(start);
  attrs.size[axis] = std::move(size);
  return walk.add(ir::Op::slice, {x}, std::move(attrs), where);
}

namespace {

/// Constants joined along axis 0 are a constant, as a literal would be; null if
/// they are not, or too large to be meant so.
ArrayValue joined_constants(Walk& walk, const std::vector<ArrayValue>& parts,
                            Span where) {
  ir::Type type = parts[0]->type;
  type.shape[0] = 0;
  std::vector<uint8_t> bytes;
  for (const ArrayValue& part : parts) {
    if (!part->constant || !part->type.is_concrete()) return nullptr;
    const int64_t wanted = part->type.bytes();
    if (static_cast<int64_t>(bytes.size()) >
        tuning().most_joined_constant - wanted)
      return nullptr;
    const std::vector<uint8_t>& element = *part->constant;
    for (int64_t i = 0; i < wanted; i += static_cast<int64_t>(element.size()))
      bytes.insert(bytes.end(), element.begin(), element.end());
    type.shape[0] = type.shape[0] + part->type.shape[0];
  }
  return walk.constant_array(std::move(type), std::move(bytes), where);
}

}  // namespace

ArrayValue concat(Walk& walk, const std::vector<ArrayValue>& parts, int axis,
                  Span where) {
  if (parts.size() == 1) return parts[0];
  if (axis == 0)
    if (ArrayValue joined = joined_constants(walk, parts, where)) return joined;
  return walk.add(ir::Op::concat, parts, ir::AxisAttrs{axis}, where);
}

ArrayValue pad(Walk& walk, const ArrayValue& x, const ArrayValue& value,
               ir::Shape low, ir::Shape high, Span where) {
  const auto is_zero = [](const ir::Dim& d) { return d == ir::Dim(0); };
  if (std::all_of(low.begin(), low.end(), is_zero) &&
      std::all_of(high.begin(), high.end(), is_zero))
    return x;
  return walk.add(ir::Op::pad, {x, value},
                  ir::PadAttrs{std::move(low), std::move(high)}, where);
}

ArrayValue iota(Walk& walk, ir::Type type, int axis, Span where) {
  return walk.add(ir::Op::iota, {}, ir::IotaAttrs{std::move(type), axis},
                  where);
}

ArrayValue remove_axes(Walk& walk, const ArrayValue& x,
                       const std::vector<int>& axes, Span where) {
  ir::Shape shape;
  for (int i = 0; i < x->type.rank(); ++i)
    if (std::find(axes.begin(), axes.end(), i) == axes.end())
      shape.push_back(x->type.shape[i]);
  return reshape(walk, x, std::move(shape), where);
}

ArrayValue insert_axis(Walk& walk, const ArrayValue& x, int axis, Span where) {
  ir::Shape shape = x->type.shape;
  shape.insert(shape.begin() + axis, ir::Dim(1));
  return reshape(walk, x, std::move(shape), where);
}

ArrayValue gather(Walk& walk, const ArrayValue& x,
                  const std::vector<ArrayValue>& indices, std::vector<int> axes,
                  bool checked, Span where) {
  std::vector<ArrayValue> operands = {x};
  operands.insert(operands.end(), indices.begin(), indices.end());
  return walk.add(ir::Op::gather, operands,
                  ir::IndexAttrs{std::move(axes), checked}, where);
}

ArrayValue apply(Walk& walk, ir::Op op, const ArrayValue& a,
                 const ArrayValue& b, Span where) {
  return walk.add(op, {a, b}, ir::NoAttrs{}, where);
}

ArrayValue apply(Walk& walk, ir::Op op, const ArrayValue& a, double b,
                 Span where) {
  const ArrayValue number =
      walk.constant(b, a->type.dtype, /*weak=*/false, where);
  return apply(walk, op, a, broadcast_to(walk, number, a->type.shape, where),
               where);
}

void assert_when_it_runs(Walk& walk, const ArrayValue& condition,
                         std::string message, Span where) {
  if (walk.mode() == Mode::check || !walk.machine().checked) return;
  std::vector<int> axes(condition->type.rank());
  std::iota(axes.begin(), axes.end(), 0);
  const ArrayValue holds =
      axes.empty() ? condition
                   : reduce(walk, ir::Op::all, condition, axes, false, where);
  walk.assert_when_it_runs(
      holds, diagnostic(Code::assertion_failed, where, std::move(message)));
}

void require(Walk& walk, const ArrayValue& condition, std::string message,
             Span where) {
  if (walk.in_compiled_code())
    return assert_when_it_runs(walk, condition, ": " + message, where);
  if (walk.mode() != Mode::run || walk.machine().compile_only) return;
  for (const uint8_t element : walk.host_bytes(condition, where))
    if (!element)
      walk.fail(diagnostic(Code::assertion_failed, where, ": " + message));
}

ArrayValue index_range(Walk& walk, const ir::Dim& start, const ir::Dim& step,
                       const ir::Dim& size, Span where) {
  const auto beyond_i32 = [](const ir::Dim& d) {
    return d.is_constant() && (d.value() > INT32_MAX || d.value() < INT32_MIN);
  };
  const ir::Dim end = start + step * size;
  // The end of an open size is not known, the step is.
  const bool wide = beyond_i32(start) || beyond_i32(step) || beyond_i32(end) ||
                    beyond_i32(size);
  const DType dtype = wide ? DType::I64 : DType::I32;
  const auto number = [&](const ir::Dim& d) {
    return broadcast_to(
        walk, cast_to(walk, walk.constant_size(d, where), dtype, where), {size},
        where);
  };
  ArrayValue out = iota(walk, {dtype, {size}}, 0, where);
  if (!(step == ir::Dim(1)))
    out = apply(walk, ir::Op::mul, out, number(step), where);
  if (!(start == ir::Dim(0)))
    out = apply(walk, ir::Op::add, out, number(start), where);
  return out;
}

ArrayValue as_index(Walk& walk, const ArrayValue& x, Span where) {
  const DType d = x->type.dtype;
  if (d == DType::I32 || d == DType::I64) return x;
  if (d == DType::U64) {
    // What i64 does not hold is out of range, and no place from the end.
    const ArrayValue most = walk.constant_int(INT64_MAX, d, false, where);
    const ArrayValue held =
        apply(walk, ir::Op::minimum, x,
              broadcast_to(walk, most, x->type.shape, where), where);
    return cast_to(walk, held, DType::I64, where);
  }
  return cast_to(walk, x, byte_size(d) < 4 ? DType::I32 : DType::I64, where);
}

namespace {

/// x ** k for k > 0 by repeated squaring.
ArrayValue product_power(Walk& walk, const ArrayValue& x, int64_t k,
                         Span where) {
  ArrayValue square = x, out;
  for (; k > 0; k /= 2) {
    if (k % 2 == 1)
      out = out ? apply(walk, ir::Op::mul, out, square, where) : square;
    if (k > 1) square = apply(walk, ir::Op::mul, square, square, where);
  }
  return out;
}

Value power_of_int(Walk& walk, const ir::Dim& base, const CallArgument& b,
                   Span where) {
  const ir::Dim& exponent = b.value.get_if<IntValue>()->value;
  if (!exponent.is_constant())
    return IntValue{ir::Dim::symbol(
        walk.new_symbol_id(),
        fmt::format("({})**({})", base.to_string(), exponent.to_string()),
        base.is_open() || exponent.is_open())};
  if (exponent.value() < 0)
    walk.fail(diagnostic(Code::negative_exponent, b.where, exponent.value())
                  .set_help("write a float, `2.0 ** -1`, for a fraction"));
  ir::Dim out = 1;
  ir::Dim square = base;
  for (int64_t k = exponent.value(); k > 0 && !out.overflowed(); k /= 2) {
    if (k % 2 == 1) out = out * square;
    if (k > 1) square = square * square;
  }
  if (out.overflowed())
    walk.fail(diagnostic(Code::int_overflow, where, where.text())
                  .set_help("write a float for a large power"));
  return IntValue{out};
}

/// The exponent if it is a small whole number that the program says.
std::optional<int64_t> small_exponent(const Value& b) {
  std::optional<int64_t> k;
  if (const auto* i = b.get_if<IntValue>(); i && i->value.is_constant())
    k = i->value.value();
  if (const auto literal = literal_of(b);
      !k && literal && std::abs(*literal) <= Orders::most_power_products &&
      *literal == std::floor(*literal))
    k = static_cast<int64_t>(*literal);
  if (!k || *k > Orders::most_power_products ||
      *k < -Orders::most_power_products)
    return std::nullopt;
  return k;
}

/// `x ** k` of an array and a small constant.
ArrayValue power_of_array(Walk& walk, const ArrayValue& x, int64_t k,
                          const CallArgument& b, Span where) {
  const auto one = [&] {
    return broadcast_to(
        walk,
        is_floating(x->type.dtype)
            ? walk.constant(1, x->type.dtype, x->weak, where)
            : walk.constant_int(1, x->type.dtype, x->weak, where),
        x->type.shape, where);
  };
  if (k == 0) return one();
  if (k > 0) return product_power(walk, x, k, where);
  if (is_integer(x->type.dtype))
    walk.fail(diagnostic(Code::negative_exponent, b.where, k)
                  .set_help("cast to a float first: `f32(x) ** -1`"));
  return apply(walk, ir::Op::div, one(), product_power(walk, x, -k, where),
               where);
}

}  // namespace

Value power(Walk& walk, const CallArgument& a, const CallArgument& b,
            Span where) {
  const auto* base = a.value.get_if<IntValue>();
  if (base && b.value.is<IntValue>())
    return power_of_int(walk, base->value, b, where);
  if (const ArrayCell* exponent = b.value.array())
    require_known(*exponent, b.where);  // it may be a small one

  const std::array<CallArgument, 2> written = {a, b};
  std::vector<ArrayValue> x = promote_numbers(walk, written, "`**`");
  if (is_bool(x[0]->type.dtype))
    for (ArrayValue& operand : x)
      operand = cast_to(walk, operand, DType::I32, where);
  if (auto k = small_exponent(b.value))
    return power_of_array(walk, x[0], *k, b, where);
  broadcast_all(walk, x, written, where, "`**`");
  return apply(walk, ir::Op::pow, x[0], x[1], where);
}

}  // namespace unisono::lang
