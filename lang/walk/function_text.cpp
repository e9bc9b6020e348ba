// Text, tuples and arrays, and parts of them, in functions that become code.
#include <algorithm>
#include <cstring>
#include <limits>
#include <utility>

#include "jit/scalar/element.h"
#include "lang/ops/text.h"
#include "lang/walk/function_code.h"

namespace unisono::lang {
namespace {

using Form = HostKind::Form;

/// Functions of text, and what they give. Of those of numbers `int`, `str` and
/// `chr` are here.
struct TextFunction {
  std::string_view builtin;
  Form result;
};
constexpr TextFunction text_functions[] = {
    {"upper", Form::text},       {"lower", Form::text},
    {"strip", Form::text},       {"lstrip", Form::text},
    {"rstrip", Form::text},      {"capitalize", Form::text},
    {"title", Form::text},       {"replace", Form::text},
    {"join", Form::text},        {"str", Form::text},
    {"chr", Form::text},         {"split", Form::texts},
    {"splitlines", Form::texts}, {"startswith", Form::boolean},
    {"endswith", Form::boolean}, {"isdigit", Form::boolean},
    {"isalpha", Form::boolean},  {"isalnum", Form::boolean},
    {"isspace", Form::boolean},  {"isupper", Form::boolean},
    {"islower", Form::boolean},  {"find", Form::integer},
    {"count", Form::integer},    {"ord", Form::integer},
    {"int", Form::integer},
};

HostKind kind_of(Form form) {
  if (form == Form::boolean) return HostKind::boolean();
  HostKind kind;
  kind.form = form;
  return kind;
}

/// Whether it is whole, and its digits are those of an int of 64 bits.
bool has_digits(const HostKind& kind) {
  return is_whole(kind) && kind.dtype != DType::U64;
}

/// The kind of a tuple of texts, or of ints; nothing of others.
std::optional<HostKind> tuple_kind(const TupleValue& tuple) {
  const auto is_text = [](const Value& item) {
    const auto* text = item.get_if<StrValue>();
    return text && text->value;
  };
  const auto is_int = [](const Value& item) {
    const auto kind = host_kind(item);
    return kind && kind->is(Form::integer);
  };
  if (tuple.items.empty()) return std::nullopt;
  if (std::ranges::all_of(tuple.items, is_text)) return kind_of(Form::texts);
  if (std::ranges::all_of(tuple.items, is_int)) return kind_of(Form::ints);
  return std::nullopt;
}

}  // namespace

std::optional<HostKind> held_kind(const Value& value) {
  if (const auto* text = value.get_if<StrValue>())
    return text->value ? std::optional(HostKind::text()) : std::nullopt;
  const TupleValue* tuple = value.tuple();
  return tuple ? tuple_kind(*tuple) : std::nullopt;
}

Held held_of(const Value& value) {
  if (const auto* text = value.get_if<StrValue>()) return {text->value, {}};
  return {{}, *value.get_if<std::shared_ptr<const TupleValue>>()};
}

Value value_of(const Held& held, const HostKind& kind) {
  return kind.is(Form::text) ? Value(StrValue{held.text}) : Value(held.items);
}

// ---- constants -------------------------------------------------------------

HostOperand FunctionCompiler::Body::held_constant(HostKind kind, Held held) {
  hold();
  const auto same = [&](const Held& each) {
    return each.items == held.items && each.text == held.text;
  };
  std::vector<Held>& all = all_.constants_;
  const auto found = std::ranges::find_if(all, same);
  const auto number = static_cast<uint64_t>(found - all.begin());
  if (found == all.end()) all.push_back(std::move(held));
  return known(kind, number);
}

/// A tuple of literals, or nothing. An empty one is of texts.
std::optional<HostOperand> FunctionCompiler::Body::items_constant(
    const Expr& e) {
  const auto* tuple = as<Tuple>(e);
  const auto* words = as<Array>(e);
  const auto is_literal = [&](const ExprPtr& item) {
    const auto* text = as<StringLiteral>(*item);
    const auto* number = as<IntLiteral>(*item);
    return (text && text->plain_text()) || (tuple && number && !number->suffix);
  };
  if (!std::ranges::all_of(tuple ? tuple->items : words->items, is_literal))
    return std::nullopt;
  const Value value = all_.walker_.walk_expr(e, env_);
  auto kind = held_kind(value);
  if (tuple && tuple->items.empty()) kind = kind_of(Form::texts);
  return kind ? std::optional(held_constant(*kind, held_of(value)))
              : std::nullopt;
}

// ---- tuples ----------------------------------------------------------------

/// The tuple in a register with one item more.
void FunctionCompiler::Body::add_item(uint32_t tuple, const Operand& item,
                                      Span where) {
  const uint32_t before = top_;
  const bool text = item.kind.is(Form::text);
  all_.begins_again_ = where;  // where there are too many
  emit(text_step(text ? TextStep::add_text : TextStep::add_int), tuple,
       placed(item, reserve()), 0, 0, static_cast<int64_t>(max_leaves));
  top_ = before;
}

HostOperand FunctionCompiler::Body::tuple(const Tuple& e, uint32_t place) {
  const uint32_t before = top_;
  const uint32_t own = reserve();  // the items may read `place`
  std::optional<HostKind> kind;
  move(held_constant(kind_of(Form::texts), held_of(make_tuple({}))), own);
  for (const ExprPtr& item : e.items) {
    const Operand one = value(*item, reserve());
    const bool text = one.kind.is(Form::text);
    const HostKind all = kind_of(text ? Form::texts : Form::ints);
    if ((!text && !one.kind.is(Form::integer)) || (kind && *kind != all))
      give_up(item->span, "a tuple of several kinds of values");
    kind = all;
    add_item(own, one, item->span);
  }
  top_ = before;
  emit(text_step(TextStep::move), place, own);
  return in(*kind, place);
}

/// `[f(w) for w in words]` of texts, at least one.
HostOperand FunctionCompiler::Body::texts(const Comprehension& e,
                                          uint32_t place) {
  if (e.generators.size() != 1 || e.condition)
    give_up(e.span, "this is no operation on numbers");
  const uint32_t before = top_;
  const uint32_t own = reserve();
  const HostKind kind = kind_of(Form::texts);
  move(held_constant(kind, held_of(make_tuple({}))), own);
  for_held(e.generators[0].pattern, *e.generators[0].iterable, nullptr,
           [&](Target&) {
             const uint32_t names = top_;
             const Operand one = value(*e.element, reserve());
             if (!one.kind.is(Form::text))
               give_up(e.span, "members that are no text");
             add_item(own, one, e.span);
             top_ = names;
           });
  emit(text_step(TextStep::require_some), 0, own);
  all_.begins_again_ = e.span;
  top_ = before;
  emit(text_step(TextStep::move), place, own);
  return in(kind, place);
}

// ---- text with values in it ------------------------------------------------

/// A step that does what the walk does.
HostOperand FunctionCompiler::Body::evaluate(Site site_of, HostKind result,
                                             uint32_t place) {
  hold();
  site_of.result = result;
  unit_.sites[emit(text_step(TextStep::evaluate), place)] = std::move(site_of);
  return in(result, place);
}

HostOperand FunctionCompiler::Body::text_literal(const StringLiteral& e,
                                                 uint32_t place) {
  if (auto plain = e.plain_text())
    return held_constant(HostKind::text(), {Text(std::move(*plain)), {}});
  // The values may read `place`.
  const uint32_t before = top_;
  const uint32_t own = reserve();
  move(held_constant(HostKind::text(), {Text(std::string()), {}}), own);
  for (const StringPiece& piece : e.pieces) append_piece(piece, own);
  top_ = before;
  emit(text_step(TextStep::move), place, own);
  return in(HostKind::text(), place);
}

void FunctionCompiler::Body::append_piece(const StringPiece& piece,
                                          uint32_t place) {
  all_.begins_again_ = piece.span;  // where it is too long
  if (!piece.value) {
    const Operand text =
        held_constant(HostKind::text(), {Text(piece.text), {}});
    emit(text_step(TextStep::append_constant), place, 0, 0, 0,
         static_cast<int64_t>(text.bits));
    return;
  }
  const uint32_t before = top_;
  const uint32_t at = reserve();
  const Operand shown = value(*piece.value, at);
  if (shown.kind.is(Form::whole))
    give_up(piece.span, "one of two kinds of values");
  const bool plain = piece.spec.empty();
  if (plain && shown.kind.is(Form::text)) {
    emit(text_step(TextStep::append), place, placed(shown, at));
  } else if (plain && has_digits(shown.kind) && !shown.known) {
    uint32_t from = shown.place;
    if (shown.kind.dtype != DType::I64) {
      from = reserve();
      emit(jit::cast_step(shown.kind.dtype, DType::I64), from, shown.place);
    }
    emit(text_step(TextStep::append_int), place, from);
  } else {
    Site site_of;
    site_of.what = Site::What::piece;
    site_of.where = piece.span;
    site_of.a = shown;
    site_of.text = &piece;
    const uint32_t text = reserve();
    evaluate(std::move(site_of), HostKind::text(), text);
    emit(text_step(TextStep::append), place, text);
  }
  top_ = before;
}

/// `s += t` and `s = s + t`, in its place: of text, and of a tuple and one that
/// is written out. False if it is anything else.
bool FunctionCompiler::Body::append(const AssignStmt& s,
                                    const Operand& variable) {
  const Expr* more = s.value.get();
  if (s.op) {
    if (*s.op != BinaryOp::add) return false;
  } else {
    const auto* sum = as<Binary>(*s.value);
    const auto* first = sum ? as<NameExpr>(*sum->left) : nullptr;
    if (!first || sum->op != BinaryOp::add ||
        first->text != static_cast<const NameExpr&>(*s.target).text)
      return false;
    more = sum->right.get();
  }
  if (assigns(*more)) return false;
  const uint32_t before = top_;
  if (variable.kind.is_tuple()) {
    const auto* items = as<Tuple>(*more);
    if (!items || items->items.size() != 1) return false;
    const Operand one = value(*items->items[0], reserve());
    const bool text = one.kind.is(Form::text);
    if (variable.kind != kind_of(text ? Form::texts : Form::ints) ||
        (!text && !one.kind.is(Form::integer)))
      give_up(s.span, "a tuple of several kinds of values");
    add_item(variable.place, one, s.span);
    top_ = before;
    return true;
  }
  const uint32_t at = reserve();
  const Operand behind = value(*more, at);
  if (!behind.kind.is(Form::text)) give_up(s.span, "this is no text");
  all_.begins_again_ = s.span;  // where it is too long
  emit(text_step(TextStep::append), variable.place, placed(behind, at));
  top_ = before;
  return true;
}

// ---- parts -----------------------------------------------------------------

/// An index, as an int of 64 bits: its register, or `place`.
uint32_t FunctionCompiler::Body::index_register(const Operand& index,
                                                uint32_t place, Span where) {
  const DType dtype = index.kind.dtype;
  if (index.kind.is(Form::scalar) && is_integer(dtype) && !index.known) {
    if (dtype == DType::I64) return index.place;
    if (dtype == DType::U64) give_up(where, "an index that i64 may not hold");
    emit(jit::cast_step(dtype, DType::I64), place, index.place);
    return place;
  }
  if (!index.kind.is(Form::integer) &&
      !(index.kind.is(Form::number) && dtype == DType::I64))
    give_up(where, "this is no index of an element");
  return placed(index, place);
}

/// One element of an array. If there is none the whole call is walked.
HostOperand FunctionCompiler::Body::element(const Index& e, uint32_t place) {
  const uint32_t before = top_;
  const uint32_t base = reserve(), at = reserve();
  Operand array = any(*e.object, base);
  if (!array.kind.has_elements()) {
    if (!array.kind.is_held()) give_up(e.object->span, "this is no array");
    const Operand out = part(e, array, place);
    top_ = before;
    return out;
  }
  array = in(array.kind, placed(array, base));
  const std::vector<uint32_t> indices = indices_of(e, array);
  const Operand out = load(array, element_place(array, indices, at), place);
  all_.begins_again_ = e.span;
  top_ = before;
  return out;
}

HostOperand FunctionCompiler::Body::part(const Index& e, const Operand& whole,
                                         uint32_t place) {
  if (e.items.size() != 1) give_up(e.span, "several indices");
  const uint32_t from = placed(whole, whole.known ? reserve() : 0);
  const Operand base = in(whole.kind, from);
  if (const auto* bounds = as<Slice>(*e.items[0]))
    return slice(e, *bounds, base, place);
  const Expr& item = *e.items[0];
  const uint32_t own = reserve();
  const Operand index = expr(item, own);
  const uint32_t at = index_register(index, own, item.span);
  const bool of_text = whole.kind.is(Form::text);
  const bool of_ints = whole.kind.is(Form::ints);
  const HostKind result = of_ints ? HostKind::integer() : HostKind::text();
  const TextStep step = of_text   ? TextStep::character
                        : of_ints ? TextStep::int_item
                                  : TextStep::text_item;
  hold();
  site(emit(text_step(step), place, from, at), Site::What::part, &e, e.span,
       base, index, result);
  return in(result, place);
}

HostOperand FunctionCompiler::Body::slice(const Index& e, const Slice& bounds,
                                          const Operand& whole,
                                          uint32_t place) {
  Site site_of;
  site_of.what = Site::What::part;
  site_of.where = e.span;
  site_of.expr = &e;
  site_of.a = whole;
  site_of.result = whole.kind;
  uint32_t at[2] = {};
  const Expr* given[2] = {bounds.start.get(), bounds.stop.get()};
  for (int i = 0; i < 2; ++i) {
    if (!given[i]) continue;
    const uint32_t own = reserve();
    const Operand bound = expr(*given[i], own);
    at[i] = index_register(bound, own, given[i]->span);
    site_of.operands.push_back(bound);
  }
  int64_t by = 1;
  if (bounds.step) {
    const Operand step = expr(*bounds.step, reserve());
    by = static_cast<int64_t>(step.bits);
    if (!step.known || !step.kind.is(Form::integer) ||
        by != static_cast<int32_t>(by))
      give_up(bounds.step->span, "a step that is not known");
    site_of.operands.push_back(step);
  }
  hold();
  const bool of_text = whole.kind.is(Form::text);
  const size_t step =
      emit(text_step(of_text ? TextStep::slice : TextStep::evaluate), place,
           whole.place, at[0], at[1], slice_number(given[0], given[1], by));
  unit_.sites[step] = std::move(site_of);
  return in(whole.kind, place);
}

HostOperand FunctionCompiler::Body::length(const Operand& whole,
                                           uint32_t place) {
  const uint32_t before = top_;
  const uint32_t from = placed(whole, whole.known ? reserve() : 0);
  emit(text_step(whole.kind.is(Form::text) ? TextStep::length
                                           : TextStep::items_length),
       place, from);
  top_ = before;
  return in(HostKind::integer(), place);
}

/// `let (a, b) = t.split(",")`.
void FunctionCompiler::Body::let_items(const LetStmt& s, const Operand& items) {
  const std::vector<Pattern>& names = s.pattern.items;
  const bool plain = std::ranges::none_of(names, [](const Pattern& each) {
    return each.kind == Pattern::Kind::tuple;
  });
  if (!items.kind.is_tuple() || !plain || s.type)
    give_up(s.pattern.span, "a pattern");
  hold();
  const uint32_t from = placed(items, reserve());
  const size_t step = emit(text_step(TextStep::require_items), 0, from, 0, 0,
                           static_cast<int64_t>(names.size()));
  Site& failure = unit_.sites[step];
  failure.where = s.span;
  failure.statement = &s;
  failure.locals = locals_;
  const uint32_t index = reserve();
  const bool of_ints = items.kind.is(Form::ints);
  for (size_t i = 0; i < names.size(); ++i) {
    if (names[i].kind == Pattern::Kind::wildcard) continue;
    const uint32_t place = reserve();
    emit(jit::bytecode::constant_step, index, 0, 0, 0, static_cast<int64_t>(i));
    emit(text_step(of_ints ? TextStep::int_item : TextStep::text_item), place,
         from, index);
    Operand item = in(of_ints ? HostKind::integer() : HostKind::text(), place);
    if (s.is_var) {
      item = as_variable(item, place);
      item.changes = true;
    }
    locals_.push_back({names[i].name.text, item, names[i].span, nullptr,
                       s.is_var ? &s : nullptr});
  }
}

// ---- arrays ----------------------------------------------------------------

/// The registers of the indices of one element.
std::vector<uint32_t> FunctionCompiler::Body::indices_of(const Index& e,
                                                         const Operand& array) {
  if (static_cast<size_t>(array.kind.rank) != e.items.size())
    give_up(e.span, "a part of an array");
  if (!all_.walk_.machine().checked)
    give_up(e.span, "an element that may not be there");
  std::vector<uint32_t> indices;
  for (const ExprPtr& item : e.items) {
    const uint32_t own = reserve();
    indices.push_back(index_register(expr(*item, own), own, item->span));
  }
  return indices;
}

/// The place of an element; a step fails where there is none.
uint32_t FunctionCompiler::Body::element_place(
    const Operand& array, const std::vector<uint32_t>& indices,
    uint32_t place) {
  for (size_t axis = 0; axis < indices.size(); ++axis)
    emit(jit::bytecode::element_index_step, place, indices[axis], array.place,
         place, static_cast<int64_t>(axis));
  return place;
}

HostOperand FunctionCompiler::Body::load(const Operand& array, uint32_t at,
                                         uint32_t place) {
  const HostKind kind = HostKind::scalar(array.kind.dtype);
  emit(jit::bytecode::load_element_step(byte_size(kind.dtype)), place, at,
       array.place);
  return in(kind, place);
}

/// As an assignment converts what becomes an element.
HostOperand FunctionCompiler::Body::as_element(const Operand& value,
                                               DType dtype, uint32_t place,
                                               Span where) {
  if (is_bool(dtype) && value.kind.dtype == DType::Bool)
    return in(value.kind, placed(value, place));
  if (value.kind.is(Form::scalar) && value.kind.dtype != dtype) {
    const bool widens = is_integer(value.kind.dtype) && is_floating(dtype);
    if (!widens || value.kind.may_be_number())
      give_up(where, "this conversion is not known in code");
    emit(jit::cast_step(value.kind.dtype, dtype), place, placed(value, place));
    return in(HostKind::scalar(dtype), place);
  }
  const Operand out = to_scalar(value, dtype, place, where);
  return in(out.kind, placed(out, place));
}

/// `x[i] = v`, `x[i, j] += v` of an array that the function has made.
void FunctionCompiler::Body::assign_element(const Index& target,
                                            const AssignStmt& s,
                                            const Operand* given) {
  const auto* name = as<NameExpr>(*target.object);
  if (!name) give_up(s.span, "this assignment is not known in code");
  const Operand array = variable(*name, s.span).value;
  bool changes = assigns(*s.value);
  for (const ExprPtr& item : target.items) changes |= assigns(*item);
  if (!array.kind.is(Form::own) || changes)
    give_up(s.span, "this assignment is not known in code");
  const uint32_t before = top_;
  const uint32_t at = reserve(), place = reserve();
  const std::vector<uint32_t> indices = indices_of(target, array);
  Operand value;
  if (given) {
    value = *given;
  } else if (s.op) {
    const Operand old =
        load(array, element_place(array, indices, at), reserve());
    value = operation(*s.op, old, this->value(*s.value, reserve()), place,
                      nullptr, s.span);
  } else {
    value = this->value(*s.value, place);
  }
  if (value.kind.is_held()) give_up(s.span, "this is no number");
  value = as_element(value, array.kind.dtype, place, s.value->span);
  if (!s.op) element_place(array, indices, at);
  all_.begins_again_ = s.span;
  hold();
  emit(store_element_step(byte_size(array.kind.dtype)), array.place, at,
       value.place);
  top_ = before;
}

/// An array of the walk's as one of the function's own.
HostOperand FunctionCompiler::Body::own_copy(const Operand& array,
                                             uint32_t place) {
  hold_array();
  all_.begins_again_ = unit_.where;  // where there is no memory
  const HostKind kind = HostKind::own(array.kind.dtype, array.kind.rank);
  emit(text_step(TextStep::copy_array), place, placed(array, place), 0, 0,
       array_number(kind.dtype, kind.rank));
  return in(kind, place);
}

/// `zeros(i32[n, m])`, `full((n, m), x)`, `arange(n)` and their like; nothing
/// of other calls.
std::optional<HostOperand> FunctionCompiler::Body::new_array(const Call& made,
                                                             uint32_t place) {
  const auto* callee = as<NameExpr>(*made.callee);
  if (!callee || local(callee->text)) return std::nullopt;
  const bool fills = callee->text == "full", counts = callee->text == "arange";
  if (callee->text != "zeros" && callee->text != "ones" && !fills && !counts)
    return std::nullopt;
  const Binding* binding = env_->find(callee->text).first;
  const auto* function =
      binding ? binding->value.get_if<FunctionPtr>() : nullptr;
  const auto* builtin =
      function ? std::get_if<const Builtin*>(&(*function)->what) : nullptr;
  if (!builtin || (*builtin)->name != callee->text) return std::nullopt;
  all_.outer_value(env_, *callee);
  const auto element_type = [&](const Expr& e) {
    const auto* name = as<NameExpr>(e);
    if (!name || local(name->text)) give_up(e.span, "this is no type");
    const Value value = all_.outer_value(env_, *name);
    const auto* type = value.get_if<TypeValue>();
    if (!type || !type->type.shape.empty()) give_up(e.span, "this is no type");
    return type->type.dtype;
  };
  // The sizes, the element of `full`, the type.
  std::vector<const Expr*> given;
  std::optional<DType> dtype;
  const size_t most = fills ? 2 : 1;
  for (const ArgumentExpr& a : made.arguments) {
    const bool is_type =
        a.name ? a.name->text == "dtype" : given.size() == most && !counts;
    if ((a.name && !is_type) || (!is_type && given.size() == most) ||
        (is_type && dtype))
      give_up(made.span, "an array of this form");
    if (is_type)
      dtype = element_type(*a.value);
    else
      given.push_back(a.value.get());
  }
  if (given.size() != most) give_up(made.span, "an array of this form");
  std::vector<const Expr*> sizes = {given[0]};
  const auto items_of = [](const std::vector<ExprPtr>& items) {
    std::vector<const Expr*> out;
    for (const ExprPtr& each : items) out.push_back(each.get());
    return out;
  };
  if (const auto* type = as<Index>(*given[0])) {
    const auto* name = as<NameExpr>(*type->object);
    const bool is_type =
        name && !local(name->text) && dtype_from_name(name->text).has_value();
    if (is_type && (dtype || counts))
      give_up(made.span, "an array of this form");
    if (is_type) {
      dtype = element_type(*type->object);
      sizes = items_of(type->items);
    }
  } else if (const auto* tuple = as<Tuple>(*given[0]); tuple && !counts) {
    sizes = items_of(tuple->items);
  }
  if (counts) dtype = dtype.value_or(DType::I32);
  const HostKind kind =
      HostKind::own(dtype.value_or(DType::F32), static_cast<int>(sizes.size()));
  const bool countable = kind.dtype == DType::I32 || kind.dtype == DType::I64;
  if (sizes.empty() || (counts && !countable) || (fills && !dtype))
    give_up(made.span, "an array of this form");
  hold_array();
  const uint32_t before = top_, first = top_;
  for (size_t i = 0; i < sizes.size(); ++i) reserve();
  for (size_t i = 0; i < sizes.size(); ++i) {
    const uint32_t at = first + static_cast<uint32_t>(i);
    const Operand size = expr(*sizes[i], at);
    const bool whole = is_whole(size.kind) && size.kind.dtype != DType::U64;
    if (!whole || is_unknown(size.kind))
      give_up(sizes[i]->span, "this is no size");
    if (size.kind.dtype != DType::I64 && !size.known)
      emit(jit::cast_step(size.kind.dtype, DType::I64), at, size.place);
    else
      move({HostKind::integer(), size.known, size.bits, size.place}, at);
  }
  const uint32_t element = reserve();
  if (fills) {
    move(as_element(expr(*given[1], element), kind.dtype, element,
                    given[1]->span),
         element);
  } else {
    const bool ones = callee->text == "ones";
    const auto bytes = jit::element_bytes(kind.dtype, int64_t{ones ? 1 : 0});
    uint64_t bits = 0;
    std::memcpy(&bits, bytes.data(), bytes.size());
    move(known(HostKind::scalar(kind.dtype), bits), element);
  }
  all_.begins_again_ = made.span;  // where there is no such array
  emit(text_step(counts ? TextStep::count_array : TextStep::make_array), place,
       first, element, 0, array_number(kind.dtype, kind.rank));
  top_ = before;
  return in(kind, place);
}

/// `max(x)`, `sum(x)` of an array, as the walk computes them.
std::optional<HostOperand> FunctionCompiler::Body::reduction(
    const Builtin& builtin, const std::vector<const Expr*>& arguments,
    uint32_t place, const Expr& whole) {
  const std::string_view name = builtin.name;
  const bool position = name == "argmax" || name == "argmin";
  if (arguments.size() != 1 ||
      (!position && name != "sum" && name != "max" && name != "min"))
    return std::nullopt;
  const uint32_t before = top_;
  const uint32_t at = reserve();
  Operand array = any(*arguments[0], at);
  const DType dtype = array.kind.dtype;
  if (!array.kind.has_elements() || byte_size(dtype) < 4)
    give_up(whole.span, "it calls `" + std::string(name) + "`");
  array = in(array.kind, placed(array, at));
  Site site_of;
  site_of.what = Site::What::builtin;
  site_of.where = whole.span;
  site_of.function = &builtin;
  site_of.operands = {array};
  site_of.arguments = {arguments[0]->span};
  top_ = before;
  return evaluate(std::move(site_of),
                  HostKind::scalar(position ? DType::I32 : dtype), place);
}

// ---- operators and functions -----------------------------------------------

HostOperand FunctionCompiler::Body::text_operation(BinaryOp op,
                                                   const Operand& a,
                                                   const Operand& b,
                                                   uint32_t place,
                                                   const Expr* e, Span where) {
  if (!e) give_up(where, "this operator is not known in code");
  const bool texts = a.kind.is(Form::text) && b.kind.is(Form::text);
  const bool membership = op == BinaryOp::in || op == BinaryOp::not_in;
  const auto compare = comparison(op);
  const bool asks = texts && (compare || membership);
  const uint32_t before = top_;
  const Operand left = in(a.kind, placed(a, a.known ? reserve() : 0));
  const Operand right =
      asks && b.known ? b : in(b.kind, placed(b, b.known ? reserve() : 0));
  top_ = before;
  if (asks) {
    const TextStep step = compare && right.known ? TextStep::compare_constant
                          : compare              ? TextStep::compare
                          : right.known          ? TextStep::contains_constant
                                                 : TextStep::contains;
    const int64_t number = compare ? static_cast<int64_t>(*compare)
                           : op == BinaryOp::not_in ? 1
                                                    : 0;
    emit(text_step(step), place, left.place,
         right.known ? static_cast<uint32_t>(right.bits) : right.place, 0,
         number);
    return in(HostKind::boolean(), place);
  }
  if (op == BinaryOp::add && texts) {
    site(emit(text_step(TextStep::join), place, left.place, right.place),
         Site::What::binary, e, where, left, right, HostKind::text());
    return in(HostKind::text(), place);
  }
  const bool item_of = (a.kind.is(Form::text) && b.kind.is(Form::texts)) ||
                       (a.kind.is(Form::integer) && b.kind.is(Form::ints));
  const Operand& count = a.kind.is(Form::text) ? b : a;
  const bool repeats = op == BinaryOp::mul && !count.kind.is_held() &&
                       is_whole(count.kind) && !is_unknown(count.kind) &&
                       (a.kind.is(Form::text) || b.kind.is(Form::text));
  const bool joins =
      op == BinaryOp::add && a.kind.is_tuple() && a.kind == b.kind;
  if (!(membership && item_of) && !repeats && !joins)
    give_up(where, "this operator is not known in code");
  Site site_of;
  site_of.what = Site::What::binary;
  site_of.expr = e;
  site_of.where = where;
  site_of.a = left;
  site_of.b = right;
  return evaluate(std::move(site_of),
                  membership ? HostKind::boolean()
                  : repeats  ? HostKind::text()
                             : a.kind,
                  place);
}

std::optional<HostOperand> FunctionCompiler::Body::text_function(
    const Builtin& builtin, const std::vector<const Expr*>& arguments,
    uint32_t place, const Expr& whole) {
  const auto* found =
      std::ranges::find(text_functions, builtin.name, &TextFunction::builtin);
  if (found == std::end(text_functions)) return std::nullopt;
  const uint32_t before = top_;
  Site site_of;
  site_of.what = Site::What::builtin;
  site_of.where = whole.span;
  site_of.function = &builtin;
  for (const Expr* argument : arguments) {
    if (assigns(*argument)) give_up(argument->span, "it assigns in a call");
    const uint32_t own = reserve();
    Operand given = value(*argument, own);
    given = in(given.kind, placed(given, own));
    if (is_unknown(given.kind) || given.kind.may_be_number())
      give_up(argument->span, "one of two kinds of values");
    site_of.operands.push_back(given);
    site_of.arguments.push_back(argument->span);
  }
  if (arguments.empty()) give_up(whole.span, "it leaves arguments out");
  const Operand first = site_of.operands[0];
  const bool of_number = builtin.name == "chr" || !first.kind.is_held();
  const bool is_int = builtin.name == "int";
  const HostKind result = kind_of(found->result);
  top_ = before;
  if (of_number) {
    const bool known_here =
        is_int || builtin.name == "chr" || builtin.name == "str";
    if (!known_here || arguments.size() != 1 || first.kind.is_held())
      give_up(whole.span, "it calls `" + std::string(builtin.name) + "`");
    if (is_int && first.kind.is(Form::integer)) return move(first, place);
    if (!has_digits(first.kind) || (is_int && !first.kind.is(Form::scalar)))
      return evaluate(std::move(site_of), result, place);
    // As an int of 64 bits, in a register that nothing reads.
    const uint32_t wide = before + 1;
    most_ = std::max(most_, wide + 1);
    if (first.kind.dtype != DType::I64)
      emit(jit::cast_step(first.kind.dtype, DType::I64), is_int ? place : wide,
           first.place);
    else if (is_int)
      return move(in(result, first.place), place);
    if (is_int) return in(result, place);
    hold();
    const size_t step =
        emit(text_function_step(builtin.name), place,
             first.kind.dtype == DType::I64 ? first.place : wide);
    site_of.result = result;
    unit_.sites[step] = std::move(site_of);
    return in(result, place);
  }
  if (builtin.name == "str" && first.kind.is(Form::text))
    return move(first, place);
  if (!first.kind.is(Form::text) || arguments.size() != 1)
    return evaluate(std::move(site_of), result, place);
  hold();
  site_of.result = result;
  const size_t step =
      emit(text_function_step(builtin.name), place, first.place);
  unit_.sites[step] = std::move(site_of);
  return in(result, place);
}

}  // namespace unisono::lang
