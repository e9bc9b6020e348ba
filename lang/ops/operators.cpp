#include "lang/ops/operators.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "jit/ir/kinds.h"
#include "lang/context/literals.h"
#include "lang/context/scope.h"
#include "lang/ops/array_ops.h"
#include "lang/ops/carry.h"
#include "lang/ops/sizes.h"
#include "lang/ops/small_work.h"
#include "lang/ops/text.h"
#include "lang/sizes/known_sizes.h"
#include "lang/syntax/precedence.h"

namespace unisono::lang {

std::optional<std::optional<bool>> host_equal(const Value& a, const Value& b) {
  using Known = std::optional<bool>;
  if (a.is<NoneValue>() || b.is<NoneValue>())
    return Known(a.is<NoneValue>() && b.is<NoneValue>());
  if (const auto *x = a.get_if<IntValue>(), *y = b.get_if<IntValue>(); x && y) {
    if (x->value == y->value) return Known(true);
    const ir::Dim difference = x->value - y->value;
    return difference.is_constant() ? Known(difference.value() == 0) : Known();
  }
  if (const auto *x = a.get_if<BoolValue>(), *y = b.get_if<BoolValue>(); x && y)
    return x->value && y->value ? Known(*x->value == *y->value) : Known();
  if (const auto *x = a.get_if<StrValue>(), *y = b.get_if<StrValue>(); x && y)
    return x->value && y->value ? Known(*x->value == *y->value) : Known();
  if (const auto *x = a.get_if<TypeValue>(), *y = b.get_if<TypeValue>(); x && y)
    return Known(x->type == y->type);
  if (const auto *x = a.get_if<DeviceValue>(), *y = b.get_if<DeviceValue>();
      x && y)
    return Known(x->index == y->index);
  const TupleValue *x = a.tuple(), *y = b.tuple();
  const bool many = a.is<ManyValue>() || b.is<ManyValue>();
  if (many && (x || a.is<ManyValue>()) && (y || b.is<ManyValue>()))
    return Known();
  if (!x || !y) return std::nullopt;
  if (x->items.size() != y->items.size()) return Known(false);
  Known all = true;
  for (size_t i = 0; i < x->items.size(); ++i) {
    const auto item = host_equal(x->items[i], y->items[i]);
    if (!item) return std::nullopt;
    if (*item && !**item) return Known(false);
    if (!*item) all = std::nullopt;
  }
  return all;
}

std::optional<ir::Op> operation_of(BinaryOp op) {
  using enum ir::Op;
  constexpr std::nullopt_t no_operation = std::nullopt;
  static constexpr std::optional<ir::Op> operations[] = {
#define BINARY(enumerator, text, token, precedence, associates, cls, \
               operation)                                            \
  operation,
#include "lang/syntax/precedence.def"
  };
  return operations[static_cast<size_t>(op)];
}

ir::Op operation_of(UnaryOp op) {
  static constexpr ir::Op operations[] = {
#define UNARY(enumerator, text, token, operand, operation) ir::Op::operation,
#include "lang/syntax/precedence.def"
  };
  return operations[static_cast<size_t>(op)];
}

// `and`, `or` and `not` are operations of bits, on bool alone: those are called
// as `&`, `|` and `~`.

std::optional<BinaryOp> binary_operator_of(ir::Op op) {
  for (const BinaryRule& rule : binary_rules)
    if (class_of(rule.op) != OpClass::logic && operation_of(rule.op) == op)
      return rule.op;
  return std::nullopt;
}

std::optional<UnaryOp> unary_operator_of(ir::Op op) {
  for (const UnaryRule& rule : unary_rules)
    if (rule.op != UnaryOp::logical_not && operation_of(rule.op) == op)
      return rule.op;
  return std::nullopt;
}

bool floats_only(ir::Op op) {
  return ir::admits(op, DType::F32) && !ir::admits(op, DType::I32);
}

Value checked_int(Walk& walk, ir::Dim value, Span where) {
  if (value.overflowed())
    walk.fail(diagnostic(Code::int_overflow, where, where.text())
                  .set_help("sizes and other ints have 64 bits"));
  return IntValue{std::move(value)};
}

