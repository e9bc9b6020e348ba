// Expressions.
#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <limits>

#include "jit/ir/kinds.h"
#include "jit/scalar/element.h"
#include "lang/builtins/load.h"
#include "lang/context/arguments.h"
#include "lang/context/function.h"
#include "lang/ops/array_ops.h"
#include "lang/ops/carry.h"
#include "lang/ops/operators.h"
#include "lang/ops/print_value.h"
#include "lang/ops/sizes.h"
#include "lang/ops/text.h"
#include "lang/source/foreign_names.h"
#include "lang/source/stdlib.h"
#include "lang/syntax/parser.h"
#include "lang/walk/types.h"

namespace unisono::lang {
namespace {

constexpr size_t max_index_items = 256;
/// Items of an array that are computed, each by operations of its own.
constexpr size_t max_computed_items = 65'536;

/// A number of a literal array, or a truth value, whose suffix is `bool`.
struct Number {
  double real = 0;
  int64_t integer = 0;
  bool is_real = false;
  std::optional<DType> suffix;
  Span where;
};

bool collect_number(const Expr& e, bool negative, Number& out) {
  if (const auto* unary = as<Unary>(e))
    return unary->op == UnaryOp::negate &&
           collect_number(*unary->operand, !negative, out);
  if (const auto* i = as<IntLiteral>(e)) {
    if (i->value > INT64_MAX) return false;
    const auto value = static_cast<int64_t>(i->value);
    out.integer = negative ? -value : value;
    out.real = static_cast<double>(out.integer);
    out.suffix = i->suffix;
    return true;
  }
  if (const auto* f = as<FloatLiteral>(e)) {
    out.real = negative ? -f->value : f->value;
    out.is_real = true;
    out.suffix = f->suffix;
    return true;
  }
  return false;
}

bool collect_bool(const Expr& e, Number& out) {
  const auto* literal = as<BoolLiteral>(e);
  if (!literal) return false;
  out.integer = literal->value;
  out.suffix = DType::Bool;
  return true;
}

/// The elements of a nested literal of numbers and truth values alone.
struct Numbers {
  std::vector<int64_t> sizes;
  bool has_rank = false;  // a number was met: there are no more sizes
  std::vector<Number> numbers;
};

/// False if there is anything else in it, or rows differ.
bool collect_numbers(const Array& array, size_t depth, Numbers& out) {
  const auto count = static_cast<int64_t>(array.items.size());
  if (depth == out.sizes.size() && !out.has_rank) out.sizes.push_back(count);
  if (depth >= out.sizes.size() || out.sizes[depth] != count) return false;
  for (const ExprPtr& item : array.items) {
    if (const auto* row = as<Array>(*item)) {
      if (!collect_numbers(*row, depth + 1, out)) return false;
      continue;
    }
    if (out.sizes.size() != depth + 1) return false;
    out.has_rank = true;
    Number& number = out.numbers.emplace_back();
    number.where = item->span;
    if (!collect_number(*item, false, number) && !collect_bool(*item, number))
      return false;
  }
  return true;
}

/// The shape of an item that is written as a literal, by its first rows;
/// nothing if what decides it is computed.
std::optional<ir::Shape> literal_shape(const Expr& e) {
  const auto* array = as<Array>(e);
  if (!array) {
    Number number;
    if (e.kind == ExprKind::BoolLiteral || collect_number(e, false, number))
      return ir::Shape{};
    return std::nullopt;
  }
  std::optional<ir::Shape> shape = ir::Shape{};
  if (!array->items.empty()) shape = literal_shape(*array->items[0]);
  if (shape)
    shape->insert(shape->begin(),
                  ir::Dim(static_cast<int64_t>(array->items.size())));
  return shape;
}

/// `[]`, `[[], []]`: nothing in it has a type.
bool is_empty(const Expr& e) {
  const auto* array = as<Array>(e);
  return array && std::ranges::all_of(array->items, [](const ExprPtr& item) {
           return is_empty(*item);
         });
}

/// All numbers in it.
void append_numbers(const Array& array, std::vector<Number>& numbers) {
  for (const ExprPtr& item : array.items) {
    Number number;
    if (const auto* row = as<Array>(*item))
      append_numbers(*row, numbers);
    else if (collect_number(*item, false, number))
      numbers.push_back(number);
  }
}

bool has_bool(const Expr& e) {
  const auto* array = as<Array>(e);
  return e.kind == ExprKind::BoolLiteral ||
         (array && std::ranges::any_of(array->items, [](const ExprPtr& item) {
            return has_bool(*item);
          }));
}

/// Rows of different shapes, outer ones first.
struct Ragged {
  const Expr* at = nullptr;
  size_t row = 0;
  ir::Shape shape, first;
};
std::optional<Ragged> find_ragged(const Array& array) {
  std::optional<ir::Shape> first;
  for (size_t i = 0; i < array.items.size(); ++i) {
    const auto shape = literal_shape(*array.items[i]);
    if (i == 0) first = shape;
    if (first && shape && *shape != *first)
      return Ragged{array.items[i].get(), i, *shape, *first};
  }
  for (const ExprPtr& item : array.items)
    if (const auto* row = as<Array>(*item))
      if (auto ragged = find_ragged(*row)) return ragged;
  return std::nullopt;
}

/// What stands for a record where its fields have values instead of types.
std::string with_values(const RecordType& record) {
  std::string fields;
  for (const TypedName& field : record.fields)
    fields += fmt::format("{}{} = {}", fields.empty() ? "" : ", ",
                          field.name.text, field.type->span.text());
  return fields.size() > 60 ? "the fields of a record are given by `=`: "
                              "`(x = 1.0, y = 2.0)`"
                            : fmt::format(
                                  "the fields of a record are given by "
                                  "`=`: `({})`",
                                  fields);
}

/// The elements' common type: a suffix (all have the same), or the default.
std::optional<DType> number_type(const std::vector<Number>& numbers,
                                 std::optional<DType> wanted) {
  std::optional<DType> suffix;
  bool is_real = false;
  for (const Number& n : numbers) {
    if (n.suffix && suffix && *n.suffix != *suffix) return std::nullopt;
    if (n.suffix) suffix = n.suffix;
    is_real |= n.is_real;
  }
  if (suffix == DType::Bool) {
    const bool alone =
        std::ranges::all_of(numbers, &std::optional<DType>::has_value,
                            &Number::suffix) &&
        wanted.value_or(DType::Bool) == DType::Bool;
    return alone ? suffix : std::nullopt;
  }
  if (suffix) return is_real && !is_floating(*suffix) ? std::nullopt : suffix;
  if (wanted && (is_floating(*wanted) || (is_integer(*wanted) && !is_real)))
    return wanted;
  return is_real ? DType::F32 : DType::I32;
}

}  // namespace

CallArgument Walker::argument(const Expr& e, const Env& env) {
  return {expr(e, env), e.span};
}

/// A named type of arrays, all sizes of which it says, is that type, as `f32`
/// is. Others are names alone.
Value Walker::as_type(Value value) {
  const auto* alias = value.get_if<TypeAliasValue>();
  if (!alias || !alias->definition->type_params.empty()) return value;
  const Expr& type = *alias->definition->type;
  if (const auto* index = as<Index>(type))
    for (const ExprPtr& item : index->items)
      if (item->kind == ExprKind::Wildcard || item->kind == ExprKind::Rest ||
          item->kind == ExprKind::UnknownSize)
        return value;
  TypeMatcher types(*this, alias->environment, TypeMatcher::Names::known);
  const Value any = types.any_value(type);
  return any.array() ? TypeValue{any.array()->type} : std::move(value);
}

// ---- the walk --------------------------------------------------------------

Value Walker::expr(const Expr& e, const Env& env) {
  enter(e.span);
  Value value = walk_expr(e, env);
  if (!value.tuple() && !value.record()) return value;
  check_tree(value, e.span);
  if (e.kind != ExprKind::NameExpr && e.kind != ExprKind::Field)
    count_tree(value, e.span);
  return value;
}

void Walker::count_tree(const Value& value, Span where) {
  if (const size_t leaves = tree_size(value).leaves; leaves > 1)
    walk_.count_host_bytes(static_cast<int64_t>(leaves * sizeof(Value)), where);
}

Value Walker::walk_expr(const Expr& e, const Env& env) {
  switch (e.kind) {
    case ExprKind::IntLiteral:
      return int_literal(static_cast<const IntLiteral&>(e), false, e.span);
    case ExprKind::FloatLiteral: {
      const auto& literal = static_cast<const FloatLiteral&>(e);
      return walk_.constant(literal.value, literal.suffix.value_or(DType::F32),
                            !literal.suffix, e.span);
    }
    case ExprKind::StringLiteral:
      return string_literal(static_cast<const StringLiteral&>(e), env);
    case ExprKind::BoolLiteral:
      return BoolValue{static_cast<const BoolLiteral&>(e).value};
    case ExprKind::NoneLiteral: return NoneValue{};
    case ExprKind::NameExpr: {
      Value value = lookup(static_cast<const NameExpr&>(e), env);
      if (value.is<ArrayValue>()) return present(std::move(value), e.span);
      return value.is<TypeAliasValue>() ? as_type(std::move(value)) : value;
    }
    case ExprKind::Tuple: {
      std::vector<Value> items;
      for (const ExprPtr& item : static_cast<const Tuple&>(e).items)
        items.push_back(expr(*item, env));
      return make_tuple(std::move(items));
    }
    case ExprKind::Record:
      return record_expr(static_cast<const Record&>(e), env);
    case ExprKind::Array:
      return array_literal(static_cast<const Array&>(e), env, std::nullopt);
    case ExprKind::Comprehension:
      return comprehension(static_cast<const Comprehension&>(e), env);
    case ExprKind::Call: return call_expr(static_cast<const Call&>(e), env);
    case ExprKind::Index: {
      const auto& x = static_cast<const Index&>(e);
      const Value base = expr(*x.object, env);
      if (x.items.size() > max_index_items)
        walk_.fail(diagnostic(Code::too_long, e.span, "this index",
                              max_index_items, "items"));
      if (base.is<TypeAliasValue>()) {
        TypeMatcher types(*this, env, TypeMatcher::Names::known);
        const Value any = types.any_value(e);
        if (any.array()) return TypeValue{any.array()->type};
      }
      return index(walk_, base, index_items(x, env, base.is<TypeValue>()),
                   e.span);
    }
    case ExprKind::Field: {
      const auto& x = static_cast<const Field&>(e);
      forbid_foreign_module(x, env);
      const CallArgument base = argument(*x.object, env);
      const std::string function(base.value.array() ? array_field(x.name.text)
                                                    : std::string_view());
      if (!function.empty())
        return call_value({s_.prelude->find(function).first->value, x.span},
                          {base}, {}, x.span);
      return as_type(field(base.value, x));
    }
    case ExprKind::Unary: return unary_expr(static_cast<const Unary&>(e), env);
    case ExprKind::Binary:
      return binary_expr(static_cast<const Binary&>(e), env);
    case ExprKind::Cast: return cast_expr(static_cast<const Cast&>(e), env);
    case ExprKind::With: return with_expr(static_cast<const With&>(e), env);
    case ExprKind::Pipe: {
      const auto& pipe = static_cast<const Pipe&>(e);
      CallArgument value = argument(*pipe.value, env);
      return call_value(argument(*pipe.function, env), {std::move(value)}, {},
                        e.span);
    }
    case ExprKind::If: return if_value(static_cast<const If&>(e), env);
    case ExprKind::Block: return block(e, env, false, true);
    case ExprKind::FnExpr:
      return std::make_shared<const FunctionValue>(FunctionValue{
          "fn", Closure{nullptr, &static_cast<const FnExpr&>(e), env}});
    case ExprKind::Wildcard:
    case ExprKind::UnknownSize:
    case ExprKind::Rest:
    case ExprKind::RecordType:
    case ExprKind::FunctionType:
    case ExprKind::Slice: break;
  }
  Diagnostic d = diagnostic(Code::not_a_value, e.span, e.span.text());
  if (const auto* record = as<RecordType>(e)) d.set_help(with_values(*record));
  if (e.kind == ExprKind::Slice)
    d.set_help("a size of a type is a number or a name: `f32[n]`");
  walk_.fail(std::move(d));
}

Value Walker::int_literal(const IntLiteral& literal, bool negative,
                          Span where) {
  const uint64_t limit = uint64_t{INT64_MAX} + (negative ? 1 : 0);
  if (literal.value <= limit) {
    const auto value =
        static_cast<int64_t>(negative ? 0 - literal.value : literal.value);
    if (!literal.suffix) return IntValue{value};
    return walk_.constant_int(value, *literal.suffix, false, where);
  }
  if (literal.suffix.value_or(DType::U64) == DType::U64 && !negative) {
    const ArrayValue number = walk_.constant_array(
        {DType::U64, {}},
        jit::element_bytes(DType::U64, static_cast<int64_t>(literal.value)),
        where);
    number->weak = number->literal = !literal.suffix;
    return number;
  }
  walk_.fail(diagnostic(Code::literal_range, where, where.text(),
                        literal.suffix ? name(*literal.suffix) : "int",
                        "-2**63 to 2**63 - 1")
                 .set_help("`u64` holds up to 2**64 - 1: write the suffix"));
}

Value Walker::record_expr(const Record& e, const Env& env) {
  std::vector<std::pair<std::string, Value>> fields;
  for (const ArgumentExpr& f : e.fields)
    fields.emplace_back(f.name->text, expr(*f.value, env));
  return make_record(std::move(fields));
}

bool Walker::is_awaited_file(const Expr& e, const Env& env) {
  const auto* call = as<Call>(e);
  const bool some = call && !call->arguments.empty();
  const auto* name = some ? as<NameExpr>(*call->callee) : nullptr;
  if (!name || !checking() || walk_.in_compiled_code()) return false;
  const Value callee = lookup(*name, env);
  const auto* function = callee.get_if<std::shared_ptr<const FunctionValue>>();
  const auto* builtin =
      function ? std::get_if<const Builtin*>(&(*function)->what) : nullptr;
  if (!builtin) return false;
  const bool is_load = *builtin == find_builtin("load");
  const bool reads = (is_load && call->arguments.size() == 1) ||
                     *builtin == find_builtin("read_csv");
  if (!reads || call->arguments[0].name) return false;
  const CallArgument path = argument(*call->arguments[0].value, env);
  return is_awaited(walk_, **builtin, path);
}

Value Walker::cast_expr(const Cast& e, const Env& env) {
  TypeMatcher matcher(*this, env, TypeMatcher::Names::coerce);
  // What a file will hold that is not there yet, the type says.
  if (is_awaited_file(*e.value, env)) {
    Value value = matcher.any_value(*e.type);
    matcher.finish();
    return value;
  }
  Value value =
      matcher.match(*e.type, expr(*e.value, env), e.value->span, "the value");
  matcher.finish();
  return value;
}

Value Walker::with_expr(const With& e, const Env& env) {
  const Value base = expr(*e.base, env);
  const RecordValue* record = base.record();
  if (!record)
    walk_.fail(diagnostic(Code::unknown_field, e.base->span, type_name(base),
                          e.fields[0].name->text)
                   .set_help("`with` replaces fields of a record"));
  std::vector<std::pair<std::string, Value>> fields = record->fields;
  for (const ArgumentExpr& f : e.fields) {
    const auto found = std::find_if(
        fields.begin(), fields.end(),
        [&](const auto& field) { return field.first == f.name->text; });
    if (found == fields.end())
      walk_.fail(diagnostic(Code::unknown_field, f.name->span, type_name(base),
                            f.name->text)
                     .set_help(fields_text(*record)));
    found->second =
        adopt(walk_, expr(*f.value, env), found->second, f.value->span);
  }
  return make_record(std::move(fields));
}

Value Walker::unary_expr(const Unary& e, const Env& env) {
  // The least integer of a type is written as minus what does not fit it.
  if (const auto* literal = as<IntLiteral>(*e.operand);
      literal && e.op == UnaryOp::negate &&
      !(literal->suffix && is_unsigned(*literal->suffix)))
    return int_literal(*literal, true, e.span);
  return unary(walk_, e.op, argument(*e.operand, env), e.span);
}

/// A number beside an operator is made once while a program runs: nothing else
/// can hold it, so it is never given away.
CallArgument Walker::operand(const Expr& e, const Env& env) {
  const auto* literal = as<FloatLiteral>(e);
  if (!literal || literal->suffix || walk_.mode() != Mode::run ||
      walk_.machine().compile_only)
    return argument(e, env);
  enter(e.span);
  ArrayValue& kept = s_.literals[literal];
  // Of a program that is gone, the place may be another number's.
  uint64_t bits = 0;
  if (kept) std::memcpy(&bits, kept->constant->data(), sizeof bits);
  if (!kept || bits != std::bit_cast<uint64_t>(literal->value))
    kept = walk_.constant(literal->value, DType::F64, true, e.span);
  return {kept, e.span};
}

bool may_matter(const Expr& e) {
  bool matters = e.kind == ExprKind::Index || e.kind == ExprKind::Call ||
                 e.kind == ExprKind::Cast;
  if (const auto* two = as<Binary>(e))
    matters |= two->op == BinaryOp::floor_div || two->op == BinaryOp::mod ||
               two->op == BinaryOp::pow;
  for_each_child(
      e, [&](const Expr& child) { matters = matters || may_matter(child); },
      [](const Stmt&) {});
  return matters;
}

namespace {
/// Whether the node prints, or calls a function of the host.
bool calls_host(const ir::Node& node) {
  const auto any = [](const std::shared_ptr<const ir::Graph>& graph) {
    return graph && std::ranges::any_of(graph->nodes, calls_host);
  };
  if (node.op == ir::Op::host_call) return true;
  if (const auto* a = std::get_if<ir::IfAttrs>(&node.attrs))
    return any(a->then_graph) || any(a->else_graph);
  if (const auto* a = std::get_if<ir::LoopAttrs>(&node.attrs))
    return any(a->condition) || any(a->body);
  return false;
}

bool is_scalar(const Value& value) {
  return value.is<BoolValue>() ||
         (value.array() && value.array()->type.rank() == 0);
}
}  // namespace

/// Whether the left side of an `and` or `or` of scalars on the host says what
/// it is, so that the right one is left alone.
bool Walker::is_decided(const Binary& e, const Value& left) {
  const ArrayCell* array = left.array();
  if (walk_.mode() != Mode::run || !array || array->type.rank() > 0 ||
      !is_bool(array->type.dtype))
    return false;
  const auto known = s_.scalar_logic.find(&e);
  // What the check left to the run it has not seen.
  const bool scalars =
      known == s_.scalar_logic.end() ? may_matter(*e.right) : known->second;
  if (!scalars) return false;
  const bool holds =
      walk_.host_bytes(*left.get_if<ArrayValue>(), e.left->span)[0] != 0;
  return holds == (e.op == BinaryOp::logical_or);
}

Value Walker::binary_expr(const Binary& e, const Env& env) {
  // `lower_jumps` writes an `and` before the condition of a loop that may be
  // left; whoever wrote the condition reads about that.
  const auto right_side = [&] {
    CallArgument right = operand(*e.right, env);
    if (e.op == BinaryOp::logical_and && e.op_span == e.left->span)
      require_condition(right.value, e.right->span);
    return right;
  };
  // A power may be its base as it is.
  const CallArgument left =
      e.op == BinaryOp::pow ? argument(*e.left, env) : operand(*e.left, env);
  if (class_of(e.op) == OpClass::logic) {
    const auto* known = left.value.get_if<BoolValue>();
    const bool absorbing = e.op == BinaryOp::logical_or;
    if (known && known->value == absorbing) return left.value;
    if (is_decided(e, left.value)) return left.value;
    if (checking() && !walk_.in_compiled_code() && may_matter(*e.right)) {
      CallArgument right;
      try {
        right = right_side();
      } catch (const Failure& failure) {
        // The left side may keep a place from being read that is out of range.
        const Code code = failure.diagnostic.code;
        if (failure.reported || (code != Code::index_out_of_range &&
                                 code != Code::text_index_out_of_range))
          throw;
        right = {walk_.unknown_array({DType::Bool, {}}), e.right->span};
      }
      const bool scalars = is_scalar(left.value) && is_scalar(right.value);
      const auto [place, first] = s_.scalar_logic.try_emplace(&e, scalars);
      place->second &= scalars;
      return binary(walk_, e.op, left, right, e.op_span, e.span);
    }
    if (s_.attempt && s_.scalar_logic.contains(&e)) {
      // Code computes both sides, so nothing may happen on the right one.
      const std::shared_ptr<GraphScope> scope = walk_.scope();
      const size_t before = scope->graph().nodes.size();
      const CallArgument right = right_side();
      const ir::Graph& graph = scope->graph();
      for (size_t i = before; i < graph.nodes.size(); ++i)
        if (calls_host(graph.nodes[i]))
          walk_.fail(diagnostic(Code::host_value_in_compiled_code,
                                e.right->span, "what happens here"));
      return binary(walk_, e.op, left, right, e.op_span, e.span);
    }
  }
  return binary(walk_, e.op, left, right_side(), e.op_span, e.span);
}

// ---- strings ---------------------------------------------------------------

Value Walker::string_literal(const StringLiteral& e, const Env& env) {
  if (auto text = e.plain_text()) return StrValue{std::move(*text)};
  TextBuilder out(walk_);
  for (const StringPiece& piece : e.pieces) {
    if (piece.value)
      out.value(expr(*piece.value, env), piece.spec, piece.span);
    else
      out.text(piece.text);
    check_text_size(walk_, out.size(), e.span);
  }
  return out.finish();
}

// ---- parts of values -------------------------------------------------------

namespace {
/// Whether a size is computed from an axis's number of members.
bool mentions_axis(const Expr& e, const Env& env) {
  if (const auto* op = as<Binary>(e))
    return mentions_axis(*op->left, env) || mentions_axis(*op->right, env);
  const auto* name = as<NameExpr>(e);
  const Binding* binding = name ? env->find(name->text).first : nullptr;
  return binding && binding->value.is<AxisValue>();
}
}  // namespace

std::vector<IndexItem> Walker::index_items(const Index& e, const Env& env,
                                           bool sizes) {
  std::vector<IndexItem> out;
  for (const ExprPtr& item : e.items) {
    IndexItem one;
    one.where = item->span;
    if (const auto* slice = as<Slice>(*item)) {
      one.kind = IndexItem::Kind::slice;
      if (slice->start) one.start = argument(*slice->start, env);
      if (slice->stop) one.stop = argument(*slice->stop, env);
      if (slice->step) one.step = argument(*slice->step, env);
    } else if (item->kind == ExprKind::Rest) {
      one.kind = IndexItem::Kind::ellipsis;
    } else if (sizes && mentions_axis(*item, env)) {
      one.value = IntValue{
          TypeMatcher(*this, env, TypeMatcher::Names::known).size(*item)};
    } else {
      one.value = expr(*item, env);
    }
    out.push_back(std::move(one));
  }
  return out;
}

const Value* Walker::find_field(const Value& base, const Field& e) {
  if (const RecordValue* record = base.record())
    return e.index ? nullptr : record->find(e.name.text);
  if (const TupleValue* tuple = base.tuple())
    return e.index && static_cast<size_t>(*e.index) < tuple->items.size()
               ? &tuple->items[*e.index]
               : nullptr;
  if (const auto* module = base.get_if<ModuleValue>()) {
    const auto found = module->environment->names.find(e.name.text);
    if (found == module->environment->names.end()) return nullptr;
    if (found->second.poisoned)
      use_poisoned(found->second, e.name.text, e.span);
    return &found->second.value;
  }
  return nullptr;
}

// ---- calls -----------------------------------------------------------------

namespace {
/// The builtin that a value is, or null.
const Builtin* builtin_of(const Value& callee) {
  const auto* function = callee.get_if<std::shared_ptr<const FunctionValue>>();
  const auto* builtin =
      function ? std::get_if<const Builtin*>(&(*function)->what) : nullptr;
  return builtin ? *builtin : nullptr;
}

/// The definition of a function of the library's, or null.
const DefStmt* library_definition(const Value& callee) {
  const auto* function = callee.get_if<std::shared_ptr<const FunctionValue>>();
  const auto* closure =
      function ? std::get_if<Closure>(&(*function)->what) : nullptr;
  const DefStmt* definition = closure ? closure->definition : nullptr;
  return definition && is_in_stdlib(definition->span) ? definition : nullptr;
}
}  // namespace

void Walker::arguments(
    const Call& e, const Value& callee, const Env& env,
    std::vector<CallArgument>& positional,
    std::vector<std::pair<std::string, CallArgument>>& named) {
  const Builtin* builtin = builtin_of(callee);
  const DefStmt* library = library_definition(callee);
  // The name of the parameter at a place, of a function that is not the user's.
  const auto parameter = [&](size_t i) -> std::string_view {
    // Those of `*arrays` are arguments of their own.
    if (builtin && i < builtin->parameters.size())
      return builtin->parameters[i].is_rest ? std::string_view()
                                            : builtin->parameters[i].name;
    if (!library || i >= library->function.params.size()) return {};
    return library->function.params[i].pattern.name.text;
  };
  for (const ArgumentExpr& a : e.arguments) {
    if (a.name && a.name->text == "over") forbid_undeclared_axis(*a.value, env);
    if (a.name)
      named.emplace_back(
          a.name->text,
          argument_in_brackets(
              builtin || library ? std::string_view(a.name->text) : "",
              *a.value, env));
    else
      positional.push_back(
          argument_in_brackets(parameter(positional.size()), *a.value, env));
  }
}

namespace {
/// The positional argument of a builtin that names an axis or devices, if
/// `before` of them stand before the call's own.
const Expr* axis_argument_of(const Value& callee, const Call& e,
                             size_t before) {
  const Builtin* builtin = builtin_of(callee);
  if (!builtin) return nullptr;
  const std::span<const Parameter> parameters = builtin->parameters;
  for (size_t i = 0; i < e.arguments.size() && before + i < parameters.size();
       ++i) {
    if (parameters[before + i].name != "over") continue;
    const ArgumentExpr& given = e.arguments[i];
    return given.name ? nullptr : given.value.get();
  }
  return nullptr;
}
}  // namespace

namespace {
/// `Point(1.0, 2.0)` where `Point` is the type of a record.
void forbid_constructor(Walk& walk, const Value& callee, const Call& e) {
  const auto* alias = callee.get_if<TypeAliasValue>();
  const auto* record =
      alias ? as<RecordType>(*alias->definition->type) : nullptr;
  if (!record || record->fields.size() != e.arguments.size()) return;
  std::string fields;
  for (size_t i = 0; i < record->fields.size(); ++i) {
    const ArgumentExpr& given = e.arguments[i];
    const Name& name = given.name ? *given.name : record->fields[i].name;
    fields += fmt::format("{}{} = {}", i > 0 ? ", " : "", name.text,
                          given.value->span.text());
  }
  walk.fail(diagnostic(Code::not_callable, e.callee->span, type_name(callee))
                .set_label(type_name(callee))
                .set_help(fields.size() <= 60
                              ? fmt::format("a record is `({})`", fields)
                              : "a record is `(field = value, ...)`"));
}

/// `x.astype(f64)`, with the type that it names.
void forbid_astype(Walk& walk, const Value& base, const Call& e) {
  const auto* method = as<Field>(*e.callee);
  if (!base.array() || method->name.text != "astype" || e.arguments.size() != 1)
    return;
  std::string_view type = e.arguments[0].value->span.text();
  if (type == "int") type = "i32";
  if (type == "float") type = "f32";
  if (!dtype_from_name(type)) return;
  walk.fail(diagnostic(Code::unknown_field, method->name.span, type_name(base),
                       method->name.text)
                .set_label(type_name(base))
                .set_help(fmt::format("write `cast({}, {})`",
                                      method->object->span.text(), type)));
}
}  // namespace

Value Walker::call_expr(const Call& e, const Env& env) {
  CallArgument callee;
  std::vector<CallArgument> positional;
  std::vector<std::pair<std::string, CallArgument>> named;
  if (const auto* method = as<Field>(*e.callee)) {
    forbid_foreign_module(*method, env);
    CallArgument base = argument(*method->object, env);
    callee.where = method->span;
    if (const Value* found = find_field(base.value, *method)) {
      callee.value = *found;
    } else {
      const bool function = !method->index && !base.value.is<ModuleValue>() &&
                            env->find(method->name.text).first;
      if (!function) {
        forbid_astype(walk_, base.value, e);
        field(base.value, *method);  // the error
      }
      NameExpr name;
      name.text = method->name.text;
      name.span = method->name.span;
      callee = {lookup(name, env), method->name.span};
      positional.push_back(std::move(base));
    }
  } else {
    callee = argument(*e.callee, env);
  }
  forbid_constructor(walk_, callee.value, e);
  forbid_call_of(callee.value, *e.callee, env);
  if (const Expr* axis = axis_argument_of(callee.value, e, positional.size()))
    forbid_undeclared_axis(*axis, env);
  arguments(e, callee.value, env, positional, named);
  return call_value(callee, std::move(positional), std::move(named), e.span);
}

// ---- arrays ----------------------------------------------------------------

std::optional<DType> Walker::wanted_dtype(const Expr& annotation,
                                          const Env& env) {
  TypeMatcher matcher(*this, env, TypeMatcher::Names::known);
  return matcher.element_of(annotation);
}

Value Walker::array_literal(const Array& e, const Env& env,
                            std::optional<DType> wanted) {
  Numbers literal;
  if (collect_numbers(e, 0, literal)) {
    const auto& [sizes, has_rank, numbers] = literal;
    if (numbers.empty() && !wanted)
      walk_.fail(
          diagnostic(Code::empty_array, e.span, "`[]`")
              .set_help("declare it: `let x: f32[0] = []`; one that grows "
                        "begins as `zeros(f32[0])`, one of words as `()`"));
    if (const auto dtype = number_type(numbers, wanted)) {
      ir::Type type{*dtype, ir::Shape(sizes.begin(), sizes.end())};
      std::vector<uint8_t> bytes;
      for (const Number& n : numbers) {
        const ArrayValue element =
            n.is_real || is_floating(*dtype)
                ? walk_.constant(n.real, *dtype, false, n.where)
                : walk_.constant_int(n.integer, *dtype, false, n.where);
        bytes.insert(bytes.end(), element->constant->begin(),
                     element->constant->end());
      }
      return walk_.constant_array(std::move(type), std::move(bytes), e.span);
    }
  }
  if (const auto ragged = find_ragged(e)) {
    literal.numbers.clear();
    append_numbers(e, literal.numbers);
    const DType dtype =
        literal.numbers.empty() && has_bool(e)
            ? DType::Bool
            : number_type(literal.numbers, wanted).value_or(DType::F32);
    fail_rows(ragged->row, {dtype, ragged->shape}, {dtype, ragged->first},
              ragged->at->span);
  }
  return stacked_rows(e, env, wanted);
}

Value Walker::stacked_rows(const Array& e, const Env& env,
                           std::optional<DType> wanted) {
  if (e.items.size() > max_computed_items)
    walk_.fail(diagnostic(Code::too_long, e.span, "this array",
                          max_computed_items, "computed items")
                   .set_help("compute it from a range: `[f(i) for i in "
                             "range(n)]`"));
  std::vector<CallArgument> rows(e.items.size()), others;
  const auto evaluate = [&](size_t i, std::optional<DType> dtype) {
    const Expr& item = *e.items[i];
    const auto* inner = as<Array>(item);
    rows[i] = {inner ? array_literal(*inner, env, dtype) : expr(item, env),
               item.span};
  };
  for (size_t i = 0; i < rows.size(); ++i) {
    if (is_empty(*e.items[i])) continue;
    evaluate(i, wanted);
    others.push_back(rows[i]);
  }
  // Words, pairs, records, functions in brackets are a tuple: what no array
  // holds was meant as a list, as by a comprehension of words.
  const bool is_list = std::ranges::none_of(others, [](const CallArgument& a) {
    return element_type(a.value).has_value();
  });
  if (is_list && others.size() == rows.size()) {
    std::vector<Value> items;
    for (CallArgument& row : rows) items.push_back(std::move(row.value));
    return make_tuple(std::move(items));
  }
  for (const CallArgument& row : others)
    if (!element_type(row.value)) fail_element(row);
  // `[]` takes its type from the rows beside it.
  if (!wanted && !others.empty() && others.size() < rows.size())
    wanted = promoted_type(walk_, others, "an array").dtype;
  for (size_t i = 0; i < rows.size(); ++i)
    if (is_empty(*e.items[i])) evaluate(i, wanted);
  WeakDType type = promoted_type(walk_, rows, "an array");
  if (type.weak) type = {wanted.value_or(type.dtype), false};
  std::vector<ArrayValue> parts;
  ir::Type first;
  for (size_t i = 0; i < rows.size(); ++i) {
    parts.push_back(to_dtype(walk_, rows[i], type, "an array"));
    const ir::Type& row = parts.back()->type;
    if (i == 0) first = row;
    if (row.shape == first.shape) continue;
    auto both = same_shape(first.shape, row.shape);
    if (!both) fail_rows(i, row, first, rows[i].where);
    first.shape = std::move(*both);
  }
  for (ArrayValue& part : parts) {
    part = taken_for(walk_, part, first.shape);
    ir::Shape shape = first.shape;
    shape.insert(shape.begin(), ir::Dim(1));
    part = reshape(walk_, part, std::move(shape), e.span);
  }
  return concat(walk_, parts, 0, e.span);
}

void Walker::fail_element(const CallArgument& item) {
  walk_.fail(diagnostic(Code::mixed_elements, item.where, type_name(item.value))
                 .set_help("a tuple `(a, b)` holds values of any type"));
}

void Walker::fail_rows(size_t row, const ir::Type& type, const ir::Type& first,
                       Span where) {
  walk_.fail(
      diagnostic(Code::rows_differ, where, row, type.to_string(),
                 first.to_string())
          .about()
          .set_label(type.to_string())
          .set_help("a tuple `(a, b)` holds arrays of different shapes"));
}

}  // namespace unisono::lang
