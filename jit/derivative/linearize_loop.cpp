// Loops. Together, a loop carries values and tangents. Apart, a first loop
// computes the values and stacks what the second one needs of each turn; that
// one carries the tangents, turn by turn in the same order.
#include <algorithm>
#include <memory>

#include "jit/derivative/depends.h"
#include "jit/derivative/late_inputs.h"
#include "jit/derivative/linearize.h"
#include "jit/derivative/residuals.h"
#include "jit/ir/kinds.h"
#include "jit/ir/renaming.h"
#include "jit/scalar/element.h"
#include "jit/transform/transforms.h"
#include "runtime/check.h"

namespace unisono::jit {

using ir::LoopAttrs;
using ir::Node;
using ir::Op;
using ir::Type;
using Flags = std::vector<bool>;

namespace {

const Type turn_type{DType::I64, {}};

int count(const Flags& flags, size_t from, size_t to) {
  return static_cast<int>(
      std::count(flags.begin() + static_cast<ptrdiff_t>(from),
                 flags.begin() + static_cast<ptrdiff_t>(to), true));
}

/// Where a loop's operands end: carries, then rows, then captures.
struct Sections {
  explicit Sections(const LoopAttrs& a, size_t operands)
      : ends{static_cast<size_t>(a.carries),
             static_cast<size_t>(a.carries + a.rows), operands} {}
  size_t ends[3];
  size_t begin(size_t section) const {
    return section == 0 ? 0 : ends[section - 1];
  }
};

/// What one turn sees of operand `index`.
Type seen(const LoopAttrs& a, const Graph& graph, size_t index) {
  return graph.type(graph.inputs[a.parameter(index)]);
}

NodeId number(Graph& g, int64_t value) {
  return g.add_constant(turn_type, element_bytes(DType::I64, value));
}

}  // namespace

Duals Linearizer::place_loop(const Node& node, const Duals& x) {
  const auto& a = ir::attrs<LoopAttrs>(node);
  CHECK(a.count < 0);
  Flags flags;
  for (const Dual& operand : x) flags.push_back(operand.has_tangent());
  const LoopDepends depends = depending_loop(a, std::move(flags));
  if (std::ranges::find(depends.results, true) == depends.results.end())
    return results_of(place_value(node, x));
  return apart() ? place_loop_apart(node, x, depends)
                 : place_loop_together(node, x, depends);
}

// ---- together ---------------------------------------------------------------

Duals Linearizer::place_loop_together(const Node& node, const Duals& x,
                                      const LoopDepends& depends) {
  LoopAttrs a = ir::attrs<LoopAttrs>(node);
  const Sections sections(a, x.size());
  // Behind each section stand the tangents of those in it that have one.
  const auto parameters = [&](Linearizer& part, const Graph& graph) {
    Duals inputs;
    if (a.is_counted()) inputs.push_back({part.values_.add_input(turn_type)});
    for (size_t s = 0; s < 3; ++s) {
      for (size_t i = sections.begin(s); i < sections.ends[s]; ++i)
        inputs.push_back({part.values_.add_input(seen(a, graph, i))});
      for (size_t i = sections.begin(s); i < sections.ends[s]; ++i)
        if (depends.operands[i])
          inputs[a.parameter(i)].tangent =
              part.values_.add_input(seen(a, graph, i));
    }
    return inputs;
  };
  std::vector<NodeId> operands;
  for (size_t s = 0; s < 3; ++s) {
    for (size_t i = sections.begin(s); i < sections.ends[s]; ++i)
      operands.push_back(x[i].value);
    for (size_t i = sections.begin(s); i < sections.ends[s]; ++i)
      if (depends.operands[i]) operands.push_back(tangent_or_zeros(x[i]));
  }
  Linearizer body(Form::together);
  const Duals outputs = body.place(*a.body, parameters(body, *a.body));
  const auto carries = static_cast<size_t>(a.carries);
  std::vector<std::pair<size_t, size_t>> ranges = {{0, carries},
                                                   {carries, outputs.size()}};
  Duals out(outputs.size());
  std::vector<std::pair<NodeId*, size_t>> places;
  for (const auto& [begin, end] : ranges) {
    for (size_t i = begin; i < end; ++i) {
      places.emplace_back(&out[i].value, places.size());
      body.values_.outputs.push_back(outputs[i].value);
    }
    for (size_t i = begin; i < end; ++i) {
      if (!depends.results[i]) continue;
      places.emplace_back(&out[i].tangent, places.size());
      body.values_.outputs.push_back(body.tangent_or_zeros(outputs[i]));
    }
  }
  if (a.condition) {
    Linearizer condition(Form::together);
    const Duals inputs = parameters(condition, *a.condition);
    Duals values;
    for (const Dual& input : inputs) values.push_back({input.value});
    condition.values_.outputs = {
        condition.place(*a.condition, values)[0].value};
    a.condition = shared(std::move(condition.values_));
  }
  a.body = shared(std::move(body.values_));
  a.carries += count(depends.operands, 0, sections.ends[0]);
  a.rows += count(depends.operands, sections.ends[0], sections.ends[1]);
  const NodeId loop = v(Op::loop, operands, a);
  for (const auto& [place, index] : places)
    *place = projected(values_, loop, index);
  return out;
}

// ---- apart ------------------------------------------------------------------

namespace {

/// A loop's body, taken apart.
struct Body {
  Body(const LoopAttrs& a, const LoopDepends& depends)
      : parts(Linearizer::Form::apart) {
    Duals inputs;
    std::vector<NodeId> tangents;
    const Graph& graph = *a.body;
    for (const NodeId id : graph.inputs)
      inputs.push_back({parts.values().add_input(graph.type(id))});
    for (size_t i = 0; i < depends.operands.size(); ++i) {
      if (!depends.operands[i]) continue;
      const NodeId tangent =
          add_late_input(parts.tangents(), seen(a, graph, i));
      inputs[a.parameter(i)].tangent = tangent;
      tangents.push_back(tangent);
    }
    outputs = parts.place(graph, inputs);
    for (size_t i = 0; i < outputs.size(); ++i)
      if (depends.results[i])
        parts.tangents().outputs.push_back(parts.tangent_or_zeros(outputs[i]));
    linear = parts.finished_tangents(tangents);
    parts.join_equal_values(outputs);
    // What a turn reads is there when the turn is computed again, but for its
    // carries.
    Flags free(graph.inputs.size(), true);
    for (size_t i = 0; i < static_cast<size_t>(a.carries); ++i)
      free[a.parameter(i)] = false;
    kept = a.recomputed
               ? effects()
               : residuals(values(), free, parts.taken(), values_of(outputs));
    needed = needed_for(values(), kept, parts.taken());
  }
  const Graph& values() const { return parts.values(); }
  bool needs(const LoopAttrs& a, size_t operand) const {
    return needed[values().inputs[a.parameter(operand)]];
  }
  /// Whether it needs what a carry begins with, which is all there is of it in
  /// the one turn of a loop that is computed again. Of other loops what is
  /// needed of carries is kept.
  bool needs_start(const LoopAttrs& a, size_t carry) const {
    return a.recomputed && needs(a, carry);
  }
  /// What the host gives is not asked for again.
  std::vector<NodeId> effects() const {
    std::vector<NodeId> out;
    const Flags all = needed_for(values(), {}, parts.taken());
    for (const NodeId id : ir::node_ids(values()))
      if (all[id] && values()[id].op == Op::project &&
          values()[values()[id].inputs[0]].op == Op::host_call)
        out.push_back(id);
    return out;
  }

