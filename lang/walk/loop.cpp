// Control flow of compiled code. In check mode a loop's body is walked until
// the axes over which its `var`s vary no longer grow; in trace mode it becomes
// a `loop` node, whose carries are the `var`s that the body assigns.
#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <utility>

#include "jit/loops/carried_rows.h"
#include "lang/context/derivative_facts.h"
#include "lang/ops/array_ops.h"
#include "lang/ops/carry.h"
#include "lang/ops/operators.h"
#include "lang/ops/range.h"
#include "lang/ops/sizes.h"
#include "lang/syntax/jumps.h"
#include "lang/walk/walker.h"

namespace unisono::lang {
namespace {

/// Adds the union of what the scopes captured to `operands`, and gives it.
std::vector<ArrayValue> all_captures(
    std::initializer_list<const GraphScope*> scopes) {
  std::vector<ArrayValue> out;
  for (const GraphScope* scope : scopes)
    for (const ArrayValue& capture : scope->captures())
      if (std::find(out.begin(), out.end(), capture) == out.end())
        out.push_back(capture);
  return out;
}

/// `before` with f of each item of it and the one at the same place in `after`,
/// where both are tuples or records of as many.
template <class F>
Value map_pairs(const Value& before, const Value& after, F&& f) {
  const TupleValue *s = before.tuple(), *t = after.tuple();
  if (s && t && s->items.size() == t->items.size()) {
    std::vector<Value> items;
    for (size_t i = 0; i < s->items.size(); ++i)
      items.push_back(f(s->items[i], t->items[i]));
    return make_tuple(std::move(items));
  }
  const RecordValue *p = before.record(), *q = after.record();
  const bool alike =
      p && q &&
      std::ranges::equal(
          p->fields, q->fields, {}, [](const auto& a) { return a.first; },
          [](const auto& b) { return b.first; });
  if (!alike) return before;
  std::vector<std::pair<std::string, Value>> fields;
  for (size_t i = 0; i < p->fields.size(); ++i)
    fields.emplace_back(p->fields[i].first,
                        f(p->fields[i].second, q->fields[i].second));
  return make_record(std::move(fields));
}

}  // namespace

void Walker::in_scope(const std::shared_ptr<GraphScope>& scope,
                      const std::function<void()>& body) {
  ContextScope context(walk_);
  context->mode = Mode::trace;
  context->scope = scope;
  body();
}

std::vector<Value> Walker::if_node(const ArrayValue& condition,
                                   const std::shared_ptr<GraphScope>& one,
                                   const std::shared_ptr<GraphScope>& other,
                                   const std::vector<Value>& ones,
                                   const std::vector<Value>& others,
                                   const std::vector<Value>& results,
                                   Span where) {
  std::vector<ArrayValue> outputs[2];
  auto compute = [&](const std::shared_ptr<GraphScope>& scope,
                     const std::vector<Value>& values,
                     std::vector<ArrayValue>& out) {
    in_scope(scope, [&] {
      for (size_t i = 0; i < values.size(); ++i)
        gather_leaves(walk_, values[i], results[i], out, where);
      for (const ArrayValue& output : out) scope->import(output);
    });
  };
  compute(one, ones, outputs[0]);
  compute(other, others, outputs[1]);
  const std::vector<ArrayValue> captures =
      all_captures({one.get(), other.get()});
  ir::IfAttrs attrs;
  attrs.then_graph =
      std::make_shared<const ir::Graph>(one->finish(outputs[0], captures));
  attrs.else_graph =
      std::make_shared<const ir::Graph>(other->finish(outputs[1], captures));
  std::vector<ArrayValue> operands{condition};
  operands.insert(operands.end(), captures.begin(), captures.end());
  const ArrayValue node =
      walk_.add(ir::Op::if_else, operands, std::move(attrs), where);
  return fill_leaves(results,
                     project_all(walk_, node, outputs[0].size(), where));
}

// ---- loops -----------------------------------------------------------------

/// Text that a loop of the host changes is unknown while it is checked: each
/// such text in `before`, which then has `grown`.
Value Walker::widen_text(const Value& before, const Value& after, bool& grown) {
  if (before.is<StrValue>() && after.is<StrValue>()) {
    const auto& known = *before.get_if<StrValue>();
    if (!known.value)
      return known.length == after.get_if<StrValue>()->length ? before
                                                              : StrValue{};
    if (same_host_value(before, after)) return before;
    grown = true;
    return StrValue{};
  }
  return map_pairs(before, after, [&](const Value& a, const Value& b) {
    return widen_text(a, b, grown);
  });
}

/// A tuple that a loop of the host makes longer has any length while it is
/// checked, and items of one type: in `before`, which then has `grown`, and in
/// `after`.
Value Walker::widen_tuples(const Value& before, Value& after, bool& grown) {
  const TupleValue *s = before.tuple(), *t = after.tuple();
  const auto* many = before.get_if<ManyValue>();
  const auto* more = after.get_if<ManyValue>();
  const bool both = (s || many) && (t || more);
  if (!both || (s && t && s->items.size() == t->items.size())) {
    std::vector<Value> changed;
    const Value out =
        map_pairs(before, after, [&](const Value& a, const Value& b) {
          changed.push_back(b);
          return widen_tuples(a, changed.back(), grown);
        });
    size_t next = 0;
    after = map_pairs(after, before, [&](const Value& part, const Value&) {
      return next < changed.size() ? changed[next++] : part;
    });
    return out;
  }
  const auto item = common_item(
      walk_, before, after,
      [&](const Value& a, const Value& b) { return meet(a, b, {}); });
  if (!item) return before;
  const bool same = many &&
                    open_type_name(*many->item) == open_type_name(*item) &&
                    is_weak_anywhere(*many->item) == is_weak_anywhere(*item);
  grown |= !same;
  const Value out =
      same ? before : ManyValue{std::make_shared<const Value>(*item)};
  after = out;
  return out;
}

namespace {

/// Sizes that a loop of the host changes, while it is checked: symbols. Sizes
/// that begin alike and change alike have one symbol.
class GrowingSizes {
 public:
  explicit GrowingSizes(Walk& walk) : walk_(walk) {}

