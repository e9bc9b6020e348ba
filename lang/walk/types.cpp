#include "lang/walk/types.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>

#include "lang/context/function.h"
#include "lang/maps/maps.h"
#include "lang/ops/operators.h"
#include "lang/ops/sizes.h"
#include "lang/ops/text.h"

namespace unisono::lang {
namespace {

bool in_class(DType dtype, std::string_view restriction) {
  if (restriction == "float") return is_floating(dtype);
  if (restriction == "integer") return is_integer(dtype);
  if (restriction == "number") return !is_bool(dtype);
  return true;
}

std::string restriction_name(const Expr* restriction) {
  return restriction ? std::string(restriction->span.text()) : "";
}

}  // namespace

bool is_host_type(const std::string& name) {
  return name == "int" || name == "str" || name == "type";
}

std::string TypeMatcher::quoted(const Expr& e) {
  return fmt::format("`{}`", e.span.text());
}

void TypeMatcher::declare(const std::vector<TypeParam>& params) {
  for (const TypeParam& param : params) {
    const Expr* restriction = param.restriction.get();
    const std::string text = restriction_name(restriction);
    if (restriction && text != "float" && text != "integer" &&
        text != "number" && text != "any")
      walk_.fail(
          diagnostic(Code::bad_type, restriction->span, quoted(*restriction))
              .set_help("a restriction is `float`, `integer`, `number` or "
                        "`any`"));
    declared_[param.name.text] = restriction;
  }
}

void TypeMatcher::choose(const std::string& generic, DType dtype) {
  chosen_[generic] = dtype;
}

namespace {
/// `x / 2` where an integer is expected.
std::string whole_quotient(const Value& value, std::string_view text,
                           std::string_view expected) {
  const std::optional<DType> wanted =
      expected == "int" ? DType::I32 : dtype_from_name(expected);
  const size_t sign = text.find(" / ");
  const bool quotient = sign != text.npos && text.rfind('/') == sign + 1 &&
                        text.size() <= 32 && value.array() &&
                        is_floating(value.array()->type.dtype);
  if (!quotient || !wanted || is_floating(*wanted)) return {};
  return fmt::format("`/` gives a float; the quotient of integers is `{}// {}`",
                     text.substr(0, sign + 1), text.substr(sign + 3));
}
}  // namespace

void TypeMatcher::mismatch(const Subject& subject, std::string help) {
  std::string expected(subject.whole.span.text());
  if (subject.whole.kind == ExprKind::NameExpr && expected.starts_with('('))
    expected = expected.substr(1, expected.size() - 2);  // of `(f32) -> f32`
  Diagnostic d = diagnostic(Code::type_mismatch, subject.where, subject.what,
                            type_name(subject.value), expected);
  d.set_label(type_name(subject.value));
  if (help.empty())
    help = whole_quotient(subject.value, subject.where.text(), expected);
  if (!help.empty()) d.set_help(std::move(help));
  if (subject.whole.span.file != subject.where.file ||
      subject.whole.span.begin < subject.where.begin)
    d.add_note(subject.whole.span, "declared here");
  walk_.fail(std::move(d));
}

// ---- names -----------------------------------------------------------------

/// The binding that `geo.Point` names, if `geo` is a module; null else.
const Binding* TypeMatcher::member_binding(const Field& e, const Frame* frame) {
  const Binding* module = nullptr;
  if (const auto* name = as<NameExpr>(*e.object)) {
    if (frame->arguments.contains(name->text)) return nullptr;
    auto [binding, holder] = env_of(frame)->find(name->text);
    if (binding) in_.note_read(*binding, *holder, env_of(frame), name->text);
    module = binding;
  } else if (const auto* inner = as<Field>(*e.object)) {
    module = member_binding(*inner, frame);
  }
  const auto* value = module ? module->value.get_if<ModuleValue>() : nullptr;
  if (!value || e.index) return nullptr;
  const auto found = value->environment->names.find(e.name.text);
  return found == value->environment->names.end() ? nullptr : &found->second;
}

/// What a type or a named type that a name is bound to means.
TypeMatcher::Meaning TypeMatcher::meaning_of(const Value& value) {
  Meaning out;
  if (const auto* type = value.get_if<TypeValue>()) {
    out.kind = Meaning::Kind::array;
    out.type = type->type;
  } else if (const auto* alias = value.get_if<TypeAliasValue>()) {
    out.kind = Meaning::Kind::alias;
    out.alias = alias->definition;
    out.alias_env = alias->environment;
  }
  return out;
}

TypeMatcher::Meaning TypeMatcher::meaning(const Expr& e, const Frame*& frame) {
  Meaning out;
  if (const auto* field = as<Field>(e)) {
    const Binding* member = member_binding(*field, frame);
    if (member && member->poisoned)
      Walker::use_poisoned(*member, field->name.text, e.span);
    return member ? meaning_of(member->value) : out;
  }
  const auto* name = as<NameExpr>(e);
  if (!name) return out;
  if (auto argument = frame->arguments.find(name->text);
      argument != frame->arguments.end()) {
    // A parameter of a named type: what its argument means, where it stands.
    if (!argument->second) return out;
    frame = frame->outer;
    return meaning(*argument->second, frame);
  }
  const bool at_root = frame->env == nullptr;
  if (at_root && declared_.contains(name->text)) {
    out.kind = Meaning::Kind::generic;
    out.name = name->text;
    return out;
  }
  auto [binding, holder] = env_of(frame)->find(name->text);
  if (binding) in_.note_read(*binding, *holder, env_of(frame), name->text);
  if (binding && binding->poisoned)
    Walker::use_poisoned(*binding, name->text, e.span);
  if (binding && own_.contains(name->text)) {
    if (binding->value.is<TypeValue>()) {
      out.kind = Meaning::Kind::generic;
      out.name = name->text;
    }
    return out;
  }
  if (binding) {
    out = meaning_of(binding->value);
    if (out.kind != Meaning::Kind::unknown) return out;
  }
  if (is_host_type(name->text)) {
    out.kind = Meaning::Kind::host;
    out.name = name->text;
  } else if (!binding && names_ == Names::bind && at_root &&
             std::isupper(static_cast<unsigned char>(name->text[0]))) {
    out.kind = Meaning::Kind::generic;
    out.name = name->text;
  }
  return out;
}

const TypeMatcher::Frame* TypeMatcher::alias_frame(
    const Meaning& alias, const std::vector<ExprPtr>* arguments,
    const Frame* frame, Span where) {
  const std::vector<TypeParam>& params = alias.alias->type_params;
  const size_t given = arguments ? arguments->size() : 0;
  if (given != 0 && given != params.size())
    walk_.fail(diagnostic(Code::type_arguments, where, alias.alias->name.text,
                          params.size(), given)
                   .add_note(alias.alias->name.span, "declared here"));
  int depth = 0;
  for (const Frame* f = frame; f; f = f->outer) ++depth;
  if (depth > 100)
    walk_.fail(diagnostic(Code::bad_type, where, quoted(*alias.alias->type))
                   .set_help("a type cannot contain itself"));
  Frame inner{frame, alias.alias_env, alias.alias, {}};
  for (size_t i = 0; i < params.size(); ++i)
    inner.arguments[params[i].name.text] =
        given ? (*arguments)[i].get() : nullptr;
  frames_.push_back(std::move(inner));
  return &frames_.back();
}

// ---- matching --------------------------------------------------------------

Value TypeMatcher::match(const Expr& type, const Value& value, Span where,
                         const std::string& what) {
  return match_in(type, root(), {value, where, what, type});
}

Value TypeMatcher::match_in(const Expr& type, const Frame* frame,
                            const Subject& subject) {
  in_.enter(type.span);
  switch (type.kind) {
    case ExprKind::NameExpr:
    case ExprKind::Field: return match_name(type, nullptr, frame, subject);
    case ExprKind::Index: {
      const auto& index = static_cast<const Index&>(type);
      return match_name(*index.object, &index.items, frame, subject);
    }
    case ExprKind::Wildcard: return subject.value;
    case ExprKind::NoneLiteral:
      if (!subject.value.is<NoneValue>()) mismatch(subject);
      return subject.value;
    case ExprKind::Tuple:
    case ExprKind::RecordType:
    case ExprKind::FunctionType: return match_tree(type, frame, subject);
    default: break;  // an expression that gives a type
  }
  const Value value = in_.expr(type, env_of(frame));
  const auto* wanted = value.get_if<TypeValue>();
  if (!wanted)
    walk_.fail(
        diagnostic(Code::bad_type, type.span,
                   fmt::format("{} ({})", quoted(type), type_name(value))));
  return match_array(wanted->type, nullptr, frame, subject);
}

/// Whether a function can be called with so many arguments. Their types are
/// checked where it is called.
void TypeMatcher::check_parameters(const Closure& closure, size_t given,
                                   const Subject& subject) {
  const FunctionSyntax syntax = syntax_of(closure);
  size_t least = 0, most = 0;
  std::string by_name;
  for (const Param& param : syntax.function->params) {
    if (param.keyword_only && !param.default_value)
      by_name = param.pattern.span.text();
    if (param.keyword_only) continue;
    ++most;
    least += !param.default_value;
  }
  if (least <= given && given <= most && by_name.empty()) return;
  const size_t takes = given < least ? least : most;
  Diagnostic d = diagnostic(
      Code::function_mismatch, subject.where, subject.what,
      subject.whole.span.text(),
      by_name.empty()
          ? fmt::format("it takes {} argument{}", takes, takes == 1 ? "" : "s")
          : fmt::format("it needs `{}` by name", by_name));
  if (syntax.name != subject.where) d.add_note(syntax.name, "defined here");
  walk_.fail(std::move(d));
}

Value TypeMatcher::match_tree(const Expr& type, const Frame* frame,
                              const Subject& subject) {
  auto part = [&](const Expr& part_type, const Value& part_value,
                  const std::string& path) {
    const std::string what = subject.what + path;
    return match_in(part_type, frame,
                    {part_value, subject.where, what, part_type});
  };
  if (const auto* tuple_type = as<Tuple>(type)) {
    Value known = subject.value;
    if (const auto* many = known.get_if<ManyValue>())
      known =
          make_tuple(std::vector<Value>(tuple_type->items.size(), *many->item));
    const TupleValue* tuple = known.tuple();
    if (!tuple || tuple->items.size() != tuple_type->items.size())
      mismatch(subject);
    std::vector<Value> items;
    for (size_t i = 0; i < tuple->items.size(); ++i)
      items.push_back(
          part(*tuple_type->items[i], tuple->items[i], fmt::format(".{}", i)));
    return make_tuple(std::move(items));
  }
  if (const auto* record_type = as<RecordType>(type)) {
    const RecordValue* record = subject.value.record();
    if (!record) mismatch(subject);
    for (const auto& [name, value] : record->fields) {
      const auto is_this = [&](const TypedName& field) {
        return field.name.text == name;
      };
      const auto& declared = record_type->fields;
      if (std::none_of(declared.begin(), declared.end(), is_this))
        mismatch(subject, fmt::format("no field `{}` is expected", name));
    }
    std::vector<std::pair<std::string, Value>> fields;
    for (const TypedName& field : record_type->fields) {
      const Value* value = record->find(field.name.text);
      if (!value)
        mismatch(subject,
                 fmt::format("there is no field `{}`", field.name.text));
      fields.emplace_back(field.name.text,
                          part(*field.type, *value, "." + field.name.text));
    }
    return make_record(std::move(fields));
  }
  const auto* function =
      subject.value.get_if<std::shared_ptr<const FunctionValue>>();
  if (!function) mismatch(subject);
  const size_t given = static_cast<const FunctionType&>(type).params.size();
  if (const auto* closure = std::get_if<Closure>(&(*function)->what))
    check_parameters(*closure, given, subject);
  return subject.value;
}

void TypeMatcher::note_plain(const Expr& type, const Meaning& what) {
  auto& plain = in_.state().plain_types;
  if (what.kind == Meaning::Kind::host && what.name == "int")
    plain[&type] = {PlainType::Kind::integer};
  else if (what.kind == Meaning::Kind::host && what.name == "str")
    plain[&type] = {PlainType::Kind::text};
  else if (what.kind == Meaning::Kind::array && what.type.shape.empty())
    plain[&type] = {PlainType::Kind::scalar, what.type.dtype};
  else
    plain.erase(&type);
}

bool Walker::is_plainly(const Expr& type, const Value& value) const {
  if (checking() || type.kind != ExprKind::NameExpr) return false;
  const auto found = s_.plain_types.find(&type);
  if (found == s_.plain_types.end()) return false;
  switch (found->second.kind) {
    case PlainType::Kind::integer: return value.is<IntValue>();
    case PlainType::Kind::text: return value.is<StrValue>();
    case PlainType::Kind::scalar: break;
  }
  const ArrayCell* array = value.array();
  return array && !array->weak && array->type.dtype == found->second.dtype &&
         array->type.shape.empty();
}

Value TypeMatcher::match_name(const Expr& type,
                              const std::vector<ExprPtr>* items,
                              const Frame* frame, const Subject& subject) {
  const Frame* place = frame;
  const Meaning what = meaning(type, place);
  if (in_.checking()) note_plain(type, what);
  switch (what.kind) {
    case Meaning::Kind::array:
      if (items && !what.type.shape.empty()) mismatch(subject);
      if (!items && what.type == ir::Type{DType::Bool, {}} &&
          subject.value.is<BoolValue>())
        return subject.value;
      return match_array(what.type, items, frame, subject);
    case Meaning::Kind::generic:
      return match_generic(what.name, items, frame, subject);
    case Meaning::Kind::alias:
      return match_in(*what.alias->type,
                      alias_frame(what, items, frame, type.span), subject);
    case Meaning::Kind::host: {
      const Value& v = subject.value;
      if (what.name == "int" && !items)
        if (const auto number = int_of(walk_, v, subject.where))
          return IntValue{*number};
      const bool right = what.name == "int"   ? v.is<IntValue>()
                         : what.name == "str" ? v.is<StrValue>()
                                              : v.is<TypeValue>();
      if (!right || items)
        mismatch(subject,
                 what.name == "int" && integer_scalar(v)
                     ? "an int is known when the program is compiled, the "
                       "elements of an array and the counter of a loop only "
                       "when it runs: write `" +
                           type_name(v) + "`"
                     : "");
      return v;
    }
    case Meaning::Kind::unknown: break;
  }
  not_a_type(type, frame);
}

namespace {
/// What stands here for a name that is a function of ours, and a type of
/// theirs.
std::string_view foreign_type_help(std::string_view name) {
  if (name == "float")
    return "a number is `f32` or `f64`, an array of them `f32[n]`; without a "
           "type a parameter takes any";
  return "";
}
}  // namespace

void TypeMatcher::not_a_type(const Expr& type, const Frame* frame) {
  if (const auto* name = as<NameExpr>(type);
      name && !env_->find(name->text).first)
    in_.lookup(*name, env_of(frame));  // the error, with its suggestion
  std::string what = quoted(type);
  if (type.kind == ExprKind::Field)  // an error, if there is no such field
    what += fmt::format(" ({})", type_name(in_.expr(type, env_of(frame))));
  const auto* name = as<NameExpr>(type);
  const std::string_view foreign =
      name ? foreign_type_help(name->text) : std::string_view();
  walk_.fail(diagnostic(Code::bad_type, type.span, what)
                 .set_help(foreign.empty()
                               ? "a type is `f32[n, 3]`, `int`, `(A, B)`, "
                                 "`(w: A)` or the name of one"
                               : std::string(foreign)));
}

Value TypeMatcher::match_array(const ir::Type& wanted,
                               const std::vector<ExprPtr>* items,
                               const Frame* frame, const Subject& subject) {
  const auto type = element_type(subject.value);
  if (!type) mismatch(subject);
  const DType dtype = wanted.dtype;
  ArrayValue array;
  if (type->dtype == dtype && !type->weak) {
    array = walk_.to_array(subject.value, subject.where, subject.what);
  } else {
    const bool adopts =
        type->weak &&
        (is_floating(dtype) || (is_integer(dtype) && is_integer(type->dtype)));
    if (!adopts)
      mismatch(subject,
               fmt::format("convert it: `cast(..., {})`", name(dtype)));
    array = to_dtype(walk_, {subject.value, subject.where}, {dtype, false},
                     subject.what);
  }
  if (items) return match_shape(std::move(array), items, frame, subject);
  if (!same_sizes(array->type.shape, wanted.shape)) mismatch(subject);
  return taken_for(walk_, array, wanted.shape);
}

Value TypeMatcher::match_shape(ArrayValue array,
                               const std::vector<ExprPtr>* items,
                               const Frame* frame, const Subject& subject) {
  const ir::Shape& seen = array->type.shape;
  check_rest(*items);
  size_t rest = items->size();
  for (size_t i = 0; i < items->size(); ++i)
    if ((*items)[i]->kind == ExprKind::Rest) rest = i;
  const bool open = rest < items->size();
  const size_t named = items->size() - (open ? 1 : 0);
  if (open ? seen.size() < named : seen.size() != named) mismatch(subject);
  ir::Shape shape = seen;
  for (size_t i = 0; i < items->size(); ++i) {
    if (i == rest) continue;
    const size_t axis = i < rest ? i : seen.size() - (items->size() - i);
    shape[axis] = match_size(*(*items)[i], frame, seen[axis],
                             static_cast<int>(axis), subject);
  }
  // What the checker believes; when it runs, sizes are equal.
  return taken_for(walk_, array, std::move(shape));
}

Value TypeMatcher::match_generic(const std::string& name,
                                 const std::vector<ExprPtr>* items,
                                 const Frame* frame, const Subject& subject) {
  const auto type = element_type(subject.value);
  if (!type) mismatch(subject);
  const auto bound = env_->names.find(name);
  const bool known = bound != env_->names.end() && own_.contains(name);
  DType dtype = type->dtype;
  if (known && !(by_literal_.contains(name) && !type->weak)) {
    dtype = bound->second.value.get_if<TypeValue>()->type.dtype;
    if (!type->weak && type->dtype != dtype)
      mismatch(subject,
               fmt::format("`{}` is {} here", name, unisono::name(dtype)));
  } else {
    const auto declared = declared_.find(name);
    const std::string restriction = restriction_name(
        declared == declared_.end() ? nullptr : declared->second);
    if (type->weak && restriction == "float") dtype = DType::F32;
    if (!in_class(dtype, restriction))
      walk_.fail(diagnostic(Code::generic_restriction, subject.where, name,
                            unisono::name(dtype), name, restriction)
                     .set_label(type_name(subject.value)));
    // A literal leaves the choice to the arguments after it.
    if (type->weak)
      by_literal_.insert(name);
    else
      by_literal_.erase(name);
    own_.insert(name);
    in_.define(env_, name, TypeValue{{dtype, {}}}, false, subject.whole.span);
  }
  if (type->weak && !items && by_literal_.contains(name)) return subject.value;
  const ArrayCell* array = subject.value.array();
  if (!items && array && array->type.rank() > 0)
    mismatch(subject, fmt::format("`{0}` is an element type: an array of one "
                                  "axis is `{0}[n]`; without a type a "
                                  "parameter takes any",
                                  name));
  return match_array({dtype, {}}, items, frame, subject);
}

// ---- values of a type ------------------------------------------------------

Value TypeMatcher::any_value(const Expr& type) { return any_in(type, root()); }

Value TypeMatcher::any_name(const Expr& type, const std::vector<ExprPtr>* items,
                            const Frame* frame) {
  const Frame* place = frame;
  const Meaning what = meaning(type, place);
  const ir::Shape shape = items && what.kind != Meaning::Kind::alias
                              ? any_shape(*items, frame)
                              : ir::Shape{};
  switch (what.kind) {
    case Meaning::Kind::array: {
      ir::Type array = what.type;
      if (items) array.shape = shape;
      return walk_.unknown_array(std::move(array));
    }
    case Meaning::Kind::generic: {
      DType dtype = DType::F32;
      if (auto chosen = chosen_.find(what.name); chosen != chosen_.end()) {
        dtype = chosen->second;
        if (own_.insert(what.name).second)
          in_.define(env_, what.name, TypeValue{{dtype, {}}}, false, type.span);
      } else if (auto bound = env_->names.find(what.name);
                 bound != env_->names.end()) {
        if (const auto* t = bound->second.value.get_if<TypeValue>())
          dtype = t->type.dtype;
      }
      return walk_.unknown_array({dtype, shape});
    }
    case Meaning::Kind::alias:
      return any_in(*what.alias->type,
                    alias_frame(what, items, frame, type.span));
    case Meaning::Kind::host:
      if (what.name == "str") return StrValue{};
      if (what.name == "int") return IntValue{walk_.open_size()};
      break;
    case Meaning::Kind::unknown: break;
  }
  not_a_type(type, frame);
}

Value TypeMatcher::any_in(const Expr& type, const Frame* frame) {
  in_.enter(type.span);
  Value value = any_value_in(type, frame);
  in_.check_tree(value, type.span);
  return value;
}

Value TypeMatcher::any_value_in(const Expr& type, const Frame* frame) {
  if (type.kind == ExprKind::NameExpr || type.kind == ExprKind::Field)
    return any_name(type, nullptr, frame);
  if (const auto* index = as<Index>(type))
    return any_name(*index->object, &index->items, frame);
  if (type.kind == ExprKind::NoneLiteral) return NoneValue{};
  if (const auto* tuple = as<Tuple>(type)) {
    std::vector<Value> items;
    for (const ExprPtr& item : tuple->items)
      items.push_back(any_in(*item, frame));
    return make_tuple(std::move(items));
  }
  if (const auto* record = as<RecordType>(type)) {
    std::vector<std::pair<std::string, Value>> fields;
    for (const TypedName& field : record->fields)
      fields.emplace_back(field.name.text, any_in(*field.type, frame));
    return make_record(std::move(fields));
  }
  if (const auto* function = as<FunctionType>(type))
    return std::make_shared<const FunctionValue>(
        FunctionValue{std::string(type.span.text()),
                      DeclaredFunction{function, env_of(frame)}});
  const Value value = in_.expr(type, env_of(frame));
  if (const auto* known = value.get_if<TypeValue>())
    return walk_.unknown_array(known->type);
  walk_.fail(diagnostic(Code::bad_type, type.span, quoted(type)));
}

// ---- questions -------------------------------------------------------------

void TypeMatcher::collect_generics(
    const Expr& type, std::map<std::string, std::string>& restrictions) {
  auto consider = [&](const Expr& e) {
    const Frame* place = root();
    const Meaning what = meaning(e, place);
    if (what.kind != Meaning::Kind::generic) return;
    const auto declared = declared_.find(what.name);
    restrictions[what.name] = restriction_name(
        declared == declared_.end() ? nullptr : declared->second);
  };
  if (type.kind == ExprKind::NameExpr || type.kind == ExprKind::Field)
    consider(type);
  if (const auto* index = as<Index>(type)) return consider(*index->object);
  if (const auto* record = as<RecordType>(type))
    for (const TypedName& field : record->fields)
      collect_generics(*field.type, restrictions);
  if (const auto* tuple = as<Tuple>(type))
    for (const ExprPtr& item : tuple->items)
      collect_generics(*item, restrictions);
}

std::optional<DType> TypeMatcher::element_of(const Expr& type) {
  const auto* index = as<Index>(type);
  const Frame* place = root();
  const Meaning what = meaning(index ? *index->object : type, place);
  if (what.kind == Meaning::Kind::array) return what.type.dtype;
  return std::nullopt;
}

}  // namespace unisono::lang
