#include "jit/derivative/derivative.h"

#include <algorithm>
#include <memory>

#include "jit/derivative/late_inputs.h"
#include "jit/derivative/linearize.h"
#include "jit/derivative/transpose.h"
#include "jit/ir/kinds.h"
#include "jit/ir/renaming.h"
#include "jit/loops/plain_loop.h"
#include "jit/scalar/element.h"
#include "jit/transform/transforms.h"

namespace unisono::jit {
namespace {

using ir::LoopAttrs;
using ir::Node;
using ir::Op;
using ir::Type;

// ---- loops whose number of turns is computed --------------------------------

Graph with_plain_loops(const Graph& graph);

/// Results of the loop that replaces it: one that is not counted, and begins at
/// the turn that its direction says.
std::vector<NodeId> place_plain(Graph& out, const Node& node) {
  LoopAttrs a = ir::attrs<LoopAttrs>(node);
  a.body = shared(with_plain_loops(*a.body));
  const auto carries = static_cast<size_t>(a.carries);
  std::vector<Type> types;
  for (const NodeId operand : node.inputs) types.push_back(out.type(operand));
  LoopAttrs plain = plain_loop(a, types);
  plain.most = a.turns;
  const Type turn{DType::I64, {}};
  const auto number = [&](Graph& g, int64_t value) {
    return g.add_constant(turn, element_bytes(DType::I64, value));
  };
  if (!a.backwards) {
    Graph condition;
    for (const Type& type : plain.condition->input_types())
      condition.add_input(type);
    condition.outputs = {condition.add(Op::lt, {0, 1 + a.count})};
    plain.condition = shared(std::move(condition));
  }
  const NodeId count = node.inputs[static_cast<size_t>(a.count)];
  std::vector<NodeId> operands = {
      a.backwards ? out.add(Op::sub, {count, number(out, 1)}) : number(out, 0)};
  operands.insert(operands.end(), node.inputs.begin(),
                  node.inputs.begin() + a.carries);
  const size_t results = a.body->outputs.size();
  for (size_t i = carries; i < results; ++i) {
    const Type stack = ir::stack_type(a, a.body->type(a.body->outputs[i]));
    operands.push_back(
        out.add_constant(stack, element_bytes(stack.dtype, int64_t{0})));
  }
  operands.insert(operands.end(), node.inputs.begin() + a.carries,
                  node.inputs.end());
  const NodeId loop = out.add(Op::loop, operands, plain, node.source);
  std::vector<NodeId> given;
  for (size_t i = 0; i < results; ++i)
    given.push_back(projected(out, loop, 1 + i));
  return given;
}

Graph with_plain_loops(const Graph& graph) {
  Graph out;
  ir::Renaming placed(graph);
  std::unordered_map<NodeId, std::vector<NodeId>> plain;
  for (const NodeId id : ir::node_ids(graph)) {
    const Node& old = graph[id];
    if (old.op == Op::input) {
      placed.set(id, out.add_input(old.type, old.source));
      continue;
    }
    if (old.op == Op::project && plain.contains(old.inputs[0])) {
      const int index = ir::attrs<ir::ProjectAttrs>(old).index;
      placed.set(id, plain[old.inputs[0]][static_cast<size_t>(index)]);
      continue;
    }
    Node node = placed.renamed(id);
    if (auto* a = std::get_if<ir::IfAttrs>(&node.attrs)) {
      a->then_graph = shared(with_plain_loops(*a->then_graph));
      a->else_graph = shared(with_plain_loops(*a->else_graph));
    } else if (auto* loop = std::get_if<LoopAttrs>(&node.attrs)) {
      if (loop->count >= 0) {
        plain[id] = place_plain(out, node);
        continue;
      }
      if (loop->condition)
        loop->condition = shared(with_plain_loops(*loop->condition));
      loop->body = shared(with_plain_loops(*loop->body));
    }
    placed.set(id, out.append(std::move(node)));
  }
  out.outputs = placed.renamed(graph.outputs);
  return out;
}

// ---- axes -------------------------------------------------------------------

/// Adds those of collectives in the graph.
void collect_axes(const Graph& graph, std::vector<MappedMembers>& axes) {
  for (const Node& node : graph.nodes) {
    if (const auto* a = std::get_if<ir::CollectiveAttrs>(&node.attrs)) {
      for (size_t i = 0; i < a->axes.size(); ++i)
        if (std::ranges::find(axes, a->axes[i], &MappedMembers::axis) ==
            axes.end())
          axes.push_back({a->axes[i], a->sizes[i].value()});
    } else if (const auto* a = std::get_if<ir::IfAttrs>(&node.attrs)) {
      collect_axes(*a->then_graph, axes);
      collect_axes(*a->else_graph, axes);
    } else if (const auto* a = std::get_if<LoopAttrs>(&node.attrs)) {
      if (a->condition) collect_axes(*a->condition, axes);
      collect_axes(*a->body, axes);
    } else if (const auto* a = std::get_if<ir::CallAttrs>(&node.attrs)) {
      collect_axes(*a->graph, axes);
      collect_axes(*a->rule, axes);
    }
  }
}

std::vector<AxisMask> input_masks(const DerivativeSpec& spec, size_t inputs,
                                  const std::vector<MappedMembers>& axes) {
  std::vector<AxisMask> out(inputs, 0);
  for (size_t i = 0; i < spec.varies.size(); ++i)
    for (size_t k = 0; k < axes.size(); ++k)
      if (std::ranges::find(spec.varies[i], axes[k].axis) !=
          spec.varies[i].end())
        out[i] |= AxisMask{1} << k;
  return out;
}

// ---- the two modes ----------------------------------------------------------

Graph forward(const Graph& graph, const DerivativeSpec& spec) {
  Linearizer both(Linearizer::Form::together);
  Duals inputs;
  for (const Type& type : graph.input_types())
    inputs.push_back({both.values().add_input(type)});
  for (size_t i = 0; i < inputs.size(); ++i)
    if (spec.inputs[i])
      inputs[i].tangent = both.values().add_input(graph.type(graph.inputs[i]));
  const Duals outputs = both.place(graph, inputs);
  Graph& out = both.values();
  for (const Dual& output : outputs) out.outputs.push_back(output.value);
  for (const Dual& output : outputs)
    if (is_floating(out.type(output.value).dtype))
      out.outputs.push_back(both.tangent_or_zeros(output));
  return std::move(out);
}

/// The linear graph, turned around: takes known values, then cotangents.
Graph transposed(const Graph& linear, size_t tangents,
                 const std::vector<MappedMembers>& axes,
                 const std::vector<AxisMask>& varies,
                 const std::vector<AxisMask>& given) {
  std::vector<bool> is_linear(linear.inputs.size(), false);
  std::fill_n(is_linear.begin(), tangents, true);
  Transposer back(linear, is_linear, axes, varies);
  std::vector<NodeId> inputs, arguments(tangents, -1);
  for (size_t i = tangents; i < linear.inputs.size(); ++i) {
    inputs.push_back(add_late_input(back.out, linear.type(linear.inputs[i])));
    arguments.push_back(inputs.back());
  }
  back.place_known(arguments);
  for (size_t i = 0; i < linear.outputs.size(); ++i) {
    inputs.push_back(add_late_input(back.out, linear.type(linear.outputs[i])));
    back.seed(i, inputs.back(), given[i]);
  }
  back.run();
  for (size_t i = 0; i < tangents; ++i)
    back.out.outputs.push_back(back.cotangent(i));
  return with_inputs(back.out, inputs);
}

Graph reverse(const Graph& graph, const DerivativeSpec& spec) {
  Linearizer apart(Linearizer::Form::apart);
  Duals inputs;
  std::vector<NodeId> tangents;
  for (const Type& type : graph.input_types())
    inputs.push_back({apart.values().add_input(type)});
  std::vector<MappedMembers> axes = spec.axes;
  collect_axes(graph, axes);
  const std::vector<AxisMask> masks = input_masks(spec, inputs.size(), axes);
  std::vector<AxisMask> varies;
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (!spec.inputs[i]) continue;
    inputs[i].tangent =
        add_late_input(apart.tangents(), graph.type(graph.inputs[i]));
    tangents.push_back(inputs[i].tangent);
    varies.push_back(masks[i]);
  }
  const Duals outputs = apart.place(graph, inputs);
  const std::vector<AxisMask> known =
      varying_masks(apart.values(), axes, masks);
  std::vector<bool> seeded;
  std::vector<AxisMask> given_masks;
  for (size_t i = 0; i < outputs.size(); ++i) {
    const bool is_float = is_floating(graph.type(graph.outputs[i]).dtype);
    seeded.push_back(is_float && (spec.outputs.empty() || spec.outputs[i]));
    if (!seeded[i] || !outputs[i].has_tangent()) continue;
    apart.tangents().outputs.push_back(outputs[i].tangent);
    given_masks.push_back(known[outputs[i].value]);
  }
  const Graph linear = apart.finished_tangents(tangents);
  Graph& values = apart.values();
  for (const NodeId id : apart.taken()) varies.push_back(known[id]);
  const Graph back =
      transposed(linear, tangents.size(), axes, varies, given_masks);

