// vmap of branches, loops and effects. A condition that differs between members
// becomes selects: both branches are placed, each with a mask of who takes
// part; a loop runs until every member is done.
#include <algorithm>

#include "jit/ir/kinds.h"
#include "jit/scalar/element.h"
#include "jit/vmap/vmap_rules.h"

namespace unisono::jit::vmapping {

using ir::Node;
using ir::Op;
using ir::Type;

namespace {

const Type flag{DType::Bool, {}};

Flags flags_of(const Values& x, size_t from) {
  Flags out;
  for (size_t i = from; i < x.size(); ++i) out.push_back(x[i].mapped);
  return out;
}

}  // namespace

std::vector<NodeId> Mapper::ids(const Values& x) const {
  std::vector<NodeId> out;
  for (const Value& v : x) out.push_back(v.id);
  return out;
}

Mapper Mapper::subgraph(const std::vector<Type>& types, const Flags& mapped,
                        Values* inputs) const {
  Mapper out(spec_);
  for (size_t i = 0; i < types.size(); ++i)
    inputs->push_back(out.input(types[i], mapped[i]));
  if (mask_) out.mask_ = out.input(flag, true).id;
  return out;
}

Values Mapper::place_if(const Node& node, const Values& x) {
  const auto& a = ir::attrs<ir::IfAttrs>(node);
  const Values captures(x.begin() + 1, x.end());
  if (x[0].mapped) {
    const NodeId takes = x[0].id, leaves = add(Op::bit_not, {takes});
    const auto outer = mask_;
    const auto place_masked = [&](const Graph& graph, NodeId who) {
      mask_ = outer ? add(Op::bit_and, {*outer, who}) : who;
      return place(graph, captures);
    };
    const Values then_values = place_masked(*a.then_graph, takes);
    const Values else_values = place_masked(*a.else_graph, leaves);
    mask_ = outer;
    Values out;
    for (size_t i = 0; i < then_values.size(); ++i)
      out.push_back({choose(takes, then_values[i], else_values[i]), true});
    return out;
  }
  const Flags mapped = flags_of(x, 1);
  Flags results = varying_outputs(*a.then_graph, spec_.axis, mapped);
  const Flags other = varying_outputs(*a.else_graph, spec_.axis, mapped);
  for (size_t i = 0; i < results.size(); ++i)
    results[i] = results[i] || other[i];
  const auto branch = [&](const Graph& graph) {
    Values inputs;
    Mapper part = subgraph(graph.input_types(), mapped, &inputs);
    const Values outputs = part.place(graph, inputs);
    for (size_t i = 0; i < outputs.size(); ++i)
      part.out_.outputs.push_back(results[i] ? part.lift(outputs[i])
                                             : outputs[i].id);
    return std::make_shared<const Graph>(std::move(part.out_));
  };
  const ir::IfAttrs attrs{branch(*a.then_graph), branch(*a.else_graph)};
  std::vector<NodeId> operands = ids(x);
  if (mask_) operands.push_back(*mask_);
  const NodeId id = add(Op::if_else, std::move(operands), attrs);
  Values out;
  for (size_t i = 0; i < results.size(); ++i)
    out.push_back(
        {add(Op::project, {id}, ir::ProjectAttrs{static_cast<int>(i)}),
         results[i]});
  return out;
}

Values Mapper::place_loop(const Node& node, const Values& x) {
  const auto& a = ir::attrs<ir::LoopAttrs>(node);
  const LoopVaries varies = varying_loop(a, spec_.axis, flags_of(x, 0));
  if (a.is_counted()) return place_counted_loop(node, x, varies);
  if (varies.condition) return place_lockstep_loop(node, x, varies);
  const std::vector<Type> types = a.body->input_types();
  Values inputs;
  Mapper condition = subgraph(types, varies.operands, &inputs);
  NodeId goes_on = condition.place(*a.condition, inputs)[0].id;
  // Without a member that takes part, nothing says that the loop ends.
  if (mask_)
    goes_on = condition.add(Op::bit_and, {goes_on, condition.any_member()});
  condition.out_.outputs = {goes_on};
  inputs.clear();
  Mapper body = subgraph(types, varies.operands, &inputs);
  const Values next = body.place(*a.body, inputs);
  for (size_t i = 0; i < next.size(); ++i)
    body.out_.outputs.push_back(varies.operands[i] ? body.lift(next[i])
                                                   : next[i].id);
  std::vector<NodeId> operands;
  for (size_t i = 0; i < x.size(); ++i)
    operands.push_back(varies.operands[i] ? lift(x[i]) : x[i].id);
  if (mask_) operands.push_back(*mask_);
  ir::LoopAttrs attrs = a;
  attrs.condition = std::make_shared<const Graph>(std::move(condition.out_));
  attrs.body = std::make_shared<const Graph>(std::move(body.out_));
  const NodeId id = add(Op::loop, std::move(operands), attrs);
  Values out;
  for (int i = 0; i < a.carries; ++i)
    out.push_back(
        {add(Op::project, {id}, ir::ProjectAttrs{i}), varies.operands[i]});
  return out;
}

/// For all members, or as it is; its rule is then the rule for all members.
Values Mapper::place_call(const Node& node, const Values& x) {
  ir::CallAttrs attrs = ir::attrs<ir::CallAttrs>(node);
  const Flags inner = varying_outputs(*attrs.graph, spec_.axis, flags_of(x, 0));
  const Flags all = flags_of(x, 0);
  const bool varies = std::ranges::find(all, true) != all.end() ||
                      std::ranges::find(inner, true) != inner.end();
  std::vector<NodeId> operands;
  for (const Value& operand : x)
    operands.push_back(varies ? lift(operand) : operand.id);
  if (varies) {
    if (mask_) operands.push_back(*mask_);  // one more operand, a constant
    const auto for_all = [&](const Graph& graph) {
      Mapper part(spec_);
      Values inputs;
      for (size_t i = 0; i < graph.inputs.size(); ++i) {
        if (i == x.size() && mask_) part.mask_ = part.input(flag, true).id;
        inputs.push_back(part.input(graph.type(graph.inputs[i]), true));
      }
      if (graph.inputs.size() == x.size() && mask_)
        part.mask_ = part.input(flag, true).id;
      for (const Value& output : part.place(graph, inputs))
        part.out_.outputs.push_back(part.lift(output));
      return std::make_shared<const Graph>(std::move(part.out_));
    };
    attrs.graph = for_all(*attrs.graph);
    attrs.rule = for_all(*attrs.rule);
  }
  const int results = ir::result_count(node);
  const NodeId id = add(Op::call, std::move(operands), std::move(attrs));
  Values out;
  for (int i = 0; i < results; ++i)
    out.push_back({add(Op::project, {id}, ir::ProjectAttrs{i}), varies});
  return out;
}

/// It stays counted. Members stand behind the turns in rows and stacks.
Values Mapper::place_counted_loop(const Node& node, const Values& x,
                                  const LoopVaries& varies) {
  const auto& a = ir::attrs<ir::LoopAttrs>(node);
  const auto carries = static_cast<size_t>(a.carries);
  const auto rows = static_cast<size_t>(a.rows);
  Flags mapped = varies.operands;
  mapped.insert(mapped.begin(), false);  // the turn's number
  Values inputs;
  Mapper body = subgraph(a.body->input_types(), mapped, &inputs);
  const Values next = body.place(*a.body, inputs);
  for (size_t i = 0; i < next.size(); ++i)
    body.out_.outputs.push_back(varies.results[i] ? body.lift(next[i])
                                                  : next[i].id);
  std::vector<NodeId> operands;
  for (size_t i = 0; i < x.size(); ++i) {
    const bool is_row = i >= carries && i < carries + rows;
    const NodeId operand = varies.operands[i] ? lift(x[i]) : x[i].id;
    operands.push_back(is_row && varies.operands[i] ? turned(operand)
                                                    : operand);
  }
  if (mask_) operands.push_back(*mask_);
  ir::LoopAttrs attrs = a;
  attrs.body = std::make_shared<const Graph>(std::move(body.out_));
  const NodeId id = add(Op::loop, std::move(operands), attrs);
  Values out;
  for (size_t i = 0; i < next.size(); ++i) {
    const NodeId result =
        add(Op::project, {id}, ir::ProjectAttrs{static_cast<int>(i)});
    const bool is_stack = i >= carries;
    out.push_back({is_stack && varies.results[i] ? turned(result) : result,
                   varies.results[i]});
  }
  return out;
}

/// A carry more, in front, says which members go on. The condition of the next
/// turn is computed at a turn's end, from the new carries.
Values Mapper::place_lockstep_loop(const Node& node, const Values& x,
                                   const LoopVaries& varies) {
  const auto& a = ir::attrs<ir::LoopAttrs>(node);
  const auto carries = static_cast<size_t>(a.carries);
  std::vector<Type> types = a.body->input_types();
  Flags mapped = varies.operands;
  types.insert(types.begin(), flag);
  mapped.insert(mapped.begin(), true);
  Values started;
  for (size_t i = 0; i < x.size(); ++i)
    started.push_back(varies.operands[i] ? Value{lift(x[i]), true} : x[i]);
  NodeId active = lift(place(*a.condition, started)[0]);
  if (mask_) active = add(Op::bit_and, {active, *mask_});

  Mapper condition(spec_), body(spec_);
  Values inputs;
  for (size_t i = 0; i < types.size(); ++i) {
    condition.input(types[i], mapped[i]);
    inputs.push_back(body.input(types[i], mapped[i]));
  }
  condition.mask_ = 0;
  condition.out_.outputs = {condition.any_member()};

  body.mask_ = 0;
  Values current(inputs.begin() + 1, inputs.end());
  const Values next = body.place(*a.body, current);
  for (size_t i = 0; i < carries; ++i)
    if (varies.operands[i])
      current[i] = {body.choose(0, next[i], current[i]), true};
  const NodeId again = body.lift(body.place(*a.condition, current)[0]);
  body.out_.outputs = {body.add(Op::bit_and, {0, again})};
  for (size_t i = 0; i < carries; ++i)
    body.out_.outputs.push_back(current[i].id);

  std::vector<NodeId> operands = ids(started);
  operands.insert(operands.begin(), active);
  ir::LoopAttrs attrs{std::make_shared<const Graph>(std::move(condition.out_)),
                      std::make_shared<const Graph>(std::move(body.out_)),
                      a.carries + 1};
  attrs.most = a.most;  // each member's own, so that of all
  const NodeId id = add(Op::loop, std::move(operands), attrs);
  Values out;
  for (int i = 0; i < a.carries; ++i)
    out.push_back(
        {add(Op::project, {id}, ir::ProjectAttrs{i + 1}), varies.operands[i]});
  return out;
}

}  // namespace unisono::jit::vmapping
