// psum ... axis_size: operations in which the members of an axis meet. Each
// checks that the axis is mapped and that all members get here alike, and works
// on trees leaf by leaf.
#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "lang/array_ops.h"
#include "lang/builtin_arguments.h"
#include "lang/evaluator.h"
#include "lang/map_spec.h"
#include "lang/map_state.h"
#include "lang/maps.h"
#include "lang/operators.h"

namespace unisono::lang {
namespace {

/// The members that meet.
struct Members {
  std::shared_ptr<const AxisInfo> axis;
  ir::Dim size;
};

[[noreturn]] void not_mapped(BuiltinCall& call, const AxisInfo* axis) {
  Evaluator& evaluator = call.evaluator;
  const std::string over = axis ? label(*axis) : "an axis that is left out";
  const auto& mapped = evaluator.mapped_axes();
  if (mapped.empty()) {
    evaluator.fail(diagnostic(Code::collective_outside_map, call.where,
                              call.builtin.name, over)
                       .set_help("call the function through `pmap(f)` or "
                                 "`vmap(f)`, over this axis"));
  }
  std::string names;
  for (const MappedAxis& m : mapped) {
    names += (names.empty() ? "" : ", ") + label(*m.axis);
  }
  auto error = diagnostic(Code::axis_not_mapped, call.where, call.builtin.name,
                          over, names);
  if (axis) error.add_note(axis->declared, "declared here");
  for (const MappedAxis& m : mapped) {
    error.add_note(m.where, label(*m.axis) + " is mapped here");
  }
  error.set_help("give the map `over=" + (axis ? axis->name : "...") + "`");
  evaluator.fail(std::move(error));
}

/// A collective in a branch or loop that some members do not take would wait
/// for ever.
void forbid_divergence(BuiltinCall& call, const AxisInfo& axis) {
  for (const auto& condition : call.evaluator.varying_conditions()) {
    if (!std::ranges::binary_search(condition.axes, axis.id)) continue;
    auto error =
        diagnostic(Code::collective_diverges, call.where, call.builtin.name,
                   condition.is_loop ? "loop" : "branch",
                   condition.is_loop ? "loop count" : "condition", label(axis));
    error.add_note(condition.where, "this varies over " + label(axis));
    error.set_help(
        "let all members meet outside it and choose with `where`, or make it "
        "the same for all by a reduction such as `pmax`");
    call.evaluator.fail(std::move(error));
  }
}

/// The axis in argument `i`, or the innermost map's if it is left out.
Members members_of(BuiltinCall& call, size_t i) {
  Evaluator& evaluator = call.evaluator;
  const auto& mapped = evaluator.mapped_axes();
  const CallArgument* argument = given(call, i);
  if (!argument) {
    if (!mapped.empty()) return {mapped.back().axis, mapped.back().size};
    if (!evaluator.checking_definition) not_mapped(call, nullptr);
    auto axis = map_cache(evaluator).innermost(evaluator);
    return {axis, axis->any_size};
  }
  if (argument->value.tuple()) {
    evaluator.fail(
        diagnostic(Code::not_there_yet, argument->where, "a tuple of axes is")
            .set_help("use one collective for each axis"));
  }
  const auto* axis = argument->value.get_if<AxisValue>();
  if (!axis) {
    evaluator.fail(diagnostic(Code::bad_axis_argument, argument->where,
                              call.builtin.name, type_name(argument->value))
                       .set_help("declare one: `axis dev = devices()`"));
  }
  for (const MappedAxis& m : mapped) {
    if (m.axis->id == axis->axis->id) return {m.axis, m.size};
  }
  if (!evaluator.checking_definition) not_mapped(call, axis->axis.get());
  return {axis->axis, axis->axis->any_size};
}

/// The same, for a call in which the members meet.
Members meeting_members(BuiltinCall& call, size_t i) {
  Members members = members_of(call, i);
  forbid_divergence(call, *members.axis);
  if (members.size == ir::Dim(0)) {
    call.evaluator.fail(diagnostic(Code::bad_map_argument, call.where,
                                   call.builtin.name,
                                   label(*members.axis) + " has no members")
                            .set_help("map arrays of size 1 or more"));
  }
  return members;
}

void forbid_groups(BuiltinCall& call, size_t i) {
  if (!given(call, i)) return;
  call.evaluator.fail(
      diagnostic(Code::not_there_yet, call[i].where, "`groups` is")
          .set_help("leave it out: all members of the axis take part"));
}

AxisSet without(const AxisSet& axes, ir::AxisId axis) {
  AxisSet rest = axes;
  std::erase(rest, axis);
  return rest;
}

/// One collective operation.
ArrayValue meet(BuiltinCall& call, ir::Op op, const Members& members,
                const ArrayValue& x, ir::CollectiveAttrs attrs) {
  attrs.axis = members.axis->id;
  attrs.size = members.size;
  ArrayValue result = call.evaluator.add(op, {x}, std::move(attrs), call.where);
  result->varies = op == ir::Op::permute ? join(x->varies, {members.axis->id})
                                         : without(x->varies, members.axis->id);
  result->varies_from = x->varies_from ? x->varies_from : call.where;
  return result;
}

/// `f` for each array of the tree in argument 0; ints and bools are arrays.
Value for_leaves(BuiltinCall& call,
                 const std::function<ArrayValue(const ArrayValue&)>& f) {
  return map_leaves(call[0].value, [&](const Value& leaf) -> Value {
    if (leaf.is<NoneValue>()) return leaf;
    const ArrayValue x = call.evaluator.to_array(leaf, call[0].where,
                                                 describe_argument(call, 0));
    return f(x);
  });
}

ArrayValue all_reduce(BuiltinCall& call, ir::ReduceOp op,
                      const Members& members, const ArrayValue& x) {
  const bool count = op == ir::ReduceOp::sum && is_bool(x->type.dtype);
  ir::CollectiveAttrs attrs;
  attrs.reduce = op;
  return meet(call, ir::Op::all_reduce, members,
              count ? cast_to(call.evaluator, x, DType::I32, call.where) : x,
              std::move(attrs));
}

Value reduce_tree(BuiltinCall& call, ir::ReduceOp op) {
  forbid_groups(call, 2);
  const Members members = meeting_members(call, 1);
  return for_leaves(call, [&](const ArrayValue& x) {
    return all_reduce(call, op, members, x);
  });
}

ArrayValue mean_of_members(BuiltinCall& call, const Members& members,
                           const ArrayValue& x) {
  Evaluator& evaluator = call.evaluator;
  ArrayValue sum = all_reduce(call, ir::ReduceOp::sum, members, x);
  if (!is_floating(sum->type.dtype)) {
    sum = cast_to(evaluator, sum, DType::F32, call.where);
  }
  if (!members.size.is_constant()) return sum;  // checking: its type is right
  return apply(evaluator, ir::Op::div, sum,
               static_cast<double>(members.size.value()), call.where);
}

/// All members' values at a new leading axis.
ArrayValue gather_members(BuiltinCall& call, const Members& members,
                          const ArrayValue& x) {
  return meet(call, ir::Op::all_gather, members, x, {});
}

/// The leading axis moved to `axis`, and joined with what was there if `tiled`.
ArrayValue place_gathered(BuiltinCall& call, const ArrayValue& gathered,
                          int axis, bool tiled) {
  Evaluator& evaluator = call.evaluator;
  std::vector<int> axes;
  for (int i = 1; i < gathered->type.rank(); ++i) axes.push_back(i);
  axes.insert(axes.begin() + axis, 0);
  ArrayValue moved =
      axis == 0 ? gathered : transpose(evaluator, gathered, axes, call.where);
  if (!tiled) return moved;
  ir::Shape shape = moved->type.shape;
  shape[axis] = shape[axis] * shape[axis + 1];
  shape.erase(shape.begin() + axis + 1);
  return reshape(evaluator, moved, std::move(shape), call.where);
}

int gather_axis(BuiltinCall& call, size_t i, int rank, bool tiled) {
  if (tiled && rank == 0) {
    call.evaluator.fail(
        diagnostic(Code::gather_axis, call.where, call.builtin.name,
                   "`tiled` joins along an axis, but the operand has rank 0")
            .set_help("leave `tiled` out: scalars are stacked to rank 1"));
  }
  const int64_t axis = given(call, i) ? known_int_argument(call, i) : 0;
  const int result_rank = tiled ? rank : rank + 1;
  const int64_t counted = axis < 0 ? axis + result_rank : axis;
  if (counted < 0 || counted >= result_rank) {
    call.evaluator.fail(
        diagnostic(
            Code::gather_axis, call[i].where, call.builtin.name,
            fmt::format("axis {} is out of range for a result of rank {}", axis,
                        result_rank))
            .set_help(fmt::format("`axis` counts in the result: {} to {}",
                                  -result_rank, result_rank - 1)));
  }
  return static_cast<int>(counted);
}

using Pairs = std::vector<std::pair<int, int>>;

[[noreturn]] void bad_permutation(BuiltinCall& call, Span where,
                                  std::string text, std::string help) {
  call.evaluator.fail(diagnostic(Code::bad_permutation, where, std::move(text))
                          .set_help(std::move(help)));
}

void check_position(BuiltinCall& call, const Members& members, Span where,
                    std::string_view role, int64_t position) {
  const bool known = members.size.is_constant();
  if (position >= 0 && (!known || position < members.size.value())) return;
  bad_permutation(
      call, where,
      fmt::format("{} {} is out of range for {} of {} members", role, position,
                  label(*members.axis), members.size.to_string()),
      known
          ? fmt::format("members count from 0 to {}", members.size.value() - 1)
          : "members count from 0");
}

/// `perm`: each source and each destination at most once.
Pairs read_pairs(BuiltinCall& call, size_t i, const Members& members) {
  const TupleValue* perm = call[i].value.tuple();
  if (!perm) wrong_argument(call, i, "a tuple of (source, destination) pairs");
  Pairs pairs;
  std::map<int64_t, std::string> sources, destinations;
  for (const Value& item : perm->items) {
    std::vector<int64_t> pair;
    if (const TupleValue* tuple = item.tuple()) {
      for (const Value& end : tuple->items) {
        const auto* number = end.get_if<IntValue>();
        if (!number || !number->value.is_constant()) break;
        pair.push_back(number->value.value());
      }
    }
    if (pair.size() != 2) {
      wrong_argument(call, i, item, "a (source, destination) pair of `int`s");
    }
    const Span where = call[i].where;
    const std::string text = tuple_text(pair);
    check_position(call, members, where, "source", pair[0]);
    check_position(call, members, where, "destination", pair[1]);
    const auto once = [&](auto& seen, int64_t key, std::string_view role) {
      const auto [known, fresh] = seen.emplace(key, text);
      if (fresh) return;
      bad_permutation(call, where,
                      fmt::format("{} {} appears twice, in {} and {}", role,
                                  key, known->second, text),
                      "a member sends to one member and receives from one");
    };
    once(sources, pair[0], "source");
    once(destinations, pair[1], "destination");
    pairs.emplace_back(pair[0], pair[1]);
  }
  return pairs;
}

/// `shift`: from each p to p + shift, around the end if `wrap`.
Pairs shifted_pairs(BuiltinCall& call, const Members& members, int64_t shift,
                    bool wrap) {
  Pairs pairs;
  if (call.evaluator.mode() == Mode::check) return pairs;  // nothing can fail
  const int64_t size = members.size.value();
  for (int64_t p = 0; p < size; ++p) {
    // shift may be any int64: reduce it before adding.
    int64_t to = p;
    if (wrap) {
      to = (p + (shift % size + size) % size) % size;
    } else if (shift <= -size || shift >= size) {
      break;
    } else {
      to = p + shift;
    }
    if (to >= 0 && to < size) {
      pairs.emplace_back(static_cast<int>(p), static_cast<int>(to));
    }
  }
  return pairs;
}

/// `perm` of pshuffle: member p gets the value of perm[p].
Pairs read_shuffle(BuiltinCall& call, size_t i, const Members& members) {
  const std::vector<int64_t> perm = known_ints_argument(call, i);
  const int64_t size = members.size.is_constant()
                           ? members.size.value()
                           : static_cast<int64_t>(perm.size());
  std::string wrong;
  if (static_cast<int64_t>(perm.size()) != size) {
    wrong = fmt::format("it has {} entries", perm.size());
  }
  std::vector<bool> seen(perm.size());
  for (const int64_t p : perm) {
    const bool inside = p >= 0 && p < static_cast<int64_t>(perm.size());
    if (inside) seen[p] = true;
    if (!inside && wrong.empty()) wrong = fmt::format("{} is no member", p);
  }
  const auto missing = std::ranges::find(seen, false);
  if (wrong.empty() && missing != seen.end()) {
    wrong = fmt::format("{} is missing", missing - seen.begin());
  }
  if (!wrong.empty()) {
    call.evaluator.fail(
        diagnostic(Code::bad_shuffle, call[i].where, tuple_text(perm),
                   members.size.to_string(), wrong)
            .set_help("`perm[p]` is the member whose value member p gets; each "
                      "stands there once"));
  }
  Pairs pairs;
  for (size_t p = 0; p < perm.size(); ++p) {
    pairs.emplace_back(static_cast<int>(perm[p]), static_cast<int>(p));
  }
  return pairs;
}

Value permute_tree(BuiltinCall& call, const Members& members,
                   const Pairs& pairs) {
  return for_leaves(call, [&](const ArrayValue& x) {
    ir::CollectiveAttrs attrs;
    attrs.pairs = pairs;
    return meet(call, ir::Op::permute, members, x, std::move(attrs));
  });
}

/// The value of member `source` on all members.
ArrayValue broadcast_member(BuiltinCall& call, const Members& members,
                            const ArrayValue& x, int64_t source) {
  const ArrayValue all = gather_members(call, members, x);
  return reshape(call.evaluator,
                 slice_axis(call.evaluator, all, 0, source, 1, call.where),
                 x->type.shape, call.where);
}

/// pargmax, pargmin: the rules of ties and NaN are those of argmax.
Value arg_reduce_tree(BuiltinCall& call, ir::Op op) {
  forbid_groups(call, 2);
  const Members members = meeting_members(call, 1);
  return for_leaves(call, [&](const ArrayValue& x) {
    const ArrayValue all = gather_members(call, members, x);
    return call.evaluator.add(op, {all}, ir::ReduceAttrs{{0}}, call.where);
  });
}

}  // namespace

std::optional<ir::Dim> axis_size_here(Evaluator& evaluator,
                                      const AxisInfo& axis) {
  for (const MappedAxis& mapped : evaluator.mapped_axes()) {
    if (mapped.axis->id == axis.id) return mapped.size;
  }
  if (evaluator.checking_definition) return axis.any_size;
  return std::nullopt;
}

Value builtin_psum(BuiltinCall& call) {
  return reduce_tree(call, ir::ReduceOp::sum);
}
Value builtin_pmax(BuiltinCall& call) {
  return reduce_tree(call, ir::ReduceOp::max);
}
Value builtin_pmin(BuiltinCall& call) {
  return reduce_tree(call, ir::ReduceOp::min);
}
Value builtin_pargmax(BuiltinCall& call) {
  return arg_reduce_tree(call, ir::Op::argmax);
}
Value builtin_pargmin(BuiltinCall& call) {
  return arg_reduce_tree(call, ir::Op::argmin);
}

Value builtin_pmean(BuiltinCall& call) {
  forbid_groups(call, 2);
  const Members members = meeting_members(call, 1);
  return for_leaves(call, [&](const ArrayValue& x) {
    return mean_of_members(call, members, x);
  });
}

Value builtin_all_gather(BuiltinCall& call) {
  forbid_groups(call, 4);
  const Members members = meeting_members(call, 1);
  const bool tiled = bool_argument_or(call, 3, false);
  return for_leaves(call, [&](const ArrayValue& x) {
    const int axis = gather_axis(call, 2, x->type.rank(), tiled);
    return place_gathered(call, gather_members(call, members, x), axis, tiled);
  });
}

Value builtin_ppermute(BuiltinCall& call) {
  const Members members = meeting_members(call, 1);
  const bool by_pairs = given(call, 2), by_shift = given(call, 3);
  if (by_pairs == by_shift) {
    bad_permutation(call, call.where,
                    by_pairs ? "both `perm` and `shift` are given"
                             : "neither `perm` nor `shift` is given",
                    "give `perm=((0, 1), (1, 0))`, or `shift=1`");
  }
  const bool wrap = bool_argument_or(call, 4, false);
  if (by_pairs && given(call, 4)) {
    bad_permutation(call, call[4].where, "`wrap` goes with `shift`",
                    "leave it out: the pairs say everything");
  }
  return permute_tree(
      call, members,
      by_pairs
          ? read_pairs(call, 2, members)
          : shifted_pairs(call, members, known_int_argument(call, 3), wrap));
}

Value builtin_pshuffle(BuiltinCall& call) {
  const Members members = meeting_members(call, 1);
  if (!given(call, 2)) {
    call.evaluator.fail(diagnostic(Code::bad_map_argument, call.where,
                                   call.builtin.name, "`perm` is missing")
                            .set_help("write `pshuffle(x, perm=(1, 0))`"));
  }
  return permute_tree(call, members, read_shuffle(call, 2, members));
}

Value builtin_pbroadcast(BuiltinCall& call) {
  const Members members = meeting_members(call, 1);
  const int64_t source = given(call, 2) ? known_int_argument(call, 2) : 0;
  const bool known = members.size.is_constant();
  if (source < 0 || (known && source >= members.size.value())) {
    call.evaluator.fail(
        diagnostic(
            Code::bad_map_argument, call.has(2) ? call[2].where : call.where,
            call.builtin.name,
            fmt::format("source {} is out of range for {} of {} members",
                        source, label(*members.axis), members.size.to_string()))
            .set_help("members count from 0"));
  }
  return for_leaves(call, [&](const ArrayValue& x) {
    return broadcast_member(call, members, x, source);
  });
}

Value builtin_axis_index(BuiltinCall& call) {
  Evaluator& evaluator = call.evaluator;
  const Members members = members_of(call, 0);
  ir::CollectiveAttrs attrs;
  attrs.axis = members.axis->id;
  attrs.size = members.size;
  ArrayValue index =
      evaluator.add(ir::Op::axis_index, std::span<const ArrayValue>(),
                    std::move(attrs), call.where);
  index->varies = {members.axis->id};
  index->varies_from = call.where;
  return index;
}

Value builtin_axis_size(BuiltinCall& call) {
  return IntValue{members_of(call, 0).size};
}

Value builtin_assume_same(BuiltinCall& call) {
  Evaluator& evaluator = call.evaluator;
  return for_leaves(call, [&](const ArrayValue& x) {
    ArrayValue same = x;
    for (const MappedAxis& mapped : evaluator.mapped_axes()) {
      if (!std::ranges::binary_search(same->varies, mapped.axis->id)) continue;
      forbid_divergence(call, *mapped.axis);
      same = broadcast_member(call, {mapped.axis, mapped.size}, same, 0);
    }
    if (same->varies.empty()) return same;
    // While a definition is checked, axes that a caller maps.
    same = evaluator.unknown_array(same->type);
    return same;
  });
}

}  // namespace unisono::lang
