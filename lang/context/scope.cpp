#include "lang/context/scope.h"

#include <algorithm>

#include "jit/ir/renaming.h"
#include "jit/transform/transforms.h"
#include "runtime/check.h"

namespace unisono::lang {

ArrayValue GraphScope::add_parameter(ir::Type type, AxisSet varies,
                                     Span where) {
  CHECK(graph_.nodes.size() == parameters_.size());
  const auto id = static_cast<ir::NodeId>(graph_.nodes.size());
  graph_.append({ir::Op::input, {}, ir::InputAttrs{id}, type, 0});
  parameters_.push_back(id);
  auto cell = std::make_shared<ArrayCell>();
  cell->type = std::move(type);
  cell->varies = std::move(varies);
  cell->varies_from = where;
  cell->scope = weak_from_this();
  cell->node = id;
  return cell;
}

ir::NodeId GraphScope::import(const ArrayValue& value) {
  if (value->node >= 0 && value->scope.lock().get() == this) return value->node;
  if (auto known = imported_.find(value.get()); known != imported_.end())
    return known->second;
  ir::NodeId id = -1;
  if (value->constant) {
    id = graph_.append({ir::Op::constant,
                        {},
                        ir::ConstantAttrs{value->type, *value->constant},
                        value->type,
                        0});
    constants_.push_back(value);
  } else {
    // The index is set by finish.
    id = graph_.append({ir::Op::input, {}, ir::InputAttrs{0}, value->type, 0});
    captures_.push_back(value);
  }
  imported_.emplace(value.get(), id);
  return id;
}

ArrayValue GraphScope::same_node(const ArrayValue& value) {
  auto cell = std::make_shared<ArrayCell>(*value);
  values_.push_back(cell);
  return cell;
}

ArrayValue GraphScope::add(ir::Op op, std::vector<ir::NodeId> operands,
                           ir::Attrs attrs, ir::Type type, uint32_t source) {
  return new_value(graph_.append(
      {op, std::move(operands), std::move(attrs), std::move(type), source}));
}

std::vector<ArrayValue> GraphScope::append(
    const ir::Graph& callee, std::span<const ArrayValue> arguments) {
  std::vector<ir::NodeId> nodes;
  for (const ArrayValue& argument : arguments)
    nodes.push_back(import(argument));
  std::vector<ArrayValue> outputs;
  for (ir::NodeId id : jit::inline_graph(graph_, callee, nodes))
    outputs.push_back(new_value(id));
  return outputs;
}

ArrayValue GraphScope::new_value(ir::NodeId node) {
  auto cell = std::make_shared<ArrayCell>();
  cell->type = graph_.type(node);
  cell->scope = weak_from_this();
  cell->node = node;
  values_.push_back(cell);
  return cell;
}

ir::Graph GraphScope::finish(std::span<const ArrayValue> outputs) {
  std::vector<ir::NodeId> ids;
  for (const ArrayValue& output : outputs) ids.push_back(import(output));
  return finish(outputs, captures_);
}

ir::Graph GraphScope::finish(std::span<const ArrayValue> outputs,
                             std::span<const ArrayValue> captures) {
  std::vector<ir::NodeId> output_ids;
  for (const ArrayValue& output : outputs) output_ids.push_back(import(output));

  ir::Graph out;
  ir::Renaming placed(graph_);
  for (ir::NodeId id : parameters_)
    placed.set(id, out.add_input(graph_.nodes[id].type));
  for (const ArrayValue& capture : captures) {
    const ir::NodeId id = out.add_input(capture->type);
    if (auto own = imported_.find(capture.get()); own != imported_.end())
      placed.set(own->second, id);
  }
  for (const ir::NodeId id : ir::node_ids(graph_))
    if (graph_[id].op != ir::Op::input)
      placed.set(id, out.append(placed.renamed(id)));
  out.outputs = placed.renamed(output_ids);
  return out;
}

}  // namespace unisono::lang