  /// A turn made `after` of `before`, which has `grown` if it gets another
  /// symbol; and so has `after`. For all carries before `apply`.
  void add(const Value& before, const Value& after) {
    each(before, after,
         [&](ir::Dim& was, const ir::Dim& is) { note(was, is); });
  }
  void apply(const Value& before, Value& after, bool& grown) {
    std::vector<Value> leaves;
    each(before, after, [&](ir::Dim& was, const ir::Dim& is) {
      const ir::Dim& becomes = find(was, is)->becomes;
      grown |= !(becomes == was);
      was = becomes;
    });
    for_each_leaf(before, [&](const Value& leaf) { leaves.push_back(leaf); });
    size_t next = 0;
    after = map_leaves(after, [&](const Value& leaf) -> Value {
      const ArrayCell* array = leaf.array();
      const ArrayCell* shape =
          next < leaves.size() ? leaves[next++].array() : nullptr;
      if (!array || !shape || array->type.rank() != shape->type.rank())
        return leaf;
      if (array->type.shape == shape->type.shape) return leaf;
      auto seen = std::make_shared<ArrayCell>(*array);
      for (size_t i = 0; i < seen->type.shape.size(); ++i)
        if (is_own(shape->type.shape[i]))
          seen->type.shape[i] = shape->type.shape[i];
      return ArrayValue(seen);
    });
  }
  void next_turn() { changes_.clear(); }

  /// Gives the sizes that are 0 symbols, as if the loop had changed them; how
  /// many there are. `is_changed` then tells whether it did.
  int open_empty(Value& value) {
    int opened = 0;
    value = map_leaves(value, [&](const Value& leaf) -> Value {
      const ArrayCell* array = leaf.array();
      if (!array) return leaf;
      auto open = std::make_shared<ArrayCell>(*array);
      for (ir::Dim& size : open->type.shape)
        if (size == ir::Dim(0)) {
          size = new_symbol();
          ++opened;
        }
      return ArrayValue(open);
    });
    return opened;
  }
  /// Whether the last turn gave another size than one of the open ones.
  bool is_any_changed() const {
    return std::ranges::any_of(changes_, [&](const Change& change) {
      return is_own(change.was) && !(change.was == change.is);
    });
  }

 private:
  struct Change {
    ir::Dim was, is, becomes;
  };

