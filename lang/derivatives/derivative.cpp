#include "lang/derivatives/derivative.h"

#include <algorithm>

#include "lang/context/derivative_facts.h"
#include "lang/maps/map_spec.h"

namespace unisono::lang {
namespace {

/// The numbers in graphs of axes that are declared.
std::vector<ir::AxisId> axes_in_graph(const Context& context,
                                      const AxisSet& axes) {
  std::vector<ir::AxisId> ids;
  for (const MappedAxis& mapped : context.mapped_axes)
    if (std::ranges::binary_search(axes, mapped.axis->id))
      ids.push_back(mapped.id);
  std::ranges::sort(ids);
  return ids;
}

/// Without the axes of maps inside the derivative.
AxisSet mapped_here(const Context& context, const AxisSet& axes) {
  AxisSet here;
  for (const ir::AxisId axis : axes)
    if (std::ranges::any_of(context.mapped_axes, [&](const MappedAxis& mapped) {
          return mapped.axis->id == axis;
        }))
      here.push_back(axis);
  return here;
}

DerivativeArguments without_own(const DerivativeArguments& depends,
                                const Derivative& derivative) {
  DerivativeArguments rest = depends;
  std::erase_if(rest,
                [&](uint32_t argument) { return derivative.has(argument); });
  return rest;
}

/// All on which the outputs depend outside the derivative.
DerivativeArguments outer_depends(const WalkedFunction& walked) {
  DerivativeArguments all;
  for (const ArrayValue& output : walked.outputs)
    all = join(all, output->depends);
  return without_own(all, *walked.derivative);
}

/// Linear in the tangents of a rule around it, if the derivative is taken along
/// these at a point that has nothing to do with them.
Linearity linearity_along(Walk& walk, const WalkedFunction& walked,
                          const std::vector<ArrayValue>& directions) {
  using State = Linearity::State;
  if (!walk.context().in_linear_rule) return {};
  const auto touched = [](const ArrayValue& value) {
    return value->linearity.state == State::linear ||
           value->linearity.state == State::other;
  };
  const bool point =
      std::ranges::any_of(walked.outputs, touched) ||
      std::ranges::any_of(walked.leaves, touched, &DerivativeLeaf::value);
  if (point) return {State::other, walked.derivative->where};
  Linearity along{State::zero};
  for (const ArrayValue& direction : directions)
    along = either(along, direction->linearity);
  if (along.state == State::other && !along.broken_by)
    along.broken_by = walked.derivative->where;
  return directions.empty() ? Linearity{} : along;
}

Diagnostic no_derivative(Walk& walk, const jit::NoDerivative& none,
                         const WalkedFunction& walked) {
  const Derivative& derivative = *walked.derivative;
  const Span place =
      none.source ? walk.source_span(none.source) : derivative.where;
  using Why = jit::NoDerivative::Why;
  const auto make = [&]() -> Diagnostic {
    switch (none.why) {
      case Why::reverse_while: return reverse_while_error(derivative, place);
      case Why::no_factor: return lang::no_derivative(none.op, place);
      case Why::forward_custom_vjp:
        return diagnostic(Code::forward_custom_vjp, place, derivative.name,
                          "a function");
      case Why::rule_not_linear:
        return diagnostic(Code::rule_not_linear, place, "here",
                          ir::name(none.op));
    }
    __builtin_unreachable();
  };
  Diagnostic error = make();
  if (place != derivative.where)
    error.add_note(derivative.where, "the derivative is taken here");
  return error;
}

}  // namespace

WalkedFunction walk_function(
    Walk& walk, Derivative derivative, std::vector<DerivativeLeaf> leaves,
    const std::function<Value(const std::vector<ArrayValue>& parameters)>&
        body) {
  WalkedFunction out;
  size_t count = 0;
  for (const DerivativeLeaf& leaf : leaves)
    count = std::max(count, leaf.argument + 1);
  derivative.first = walk.new_derivative_arguments(count);
  derivative.arguments.resize(count);
  out.derivative = std::make_shared<Derivative>(std::move(derivative));
  out.leaves = std::move(leaves);
  const Span where = out.derivative->where;
  out.scope = walk.with_scope([&] {
    ContextScope context(walk);
    context->derivatives.push_back(out.derivative);
    std::vector<ArrayValue> parameters;
    for (const DerivativeLeaf& leaf : out.leaves) {
      const ArrayValue parameter =
          walk.mode() == Mode::check
              ? walk.unknown_array(leaf.value->type)
              : walk.scope()->add_parameter(leaf.value->type, {}, leaf.where);
      copy_facts(*leaf.value, *parameter);
      if (leaf.tangent) {
        parameter->varies = join(parameter->varies, leaf.tangent->varies);
        if (!parameter->varies_from)
          parameter->varies_from = leaf.tangent->varies_from;
        parameter->depends = join(parameter->depends, leaf.tangent->depends);
      }
      parameter->depends =
          join(parameter->depends,
               {out.derivative->first + static_cast<uint32_t>(leaf.argument)});
      tell_derivatives(walk.context(), *parameter);
      parameters.push_back(parameter);
    }
    out.result = map_leaves(body(parameters), [&](const Value& leaf) -> Value {
      require_known_result(walk, leaf, where);
      const ArrayCell* array = leaf.array();
      return array && array->weak ? walk.to_array(leaf, where, "a result")
                                  : leaf;
    });
    for_each_leaf(out.result, [&](const Value& leaf) {
      if (const auto* array = leaf.get_if<ArrayValue>())
        out.outputs.push_back(*array);
    });
    if (walk.mode() != Mode::check)
      out.graph = walk.scope()->finish(out.outputs);
  });
  if (!out.scope) return out;
  for (const DerivativeLeaf& leaf : out.leaves)
    out.arguments.push_back(leaf.value);
  out.arguments.insert(out.arguments.end(), out.scope->captures().begin(),
                       out.scope->captures().end());
  return out;
}

jit::DerivativeSpec spec_of(Walk& walk, const WalkedFunction& walked) {
  const Context& context = walk.context();
  jit::DerivativeSpec spec;
  spec.inputs.assign(walked.arguments.size(), false);
  std::fill_n(spec.inputs.begin(), walked.leaves.size(), true);
  spec.inside = !context.derivatives.empty();
  std::vector<ir::AxisId> all;
  for (const MappedAxis& mapped : context.mapped_axes) {
    spec.axes.push_back({mapped.id, mapped.size.value()});
    all.push_back(mapped.id);
  }
  std::ranges::sort(all);
  for (size_t i = 0; i < walked.arguments.size(); ++i)
    spec.varies.push_back(
        spec.inputs[i] ? all  // each member derives by its own copy
                       : axes_in_graph(context, walked.arguments[i]->varies));
  return spec;
}

ir::Graph graph_of(Walk& walk,
                   std::variant<jit::Graph, jit::NoDerivative> derivative,
                   const WalkedFunction& walked) {
  if (auto* graph = std::get_if<jit::Graph>(&derivative))
    return std::move(*graph);
  walk.fail(
      no_derivative(walk, std::get<jit::NoDerivative>(derivative), walked));
}

std::vector<ArrayValue> float_outputs(const WalkedFunction& walked) {
  std::vector<ArrayValue> floats;
  for (const ArrayValue& output : walked.outputs)
    if (is_floating(output->type.dtype)) floats.push_back(output);
  return floats;
}

void set_value_facts(const WalkedFunction& walked,
                     const std::vector<ArrayValue>& arrays) {
  for (size_t i = 0; i < walked.outputs.size(); ++i) {
    copy_facts(*walked.outputs[i], *arrays[i]);
    arrays[i]->depends = without_own(arrays[i]->depends, *walked.derivative);
  }
}

void set_tangent_facts(Walk& walk, const WalkedFunction& walked,
                       const ArrayCell& output, ArrayCell& tangent) {
  tangent.varies = output.varies;
  tangent.varies_from = output.varies_from;
  tangent.depends = outer_depends(walked);
  std::vector<ArrayValue> directions;
  for (const DerivativeLeaf& leaf : walked.leaves)
    if (leaf.tangent) directions.push_back(leaf.tangent);
  tangent.linearity = linearity_along(walk, walked, directions);
  tell_derivatives(walk.context(), tangent);
}

void set_cotangent_facts(Walk& walk, const WalkedFunction& walked,
                         const DerivativeLeaf& leaf,
                         const std::vector<ArrayValue>& given,
                         ArrayCell& cotangent) {
  const Derivative::Argument& noted =
      walked.derivative->arguments[leaf.argument];
  cotangent.varies =
      join(leaf.value->varies, mapped_here(walk.context(), noted.varies));
  cotangent.varies_from =
      leaf.value->varies.empty() ? noted.varies_from : leaf.value->varies_from;
  cotangent.depends = outer_depends(walked);
  for (const ArrayValue& direction : given) {
    cotangent.varies = join(cotangent.varies, direction->varies);
    if (!cotangent.varies_from) cotangent.varies_from = direction->varies_from;
    cotangent.depends = join(cotangent.depends, direction->depends);
  }
  cotangent.linearity = linearity_along(walk, walked, given);
  tell_derivatives(walk.context(), cotangent);
}

}  // namespace unisono::lang