namespace {

/// What an operator's operands are, in messages.
std::string both_types(const CallArgument& a, const CallArgument& b) {
  return fmt::format("{} and {}", type_name(a.value), type_name(b.value));
}

std::string_view quoted(BinaryOp op) {
  static constexpr std::string_view texts[] = {
#define BINARY(enumerator, text, ...) ("`" text "`"),
#include "lang/syntax/precedence.def"
  };
  return texts[static_cast<size_t>(op)];
}

/// `x op y` of host values, by the expression of the operation's row.
template <class T>
bool compare(ir::Op op, const T& x, const T& y) {
#define COMPARE(name, types, scalar, help) \
  if (op == ir::Op::name) return scalar;
#include "jit/ir/ops.def"
  __builtin_unreachable();
}

// ---- host values -----------------------------------------------------------

/// Whether an int or a bool in it is one that only running tells, as it depends
/// on a size.
bool depends_on_open(const Value& value) {
  bool open = false;
  for_each_leaf(value, [&](const Value& leaf) {
    if (const auto* i = leaf.get_if<IntValue>()) open |= i->value.is_open();
    if (const auto* b = leaf.get_if<BoolValue>()) open |= b->open;
  });
  return open;
}

std::optional<Value> host_comparison(BinaryOp op, const Value& a,
                                     const Value& b) {
  if (op == BinaryOp::eq || op == BinaryOp::ne) {
    const auto equal = host_equal(a, b);
    if (!equal) return std::nullopt;
    if (!*equal) return BoolValue{{}, depends_on_open(a) || depends_on_open(b)};
    return BoolValue{**equal == (op == BinaryOp::eq)};
  }
  if (const auto *x = a.get_if<IntValue>(), *y = b.get_if<IntValue>(); x && y) {
    if (x->value.is_constant() && y->value.is_constant())
      return BoolValue{
          compare(*operation_of(op), x->value.value(), y->value.value())};
    const ir::Dim difference = x->value - y->value;
    if (!difference.is_constant()) return BoolValue{{}, difference.is_open()};
    return BoolValue{
        compare<int64_t>(*operation_of(op), difference.value(), 0)};
  }
  if (const auto *x = a.get_if<StrValue>(), *y = b.get_if<StrValue>(); x && y) {
    if (!x->value || !y->value) return BoolValue{};
    return BoolValue{compare(*operation_of(op), *x->value, *y->value)};
  }
  return std::nullopt;
}

Value int_division(Walk& walk, BinaryOp op, const ir::Dim& a, const ir::Dim& b,
                   Span where) {
  if (b.is_constant() && b.value() == 0)
    walk.fail(diagnostic(Code::division_by_zero, where));
  return checked_int(
      walk, op == BinaryOp::mod ? floor_mod(a, b) : floor_div(a, b), where);
}

std::optional<int64_t> int_bits(BinaryOp op, int64_t a, int64_t b) {
  const auto bits = static_cast<uint64_t>(a);
  if (op == BinaryOp::bit_or) return a | b;
  if (op == BinaryOp::bit_xor) return a ^ b;
  if (op == BinaryOp::bit_and) return a & b;
  if (b < 0) return std::nullopt;
  if (op == BinaryOp::shift_right) return a >> std::min<int64_t>(b, 63);
  if (b > 63 && a != 0) return std::nullopt;
  const auto shifted = static_cast<int64_t>(bits << (b & 63));
  return (shifted >> (b & 63)) == a ? std::optional(shifted) : std::nullopt;
}

}  // namespace

std::optional<Value> int_arithmetic(Walk& walk, BinaryOp op, const ir::Dim& a,
                                    const ir::Dim& b, Span where) {
  const bool constant = a.is_constant() && b.is_constant();
  // Of what the check does not know, a sum with very many terms is one more.
  const auto polynomial = [&](ir::Dim value) {
    if (value.overflowed() && !constant) value = walk.open_size();
    return checked_int(walk, std::move(value), where);
  };
  if (op == BinaryOp::add) return polynomial(a + b);
  if (op == BinaryOp::sub) return polynomial(a - b);
  if (op == BinaryOp::mul) return polynomial(a * b);
  if (op == BinaryOp::floor_div || op == BinaryOp::mod)
    return int_division(walk, op, a, b, where);
  if (op == BinaryOp::div) {
    if (!constant) return walk.unknown_number(true);
    return walk.constant(
        static_cast<double>(a.value()) / static_cast<double>(b.value()),
        DType::F32, true, where);
  }
  if (class_of(op) != OpClass::bits) return std::nullopt;
  if (!constant) return checked_int(walk, walk.open_size(), where);
  const auto bits = int_bits(op, a.value(), b.value());
  if (!bits)
    walk.fail(diagnostic(Code::int_overflow, where, where.text())
                  .set_help(b.value() < 0 || b.value() > 63
                                ? "an int is shifted by 0 to 63 bits"
                                : "sizes and other ints have 64 bits"));
  return IntValue{*bits};
}

