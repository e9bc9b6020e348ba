#include "jit/reference/reference.h"

#include <fmt/format.h>

#include <algorithm>
#include <climits>
#include <cstring>
#include <iterator>
#include <limits>
#include <map>
#include <unordered_map>

#include "jit/ir/kinds.h"
#include "jit/reference/collective.h"
#include "jit/reference/host_call.h"
#include "jit/reference/kernels.h"
#include "jit/reference/nodes.h"
#include "jit/reference/value.h"
#include "runtime/check.h"
#include "runtime/stop.h"

namespace unisono::jit {
namespace {

using ir::Graph;
using ir::Node;
using ir::NodeId;
using reference::Operand;
using reference::Value;

Error error_at(const Node& node, Error error) {
  if (error.source == 0) error.source = node.source;
  return error;
}

/// One value per argument, carry or result.
using Values = std::vector<Value>;

/// The values of one member's nodes.
struct Frame {
  int64_t member = 0;
  Values values;  // by node
  /// Of control nodes, until projections take them.
  std::unordered_map<NodeId, Values> results;
};

/// What is known of a graph before it is evaluated, by node.
struct Plan {
  /// The last node that reads each one; `forever` for outputs.
  std::vector<NodeId> last_use;
  /// Of control nodes: read not only by projections.
  std::vector<bool> read_whole;
  /// Of projections: the last one of this result.
  std::vector<bool> takes_result;
};
constexpr NodeId forever = INT_MAX;

Plan plan_of(const Graph& graph) {
  Plan plan{std::vector<NodeId>(graph.nodes.size(), -1),
            std::vector<bool>(graph.nodes.size(), false),
            std::vector<bool>(graph.nodes.size(), false)};
  std::map<std::pair<NodeId, int>, NodeId> last_projection;
  for (size_t i = 0; i < graph.nodes.size(); ++i) {
    const Node& node = graph.nodes[i];
    const auto id = static_cast<NodeId>(i);
    for (NodeId operand : node.inputs) {
      plan.last_use[operand] = id;
      if (node.op != ir::Op::project) plan.read_whole[operand] = true;
    }
    if (node.op == ir::Op::project)
      last_projection[{node.inputs[0],
                       ir::attrs<ir::ProjectAttrs>(node).index}] = id;
  }
  for (NodeId output : graph.outputs) {
    plan.last_use[output] = forever;
    plan.read_whole[output] = true;
  }
  for (const auto& [result, id] : last_projection) plan.takes_result[id] = true;
  return plan;
}

/// A graph under evaluation, for some members.
struct Scope {
  const Graph& graph;
  const Plan& plan;
  std::vector<Frame> frames;
};

/// Evaluates graphs for some members at once, node by node. Without an axis
/// there is one member.
class ReferenceRun {
 public:
  ReferenceRun(const ReferenceOptions& options,
               const std::vector<MemberAxis>& axes)
      : options_(options) {
    int64_t stride = 1;
    for (size_t i = axes.size(); i-- > 0; stride *= axes[i].size)
      mapped_[axes[i].id] = {axes[i].size, stride};
  }

  /// arguments[i] are those of members[i]; results in the same form, but of
  /// those members alone that come before one that failed.
  Result<std::vector<Values>> run(const Graph& graph,
                                  const std::vector<int64_t>& members,
                                  std::vector<Values> arguments);
  const std::optional<Error>& failure() const { return failure_; }
  /// Makes the host calls that wait for those of earlier devices. An error is
  /// the first one's that has one.
  Status call_host();

 private:
  Status run_one(Scope& scope, NodeId id);
  Status run_if(Scope& scope, NodeId id);
  Status run_loop(Scope& scope, NodeId id);
  Status run_counted_loop(Scope& scope, NodeId id);
  Status run_collective(Scope& scope, NodeId id);
  Status run_host_call(Scope& scope, NodeId id);
  Result<Values> call_host_for(Scope& scope, NodeId id, Frame& frame);
  int device_of(int64_t member) const;
  Status run_plain(Scope& scope, NodeId id);
  Result<Value> run_node(const Node& node,
                         std::span<const Operand> operands) const;
  void run_project(Scope& scope, NodeId id);
  /// A member's error: it and those after it take no further part. Those
  /// before it go on to where they meet, and may have one, too.
  Status drop(Scope& scope, Error error);
  void drop_failed(Scope& scope) const;
  Error error(const Node& node, const Frame& frame, Error error) const;

