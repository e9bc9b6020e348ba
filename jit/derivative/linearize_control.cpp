// Branches, and calls of functions with rules.
#include <algorithm>
#include <functional>
#include <memory>

#include "jit/derivative/depends.h"
#include "jit/derivative/late_inputs.h"
#include "jit/derivative/linearize.h"
#include "jit/derivative/residuals.h"
#include "jit/ir/kinds.h"
#include "jit/ir/renaming.h"
#include "jit/transform/transforms.h"

namespace unisono::jit {

using ir::Node;
using ir::Op;
using ir::Type;
using Flags = std::vector<bool>;

namespace {

Flags flags_of(const Duals& x, size_t from = 0) {
  Flags out;
  for (size_t i = from; i < x.size(); ++i) out.push_back(x[i].has_tangent());
  return out;
}

bool any(const Flags& flags) {
  return std::find(flags.begin(), flags.end(), true) != flags.end();
}

bool gives_floats(const Node& call) {
  const auto& results = ir::attrs<ir::HostCallAttrs>(call).results;
  return std::ranges::any_of(
      results, [](const Type& type) { return is_floating(type.dtype); });
}

void place_without_calls(Graph& out, const Graph& graph, ir::Renaming& placed) {
  std::unordered_map<NodeId, std::vector<NodeId>> called;
  for (const NodeId id : ir::node_ids(graph)) {
    const Node& old = graph[id];
    if (old.op == Op::input) continue;
    if (old.op == Op::project && called.contains(old.inputs[0])) {
      const int index = ir::attrs<ir::ProjectAttrs>(old).index;
      placed.set(id, called[old.inputs[0]][static_cast<size_t>(index)]);
      continue;
    }
    Node node = placed.renamed(id);
    if (const auto* a = std::get_if<ir::CallAttrs>(&node.attrs)) {
      called[id] = inline_graph(out, without_calls(*a->graph), node.inputs);
      continue;
    }
    placed.set(id, out.append(without_calls(std::move(node))));
  }
}

bool has_calls(const Graph& graph) {
  return std::ranges::any_of(graph.nodes, [](const Node& node) {
    if (const auto* a = std::get_if<ir::IfAttrs>(&node.attrs))
      return has_calls(*a->then_graph) || has_calls(*a->else_graph);
    if (const auto* a = std::get_if<ir::LoopAttrs>(&node.attrs))
      return (a->condition && has_calls(*a->condition)) || has_calls(*a->body);
    return node.op == Op::call;
  });
}

/// A rule, taken apart: its nodes that depend on its linear inputs go to
/// `linear`, the others to `known`, which `take` brings there.
std::vector<NodeId> place_rule(Graph& known, Graph& linear, const Graph& rule,
                               const std::vector<NodeId>& known_arguments,
                               const std::vector<NodeId>& linear_arguments,
                               const std::function<NodeId(NodeId)>& take,
                               Flags* is_linear) {
  Flags linear_nodes(rule.nodes.size(), false);
  ir::Renaming placed(rule);
  for (const NodeId id : ir::node_ids(rule)) {
    const auto i = static_cast<size_t>(id);
    const Node& old = rule[id];
    if (old.op == Op::input) {
      linear_nodes[i] = i >= known_arguments.size();
      placed.set(id, linear_nodes[i]
                         ? linear_arguments[i - known_arguments.size()]
                         : known_arguments[i]);
      continue;
    }
    linear_nodes[i] = std::ranges::any_of(
        old.inputs, [&](NodeId operand) { return linear_nodes[operand]; });
    Node node = placed.renamed(id);
    if (linear_nodes[i])
      for (size_t k = 0; k < old.inputs.size(); ++k)
        if (!linear_nodes[old.inputs[k]]) node.inputs[k] = take(node.inputs[k]);
    placed.set(id, (linear_nodes[i] ? linear : known).append(std::move(node)));
  }
  for (const NodeId output : rule.outputs)
    is_linear->push_back(linear_nodes[output]);
  return placed.renamed(rule.outputs);
}

}  // namespace

Graph without_calls(const Graph& graph) {
  if (!has_calls(graph)) return graph;
  Graph out;
  ir::Renaming placed(graph);
  for (const NodeId id : graph.inputs)
    placed.set(id, out.add_input(graph.type(id)));
  place_without_calls(out, graph, placed);
  out.outputs = placed.renamed(graph.outputs);
  return out;
}

Node without_calls(Node node) {
  if (auto* a = std::get_if<ir::IfAttrs>(&node.attrs)) {
    a->then_graph = shared(without_calls(*a->then_graph));
    a->else_graph = shared(without_calls(*a->else_graph));
  } else if (auto* a = std::get_if<ir::LoopAttrs>(&node.attrs)) {
    if (a->condition) a->condition = shared(without_calls(*a->condition));
    a->body = shared(without_calls(*a->body));
  }
  return node;
}

Duals Linearizer::results_of(NodeId control) {
  Duals out;
  const auto count = static_cast<size_t>(ir::result_count(values_[control]));
  for (size_t i = 0; i < count; ++i)
    out.push_back({projected(values_, control, i)});
  return out;
}

Duals Linearizer::place_control(const Node& node, const Duals& x) {
  if (node.op == Op::call) return place_call(node, x);
  const bool derived = any(flags_of(x));
  if (node.op == Op::host_call) {
    if (derived && gives_floats(node))
      throw NoDerivative{NoDerivative::Why::no_factor, node.op, source_};
  } else if (derived) {
    return node.op == Op::loop ? place_loop(node, x) : place_if(node, x);
  }
  return results_of(place_value(node, x));
}

// ---- branches ---------------------------------------------------------------

Duals Linearizer::place_if(const Node& node, const Duals& x) {
  const auto& a = ir::attrs<ir::IfAttrs>(node);
  const Flags captures = flags_of(x, 1);
  Flags results = depending_outputs(*a.then_graph, captures);
  const Flags other = depending_outputs(*a.else_graph, captures);
  for (size_t i = 0; i < results.size(); ++i)
    results[i] = results[i] || other[i];
  if (!any(results)) return results_of(place_value(node, x));
  if (apart()) return place_if_apart(node, x, results);

  const auto branch = [&](const Graph& graph) {
    Linearizer part(Form::together);
    Duals inputs;
    for (const NodeId id : graph.inputs)
      inputs.push_back({part.values_.add_input(graph.type(id))});
    for (size_t i = 0; i < captures.size(); ++i)
      if (captures[i])
        inputs[i].tangent = part.values_.add_input(part.type(inputs[i]));
    const Duals outputs = part.place(graph, inputs);
    for (const Dual& output : outputs)
      part.values_.outputs.push_back(output.value);
    for (size_t i = 0; i < outputs.size(); ++i)
      if (results[i])
        part.values_.outputs.push_back(part.tangent_or_zeros(outputs[i]));
    return shared(std::move(part.values_));
  };
  std::vector<NodeId> operands;
  for (const Dual& operand : x) operands.push_back(operand.value);
  for (size_t i = 1; i < x.size(); ++i)
    if (x[i].has_tangent()) operands.push_back(x[i].tangent);
  const NodeId both =
      v(Op::if_else, operands,
        ir::IfAttrs{branch(*a.then_graph), branch(*a.else_graph)});
  Duals out;
  size_t next = results.size();
  for (size_t i = 0; i < results.size(); ++i) {
    out.push_back({projected(values_, both, i)});
    if (results[i]) out[i].tangent = projected(values_, both, next++);
  }
  return out;
}

namespace {

/// One branch, taken apart.
struct Branch {
  explicit Branch(const Graph& graph, const Flags& captures,
                  const Flags& results)
      : parts(Linearizer::Form::apart) {
    Duals inputs;
    std::vector<NodeId> tangents;
    for (const NodeId id : graph.inputs)
      inputs.push_back({parts.values().add_input(graph.type(id))});
    for (size_t i = 0; i < captures.size(); ++i) {
      if (!captures[i]) continue;
      inputs[i].tangent =
          add_late_input(parts.tangents(), graph.type(graph.inputs[i]));
      tangents.push_back(inputs[i].tangent);
    }
    outputs = parts.place(graph, inputs);
    for (size_t i = 0; i < outputs.size(); ++i)
      if (results[i])
        parts.tangents().outputs.push_back(parts.tangent_or_zeros(outputs[i]));
    linear = parts.finished_tangents(tangents);
    parts.join_equal_values(outputs);
    const Flags all(graph.inputs.size(), true);
    kept = residuals(parts.values(), all, parts.taken(), values_of(outputs));
    needed = needed_for(parts.values(), kept, parts.taken());
  }