namespace {

// ---- arrays ----------------------------------------------------------------

[[noreturn]] void fail_operands(Walk& walk, BinaryOp op, const CallArgument& a,
                                const CallArgument& b, Span op_span,
                                std::string help) {
  walk.fail(diagnostic(Code::operator_types, op_span, spelling(op),
                       type_name(a.value), type_name(b.value))
                .set_label(both_types(a, b))
                .set_help(std::move(help)));
}

std::string bool_help(BinaryOp op) {
  if (op == BinaryOp::add) return "count with `cast(x, i32)`, or write `or`";
  if (op == BinaryOp::mul) return "write `and`, or `cast(x, i32)`";
  return "convert first: `cast(x, i32)`";
}

/// Both operands are arrays, ints or host bools.
Value array_binary(Walk& walk, BinaryOp op, const CallArgument& a,
                   const CallArgument& b, Span op_span, Span where) {
  if (ArrayValue result = small_binary(walk, op, a, b)) return result;
  if (ArrayValue result = number_binary(walk, op, a, b)) return result;
  const CallArgument operands[] = {a, b};
  const WeakDType type = promoted_type(walk, operands, quoted(op));
  const ir::Op operation = *operation_of(op);
  const bool logic = class_of(op) == OpClass::logic;
  if (logic && !is_bool(type.dtype))
    fail_operands(walk, op, a, b, op_span,
                  "compare first: `x != 0` is a boolean");
  if (class_of(op) == OpClass::bits && is_floating(type.dtype))
    fail_operands(walk, op, a, b, op_span,
                  op == BinaryOp::bit_xor
                      ? "a power is `x ** 2`; `^` works on integers only"
                      : "it works on integers only");
  const bool division = floats_only(operation);
  if (!division && !logic && !ir::admits(operation, type.dtype))
    fail_operands(walk, op, a, b, op_span, bool_help(op));
  std::vector<ArrayValue> arrays =
      division ? promote_numbers_to_float(walk, operands, quoted(op))
               : promote_numbers(walk, operands, quoted(op));
  broadcast_all(walk, arrays, operands, op_span, quoted(op));
  return walk.add(operation, arrays, ir::NoAttrs{}, where);
}

}  // namespace

