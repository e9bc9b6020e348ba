#include "lang/maps/collective_members.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "jit/ir/kinds.h"
#include "lang/maps/map_spec.h"
#include "lang/maps/map_state.h"
#include "lang/maps/maps.h"
#include "lang/ops/builtin_arguments.h"

namespace unisono::lang {
namespace {

[[noreturn]] void not_mapped(BuiltinCall& call, const AxisInfo* axis) {
  Walk& walk = call.walk;
  const std::string over = axis ? label(*axis) : "an axis that is left out";
  const auto& mapped = walk.context().mapped_axes;
  if (mapped.empty()) {
    walk.fail(diagnostic(Code::collective_outside_map, call.where,
                         call.builtin.name, over)
                  .set_help("call the function through `pmap(f)` or "
                            "`vmap(f)`, over this axis"));
  }
  std::string names;
  for (const MappedAxis& m : mapped)
    names += (names.empty() ? "" : ", ") + label(*m.axis);
  auto error = diagnostic(Code::axis_not_mapped, call.where, call.builtin.name,
                          over, names, mapped.size() == 1 ? "is" : "are");
  if (axis) error.add_note(axis->declared, "declared here");
  for (const MappedAxis& m : mapped)
    error.add_note(m.where, label(*m.axis) + " is mapped here");
  error.set_help("give the map `over=" + (axis ? axis->name : "...") + "`");
  walk.fail(std::move(error));
}

/// One axis that is mapped around the call; a symbol's worth of members while
/// a definition is checked that a caller maps.
Members::Axis mapped_axis(BuiltinCall& call, const AxisInfo& axis,
                          const std::shared_ptr<const AxisInfo>& shared) {
  for (const MappedAxis& m : call.walk.context().mapped_axes)
    if (m.axis->id == axis.id) return {m.axis, m.id, m.size};
  if (!call.walk.context().checking_definition) not_mapped(call, &axis);
  return {shared, axis.id, axis.any_size};
}

[[noreturn]] void bad_axis(Argument over, const Value& value) {
  BuiltinCall& call = over.call();
  // `ppermute(x, ((0, 1), (1, 0)))`
  const bool members =
      (value.array() || value.tuple() || value.is<IntValue>()) &&
      std::ranges::any_of(call.builtin.parameters,
                          [](const Parameter& p) { return p.name == "perm"; });
  call.walk.fail(
      diagnostic(Code::bad_axis_argument, over.where(), call.builtin.name,
                 type_name(value))
          .set_help(members
                        ? fmt::format("`perm` is named where no axis stands "
                                      "before it: `{}(x, perm=...)`",
                                      call.builtin.name)
                        : "declare one: `axis dev = devices()`"));
}

std::vector<Members::Axis> tuple_of_axes(Argument over,
                                         const TupleValue& tuple) {
  BuiltinCall& call = over.call();
  if (tuple.items.empty()) wrong_argument(over, "an axis, or several");
  std::vector<Members::Axis> axes;
  for (const Value& item : tuple.items) {
    const auto* axis = item.get_if<AxisValue>();
    if (!axis) bad_axis(over, item);
    for (const Members::Axis& other : axes) {
      if (other.info->id != axis->axis->id) continue;
      call.walk.fail(diagnostic(Code::bad_map_argument, over.where(),
                                call.builtin.name,
                                label(*axis->axis) + " is given twice")
                         .set_help("name each axis once"));
    }
    axes.push_back(mapped_axis(call, *axis->axis, axis->axis));
  }
  return axes;
}

[[noreturn]] void bad_groups(Argument groups, const std::string& text,
                             std::string help) {
  BuiltinCall& call = groups.call();
  call.walk.fail(
      diagnostic(Code::bad_groups, groups.where(), call.builtin.name, text)
          .set_help(std::move(help)));
}

/// `item` of an argument that says which members meet is something else. Of an
/// array only its type is known.
[[noreturn]] void not_members(Argument argument, const Value& item,
                              std::string_view expected) {
  bool array = item.array();
  if (const TupleValue* tuple = item.tuple())
    array = std::ranges::any_of(tuple->items, &Value::array);
  try {
    wrong_argument(argument, item, expected);
  } catch (Failure& failure) {
    if (array && failure.diagnostic.help.empty())
      failure.diagnostic.set_help(fmt::format(
          "an array's elements are known only when it runs; write "
          "the members into the call, such as `{}`",
          argument.name() == "groups" ? "groups=[[0, 1], [2, 3]]"
                                      : "perm=[(i, i + 1) for i in range(3)]"));
    throw;
  }
}

/// A number of a member that is known.
int64_t known_member(Argument argument, const IntValue& number) {
  if (number.value.is_constant()) return number.value.value();
  argument.call().walk.fail(diagnostic(Code::argument_not_known,
                                       argument.where(),
                                       describe_argument(argument))
                                .about(number.value));
}

/// The members of one group.
std::vector<int64_t> read_group(Argument groups, const Value& item) {
  const std::string_view expected = "a tuple of tuples of members";
  const TupleValue* tuple = item.tuple();
  if (!tuple) not_members(groups, item, expected);
  std::vector<int64_t> group;
  for (const Value& member : tuple->items) {
    const auto* number = member.get_if<IntValue>();
    if (!number) not_members(groups, item, expected);
    group.push_back(known_member(groups, *number));
  }
  if (group.empty()) bad_groups(groups, "a group is empty", "leave it out");
  return group;
}

std::string sizes_text(const std::vector<std::vector<int>>& groups) {
  const std::set<size_t> sizes = [&] {
    std::set<size_t> found;
    for (const auto& group : groups) found.insert(group.size());
    return found;
  }();
  std::string text;
  size_t i = 0;
  for (const size_t size : sizes) {
    text += i == 0 ? "" : i + 1 == sizes.size() ? " and " : ", ";
    text += std::to_string(size);
    ++i;
  }
  return text;
}

void check_position(BuiltinCall& call, const Members& members, Span where,
                    std::string_view role, int64_t position) {
  const ir::Dim size = members.size();
  const bool known = size.is_constant();
  if (position >= 0 && position <= INT32_MAX &&
      (!known || position < size.value()))
    return;
  bad_permutation(
      call, where,
      fmt::format("{} {} is out of range for {} of {} members", role, position,
                  members.label(), size.to_string()),
      known ? fmt::format("members count from 0 to {}", size.value() - 1)
            : "members count from 0");
}

}  // namespace

ir::Dim Members::size() const { return ir::member_count(attrs()); }
ir::Dim Members::team() const { return ir::team_size(attrs()); }

std::string Members::label() const {
  if (axes.size() == 1) return lang::label(*axes[0].info);
  std::string names;
  for (const Axis& axis : axes)
    names += (names.empty() ? "" : ", ") + axis.info->name;
  return "axes (" + names + ")";
}

std::string Members::team_fact() const {
  if (!groups.empty())
    return fmt::format("its groups have {} members", team().to_string());
  return fmt::format("{} {} size {}", label(),
                     axes.size() == 1 ? "has" : "have", team().to_string());
}

AxisSet Members::ids() const {
  AxisSet ids;
  for (const Axis& axis : axes) ids = join(ids, {axis.info->id});
  return ids;
}

ir::CollectiveAttrs Members::attrs() const {
  ir::CollectiveAttrs attrs;
  attrs.axes.clear();
  attrs.sizes.clear();
  for (const Axis& axis : axes) {
    attrs.axes.push_back(axis.id);
    attrs.sizes.push_back(axis.size);
  }
  attrs.groups = groups;
  return attrs;
}

/// A collective in a branch or loop that some members do not take would wait
/// for ever.
void forbid_divergence(BuiltinCall& call, const AxisInfo& axis) {
  for (const auto& condition : call.walk.context().varying_conditions) {
    if (!std::ranges::binary_search(condition.axes, axis.id)) continue;
    auto error =
        diagnostic(Code::collective_diverges, call.where, call.builtin.name,
                   condition.is_loop ? "loop" : "branch",
                   condition.is_loop ? "loop count" : "condition", label(axis));
    error.add_note(condition.where, "this varies over " + label(axis));
    if (condition.from && !(condition.from == condition.where))
      error.add_note(condition.from, "because of this");
    error.set_help(
        "let all members meet outside it and choose with `where`, or make it "
        "the same for all by a reduction such as `pmax`");
    call.walk.fail(std::move(error));
  }
}

Members members_of(Argument over) {
  BuiltinCall& call = over.call();
  Walk& walk = call.walk;
  const auto& mapped = walk.context().mapped_axes;
  Members members;
  if (!over.given() && !mapped.empty()) {
    const MappedAxis& m = mapped.back();
    members.axes = {{m.axis, m.id, m.size}};
  } else if (!over.given()) {
    if (!walk.context().checking_definition) not_mapped(call, nullptr);
    auto axis = map_cache(walk).innermost(walk);
    members.axes = {{axis, axis->id, axis->any_size}};
  } else if (const TupleValue* tuple = over.value().tuple()) {
    members.axes = tuple_of_axes(over, *tuple);
  } else if (const auto* axis = over.value().get_if<AxisValue>()) {
    members.axes = {mapped_axis(call, *axis->axis, axis->axis)};
  } else {
    bad_axis(over, over.value());
  }
  return members;
}

Members meeting_members(Argument over) {
  BuiltinCall& call = over.call();
  Members members = members_of(over);
  for (const Members::Axis& axis : members.axes) {
    forbid_divergence(call, *axis.info);
    if (!(axis.size == ir::Dim(0))) continue;
    call.walk.fail(diagnostic(Code::bad_map_argument, call.where,
                              call.builtin.name,
                              label(*axis.info) + " has no members")
                       .set_help("map arrays of size 1 or more"));
  }
  return members;
}

void read_groups(Argument groups, Members& members, GroupSizes sizes) {
  if (!groups.given()) return;
  const TupleValue* tuple = groups.value().tuple();
  if (!tuple || tuple->items.empty())
    not_members(groups, groups.value(), "a tuple of tuples of members");
  const ir::Dim size = members.size();
  const std::string help =
      "each member stands in one group, as in `groups=((0, 1), (2, 3))`";
  std::set<int64_t> seen;
  for (const Value& item : tuple->items) {
    members.groups.emplace_back();
    for (const int64_t member : read_group(groups, item)) {
      const bool inside = member >= 0 && member <= INT32_MAX &&
                          (!size.is_constant() || member < size.value());
      if (!inside)
        bad_groups(groups,
                   fmt::format("member {} is out of range for {} of {} members",
                               member, members.label(), size.to_string()),
                   "members count from 0");
      if (!seen.insert(member).second)
        bad_groups(groups, fmt::format("member {} stands there twice", member),
                   help);
      members.groups.back().push_back(static_cast<int>(member));
    }
  }
  const int64_t count = size.is_constant() ? size.value() : *seen.rbegin() + 1;
  for (int64_t member = 0; member < count; ++member)
    if (!seen.contains(member))
      bad_groups(groups,
                 fmt::format("the groups hold {} of {} members of {}: {} is "
                             "missing",
                             seen.size(), count, members.label(), member),
                 help);
  if (sizes == GroupSizes::any) return;
  for (const auto& group : members.groups) {
    if (group.size() == members.groups[0].size()) continue;
    bad_groups(groups,
               fmt::format("the groups have sizes {}, so their members' "
                           "results would differ in shape",
                           sizes_text(members.groups)),
               "groups of different sizes are for reductions such as `psum`");
  }
}

void bad_permutation(BuiltinCall& call, Span where, const std::string& text,
                     std::string help) {
  call.walk.fail(
      diagnostic(Code::bad_permutation, where, text).set_help(std::move(help)));
}

Pairs read_pairs(Argument perm, const Members& members) {
  BuiltinCall& call = perm.call();
  const TupleValue* written = perm.value().tuple();
  if (!written)
    not_members(perm, perm.value(), "a tuple of (source, destination) pairs");
  Pairs pairs;
  std::map<int64_t, std::string> sources, destinations;
  for (const Value& item : written->items) {
    std::vector<int64_t> pair;
    if (const TupleValue* tuple = item.tuple()) {
      for (const Value& end : tuple->items) {
        const auto* number = end.get_if<IntValue>();
        if (!number) break;
        pair.push_back(known_member(perm, *number));
      }
    }
    if (pair.size() != 2)
      not_members(perm, item, "a (source, destination) pair of `int`s");
    const Span where = perm.where();
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

Pairs shifted_pairs(BuiltinCall& call, const Members& members, int64_t shift,
                    bool wrap) {
  Pairs pairs;
  if (call.walk.mode() == Mode::check) return pairs;  // nothing can fail
  const int64_t size = members.size().value();
  for (int64_t p = 0; p < size; ++p) {
    // shift may be any int64: reduce it before adding.
    int64_t to = p;
    if (wrap)
      to = (p + (shift % size + size) % size) % size;
    else if (shift <= -size || shift >= size)
      break;
    else
      to = p + shift;
    if (to >= 0 && to < size)
      pairs.emplace_back(static_cast<int>(p), static_cast<int>(to));
  }
  return pairs;
}

Pairs read_shuffle(Argument perm, const Members& members) {
  BuiltinCall& call = perm.call();
  const std::vector<int64_t> sources = known_ints_argument(perm);
  const int64_t size = members.size().is_constant()
                           ? members.size().value()
                           : static_cast<int64_t>(sources.size());
  std::string wrong;
  if (static_cast<int64_t>(sources.size()) != size)
    wrong = fmt::format("it has {} entries", sources.size());
  std::vector<bool> seen(sources.size());
  for (const int64_t p : sources) {
    const bool inside = p >= 0 && p < static_cast<int64_t>(sources.size());
    if (inside) seen[p] = true;
    if (!inside && wrong.empty()) wrong = fmt::format("{} is no member", p);
  }
  const auto missing = std::ranges::find(seen, false);
  if (wrong.empty() && missing != seen.end())
    wrong = fmt::format("{} is missing", missing - seen.begin());
  if (!wrong.empty()) {
    call.walk.fail(
        diagnostic(Code::bad_shuffle, perm.where(), tuple_text(sources),
                   members.size().to_string(), wrong)
            .set_help("`perm[p]` is the member whose value member p gets; each "
                      "stands there once"));
  }
  Pairs pairs;
  for (size_t p = 0; p < sources.size(); ++p)
    pairs.emplace_back(static_cast<int>(sources[p]), static_cast<int>(p));
  return pairs;
}

Pairs read_source(Argument source, const Members& members) {
  BuiltinCall& call = source.call();
  const int64_t member = source.given() ? known_int_argument(source) : 0;
  const ir::Dim size = members.size();
  if (member < 0 || member > INT32_MAX ||
      (size.is_constant() && member >= size.value())) {
    call.walk.fail(
        diagnostic(Code::bad_map_argument, source.where(), call.builtin.name,
                   fmt::format("source {} is out of range for {} of {} members",
                               member, members.label(), size.to_string()))
            .set_help("members count from 0"));
  }
  return broadcast_pairs(members, member);
}

Pairs broadcast_pairs(const Members& members, int64_t source) {
  const ir::Dim size = members.size();
  Pairs pairs;
  if (!size.is_constant()) return pairs;  // while a definition is checked
  for (int64_t p = 0; p < size.value(); ++p)
    pairs.emplace_back(static_cast<int>(source), static_cast<int>(p));
  return pairs;
}

}  // namespace unisono::lang