  for (const Dual& output : outputs) values.outputs.push_back(output.value);
  for (const NodeId id : apart.taken()) values.outputs.push_back(id);
  Graph out;
  std::vector<NodeId> own;
  for (const Type& type : graph.input_types())
    own.push_back(out.add_input(type));
  std::vector<NodeId> cotangents;
  for (size_t i = 0; i < outputs.size(); ++i) {
    if (!seeded[i]) continue;
    const NodeId c = out.add_input(graph.type(graph.outputs[i]));
    if (outputs[i].has_tangent()) cotangents.push_back(c);
  }
  const std::vector<NodeId> given = inline_graph(out, values, own);
  const auto taken = given.begin() + static_cast<ptrdiff_t>(outputs.size());
  std::vector<NodeId> arguments(taken, given.end());
  arguments.insert(arguments.end(), cotangents.begin(), cotangents.end());
  out.outputs.assign(given.begin(), taken);
  for (const NodeId id : inline_graph(out, back, arguments))
    out.outputs.push_back(id);
  return with_plain_loops(out);
}

std::variant<Graph, NoDerivative> differentiated(
    Graph (*mode)(const Graph&, const DerivativeSpec&), const Graph& graph,
    const DerivativeSpec& spec) {
  try {
    const Graph out = mode(graph, spec);
    return cse_dce(spec.inside ? out : without_calls(out));
  } catch (const NoDerivative& none) {
    return none;
  }
}

}  // namespace

std::variant<Graph, NoDerivative> jvp(const Graph& graph,
                                      const DerivativeSpec& spec) {
  return differentiated(forward, graph, spec);
}

std::variant<Graph, NoDerivative> vjp(const Graph& graph,
                                      const DerivativeSpec& spec) {
  return differentiated(reverse, graph, spec);
}

}  // namespace unisono::jit
