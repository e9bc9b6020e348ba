// The transposes of branches, loops and calls in a linear graph.
#include <algorithm>
#include <memory>
#include <optional>
#include <set>
#include <utility>

#include "jit/derivative/late_inputs.h"
#include "jit/derivative/linearize.h"
#include "jit/derivative/transpose.h"
#include "jit/ir/kinds.h"
#include "jit/transform/transforms.h"
#include "jit/transform/varies.h"
#include "runtime/check.h"

namespace unisono::jit {

using ir::LoopAttrs;
using ir::Node;
using ir::Op;
using ir::Type;

namespace {

/// Sums of halves are kept in f32, until all is there.
Type summed(Type type) {
  if (byte_size(type.dtype) < 4) type.dtype = DType::F32;
  return type;
}

NodeId as(Graph& graph, NodeId x, DType dtype) {
  if (graph.type(x).dtype == dtype) return x;
  return graph.add(Op::cast, {x}, ir::CastAttrs{dtype});
}

}  // namespace

// ---- branches ---------------------------------------------------------------

/// No sum passes through a branch: it gives parts, and their positions, which
/// are added outside. What a branch does not give is zeros, at position 0.
void Transposer::if_else(const Node& node, const Results& c) {
  const auto& a = ir::attrs<ir::IfAttrs>(node);
  const size_t captures = node.inputs.size() - 1;
  const AxisMask by_condition = varies_[node.inputs[0]];
  std::vector<bool> linear;
  std::vector<AxisMask> masks;
  std::vector<NodeId> operands = {known(node.inputs[0])};
  for (size_t i = 0; i < captures; ++i) {
    const NodeId operand = node.inputs[i + 1];
    linear.push_back(is_linear(operand));
    // Members that take different branches differ in what they give.
    masks.push_back(varies_[operand] | by_condition);
    if (!linear[i]) operands.push_back(known(operand));
  }
  for (const Result& result : c)
    if (result.given()) operands.push_back(result.c);

  Transposer yes(*a.then_graph, linear, axes_, masks);
  Transposer no(*a.else_graph, linear, axes_, masks);
  std::vector<NodeId> inputs[2];
  size_t side = 0;
  for (Transposer* branch : {&yes, &no}) {
    std::vector<NodeId>& own = inputs[side++];
    std::vector<NodeId> arguments(captures, -1);
    for (size_t i = 0; i < captures; ++i) {
      if (linear[i]) continue;
      own.push_back(add_late_input(branch->out, type(node.inputs[i + 1])));
      arguments[i] = own.back();
    }
    branch->place_known(arguments);
    for (size_t i = 0; i < c.size(); ++i) {
      if (!c[i].given()) continue;
      own.push_back(add_late_input(branch->out, out.type(c[i].c)));
      branch->seed(i, own.back(), c[i].varies);
    }
    branch->run();
  }

  // Outputs, in one order for both; `give` later reads them in that order.
  struct Part {
    size_t capture;
    AxisMask axes;
    size_t values;           // outputs: 1 if dense, else update and positions
    std::vector<int> along;  // axes of positions
  };
  std::vector<Part> parts;
  const auto output = [](Transposer& from, NodeId id, Transposer& other) {
    const Type type = from.out.type(id);
    from.out.outputs.push_back(id);
    other.out.outputs.push_back(is_floating(type.dtype)
                                    ? other.zeros(type)
                                    : other.zero_positions(type));
  };
  for (size_t i = 0; i < captures; ++i) {
    if (!linear[i]) continue;
    std::set<AxisMask> groups;
    for (Transposer* branch : {&yes, &no})
      for (const auto& [axes, sum] : branch->sums(i))
        if (!sum.empty()) groups.insert(axes);
    for (const AxisMask axes : groups) {
      const Sum from_yes = yes.sums(i)[axes], from_no = no.sums(i)[axes];
      if (from_yes.dense.value >= 0 || from_no.dense.value >= 0) {
        parts.push_back({i, axes, 1, {}});
        for (const auto& [branch, sum] :
             {std::pair(&yes, &from_yes), std::pair(&no, &from_no)})
          branch->out.outputs.push_back(
              sum->dense.value >= 0 ? branch->dense(sum->dense)
                                    : branch->zeros(type(node.inputs[i + 1])));
      }
      for (const auto& [branch, other, sum] :
           {std::tuple(&yes, &no, &from_yes), std::tuple(&no, &yes, &from_no)})
        for (const Added& part : sum->added) {
          parts.push_back({i, axes, 1 + part.indices.size(), part.axes});
          output(*branch, part.update, *other);
          for (const NodeId index : part.indices)
            output(*branch, index, *other);
        }
    }
  }
  if (parts.empty()) return;
  const NodeId both = add(Op::if_else, operands,
                          ir::IfAttrs{shared(with_inputs(yes.out, inputs[0])),
                                      shared(with_inputs(no.out, inputs[1]))});
  size_t next = 0;
  for (const Part& part : parts) {
    const NodeId to = node.inputs[part.capture + 1];
    const AxisMask over = masks[part.capture] | part.axes;
    std::vector<NodeId> values;
    for (size_t k = 0; k < part.values; ++k)
      values.push_back(projected(out, both, next++));
    if (part.along.empty())
      give(to, Masked{values[0]}, over);
    else
      give(to, Added{values[0], {values.begin() + 1, values.end()}, part.along},
           over);
  }
}

// ---- loops ------------------------------------------------------------------

namespace {

/// A part of a capture's cotangent that is a product in each turn: of the
/// stacks of both factors it is one product for all turns. `moves` came after
/// it.
struct Lifted {
  size_t capture;
  AxisMask axes;
  ir::DotAttrs attrs;
  NodeId factors[2];
  std::vector<Node> moves;
};

/// The terms of a sum.
std::vector<NodeId> terms(const Graph& graph, NodeId sum) {
  std::vector<NodeId> out, pending = {sum};
  while (!pending.empty()) {
    const NodeId id = pending.back();
    pending.pop_back();
    if (graph[id].op != Op::add) {
      out.push_back(id);
      continue;
    }
    pending.push_back(graph[id].inputs[1]);
    pending.push_back(graph[id].inputs[0]);
  }
  return out;
}

/// The term as a product that is larger than its factors together: to keep
/// these of all turns, and to multiply once, is less work than to add to all of
/// it in each.
std::optional<Lifted> lifted(const Graph& graph, NodeId term) {
  Lifted out;
  while (graph[term].op == Op::transpose || graph[term].op == Op::reshape) {
    out.moves.push_back(graph[term]);
    term = graph[term].inputs[0];
  }
  const Node& dot = graph[term];
  if (dot.op != Op::dot) return std::nullopt;
  std::ranges::reverse(out.moves);
  out.attrs = ir::attrs<ir::DotAttrs>(dot);
  std::ranges::copy(dot.inputs, out.factors);
  int64_t elements = 0;
  for (const NodeId factor : out.factors)
    elements += graph.type(factor).elements();
  if (elements >= dot.type.elements()) return std::nullopt;
  for (auto* axes : {&out.attrs.batch_a, &out.attrs.batch_b,
                     &out.attrs.contract_a, &out.attrs.contract_b})
    for (int& axis : *axes) ++axis;
  out.attrs.contract_a.insert(out.attrs.contract_a.begin(), 0);
  out.attrs.contract_b.insert(out.attrs.contract_b.begin(), 0);
  return out;
}

}  // namespace

/// The loop runs the other way. Cotangents of carries are carries; those of
/// captures are sums, carries too, which begin with what other readers gave, or
/// products of stacks; those of rows are stacks.
void Transposer::loop(const Node& node, const Results& c) {
  const auto& a = ir::attrs<LoopAttrs>(node);
  const auto carries = static_cast<size_t>(a.carries);
  const size_t rows_end = carries + static_cast<size_t>(a.rows);
  const size_t operands = node.inputs.size();
  if (!a.is_counted()) not_linear(node);
  // A carry may begin with zeros, and have a cotangent all the same.
  std::vector<bool> linear = {false};
  for (size_t i = 0; i < operands; ++i) {
    const NodeId operand = node.inputs[i];
    const bool carried = i < carries && static_cast<int>(i) != a.count;
    linear.push_back(carried || is_linear(operand));
    if (carried && !is_linear(operand) && !is_zero(graph_, operand))
      not_linear(node);
  }
  std::vector<AxisMask> masks(operands + 1, 0);
  for (size_t i = 0; i < axes_.size(); ++i) {
    Flags flags;
    for (const NodeId operand : node.inputs)
      flags.push_back((varies_[operand] >> i & 1) != 0);
    const LoopVaries inside = varying_loop(a, axes_[i].axis, flags);
    for (size_t k = 0; k < operands; ++k)
      if (inside.operands[k] || (inside.condition && linear[k + 1]))
        masks[k + 1] |= AxisMask{1} << i;
  }

  Transposer body(*a.body, linear, axes_, masks);
  Graph& g = body.out;
  const auto seen = [&](size_t operand) {
    return a.body->type(a.body->inputs[operand + 1]);
  };
  // The new loop: inputs of its body, and its operands, section by section.
  std::vector<NodeId> in_carries, in_rows, in_captures, next_carries, parts;
  std::vector<NodeId> from_carries, from_rows, from_captures;
  const NodeId number = add_late_input(g, a.body->type(a.body->inputs[0]));
  std::vector<NodeId> arguments = {number};
  for (size_t i = 0; i < operands; ++i) {
    arguments.push_back(-1);
    if (linear[i + 1]) continue;
    auto& in = i < carries ? in_carries : i < rows_end ? in_rows : in_captures;
    auto& from = i < carries    ? from_carries
                 : i < rows_end ? from_rows
                                : from_captures;
    in.push_back(add_late_input(g, seen(i)));
    from.push_back(known(node.inputs[i]));
    arguments.back() = in.back();
    if (i < carries) next_carries.push_back(in.back());  // the count
  }
  body.place_known(arguments);
  for (size_t i = 0; i < c.size(); ++i) {
    const bool is_carry = i < carries;
    if (is_carry ? !linear[i + 1] : !c[i].given()) continue;
    auto& in = is_carry ? in_carries : in_rows;
    const Type part = a.body->type(a.body->outputs[i]);
    in.push_back(add_late_input(g, part));
    body.seed(i, in.back(), is_carry ? masks[i + 1] : c[i].varies);
    (is_carry ? from_carries : from_rows)
        .push_back(c[i].given() ? c[i].c : zeros(part));
  }
  body.run();
  for (size_t i = 0; i < carries; ++i)
    if (linear[i + 1]) next_carries.push_back(body.cotangent(i + 1));

  struct Target {
    NodeId to;
    AxisMask axes;
  };
  std::vector<Target> sums, stacks;
  std::vector<Lifted> products;
  const bool lifts = a.turns > 1 && a.count < 0 && !a.recomputed;
  // Captures have no stack: their products stay.
  const auto is_capture = [&](NodeId id) {
    return std::ranges::find(in_captures, id) != in_captures.end();
  };
  const auto lift = [&](Sum& sum, size_t capture, AxisMask over) {
    if (!lifts || sum.dense.value < 0 || sum.dense.mask >= 0) return;
    NodeId rest = -1;
    for (const NodeId term : terms(g, sum.dense.value)) {
      auto product = lifted(g, term);
      if (product && !is_capture(product->factors[0]) &&
          !is_capture(product->factors[1])) {
        product->capture = capture;
        product->axes = over;
        products.push_back(*std::move(product));
      } else {
        rest = rest < 0 ? term : body.add(Op::add, {rest, term});
      }
    }
    sum.dense.value = rest;
  };
  for (size_t i = carries; i < operands; ++i) {
    if (!linear[i + 1]) continue;
    const NodeId to = node.inputs[i];
    for (auto& [axes, sum] : body.sums(i + 1)) {
      if (sum.empty()) continue;
      const AxisMask over = masks[i + 1] | axes;
      if (i < rows_end) {
        stacks.push_back({to, over});
        parts.push_back(body.total(sum, seen(i)));
        continue;
      }
      lift(sum, i, over);
      if (sum.empty()) continue;
      sums.push_back({to, over});
      const Type whole = summed(type(to));
      const NodeId so_far = add_late_input(g, whole);
      in_carries.push_back(so_far);
      next_carries.push_back(body.onto(so_far, sum));
      Sum& before = sum_for(to, over);
      const NodeId start = total(before, type(to));
      before = {};
      from_carries.push_back(as(out, start, whole.dtype));
    }
  }

  // The factors of lifted products: rows that there are, or stacks.
  std::vector<NodeId> factors;
  const auto row_of = [&](NodeId factor) {
    return static_cast<size_t>(std::ranges::find(in_rows, factor) -
                               in_rows.begin());
  };
  for (const Lifted& product : products)
    for (const NodeId factor : product.factors)
      if (row_of(factor) == in_rows.size() &&
          std::ranges::find(factors, factor) == factors.end())
        factors.push_back(factor);
  parts.insert(parts.end(), factors.begin(), factors.end());

  LoopAttrs back;
  back.turns = a.turns;
  back.backwards = !a.backwards;
  back.recomputed = a.recomputed;
  back.count = a.count >= 0 ? 0 : -1;
  back.carries = static_cast<int>(in_carries.size());
  back.rows = static_cast<int>(in_rows.size());
  g.outputs = next_carries;
  g.outputs.insert(g.outputs.end(), parts.begin(), parts.end());
  std::vector<NodeId> inputs = {number}, all;
  for (const auto* section : {&in_carries, &in_rows, &in_captures})
    inputs.insert(inputs.end(), section->begin(), section->end());
  for (const auto* section : {&from_carries, &from_rows, &from_captures})
    all.insert(all.end(), section->begin(), section->end());
  back.body = shared(with_inputs(g, inputs));
  const NodeId loop = add(Op::loop, all, back);

  size_t next = a.count >= 0 ? 1 : 0;
  for (size_t i = 0; i < carries; ++i) {
    if (!linear[i + 1]) continue;
    const NodeId carry = projected(out, loop, next++);
    if (is_linear(node.inputs[i]))
      give(node.inputs[i], Masked{carry}, masks[i + 1]);
  }
  for (const Target& target : sums) {
    const NodeId sum = projected(out, loop, next++);
    give(target.to, Masked{as(out, sum, type(target.to).dtype)}, target.axes);
  }
  for (const Target& target : stacks)
    give(target.to, Masked{projected(out, loop, next++)}, target.axes);
  std::vector<NodeId> stacked;
  for (size_t i = 0; i < factors.size(); ++i)
    stacked.push_back(projected(out, loop, next++));
  const auto of_all_turns = [&](NodeId factor) {
    const size_t row = row_of(factor);
    if (row < in_rows.size()) return from_rows[row];
    return stacked[static_cast<size_t>(std::ranges::find(factors, factor) -
                                       factors.begin())];
  };
  for (const Lifted& product : products) {
    NodeId whole = add(
        Op::dot,
        {of_all_turns(product.factors[0]), of_all_turns(product.factors[1])},
        product.attrs);
    for (const Node& move : product.moves)
      whole = add(move.op, {whole}, move.attrs);
    give(node.inputs[product.capture], Masked{whole}, product.axes);
  }
}

// ---- calls ------------------------------------------------------------------

void Transposer::call(const Node& node, const Results& c, AxisMask varies) {
  const auto& a = ir::attrs<ir::CallAttrs>(node);
  if (a.kind != ir::CallAttrs::Rule::vjp) not_linear(node);
  std::vector<NodeId> arguments;
  for (const NodeId operand : node.inputs)
    arguments.push_back(is_linear(operand) ? zeros(type(operand))
                                           : known(operand));
  for (size_t i = 0; i < a.graph->outputs.size(); ++i) {
    const Type& result = a.graph->type(a.graph->outputs[i]);
    if (!is_floating(result.dtype)) continue;
    arguments.push_back(c[i].given() ? c[i].c : zeros(result));
  }
  const std::vector<NodeId> given = inline_graph(out, *a.rule, arguments);
  size_t next = a.graph->outputs.size();
  for (const NodeId operand : node.inputs) {
    if (!is_floating(type(operand).dtype)) continue;
    const NodeId part = given[next++];
    if (is_linear(operand)) give(operand, Masked{part}, varies);
  }
}

}  // namespace unisono::jit