  template <class F>
  static void each(const Value& before, const Value& after, F&& f) {
    std::vector<Value> leaves;
    for_each_leaf(after, [&](const Value& leaf) { leaves.push_back(leaf); });
    size_t next = 0;
    for_each_leaf(before, [&](const Value& leaf) {
      ArrayCell* was = leaf.array();
      const ArrayCell* is =
          next < leaves.size() ? leaves[next++].array() : nullptr;
      if (!was || !is || was->type.rank() != is->type.rank()) return;
      for (size_t i = 0; i < was->type.shape.size(); ++i)
        f(was->type.shape[i], is->type.shape[i]);
    });
  }

  /// Whether it is a symbol of this loop.
  bool is_own(const ir::Dim& size) const {
    const auto id = size.as_symbol();
    return id && symbols_.contains(*id);
  }

  Change* find(const ir::Dim& was, const ir::Dim& is) {
    for (Change& change : changes_)
      if (change.was == was && change.is == is) return &change;
    return nullptr;
  }

  ir::Dim new_symbol() {
    const ir::Dim size = walk_.open_size();
    symbols_.insert(*size.as_symbol());
    return size;
  }

  void note(const ir::Dim& was, const ir::Dim& is) {
    if (find(was, is)) return;
    const bool stays =
        is_own(was)
            ? std::ranges::find(changes_, was, &Change::was) == changes_.end()
            : was == is;
    ir::Dim becomes = was;
    if (!stays) becomes = new_symbol();
    changes_.push_back({was, is, std::move(becomes)});
  }