  Linearizer parts;
  Duals outputs;
  Graph linear;
  std::vector<NodeId> kept;
  Flags needed;
};

/// The body of the loop over values, whose further parts are what is kept.
Graph keeping_body(const Body& body) {
  Graph out = body.values();
  for (const Dual& output : body.outputs) out.outputs.push_back(output.value);
  for (const NodeId id : body.kept) out.outputs.push_back(id);
  return out;
}

/// The same for a loop that is not counted: further carries are the number of
/// turns so far, and for each kept value an array of `most` rows.
LoopAttrs keeping_while(const LoopAttrs& a, const Body& body) {
  const auto carries = static_cast<size_t>(a.carries);
  const auto parameters = [&](Graph& g) {
    std::vector<NodeId> own;
    const Graph& values = body.values();
    for (size_t i = 0; i < carries; ++i)
      own.push_back(g.add_input(values.type(values.inputs[i])));
    g.add_input(turn_type);
    for (const NodeId id : body.kept) {
      Type stack = values.type(id);
      stack.shape.insert(stack.shape.begin(), ir::Dim(a.most));
      g.add_input(stack);
    }
    for (size_t i = carries; i < values.inputs.size(); ++i)
      own.push_back(g.add_input(values.type(values.inputs[i])));
    return own;
  };
  Graph condition;
  condition.outputs =
      inline_graph(condition, *a.condition, parameters(condition));
  Graph turn;
  const std::vector<NodeId> given =
      inline_graph(turn, keeping_body(body), parameters(turn));
  turn.outputs.assign(given.begin(),
                      given.begin() + static_cast<ptrdiff_t>(carries));
  const auto so_far = static_cast<NodeId>(carries);
  turn.outputs.push_back(turn.add(Op::add, {so_far, number(turn, 1)}));
  for (size_t i = 0; i < body.kept.size(); ++i) {
    const NodeId stack = so_far + 1 + static_cast<NodeId>(i);
    turn.outputs.push_back(turn.add(Op::scatter,
                                    {stack, given[carries + i], so_far},
                                    ir::IndexAttrs{{0}, false}));
  }
  LoopAttrs out = a;
  out.condition = shared(std::move(condition));
  out.body = shared(std::move(turn));
  out.carries = static_cast<int>(carries + 1 + body.kept.size());
  return out;
}

/// The body of the linear loop. It takes the turn's number; of one that is not
/// counted, how many turns there are; the carries' tangents; the rows that it
/// needs, what was kept, the rows' tangents; the carries' starts and the
/// captures that it needs, the captures' tangents.
Graph linear_body(const LoopAttrs& a, const Body& body,
                  const LoopDepends& depends) {
  const Graph& values = body.values();
  const Sections sections(a, depends.operands.size());
  Graph out;
  ir::Renaming have(values);
  const NodeId turn = out.add_input(turn_type);
  NodeId turns = -1;
  if (a.is_counted())
    have.set(values.inputs[0], turn);
  else
    turns = out.add_input(turn_type);
  std::vector<NodeId> arguments;
  for (size_t s = 0; s < 3; ++s) {
    if (s == 2)
      for (size_t i = 0; i < sections.ends[0]; ++i)
        if (body.needs_start(a, i))
          have.set(values.inputs[a.parameter(i)],
                   out.add_input(seen(a, values, i)));
    if (s > 0)
      for (size_t i = sections.begin(s); i < sections.ends[s]; ++i)
        if (body.needs(a, i))
          have.set(values.inputs[a.parameter(i)],
                   out.add_input(seen(a, values, i)));
    if (s == 1)
      for (const NodeId id : body.kept)
        have.set(id, out.add_input(values.type(id)));
    for (size_t i = sections.begin(s); i < sections.ends[s]; ++i)
      if (depends.operands[i])
        arguments.push_back(out.add_input(seen(a, values, i)));
  }
  for (const NodeId id : recompute(out, values, have, body.parts.taken()))
    arguments.push_back(id);
  out.outputs = inline_graph(out, body.linear, arguments);
  if (turns >= 0) out.outputs.insert(out.outputs.begin(), turns);
  return out;
}

}  // namespace

Duals Linearizer::place_loop_apart(const Node& node, const Duals& x,
                                   const LoopDepends& depends) {
  const auto& a = ir::attrs<LoopAttrs>(node);
  const Sections sections(a, x.size());
  const size_t results = depends.results.size();
  if (!a.is_counted() && a.most < 0)
    throw NoDerivative{NoDerivative::Why::reverse_while, node.op, source_};
  const Body body(a, depends);

  // The loop over values.
  std::vector<NodeId> operands;
  for (const Dual& operand : x) operands.push_back(operand.value);
  LoopAttrs first = a;
  size_t kept_from = results;
  if (a.is_counted()) {
    first.body = shared(keeping_body(body));
  } else {
    first = keeping_while(a, body);
    auto place = operands.begin() + a.carries;
    place = operands.insert(place, number(values_, 0)) + 1;
    for (const NodeId id : body.kept) {
      Type stack = body.values().type(id);
      stack.shape.insert(stack.shape.begin(), ir::Dim(a.most));
      const NodeId zeros =
          values_.add_constant(stack, element_bytes(stack.dtype, int64_t{0}));
      place = operands.insert(place, zeros) + 1;
    }
    kept_from = results + 1;
  }
  const NodeId values = v(Op::loop, operands, first);
  Duals out;
  for (size_t i = 0; i < results; ++i)
    out.push_back({projected(values_, values, i)});

  // The linear loop.
  std::vector<NodeId> taken;
  LoopAttrs second;
  second.turns = a.is_counted() ? a.turns : a.most;
  second.backwards = a.backwards;
  second.recomputed = a.recomputed;
  second.body = shared(linear_body(a, body, depends));
  second.carries = count(depends.operands, 0, sections.ends[0]);
  if (!a.is_counted()) {
    second.count = 0;
    ++second.carries;
    taken.push_back(take(projected(values_, values, results)));
  }
  for (size_t s = 0; s < 3; ++s) {
    if (s == 2)
      for (size_t i = 0; i < sections.ends[0]; ++i)
        if (body.needs_start(a, i)) taken.push_back(take(x[i].value));
    if (s > 0)
      for (size_t i = sections.begin(s); i < sections.ends[s]; ++i)
        if (body.needs(a, i)) taken.push_back(take(x[i].value));
    if (s == 1)
      for (size_t i = 0; i < body.kept.size(); ++i)
        taken.push_back(take(projected(values_, values, kept_from + i)));
    for (size_t i = sections.begin(s); i < sections.ends[s]; ++i)
      if (depends.operands[i]) taken.push_back(tangent_or_zeros(x[i]));
    if (s == 1) second.rows = static_cast<int>(taken.size()) - second.carries;
  }
  const NodeId linear = t(Op::loop, taken, second);
  size_t next = a.is_counted() ? 0 : 1;
  for (size_t i = 0; i < results; ++i)
    if (depends.results[i])
      out[i].tangent = projected(tangents(), linear, next++);
  return out;
}

}  // namespace unisono::jit
