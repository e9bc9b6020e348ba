#include "jit/loops/plain_loop.h"

#include <memory>
#include <vector>

#include "jit/ir/kinds.h"
#include "jit/scalar/element.h"
#include "jit/transform/transforms.h"

namespace unisono::jit {

using ir::Graph;
using ir::LoopAttrs;
using ir::NodeId;
using ir::Op;
using ir::Type;

namespace {

const Type number_type{DType::I64, {}};

/// A graph that takes what the plain loop's graphs do.
Graph parameters(const LoopAttrs& loop, std::span<const Type> operands) {
  const auto carries = static_cast<size_t>(loop.carries);
  Graph g;
  g.add_input(number_type);
  for (const Type& type : operands.first(carries)) g.add_input(type);
  const std::vector<Type> given = loop.body->output_types();
  for (size_t i = carries; i < given.size(); ++i)
    g.add_input(stack_type(loop, given[i]));
  for (const Type& type : operands.subspan(carries)) g.add_input(type);
  return g;
}

NodeId number(Graph& g, int64_t value) {
  return g.add_constant(number_type, element_bytes(DType::I64, value));
}

}  // namespace

LoopAttrs plain_loop(const LoopAttrs& loop, std::span<const Type> operands) {
  const auto carries = static_cast<size_t>(loop.carries);
  const size_t stacks = loop.body->outputs.size() - carries;
  const auto rows = static_cast<size_t>(loop.rows);
  const ir::IndexAttrs one_row{{0}, false};
  constexpr NodeId turn = 0;

  Graph condition = parameters(loop, operands);
  condition.outputs = {
      loop.backwards
          ? condition.add(Op::gt, {turn, number(condition, -1)})
          : condition.add(Op::lt, {turn, number(condition, loop.turns)})};

  Graph body = parameters(loop, operands);
  std::vector<NodeId> arguments = {turn};
  for (size_t i = 0; i < operands.size(); ++i) {
    const NodeId operand = body.inputs[1 + i + (i < carries ? 0 : stacks)];
    const bool is_row = i >= carries && i < carries + rows;
    arguments.push_back(is_row ? body.add(Op::gather, {operand, turn}, one_row)
                               : operand);
  }
  const std::vector<NodeId> given = inline_graph(body, *loop.body, arguments);
  body.outputs = {
      body.add(Op::add, {turn, number(body, loop.backwards ? -1 : 1)})};
  for (size_t i = 0; i < given.size(); ++i)
    body.outputs.push_back(
        i < carries ? given[i]
                    : body.add(Op::scatter,
                               {body.inputs[1 + i], given[i], turn}, one_row));
  LoopAttrs plain;
  plain.condition = std::make_shared<const Graph>(std::move(condition));
  plain.body = std::make_shared<const Graph>(std::move(body));
  plain.carries = static_cast<int>(1 + given.size());
  return plain;
}

}  // namespace unisono::jit