  Walk& walk_;
  std::set<uint32_t> symbols_;
  std::vector<Change> changes_;  // of this turn
};

}  // namespace

/// The carries after a turn against those before; true if they vary more.
bool Walker::close_turn(std::vector<Carry>& carries,
                        const std::vector<Assigned>& changes,
                        const AxisSet& condition_varies, Span where) {
  bool grown = false;
  for (Carry& carry : carries) {
    const Assigned* change = nullptr;
    for (const Assigned& c : changes)
      if (c.environment == carry.environment && c.name == carry.name)
        change = &c;
    const Value after = change ? change->after : carry.shape;
    if (carry.shape.is<UnsetValue>() && !after.is<UnsetValue>()) {
      carry.shape = carry_shape(walk_, after, condition_varies);
      grown = true;
      continue;
    }
    if (checking() && !walk_.in_compiled_code())
      carry.shape = widen_text(carry.shape, after, grown);
    if (same_carry(walk_, carry.shape, after, condition_varies, grown))
      continue;
    std::string was = type_name(carry.shape), is = type_name(after);
    std::string help =
        "a `var` keeps its type in a loop: start it with the type it gets, or "
        "convert with `cast`";
    if (was == is) {  // a value of the host
      is.insert(0, "another ");
      help =
          "in compiled code arrays change, not text and other values of the "
          "host: `print` in the loop, or loop outside compiled code";
    }
    const bool known = change && change->where;
    Diagnostic d =
        diagnostic(Code::loop_changes_type, known ? change->where : where,
                   carry.name, was, is);
    d.about();
    d.set_label(fmt::format("{} becomes {}", was, is));
    if (known) d.add_note(where, "in this loop");
    d.set_help(std::move(help));
    walk_.fail(std::move(d));
  }
  return grown;
}

/// Whether all that is wrong since `found` is that an index is out of range.
bool Walker::may_be_of_empty(const Failure& failure, size_t found) const {
  if (walk_.in_compiled_code() || failure.open || !failure.reported ||
      s_.gave_up || s_.found.size() <= found)
    return false;
  return std::all_of(
      s_.found.begin() + static_cast<ptrdiff_t>(found), s_.found.end(),
      [](const Diagnostic& d) { return d.code == Code::index_out_of_range; });
}

/// Takes back what was found since there were `found`: it is looked at anew.
void Walker::forget_found(size_t found) {
  const std::vector<Diagnostic>& all =
      checking() ? s_.found : walk_.diagnostics_.all();
  for (size_t i = found; i < all.size(); ++i) {
    const Diagnostic& d = all[i];
    walk_.reported.erase({d.code, d.where.file, d.where.begin, d.where.end});
  }
  if (checking())
    s_.found.erase(s_.found.begin() + static_cast<ptrdiff_t>(found),
                   s_.found.end());
  else
    walk_.diagnostics_.truncate(found);
}

void Walker::check_loop(
    std::vector<Carry>& carries, const AxisSet& bound_varies, Span where,
    const std::function<AxisSet(ContextScope&)>& walk_turn) {
  for (Carry& carry : carries)
    carry.shape = carry_shape(walk_, carry.value, bound_varies);
  const size_t types = s_.types.size();
  GrowingSizes sizes(walk_);
  bool first = true;
  std::optional<std::pair<Diagnostic, Failure>> of_empty;
  while (true) {
    AxisSet condition_varies;
    std::vector<Assigned> changes;
    s_.types.erase(s_.types.begin() + types, s_.types.end());
    const size_t found = s_.found.size();
    try {
      JournalScope journal(*this);
      ContextScope context(walk_);
      for (const Carry& carry : carries)
        assign(carry.environment, carry.name,
               carry_shape(walk_, carry.shape, {}));
      condition_varies = walk_turn(context);
      changes = journal.finish();
    } catch (const Failure& failure) {
      // What is empty before the first turn may be longer where it is read: it
      // is walked once more for any size.
      if (!first || !may_be_of_empty(failure, found)) throw;
      int opened = 0;
      for (Carry& carry : carries) opened += sizes.open_empty(carry.shape);
      if (opened == 0) throw;
      first = false;
      of_empty.emplace(s_.found[found], failure);
      forget_found(found);
      continue;
    }
    first = false;
    bool grown = false;
    if (!walk_.in_compiled_code()) {
      const auto each_change = [&](const auto& f) {
        for (Carry& carry : carries)
          for (Assigned& change : changes)
            if (change.environment == carry.environment &&
                change.name == carry.name)
              f(carry.shape, change.after);
      };
      each_change([&](Value& before, Value& after) {
        before = widen_tuples(before, after, grown);
      });
      sizes.next_turn();
      each_change(
          [&](Value& before, Value& after) { sizes.add(before, after); });
      each_change([&](Value& before, Value& after) {
        sizes.apply(before, after, grown);
      });
    }
    if (of_empty && !sizes.is_any_changed()) {  // it stays empty
      s_.found.push_back(std::move(of_empty->first));
      throw of_empty->second;
    }
    of_empty.reset();
    grown |= close_turn(carries, changes, condition_varies, where);
    if (!grown) break;
  }
  for (const Carry& carry : carries)
    assign(carry.environment, carry.name, carry.shape);
}

/// The loop as a node.
void Walker::loop_node(std::vector<Carry>& carries, const LoopTurns& turns,
                       Span where, const LoopPart& body) {
  for (Carry& carry : carries)
    carry.shape = carry_shape(walk_, carry.value, turns.varies);
  // A graph's parameters: the counter, then the open leaves of the carries.
  auto parameters = [&](ArrayValue& own_counter) {
    GraphScope& scope = *walk_.scope();
    if (turns.count)
      own_counter = scope.add_parameter({DType::I64, {}}, {}, where);
    else if (turns.counter)
      own_counter =
          scope.add_parameter(turns.counter->type, turns.varies, where);
    for (const Carry& carry : carries)
      assign(carry.environment, carry.name,
             leaf_parameters(walk_, carry.shape));
  };
  for (bool again = true; again;) {
    again = false;
    ArrayValue go_on;
    std::vector<ArrayValue> outputs;
    ContextScope context(walk_);
    std::shared_ptr<GraphScope> condition_scope;
    AxisSet varies = turns.varies;
    if (!turns.count) {
      condition_scope = walk_.with_scope([&] {
        JournalScope journal(*this);
        ArrayValue own_counter;
        parameters(own_counter);
        go_on = turns.condition(own_counter);
      });
      varies = join(varies, go_on->varies);
    }
    if (!varies.empty())
      context->varying_conditions.push_back(
          {varies, where, true, go_on ? go_on->varies_from : where});
    const auto body_scope = walk_.with_scope([&] {
      JournalScope journal(*this);
      ArrayValue own_counter;
      parameters(own_counter);
      const ArrayValue next = body(own_counter);
      if (next) outputs.push_back(next);
      std::vector<Value> finals;
      for (const Carry& carry : carries)
        finals.push_back(carry.environment->names.at(carry.name).value);
      const std::vector<Assigned> changes = journal.finish();
      again = close_turn(carries, changes, varies, where);
      if (again) return;  // they vary more
      for (size_t i = 0; i < carries.size(); ++i)
        gather_leaves(walk_, finals[i], carries[i].shape, outputs, where);
    });
    if (!again)
      finish_loop(carries, turns, go_on, outputs, condition_scope, body_scope,
                  where);
  }
}

std::vector<ArrayValue> Walker::loop_results(
    std::vector<ArrayValue> operands, const std::vector<ArrayValue>& captures,
    ir::LoopAttrs attrs, Span where) {
  const size_t results = attrs.body->outputs.size();
  operands.insert(operands.end(), captures.begin(), captures.end());
  const ArrayValue node =
      walk_.add(ir::Op::loop, operands, std::move(attrs), where);
  return project_all(walk_, node, results, where);
}

namespace {
/// A carry that is used row by row (jit/loops/carried_rows.h).
struct RowCarry {
  size_t place;  // among the carries
  ArrayValue start;
  jit::CarriedRows rows;

