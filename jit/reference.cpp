#include "jit/reference.h"

#include <fmt/format.h>

#include <algorithm>
#include <climits>
#include <unordered_map>

#include "jit/ir/kinds.h"
#include "jit/reference/kernels.h"
#include "jit/reference/nodes.h"
#include "jit/reference/value.h"
#include "runtime/check.h"

namespace unisono::jit {
namespace {

using ir::Graph;
using ir::Node;
using ir::NodeId;
using reference::Operand;
using reference::Value;

/// One value per argument, carry or result.
using Values = std::vector<Value>;

/// The values of one member's nodes.
struct Frame {
  int64_t member = 0;
  Values values;  // by node
  /// Of control nodes with several results: results[0] is the value too.
  std::unordered_map<NodeId, Values> results;
};

/// Evaluates graphs for some members at once, node by node. Without an axis
/// there is one member.
class Evaluator {
 public:
  Evaluator(const ReferenceOptions& options, std::optional<ir::AxisId> axis,
            int64_t members)
      : options_(options), axis_(axis), members_(members) {}

  /// arguments[i] are those of members[i]; results in the same form.
  Result<std::vector<Values>> run(const Graph& graph,
                                  const std::vector<int64_t>& members,
                                  std::vector<Values> arguments);

 private:
  using Frames = std::vector<Frame>;

  Status run_one(const Graph& graph, NodeId id, Frames& frames);
  Status run_if(const Graph& graph, NodeId id, Frames& frames);
  Status run_loop(const Graph& graph, NodeId id, Frames& frames);
  Status run_collective(const Graph& graph, NodeId id, Frames& frames);
  Status run_host_call(const Graph& graph, NodeId id, Frames& frames);
  Status run_plain(const Graph& graph, NodeId id, Frames& frames);

  const std::vector<NodeId>& last_uses(const Graph& graph);
  /// The value of an operand for one of its uses: moved out after the last one.
  Value use(const Graph& graph, NodeId user, NodeId operand, Frame& frame,
            bool again);
  Error error(const Node& node, const Frame& frame, Error error) const;

