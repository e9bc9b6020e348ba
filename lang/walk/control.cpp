// if, for and while: a branch is taken where the condition is
// known, and otherwise both become one value.
#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "lang/context/derivative_facts.h"
#include "lang/context/function.h"
#include "lang/maps/maps.h"
#include "lang/ops/array_ops.h"
#include "lang/ops/carry.h"
#include "lang/ops/operators.h"
#include "lang/ops/range.h"
#include "lang/ops/sizes.h"
#include "lang/ops/text.h"
#include "lang/syntax/jumps.h"
#include "lang/walk/host_loop.h"
#include "lang/walk/walker.h"
#include "runtime/check.h"

namespace unisono::lang {

// ---- two values that meet --------------------------------------------------

namespace {

bool is_unit(const Value& value) {
  return value.is<NoneValue>() ||
         (value.tuple() && value.tuple()->items.empty());
}

/// Whether only running tells which branch the host takes, so that sizes and
/// lengths may differ between them; but where calls know which, it is left to
/// them.
bool host_chooses(const Walk& walk, bool array_decides) {
  return walk.mode() == Mode::check &&
         (array_decides ? !walk.in_compiled_code()
                        : !walk.context().checking_definition);
}

/// The type that both can have: a literal adopts the other's. Nothing if there
/// is none.
std::optional<WeakDType> common_type(WeakDType a, WeakDType b) {
  if (a == b) return a;
  WeakDType both = promote(a, b);
  both.weak = a.weak && b.weak;
  const bool fits =
      (a.weak || a.dtype == both.dtype) && (b.weak || b.dtype == both.dtype);
  return fits ? std::optional(both) : std::nullopt;
}

}  // namespace

std::optional<Value> Walker::meet_leaf(const Value& a, const Value& b,
                                       const Condition& c) {
  const auto *x = a.get_if<ArrayValue>(), *y = b.get_if<ArrayValue>();
  if (x && y && *x == *y) return a;
  if (same_host_value(a, b)) return a;
  if (is_unit(a) && is_unit(b)) return Value(NoneValue{});
  if (checking() && (!c.array || !walk_.in_compiled_code())) {
    // Only running tells which; one of them it is.
    if (!c.array && a.is<IntValue>() && b.is<IntValue>())
      return Value(IntValue{walk_.open_size()});
    if (a.is<BoolValue>() && b.is<BoolValue>())
      return Value(BoolValue{{}, c.open});
    if (a.is<StrValue>() && b.is<StrValue>()) return Value(StrValue{});
  }
  const auto ta = element_type(a), tb = element_type(b);
  if (!ta || !tb) return std::nullopt;
  const auto type = common_type(*ta, *tb);
  ir::Shape shape = x ? (*x)->type.shape : ir::Shape{};
  const ir::Shape other = y ? (*y)->type.shape : ir::Shape{};
  if (!type || shape.size() != other.size()) return std::nullopt;
  const bool any_size = host_chooses(walk_, c.array != nullptr);
  for (size_t i = 0; i < shape.size(); ++i) {
    if (shape[i] == other[i]) continue;
    const auto both = any_size  ? walk_.open_size()
                      : c.array ? same_size(shape[i], other[i])
                                : std::nullopt;
    if (!both) return std::nullopt;
    shape[i] = *both;
  }
  const ArrayValue met = type->weak
                             ? walk_.unknown_number(is_floating(type->dtype))
                             : walk_.unknown_array({type->dtype, shape});
  met->varies = c.varies;
  for (const ArrayValue* side : {x, y})
    if (side) met->depends = join(met->depends, (*side)->depends);
  met->linearity = either(x ? (*x)->linearity : Linearity{},
                          y ? (*y)->linearity : Linearity{});
  if (c.array && c.array->linearity.state == Linearity::State::other)
    met->linearity = c.array->linearity;
  for (const ArrayValue* side : {x, y}) {
    if (!side || (*side)->varies.empty()) continue;
    met->varies = join(met->varies, (*side)->varies);
    met->varies_from = (*side)->varies_from;
  }
  tell_derivatives(walk_.context(), *met);
  return Value(met);
}

std::optional<Value> Walker::meet(const Value& a, const Value& b,
                                  const Condition& c) {
  if (a.is<UnsetValue>() || b.is<UnsetValue>()) {
    const Value& given = a.is<UnsetValue>() ? b : a;
    if (checking() && !walk_.in_compiled_code()) return given;
    Value open = carry_shape(walk_, given, c.varies);
    for_each_leaf(open, [&](const Value& leaf) {
      if (ArrayCell* array = leaf.array(); array && !c.varies.empty())
        array->varies_from = c.from();
    });
    return open;
  }
  const TupleValue *s = a.tuple(), *t = b.tuple();
  if (s && t && s->items.size() == t->items.size()) {
    std::vector<Value> items;
    for (size_t i = 0; i < s->items.size(); ++i) {
      auto item = meet(s->items[i], t->items[i], c);
      if (!item) return std::nullopt;
      items.push_back(std::move(*item));
    }
    return make_tuple(std::move(items));
  }
  const bool any_length = a.is<ManyValue>() || b.is<ManyValue>() || (s && t);
  if (any_length && host_chooses(walk_, c.array != nullptr)) {
    const auto item = common_item(
        walk_, a, b,
        [&](const Value& x, const Value& y) { return meet(x, y, c); });
    if (item) return ManyValue{std::make_shared<const Value>(*item)};
  }
  const RecordValue *p = a.record(), *q = b.record();
  if (p && q && p->fields.size() == q->fields.size()) {
    std::vector<std::pair<std::string, Value>> fields;
    for (const auto& [name, value] : p->fields) {
      const Value* other = q->find(name);
      auto field = other ? meet(value, *other, c) : std::nullopt;
      if (!field) return std::nullopt;
      fields.emplace_back(name, std::move(*field));
    }
    return make_record(std::move(fields));
  }
  return meet_leaf(a, b, c);
}

// ---- conditions ------------------------------------------------------------

void Walker::require_condition(const Value& value, Span where) {
  if (value.is<BoolValue>()) return;
  const ArrayCell* array = value.array();
  if (array && is_bool(array->type.dtype) && array->type.rank() == 0) return;
  Diagnostic d = diagnostic(Code::condition_type, where, type_name(value));
  d.set_label(type_name(value));
  if (array && is_bool(array->type.dtype))
    d.set_help(
        "reduce it with `all(...)` or `any(...)`, or choose by "
        "element with `where`");
  else if (element_type(value))
    d.set_help("compare it: `x != 0`");
  else if (value.is<StrValue>())
    d.set_help("compare it: `s != \"\"`");
  else if (value.tuple())
    d.set_help("ask how many it has: `len(t) > 0`");
  walk_.fail(std::move(d));
}

Walker::Condition Walker::condition(const Value& value, Span where) {
  if (const auto* host = value.get_if<BoolValue>()) {
    if (!host->value && walk_.machine().compile_only && !checking())
      walk_.fail_needs_run(where);
    return {host->value, {}, {}, host->open};
  }
  require_condition(value, where);
  const auto* array = value.get_if<ArrayValue>();
  if (checking()) return {std::nullopt, *array, (*array)->varies};
  if (walk_.mode() == Mode::run || (*array)->constant)
    return {walk_.host_bytes(*array, where)[0] != 0, {}, {}};
  return {std::nullopt, *array, (*array)->varies};
}

JournalScope::JournalScope(Walker& walker)
    : walker_(walker), failed_(walker.failed()) {
  walker.state().journals.push_back({walker.state().last_call, {}});
}
JournalScope::~JournalScope() {
  if (open_) finish();
}
std::vector<Assigned> JournalScope::finish() {
  open_ = false;
  walker_.failed() = std::move(failed_);
  return walker_.take_back();
}

// ---- if --------------------------------------------------------------------

namespace {

bool encloses(const Environment* env, const Environment* holder) {
  for (; env; env = env->parent.get())
    if (env == holder) return true;
  return false;
}

/// The `var`s that either branch assigned, with what they hold after each.
struct Merged {
  Env environment;
  std::string name;
  Value one, other;
  Span where;
};

const std::string its_value = "its value";

std::vector<Merged> merge_changes(const std::vector<Assigned>& one,
                                  const std::vector<Assigned>& other,
                                  const Env& env) {
  std::vector<Merged> out;
  for (const Assigned& a : one)
    if (encloses(env.get(), a.environment.get()))
      out.push_back({a.environment, a.name, a.after, a.before, a.where});
  for (const Assigned& b : other) {
    if (!encloses(env.get(), b.environment.get())) continue;
    const auto same =
        std::find_if(out.begin(), out.end(), [&](const Merged& m) {
          return m.environment == b.environment && m.name == b.name;
        });
    if (same != out.end())
      same->other = b.after;
    else
      out.push_back({b.environment, b.name, b.before, b.after, b.where});
  }
  return out;
}

}  // namespace

Value Walker::branch(const Expr* body, const Env& env, bool wanted) {
  if (!body) return NoneValue{};
  if (const auto* chained = as<If>(*body))
    return if_expr(*chained, env, wanted);
  return block(*body, env, false, wanted);
}

/// Where the value is used, every condition leads to one.
Value Walker::if_value(const If& e, const Env& env) {
  const If* last = &e;
  while (const If* chained =
             last->otherwise ? as<If>(*last->otherwise) : nullptr)
    last = chained;
  if (!last->otherwise)
    walk_.fail(diagnostic(Code::no_else, last->span)
                   .set_help("write `if c { a } else { b }`"));
  return if_expr(e, env, true);
}

Value Walker::if_expr(const If& e, const Env& env, bool wanted) {
  const Span where = e.condition->span;
  const Condition c = condition(expr(*e.condition, env), where);
  wanted &= e.otherwise != nullptr;
  return choose({c, where, e.span, e.gives}, env, wanted, [&](bool holds) {
    return branch(holds ? e.then.get() : e.otherwise.get(), env, wanted);
  });
}

Value Walker::choose(const Choice& choice, const Env& env, bool wanted,
                     const std::function<Value(bool)>& walk_branch) {
  const Condition& c = choice.condition;
  if (c.known) {
    const Value value = walk_branch(*c.known);
    return wanted ? value : Value(NoneValue{});
  }
  ContextScope context(walk_);
  if (!c.varies.empty())
    context->varying_conditions.push_back(
        {c.varies, choice.condition_span, false, c.from()});

  Value values[2];
  std::vector<Assigned> changes[2];
  std::shared_ptr<GraphScope> scopes[2];
  std::optional<Failure> left_out;
  int left_branch = 0;
  for (int i = 0; i < 2; ++i)
    scopes[i] = walk_.with_scope([&] {
      JournalScope journal(*this);
      try {
        values[i] = walk_branch(i == 0);
        changes[i] = journal.finish();
      } catch (const Failure& failure) {
        if (left_out || !is_own_result(failure)) throw;
        left_out = failure;
        left_branch = i;
      }
    });
  if (left_out) {
    s_.asked_result = nullptr;
    values[left_branch] = values[1 - left_branch];
    changes[left_branch] = changes[1 - left_branch];
    s_.frames.back().left_out = std::move(left_out->diagnostic);
  }
  if (!wanted) values[0] = values[1] = NoneValue{};

  // The value of the `if`, then each `var`.
  std::vector<Merged> vars = merge_changes(changes[0], changes[1], env);
  std::vector<Value> results;
  auto add_result = [&](const Value& a, const Value& b,
                        const std::string& what) {
    auto met = meet(a, b, c);
    if (!met && type_name(a) == type_name(b)) {
      Diagnostic unknown =
          diagnostic(Code::host_value_in_compiled_code, choice.condition_span,
                     fmt::format("this choice between two values of type {}",
                                 type_name(a)));
      unknown.open = c.open;
      walk_.fail(std::move(unknown));
    }
    if (!met) {
      const std::string one = type_name(a), other = type_name(b);
      const bool by_return = choice.gives && what == its_value;
      Diagnostic differ =
          by_return ? diagnostic(Code::results_differ, choice.whole, one, other)
                    : diagnostic(Code::branches_differ, choice.whole, what, one,
                                 other);
      differ.set_label(fmt::format("{} or {}", one, other));
      if (by_return && !s_.frames.empty())
        for (const auto& [begin, returned] : s_.frames.back().returned)
          if (const std::string type = type_name(returned.value);
              type == one || type == other)
            differ.add_note(returned.expression->span,
                            fmt::format("{} is returned here", type));
      if (by_return && (is_unit(a) || is_unit(b)))
        differ.set_help(
            "where it reaches its end, the last expression is what it gives: "
            "end it with one, or with a `return`");
      // Which branch is taken may depend on sizes, which calls know, or the
      // run.
      throw Failure{
          std::move(differ), false,
          c.open || (walk_.context().checking_definition && !c.array)};
    }
    results.push_back(std::move(*met));
  };
  add_result(values[0], values[1], its_value);
  for (const Merged& var : vars)
    add_result(var.one, var.other, fmt::format("`{}`", var.name));
  if (!checking()) {
    std::vector<Value> ones{values[0]}, others{values[1]};
    for (const Merged& var : vars) {
      ones.push_back(var.one);
      others.push_back(var.other);
    }
    results = if_node(c.array, scopes[0], scopes[1], ones, others, results,
                      choice.whole);
  }
  for (size_t i = 0; i < vars.size(); ++i)
    assign(vars[i].environment, vars[i].name, results[i + 1], vars[i].where);
  return results[0];
}

// ---- loops on the host -----------------------------------------------------

namespace {

/// The names assigned in statements below, but not in functions defined there.
void collect_assigned(const Expr& e, std::vector<std::string>& out);

/// The variables that an assignment to `target` changes.
void collect_target(const Expr& target, std::vector<std::string>& out) {
  if (const auto* item = as<Index>(target))
    return collect_target(*item->object, out);
  if (const auto* part = as<Field>(target))
    return collect_target(*part->object, out);
  if (const auto* targets = as<Tuple>(target))
    for (const ExprPtr& each : targets->items) collect_target(*each, out);
  const auto* name = as<NameExpr>(target);
  if (name && std::find(out.begin(), out.end(), name->text) == out.end())
    out.push_back(name->text);
}

void collect_assigned(const Stmt& s, std::vector<std::string>& out) {
  if (s.kind == StmtKind::DefStmt) return;
  if (const auto* assign = as<AssignStmt>(s))
    collect_target(*assign->target, out);
  if (const auto* jump = as<JumpStmt>(s)) {
    const auto add = [&](const std::string& name) {
      if (std::ranges::find(out, name) == out.end()) out.push_back(name);
    };
    std::ranges::for_each(jump->sets, add);
    if (jump->jump == JumpStmt::Jump::give) add(return_value);
  }
  for_each_child(s, [&](const Expr& child) { collect_assigned(child, out); });
}

void collect_assigned(const Expr& e, std::vector<std::string>& out) {
  if (e.kind == ExprKind::FnExpr) return;
  for_each_child(
      e, [&](const Expr& child) { collect_assigned(child, out); },
      [&](const Stmt& child) { collect_assigned(child, out); });
}

}  // namespace

std::vector<Carry> Walker::carries_of(const Stmt& loop, const Env& env) {
  auto known = s_.assigned_names.find(&loop);
  if (known == s_.assigned_names.end()) {
    std::vector<std::string> names;
    collect_assigned(loop, names);
    known = s_.assigned_names.emplace(&loop, std::move(names)).first;
  }
  std::vector<Carry> out;
  for (const std::string& name : known->second) {
    auto [binding, holder] = env->find(name);
    if (!binding || binding->poisoned || !binding->is_var ||
        holder->call != env->call)
      continue;
    Value value = binding->value;
    if (value.is<BoolValue>()) value = walk_.to_array(value, loop.span, "");
    out.push_back({holder->shared_from_this(), name, std::move(value)});
  }
  return out;
}

// ---- jumps -----------------------------------------------------------------

/// What a flag holds. The host's walk looks at it without arrays.
Value Walker::flag(bool value, Span where) {
  if (walk_.mode() == Mode::run) return BoolValue{value};
  return walk_.to_array(BoolValue{value}, where, "");
}

void Walker::declare_hidden(const std::string& name, const Env& env,
                            Span where) {
  define(env, name,
         name == return_value ? Value(UnsetValue{}) : flag(false, where), true,
         where);
}

void Walker::set_hidden(const std::string& name, Value value, const Env& env,
                        Span where) {
  const auto [binding, holder] = env->find(name);
  CHECK(binding);
  set_variable(holder->shared_from_this(), name, *binding, std::move(value),
               where);
}

void Walker::jump_stmt(const JumpStmt& s, const Env& env) {
  if (s.jump == JumpStmt::Jump::give) {
    Value value = s.value ? expr(*s.value, env) : NoneValue{};
    if (walk_.mode() != Mode::run) {
      value = as_variable(walk_, value, s.span);
      if (checking() && s.value && !s_.frames.empty())
        s_.frames.back().returned.insert_or_assign(
            s.value->span.begin, Returned{value, s.value.get()});
      value = adopt(walk_, value, env->find(return_value).first->value, s.span);
    }
    set_hidden(return_value, std::move(value), env, s.span);
  }
  for (const std::string& name : s.sets)
    set_hidden(name, flag(true, s.span), env, s.span);
}

Env Walker::loop_scope(const std::string& left, const Env& env, Span where) {
  if (left.empty()) return env;
  const Env own = inner(env);
  declare_hidden(left, own, where);
  return own;
}

Walker::Condition Walker::left_loop(const std::string& left, const Env& env,
                                    Span where) {
  if (left.empty()) return {false, {}, {}};
  const Value& value = env->find(left).first->value;
  if (const auto* array = value.get_if<ArrayValue>();
      array && (*array)->constant)
    return {(*array)->constant->at(0) != 0, {}, {}};
  return condition(value, where);
}

/// Between the turns of a loop that the host runs.
bool Walker::is_left(const ForStmt& s, const Env& env) {
  return *left_loop(s.left, env, s.span).known;
}

/// An integer that the host needs now (run mode).
int64_t Walker::host_int(const Value& value, Span where) {
  if (const auto* i = value.get_if<IntValue>()) {
    if (!i->value.is_constant())
      walk_.fail(
          diagnostic(Code::not_known_int, where, "this", i->value.to_string()));
    return i->value.value();
  }
  const ArrayValue array = walk_.to_array(value, where, "a range");
  const std::vector<uint8_t> bytes = walk_.host_bytes(array, where);
  return with_dtype(array->type.dtype, [&]<DType D>() -> int64_t {
    using T = typename StorageOf<D>::type;
    if constexpr (std::is_integral_v<T>) {
      T element;
      std::memcpy(&element, bytes.data(), sizeof element);
      return static_cast<int64_t>(element);
    }
    return 0;
  });
}

/// A scalar on the device: not a constant, so that every turn of a loop has the
/// same graph.
ArrayValue Walker::host_counter(uint64_t bits, DType dtype, Span where) {
  return walk_.on_first_device(dtype, &bits, where);  // little endian
}

KnownRange Walker::host_range(const RangeValue& range, Span where) {
  const std::vector<Value>& parts = *range.start_stop_step;
  const DType dtype = range_type(walk_, range, where);
  const auto part = [&](int i) {
    const int64_t value = host_int(parts[i], where);
    if (parts[i].is<IntValue>())
      walk_.constant_int(value, dtype, false, where);  // it fits, or an error
    return static_cast<uint64_t>(value);
  };
  const KnownRange known{dtype, part(0), part(1), part(2)};
  if (known.step == 0)
    walk_.fail(diagnostic(Code::zero_step, where, std::string_view("`range`")));
  return known;
}

void Walker::turn(const Pattern& pattern, const Value& value, const Expr& body,
                  const Env& env, bool flush_each) {
  poll(pattern.span);
  const Env names = inner(env);
  bind_pattern(pattern, value, names, false, pattern.span);
  block(body, names, flush_each, false);
}

namespace {
/// The range from turn `k` on.
Value rest_of(const KnownRange& range, uint64_t k) {
  const auto number = [&](uint64_t bits) -> Value {
    auto cell = std::make_shared<ArrayCell>();
    cell->type = {range.dtype, {}};
    std::vector<uint8_t> bytes(static_cast<size_t>(byte_size(range.dtype)));
    std::memcpy(bytes.data(), &bits, bytes.size());  // little endian
    cell->constant =
        std::make_shared<const std::vector<uint8_t>>(std::move(bytes));
    return cell;
  };
  return RangeValue{std::make_shared<const std::vector<Value>>(std::vector{
      number(range.at(k)), number(range.stop), number(range.step)})};
}
}  // namespace

/// A `for` over the items of a tuple, which compiled code unrolls.
void Walker::tuple_for(const ForStmt& s, const TupleValue& tuple,
                       const ProgressValue* shown, const Env& env) {
  HostLoop loop(*this, s, static_cast<int64_t>(tuple.items.size()), shown, env);
  for (const Value& item : tuple.items) {
    const Condition left = left_loop(s.left, env, s.iterable->span);
    if (left.known && *left.known) break;
    loop.turn();
    choose({left, s.iterable->span, s.span}, env, false, [&](bool is_left) {
      if (!is_left)
        turn(s.pattern, item, *s.body, env, walk_.mode() == Mode::run);
      return NoneValue{};
    });
  }
  loop.end();
}

/// A `for` over what is made as it goes. Each type of item is checked.
void Walker::for_items(const ForStmt& s, const Sequence& iterable,
                       const ProgressValue* shown, const Env& env) {
  const Span where = s.iterable->span;
  if (walk_.in_compiled_code())
    walk_.fail(diagnostic(Code::not_iterable, where, iterable.type_name())
                   .set_help("they are made outside of compiled code: loop "
                             "there, and call the compiled function in it"));
  if (checking()) {
    std::vector<Carry> carries = carries_of(s, env);
    check_loop(carries, {}, where, [&](ContextScope&) {
      for (const Value& item : iterable.kinds()) {
        const size_t found = s_.found.size();
        try {
          turn(s.pattern, item, *s.body, env, false);
        } catch (...) {
          const bool first = &item == &iterable.kinds().front();
          for (size_t i = found; i < s_.found.size() && !first; ++i)
            s_.found[i].add_note(where, iterable.last_kind());
          throw;
        }
      }
      return AxisSet();
    });
    return;
  }
  if (walk_.machine().compile_only) {
    for (const Value& item : iterable.kinds())
      turn(s.pattern, walk_.with_absent(item), *s.body, env, true);
    return;
  }
  const int64_t all = iterable.length().value();
  HostLoop loop(*this, s, all, shown, env);
  const std::unique_ptr<Items> items = iterable.items(walk_, where);
  for (int64_t i = 0; i < all && !is_left(s, env); ++i) {
    loop.turn();
    turn(s.pattern, items->next(walk_, where), *s.body, env, true);
  }
  loop.end();
}

/// A `for` on the host that counts.
void Walker::counted_for(const ForStmt& s, const KnownRange& range,
                         const ProgressValue* shown, const Env& env) {
  const Span where = s.iterable->span;
  const uint64_t turns = range.turns();
  HostLoop loop(*this, s, static_cast<int64_t>(turns), shown, env);
  for (uint64_t k = 0; k < turns && !is_left(s, env); ++k) {
    if (loop.is_hot()) {
      const auto taken = loop.run(
          [&](int64_t more) { compiled_for(s, rest_of(range, k + more), env); },
          KnownRange{range.dtype, range.at(k), range.stop, range.step});
      if (!taken) break;
      k += *taken;
    }
    loop.turn();
    turn(s.pattern, host_counter(range.at(k), range.dtype, where), *s.body, env,
         true);
  }
  loop.end();
}

namespace {
/// Whether an array in it has no elements along an axis.
bool has_empty(const Value& value) {
  bool found = false;
  for_each_leaf(value, [&](const Value& leaf) {
    if (const ArrayCell* array = leaf.array())
      found |= std::ranges::count(array->type.shape, ir::Dim(0)) > 0;
  });
  return found;
}
}  // namespace

void Walker::for_stmt(const ForStmt& s, const Env& around) {
  const Span where = s.iterable->span;
  Value over = expr(*s.iterable, around);
  const Env env = loop_scope(s.left, around, where);
  std::optional<ProgressValue> asked;
  while (const auto* progress = over.get_if<ProgressValue>()) {
    asked = *progress;
    over = *asked->over;
  }
  const ProgressValue* shown = asked ? &*asked : nullptr;
  const auto any_item = [&](const TupleValue& tuple) {
    std::optional<Value> item;
    for (const Value& each : tuple.items) {
      item = item ? meet(*item, each, {}) : each;
      if (!item) break;
    }
    return item;
  };
  if (const auto* text = over.get_if<StrValue>();
      text && text->value && walk_.mode() == Mode::run)
    return text_for(s, text->value, shown, env);
  over = text_as_items(walk_, over, where);
  if (const auto* made = over.get_if<IterableValue>())
    if (const Sequence* sequence = made->iterable->sequence())
      return for_items(s, *sequence, shown, env);
  if (const TupleValue* tuple = over.tuple()) {
    if (!checking() || walk_.in_compiled_code())
      return tuple_for(s, *tuple, shown, env);
    // What is empty before the loop may be longer where it is read, though each
    // turn is walked: then it is checked as a loop over any items.
    std::vector<Carry> carries = carries_of(s, env);
    const size_t found = s_.found.size();
    try {
      return tuple_for(s, *tuple, shown, env);
    } catch (const Failure& failure) {
      const auto item = any_item(*tuple);
      if (!item || !std::ranges::any_of(carries, has_empty, &Carry::value) ||
          !may_be_of_empty(failure, found))
        throw;
      forget_found(found);
      for (const Carry& carry : carries)
        assign(carry.environment, carry.name, carry.value);
      over = ManyValue{std::make_shared<const Value>(*item)};
    }
  }
  if (const auto* many = over.get_if<ManyValue>()) {
    std::vector<Carry> carries = carries_of(s, env);
    check_loop(carries, {}, where, [&](ContextScope&) {
      turn(s.pattern, *many->item, *s.body, env, false);
      return AxisSet();
    });
    return;
  }
  const auto* range = over.get_if<RangeValue>();
  const std::shared_ptr<const Rows> rows = rows_of(over);
  if (!range && !rows) {
    const bool number = element_type(over).has_value();
    walk_.fail(diagnostic(Code::not_iterable, where, type_name(over))
                   .set_help(number
                                 ? "count with `range(n)`"
                                 : "a loop runs over a range, the rows of an "
                                   "array, a tuple, or the characters of a "
                                   "`str`"));
  }
  if (range)
    if (const auto* step = (*range->start_stop_step)[2].get_if<IntValue>();
        step && step->value == ir::Dim(0))
      walk_.fail(
          diagnostic(Code::zero_step, where, std::string_view("`range`")));
  if (walk_.mode() != Mode::run) {
    compiled_for(s, over, env);
    return;
  }
  if (range) return counted_for(s, host_range(*range, where), shown, env);
  const int64_t count = rows->length().value();
  const DType dtype =
      count == static_cast<int32_t>(count) ? DType::I32 : DType::I64;
  HostLoop loop(*this, s, count, shown, env);
  for (int64_t i = 0; i < count && !is_left(s, env); ++i) {
    if (loop.is_hot()) {
      const auto taken =
          loop.run([&](int64_t more) { compiled_for(s, over, env, i + more); });
      if (!taken) break;
      i += static_cast<int64_t>(*taken);
    }
    loop.turn();
    const ArrayValue at = host_counter(static_cast<uint64_t>(i), dtype, where);
    turn(s.pattern, rows->row(walk_, at, where), *s.body, env, true);
  }
  loop.end();
}

/// Nothing is computed for a loop that was left: `not left and condition`, of
/// which compiled code would compute both sides.
Value Walker::while_condition(const WhileStmt& s, const Env& env) {
  if (s.left.empty()) return expr(*s.condition, env);
  const Span where = s.condition->span;
  const Expr& holds = *static_cast<const Binary&>(*s.condition).right;
  if (!walk_.in_compiled_code() || !may_matter(holds))
    return expr(*s.condition, env);
  const Condition left = left_loop(s.left, env, where);
  return choose({left, where, where}, env, true, [&](bool is_left) {
    if (is_left) return flag(false, where);
    Value value = expr(holds, env);
    require_condition(value, where);
    return value;
  });
}

void Walker::while_stmt(const WhileStmt& s, const Env& around) {
  const Env env = loop_scope(s.left, around, s.condition->span);
  if (walk_.mode() != Mode::run) {
    compiled_while(s, env);
    return;
  }
  const std::optional<int64_t> most = while_maximum(s, env);
  HostLoop loop(*this, s, -1, nullptr, env);
  for (int64_t taken = 0;; ++taken) {
    poll(s.span);
    // Code of the loop alone begins with one that was not left.
    if (*left_loop(s.left, env, s.span).known) return loop.end();
    if (loop.is_hot()) {
      Env own;  // where a loop with a maximum says whether it goes on
      const auto more = loop.run([&](int64_t more) {
        if (most)
          own = bounded_while(s, env, *most - taken - more);
        else
          compiled_while(s, env);
      });
      if (!more) {
        if (most &&
            *condition(own->names.begin()->second.value, s.condition->span)
                 .known)
          fail_not_ended(s, *most);
        return loop.end();
      }
      taken += static_cast<int64_t>(*more);
    }
    loop.turn();
    const Condition c = condition(while_condition(s, env), s.condition->span);
    if (!*c.known) return loop.end();
    if (taken == most) fail_not_ended(s, *most);
    block(*s.body, env, true, false);
  }
}

}  // namespace unisono::lang