  int64_t position_of(int64_t member, const ir::CollectiveAttrs& a) const;
  std::vector<int64_t> team_of(int64_t member,
                               const ir::CollectiveAttrs& a) const;
  Status check_axes(const Node& node, const Frame& frame) const;

  /// Where an axis stands in a member's number.
  struct Mapped {
    int64_t size = 1, stride = 1;
  };
  struct WaitingCall {
    const Node* node;
    int64_t member;
    std::vector<HostArray> operands;
  };
  Status make(const std::vector<WaitingCall>& calls);

  const ReferenceOptions& options_;
  std::map<int, std::vector<WaitingCall>> waiting_;  // all devices but 0
  std::unordered_map<ir::AxisId, Mapped> mapped_;
  std::unordered_map<const Graph*, Plan> plans_;
  std::optional<Error> failure_;  // of the first member so far that has one
  /// This member and those after it take no further part.
  int64_t end_ = std::numeric_limits<int64_t>::max();
};

Error ReferenceRun::error(const Node& node, const Frame& frame,
                          Error error) const {
  error = error_at(node, std::move(error));
  if (!mapped_.empty() && error.member < 0) error.member = frame.member;
  return error;
}

Status ReferenceRun::drop(Scope& scope, Error error) {
  if (mapped_.empty()) return error;
  if (!failure_ || error.member < failure_->member) failure_ = std::move(error);
  end_ = std::min(end_, failure_->member);
  // Later devices never have their turn.
  waiting_.erase(waiting_.upper_bound(device_of(failure_->member)),
                 waiting_.end());
  drop_failed(scope);
  return Unit{};
}

void ReferenceRun::drop_failed(Scope& scope) const {
  std::erase_if(scope.frames,
                [&](const Frame& frame) { return frame.member >= end_; });
}

Result<std::vector<Values>> ReferenceRun::run(
    const Graph& graph, const std::vector<int64_t>& members,
    std::vector<Values> arguments) {
  auto [plan, is_new] = plans_.try_emplace(&graph);
  if (is_new) plan->second = plan_of(graph);
  Scope scope{graph, plan->second, std::vector<Frame>(members.size())};
  for (size_t m = 0; m < members.size(); ++m) {
    Frame& frame = scope.frames[m];
    frame.member = members[m];
    frame.values.resize(graph.nodes.size());
    for (size_t i = 0; i < graph.inputs.size(); ++i)
      frame.values[graph.inputs[i]] = std::move(arguments[m][i]);
  }
  for (size_t i = graph.inputs.size(); i < graph.nodes.size(); ++i) {
    const auto id = static_cast<NodeId>(i);
    if (stop_requested() || (options_.stop && options_.stop()))
      return error_at(graph[id], stopped_error());
    if (scope.frames.empty()) break;  // all have failed
    TRY(run_one(scope, id));
    for (NodeId operand : graph[id].inputs)
      if (scope.plan.last_use[operand] == id)
        for (Frame& frame : scope.frames) frame.values[operand] = Value();
  }
  std::vector<Values> results(scope.frames.size());
  for (size_t m = 0; m < scope.frames.size(); ++m) {
    Values& values = scope.frames[m].values;
    for (size_t i = 0; i < graph.outputs.size(); ++i) {
      const NodeId output = graph.outputs[i];
      const bool again =
          std::find(graph.outputs.begin() + i + 1, graph.outputs.end(),
                    output) != graph.outputs.end();
      results[m].push_back(again ? values[output] : std::move(values[output]));
    }
  }
  return results;
}

Status ReferenceRun::run_one(Scope& scope, NodeId id) {
  const Node& node = scope.graph[id];
  switch (ir::kind(node.op)) {
    case ir::Kind::control:
      if (node.op == ir::Op::if_else) return run_if(scope, id);
      if (node.op == ir::Op::loop) return run_loop(scope, id);
      run_project(scope, id);
      return Unit{};
    case ir::Kind::collective: return run_collective(scope, id);
    case ir::Kind::host: return run_host_call(scope, id);
    case ir::Kind::map:
    case ir::Kind::reduce:
    case ir::Kind::argreduce:
    case ir::Kind::scan:
    case ir::Kind::move:
    case ir::Kind::source:
    case ir::Kind::index:
    case ir::Kind::dot:
    case ir::Kind::sort: return run_plain(scope, id);
  }
  __builtin_unreachable();
}

/// Whether `node` reads the operand at `position` again at a later one.
bool reads_again(const Node& node, size_t position) {
  const auto begin = node.inputs.begin() + position;
  return std::find(begin + 1, node.inputs.end(), *begin) != node.inputs.end();
}

Result<Value> ReferenceRun::run_node(const Node& node,
                                     std::span<const Operand> operands) const {
  try {
    return reference::run_node(node, operands, options_.checked);
  } catch (const Stopped&) {
    return error_at(node, stopped_error());
  }
}

Status ReferenceRun::run_plain(Scope& scope, NodeId id) {
  const Node& node = scope.graph[id];
  std::vector<Operand> operands(node.inputs.size());
  for (Frame& frame : scope.frames) {
    for (size_t i = 0; i < operands.size(); ++i) {
      const NodeId operand = node.inputs[i];
      const bool first = std::find(node.inputs.begin(), node.inputs.end(),
                                   operand) == node.inputs.begin() + i;
      operands[i] = {
          &scope.graph.type(operand), &frame.values[operand],
          scope.plan.last_use[operand] == id && first && !reads_again(node, i)};
    }
    auto value = run_node(node, operands);
    if (!value && value.error().kind == Error::Kind::cancelled)
      return value.error();
    if (!value) return drop(scope, error(node, frame, value.error()));
    frame.values[id] = *std::move(value);
  }
  return Unit{};
}

void ReferenceRun::run_project(Scope& scope, NodeId id) {
  const Node& node = scope.graph[id];
  const auto index =
      static_cast<size_t>(ir::attrs<ir::ProjectAttrs>(node).index);
  for (Frame& frame : scope.frames) {
    Value& result = frame.results.at(node.inputs[0])[index];
    frame.values[id] = scope.plan.takes_result[id] ? std::move(result) : result;
  }
}

/// The operands from `begin` on, moved out of the frame after their last use.
Values take_operands(Scope& scope, NodeId id, Frame& frame, size_t begin) {
  const Node& node = scope.graph[id];
  Values out;
  out.reserve(node.inputs.size() - begin);
  for (size_t i = begin; i < node.inputs.size(); ++i) {
    const NodeId operand = node.inputs[i];
    Value& value = frame.values[operand];
    const bool last =
        scope.plan.last_use[operand] == id && !reads_again(node, i);
    out.push_back(last ? std::move(value) : value);
  }
  return out;
}

void set_results(Scope& scope, NodeId id, Frame& frame, Values results) {
  if (scope.plan.read_whole[id] && !results.empty())
    frame.values[id] = results[0];
  frame.results[id] = std::move(results);
}

bool is_true(const Value& value) { return *value.data() != 0; }

Status ReferenceRun::run_if(Scope& scope, NodeId id) {
  const Node& node = scope.graph[id];
  const auto& a = ir::attrs<ir::IfAttrs>(node);
  std::vector<bool> conditions;
  for (const Frame& frame : scope.frames)
    conditions.push_back(is_true(frame.values[node.inputs[0]]));
  for (const bool branch : {true, false}) {
    std::vector<int64_t> members;
    std::vector<Frame*> takers;
    std::vector<Values> arguments;
    for (size_t f = 0; f < scope.frames.size(); ++f) {
      Frame& frame = scope.frames[f];
      if (conditions[f] != branch) continue;
      takers.push_back(&frame);
      members.push_back(frame.member);
      arguments.push_back(take_operands(scope, id, frame, 1));
    }
    if (takers.empty()) continue;
    auto results = TRY(run(branch ? *a.then_graph : *a.else_graph, members,
                           std::move(arguments)));
    for (size_t t = 0; t < results.size(); ++t)
      set_results(scope, id, *takers[t], std::move(results[t]));
  }
  drop_failed(scope);
  return Unit{};
}

/// One member in a loop: carries, then captures.
struct Turn {
  Frame* frame;
  Values arguments;
};

namespace {

/// Row `number` of an array; not ok() if there is no memory.
Value row_of(const Value& array, const ir::Type& row, int64_t number) {
  if (array.is_repeated()) return array;
  const int64_t bytes = row.bytes();
  Value out = Value::allocate(bytes);
  if (out.ok())
    reference::copy_bytes(out.mutable_data(), array.data() + number * bytes,
                          bytes);
  return out;
}

}  // namespace

/// Rows are copied out of their arrays, parts into their stacks, turn by turn.
Status ReferenceRun::run_counted_loop(Scope& scope, NodeId id) {
  const Node& node = scope.graph[id];
  const auto& a = ir::attrs<ir::LoopAttrs>(node);
  const auto carries = static_cast<size_t>(a.carries);
  const auto rows = static_cast<size_t>(a.rows);
  std::vector<ir::Type> parameters = a.body->input_types();
  const std::vector<ir::Type> given = a.body->output_types();
  const auto no_memory = [&](const ir::Type& type) {
    return error_at(node, reference::out_of_memory(type));
  };
  struct Member {
    Frame* frame;
    Values operands, stacks;
  };
  std::vector<Member> members;
  for (Frame& frame : scope.frames) {
    Member member{&frame, take_operands(scope, id, frame, 0), {}};
    for (size_t i = carries; i < given.size(); ++i) {
      const ir::Type type = ir::stack_type(a, given[i]);
      if (!reference::fits_in_memory(type)) return no_memory(type);
      member.stacks.push_back(Value::allocate(type.bytes()));
      if (!member.stacks.back().ok()) return no_memory(type);
    }
    members.push_back(std::move(member));
  }
  for (int64_t turn = 0; turn < a.turns && !members.empty(); ++turn) {
    const int64_t number = a.backwards ? a.turns - 1 - turn : turn;
    std::vector<int64_t> numbers;
    std::vector<Values> arguments;
    for (Member& member : members) {
      numbers.push_back(member.frame->member);
      Values& own = arguments.emplace_back();
      own.push_back(Value::allocate(sizeof number));
      std::memcpy(own[0].mutable_data(), &number, sizeof number);
      for (size_t i = 0; i < member.operands.size(); ++i) {
        Value& operand = member.operands[i];
        const ir::Type& type = parameters[i + 1];
        const bool is_row = i >= carries && i < carries + rows;
        own.push_back(i < carries ? std::move(operand)  // the body's own
                      : is_row    ? row_of(operand, type, number)
                                  : operand);
        if (!own.back().ok()) return no_memory(type);
      }
    }
    auto next = TRY(run(*a.body, numbers, std::move(arguments)));
    members.erase(members.begin() + static_cast<ptrdiff_t>(next.size()),
                  members.end());
    for (size_t m = 0; m < members.size(); ++m) {
      auto& [frame, operands, stacks] = members[m];
      std::move(next[m].begin(), next[m].begin() + a.carries, operands.begin());
      for (size_t i = carries; i < given.size(); ++i)
        reference::copy_dense(
            next[m][i], given[i],
            stacks[i - carries].mutable_data() + number * given[i].bytes());
    }
  }
  for (auto& [frame, operands, stacks] : members) {
    operands.resize(carries);
    std::move(stacks.begin(), stacks.end(), std::back_inserter(operands));
    set_results(scope, id, *frame, std::move(operands));
  }
  drop_failed(scope);
  return Unit{};
}

Status ReferenceRun::run_loop(Scope& scope, NodeId id) {
  const Node& node = scope.graph[id];
  const auto& a = ir::attrs<ir::LoopAttrs>(node);
  if (a.is_counted()) return run_counted_loop(scope, id);
  const auto carries = static_cast<size_t>(a.carries);
  std::vector<Turn> turns;
  for (Frame& frame : scope.frames)
    turns.push_back({&frame, take_operands(scope, id, frame, 0)});
  while (true) {
    std::vector<int64_t> members;
    std::vector<Values> arguments;
    for (const Turn& turn : turns) {
      members.push_back(turn.frame->member);
      arguments.push_back(turn.arguments);
    }
    auto goes_on = TRY(run(*a.condition, members, std::move(arguments)));
    turns.erase(turns.begin() + static_cast<ptrdiff_t>(goes_on.size()),
                turns.end());
    members.clear();
    arguments.clear();
    std::vector<Turn> rest;
    for (size_t t = 0; t < turns.size(); ++t) {
      Turn& turn = turns[t];
      if (!is_true(goes_on[t][0])) {
        turn.arguments.resize(carries);
        set_results(scope, id, *turn.frame, std::move(turn.arguments));
        continue;
      }
      // The captures stay for the next turn; the carries are the body's own.
      Values captures(carries);
      captures.insert(captures.end(), turn.arguments.begin() + carries,
                      turn.arguments.end());
      members.push_back(turn.frame->member);
      arguments.push_back(std::move(turn.arguments));
      rest.push_back({turn.frame, std::move(captures)});
    }
    turns = std::move(rest);
    if (turns.empty()) break;
    auto next = TRY(run(*a.body, members, std::move(arguments)));
    turns.erase(turns.begin() + static_cast<ptrdiff_t>(next.size()),
                turns.end());
    for (size_t t = 0; t < turns.size(); ++t)
      std::move(next[t].begin(), next[t].end(), turns[t].arguments.begin());
  }
  drop_failed(scope);
  return Unit{};
}

int64_t ReferenceRun::position_of(int64_t member,
                                  const ir::CollectiveAttrs& a) const {
  int64_t position = 0;
  for (size_t i = 0; i < a.axes.size(); ++i) {
    const Mapped& axis = mapped_.at(a.axes[i]);
    position = position * axis.size + member / axis.stride % axis.size;
  }
  return position;
}

/// The members that meet `member`, by position.
std::vector<int64_t> ReferenceRun::team_of(int64_t member,
                                           const ir::CollectiveAttrs& a) const {
  std::vector<int64_t> team = {member};
  for (const ir::AxisId id : a.axes) {
    const Mapped& axis = mapped_.at(id);
    team[0] -= member / axis.stride % axis.size * axis.stride;
  }
  for (const ir::AxisId id : a.axes) {
    const Mapped& axis = mapped_.at(id);
    std::vector<int64_t> wider;
    for (const int64_t m : team)
      for (int64_t p = 0; p < axis.size; ++p)
        wider.push_back(m + p * axis.stride);
    team = std::move(wider);
  }
  return team;
}

Status ReferenceRun::check_axes(const Node& node, const Frame& frame) const {
  const auto& a = ir::attrs<ir::CollectiveAttrs>(node);
  const auto fail = [&](std::string message) -> Status {
    return error(node, frame, {Error::Kind::check_failed, message});
  };
  for (size_t i = 0; i < a.axes.size(); ++i) {
    const auto axis = mapped_.find(a.axes[i]);
    if (axis == mapped_.end())
      return fail(fmt::format("`{}` over an axis that is not mapped here",
                              ir::name(node.op)));
    if (!(a.sizes[i] == ir::Dim(axis->second.size)))
      return fail(fmt::format("`{}` over {} members, but there are {}",
                              ir::name(node.op), a.sizes[i].to_string(),
                              axis->second.size));
  }
  return Unit{};
}

Status ReferenceRun::run_collective(Scope& scope, NodeId id) {
  const Graph& graph = scope.graph;
  const Node& node = graph[id];
  auto& frames = scope.frames;
  TRY(check_axes(node, frames[0]));
  const auto& a = ir::attrs<ir::CollectiveAttrs>(node);
  if (node.op == ir::Op::axis_index) {
    for (Frame& frame : frames) {
      const auto index = static_cast<int32_t>(position_of(frame.member, a));
      frame.values[id] =
          Value::view(reinterpret_cast<const uint8_t*>(&index), sizeof index);
    }
    return Unit{};
  }
  // They meet here; own_part is no meeting, nor is what no device waits for.
  if (node.op != ir::Op::own_part && scope.plan.last_use[id] >= 0 &&
      std::ranges::any_of(team_of(frames[0].member, a), [&](int64_t member) {
        return device_of(member) != device_of(frames[0].member);
      }))
    TRY(call_host());
  if (failure_ && node.op != ir::Op::own_part) return *failure_;
  const auto no_memory = [&]() -> Status {
    return error(node, frames[0], reference::out_of_memory(node.type));
  };
  if (!reference::fits_in_memory(node.type)) return no_memory();
  const ir::Type& type = graph.type(node.inputs[0]);
  std::unordered_map<int64_t, Frame*> present;
  std::unordered_map<int64_t, Value> operands;
  for (Frame& frame : frames) {
    Value operand = reference::dense(frame.values[node.inputs[0]], type);
    if (!operand.ok()) return no_memory();
    if (node.op == ir::Op::own_part) {
      frame.values[id] = reference::own_part(node, type, operand,
                                             position_of(frame.member, a));
      if (!frame.values[id].ok()) return no_memory();
    } else {
      operands.emplace(frame.member, std::move(operand));
      present.emplace(frame.member, &frame);
    }
  }
  while (!present.empty()) {
    const std::vector<int64_t> team = team_of(present.begin()->first, a);
    Values given;
    for (const int64_t member : team) {
      const auto operand = operands.find(member);
      if (operand == operands.end())
        return error(
            node, frames[0],
            {Error::Kind::check_failed,
             fmt::format("only some members reach `{}`", ir::name(node.op))});
      given.push_back(operand->second);
    }
    Values results = reference::meet(node, type, given);
    for (size_t p = 0; p < team.size(); ++p) {
      if (!results[p].ok()) return no_memory();
      const auto member = present.find(team[p]);
      member->second->values[id] = std::move(results[p]);
      present.erase(member);
    }
  }
  return Unit{};
}

Result<HostArray> to_host(const Value& value, const ir::Type& type) {
  HostArray out{type, {}};
  try {
    resize_in_pieces(out.bytes, type.bytes());
  } catch (const std::bad_alloc&) {
    return reference::out_of_memory(type);
  }
  reference::copy_dense(value, type, out.bytes.data());
  return out;
}

int ReferenceRun::device_of(int64_t member) const {
  return mapped_.empty() || !options_.device_of ? 0
                                                : options_.device_of(member);
}

Status ReferenceRun::call_host() {
  auto waiting = std::exchange(waiting_, {});
  for (const auto& [device, calls] : waiting) TRY(make(calls));
  return Unit{};
}

Status ReferenceRun::make(const std::vector<WaitingCall>& calls) {
  std::vector<HostArray> none;
  for (const WaitingCall& call : calls) {
    Status done = jit::call_host(options_.host_call, *call.node, call.member,
                                 call.operands, none);
    if (done) continue;
    Error error = std::move(done).error();
    error.member = call.member;
    return error;
  }
  return Unit{};
}

/// Calls without results wait for those of earlier devices; one with results
/// cannot, and comes after those of its own device. A pure one may come at any
/// time: nothing but its results tells.
Status ReferenceRun::run_host_call(Scope& scope, NodeId id) {
  const Node& node = scope.graph[id];
  const auto& a = ir::attrs<ir::HostCallAttrs>(node);
  std::map<int64_t, Values> given;  // by the member that called
  for (Frame& frame : scope.frames) {
    const int64_t caller = mapped_.empty() || !options_.caller_of
                               ? frame.member
                               : options_.caller_of(a, frame.member);
    if (!given.contains(caller)) {
      const int device = device_of(frame.member);
      // Its device ended where another of its members failed.
      if (!a.pure && failure_ && device >= device_of(failure_->member)) {
        if (!a.results.empty()) end_ = std::min(end_, frame.member);
        continue;
      }
      auto results = call_host_for(scope, id, frame);
      if (!results && results.error().kind == Error::Kind::cancelled)
        return results.error();
      if (!results) return drop(scope, error(node, frame, results.error()));
      given[caller] = *std::move(results);
    }
    if (!a.results.empty()) set_results(scope, id, frame, given[caller]);
  }
  drop_failed(scope);
  const uint8_t nothing = 0;
  if (a.results.empty())
    for (Frame& frame : scope.frames)
      frame.values[id] = Value::view(&nothing, 1);
  return Unit{};
}

Result<Values> ReferenceRun::call_host_for(Scope& scope, NodeId id,
                                           Frame& frame) {
  const Node& node = scope.graph[id];
  const int device = device_of(frame.member);
  const int64_t member = mapped_.empty() ? -1 : frame.member;
  std::vector<HostArray> operands, results;
  for (NodeId operand : node.inputs)
    operands.push_back(
        TRY(to_host(frame.values[operand], scope.graph.type(operand))));
  if (device != 0 && ir::result_count(node) == 0) {
    waiting_[device].push_back({&node, member, std::move(operands)});
    return Values();
  }
  const bool pure = ir::attrs<ir::HostCallAttrs>(node).pure;
  if (const auto earlier = waiting_.find(device);
      !pure && earlier != waiting_.end()) {
    const auto calls = std::move(earlier->second);
    waiting_.erase(earlier);
    TRY(make(calls));
  }
  for (int i = 0; i < ir::result_count(node); ++i) {
    const ir::Type type = ir::result_type(node, i);
    resize_in_pieces(results.emplace_back(type).bytes, type.bytes());
  }
  TRY(jit::call_host(options_.host_call, node, member, operands, results));
  Values values;
  for (const HostArray& result : results) {
    Value value = Value::allocate(result.type.bytes());
    if (!value.ok()) return reference::out_of_memory(result.type);
    std::copy(result.bytes.begin(), result.bytes.end(), value.mutable_data());
    values.push_back(std::move(value));
  }
  return values;
}

Result<std::vector<std::vector<HostArray>>> evaluate_nodes(
    const Graph& graph, const std::vector<MemberAxis>& axes,
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
  ReferenceRun evaluator(options, axes);
  auto results = evaluator.run(graph, members, std::move(arguments));
  if (results || evaluator.failure()) TRY(evaluator.call_host());
  if (!results) return results.error();
  if (evaluator.failure()) return *evaluator.failure();
  std::vector<std::vector<HostArray>> out(inputs.size());
  for (size_t m = 0; m < inputs.size(); ++m)
    for (size_t i = 0; i < graph.outputs.size(); ++i) {
      auto array = TRY(to_host((*results)[m][i], graph.type(graph.outputs[i])));
      out[m].push_back(std::move(array));
    }
  return out;
}

Result<std::vector<std::vector<HostArray>>> evaluate_all(
    const Graph& graph, const std::vector<MemberAxis>& axes,
    std::span<const std::vector<HostArray>* const> inputs,
    const ReferenceOptions& options) {
  return unless_stopped(
      [&] { return evaluate_nodes(graph, axes, inputs, options); });
}

}  // namespace

Result<std::vector<HostArray>> evaluate(const Graph& graph,
                                        const std::vector<HostArray>& inputs,
                                        const ReferenceOptions& options) {
  const std::vector<HostArray>* one[] = {&inputs};
  auto results = TRY(evaluate_all(graph, {}, one, options));
  return std::move(results[0]);
}

Result<std::vector<std::vector<HostArray>>> evaluate_members(
    const Graph& graph, const std::vector<MemberAxis>& axes,
    const std::vector<std::vector<HostArray>>& inputs,
    const ReferenceOptions& options) {
  int64_t members = 1;
  for (const MemberAxis& axis : axes) members *= axis.size;
  CHECK(static_cast<int64_t>(inputs.size()) == members);
  std::vector<const std::vector<HostArray>*> all;
  for (const auto& mine : inputs) all.push_back(&mine);
  return evaluate_all(graph, axes, all, options);
}

Result<std::vector<std::vector<HostArray>>> evaluate_members(
    const Graph& graph, ir::AxisId axis,
    const std::vector<std::vector<HostArray>>& inputs,
    const ReferenceOptions& options) {
  return evaluate_members(
      graph, {MemberAxis{axis, static_cast<int64_t>(inputs.size())}}, inputs,
      options);
}

}  // namespace unisono::jit
