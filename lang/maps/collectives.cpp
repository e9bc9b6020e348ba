// psum ... axis_size: operations in which the members of an axis meet. Each
// checks that the axis is mapped and that all members get here alike, and works
// on trees leaf by leaf.
#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "lang/context/call_of.h"
#include "lang/context/derivative_facts.h"
#include "lang/context/processes.h"
#include "lang/context/walk.h"
#include "lang/maps/collective_members.h"
#include "lang/maps/map_spec.h"
#include "lang/maps/map_state.h"
#include "lang/maps/maps.h"
#include "lang/ops/array_ops.h"
#include "lang/ops/builtin_arguments.h"
#include "lang/ops/operators.h"
#include "lang/ops/sizes.h"
#include "runtime/cluster/cluster_device.h"

namespace unisono::lang {
namespace {

AxisSet without(const AxisSet& axes, const AxisSet& removed) {
  AxisSet rest = axes;
  std::erase_if(rest, [&](ir::AxisId axis) {
    return std::ranges::binary_search(removed, axis);
  });
  return rest;
}

/// One collective operation. `alike`: it gives all members the same.
ArrayValue meet(BuiltinCall& call, ir::Op op, const Members& members,
                const ArrayValue& x, ir::CollectiveAttrs attrs, bool alike) {
  ArrayValue result = call.walk.add(op, {x}, std::move(attrs), call.where);
  result->varies = alike ? without(x->varies, members.ids())
                         : join(x->varies, members.ids());
  result->varies_from = x->varies_from ? x->varies_from : call.where;
  tell_derivatives(call.walk.context(), *result);
  return result;
}

/// `f` for each array of a tree; ints and bools are arrays.
Value for_leaves(Argument tree,
                 const std::function<ArrayValue(const ArrayValue&)>& f) {
  return map_leaves(tree.value(), [&](const Value& leaf) -> Value {
    if (leaf.is<NoneValue>()) return leaf;
    return f(
        tree.call().walk.to_array(leaf, tree.where(), describe_argument(tree)));
  });
}

// ---- reductions

/// What is summed: bools count as i32.
ArrayValue summand(BuiltinCall& call, const ArrayValue& x) {
  return is_bool(x->type.dtype) ? cast_to(call.walk, x, DType::I32, call.where)
                                : x;
}

ArrayValue all_reduce(BuiltinCall& call, ir::ReduceOp op,
                      const Members& members, const ArrayValue& x) {
  ir::CollectiveAttrs attrs = members.attrs();
  attrs.reduce = op;
  return meet(call, ir::Op::all_reduce, members,
              op == ir::ReduceOp::sum ? summand(call, x) : x, std::move(attrs),
              members.groups.empty());
}

Value reduce_tree(CallOf<"psum">& call, ir::ReduceOp op) {
  Members members = meeting_members(call["over"]);
  read_groups(call["groups"], members, GroupSizes::any);
  return for_leaves(call["x"], [&](const ArrayValue& x) {
    return all_reduce(call, op, members, x);
  });
}

bool equal_groups(const Members& members) {
  return std::ranges::all_of(members.groups, [&](const auto& group) {
    return group.size() == members.groups[0].size();
  });
}

/// The own position along the axes, which varies.
ArrayValue own_position(BuiltinCall& call, const Members& members) {
  ir::CollectiveAttrs attrs = members.attrs();
  attrs.groups.clear();
  ArrayValue index =
      call.walk.add(ir::Op::axis_index, std::span<const ArrayValue>(),
                    std::move(attrs), call.where);
  index->varies = members.ids();
  index->varies_from = call.where;
  return index;
}

/// Numbers as an array.
template <class T>
ArrayValue numbers(BuiltinCall& call, const std::vector<T>& values) {
  constexpr DType dtype = std::is_same_v<T, float> ? DType::F32 : DType::I32;
  std::vector<uint8_t> bytes(values.size() * sizeof(T));
  std::memcpy(bytes.data(), values.data(), bytes.size());
  return call.walk.constant_array(
      {dtype, {static_cast<int64_t>(values.size())}}, std::move(bytes),
      call.where);
}

/// What `of` says of the own group: a scalar.
template <class T>
ArrayValue of_own_group(BuiltinCall& call, const Members& members,
                        const std::function<T(size_t group)>& of) {
  size_t count = 0;
  for (const auto& group : members.groups) count += group.size();
  std::vector<T> table(count);
  for (size_t g = 0; g < members.groups.size(); ++g)
    for (const int member : members.groups[g]) table[member] = of(g);
  return gather(call.walk, numbers(call, table), {own_position(call, members)},
                {0}, false, call.where);
}

ArrayValue mean_of_members(BuiltinCall& call, const Members& members,
                           const ArrayValue& x) {
  Walk& walk = call.walk;
  ArrayValue sum = all_reduce(call, ir::ReduceOp::sum, members, x);
  if (!is_floating(sum->type.dtype))
    sum = cast_to(walk, sum, DType::F32, call.where);
  if (!equal_groups(members)) {
    ArrayValue size = of_own_group<float>(call, members, [&](size_t group) {
      return static_cast<float>(members.groups[group].size());
    });
    size = cast_to(walk, size, sum->type.dtype, call.where);
    size = broadcast_to(walk, size, sum->type.shape, call.where);
    return apply(walk, ir::Op::div, sum, size, call.where);
  }
  const ir::Dim count = members.team();
  if (!count.is_constant()) return sum;  // checking: its type is right
  return apply(walk, ir::Op::div, sum, static_cast<double>(count.value()),
               call.where);
}

/// In groups of different sizes: all members' values meet, and the own group's
/// position is picked.
ArrayValue arg_of_own_group(BuiltinCall& call, ir::Op op,
                            const Members& members, const ArrayValue& x) {
  Walk& walk = call.walk;
  ir::CollectiveAttrs everyone = members.attrs();
  everyone.groups.clear();
  const ArrayValue all =
      meet(call, ir::Op::all_gather, members, x, std::move(everyone), true);
  std::vector<ArrayValue> positions;
  for (const auto& group : members.groups) {
    const std::vector<int32_t> own(group.begin(), group.end());
    const ArrayValue rows =
        gather(walk, all, {numbers(call, own)}, {0}, false, call.where);
    positions.push_back(insert_axis(
        walk, walk.add(op, {rows}, ir::ReduceAttrs{{0}}, call.where), 0,
        call.where));
  }
  const auto number = of_own_group<int32_t>(
      call, members, [](size_t group) { return static_cast<int32_t>(group); });
  return gather(walk, concat(walk, positions, 0, call.where), {number}, {0},
                false, call.where);
}

/// pargmax, pargmin: the rules of ties and NaN are those of argmax.
Value arg_reduce_tree(CallOf<"pargmax">& call, ir::Op op) {
  Members members = meeting_members(call["over"]);
  if (members.axes.size() > 1) {
    call.walk.fail(
        diagnostic(Code::one_axis_only, call["over"].where(), call.builtin.name,
                   members.label())
            .set_help("positions are those along one axis: reduce over the "
                      "other axes first"));
  }
  read_groups(call["groups"], members, GroupSizes::any);
  return for_leaves(call["x"], [&](const ArrayValue& x) {
    if (!equal_groups(members)) return arg_of_own_group(call, op, members, x);
    const ArrayValue all = meet(call, ir::Op::all_gather, members, x,
                                members.attrs(), members.groups.empty());
    return call.walk.add(op, {all}, ir::ReduceAttrs{{0}}, call.where);
  });
}

// ---- axes of an operand that is stacked, joined or taken apart

[[noreturn]] void bad_axis(BuiltinCall& call, Span where, std::string text,
                           std::string help) {
  call.walk.fail(
      diagnostic(Code::gather_axis, where, call.builtin.name, std::move(text))
          .set_help(std::move(help)));
}

/// An axis counted from 0, of the `what`, which has this rank; 0 if it is not
/// given.
int counted_axis(Argument argument, int rank, std::string_view what) {
  const int64_t axis = argument.given() ? known_int_argument(argument) : 0;
  const int64_t counted = axis < 0 ? axis + rank : axis;
  if (counted >= 0 && counted < rank) return static_cast<int>(counted);
  bad_axis(argument.call(), argument.where(),
           fmt::format("axis {} is out of range for {} of rank {}", axis, what,
                       rank),
           fmt::format("`{}` counts in the {}: {} to {}", argument.name(),
                       what.substr(what.find(' ') + 1), -rank, rank - 1));
}

ArrayValue gather_leaf(CallOf<"all_gather">& call, const Members& members,
                       const ArrayValue& x, bool tiled) {
  const int rank = x->type.rank();
  if (tiled && rank == 0)
    bad_axis(call, call.where,
             "`tiled` joins along an axis, but the operand has rank 0",
             "leave `tiled` out: scalars are stacked to rank 1");
  ir::CollectiveAttrs attrs = members.attrs();
  attrs.tiled = tiled;
  attrs.dim = counted_axis(call["axis"], tiled ? rank : rank + 1, "a result");
  return meet(call, ir::Op::all_gather, members, x, std::move(attrs),
              members.groups.empty());
}

ArrayValue moved_axis(BuiltinCall& call, const ArrayValue& x, int from,
                      int to) {
  if (from == to) return x;
  std::vector<int> axes;
  for (int i = 0; i < x->type.rank(); ++i)
    if (i != from) axes.push_back(i);
  axes.insert(axes.begin() + to, from);
  return transpose(call.walk, x, axes, call.where);
}

/// The operand's parts for the members that meet, along a new leading axis:
/// elements along `axis`, or equal blocks of it if `tiled`.
ArrayValue parts_for_members(Argument operand, const Members& members,
                             const ArrayValue& x, int axis, bool tiled) {
  BuiltinCall& call = operand.call();
  const ir::Dim size = x->type.shape[axis], team = members.team();
  const auto fail = [&](std::string_view relation, std::string help) {
    auto error =
        diagnostic(Code::uneven_parts, operand.where(), call.builtin.name, axis,
                   size.to_string(), relation, members.team_fact());
    error.about(size - team);
    error.set_label(x->type.to_string());
    error.set_help(std::move(help));
    call.walk.fail(std::move(error));
  };
  ir::Shape shape = x->type.shape;
  shape[axis] = team;
  if (!tiled) {
    if (!same_size(size, team))
      fail("but", exact_div(size, team)
                      ? "with `tiled=true` each member gets a block of it"
                      : "without `tiled` there is one element for each member; "
                        "with `tiled=true`, one block");
    return moved_axis(call, taken_for(call.walk, x, std::move(shape)), axis, 0);
  }
  const std::optional<ir::Dim> block = equal_parts(size, team);
  if (!block)
    fail("which cannot be `tiled` evenly:",
         size.is_constant()
             ? "use a size that is a multiple of the number of members, or pad "
               "with `pad_to`"
             : "declare it as a multiple of the members, such as "
               "`f32[r, k*dev]` for the axis `dev`");
  shape.insert(shape.begin() + axis + 1, *block);
  const ArrayValue cut = reshape(call.walk, x, std::move(shape), call.where);
  return moved_axis(call, cut, axis, 0);
}

void forbid_scalar(Argument operand, const ArrayValue& x) {
  if (x->type.rank() > 0) return;
  bad_axis(operand.call(), operand.where(),
           "the operand has rank 0, so no axis to share",
           "give it an array with one element for each member");
}

ArrayValue exchange_leaf(Argument operand, const Members& members,
                         const ArrayValue& x, int split, int concat,
                         bool tiled) {
  BuiltinCall& call = operand.call();
  const ArrayValue all =
      meet(call, ir::Op::all_to_all, members,
           parts_for_members(operand, members, x, split, tiled),
           members.attrs(), false);
  const ArrayValue moved = moved_axis(call, all, 0, concat);
  if (!tiled) return moved;
  ir::Shape shape = moved->type.shape;
  shape[concat] = shape[concat] * shape[concat + 1];
  shape.erase(shape.begin() + concat + 1);
  return reshape(call.walk, moved, std::move(shape), call.where);
}

// ---- permutations

ArrayValue permute_leaf(BuiltinCall& call, const Members& members,
                        const Pairs& pairs, const ArrayValue& x, bool alike) {
  ir::CollectiveAttrs attrs = members.attrs();
  attrs.pairs = pairs;
  return meet(call, ir::Op::permute, members, x, std::move(attrs), alike);
}

Value permute_tree(Argument tree, const Members& members, const Pairs& pairs) {
  return for_leaves(tree, [&](const ArrayValue& x) {
    return permute_leaf(tree.call(), members, pairs, x, false);
  });
}

}  // namespace

std::optional<ir::Dim> axis_size_here(Walk& walk, const AxisInfo& axis) {
  for (const MappedAxis& mapped : walk.context().mapped_axes)
    if (mapped.axis->id == axis.id) return mapped.size;
  if (walk.context().checking_definition) return axis.any_size;
  return std::nullopt;
}

Value builtin_psum(CallOf<"psum">& call) {
  return reduce_tree(call, ir::ReduceOp::sum);
}
Value builtin_pmax(CallOf<"pmax">& call) {
  return reduce_tree(call, ir::ReduceOp::max);
}
Value builtin_pmin(CallOf<"pmin">& call) {
  return reduce_tree(call, ir::ReduceOp::min);
}
Value builtin_pargmax(CallOf<"pargmax">& call) {
  return arg_reduce_tree(call, ir::Op::argmax);
}
Value builtin_pargmin(CallOf<"pargmin">& call) {
  return arg_reduce_tree(call, ir::Op::argmin);
}

Value builtin_pmean(CallOf<"pmean">& call) {
  Members members = meeting_members(call["over"]);
  read_groups(call["groups"], members, GroupSizes::any);
  return for_leaves(call["x"], [&](const ArrayValue& x) {
    return mean_of_members(call, members, x);
  });
}

Value builtin_all_gather(CallOf<"all_gather">& call) {
  Members members = meeting_members(call["over"]);
  read_groups(call["groups"], members, GroupSizes::equal);
  const bool tiled = bool_argument_or(call["tiled"], false);
  return for_leaves(call["x"], [&](const ArrayValue& x) {
    return gather_leaf(call, members, x, tiled);
  });
}

Value builtin_psum_scatter(CallOf<"psum_scatter">& call) {
  Members members = meeting_members(call["over"]);
  read_groups(call["groups"], members, GroupSizes::equal);
  const bool tiled = bool_argument_or(call["tiled"], false);
  return for_leaves(call["x"], [&](const ArrayValue& x) {
    forbid_scalar(call["x"], x);
    const int axis = counted_axis(call["axis"], x->type.rank(), "an operand");
    return meet(
        call, ir::Op::reduce_scatter, members,
        parts_for_members(call["x"], members, summand(call, x), axis, tiled),
        members.attrs(), false);
  });
}

Value builtin_all_to_all(CallOf<"all_to_all">& call) {
  Members members = meeting_members(call["over"]);
  read_groups(call["groups"], members, GroupSizes::equal);
  const bool tiled = bool_argument_or(call["tiled"], false);
  return for_leaves(call["x"], [&](const ArrayValue& x) {
    forbid_scalar(call["x"], x);
    const int split = counted_axis(call["split"], x->type.rank(), "an operand");
    const int concat = counted_axis(call["concat"], x->type.rank(), "a result");
    return exchange_leaf(call["x"], members, x, split, concat, tiled);
  });
}

Value builtin_pswapaxes(CallOf<"pswapaxes">& call) {
  const Members members = meeting_members(call["over"]);
  return for_leaves(call["x"], [&](const ArrayValue& x) {
    forbid_scalar(call["x"], x);
    const int axis = counted_axis(call["axis"], x->type.rank(), "an operand");
    return exchange_leaf(call["x"], members, x, axis, axis, false);
  });
}

Value builtin_ppermute(CallOf<"ppermute">& call) {
  const Members members = meeting_members(call["over"]);
  const bool by_pairs = call["perm"].given(), by_shift = call["shift"].given();
  if (by_pairs == by_shift) {
    bad_permutation(call, call.where,
                    by_pairs ? "both `perm` and `shift` are given"
                             : "neither `perm` nor `shift` is given",
                    "give `perm=((0, 1), (1, 0))`, or `shift=1`");
  }
  const bool wrap = bool_argument_or(call["wrap"], false);
  if (by_pairs && call["wrap"].given()) {
    bad_permutation(call, call["wrap"].where(), "`wrap` goes with `shift`",
                    "leave it out: the pairs say everything");
  }
  return permute_tree(
      call["x"], members,
      by_pairs ? read_pairs(call["perm"], members)
               : shifted_pairs(call, members, known_int_argument(call["shift"]),
                               wrap));
}

Value builtin_pshuffle(CallOf<"pshuffle">& call) {
  const Members members = meeting_members(call["over"]);
  if (!call["perm"].given()) {
    call.walk.fail(diagnostic(Code::bad_map_argument, call.where,
                              call.builtin.name, "`perm` is missing")
                       .set_help("write `pshuffle(x, perm=(1, 0))`"));
  }
  return permute_tree(call["x"], members, read_shuffle(call["perm"], members));
}

Value builtin_pbroadcast(CallOf<"pbroadcast">& call) {
  const Members members = meeting_members(call["over"]);
  const Pairs pairs = read_source(call["source"], members);
  return for_leaves(call["x"], [&](const ArrayValue& x) {
    return permute_leaf(call, members, pairs, x, true);
  });
}

Value builtin_axis_index(CallOf<"axis_index">& call) {
  return own_position(call, members_of(call["over"]));
}

namespace {

/// The axes of all maps around that run over devices; where a definition is
/// checked alone, one that a caller may map.
Members device_members(BuiltinCall& call) {
  Walk& walk = call.walk;
  Members members;
  for (const MappedAxis& mapped : walk.context().mapped_axes)
    if (mapped.over_devices)
      members.axes.push_back({mapped.axis, mapped.id, mapped.size});
  if (!members.axes.empty()) return members;
  if (walk.context().checking_definition) {
    const auto axis = map_cache(walk).innermost(walk);
    members.axes = {{axis, axis->id, axis->any_size}};
    return members;
  }
  walk.fail(
      diagnostic(Code::collective_outside_map, call.where, call.builtin.name,
                 "devices")
          .set_help("every process runs the whole program, and process 0 "
                    "prints and saves; inside `pmap` it is the process that "
                    "has the member's device, and `process_index(device)` is "
                    "that of a device"));
}

/// Whose device each member is on, by its position among all.
std::vector<int> processes_of(Walk& walk, const Members& members) {
  const Mesh& mesh = *members.axes[0].info->mesh;
  const auto& devices = walk.machine().runtime->devices();
  std::vector<int> processes(static_cast<size_t>(members.size().value()));
  for (size_t m = 0; m < processes.size(); ++m) {
    std::vector<int64_t> place(mesh.sizes.size(), 0);
    auto rest = static_cast<int64_t>(m);
    for (size_t a = members.axes.size(); a-- > 0;) {
      const Members::Axis& axis = members.axes[a];
      const int64_t size = axis.size.value();
      const auto count = static_cast<int64_t>(axis.info->devices->size());
      place[axis.info->mesh_axis] = rest % size / (size / count);
      rest /= size;
    }
    int64_t device = 0;
    for (size_t i = 0; i < place.size(); ++i)
      device = device * mesh.sizes[i] + place[i];
    processes[m] = process_of(*devices[mesh.devices[device]]);
  }
  return processes;
}

}  // namespace

Value builtin_process_index(CallOf<"process_index">& call) {
  Walk& walk = call.walk;
  const Argument device = call["device"];
  if (device.given()) {
    const auto* value = device.value().get_if<DeviceValue>();
    if (!value) wrong_argument(device, "a device, such as `devices()[0]`");
    const auto& devices = walk.machine().runtime->devices();
    return IntValue{process_of(*devices[value->index])};
  }
  const Members members = device_members(call);
  const ArrayValue position = own_position(call, members);
  if (walk.mode() == Mode::check) return position;
  return gather(walk, numbers(call, processes_of(walk, members)), {position},
                {0}, false, call.where);
}

Value builtin_axis_size(CallOf<"axis_size">& call) {
  return IntValue{members_of(call["over"]).size()};
}

Value builtin_assume_same(CallOf<"assume_same">& call) {
  Walk& walk = call.walk;
  return for_leaves(call["x"], [&](const ArrayValue& x) {
    ArrayValue same = x;
    for (const MappedAxis& mapped : walk.context().mapped_axes) {
      if (!std::ranges::binary_search(same->varies, mapped.axis->id)) continue;
      forbid_divergence(call, *mapped.axis);
      Members members;
      members.axes = {{mapped.axis, mapped.id, mapped.size}};
      same =
          permute_leaf(call, members, broadcast_pairs(members, 0), same, true);
    }
    if (same->varies.empty()) return same;
    // While a definition is checked, axes that a caller maps.
    const ArrayValue known = walk.unknown_array(same->type);
    known->depends = same->depends;
    known->linearity = same->linearity;
    return known;
  });
}

}  // namespace unisono::lang
