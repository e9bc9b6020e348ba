#include "lang/maps/map_call.h"

#include <fmt/format.h>

#include <algorithm>

#include "jit/transform/transforms.h"
#include "jit/vmap/vmap.h"
#include "lang/context/scope.h"
#include "lang/maps/donation.h"
#include "lang/maps/map_state.h"
#include "lang/maps/maps.h"
#include "lang/ops/array_ops.h"
#include "lang/sizes/known_sizes.h"

namespace unisono::lang {
namespace {

AxisSet without(const AxisSet& axes, ir::AxisId axis) {
  AxisSet rest = axes;
  std::erase(rest, axis);
  return rest;
}

void take_derivative_facts(const ArrayCell& from, ArrayCell& to) {
  to.depends = from.depends;
  to.linearity = from.linearity;
}

/// The operand with axis `from` moved to `to`.
ArrayValue move_axis(Walk& walk, const ArrayValue& value, int from, int to,
                     Span where) {
  if (from == to) return value;
  std::vector<int> axes;
  for (int i = 0; i < value->type.rank(); ++i)
    if (i != from) axes.push_back(i);
  axes.insert(axes.begin() + to, from);
  return transpose(walk, value, axes, where);
}

std::vector<ArrayValue> output_values(const BoundResult& result) {
  std::vector<ArrayValue> values;
  for (const MapOutput& output : result.outputs) values.push_back(output.value);
  return values;
}

/// The part of member 0: what a result that does not vary is.
ArrayValue first_member(Walk& walk, const ArrayValue& value, Span where) {
  const ir::Shape& shape = value->type.shape;
  return reshape(walk, slice_axis(walk, value, 0, 0, 1, where),
                 {shape.begin() + 1, shape.end()}, where);
}

/// What one logical map needs besides its arrays.
struct LogicalMap {
  std::shared_ptr<const AxisInfo> axis;
  ir::Dim members;
  Span where;
};
using MemberBody =
    std::function<BoundResult(const std::vector<ArrayValue>& member)>;

/// Checks a map: the body is walked once, with one member's types.
Value check_members(Walk& walk, const LogicalMap& map,
                    const std::vector<MapInput>& inputs, const MemberBody& body,
                    bool over_devices) {
  BoundResult result;
  {
    InsideMap inside(walk, map.axis, map.members, over_devices, map.where,
                     inputs);
    std::vector<ArrayValue> members;
    for (const MapInput& input : inputs) {
      const bool whole = input.entry.is_none();
      if (whole && input.value->literal) {  // which may not fit
        members.push_back(std::make_shared<ArrayCell>(*input.value));
        continue;
      }
      ArrayValue member = walk.unknown_array(input.member);
      member->weak = whole && input.value->weak;
      member->varies = member_varies(input, map.axis.get());
      member->varies_from = whole ? input.value->varies_from : input.where;
      take_derivative_facts(*input.value, *member);
      members.push_back(std::move(member));
    }
    result = body(members);
  }
  std::vector<ArrayValue> outputs;
  for (const MapOutput& output : result.outputs) {
    ArrayValue whole = walk.unknown_array(output.type);
    whole->varies = without(output.value->varies, map.axis->id);
    whole->varies_from = output.value->varies_from;
    take_derivative_facts(*output.value, *whole);
    outputs.push_back(std::move(whole));
  }
  return replace_arrays(result.tree, outputs);
}

/// The body, traced for one member.
struct TracedMember {
  BoundResult result;
  ir::Graph graph;
  size_t parameters = 0;  // its first inputs, which are mapped
  std::shared_ptr<GraphScope> scope;
};

TracedMember trace_member(Walk& walk, const LogicalMap& map,
                          const std::vector<MapInput>& inputs,
                          const MemberBody& body) {
  TracedMember out;
  out.scope = walk.with_scope([&] {
    InsideMap inside(walk, map.axis, map.members, false, map.where, inputs);
    GraphScope& graph = *walk.scope();
    std::vector<ArrayValue> members;
    for (const MapInput& input : inputs) {
      if (input.entry.is_none()) {
        members.push_back(input.value);
        continue;
      }
      members.push_back(graph.add_parameter(
          input.member, member_varies(input, map.axis.get()), input.where));
      take_derivative_facts(*input.value, *members.back());
      ++out.parameters;
    }
    out.result = body(members);
    out.graph = graph.finish(output_values(out.result));
  });
  return out;
}

/// The same at the top level: numbers that need not be known are no part of the
/// code, so other values of them compile nothing.
TracedMember trace_for_any_number(Walk& walk, const LogicalMap& map,
                                  const std::vector<MapInput>& inputs,
                                  const MemberBody& body) {
  KnownNumbers known;
  while (true) {
    NumberAttempt attempt(walk, known, false, map.where);
    std::vector<MapInput> given = inputs;
    for (MapInput& input : given) {
      if (!input.entry.is_none()) continue;
      input.value = *attempt.next(input.value).get_if<ArrayValue>();
      const ArrayCell& number = *input.value;
      if (number.weak && number.constant && !number.literal)  // of a `var`
        input.value = walk.on_first_device(number, map.where);
    }
    try {
      return trace_member(walk, map, given, body);
    } catch (const Failure& failure) {
      if (!attempt.given_up(failure, known)) throw;
    }
  }
}

/// Traces the body for one member, maps its graph over all, and appends that to
/// the graph around it.
Value vmap_members(Walk& walk, const LogicalMap& map,
                   const std::vector<MapInput>& inputs,
                   const MemberBody& body) {
  const bool run = walk.mode() == Mode::run;
  const auto [result, member, parameters, scope] =
      run ? trace_for_any_number(walk, map, inputs, body)
          : trace_member(walk, map, inputs, body);
  jit::VmapSpec spec;
  spec.axis = map.axis->id;
  spec.size = map.members.value();
  spec.mapped.assign(member.inputs.size(), false);
  std::fill_n(spec.mapped.begin(), parameters, true);

  std::vector<ArrayValue> arguments;
  for (const MapInput& input : inputs) {
    if (input.entry.is_none()) continue;
    arguments.push_back(
        move_axis(walk, input.value, input.entry.axis, 0, map.where));
  }
  arguments.insert(arguments.end(), scope->captures().begin(),
                   scope->captures().end());
  const std::vector<ArrayValue> all =
      walk.scope()->append(jit::vmap(member, spec), arguments);

  std::vector<ArrayValue> outputs;
  for (size_t i = 0; i < all.size(); ++i) {
    const MapOutput& output = result.outputs[i];
    const ArrayValue& stacked = all[i];
    stacked->varies = without(output.value->varies, map.axis->id);
    stacked->varies_from = output.value->varies_from;
    take_derivative_facts(*output.value, *stacked);
    outputs.push_back(
        output.entry.is_none()
            ? first_member(walk, stacked, map.where)
            : move_axis(walk, stacked, 0, output.entry.axis, map.where));
  }
  return replace_arrays(result.tree, outputs);
}

/// A vmap at the top level that holds maps over devices is computed at once:
/// another one may be over other devices.
Value vmap_on_devices(Walk& walk, const LogicalMap& map,
                      const std::vector<MapInput>& inputs,
                      const MemberBody& body) {
  const int64_t before = walk.nested_maps;
  Value result = vmap_members(walk, map, inputs, body);
  if (walk.mode() == Mode::run && walk.nested_maps > before)
    walk.flush(map.where);
  return result;
}

Value call_jit(Walk& walk, const MapCallee& callee,
               std::vector<CallArgument> positional,
               std::vector<std::pair<std::string, CallArgument>> named,
               Span where) {
  if (walk.mode() == Mode::run)
    return run_map(walk, callee, positional, named, where);
  if (!walk.in_compiled_code()) {
    for (CallArgument& argument : positional)
      argument.value = as_parameters(argument.value);
    for (auto& [name, argument] : named)
      argument.value = as_parameters(argument.value);
  }
  Value result;
  {
    InsideMap inside(walk, nullptr, 1, false, where);
    result = walk.call(callee.map.inner, std::move(positional),
                       std::move(named), where);
  }
  if (!walk.in_compiled_code())
    for_each_leaf(result, [&](const Value& leaf) {
      require_known_result(walk, leaf, where);
    });
  return result;
}

Value call_pmap(Walk& walk, const MapCallee& callee,
                std::vector<CallArgument> positional,
                std::vector<std::pair<std::string, CallArgument>> named,
                Span where) {
  if (walk.mode() == Mode::run)
    return run_map(walk, callee, positional, named, where);
  forbid_remapping(walk, callee, where);
  join_mesh(walk, callee, where);
  return walk.mode() == Mode::check
             ? map_over(walk, callee, std::move(positional), std::move(named),
                        where)
             : nested_map(walk, callee, std::move(positional), std::move(named),
                          where);
}

}  // namespace

void forbid_remapping(Walk& walk, const MapCallee& callee, Span where) {
  for (const MappedAxis& mapped : walk.context().mapped_axes) {
    if (mapped.axis->id != callee.axis->id) continue;
    auto error = diagnostic(Code::axis_mapped_twice, where, label(*callee.axis),
                            callee.function.name);
    if (mapped.where) error.add_note(mapped.where, "mapped by this call");
    error.set_help("an axis is mapped once; declare another one for this map");
    walk.fail(std::move(error));
  }
}

void forbid_empty_copy(Walk& walk, const MapCallee& callee,
                       const MapLayout& layout, const BoundResult& result,
                       Span where) {
  if (layout.members != ir::Dim(0)) return;
  for (const MapOutput& output : result.outputs) {
    if (!output.entry.is_none()) continue;
    walk.fail(diagnostic(Code::no_members, where, callee.function.name)
                  .set_help("use out_axes=0, which stacks nothing to nothing"));
  }
}

/// What is passed must still be there; what is donated is not, afterwards.
void check_inputs(Walk& walk, const MapCallee& callee, const BoundCall& call) {
  std::vector<PassedArray> passed;
  for (const MapInput& input : call.inputs) {
    walk.forbid_donated(input.value, input.where);
    passed.push_back({input.value, input.where, input.path});
  }
  give_away(walk, callee.function, passed, donated_inputs(callee, call));
}

/// A call of `vmap` in any mode, and of `pmap` in check mode.
Value map_over(Walk& walk, const MapCallee& callee,
               std::vector<CallArgument> positional,
               std::vector<std::pair<std::string, CallArgument>> named,
               Span where) {
  forbid_remapping(walk, callee, where);
  const BoundCall call =
      bind_call(walk, callee, std::move(positional), std::move(named), where);
  const LogicalMap map{callee.axis, call.layout.members, where};
  if (walk.mode() == Mode::check) check_inputs(walk, callee, call);
  const auto body = [&](const std::vector<ArrayValue>& member) {
    BoundResult result = call_member(walk, callee, call, member, where);
    forbid_empty_copy(walk, callee, call.layout, result, where);
    return result;
  };
  return walk.mode() == Mode::check
             ? check_members(walk, map, call.inputs, body, !callee.is_vmap())
             : vmap_on_devices(walk, map, call.inputs, body);
}

std::string varies_note(Walk& walk, const ArrayCell& array) {
  std::string names;
  for (const MappedAxis& mapped : walk.context().mapped_axes) {
    if (!std::ranges::binary_search(array.varies, mapped.axis->id)) continue;
    names += names.empty() ? " varies over " : ", ";
    names += mapped.axis->anonymous ? label(*mapped.axis) : mapped.axis->name;
  }
  return names;
}

InsideMap::InsideMap(Walk& walk, std::shared_ptr<const AxisInfo> axis,
                     const ir::Dim& members, bool over_devices, Span where,
                     const std::vector<MapInput>& inputs,
                     std::optional<ir::AxisId> id)
    : context_(walk) {
  if (!context_->compiled)
    context_->compiled = std::make_shared<CompiledCode>();
  if (!axis) return;
  std::shared_ptr<const Mesh>& mesh = context_->compiled->mesh;
  if (over_devices && !mesh) mesh = axis->mesh;
  const ir::AxisId in_graph = id.value_or(axis->id);
  context_->mapped_axes.push_back({std::move(axis), in_graph, members,
                                   over_devices, where, member_facts(inputs)});
}

AxisSet member_varies(const MapInput& input, const AxisInfo* axis) {
  if (!axis || input.entry.is_none()) return input.value->varies;
  return join(input.value->varies, {axis->id});
}

BoundResult call_member(Walk& walk, const MapCallee& callee, BoundCall call,
                        const std::vector<ArrayValue>& arrays, Span where) {
  call.replace_arrays(arrays);
  const MapLayout layout = call.layout;
  Value result;
  try {
    result = walk.call(callee.map.inner, std::move(call.positional),
                       std::move(call.named), where);
  } catch (Failure& failure) {
    // One inside the function has been reported with these facts already.
    if (!failure.reported && !walk.context().mapped_axes.empty() &&
        info(failure.diagnostic.code).number.starts_with("U03")) {
      for (const std::string& fact : walk.context().mapped_axes.back().facts)
        failure.diagnostic.add_fact(fact);
    }
    throw;
  }
  return bind_result(walk, callee, layout, std::move(result), where);
}

Value call_transformed(Walk& walk,
                       const std::shared_ptr<const FunctionValue>& function,
                       std::vector<CallArgument> positional,
                       std::vector<std::pair<std::string, CallArgument>> named,
                       Span where) {
  const Transformed& map = std::get<Transformed>(function->what);
  const MapCallee callee{*function, map, map.state->axis};
  switch (map.kind) {
    case Transformed::Kind::jit:
      return call_jit(walk, callee, std::move(positional), std::move(named),
                      where);
    case Transformed::Kind::vmap:
      return map_over(walk, callee, std::move(positional), std::move(named),
                      where);
    case Transformed::Kind::pmap:
      return call_pmap(walk, callee, std::move(positional), std::move(named),
                       where);
  }
  return {};
}

Value map_members(
    Walk& walk, const ir::Dim& count, std::vector<Value> mapped,
    const std::function<Value(const std::vector<Value>& member)>& body,
    Span where) {
  Transformed map;
  map.kind = Transformed::Kind::vmap;
  map.in_axes = map.out_axes = IntValue{0};
  map.where = where;
  FunctionValue function{"comprehension", map};
  auto inner = std::make_shared<FunctionValue>(function);
  std::get<Transformed>(function.what).inner = inner;
  const MapCallee callee{function, std::get<Transformed>(function.what),
                         anonymous_axis(walk, function.name, where)};
  MapLayout layout;
  layout.members = layout.per_device = count;

  std::vector<MapInput> inputs;
  for (const Value& tree : mapped) {
    for_each_leaf(tree, [&](const Value& leaf) {
      MapInput input;
      input.value = *leaf.get_if<ArrayValue>();
      input.entry = {AxisEntry::Kind::mapped, 0};
      input.where = where;
      input.type = input.member = input.value->type;
      input.member.shape.erase(input.member.shape.begin());
      inputs.push_back(std::move(input));
    });
  }
  const auto member_body = [&](const std::vector<ArrayValue>& arrays) {
    size_t next = 0;
    std::vector<Value> parts;
    for (const Value& tree : mapped) {
      parts.push_back(map_leaves(
          tree, [&](const Value&) -> Value { return arrays[next++]; }));
    }
    return bind_result(walk, callee, layout, body(parts), where);
  };
  const LogicalMap logical{callee.axis, count, where};
  return walk.mode() == Mode::check
             ? check_members(walk, logical, inputs, member_body, false)
             : vmap_on_devices(walk, logical, inputs, member_body);
}

}  // namespace unisono::lang