namespace {

/// Operators of text: `+`, and `*` with an int on either side.
std::optional<Value> text_operator(Walk& walk, BinaryOp op,
                                   const CallArgument& a, const CallArgument& b,
                                   Span where) {
  const auto *x = a.value.get_if<StrValue>(), *y = b.value.get_if<StrValue>();
  if (op == BinaryOp::add && x && y) return join_text(walk, *x, *y, where);
  if (op != BinaryOp::mul || !x == !y) return std::nullopt;
  const CallArgument& count = x ? b : a;
  const auto type = element_type(count.value);
  if (!type || !is_integer(type->dtype)) return std::nullopt;
  return repeat_text(walk, x ? a : b, count, where);
}

/// An int, or the number that a `var` makes of one.
bool is_whole_number(const Value& value) {
  const ArrayCell* array = value.array();
  return value.is<IntValue>() ||
         (array && array->weak && is_integer(array->type.dtype));
}

/// `+` of tuples, of which one has any length: so has the result.
std::optional<Value> join_many(Walk& walk, const Value& a, const Value& b) {
  auto item = common_item(
      walk, a, b, [](const Value& x, const Value& y) -> std::optional<Value> {
        if (is_whole_number(x) && is_whole_number(y))
          return x.is<IntValue>() ? y : x;
        return open_type_name(x) == open_type_name(y) ? std::optional(x)
                                                      : std::nullopt;
      });
  if (!item) return std::nullopt;
  return ManyValue{std::make_shared<const Value>(*std::move(item))};
}

/// `+` of tuples: the items of both.
std::optional<Value> join_tuples(Walk& walk, BinaryOp op, const Value& a,
                                 const Value& b) {
  const TupleValue *x = a.tuple(), *y = b.tuple();
  if (op == BinaryOp::add && (a.is<ManyValue>() || b.is<ManyValue>()))
    return join_many(walk, a, b);
  if (op != BinaryOp::add || !x || !y) return std::nullopt;
  std::vector<Value> items = x->items;
  items.insert(items.end(), y->items.begin(), y->items.end());
  return make_tuple(std::move(items));
}

/// How the numbers of a tuple become an array; "" if it has none.
std::string array_of_tuple_help(const Value& value) {
  const TupleValue* tuple = value.tuple();
  if (!tuple || tuple->items.empty()) return "";
  const auto is_number = [](const Value& item) {
    return element_type(item).has_value();
  };
  if (std::ranges::all_of(tuple->items, is_number))
    return "a tuple is no array; `stack(t)` makes one";
  const bool rows = std::ranges::all_of(tuple->items, [&](const Value& item) {
    return item.tuple() && std::ranges::all_of(item.tuple()->items, is_number);
  });
  return rows ? "a tuple is no array; brackets in brackets are a matrix: "
                "`[[1, 2], [3, 4]]`, or `[stack(row) for row in t]`"
              : "";
}

std::string operand_help(BinaryOp op, const Value& a, const Value& b) {
  if (a.is<RangeValue>() || b.is<RangeValue>())
    return "a range is for loops; the array 0, 1, ... is `arange(n)`";
  const bool text = a.is<StrValue>() || b.is<StrValue>();
  if (text && op == BinaryOp::add)
    return "make text of it first: `str(x)`, or join by interpolation: "
           "\"{a}{b}\"";
  if (text && op == BinaryOp::mod)
    return "values in text are written \"{x}\" or \"{x:.3f}\"";
  if (text && class_of(op) == OpClass::comparison)
    return "text is compared with text; `int(s)` and `float(s)` read numbers";
  if (text && op == BinaryOp::mul)
    return "an `int` says how often a `str` is repeated: `s * 2`; `float(s)` "
           "and `int(s)` read numbers";
  if (text) return "read the number first: `float(s)` or `int(s)`";
  if (op == BinaryOp::add && (a.tuple() || b.tuple()))
    return "a tuple is joined with a tuple: `t + (x,)`";
  if (a.is<NoneValue>() || b.is<NoneValue>())
    return "an `if` without `else`, a loop and `print` have the value none";
  for (const Value* operand : {&a, &b})
    if (std::string help = array_of_tuple_help(*operand); !help.empty())
      return help;
  if (op == BinaryOp::mul && (a.tuple() || b.tuple()))
    return "a tuple is not repeated; `t + t` is twice the same";
  return "operators work on arrays and numbers";
}

}  // namespace

namespace {
/// Operators of two booleans of the host, which stay there.
std::optional<Value> host_logic(BinaryOp op, const Value& a, const Value& b) {
  const auto *x = a.get_if<BoolValue>(), *y = b.get_if<BoolValue>();
  if (!x || !y) return std::nullopt;
  const bool both = op == BinaryOp::logical_and || op == BinaryOp::bit_and;
  const bool either = op == BinaryOp::logical_or || op == BinaryOp::bit_or;
  const bool known = x->value && y->value;
  const BoolValue unknown{{}, x->open || y->open};
  if (op == BinaryOp::bit_xor)
    return known ? BoolValue{*x->value != *y->value} : unknown;
  if (!both && !either) return std::nullopt;
  if (x->value == either || y->value == either) return BoolValue{either};
  return known ? BoolValue{both} : unknown;
}
}  // namespace

