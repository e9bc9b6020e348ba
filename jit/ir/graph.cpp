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
    CHECK(inputs.size() == 1 && kind(nodes[inputs[0]].op) == Kind::control);
    type = result_type(nodes[inputs[0]], std::get<ProjectAttrs>(attrs).index);
  } else {
    auto inferred = infer_type(op, operands, attrs);
    if (!inferred)
      check_failed(inferred.error().message.c_str(), __FILE__, __LINE__);
    type = std::move(*inferred);
  }
  const auto id = static_cast<NodeId>(nodes.size());
  nodes.push_back(
      {op, std::move(inputs), std::move(attrs), std::move(type), source});
  return id;
}

std::string_view name(Op op) {
  switch (op) {
#define UNARY(name, ...) \
  case Op::name: return #name;
#define BINARY UNARY
#define COMPARE UNARY
#define PREDICATE UNARY
#define REDUCE UNARY
#define SCAN UNARY
#define OTHER UNARY
#include "jit/ir/ops.def"
  }
  __builtin_unreachable();
}

namespace {

constexpr Op all_ops[] = {
#define UNARY(name, ...) Op::name,
#define BINARY UNARY
#define COMPARE UNARY
#define PREDICATE UNARY
#define REDUCE UNARY
#define SCAN UNARY
#define OTHER UNARY
#include "jit/ir/ops.def"
};

}  // namespace

std::optional<Op> op_from_name(std::string_view text) {
  for (Op op : all_ops)
    if (name(op) == text) return op;
  return std::nullopt;
}

Kind kind(Op op) {
  switch (op) {
#define UNARY(name, ...) \
  case Op::name: return Kind::map;
#define BINARY UNARY
#define COMPARE UNARY
#define PREDICATE UNARY
#define REDUCE(name, ...) \
  case Op::name: return Kind::reduce;
#define SCAN(name, ...) \
  case Op::name: return Kind::scan;
#define OTHER(name, kind, ...) \
  case Op::name: return Kind::kind;
#include "jit/ir/ops.def"
  }
  __builtin_unreachable();
}

}  // namespace unisono::ir
