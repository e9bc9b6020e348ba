#include "lang/context/derivative_facts.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <string_view>

#include "jit/ir/kinds.h"
#include "jit/ir/table.h"
#include "runtime/dtype.h"

namespace unisono::lang {
namespace {

using State = Linearity::State;

/// What the table of operations says of derivatives: the factor of operand
/// `index`, as it is written there; none for what is no map of floats.
std::string_view factor(ir::Op op, size_t index) {
  struct Row {
    ir::Op op;
    std::string_view factors[2];
  };
  constexpr Row rows[] = {
#define UNARY(name, types, scalar, factor, ...) {ir::Op::name, {#factor, {}}},
#define BINARY(name, types, scalar, factor_x, factor_y, ...) \
  {ir::Op::name, {#factor_x, #factor_y}},
#include "jit/ir/ops.def"
  };
  const auto* row = std::ranges::find(rows, op, &Row::op);
  return row == std::end(rows) ? std::string_view() : row->factors[index];
}

/// How many operands from `from` on depend on the tangent; all of these are
/// linear, as else nothing is asked.
int linear_operands(std::span<const ArrayValue> operands, size_t from = 0) {
  return static_cast<int>(
      std::count_if(operands.begin() + static_cast<ptrdiff_t>(from),
                    operands.end(), [](const ArrayValue& operand) {
                      return operand->linearity.state == State::linear;
                    }));
}

/// Whether each of the operands is linear or zero.
bool all_linear(std::span<const ArrayValue> operands) {
  return std::ranges::all_of(operands, [](const ArrayValue& operand) {
    return operand->linearity.state == State::linear || is_zero(*operand);
  });
}

/// Whether an operation is linear in those of its operands that are, of which
/// there is at least one, while none is anything worse.
bool is_linear(ir::Op op, std::span<const ArrayValue> x) {
  if (op == ir::Op::add || op == ir::Op::sub) return all_linear(x);
  if (op == ir::Op::mul) return linear_operands(x) == 1;
  if (op == ir::Op::div) return linear_operands(x, 1) == 0;
  if (op == ir::Op::fma)
    return linear_operands(x.first(2)) == 1 && all_linear(x.subspan(2));
  if (op == ir::Op::select)
    return x[0]->linearity.state == State::none && all_linear(x.subspan(1));
  if (op == ir::Op::neg || op == ir::Op::cast || op == ir::Op::sum ||
      op == ir::Op::cumsum)
    return true;
  switch (ir::kind(op)) {
    case ir::Kind::move: return all_linear(x);  // of pad the value, too
    case ir::Kind::dot: return linear_operands(x) == 1;
    case ir::Kind::index: {
      const size_t arrays = op == ir::Op::gather ? 1 : 2;  // then positions
      return all_linear(x.first(arrays)) && linear_operands(x, arrays) == 0;
    }
    case ir::Kind::collective: return op != ir::Op::all_reduce;
    case ir::Kind::map:
    case ir::Kind::reduce:
    case ir::Kind::argreduce:
    case ir::Kind::scan:
    case ir::Kind::source:
    case ir::Kind::sort:
    case ir::Kind::control:
    case ir::Kind::host: return false;
  }
  __builtin_unreachable();
}

}  // namespace

Linearity linearity_of(ir::Op op, std::span<const ArrayValue> operands,
                       const ir::Attrs& attrs, DType dtype, Span where) {
  bool any = false;
  for (const ArrayValue& operand : operands) {
    if (operand->linearity.state == State::other) return operand->linearity;
    any |= operand->linearity.state == State::linear;
  }
  if (!any) {
    // What a part is read of; all that is put together.
    const bool kept = ir::kind(op) == ir::Kind::move || op == ir::Op::cast;
    const auto from = op == ir::Op::gather ? operands.first(1) : operands;
    const bool zero = (kept || op == ir::Op::gather) && !from.empty() &&
                      std::ranges::all_of(from, [](const ArrayValue& x) {
                        return is_zero(*x);
                      });
    return {zero ? State::zero : State::none};
  }
  const auto* collective = std::get_if<ir::CollectiveAttrs>(&attrs);
  const bool total = op == ir::Op::all_reduce && collective &&
                     collective->reduce == ir::ReduceOp::sum;
  if (is_floating(dtype) && (total || is_linear(op, operands)))
    return {State::linear};
  return {State::other, where};
}

Linearity linearity_through(std::span<const ArrayValue> operands, Span where) {
  const bool touched =
      std::ranges::any_of(operands, [](const ArrayValue& operand) {
        return operand->linearity.state == State::linear ||
               operand->linearity.state == State::other;
      });
  return touched ? Linearity{State::other, where} : Linearity{};
}

void set_depends(const Context& context, ir::Op op,
                 std::span<const ArrayValue> operands, ArrayCell& out) {
  if (!is_floating(out.type.dtype)) return;
  for (size_t i = 0; i < operands.size(); ++i)
    if (!operands[i]->depends.empty() && factor(op, i) != "0")
      out.depends = join(out.depends, operands[i]->depends);
  tell_derivatives(context, out);
}

bool is_zero(const ArrayCell& value) {
  return value.linearity.state == State::zero ||
         (value.constant &&
          std::ranges::all_of(*value.constant,
                              [](uint8_t byte) { return byte == 0; }));
}

bool lacks_derivative(ir::Op op, std::span<const ArrayValue> operands) {
  for (size_t i = 0; i < operands.size(); ++i)
    if (!operands[i]->depends.empty() && factor(op, i) == "unknown")
      return true;
  return false;
}

Diagnostic no_derivative(ir::Op op, Span where) {
  Diagnostic error = diagnostic(Code::no_derivative, where, ir::name(op));
  if (ir::row(op).operands == 2)
    error.set_help(fmt::format(
        "it has none by its first argument; where that may count as a "
        "constant, write `{}(stop_gradient(...), ...)`",
        ir::name(op)));
  return error;
}

void tell_derivatives(const Context& context, const ArrayCell& value) {
  if (value.varies.empty()) return;
  for (const uint32_t argument : value.depends)
    for (const auto& derivative : context.derivatives) {
      if (!derivative->has(argument)) continue;
      Derivative::Argument& noted =
          derivative->arguments[argument - derivative->first];
      AxisSet varies = join(noted.varies, value.varies);
      if (varies == noted.varies) continue;
      noted.varies = std::move(varies);
      noted.varies_from = value.varies_from;
    }
}

Linearity either(const Linearity& a, const Linearity& b) {
  if (a.state == State::other || a.state == b.state) return a;
  if (b.state == State::other) return b;
  if (a.state == State::zero) return b;
  if (b.state == State::zero) return a;
  return {State::other, {}};
}

const Derivative* innermost(const Context& context,
                            const DerivativeArguments& depends) {
  for (size_t i = depends.size(); i-- > 0;)
    for (const auto& derivative : context.derivatives)
      if (derivative->has(depends[i])) return derivative.get();
  return nullptr;
}

Diagnostic reverse_while_error(const Derivative& derivative, Span loop) {
  return diagnostic(Code::reverse_while, loop, derivative.name)
      .add_note(derivative.where, "the derivative is taken here")
      .set_help(
          "declare the most turns there can be, `while c, max=100 { }`, loop "
          "over a `range`, or go forwards with `jvp`");
}

}  // namespace unisono::lang