Value binary(Walk& walk, BinaryOp op, const CallArgument& a,
             const CallArgument& b, Span op_span, Span where) {
  if (op == BinaryOp::in) return contains(walk, a, b, op_span, where);
  if (op == BinaryOp::not_in)
    return unary(walk, UnaryOp::logical_not,
                 {contains(walk, a, b, op_span, where), where}, where);
  if (auto result = text_operator(walk, op, a, b, where)) return *result;
  if (auto result = join_tuples(walk, op, a.value, b.value)) return *result;
  if (class_of(op) == OpClass::comparison)
    if (auto result = character_comparison(walk, op, a, b, op_span, where))
      return *result;
  for (const CallArgument* operand : {&a, &b})  // an error, if it has arrays
    if (const auto* text = operand->value.get_if<StrValue>();
        text && text->deferred)
      known_text(walk, *text, operand->where);
  if (class_of(op) == OpClass::comparison)
    if (auto result = host_comparison(op, a.value, b.value)) return *result;
  if (auto result = host_logic(op, a.value, b.value)) return *result;
  if (!element_type(a.value) || !element_type(b.value))
    fail_operands(walk, op, a, b, op_span, operand_help(op, a.value, b.value));
  if (op == BinaryOp::matmul) {
    if (ArrayValue result = small_product(walk, a.value, b.value))
      return result;
    return matmul(walk, a, b, where);
  }
  if (op == BinaryOp::pow) return power(walk, a, b, where);
  const auto *x = a.value.get_if<IntValue>(), *y = b.value.get_if<IntValue>();
  if (x && y)
    if (auto result = int_arithmetic(walk, op, x->value, y->value, where))
      return *result;
  return array_binary(walk, op, a, b, op_span, where);
}

Value unary(Walk& walk, UnaryOp op, const CallArgument& a, Span where) {
  auto bad = [&](std::string help) {
    walk.fail(
        diagnostic(Code::unary_type, where, spelling(op), type_name(a.value))
            .set_help(std::move(help)));
  };
  if (const auto* host = a.value.get_if<BoolValue>();
      host && op != UnaryOp::negate)
    return host->value ? BoolValue{!*host->value} : *host;
  if (op == UnaryOp::logical_not) {
    const ArrayCell* array = a.value.array();
    if (!array || !is_bool(array->type.dtype))
      bad("`not` takes booleans; compare first: `x == 0`");
    return walk.add(operation_of(op), {*a.value.get_if<ArrayValue>()},
                    ir::NoAttrs{}, where);
  }
  if (!element_type(a.value)) {
    const std::string help = array_of_tuple_help(a.value);
    bad(help.empty() ? "operators work on arrays and numbers" : help);
  }
  const bool negate = op == UnaryOp::negate;
  if (const auto* i = a.value.get_if<IntValue>()) {
    if (negate) return checked_int(walk, ir::Dim(0) - i->value, where);
    return checked_int(walk, ir::Dim(-1) - i->value, where);
  }
  const ArrayValue array = walk.to_operand(a.value, a.where, "an operand");
  const DType dtype = array->type.dtype;
  if (is_bool(dtype) && negate) bad("for booleans write `not`");
  if (!negate && is_floating(dtype))
    bad("`~` works on integers and booleans only");
  return walk.add(operation_of(op), {array}, ir::NoAttrs{}, where);
}

// ---- promotion -------------------------------------------------------------

std::optional<WeakDType> element_type(const Value& value) {
  if (const ArrayCell* array = value.array())
    return WeakDType{default_dtype(*array), array->weak};
  if (value.is<IntValue>()) return WeakDType{DType::I32, true};
  if (value.is<BoolValue>()) return WeakDType{DType::Bool, false};
  return std::nullopt;
}

ArrayValue cast_to(Walk& walk, const ArrayValue& array, DType dtype,
                   Span where) {
  if (array->type.dtype == dtype && !array->weak) return array;
  if (array->weak && array->constant) {
    ArrayValue typed = adopt_dtype(walk, *array, dtype, where);
    // What a `var` holds changes, and is no constant of compiled code.
    const bool changes = !array->literal && walk.mode() == Mode::run;
    return changes ? walk.on_first_device(*typed, where) : typed;
  }
  if (array->type.dtype == dtype) {
    // The same node, with an element type.
    if (walk.mode() != Mode::run) number_of(walk, *array);
    const auto scope = array->scope.lock();
    ArrayValue strong =
        scope ? scope->same_node(array) : std::make_shared<ArrayCell>(*array);
    strong->weak = strong->literal = false;
    strong->int_argument.reset();
    strong->call_numbers.clear();
    return strong;
  }
  return walk.add(ir::Op::cast, {array}, ir::CastAttrs{dtype}, where);
}

namespace {
/// A number, or an int, as the literal that it is.
ArrayValue to_weak(Walk& walk, const CallArgument& value, bool floating,
                   std::string_view what) {
  ArrayValue number = walk.to_operand(value.value, value.where, what);
  if (!floating || is_floating(number->type.dtype)) return number;
  ArrayValue wide =
      walk.add(ir::Op::cast, {number}, ir::CastAttrs{DType::F64}, value.where);
  wide->weak = true;
  wide->call_numbers = number->call_numbers;
  return wide;
}
}  // namespace

