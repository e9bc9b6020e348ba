#include "lang/context/scope.h"

#include <algorithm>

#include "jit/transform/transforms.h"
#include "runtime/check.h"

namespace unisono::lang {

ArrayValue GraphScope::add_parameter(ir::Type type, AxisSet varies,
                                     Span where) {
  CHECK(graph_.nodes.size() == parameters_.size());
  const auto id = static_cast<ir::NodeId>(graph_.nodes.size());
  graph_.nodes.push_back({ir::Op::input, {}, ir::InputAttrs{id}, type, 0});
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
  const auto id = static_cast<ir::NodeId>(graph_.nodes.size());
  if (value->constant) {
    graph_.nodes.push_back({ir::Op::constant,
                            {},
                            ir::ConstantAttrs{value->type, *value->constant},
                            value->type,
                            0});
    constants_.push_back(value);
  } else {
    // The index is set by finish.
    graph_.nodes.push_back(
        {ir::Op::input, {}, ir::InputAttrs{0}, value->type, 0});
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
  const auto id = static_cast<ir::NodeId>(graph_.nodes.size());
  graph_.nodes.push_back(
      {op, std::move(operands), std::move(attrs), std::move(type), source});
  return new_value(id);
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
  std::vector<ir::NodeId> renamed(graph_.nodes.size(), -1);
  for (ir::NodeId id : parameters_)
    renamed[id] = out.add_input(graph_.nodes[id].type);
  for (const ArrayValue& capture : captures) {
    const ir::NodeId id = out.add_input(capture->type);
    if (auto own = imported_.find(capture.get()); own != imported_.end())
      renamed[own->second] = id;
  }
  for (size_t i = 0; i < graph_.nodes.size(); ++i) {
    const ir::Node& node = graph_.nodes[i];
    if (node.op == ir::Op::input) {
      CHECK(renamed[i] >= 0);
      continue;
    }
    ir::Node copy = node;
    for (ir::NodeId& input : copy.inputs) input = renamed[input];
    renamed[i] = static_cast<ir::NodeId>(out.nodes.size());
    out.nodes.push_back(std::move(copy));
  }
  for (ir::NodeId id : output_ids) out.outputs.push_back(renamed[id]);
  return out;
}

}  // namespace unisono::lang