  const ReferenceOptions& options_;
  std::optional<ir::AxisId> axis_;
  int64_t members_;
  std::unordered_map<const Graph*, std::vector<NodeId>> last_uses_;
};

const std::vector<NodeId>& Evaluator::last_uses(const Graph& graph) {
  auto [it, is_new] = last_uses_.try_emplace(&graph);
  if (is_new) {
    auto& last = it->second;
    last.assign(graph.nodes.size(), -1);
    for (size_t i = 0; i < graph.nodes.size(); ++i)
      for (NodeId operand : graph.nodes[i].inputs)
        last[operand] = static_cast<NodeId>(i);
    for (NodeId output : graph.outputs) last[output] = INT_MAX;
    // What belongs to a control node lives as long as its results.
    for (size_t i = 0; i < graph.nodes.size(); ++i)
      if (ir::kind(graph.nodes[i].op) == ir::Kind::control) last[i] = INT_MAX;
  }
  return it->second;
}

Error Evaluator::error(const Node& node, const Frame& frame,
                       Error error) const {
  if (error.source == 0) error.source = node.source;
  if (axis_ && error.member < 0) error.member = frame.member;
  return error;
}

Result<std::vector<Values>> Evaluator::run(const Graph& graph,
                                           const std::vector<int64_t>& members,
                                           std::vector<Values> arguments) {
  Frames frames(members.size());
  for (size_t m = 0; m < members.size(); ++m) {
    frames[m].member = members[m];
    frames[m].values.resize(graph.nodes.size());
    for (size_t i = 0; i < graph.inputs.size(); ++i)
      frames[m].values[graph.inputs[i]] = std::move(arguments[m][i]);
  }
  const auto& last = last_uses(graph);
  for (size_t i = 0; i < graph.nodes.size(); ++i) {
    const auto id = static_cast<NodeId>(i);
    if (options_.stop && options_.stop())
      return Error{Error::Kind::cancelled, "stopped"};
    if (graph[id].op == ir::Op::input) continue;
    if (auto done = run_one(graph, id, frames); !done) return done.error();
    for (NodeId operand : graph[id].inputs)
      if (last[operand] == id)
        for (Frame& frame : frames) frame.values[operand] = Value();
  }
  std::vector<Values> results(members.size());
  for (size_t m = 0; m < members.size(); ++m)
    for (NodeId output : graph.outputs)
      results[m].push_back(frames[m].values[output]);
  return results;
}

Status Evaluator::run_one(const Graph& graph, NodeId id, Frames& frames) {
  const Node& node = graph[id];
  switch (ir::kind(node.op)) {
    case ir::Kind::control:
      if (node.op == ir::Op::if_else) return run_if(graph, id, frames);
      if (node.op == ir::Op::loop) return run_loop(graph, id, frames);
      for (Frame& frame : frames) {
        const int index = ir::attrs<ir::ProjectAttrs>(node).index;
        frame.values[id] = frame.results.at(node.inputs[0])[index];
      }
      return Unit{};
    case ir::Kind::collective: return run_collective(graph, id, frames);
    case ir::Kind::host: return run_host_call(graph, id, frames);
    case ir::Kind::map:
    case ir::Kind::reduce:
    case ir::Kind::argreduce:
    case ir::Kind::scan:
    case ir::Kind::move:
    case ir::Kind::source:
    case ir::Kind::index:
    case ir::Kind::dot:
    case ir::Kind::sort: return run_plain(graph, id, frames);
  }
  __builtin_unreachable();
}

Status Evaluator::run_plain(const Graph& graph, NodeId id, Frames& frames) {
  const Node& node = graph[id];
  const auto& last = last_uses(graph);
  std::vector<Operand> operands(node.inputs.size());
  for (Frame& frame : frames) {
    for (size_t i = 0; i < operands.size(); ++i) {
      const NodeId operand = node.inputs[i];
      const bool once =
          std::count(node.inputs.begin(), node.inputs.end(), operand) == 1;
      operands[i] = {&graph.type(operand), &frame.values[operand],
                     last[operand] == id && once};
    }
    auto value = reference::run_node(node, operands, options_.checked);
    if (!value) return error(node, frame, value.error());
    frame.values[id] = *std::move(value);
  }
  return Unit{};
}

Value Evaluator::use(const Graph& graph, NodeId user, NodeId operand,
                     Frame& frame, bool again) {
  Value& value = frame.values[operand];
  if (again || last_uses(graph)[operand] != user) return value;
  Value out = std::move(value);
  value = Value();
  return out;
}

bool is_true(const Value& value) { return *value.data() != 0; }

Status Evaluator::run_if(const Graph& graph, NodeId id, Frames& frames) {
  const Node& node = graph[id];
  const auto& a = ir::attrs<ir::IfAttrs>(node);
  for (const bool branch : {true, false}) {
    std::vector<int64_t> members;
    std::vector<Frame*> takers;
    std::vector<Values> arguments;
    for (Frame& frame : frames) {
      if (is_true(frame.values[node.inputs[0]]) != branch) continue;
      takers.push_back(&frame);
      members.push_back(frame.member);
      auto& captures = arguments.emplace_back();
      for (size_t i = 1; i < node.inputs.size(); ++i)
        captures.push_back(frame.values[node.inputs[i]]);
    }
    if (takers.empty()) continue;
    auto results = run(branch ? *a.then_graph : *a.else_graph, members,
                       std::move(arguments));
    if (!results) return results.error();
    for (size_t t = 0; t < takers.size(); ++t) {
      Values& mine = (*results)[t];
      if (!mine.empty()) takers[t]->values[id] = mine[0];
      takers[t]->results[id] = std::move(mine);
    }
  }
  return Unit{};
}

Status Evaluator::run_loop(const Graph& graph, NodeId id, Frames& frames) {
  const Node& node = graph[id];
  const auto& a = ir::attrs<ir::LoopAttrs>(node);
  const auto carries = static_cast<size_t>(a.carries);
  struct Turn {
    Frame* frame;
    Values carries, captures;
    Values arguments() const {
      Values all = carries;
      all.insert(all.end(), captures.begin(), captures.end());
      return all;
    }
  };
  std::vector<Turn> turns;
  for (Frame& frame : frames) {
    Turn turn{&frame, {}, {}};
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      const NodeId operand = node.inputs[i];
      const bool again =
          std::find(node.inputs.begin() + i + 1, node.inputs.end(), operand) !=
          node.inputs.end();
      (i < carries ? turn.carries : turn.captures)
          .push_back(use(graph, id, operand, frame, again));
    }
    turns.push_back(std::move(turn));
  }
  while (!turns.empty()) {
    std::vector<int64_t> members;
    std::vector<Values> arguments;
    for (const Turn& turn : turns) {
      members.push_back(turn.frame->member);
      arguments.push_back(turn.arguments());
    }
    auto goes_on = run(*a.condition, members, std::move(arguments));
    if (!goes_on) return goes_on.error();
    std::vector<Turn> rest;
    members.clear();
    arguments.clear();
    for (size_t t = 0; t < turns.size(); ++t) {
      Turn& turn = turns[t];
      if (is_true((*goes_on)[t][0])) {
        members.push_back(turn.frame->member);
        Values all = std::move(turn.carries);
        all.insert(all.end(), turn.captures.begin(), turn.captures.end());
        arguments.push_back(std::move(all));
        rest.push_back(std::move(turn));
      } else {
        if (carries) turn.frame->values[id] = turn.carries[0];
        turn.frame->results[id] = std::move(turn.carries);
      }
    }
    turns = std::move(rest);
    if (turns.empty()) break;
    auto next = run(*a.body, members, std::move(arguments));
    if (!next) return next.error();
    for (size_t t = 0; t < turns.size(); ++t)
      turns[t].carries = std::move((*next)[t]);
  }
  return Unit{};
}

Status Evaluator::run_collective(const Graph& graph, NodeId id,
                                 Frames& frames) {
  const Node& node = graph[id];
  const auto& a = ir::attrs<ir::CollectiveAttrs>(node);
  const auto fail = [&](std::string message) -> Status {
    return error(node, frames[0], {Error::Kind::check_failed, message});
  };
  if (!axis_ || a.axis != *axis_)
    return fail(fmt::format("`{}` over an axis that is not mapped here",
                            ir::name(node.op)));
  if (!(a.size == ir::Dim(members_)))
    return fail(fmt::format("`{}` over {} members, but there are {}",
                            ir::name(node.op), a.size.to_string(), members_));
  if (node.op == ir::Op::axis_index) {
    for (Frame& frame : frames) {
      const auto index = static_cast<int32_t>(frame.member);
      frame.values[id] =
          Value::view(reinterpret_cast<const uint8_t*>(&index), sizeof index);
    }
    return Unit{};
  }
  if (static_cast<int64_t>(frames.size()) != members_)
    return fail(fmt::format("only some members reach `{}`", ir::name(node.op)));
  const auto no_memory = [&]() -> Status {
    return error(node, frames[0], reference::out_of_memory(node.type));
  };
  if (!reference::fits_in_memory(node.type)) return no_memory();
  const ir::Type& type = graph.type(node.inputs[0]);
  const int64_t bytes = type.bytes();
  Values operands;
  for (Frame& frame : frames)
    operands.push_back(reference::dense(frame.values[node.inputs[0]], type));
  for (const Value& operand : operands)
    if (!operand.ok()) return no_memory();
  if (node.op == ir::Op::permute) {
    Value zeros = Value::allocate(bytes);
    if (!zeros.ok()) return no_memory();
    if (bytes > 0) std::memset(zeros.mutable_data(), 0, bytes);
    for (Frame& frame : frames) frame.values[id] = zeros;
    for (const auto [from, to] : a.pairs)
      frames[to].values[id] = operands[from];
    return Unit{};
  }
  Value result = Value::allocate(node.type.bytes());
  if (!result.ok()) return no_memory();
  if (node.op == ir::Op::all_gather) {
    for (size_t m = 0; m < operands.size() && bytes > 0; ++m)
      std::memcpy(result.mutable_data() + m * bytes, operands[m].data(), bytes);
  } else {
    std::vector<const uint8_t*> data;
    for (const Value& operand : operands) data.push_back(operand.data());
    reference::combine_members(a.reduce, type, data, result.mutable_data());
  }
  for (Frame& frame : frames) frame.values[id] = result;
  return Unit{};
}

Result<HostArray> to_host(const Value& value, const ir::Type& type) {
  HostArray out{type, {}};
  try {
    out.bytes.resize(static_cast<size_t>(type.bytes()));
  } catch (const std::bad_alloc&) {
    return reference::out_of_memory(type);
  }
  reference::copy_dense(value, type, out.bytes.data());
  return out;
}

Status Evaluator::run_host_call(const Graph& graph, NodeId id, Frames& frames) {
  const Node& node = graph[id];
  for (Frame& frame : frames) {
    if (!options_.host_call) continue;
    std::vector<HostArray> operands;
    for (NodeId operand : node.inputs) {
      auto array = to_host(frame.values[operand], graph.type(operand));
      if (!array) return error(node, frame, array.error());
      operands.push_back(*std::move(array));
    }
    options_.host_call(node, axis_ ? frame.member : -1, operands);
  }
  const uint8_t nothing = 0;
  for (Frame& frame : frames) frame.values[id] = Value::view(&nothing, 1);
  return Unit{};
}

Result<std::vector<std::vector<HostArray>>> evaluate_all(
    const Graph& graph, std::optional<ir::AxisId> axis,
    std::span<const std::vector<HostArray>* const> inputs,
    const ReferenceOptions& options) {
  const auto count = static_cast<int64_t>(inputs.size());
  std::vector<int64_t> members;
  std::vector<Values> arguments;
  for (int64_t m = 0; m < count; ++m) {
    CHECK(inputs[m]->size() == graph.inputs.size());
    members.push_back(m);
    auto& mine = arguments.emplace_back();
    for (size_t i = 0; i < graph.inputs.size(); ++i) {
      const HostArray& array = (*inputs[m])[i];
      CHECK(array.type == graph.type(graph.inputs[i]));
      CHECK(static_cast<int64_t>(array.bytes.size()) == array.type.bytes());
      mine.push_back(Value::view(array.bytes.data(), array.type.bytes()));
    }
  }
  Evaluator evaluator(options, axis, count);
  auto results = evaluator.run(graph, members, std::move(arguments));
  if (!results) return results.error();
  std::vector<std::vector<HostArray>> out(inputs.size());
  for (size_t m = 0; m < inputs.size(); ++m)
    for (size_t i = 0; i < graph.outputs.size(); ++i) {
      auto array = to_host((*results)[m][i], graph.type(graph.outputs[i]));
      if (!array) return array.error();
      out[m].push_back(*std::move(array));
    }
  return out;
}

}  // namespace

Result<std::vector<HostArray>> evaluate(const Graph& graph,
                                        const std::vector<HostArray>& inputs,
                                        const ReferenceOptions& options) {
  const std::vector<HostArray>* one[] = {&inputs};
  auto results = evaluate_all(graph, std::nullopt, one, options);
  if (!results) return results.error();
  return std::move((*results)[0]);
}

Result<std::vector<std::vector<HostArray>>> evaluate_members(
    const Graph& graph, ir::AxisId axis,
    const std::vector<std::vector<HostArray>>& inputs,
    const ReferenceOptions& options) {
  std::vector<const std::vector<HostArray>*> all;
  for (const auto& mine : inputs) all.push_back(&mine);
  return evaluate_all(graph, axis, all, options);
}

}  // namespace unisono::jit