ArrayValue to_dtype(Walk& walk, const CallArgument& value, WeakDType target,
                    std::string_view what) {
  if (target.weak) return to_weak(walk, value, is_floating(target.dtype), what);
  const DType dtype = target.dtype;
  if (const auto* i = value.value.get_if<IntValue>();
      i && i->value.is_constant())
    return walk.constant_int(i->value.value(), dtype, false, value.where);
  return cast_to(walk, walk.to_operand(value.value, value.where, what), dtype,
                 value.where);
}

namespace {
/// A literal beyond i64, for which there is one type.
bool is_u64_literal(const Value& value) {
  const ArrayCell* array = value.array();
  return array && array->weak && array->type.dtype == DType::U64;
}
}  // namespace

WeakDType promoted_type(Walk& walk, std::span<const CallArgument> operands,
                        std::string_view what) {
  std::optional<WeakDType> all;
  bool weak = true;
  for (const CallArgument& operand : operands) {
    auto type = element_type(operand.value);
    if (operands.size() > 1 && is_u64_literal(operand.value))
      type = WeakDType{DType::U64};
    if (!type) {
      Diagnostic mistake = diagnostic(Code::expected_array, operand.where, what,
                                      type_name(operand.value));
      if (std::string help = array_of_tuple_help(operand.value); !help.empty())
        mistake.set_help(std::move(help));
      walk.fail(std::move(mistake));
    }
    all = all ? promote(*all, *type) : *type;
    weak &= type->weak;
  }
  return {all->dtype, weak};
}

namespace {
std::vector<ArrayValue> all_to_dtype(Walk& walk,
                                     std::span<const CallArgument> operands,
                                     WeakDType type, std::string_view what) {
  std::vector<ArrayValue> out;
  out.reserve(operands.size());
  for (const CallArgument& operand : operands)
    out.push_back(to_dtype(walk, operand, type, what));
  return out;
}
}  // namespace

std::vector<ArrayValue> promote_numbers(Walk& walk,
                                        std::span<const CallArgument> operands,
                                        std::string_view what) {
  return all_to_dtype(walk, operands, promoted_type(walk, operands, what),
                      what);
}

std::vector<ArrayValue> promote_numbers_to_float(
    Walk& walk, std::span<const CallArgument> operands, std::string_view what) {
  WeakDType type = promoted_type(walk, operands, what);
  if (!is_floating(type.dtype)) type = {DType::F32, type.weak};
  return all_to_dtype(walk, operands, type, what);
}

std::vector<ArrayValue> promote_operands(Walk& walk,
                                         std::span<const CallArgument> operands,
                                         std::string_view what) {
  const DType dtype = promoted_type(walk, operands, what).dtype;
  return all_to_dtype(walk, operands, {dtype, false}, what);
}

std::vector<ArrayValue> promote_to_float(Walk& walk,
                                         std::span<const CallArgument> operands,
                                         std::string_view what) {
  const DType dtype = promoted_type(walk, operands, what).dtype;
  return all_to_dtype(walk, operands,
                      {is_floating(dtype) ? dtype : DType::F32, false}, what);
}

// ---- broadcasting ----------------------------------------------------------

std::optional<ir::Shape> broadcast_shape(Walk& walk, const ir::Shape& a,
                                         const ir::Shape& b) {
  const ir::Shape& longer = a.size() >= b.size() ? a : b;
  const ir::Shape& shorter = a.size() >= b.size() ? b : a;
  ir::Shape out = longer;
  const size_t lead = longer.size() - shorter.size();
  for (size_t i = 0; i < shorter.size(); ++i) {
    ir::Dim& size = out[lead + i];
    const auto both = broadcast_size(walk, size, shorter[i]);
    if (!both) return std::nullopt;
    size = *both;
  }
  return out;
}

ArrayValue taken_for(Walk& walk, const ArrayValue& array, ir::Shape shape) {
  if (array->type.shape == shape) return array;
  ArrayValue out =
      walk.unknown_array({default_dtype(*array), std::move(shape)});
  copy_facts(*array, *out);
  return out;
}