  Linearizer parts;
  Duals outputs;
  Graph linear;
  std::vector<NodeId> kept;
  Flags needed;
  std::vector<size_t> slots;  // of what is kept
};

/// Places for what either branch keeps: values of equal type share one.
std::vector<Type> assign_slots(Branch& yes, Branch& no) {
  std::vector<Type> slots;
  for (Branch* branch : {&yes, &no}) {
    Flags used(slots.size(), false);
    for (const NodeId id : branch->kept) {
      const Type& type = branch->parts.values().type(id);
      size_t slot = 0;
      while (slot < used.size() && (used[slot] || slots[slot] != type)) ++slot;
      if (slot == used.size()) {
        used.push_back(false);
        slots.push_back(type);
      }
      used[slot] = true;
      branch->slots.push_back(slot);
    }
  }
  return slots;
}

Graph known_branch(Branch& branch, const std::vector<Type>& slots) {
  Graph out = branch.parts.values();
  for (const Dual& output : branch.outputs) out.outputs.push_back(output.value);
  std::vector<NodeId> given(slots.size(), -1);
  for (size_t i = 0; i < branch.kept.size(); ++i)
    given[branch.slots[i]] = branch.kept[i];
  for (size_t i = 0; i < slots.size(); ++i)
    out.outputs.push_back(given[i] >= 0 ? given[i] : add_zeros(out, slots[i]));
  return out;
}

/// Takes the captures that `needed` names, the slots, the tangents.
Graph linear_branch(const Branch& branch, const Flags& needed,
                    const std::vector<Type>& slots, const Flags& tangents) {
  Graph out;
  const Graph& known = branch.parts.values();
  ir::Renaming have(known);
  for (size_t i = 0; i < needed.size(); ++i)
    if (needed[i])
      have.set(known.inputs[i], out.add_input(known.type(known.inputs[i])));
  std::vector<NodeId> places;
  for (const Type& slot : slots) places.push_back(out.add_input(slot));
  for (size_t i = 0; i < branch.kept.size(); ++i)
    have.set(branch.kept[i], places[branch.slots[i]]);
  std::vector<NodeId> arguments;
  for (size_t i = 0; i < tangents.size(); ++i)
    if (tangents[i])
      arguments.push_back(out.add_input(known.type(known.inputs[i])));
  for (const NodeId id : recompute(out, known, have, branch.parts.taken()))
    arguments.push_back(id);
  out.outputs = inline_graph(out, branch.linear, arguments);
  return out;
}

}  // namespace

Duals Linearizer::place_if_apart(const Node& node, const Duals& x,
                                 const Flags& results) {
  const auto& a = ir::attrs<ir::IfAttrs>(node);
  const Flags captures = flags_of(x, 1);
  Branch yes(*a.then_graph, captures, results);
  Branch no(*a.else_graph, captures, results);
  const std::vector<Type> slots = assign_slots(yes, no);

  std::vector<NodeId> operands;
  for (const Dual& operand : x) operands.push_back(operand.value);
  const NodeId known = v(Op::if_else, operands,
                         ir::IfAttrs{shared(known_branch(yes, slots)),
                                     shared(known_branch(no, slots))});
  Duals out;
  for (size_t i = 0; i < results.size(); ++i)
    out.push_back({projected(values_, known, i)});

  Flags needed;
  for (size_t i = 0; i < captures.size(); ++i)
    needed.push_back(yes.needed[i] || no.needed[i]);
  std::vector<NodeId> taken = {take(x[0].value)};
  for (size_t i = 0; i < captures.size(); ++i)
    if (needed[i]) taken.push_back(take(x[i + 1].value));
  for (size_t i = 0; i < slots.size(); ++i)
    taken.push_back(take(projected(values_, known, results.size() + i)));
  for (size_t i = 0; i < captures.size(); ++i)
    if (captures[i]) taken.push_back(x[i + 1].tangent);
  const NodeId linear =
      t(Op::if_else, taken,
        ir::IfAttrs{shared(linear_branch(yes, needed, slots, captures)),
                    shared(linear_branch(no, needed, slots, captures))});
  size_t next = 0;
  for (size_t i = 0; i < results.size(); ++i)
    if (results[i]) out[i].tangent = projected(tangents(), linear, next++);
  return out;
}

// ---- calls ------------------------------------------------------------------

Duals Linearizer::place_call(const Node& node, const Duals& x) {
  const auto& a = ir::attrs<ir::CallAttrs>(node);
  // A derivative around this one may ask for its rule.
  if (!any(flags_of(x))) return results_of(place_value(node, x));
  if (a.kind == ir::CallAttrs::Rule::jvp) return place_forward_rule(node, x);
  if (!apart())
    throw NoDerivative{NoDerivative::Why::forward_custom_vjp, node.op, source_};
  return place_reverse_rule(node, x);
}

namespace {

/// Whether a branch, a loop or a call in a rule depends on a tangent; its
/// inputs from `first` on are tangents.
bool has_linear_control(const Graph& rule, size_t first) {
  Flags linear(rule.nodes.size(), false);
  for (const NodeId id : ir::node_ids(rule)) {
    const Node& node = rule[id];
    if (node.op == Op::input)
      linear[id] = static_cast<size_t>(id) >= first;
    else
      linear[id] = std::ranges::any_of(
          node.inputs, [&](NodeId operand) { return linear[operand]; });
    if (linear[id] && ir::kind(node.op) == ir::Kind::control &&
        node.op != Op::project)
      return true;
  }
  return false;
}

}  // namespace

/// A branch or a loop of a rule may give values and tangents, and has to be
/// taken apart. What is linear is its own derivative, at zeros as anywhere, so
/// the rule is differentiated by its tangents.
Duals Linearizer::place_rule_with_control(const Node& node, const Duals& x) {
  const Graph& rule = *ir::attrs<ir::CallAttrs>(node).rule;
  Duals arguments;
  for (const Dual& operand : x) arguments.push_back({operand.value});
  for (const Dual& operand : x)
    if (is_floating(type(operand).dtype))
      arguments.push_back(
          {add_zeros(values_, Type(type(operand))), tangent_or_zeros(operand)});
  const Duals given = place(rule, arguments);
  const auto not_linear = [&] {
    throw NoDerivative{NoDerivative::Why::rule_not_linear, node.op,
                       node.source};
  };
  const size_t results = ir::attrs<ir::CallAttrs>(node).graph->outputs.size();
  Duals out;
  size_t next = results;
  for (size_t i = 0; i < results; ++i) {
    if (given[i].has_tangent()) not_linear();
    out.push_back({given[i].value});
    if (!is_floating(type(out[i]).dtype)) continue;
    out[i].tangent = given[next].tangent;
    if (!given[next].has_tangent() && !is_zero(values_, given[next].value))
      not_linear();
    ++next;
  }
  return out;
}

Duals Linearizer::place_forward_rule(const Node& node, const Duals& x) {
  const auto& a = ir::attrs<ir::CallAttrs>(node);
  if (has_linear_control(*a.rule, x.size()))
    return place_rule_with_control(node, x);
  std::vector<NodeId> known, linear;
  for (const Dual& operand : x) {
    known.push_back(operand.value);
    if (is_floating(type(operand).dtype))
      linear.push_back(tangent_or_zeros(operand));
  }
  Flags is_linear;
  const std::vector<NodeId> given = place_rule(
      values_, tangents(), *a.rule, known, linear,
      [this](NodeId id) { return take(id); }, &is_linear);
  Duals out;
  const size_t results = a.graph->outputs.size();
  size_t next = results;
  for (size_t i = 0; i < results; ++i) {
    // A value that depends on tangents would be a mistake of the rule.
    if (is_linear[i])
      throw NoDerivative{NoDerivative::Why::rule_not_linear, node.op, source_};
    out.push_back({given[i]});
    if (!is_floating(type(out[i]).dtype)) continue;
    if (is_linear[next])
      out[i].tangent = given[next];
    else if (!is_zero(values_, given[next]))
      throw NoDerivative{NoDerivative::Why::rule_not_linear, node.op, source_};
    ++next;
  }
  return out;
}

/// What of the rule does not depend on cotangents is known. The rest becomes a
/// call in the linear graph: of the known values that it reads and of the
/// operands' tangents, with a rule that gives cotangents for the latter.
Duals Linearizer::place_reverse_rule(const Node& node, const Duals& x) {
  const auto& a = ir::attrs<ir::CallAttrs>(node);
  std::vector<NodeId> known, cotangents, tangent_operands;
  Graph rule;
  std::vector<Type> given_types;
  for (const Dual& operand : x) {
    known.push_back(operand.value);
    if (is_floating(type(operand).dtype))
      tangent_operands.push_back(tangent_or_zeros(operand));
  }
  for (const Type& result : a.graph->output_types())
    if (is_floating(result.dtype)) {
      cotangents.push_back(add_late_input(rule, result));
      given_types.push_back(result);
    }
  std::vector<NodeId> needed, needed_inputs;
  std::unordered_map<NodeId, NodeId> there;
  const auto bring = [&](NodeId id) {
    if (const auto found = there.find(id); found != there.end())
      return found->second;
    needed.push_back(id);
    needed_inputs.push_back(add_late_input(rule, values_.type(id)));
    return there[id] = needed_inputs.back();
  };
  Flags is_linear;
  std::vector<NodeId> given =
      place_rule(values_, rule, *a.rule, known, cotangents, bring, &is_linear);
  const size_t results = a.graph->outputs.size();
  Duals out;
  for (size_t i = 0; i < results; ++i) {
    if (is_linear[i])
      throw NoDerivative{NoDerivative::Why::rule_not_linear, node.op, source_};
    out.push_back({given[i]});
  }
  // The rule: known values, tangents, cotangents -> zeros for the tangents of
  // results and of known floats, then the cotangents of the operands.
  std::vector<NodeId> inputs = needed_inputs;
  for (const NodeId tangent : tangent_operands)
    inputs.push_back(add_late_input(rule, tangents().type(tangent)));
  inputs.insert(inputs.end(), cotangents.begin(), cotangents.end());
  for (const Type& type : given_types)
    rule.outputs.push_back(add_zeros(rule, type));
  for (const NodeId id : needed)
    if (is_floating(values_.type(id).dtype))
      rule.outputs.push_back(add_zeros(rule, values_.type(id)));
  for (size_t i = results; i < given.size(); ++i)
    if (!is_linear[i] && !is_zero(values_, given[i]))
      throw NoDerivative{NoDerivative::Why::rule_not_linear, node.op, source_};
  for (size_t i = results; i < given.size(); ++i)
    rule.outputs.push_back(
        is_linear[i] ? given[i] : add_zeros(rule, values_.type(given[i])));
  Graph nothing;
  std::vector<NodeId> operands;
  for (const NodeId id : needed) {
    nothing.add_input(values_.type(id));
    operands.push_back(take(id));
  }
  for (const NodeId id : tangent_operands) {
    nothing.add_input(tangents().type(id));
    operands.push_back(id);
  }
  for (const Type& type : given_types)
    nothing.outputs.push_back(add_zeros(nothing, type));
  const NodeId call = t(Op::call, operands,
                        ir::CallAttrs{shared(std::move(nothing)),
                                      shared(with_inputs(rule, inputs)),
                                      ir::CallAttrs::Rule::vjp});
  size_t next = 0;
  for (Dual& result : out)
    if (is_floating(type(result).dtype))
      result.tangent = projected(tangents(), call, next++);
  return out;
}

}  // namespace unisono::jit
