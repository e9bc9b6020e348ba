// Assignments: what stands on the left, and what a variable becomes.
#include <fmt/format.h>

#include <algorithm>
#include <atomic>

#include "lang/context/traced_text.h"
#include "lang/ops/carry.h"
#include "lang/ops/operators.h"
#include "lang/ops/print_value.h"
#include "lang/ops/text.h"
#include "lang/walk/types.h"
#include "lang/walk/walker.h"

namespace unisono::lang {

/// One step from a value to a part of it, on the left of an assignment.
struct Walker::TargetStep {
  const Index* index = nullptr;  // one of these two
  const Field* field = nullptr;
  std::vector<IndexItem> items;
  Value base;  // what the step is taken from
};

Value Walker::replace_field(const Value& base, const Field& field, Value part) {
  if (const RecordValue* record = base.record()) {
    std::vector<std::pair<std::string, Value>> fields = record->fields;
    const auto changed = std::find_if(
        fields.begin(), fields.end(),
        [&](const auto& each) { return each.first == field.name.text; });
    if (changed != fields.end()) changed->second = std::move(part);
    return make_record(std::move(fields));
  }
  std::vector<Value> items = base.tuple()->items;
  items[*field.index] = std::move(part);
  return make_tuple(std::move(items));
}

void Walker::assign_stmt(const AssignStmt& stmt, const Env& env) {
  if (stmt.target->kind == ExprKind::NameExpr) return assign_name(stmt, env);
  if (const auto* targets = as<Tuple>(*stmt.target))
    return assign_tuple(*targets, argument(*stmt.value, env), stmt, env);
  assign_inside(*stmt.target, nullptr, stmt, env);
}

/// `(x, y[i]) = value`: from the left to the right, after all of the value.
void Walker::assign_tuple(const Tuple& targets, const CallArgument& value,
                          const AssignStmt& stmt, const Env& env) {
  std::vector<TakenPart> taken;
  for (const ExprPtr& target : targets.items) {
    const auto* name = as<NameExpr>(*target);
    taken.push_back({target->span, name ? &name->text : nullptr,
                     target->kind == ExprKind::Wildcard});
  }
  const std::vector<Value> parts =
      parts_of(value.value, taken, targets.span, value.where);
  // A tuple that is written out says where each part stands.
  const auto* written = as<Tuple>(*stmt.value);
  if (written &&
      (written->span != value.where || written->items.size() != parts.size()))
    written = nullptr;
  for (size_t i = 0; i < parts.size(); ++i)
    assign_to(*targets.items[i],
              {parts[i], written ? written->items[i]->span : value.where}, stmt,
              env);
}

/// One target of a tuple of them.
void Walker::assign_to(const Expr& target, const CallArgument& value,
                       const AssignStmt& stmt, const Env& env) {
  if (target.kind == ExprKind::Wildcard) return;
  if (const auto* name = as<NameExpr>(target))
    return assign_whole(variable(*name, env), name->text, value, stmt);
  if (const auto* targets = as<Tuple>(target))
    return assign_tuple(*targets, value, stmt, env);
  assign_inside(target, &value, stmt, env);
}

/// A part of a variable, like `x[i]` or `x.field`, becomes what is `given`, or
/// the statement's value, with its operator if it has one.
void Walker::assign_inside(const Expr& whole, const CallArgument* given,
                           const AssignStmt& stmt, const Env& env) {
  std::vector<TargetStep> steps;
  const Expr* target = &whole;
  while (target->kind != ExprKind::NameExpr) {
    TargetStep step;
    step.index = as<Index>(*target);
    step.field = as<Field>(*target);
    CHECK(step.index || step.field);
    target = step.index ? step.index->object.get() : step.field->object.get();
    steps.push_back(std::move(step));
  }
  std::reverse(steps.begin(), steps.end());
  const auto& name = static_cast<const NameExpr&>(*target);
  const Env holder = variable(name, env);

  Value current = holder->names.at(name.text).value;
  for (TargetStep& step : steps) {
    step.base = current;
    if (step.index) {
      step.items = index_items(*step.index, env);
      const bool needed = stmt.op || &step != &steps.back();
      if (needed) current = index(walk_, current, step.items, step.index->span);
    } else {
      current = field(current, *step.field);
    }
  }
  CallArgument value = given ? *given : argument(*stmt.value, env);
  if (stmt.op)
    value.value = binary(walk_, *stmt.op, {current, whole.span}, value,
                         stmt.op_span, stmt.span);
  if (steps.size() == 1 && steps[0].index) {
    current = Value();
    if (assign_part(holder, name.text, steps[0], value, stmt)) return;
    current = steps[0].base;
  }
  for (size_t i = steps.size(); i-- > 0;) {
    TargetStep& step = steps[i];
    if (step.index) {
      value.value =
          update(walk_, step.base, step.items, value, step.index->span);
    } else {
      value.value =
          replace_field(step.base, *step.field,
                        adopt(walk_, value.value, current, value.where));
    }
    current = step.base;
  }
  assign_whole(holder, name.text, std::move(value), stmt);
}

/// A value that a program makes is no larger than this.
void Walker::check_tree(const Value& value, Span where) {
  const TreeSize size = tree_size(value);
  if (size.leaves > max_leaves)
    walk_.fail(diagnostic(Code::too_long, where, "this tree of values",
                          max_leaves, "leaves")
                   .set_help("many values of one type are an array"));
  if (size.height > max_levels)
    walk_.fail(diagnostic(Code::too_long, where, "this tree of values",
                          max_levels, "levels"));
}

/// What a variable becomes.
void Walker::assign_whole(const Env& holder, const std::string& name,
                          CallArgument value, const AssignStmt& stmt) {
  check_tree(value.value, value.where);
  Binding& binding = holder->names.at(name);
  if (const auto* text = value.value.get_if<StrValue>();
      text && growing_number(*text) != 0)
    known_text(walk_, *text, value.where);  // an error: it may be longer by now
  value.value = adopt(walk_, value.value, binding.value, value.where);
  if (binding.type)
    value.value = match_declared(*binding.type, value.value, holder,
                                 value.where, fmt::format("`{}`", name));
  value.value = as_variable(walk_, value.value, value.where);
  set_variable(holder, name, binding, std::move(value.value), stmt.span);
}

namespace {
/// The operands behind `name` of `name + a + b`, or of `name += a`; the last
/// one first. None if it is anything else.
std::vector<const Expr*> pieces_behind(const AssignStmt& stmt,
                                       const std::string& name) {
  std::vector<const Expr*> pieces;
  const Expr* rest = stmt.value.get();
  if (stmt.op) {
    if (*stmt.op == BinaryOp::add) pieces.push_back(rest);
    return pieces;
  }
  for (const Binary* sum = as<Binary>(*rest); sum && sum->op == BinaryOp::add;
       sum = as<Binary>(*rest)) {
    pieces.push_back(sum->right.get());
    rest = sum->left.get();
  }
  const auto* first = as<NameExpr>(*rest);
  if (!first || first->text != name) pieces.clear();
  return pieces;
}

/// As an effect of compiled code, as a print is one: text behind that of number
/// `number` (growing_text).
void append_when_it_runs(Walk& walk, int64_t number, const StrValue& more,
                         Span where) {
  ir::HostCallAttrs attrs;
  std::vector<ArrayValue> operands;
  if (more.deferred) {
    attrs = {more.deferred->format, more.deferred->specs};
    operands = more.deferred->operands;
  } else {
    attrs.format = {*more.value};
  }
  attrs.everywhere = false;
  attrs.number = number;
  walk.add(ir::Op::host_call, operands, std::move(attrs), where);
}
}  // namespace

/// `x = v`, `x += v`; of text and tuples also `x = x + v`, which is the same.
void Walker::assign_name(const AssignStmt& stmt, const Env& env) {
  const auto& name = static_cast<const NameExpr&>(*stmt.target);
  const Env holder = variable(name, env);
  const auto* sum = stmt.op ? nullptr : as<Binary>(*stmt.value);
  const auto* first = sum ? as<NameExpr>(*sum->left) : nullptr;
  const auto may_grow = [](const Value& value) {
    return value.is<StrValue>() || value.tuple();
  };
  const auto* grown = holder->names.at(name.text).value.get_if<StrValue>();
  const int64_t number = grown ? growing_number(*grown) : 0;
  const auto pieces = number > 0 && walk_.context().mapped_axes.empty()
                          ? pieces_behind(stmt, name.text)
                          : std::vector<const Expr*>();
  if (!pieces.empty()) {
    TextBuilder more(walk_);
    for (size_t i = pieces.size(); i-- > 0;) {
      const CallArgument piece = argument(*pieces[i], env);
      if (!piece.value.is<StrValue>())
        known_text(walk_, growing_text(number), piece.where);  // an error
      more.value(piece.value, "", piece.where);
    }
    return append_when_it_runs(walk_, number, more.finish(), stmt.span);
  }
  const bool joins = first && first->text == name.text &&
                     sum->op == BinaryOp::add && walk_.mode() == Mode::run &&
                     may_grow(holder->names.at(name.text).value);
  if (!stmt.op && !joins)
    return assign_whole(holder, name.text, argument(*stmt.value, env), stmt);
  if (joins) enter(sum->span);
  CallArgument before = joins ? argument(*first, env)
                              : CallArgument{holder->names.at(name.text).value,
                                             stmt.target->span};
  CallArgument value = argument(joins ? *sum->right : *stmt.value, env);
  const BinaryOp op = joins ? BinaryOp::add : *stmt.op;
  const Span where = joins ? sum->span : stmt.span;
  if (op == BinaryOp::add &&
      (append_text(holder, name.text, before.value, value.value, where) ||
       append_items(holder, name.text, before.value, value.value, where)))
    return;
  value = {binary(walk_, op, before, value, joins ? sum->op_span : stmt.op_span,
                  where),
           stmt.value->span};
  if (joins && value.value.tuple()) count_tree(value.value, where);
  assign_whole(holder, name.text, std::move(value), stmt);
}

/// Text behind that of a variable, which held `before` when it was read (run
/// mode): what is written is what is new, if nothing else holds the text. False
/// if it is anything else.
bool Walker::append_text(const Env& holder, const std::string& name,
                         Value& before, const Value& more, Span where) {
  auto* text = std::get_if<StrValue>(&holder->names.at(name).value.any);
  const auto* read = before.get_if<StrValue>();
  const auto* behind = more.get_if<StrValue>();
  if (walk_.mode() != Mode::run || !s_.journals.empty() || !text || !read ||
      !behind || !text->value || !text->value.is(read->value) ||
      !behind->value || behind->value->empty())
    return false;
  check_text_size(walk_, text->value->size() + behind->value->size(), where);
  before = Value();  // which would be a second holder
  text->value.append(*behind->value);
  ++holder->version;
  return true;
}

/// The same of items behind those of a tuple.
bool Walker::append_items(const Env& holder, const std::string& name,
                          Value& before, const Value& more, Span where) {
  Binding& binding = holder->names.at(name);
  auto* tuple =
      std::get_if<std::shared_ptr<const TupleValue>>(&binding.value.any);
  const TupleValue* behind = more.tuple();
  if (walk_.mode() != Mode::run || !s_.journals.empty() || binding.type ||
      !tuple || before.tuple() != tuple->get() || !behind ||
      tuple->use_count() > 2)
    return false;
  const TreeSize size = (*tuple)->size;
  if (size.leaves + behind->size.leaves > max_leaves ||
      behind->size.height > size.height)
    return false;
  before = Value();  // which would be a second holder
  // Another thread may have held it last: what it read there, it has read.
  std::atomic_thread_fence(std::memory_order_acquire);
  walk_.count_host_bytes(
      static_cast<int64_t>(behind->size.leaves * sizeof(Value)), where);
  auto& grown = const_cast<TupleValue&>(**tuple);
  for (const Value& item : behind->items)
    grown.append(as_variable(walk_, item, where));
  ++holder->version;
  return true;
}

/// `x[...] = v` of an array that the variable still holds, in run mode, where
/// it may change in place. False if it is anything else.
bool Walker::assign_part(const Env& holder, const std::string& name,
                         TargetStep& step, const CallArgument& value,
                         const AssignStmt& stmt) {
  Binding& binding = holder->names.at(name);
  auto* variable = std::get_if<ArrayValue>(&binding.value.any);
  if (walk_.mode() != Mode::run || !variable ||
      variable->get() != step.base.array())
    return false;
  // It is afterwards what it is now.
  if (binding.type)
    match_declared(*binding.type, binding.value, holder, value.where,
                   fmt::format("`{}`", name));
  note_change(holder, name, stmt.span);
  step.base = Value();  // which would be a second holder
  update_variable(walk_, *variable, step.items, value, step.index->span);
  ++holder->version;
  return true;
}

Env Walker::variable(const NameExpr& name, const Env& env) {
  auto [binding, holder] = env->find(name.text);
  if (!binding) unbound_variable(name, env);
  if (binding->poisoned) use_poisoned(*binding, name.text, name.span);
  if (!binding->is_var) {
    Diagnostic d = diagnostic(Code::not_a_variable, name.span, name.text);
    bool library = false;
    for (const Environment* e = s_.prelude.get(); e; e = e->parent.get())
      library |= e == holder;
    if (library)
      d.set_help(
          fmt::format("`{0}` is the library's; a name of your own is bound by "
                      "`let {0} = ...`, or `var {0} = ...`",
                      name.text));
    else
      d.add_note(binding->where, "bound here")
          .set_help("bind it with `var` to assign it again");
    walk_.fail(std::move(d));
  }
  if (holder->call != env->call)
    walk_.fail(
        diagnostic(Code::outer_variable, name.span, name.text,
                   holder->call == 0 ? "the program" : "the enclosing function")
            .add_note(binding->where, "bound here")
            .set_help("return the new value, or declare a `var` in this "
                      "function"));
  return holder->shared_from_this();
}

}  // namespace unisono::lang