namespace {

/// Which of two shapes may have axes of size 1 where the other's are longer.
enum class Repeated { both, first };

/// "axis -1 has sizes 3 and 4", counted from the end as broadcasting does.
std::string difference(const ir::Shape& a, const ir::Shape& b,
                       Repeated repeated) {
  for (size_t i = 1; i <= std::min(a.size(), b.size()); ++i) {
    const ir::Dim &x = a[a.size() - i], &y = b[b.size() - i];
    if (same_size(x, y) || x == ir::Dim(1) ||
        (y == ir::Dim(1) && repeated == Repeated::both))
      continue;
    return fmt::format("axis -{} has sizes {} and {}", i, x.to_string(),
                       y.to_string());
  }
  return "the ranks differ";
}

/// Whether only given sizes keep the shapes apart, which may be equal in each
/// call.
bool may_be_stated(const ir::Shape& a, const ir::Shape& b) {
  bool given = false;
  for (size_t i = 1; i <= std::min(a.size(), b.size()); ++i) {
    const ir::Dim &x = a[a.size() - i], &y = b[b.size() - i];
    if (x == ir::Dim(1) || y == ir::Dim(1) || same_size(x, y)) continue;
    if ((x - y).is_constant()) return false;
    given = true;
  }
  return given;
}

[[noreturn]] void fail_shapes(Walk& walk, const ir::Type& a, const ir::Type& b,
                              Span where, std::string_view what,
                              Repeated repeated = Repeated::both) {
  Diagnostic d = diagnostic(Code::shapes_differ, where, what, a.to_string(),
                            b.to_string());
  d.set_label(fmt::format("{} and {}", a.to_string(), b.to_string()));
  d.add_fact(difference(a.shape, b.shape, repeated));
  d.set_help(may_be_stated(a.shape, b.shape)
                 ? "state that sizes are equal with `x as f32[n]`, which is "
                   "checked when it runs"
             : repeated == Repeated::both
                 ? "sizes must be equal, or one of them 1"
                 : "sizes must be equal, or that of the array 1");
  walk.fail(d.about());
}

}  // namespace

ArrayValue broadcast_to(Walk& walk, const ArrayValue& array,
                        const ir::Shape& shape, Span where) {
  const ir::Shape& from = array->type.shape;
  if (from == shape) return array;
  const auto common = broadcast_shape(walk, from, shape);
  if (!common || !same_sizes(*common, shape))
    fail_shapes(walk, array->type, {array->type.dtype, shape}, where,
                "broadcasting", Repeated::first);
  if (from.size() == shape.size() && same_sizes(from, shape))
    return taken_for(walk, array, shape);
  if (array->weak)
    return broadcast_to(
        walk, cast_to(walk, array, default_dtype(*array), where), shape, where);
  if (array->constant && static_cast<int64_t>(array->constant->size()) ==
                             byte_size(array->type.dtype)) {
    walk.check_size({array->type.dtype, shape}, where);
    auto constant = std::make_shared<ArrayCell>(*array);
    constant->type.shape = shape;
    constant->array.reset();
    constant->copies.reset();
    return constant;
  }
  ir::BroadcastAttrs attrs{shape, {}};
  const size_t lead = shape.size() - from.size();
  ir::Shape own = from;
  for (size_t i = lead; i < shape.size(); ++i) {
    attrs.axes.push_back(static_cast<int>(i));
    if (own[i - lead] != ir::Dim(1)) own[i - lead] = shape[i];
  }
  return walk.add(ir::Op::broadcast, {taken_for(walk, array, std::move(own))},
                  std::move(attrs), where);
}

void broadcast_all(Walk& walk, std::span<ArrayValue> arrays,
                   std::span<const CallArgument> operands, Span where,
                   std::string_view what) {
  ir::Type common = arrays[0]->type;
  for (size_t i = 1; i < arrays.size(); ++i) {
    const auto shape =
        broadcast_shape(walk, common.shape, arrays[i]->type.shape);
    if (!shape) {
      // In the words of the program: types before promotion. What has a size
      // that is wrong is no number, so it was an array before.
      if (i == 1) common = operands[0].value.array()->type;
      fail_shapes(walk, common, operands[i].value.array()->type, where, what);
    }
    common.shape = *shape;
  }
  for (ArrayValue& array : arrays)
    array = broadcast_to(walk, array, common.shape, where);
}

}  // namespace unisono::lang
