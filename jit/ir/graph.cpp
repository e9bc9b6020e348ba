#include "jit/ir/graph.h"

#include "jit/ir/kinds.h"
#include "runtime/check.h"

namespace unisono::ir {

std::vector<Type> Graph::input_types() const {
  std::vector<Type> out;
  out.reserve(inputs.size());
  for (NodeId id : inputs) out.push_back(type(id));
  return out;
}

std::vector<Type> Graph::output_types() const {
  std::vector<Type> out;
  out.reserve(outputs.size());
  for (NodeId id : outputs) out.push_back(type(id));
  return out;
}

NodeId Graph::add_input(Type type, uint32_t source) {
  CHECK(nodes.size() == inputs.size());
  const auto id = static_cast<NodeId>(nodes.size());
  nodes.push_back({Op::input, {}, InputAttrs{id}, std::move(type), source});
  inputs.push_back(id);
  return id;
}

NodeId Graph::add_constant(Type type, std::vector<uint8_t> bytes,
                           uint32_t source) {
  return add(Op::constant, {}, ConstantAttrs{std::move(type), std::move(bytes)},
             source);
}

NodeId Graph::add(Op op, std::vector<NodeId> inputs, Attrs attrs,
                  uint32_t source) {
  CHECK(op != Op::input);
  std::vector<Type> operands;
  operands.reserve(inputs.size());
  for (NodeId id : inputs) {
    CHECK(id >= 0 && id < static_cast<NodeId>(nodes.size()));
    operands.push_back(nodes[id].type);
  }
  Type type;
  if (op == Op::project) {
    CHECK(inputs.size() == 1 && has_results(nodes[inputs[0]]));
    type = result_type(nodes[inputs[0]], std::get<ProjectAttrs>(attrs).index);
  } else {
    auto inferred = infer_type(op, operands, attrs);
    if (!inferred)
      check_failed(inferred.error().message.c_str(), __FILE__, __LINE__);
    type = std::move(*inferred);
  }
  return append(
      {op, std::move(inputs), std::move(attrs), std::move(type), source});
}

NodeId Graph::append(Node node) {
  nodes.push_back(std::move(node));
  return static_cast<NodeId>(nodes.size()) - 1;
}

}  // namespace unisono::ir
