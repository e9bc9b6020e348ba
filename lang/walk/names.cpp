// Names are bound and changed; what names and fields mean, what is said of
// those that are not there, and of arrays that were given away.
#include <fmt/format.h>

#include <algorithm>

#include "lang/context/function.h"
#include "lang/maps/maps.h"
#include "lang/ops/carry.h"
#include "lang/ops/sizes.h"
#include "lang/source/foreign_names.h"
#include "lang/source/stdlib.h"
#include "lang/syntax/jumps.h"
#include "lang/syntax/parser.h"
#include "lang/walk/name_help.h"
#include "lang/walk/walker.h"

namespace unisono::lang {
namespace {

/// The text of an expression in a message, or three dots for a long one.
std::string short_text(const Expr& e) {
  const std::string_view text = e.span.text();
  const bool fits = text.size() <= 24 && text.find('\n') == text.npos;
  return fits ? std::string(text) : "...";
}

/// `// three` behind a statement reads as a quotient.
bool follows_slashes(Span name) {
  const std::string_view text = name.file->text().substr(0, name.begin);
  const size_t last = text.find_last_not_of(' ');
  return last != text.npos && last > 0 && text[last] == '/' &&
         text[last - 1] == '/' && last + 1 < text.size();
}

/// The name that a chain of fields begins with: `np` of `np.linalg.norm`.
const NameExpr* root_of(const Field& field) {
  const Expr* object = field.object.get();
  while (const auto* inner = as<Field>(*object)) object = inner->object.get();
  return as<NameExpr>(*object);
}

}  // namespace

bool has_function(const Value& value) {
  if (const TupleValue* tuple = value.tuple())
    return std::ranges::any_of(tuple->items, has_function);
  if (const RecordValue* record = value.record())
    return std::ranges::any_of(record->fields, [](const auto& field) {
      return has_function(field.second);
    });
  return value.is<std::shared_ptr<const FunctionValue>>() ||
         value.is<TypeAliasValue>();
}

std::string fields_text(const RecordValue& record) {
  std::string names;
  for (const auto& [name, value] : record.fields)
    names += (names.empty() ? "`" : ", `") + name + "`";
  return "its fields are " + names;
}

/// A name's value, which `donate` may have taken away.
Value Walker::present(Value value, Span where) {
  if (const auto* array = value.get_if<ArrayValue>();
      array && ((*array)->donated || !s_.donated.empty()))
    walk_.forbid_donated(*array, where);
  return value;
}

void Walker::use_poisoned(const Binding& binding, const std::string& name,
                          Span where) {
  throw Failure{diagnostic(Code::unknown_name, where, name), true,
                binding.open};
}

Value Walker::lookup(const NameExpr& name, const Env& env) {
  auto [binding, holder] = env->find(name.text);
  if (!binding) unknown_name(name, env);
  if (binding->poisoned) use_poisoned(*binding, name.text, name.span);
  return note_read(*binding, *holder, env, name.text);
}

/// The program or module that a place lies in, if it is still there.
const Program* Walker::program_of(Span where) const {
  if (s_.main_program && s_.main_program->file == where.file)
    return s_.main_program;
  for (const auto& [key, module] : s_.modules)
    if (module.program && module.program->file == where.file)
      return module.program.get();
  return nullptr;
}

void Walker::unknown_name(const NameExpr& name, const Env& env) {
  Diagnostic d = diagnostic(Code::unknown_name, name.span, name.text);
  if (const Program* program = program_of(name.span))
    if (const Span below = defined_below(*program, name.text, name.span)) {
      d.set_help(fmt::format(
          "it is defined below, on line {}: a definition stands before its "
          "first use",
          below.file->place(below.begin).line));
      walk_.fail(std::move(d));
    }
  if (const std::string later = later_text(name.text); !later.empty())
    walk_.fail(diagnostic(Code::not_there_yet, name.span, later));
  SimilarName similar(name.text);
  for (const Environment* e = env.get(); e; e = e->parent.get())
    similar.consider(*e);
  if (const auto word = foreign_word_help(name.text); !word.empty())
    d.set_help(std::string(word));
  else if (const auto theirs = foreign_name_help(name.text); !theirs.empty())
    d.set_help(std::string(theirs));
  else if (is_prelude_module(name.text))
    d.set_help(fmt::format(
        "the functions of `{}` are in scope without a prefix", name.text));
  else if (is_stdlib_module(name.text))
    d.set_help(fmt::format("write `import {}` first", name.text));
  else if (const auto module = module_with(name.text); !module.empty())
    d.set_help(fmt::format("write `import {0}` first, and `{0}.{1}` here",
                           module, name.text));
  else if (follows_slashes(name.span))
    d.set_help("a comment starts with `#`");
  else if (!similar.best().empty())
    d.set_help(fmt::format("did you mean `{}`?", similar.best()));
  walk_.fail(std::move(d));
}

/// `x = 3` where no `x` is bound.
void Walker::unbound_variable(const NameExpr& name, const Env& env) {
  SimilarName similar(name.text);
  for (const Environment* e = env.get(); e && e != s_.prelude.get();
       e = e->parent.get())
    similar.consider(*e);
  walk_.fail(
      diagnostic(Code::unknown_name, name.span, name.text)
          .set_help(similar.best().empty()
                        ? fmt::format("bind it first: `let {0} = ...`, or "
                                      "`var {0} = ...` if it changes later",
                                      name.text)
                        : fmt::format("did you mean `{}`?", similar.best())));
}

/// `np.zeros`, `jax.random.normal`, `math.sqrt`: an error that says what the
/// last name is here, unless the first one is defined.
void Walker::forbid_foreign_module(const Field& e, const Env& env) {
  const NameExpr* root = root_of(e);
  if (!root || env->find(root->text).first) return;
  const std::string& last = e.name.text;
  // `random.split` is another one than `split`.
  const auto* above = as<Field>(*e.object);
  const std::string_view module_name = above ? above->name.text : root->text;
  const std::string path = fmt::format("{}.{}", module_name, last);
  const std::string_view ours = module_for(module_name);
  if (!is_foreign_module(root->text) && foreign_name_help(path).empty()) return;
  if (root->text == ours && module_has(ours, last)) unknown_name(*root, env);
  const Expr* part = &e;
  while (const auto* field = as<Field>(*part)) {
    if (const std::string later = later_text(field->name.text); !later.empty())
      walk_.fail(diagnostic(Code::not_there_yet, e.span, later));
    part = field->object.get();
  }
  Diagnostic d = diagnostic(Code::unknown_name, root->span, root->text);
  SimilarName similar(last);
  for (const Environment* names = s_.prelude.get(); names;
       names = names->parent.get())
    similar.consider(*names);
  if (const auto theirs = foreign_name_help(path); !theirs.empty())
    d.set_help(std::string(theirs));
  else if (module_has(ours, last))
    d.set_help(fmt::format("write `import {0}` first, and `{0}.{1}` here", ours,
                           last));
  else if (s_.prelude->find(last).first)
    d.set_help(
        fmt::format("leave it out: `{}` is in scope without a prefix", last));
  else if (const auto theirs = foreign_name_help(last); !theirs.empty())
    d.set_help(std::string(theirs));
  else if (const auto module = module_with(last); !module.empty())
    d.set_help(fmt::format("write `import {0}` first, and `{0}.{1}` here",
                           module, last));
  else if (!similar.best().empty())
    d.set_help(fmt::format("did you mean `{}`?", similar.best()));
  else
    unknown_name(*root, env);
  walk_.fail(std::move(d));
}

/// An axis that is named but not declared, where one is meant.
void Walker::forbid_undeclared_axis(const Expr& e, const Env& env) {
  const auto* name = as<NameExpr>(e);
  if (!name || env->find(name->text).first) return;
  if (const Program* program = program_of(name->span);
      program && defined_below(*program, name->text, name->span))
    return;
  walk_.fail(diagnostic(Code::unknown_name, name->span, name->text)
                 .set_help(fmt::format(
                     "declare it first: `axis {} = devices()`", name->text)));
}

namespace {
/// Numbers that change are arguments of the code, not constants in it.
Value as_arguments(Walk& walk, const Value& value, Span where) {
  return map_leaves(value, [&](const Value& leaf) -> Value {
    const ArrayCell* array = leaf.array();
    if (!array || !array->weak || array->literal || !array->constant)
      return leaf;
    return walk.on_first_device(*array, where);
  });
}
}  // namespace

/// A read of a name outside the function that is traced is part of what its
/// code was made for. It is looked up again from where the lookup left the
/// function, so that a name that is defined later in between is noticed.
Value Walker::note_read(const Binding& binding, const Environment& holder,
                        const Env& from, const std::string& name) {
  const Context& context = walk_.context();
  if (!context.outer_reads || holder.call > context.trace_base)
    return binding.value;
  Environment* outside = from.get();
  while (outside->call > context.trace_base) outside = outside->parent.get();
  if (outside == s_.prelude.get()) return binding.value;  // never changes
  for (const OuterRead& read : *context.outer_reads)
    if (read.environment.get() == outside && read.name == name)
      return read.value;
  Value value = as_arguments(walk_, binding.value, binding.where);
  context.outer_reads->push_back({outside->shared_from_this(), name, value});
  return value;
}

// ---- fields ----------------------------------------------------------------

Value Walker::field(const Value& base, const Field& e) {
  if (const Value* found = find_field(base, e)) return *found;
  Diagnostic d = diagnostic(Code::unknown_field, e.name.span, type_name(base),
                            e.name.text);
  const bool in_scope = s_.prelude->find(e.name.text).first != nullptr;
  // `add.at` of NumPy, `stats.norm` of SciPy.
  const auto* module = base.get_if<ModuleValue>();
  const std::string owner = module ? module->name : short_text(*e.object);
  const auto theirs =
      foreign_name_help(fmt::format("{}.{}", owner, e.name.text));
  if (!theirs.empty() &&
      (module || base.is<std::shared_ptr<const FunctionValue>>()))
    walk_.fail(std::move(d.set_help(std::string(theirs))));
  if (module) {
    SimilarName similar(e.name.text, true);
    similar.consider(*module->environment);
    if (in_scope)
      d.set_help(fmt::format("`{}` is in scope without a prefix", e.name.text));
    else if (!similar.best().empty())
      d.set_help(fmt::format("did you mean `{}`?", similar.best()));
    walk_.fail(std::move(d));
  }
  d.set_label(type_name(base));
  const size_t items = base.tuple() ? base.tuple()->items.size() : 0;
  if (const RecordValue* record = base.record(); record && !e.index) {
    d.set_help(fields_text(*record));
  } else if (const auto theirs = foreign_field_help(e.name.text);
             !theirs.empty()) {
    d.set_help(std::string(theirs));
  } else if (in_scope) {
    d.set_help(
        fmt::format("call it: `{}({})`", e.name.text, short_text(*e.object)));
  } else if (e.index && items > 0) {
    d.set_help(fmt::format("its items are 0 ... {}", items - 1));
  } else if (!e.index) {
    SimilarName similar(e.name.text);
    for (const Environment* env = s_.prelude.get(); env;
         env = env->parent.get())
      similar.consider(*env);
    if (!similar.best().empty())
      d.set_help(fmt::format("did you mean `{}`?", similar.best()));
  }
  walk_.fail(std::move(d));
}

// ---- what cannot be called -------------------------------------------------

/// `sum(x)` where `sum` is bound to a number, `x(1)` of an array.
void Walker::forbid_call_of(const Value& value, const Expr& callee,
                            const Env& env) {
  const bool callable =
      value.is<std::shared_ptr<const FunctionValue>>() || value.is<TypeValue>();
  if (callable) return;
  Diagnostic d = diagnostic(Code::not_callable, callee.span, type_name(value));
  d.set_label(type_name(value));
  const auto* name = as<NameExpr>(callee);
  if (name && s_.prelude->find(name->text).first) {
    const Binding* binding = env->find(name->text).first;
    d.add_note(binding->where, "bound here");
    d.set_help(fmt::format(
        "the function `{}` is hidden by this name; choose another one",
        name->text));
  } else if (value.array() && value.array()->type.rank() > 0) {
    d.set_help(fmt::format("an element is `{}[i]`", short_text(callee)));
  } else if (value.array() || value.is<IntValue>()) {
    d.set_help(fmt::format("a product is `{} * ...`", short_text(callee)));
  } else if (const auto* module = value.get_if<ModuleValue>()) {
    d.set_help(
        fmt::format("call a function of it: `{}.name(...)`", module->name));
  }
  walk_.fail(std::move(d));
}

// ---- names are bound, and changed ------------------------------------------

/// Of unknown text, and of a tuple of which only running tells how long it is:
/// from now on it has one length.
static void name_length(Value& value) {
  const auto asked = [] { return std::make_shared<std::optional<ir::Dim>>(); };
  if (const auto* text = value.get_if<StrValue>();
      text && !text->value && !text->length)
    value = StrValue{text->value, text->deferred, asked()};
  else if (const auto* many = value.get_if<ManyValue>(); many && !many->length)
    value = ManyValue{many->item, asked()};
}

void Walker::define(const Env& env, const std::string& name, Value value,
                    bool is_var, Span where, const Expr* type) {
  int64_t record = -1;
  if (walk_.keep_types && checking() && s_.main_file &&
      where.file == s_.main_file && !is_hidden(name)) {
    if (is_var) record = static_cast<int64_t>(s_.types.size());
    s_.types.push_back({where, name, noted_type(value),
                        is_var ? carry_shape(walk_, value, {}) : Value()});
  }
  if (checking()) name_length(value);
  if (has_function(value)) s_.function_environments.push_back(env);
  env->names[name] =
      Binding{std::move(value), is_var, false, where, type, record};
  ++env->version;
}

void Walker::axis_stmt(const AxisStmt& axis, const Env& env) {
  std::optional<CallArgument> value;
  if (axis.value) value = argument(*axis.value, env);
  const std::vector<AxisValue> axes =
      declare_axes(walk_, axis.names, value ? &*value : nullptr);
  for (size_t i = 0; i < axes.size(); ++i)
    define(env, axis.names[i].text, axes[i], false, axis.names[i].span);
}

std::string Walker::noted_type(const Value& value) {
  return type_name(
      value, [&](const ArrayCell& array) { return varies_note(walk_, array); });
}

/// A `var` varies over all axes over which a value of it does.
void Walker::widen_record(const Binding& binding, const Value& value) {
  TypeRecord& record = s_.types[binding.type_record];
  if (type_name(record.shape) != type_name(value)) {
    s_.types.push_back({record.where, record.name, noted_type(value)});
    return;
  }
  bool grown = false;
  same_carry(walk_, record.shape, value, {}, grown);
  if (grown) record.type = noted_type(record.shape);
}

void Walker::poison(const Pattern& pattern, const Env& env, bool open) {
  if (pattern.kind == Pattern::Kind::name) {
    Binding& binding = env->names[pattern.name.text];
    binding.poisoned = true;
    binding.open = open;
    binding.where = pattern.span;
    ++env->version;
  }
  for (const Pattern& item : pattern.items) poison(item, env, open);
}

void Walker::note_change(const Env& holder, const std::string& name,
                         Span where) {
  if (s_.journals.empty()) return;
  Journal& journal = s_.journals.back();
  const auto known = std::find_if(
      journal.changes.begin(), journal.changes.end(), [&](const Change& c) {
        return c.environment == holder && c.name == name;
      });
  if (known != journal.changes.end())
    known->where = where ? where : known->where;
  else if (holder->call <= journal.call)
    journal.changes.push_back(
        {holder, name, holder->names.at(name).value, where});
}

void Walker::assign(const Env& holder, const std::string& name, Value value,
                    Span where) {
  set_variable(holder, name, holder->names.at(name), std::move(value), where);
}

void Walker::set_variable(const Env& holder, const std::string& name,
                          Binding& binding, Value value, Span where) {
  note_change(holder, name, where);
  if (binding.type_record >= 0 && checking()) widen_record(binding, value);
  binding.value = std::move(value);
  ++holder->version;
}

std::vector<Assigned> Walker::take_back() {
  Journal journal = std::move(s_.journals.back());
  s_.journals.pop_back();
  std::vector<Assigned> out;
  for (Change& change : journal.changes) {
    Binding& binding = change.environment->names.at(change.name);
    out.push_back({change.environment, change.name, change.before,
                   std::move(binding.value), change.where});
    binding.value = std::move(change.before);
    ++change.environment->version;
  }
  return out;
}

void Walker::bind_pattern(const Pattern& pattern, const Value& value,
                          const Env& env, bool is_var, Span where,
                          const Expr* type) {
  switch (pattern.kind) {
    case Pattern::Kind::wildcard: return;
    case Pattern::Kind::name:
      define(env, pattern.name.text,
             is_var ? as_variable(walk_, value, where) : value, is_var,
             pattern.span, type);
      return;
    case Pattern::Kind::tuple: break;
  }
  std::vector<TakenPart> taken;
  for (const Pattern& item : pattern.items)
    taken.push_back(
        {item.span,
         item.kind == Pattern::Kind::name ? &item.name.text : nullptr,
         item.kind == Pattern::Kind::wildcard});
  const std::vector<Value> parts = parts_of(value, taken, pattern.span, where);
  for (size_t i = 0; i < parts.size(); ++i)
    bind_pattern(pattern.items[i], parts[i], env, is_var, where, nullptr);
}

/// The parts of a value, one for each part of a pattern: of a record by their
/// names, of a tuple or along an array's first axis by their places.
std::vector<Value> Walker::parts_of(const Value& value,
                                    const std::vector<TakenPart>& taken,
                                    Span pattern, Span where) {
  auto mismatch = [&] {
    Diagnostic d =
        diagnostic(Code::pattern_mismatch, pattern,
                   fmt::format("`{}`", pattern.text()), type_name(value));
    const TupleValue* tuple = value.tuple();
    const size_t count = tuple ? tuple->items.size() : 0;
    if (count > taken.size())
      d.set_help(fmt::format("it has {} parts: write a name, or `_`, for each",
                             count));
    else if (count > 0)
      d.set_help(fmt::format("it has {} part{}", count, count == 1 ? "" : "s"));
    walk_.fail(std::move(d));
  };
  std::vector<Value> parts;
  if (const RecordValue* record = value.record()) {
    for (const TakenPart& part : taken) {
      const Value* found = part.name ? record->find(*part.name) : nullptr;
      if (!found && !part.skipped) mismatch();
      parts.push_back(found ? *found : Value());
    }
  } else if (const TupleValue* tuple = value.tuple()) {
    parts = tuple->items;
  } else if (const auto* many = value.get_if<ManyValue>()) {
    for (size_t i = 0; i < taken.size(); ++i)
      parts.push_back(item_of(walk_, *many));
  } else if (const ArrayCell* array = value.array();
             array && array->type.rank() > 0 &&
             same_size(array->type.shape[0],
                       static_cast<int64_t>(taken.size()))) {
    for (size_t i = 0; i < taken.size(); ++i) {
      IndexItem item;
      item.value = IntValue{static_cast<int64_t>(i)};
      item.where = taken[i].where;
      parts.push_back(index(walk_, value, {item}, where));
    }
  } else {
    mismatch();
  }
  if (parts.size() != taken.size()) mismatch();
  return parts;
}

// ---- arrays that were given away ------------------------------------------

void Walk::forbid_donated(const ArrayValue& value, Span where) {
  const Donation* donation = value->donated.get();
  if (mode() == Mode::check) {
    const auto found = state_->donated.find(value);
    if (found != state_->donated.end()) donation = &found->second;
  }
  if (!donation) return;
  // As it was written in the call; the name here may be another one.
  const std::string_view given = donation->where.text();
  const bool readable = given.size() <= 32 && given.find('\n') == given.npos;
  const std::string name = readable ? fmt::format("`{}`", given) : "";
  const bool same = readable && where.text() == given;
  auto error =
      diagnostic(Code::used_after_donate, where, same ? name : "this array",
                 same || name.empty() ? "" : ", as " + name);
  error.add_note(donation->where,
                 fmt::format("given to `{}` here", donation->function));
  error.set_help("use the result instead, or leave it out of `donate`");
  fail(std::move(error));
}

void Walk::donate(const ArrayValue& value, const Donation& donation) {
  if (mode() == Mode::check) {
    const bool certain = state_->frames.empty() && state_->journals.empty() &&
                         context_.mapped_axes.empty();
    if (certain) state_->donated.emplace(value, donation);
    return;
  }
  if (state_->undo) state_->undo->keep(value);
  value->donated = std::make_shared<const Donation>(donation);
  value->array.reset();
  value->constant.reset();
  value->copies.reset();
}

}  // namespace unisono::lang