  int64_t turns() const { return rows.loop.turns; }
  /// The first of its rows that the loop uses.
  int64_t low() const {
    return rows.descends ? rows.first - turns() + 1 : rows.first;
  }
  bool is_whole() const { return start->type.shape[0] == ir::Dim(turns()); }
};

/// The rows before the loop, in the order of its turns.
ArrayValue rows_before(Walk& walk, const RowCarry& carry, Span where) {
  ArrayValue rows =
      carry.is_whole()
          ? carry.start
          : slice_axis(walk, carry.start, 0, carry.low(), carry.turns(), where);
  return carry.rows.descends ? flip(walk, rows, {0}, where) : rows;
}

/// The array after the loop, which gave `stack`.
ArrayValue array_after(Walk& walk, const RowCarry& carry, ArrayValue stack,
                       Span where) {
  if (carry.rows.descends) stack = flip(walk, stack, {0}, where);
  if (carry.is_whole()) return stack;
  const int64_t high = carry.low() + carry.turns();
  const int64_t size = carry.start->type.shape[0].value();
  std::vector<ArrayValue> parts;
  if (carry.low() > 0)
    parts.push_back(slice_axis(walk, carry.start, 0, 0, carry.low(), where));
  parts.push_back(std::move(stack));
  if (high < size)
    parts.push_back(slice_axis(walk, carry.start, 0, high, size - high, where));
  return concat(walk, parts, 0, where);
}
}  // namespace

std::vector<ArrayValue> Walker::loop_by_rows(
    const std::vector<ArrayValue>& starts,
    const std::vector<ArrayValue>& captures, ir::LoopAttrs attrs, Span where) {
  std::vector<RowCarry> by_rows;
  std::vector<ArrayValue> operands = starts;
  for (size_t i = starts.size(); i-- > 0;) {
    auto rows = jit::rows_of_carry(attrs, static_cast<int>(i));
    if (!rows) continue;
    attrs = rows->loop;
    by_rows.push_back({i, starts[i], std::move(*rows)});
    operands.erase(operands.begin() + static_cast<ptrdiff_t>(i));
  }
  for (const RowCarry& carry : by_rows)
    if (carry.rows.reads) operands.push_back(rows_before(walk_, carry, where));
  const size_t others = starts.size() - by_rows.size();
  std::vector<ArrayValue> given =
      loop_results(std::move(operands), captures, std::move(attrs), where);
  // Stacks stand behind the other carries, those of the last carries first.
  std::vector<ArrayValue> results(
      given.begin(), given.begin() + static_cast<ptrdiff_t>(others));
  for (size_t i = by_rows.size(); i-- > 0;)
    results.insert(results.begin() + static_cast<ptrdiff_t>(by_rows[i].place),
                   array_after(walk_, by_rows[i], given[others + i], where));
  return results;
}

void Walker::finish_loop(std::vector<Carry>& carries, const LoopTurns& turns,
                         const ArrayValue& go_on,
                         const std::vector<ArrayValue>& outputs,
                         const std::shared_ptr<GraphScope>& condition_scope,
                         const std::shared_ptr<GraphScope>& body_scope,
                         Span where) {
  for (const ArrayValue& output : outputs) body_scope->import(output);
  ir::LoopAttrs attrs;
  attrs.carries = static_cast<int>(outputs.size());
  attrs.most = turns.most;
  std::vector<ArrayValue> captures;
  if (turns.count) {
    attrs.turns = *turns.count;
    captures = all_captures({body_scope.get()});
  } else {
    condition_scope->import(go_on);
    captures = all_captures({condition_scope.get(), body_scope.get()});
    const ArrayValue condition_outputs[] = {go_on};
    attrs.condition = std::make_shared<const ir::Graph>(
        condition_scope->finish(condition_outputs, captures));
  }
  attrs.body =
      std::make_shared<const ir::Graph>(body_scope->finish(outputs, captures));

  std::vector<ArrayValue> starts;
  if (turns.counter) starts.push_back(turns.counter);
  for (const Carry& carry : carries)
    gather_leaves(walk_, carry.value, carry.shape, starts, where);
  std::vector<ArrayValue> results =
      s_.attempt ? loop_results(starts, captures, std::move(attrs), where)
                 : loop_by_rows(starts, captures, std::move(attrs), where);
  if (turns.counter) results.erase(results.begin());
  std::vector<Value> shapes;
  for (const Carry& carry : carries) shapes.push_back(carry.shape);
  const std::vector<Value> values = fill_leaves(shapes, results);
  for (size_t i = 0; i < carries.size(); ++i)
    assign(carries[i].environment, carries[i].name, values[i]);
}

/// A derivative goes backwards only through loops of which it is known how
/// often they turn at most.
void Walker::forbid_reverse(const std::vector<Carry>& carries,
                            Span where) const {
  for (const Carry& carry : carries)
    for_each_leaf(carry.shape, [&](const Value& leaf) {
      const ArrayCell* array = leaf.array();
      if (!array) return;
      for (const auto& derivative : walk_.context().derivatives) {
        const bool through =
            derivative->reverse &&
            std::ranges::any_of(array->depends, [&](uint32_t argument) {
              return derivative->has(argument);
            });
        if (!through) continue;
        Diagnostic error = reverse_while_error(*derivative, where);
        error.add_fact(fmt::format("`{}` carries the derivative", carry.name));
        walk_.fail(std::move(error));
      }
    });
}

namespace {
/// In a rule, what a loop gives is not linear in a tangent on which it depends
/// how many turns there are.
template <class Carries>
void set_linearity(const Carries& carries, const Linearity& of_turns) {
  if (of_turns.state != Linearity::State::other) return;
  for (const auto& carry : carries)
    for_each_leaf(carry.shape, [&](const Value& leaf) {
      if (ArrayCell* array = leaf.array()) array->linearity = of_turns;
    });
}

/// Whether only running tells how many turns a loop over this has.
bool has_array_bounds(const Value& over) {
  const auto* range = over.get_if<RangeValue>();
  return range &&
         std::ranges::any_of(*range->start_stop_step, [](const Value& part) {
           const ArrayCell* array = part.array();
           return array && !array->constant;
         });
}
}  // namespace

/// Its `max`; nothing if it has none, or a symbol, while checking.
std::optional<int64_t> Walker::while_maximum(const WhileStmt& s,
                                             const Env& env) {
  if (!s.most) return std::nullopt;
  const Value value = expr(*s.most, env);
  const auto* known = value.get_if<IntValue>();
  if (known && checking() && !known->value.is_constant()) return std::nullopt;
  if (!known || !known->value.is_constant() || known->value.value() < 1) {
    const std::string seen =
        known ? known->value.to_string() : type_name(value);
    walk_.fail(diagnostic(Code::bad_maximum, s.most->span, seen));
  }
  return known->value.value();
}

namespace {
/// Names that no program can have.
const std::string goes_on_name = "while";

Diagnostic not_ended(const WhileStmt& s, int64_t most) {
  Diagnostic error = diagnostic(Code::loop_not_ended, s.most->span, most,
                                most == 1 ? "" : "s");
  error.add_note(s.condition->span, "this condition");
  return error;
}
}  // namespace

void Walker::fail_not_ended(const WhileStmt& s, int64_t most) {
  walk_.fail(not_ended(s, most));
}

Env Walker::bounded_while(const WhileStmt& s, const Env& env, int64_t most) {
  const Span where = s.condition->span;
  // The condition is computed once for each state of the carries, so the last
  // one is there after the loop, and whatever it does has happened once.
  const Env own = inner(env);
  const auto outside = walk_.context().varying_conditions;
  const auto goes_on = [&] {
    ContextScope context(walk_);
    context->varying_conditions = outside;
    const Value value = while_condition(s, env);
    condition(value, where);  // its type
    return walk_.to_array(value, where, "a condition");
  };
  define(own, goes_on_name, goes_on(), true, where);
  const Value& last = own->names.at(goes_on_name).value;
  std::vector<Carry> carries = carries_of(s, env);
  carries.push_back({own, goes_on_name, last});
  const ArrayValue limit = walk_.constant_int(most, DType::I64, false, where);
  const ArrayValue one = walk_.constant_int(1, DType::I64, false, where);
  const auto op = [&](ir::Op what, const ArrayValue& a, const ArrayValue& b) {
    return walk_.add(what, {a, b}, ir::NoAttrs{}, where);
  };
  LoopTurns turns;
  turns.most = most;
  turns.counter = walk_.constant_int(0, DType::I64, false, where);
  turns.condition = [&](const ArrayValue& turn) {
    return op(ir::Op::bit_and, *last.get_if<ArrayValue>(),
              op(ir::Op::lt, turn, limit));
  };
  loop_node(carries, turns, where, [&](const ArrayValue& turn) {
    begin_turn(s.left, env, where);
    block(*s.body, env, false, false);
    assign(own, goes_on_name, goes_on());
    return op(ir::Op::add, turn, one);
  });
  return own;
}

void Walker::compiled_while(const WhileStmt& s, const Env& env) {
  std::vector<Carry> carries = carries_of(s, env);
  const Span where = s.condition->span;
  if (checking()) {
    while_maximum(s, env);
    // A condition that is known to be false before the first turn skips it.
    if (const Condition first = condition(while_condition(s, env), where);
        first.known && !*first.known)
      return;
    Linearity by_condition;
    check_loop(carries, {}, where, [&](ContextScope& context) {
      const Condition c = condition(while_condition(s, env), where);
      if (c.array) by_condition = c.array->linearity;
      if (!c.varies.empty())
        context->varying_conditions.push_back(
            {c.varies, where, true, c.from()});
      block(*s.body, env, false, false);
      return c.varies;
    });
    set_linearity(carries, by_condition);
    if (!s.most) forbid_reverse(carries, where);
    return;
  }
  if (s.most) {
    const int64_t most = *while_maximum(s, env);
    const Env own = bounded_while(s, env, most);
    const ArrayValue goes_on =
        *own->names.at(goes_on_name).value.get_if<ArrayValue>();
    walk_.assert_when_it_runs(
        walk_.add(ir::Op::bit_not, {goes_on}, ir::NoAttrs{}, where),
        not_ended(s, most));
    return;
  }
  LoopTurns turns;
  turns.condition = [&](const ArrayValue&) {
    const Value value = while_condition(s, env);
    condition(value, where);  // its type
    return walk_.to_array(value, where, "a condition");
  };
  loop_node(carries, turns, where, [&](const ArrayValue&) -> ArrayValue {
    begin_turn(s.left, env, where);
    block(*s.body, env, false, false);
    return nullptr;
  });
}

/// In a turn that was begun the loop is not left yet.
void Walker::begin_turn(const std::string& left, const Env& env, Span where) {
  if (!left.empty()) set_hidden(left, flag(false, where), env, where);
}

void Walker::compiled_for(const ForStmt& s, const Value& over, const Env& env,
                          int64_t first, const RowValue& item) {
  const Span where = s.iterable->span;
  std::vector<Carry> carries = carries_of(s, env);
  RangeArrays bounds;
  const std::shared_ptr<const Rows> rows = rows_of(over);
  if (const auto* range = over.get_if<RangeValue>()) {
    bounds = range_arrays(walk_, *range, where);
  } else {
    const ir::Dim count = rows->length();
    const bool narrow = !count.is_constant() ||
                        count.value() == static_cast<int32_t>(count.value());
    auto parts = std::make_shared<std::vector<Value>>();
    const DType dtype = narrow ? DType::I32 : DType::I64;
    *parts = {walk_.constant_int(first, dtype, false, where), IntValue{count},
              IntValue{1}};
    bounds = range_arrays(walk_, RangeValue{std::move(parts)}, where);
  }
  const AxisSet varies = join(join(bounds.start->varies, bounds.stop->varies),
                              bounds.step->varies);
  Span from;
  for (const ArrayValue& bound : {bounds.start, bounds.stop, bounds.step})
    if (!bound->varies.empty() && !from) from = bound->varies_from;
  auto bind = [&](const ArrayValue& counter) {
    if (!checking()) begin_turn(s.left, env, where);
    const Env names = inner(env);
    const Value value = rows ? rows->row(walk_, counter, where) : counter;
    bind_pattern(s.pattern, item ? item(value) : value, names, false,
                 s.pattern.span);
    block(*s.body, names, false, false);
  };
  if (checking()) {
    Linearity by_jumps;
    check_loop(carries, varies, where, [&](ContextScope& context) {
      if (!varies.empty())
        context->varying_conditions.push_back({varies, where, true, from});
      const Condition left = left_loop(s.left, env, where);
      if (!left.varies.empty())
        context->varying_conditions.push_back(
            {left.varies, where, true, left.from()});
      if (left.array) by_jumps = left.array->linearity;
      ArrayValue counter = walk_.unknown_array(bounds.start->type);
      counter->varies = varies;
      counter->varies_from = where;
      bind(counter);
      return join(varies, left.varies);
    });
    set_linearity(carries, by_jumps);
    for (const ArrayValue& bound : {bounds.start, bounds.stop, bounds.step})
      set_linearity(carries, bound->linearity);
    if (has_array_bounds(over)) forbid_reverse(carries, where);
    return;
  }
  const auto op = [&](ir::Op what, const ArrayValue& a, const ArrayValue& b) {
    return walk_.add(what, {a, b}, ir::NoAttrs{}, where);
  };
  const auto number = [&](const ArrayValue& turn) {
    return range_number(walk_, bounds, turn, where);
  };
  // A loop that can be left goes on while it is not.
  const auto goes_on = [&](const ArrayValue& in_range) {
    if (s.left.empty()) return in_range;
    const ArrayValue left =
        walk_.to_array(env->find(s.left).first->value, where, "");
    return op(ir::Op::bit_and, in_range,
              walk_.add(ir::Op::bit_not, {left}, ir::NoAttrs{}, where));
  };
  LoopTurns turns;
  turns.varies = varies;
  const bool is_counted =
      bounds.known && bounds.known->turns() <= uint64_t{INT64_MAX};
  if (is_counted) turns.most = static_cast<int64_t>(bounds.known->turns());
  if (is_counted && (s.left.empty() || turns.most == 0)) {
    turns.count = std::exchange(turns.most, -1);
    loop_node(carries, turns, where, [&](const ArrayValue& turn) -> ArrayValue {
      bind(number(turn));
      return nullptr;
    });
    return;
  }
  // Where the counter cannot leave its type it is compared with the end.
  if (bounds.unit && !is_counted) {
    const bool up = *bounds.unit > 0;
    turns.counter = bounds.start;
    turns.condition = [&](const ArrayValue& counter) {
      return goes_on(op(up ? ir::Op::lt : ir::Op::gt, counter, bounds.stop));
    };
    loop_node(carries, turns, where, [&](const ArrayValue& counter) {
      bind(counter);
      return op(ir::Op::add, counter, bounds.step);
    });
    return;
  }
  const ArrayValue count =
      is_counted ? walk_.constant_int(turns.most, DType::I64, false, where)
                 : count_turns(walk_, bounds, where);
  const ArrayValue one = walk_.constant_int(1, DType::I64, false, where);
  turns.counter = walk_.constant_int(0, DType::I64, false, where);
  turns.condition = [&](const ArrayValue& turn) {
    return goes_on(op(ir::Op::lt, turn, count));
  };
  loop_node(carries, turns, where, [&](const ArrayValue& turn) {
    bind(number(turn));
    return op(ir::Op::add, turn, one);
  });
}

}  // namespace unisono::lang
