// Comprehensions. Their members are computed at once, as those of a map; on the
// host, what compiled code cannot do goes member by member.
#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "lang/maps/maps.h"
#include "lang/ops/array_ops.h"
#include "lang/ops/carry.h"
#include "lang/ops/elements.h"
#include "lang/ops/indexing.h"
#include "lang/ops/operators.h"
#include "lang/ops/range.h"
#include "lang/ops/text.h"
#include "lang/sizes/known_sizes.h"
#include "lang/walk/function_code.h"
#include "runtime/tuning/tuning.h"

namespace unisono::lang {

namespace {

/// Errors that may say no more than that compiled code cannot do it.
bool may_be_of_compiled_code(Code code) {
  switch (code) {
    case Code::recursion_too_deep:
    case Code::wrong_argument:  // a scalar for an `int`
    case Code::argument_not_known:
    case Code::type_mismatch:
    case Code::not_known_int:
    case Code::host_value_in_compiled_code:
    case Code::slice_bound:
    case Code::size_known_at_run_time:
    case Code::tuple_index:
    case Code::int_in_compiled_code:
    case Code::result_not_array:
    case Code::not_in_compiled_code: return true;
    default: return false;
  }
}

bool has_text(const Value& value) {
  bool found = false;
  for_each_leaf(value,
                [&](const Value& leaf) { found |= leaf.is<StrValue>(); });
  return found;
}

/// On the host, with ints for scalars.
Value with_known_ends(Walk& walk, const RangeValue& range, Span where) {
  std::vector<Value> parts = *range.start_stop_step;
  for (Value& part : parts)
    if (const auto number = int_of(walk, part, where)) part = IntValue{*number};
  return RangeValue{
      std::make_shared<const std::vector<Value>>(std::move(parts))};
}

ir::Dim member_count(Walk& walk, const Value& over, Span where) {
  const auto* range = over.get_if<RangeValue>();
  return range ? range_count(walk, *range, "the size of a comprehension", where)
               : rows_of(over)->length();
}

/// Ints, or scalars of one type, one at each place `leaf` of some items, as an
/// array; null if it takes an operation, or these are other values.
ArrayValue stacked_scalars(Walk& walk,
                           const std::vector<std::vector<Value>>& items,
                           size_t leaf) {
  if (!is_computed_here(walk)) return nullptr;
  const auto as_i32 = [](const Value& value) {
    const auto* i = value.get_if<IntValue>();
    return i && i->value.is_constant() && !i->value.overflowed() &&
                   std::in_range<int32_t>(i->value.value())
               ? std::optional(static_cast<int32_t>(i->value.value()))
               : std::nullopt;
  };
  const ArrayCell* first = items.front()[leaf].array();
  const DType dtype = first ? first->type.dtype : DType::I32;
  if (first ? first->weak : !as_i32(items.front()[leaf])) return nullptr;
  auto [out, data] =
      unset_array(walk, dtype, {ir::Dim(static_cast<int64_t>(items.size()))});
  if (!out) return nullptr;
  const auto bytes = static_cast<size_t>(byte_size(dtype));
  for (const std::vector<Value>& item : items) {
    const ArrayCell* cell = item[leaf].array();
    const std::optional<int32_t> number = as_i32(item[leaf]);
    const bool alike = first ? cell && cell->type == first->type && !cell->weak
                             : number.has_value();
    const uint8_t* element =
        first && alike ? readable_elements(*cell) : nullptr;
    if (!alike || (first && (!element || first->type.rank() != 0)))
      return nullptr;
    if (first)
      std::memcpy(data, element, bytes);
    else
      std::memcpy(data, &*number, bytes);
    data += bytes;
  }
  return out;
}

/// How many items there are, if that is known.
int64_t item_count(const Value& over) {
  if (const TupleValue* tuple = over.tuple())
    return static_cast<int64_t>(tuple->items.size());
  if (const auto rows = rows_of(over))
    return rows->length().is_constant() ? rows->length().value() : 0;
  const auto* range = over.get_if<RangeValue>();
  if (!range) return 0;
  const auto* stop = (*range->start_stop_step)[1].get_if<IntValue>();
  return stop && stop->value.is_constant() ? std::abs(stop->value.value()) : 0;
}

}  // namespace

/// What the members of a comprehension are together: an array or a tree of
/// arrays; of text a tuple.
Value Walker::collected(std::vector<Value> items, Span where) {
  if (has_text(items.front())) return make_tuple(std::move(items));
  std::vector<std::vector<Value>> leaves;  // of each item
  for (const Value& item : items) {
    leaves.emplace_back();
    for_each_leaf(item,
                  [&](const Value& leaf) { leaves.back().push_back(leaf); });
  }
  const auto joined = [&](std::string_view builtin, std::vector<Value> parts) {
    return call_builtin(walk_, *find_builtin(builtin),
                        {{make_tuple(std::move(parts)), where}}, {}, where);
  };
  const size_t width = leaves.front().size();
  const bool alike = std::ranges::all_of(
      leaves, [&](const auto& of) { return of.size() == width; });
  if (!alike) return joined("stack", std::move(items));  // the error
  size_t leaf = 0;
  return map_leaves(items.front(), [&](const Value&) -> Value {
    if (items.size() > 1 && alike)
      if (ArrayValue all = stacked_scalars(walk_, leaves, leaf)) {
        ++leaf;
        return all;
      }
    // An operation has few operands.
    const size_t most = tuning().most_stacked_at_once;
    std::vector<Value> parts;
    for (size_t i = 0; i < items.size(); i += most) {
      std::vector<Value> some;
      for (size_t k = i; k < std::min(items.size(), i + most); ++k)
        some.push_back(leaves[k][leaf]);
      parts.push_back(joined("stack", std::move(some)));
      if (walk_.mode() == Mode::run) walk_.flush(where);
    }
    ++leaf;
    return parts.size() == 1 ? parts.front()
                             : joined("concat", std::move(parts));
  });
}

/// While checking: what `collected` gives of `count` such items; without
/// `count` only running tells how many there are.
Value Walker::collected_any(const Value& item, std::optional<ir::Dim> count,
                            Span where) {
  if (has_text(item)) {
    if (!count || !count->is_constant() || count->value() > 1000)
      return ManyValue{std::make_shared<const Value>(item)};
    return make_tuple(
        std::vector<Value>(static_cast<size_t>(count->value()), item));
  }
  const ir::Dim size = count ? *count : unknown_int(walk_).value;
  return map_leaves(collected({item}, where), [&](const Value& leaf) {
    ir::Type type = leaf.array()->type;
    type.shape[0] = size;
    return Value(walk_.unknown_array(std::move(type)));
  });
}

/// On the host: one member after the other, each of which is walked as the
/// body of a loop is.
Value Walker::by_turns(const Value& over, const Member& member, Span where,
                       Span all) {
  const auto* range = over.get_if<RangeValue>();
  const std::shared_ptr<const Rows> rows = rows_of(over);
  const ir::Dim count = member_count(walk_, over, where);
  const DType dtype = range ? range_type(walk_, *range, where) : DType::I32;
  if (checking()) {
    const ArrayValue at = walk_.unknown_array({dtype, {}});
    const Value item = member(range ? Value(at) : rows->row(walk_, at, where));
    return collected_any(item, count, all);
  }
  const int64_t turns = count.value();
  if (turns == 0)
    walk_.fail(
        diagnostic(Code::empty_array, all, "a comprehension over nothing")
            .set_help("where there may be nothing, decide first"));
  const std::optional<KnownRange> known =
      range ? std::optional(host_range(*range, where)) : std::nullopt;
  std::vector<Value> items;
  for (int64_t i = 0; i < turns; ++i) {
    poll(where);
    const uint64_t k = static_cast<uint64_t>(i);
    const ArrayValue at = host_counter(known ? known->at(k) : k, dtype, where);
    items.push_back(member(known ? Value(at) : rows->row(walk_, at, where)));
    walk_.flush(all);
  }
  return collected(std::move(items), all);
}

/// The rows, or the numbers of a range, as arrays of `count` members.
Value Walker::columns_of(const Value& over, const ir::Dim& count, Span where) {
  const auto* range = over.get_if<RangeValue>();
  if (!range) return rows_of(over)->columns(walk_, where);
  const std::vector<Value>& parts = *range->start_stop_step;
  ArrayValue index = iota(walk_, {DType::I32, {count}}, 0, where);
  const auto scaled = [&](BinaryOp op, const Value& by) {
    return *binary(walk_, op, {index, where}, {by, where}, where, where)
                .get_if<ArrayValue>();
  };
  if (!same_host_value(parts[2], IntValue{1}))
    index = scaled(BinaryOp::mul, parts[2]);
  if (!same_host_value(parts[0], IntValue{0}))
    index = scaled(BinaryOp::add, parts[0]);
  return index;
}

/// All members at once, as compiled code.
Value Walker::mapped(const Value& over, const Member& member, Span where,
                     Span all) {
  const ir::Dim count = member_count(walk_, over, where);
  return map_members(
      walk_, count, {columns_of(over, count, where)},
      [&](const std::vector<Value>& members) { return member(members[0]); },
      all);
}

/// What `member` gives of each number of a range or each row: `part`, which is
/// the element or the condition of a comprehension. The check finds out whether
/// it can be code, or the run, where that is left to it.
Value Walker::members(const Expr& part, const Value& over, const Member& member,
                      Span where, Span all) {
  if (walk_.in_compiled_code()) return mapped(over, member, where, all);
  const bool is_code = !s_.by_turns.contains(&part);
  if (is_code && !checking() && s_.as_code.contains(&part)) {
    const HostSlices cut(walk_);
    return mapped(over, member, where, all);
  }
  if (is_code) {
    const auto reports = [&]() -> const std::vector<Diagnostic>& {
      return checking() ? s_.found : walk_.diagnostics().all();
    };
    const size_t found = reports().size(), types = s_.types.size();
    const bool gave_up = s_.gave_up;
    try {
      const HostSlices cut(walk_);
      const Value value = mapped(over, member, where, all);
      s_.as_code.insert(&part);
      return value;
    } catch (const Failure& failure) {
      const bool told = failure.reported && reports().size() > found;
      if (failure.open || failure.reported != told) throw;
      const Code code = told ? reports()[found].code : failure.diagnostic.code;
      if (!may_be_of_compiled_code(code)) throw;
      // The next comprehension may meet the same.
      forget_found(found);
      std::erase_if(s_.memo, [](const auto& call) {
        return call.second.failed && !call.second.open;
      });
      while (s_.types.size() > types) s_.types.pop_back();
      s_.gave_up = gave_up;  // a recursion without end does
      s_.by_turns.insert(&part);
    }
  }
  return by_turns(over, member, where, all);
}

/// Those rows, or numbers of a range, of which the condition holds.
Value Walker::selected(const Comprehension& e, const Value& over,
                       const Member& holds, Span where) {
  const Value keep = members(*e.condition, over, holds, where, e.span);
  Value tree = columns_of(over, member_count(walk_, over, where), where);
  IndexItem mask;
  mask.value = keep;
  mask.where = e.condition->span;
  std::optional<ir::Dim> count;
  tree = map_leaves(tree, [&](const Value& leaf) -> Value {
    Value part = index(walk_, leaf, {mask}, e.condition->span);
    ir::Type type = part.array()->type;
    if (!count) count = type.shape[0];
    if (type.shape[0] == *count) return part;
    type.shape[0] = *count;  // while checking: of each leaf another symbol
    return taken_for(walk_, *part.get_if<ArrayValue>(), std::move(type.shape));
  });
  return IterableValue{std::make_shared<const Rows>(std::move(tree), *count)};
}

/// The items that a `for` would take one by one.
Value Walker::all_items(const Sequence& sequence, Span where) {
  std::vector<Value> out;
  const std::unique_ptr<Items> items = sequence.items(walk_, where);
  for (int64_t i = 0; i < sequence.length().value(); ++i)
    out.push_back(items->next(walk_, where));
  return make_tuple(std::move(out));
}

Value Walker::generate(const Comprehension& e, size_t generator,
                       const Env& env) {
  if (generator == e.generators.size()) return expr(*e.element, env);
  const Generator& g = e.generators[generator];
  const Span where = g.iterable->span;
  Value over = expr(*g.iterable, env);
  while (const auto* progress = over.get_if<ProgressValue>())
    over = Value(*progress->over);
  over = text_as_items(walk_, over, where);
  const auto named = [&](const Value& value) {
    const Env names = inner(env);
    names->call = ++s_.last_call;  // what is around is not assigned
    bind_pattern(g.pattern, value, names, false, g.pattern.span);
    return names;
  };
  const Member member = [&](const Value& value) {
    return generate(e, generator + 1, named(value));
  };
  if (const auto* made = over.get_if<IterableValue>();
      made && made->iterable->sequence() && walk_.mode() == Mode::run)
    over = all_items(*made->iterable->sequence(), where);
  if (const auto* range = over.get_if<RangeValue>();
      range && !walk_.in_compiled_code())
    over = with_known_ends(walk_, *range, where);
  // The innermost generator's members and conditions may be code.
  const auto coded = [&](const Expr& part, const Member& walked) {
    const bool last = generator + 1 == e.generators.size();
    return last ? as_code(part, g.pattern, env, item_count(over), walked)
                : walked;
  };
  const Member one = coded(*e.element, member);
  const Member asks = [&](const Value& value) {
    return expr(*e.condition, named(value));
  };
  const Member asked = e.condition ? coded(*e.condition, asks) : asks;
  // The condition as a value: the host may know it.
  const Member holds = [&](const Value& value) -> Value {
    const Condition c = condition(asked(value), e.condition->span);
    if (c.known) return BoolValue{c.known};
    return c.array ? Value(c.array) : walk_.unknown_array({DType::Bool, {}});
  };
  if (const auto* many = over.get_if<ManyValue>()) {
    if (e.condition) holds(*many->item);
    return collected_any(member(*many->item), {}, e.span);
  }
  if (const TupleValue* tuple = over.tuple()) {
    std::vector<Value> items;
    bool open = false;  // how many there are
    for (const Value& item : tuple->items) {
      if (e.condition) {
        const Value held = holds(item);
        const auto* host = held.get_if<BoolValue>();
        const bool known = host && host->value;
        if (known && !*host->value) continue;
        open |= !known;
      }
      items.push_back(one(item));
    }
    if (items.empty())
      walk_.fail(diagnostic(Code::empty_array, e.span,
                            "a comprehension over a tuple of nothing")
                     .set_help("where there may be nothing, decide first: `if "
                               "len(xs) > 0 { [f(x) for x in xs] } else { "
                               "zeros(f32[0]) }`"));
    return open ? collected_any(items.front(), {}, e.span)
                : collected(std::move(items), e.span);
  }
  const auto* range = over.get_if<RangeValue>();
  if (!range && !rows_of(over))
    walk_.fail(
        diagnostic(Code::not_iterable, where, type_name(over))
            .set_help("a comprehension runs over a range, the rows of an "
                      "array, or a tuple"));
  if (e.condition) over = selected(e, over, holds, where);
  return members(*e.element, over, one, where, e.span);
}

/// The turns of a comprehension over numbers that are known, each of which is
/// an `int`. False if they are not known, when the program is checked, or are
/// very many; the size of an axis is asked of the calls of a definition.
bool Walker::add_known_turns(const Comprehension& e, size_t generator,
                             const Env& env, std::vector<Value>& items) {
  constexpr uint64_t most = 1 << 20;
  if (generator == e.generators.size()) {
    if (e.condition) {
      const Condition c = condition(expr(*e.condition, env), e.condition->span);
      if (!c.known) return false;
      if (!*c.known) return true;
    }
    items.push_back(members_in_brackets(*e.element, env));
    return items.size() < most;
  }
  const Generator& g = e.generators[generator];
  const Value over = members_in_brackets(*g.iterable, env);
  const auto turn = [&](const Value& value) {
    poll(g.pattern.span);
    const Env names = inner(env);
    names->call = ++s_.last_call;  // what is around is not assigned
    bind_pattern(g.pattern, value, names, false, g.pattern.span);
    return add_known_turns(e, generator + 1, names, items);
  };
  if (const TupleValue* tuple = over.tuple())
    return std::ranges::all_of(tuple->items, turn);
  const auto* range = over.get_if<RangeValue>();
  if (!range) return false;
  for (const Value& part : *range->start_stop_step) {
    const auto* number = part.get_if<IntValue>();
    if (!number) return false;
    if (!number->value.is_constant())
      walk_.fail(diagnostic(Code::argument_not_known, g.iterable->span,
                            "the range of this comprehension")
                     .about(number->value));
  }
  const KnownRange known = host_range(*range, g.iterable->span);
  if (known.turns() > most) return false;
  for (uint64_t k = 0; k < known.turns(); ++k)
    if (!turn(IntValue{static_cast<int64_t>(known.at(k))})) return false;
  return true;
}

/// Of an argument that says which members meet: brackets hold what a tuple
/// would, not the elements of an array, so `[(0, 1), (1, 0)]` are two pairs,
/// and `[(i, i + 1) for i in range(3)]` three.
Value Walker::members_in_brackets(const Expr& e, const Env& env) {
  std::vector<Value> items;
  if (const auto* array = as<Array>(e)) {
    for (const ExprPtr& item : array->items)
      items.push_back(members_in_brackets(*item, env));
    return make_tuple(std::move(items));
  }
  const auto* turns = as<Comprehension>(e);
  if (turns && add_known_turns(*turns, 0, env, items))
    return make_tuple(std::move(items));
  return expr(e, env);
}

/// An argument for a parameter of a builtin or of the library: where several
/// things are wanted, brackets hold them as a tuple does, `concat([a, b])`.
CallArgument Walker::argument_in_brackets(std::string_view parameter,
                                          const Expr& e, const Env& env) {
  // Collectives alone have parameters of the first two names.
  if (parameter == "perm" || parameter == "groups")
    return {members_in_brackets(e, env), e.span};
  const auto* brackets = parameter == "arrays" ? as<Array>(e) : nullptr;
  if (!brackets || brackets->items.empty()) return argument(e, env);
  std::vector<Value> items;
  for (const ExprPtr& item : brackets->items) items.push_back(expr(*item, env));
  return {make_tuple(std::move(items)), e.span};
}

Value Walker::comprehension(const Comprehension& e, const Env& env) {
  const Value result = generate(e, 0, env);
  for_each_leaf(result, [&](const Value& leaf) {
    if (const ArrayCell* array = leaf.array())
      walk_.check_size(array->type, e.span);
  });
  return result;
}

// ---- members as code -------------------------------------------------------

/// The values that the names of a pattern have; false if it does not fit.
bool MemberCode::split(const Pattern& pattern, const Value& item,
                       std::vector<std::pair<const Pattern*, Value>>& out) {
  if (pattern.kind == Pattern::Kind::wildcard) return true;
  if (pattern.kind == Pattern::Kind::name) {
    out.emplace_back(&pattern, item);
    return out.size() <= 16;  // few are more
  }
  const TupleValue* tuple = item.tuple();
  if (!tuple || tuple->items.size() != pattern.items.size()) return false;
  for (size_t i = 0; i < pattern.items.size(); ++i)
    if (!split(pattern.items[i], tuple->items[i], out)) return false;
  return true;
}

std::shared_ptr<MemberCode> MemberCode::make(Walker& walker, const Expr& expr,
                                             const Pattern& pattern,
                                             const Value& item,
                                             const Env& env) {
  const int64_t free =
      walker.walk_.machine().limits.depth - walker.s_.call_depth;
  std::vector<std::pair<const Pattern*, Value>> names;
  if (!walker.may_run_code() || free < 0 || !split(pattern, item, names))
    return nullptr;
  MemberStart start{&expr, env, {}};
  for (const auto& [name, value] : names) {
    const auto kind = array_kind(value);
    if (!kind || kind->is(HostKind::Form::array)) return nullptr;
    start.names.push_back({name, *kind});
  }
  // NOLINTNEXTLINE(cppcoreguidelines-owning-memory): a private constructor
  std::shared_ptr<MemberCode> out(new MemberCode(walker));
  out->pattern_ = &pattern;
  out->where_ = expr.span;
  out->code_ = compile_member(walker, start);
  if (!out->code_) return nullptr;
  auto& codes = walker.s_.function_codes;
  if (!codes) codes = std::make_shared<FunctionCodes>();
  out->memory_ = codes->take(*out->code_, static_cast<size_t>(free) + 1);
  return out;
}

MemberCode::~MemberCode() {
  if (memory_) walker_.s_.function_codes->memory.push_back(std::move(memory_));
}

/// Puts what the names of a pattern stand for into the first registers; false
/// if that is none of the kinds that the code is for.
bool MemberCode::set(const Pattern& pattern, const Value& item, size_t& place) {
  if (pattern.kind == Pattern::Kind::wildcard) return true;
  if (pattern.kind == Pattern::Kind::tuple) {
    const TupleValue* tuple = item.tuple();
    if (!tuple || tuple->items.size() != pattern.items.size()) return false;
    for (size_t i = 0; i < pattern.items.size(); ++i)
      if (!set(pattern.items[i], tuple->items[i], place)) return false;
    return true;
  }
  const HostKind& kind = code_->functions[0].params[place];
  if (kind.is_held() && held_kind(item) != kind) return false;
  return run_->set_argument(item, kind, memory_->registers.data(), place++);
}

std::optional<Value> MemberCode::operator()(const Value& item) {
  const FunctionCode::Compiled& root = code_->functions[0];
  uint64_t* registers = memory_->registers.data();
  if (!run_) {
    run_ = std::make_unique<Walker::CodeRun>(walker_, *code_, where_);
    if (code_->holds) run_->held.resize(root.registers);
    const int free =
        walker_.walk_.machine().limits.depth - walker_.s_.call_depth;
    run_->calls =
        std::span(memory_->calls).first(static_cast<size_t>(free) + 1);
  }
  size_t place = 0;
  if (set(*pattern_, item, place) && run_->run(registers))
    return run_->result(*root.result, registers, 0, where_);
  run_ = nullptr;  // it may have stopped anywhere
  return std::nullopt;
}

/// The same as `walked`, which computes a member, or a condition, for one of
/// `count` items: as code, where these are many.
Walker::Member Walker::as_code(const Expr& part, const Pattern& pattern,
                               const Env& env, int64_t count, Member walked) {
  if (count < tuning().least_code_members || !may_run_code()) return walked;
  // What is traced is walked.
  return [this, &part, &pattern, env, walked = std::move(walked),
          code = std::shared_ptr<MemberCode>(),
          tried = false](const Value& item) mutable -> Value {
    if (!may_run_code()) return walked(item);
    if (!std::exchange(tried, true))
      code = MemberCode::make(*this, part, pattern, item, env);
    if (code)
      if (std::optional<Value> result = (*code)(item)) return *result;
    return walked(item);
  };
}

}  // namespace unisono::lang
