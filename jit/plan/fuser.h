#pragma once
// The state that three files share: fuse.cpp, which forms kernels,
// fuse_steps.cpp, which places the steps between them, and fuse_control.cpp,
// which does branches and loops.
#include <optional>
#include <unordered_map>
#include <vector>

#include "jit/kernel/group.h"
#include "jit/loops/known_turns.h"
#include "jit/plan/fuse.h"
#include "jit/plan/lowering.h"
#include "runtime/tuning/tuning.h"

namespace unisono::jit {

/// A step under construction.
struct Item {
  std::vector<Group> groups;  // one, or the boxes of a concat or pad
  std::vector<PlanStep> steps;
  std::vector<uint32_t> sources;  // of nodes that are in no group any more
};

/// What is known of integers in buffers: of turns' numbers in the body of their
/// loop, and of what is made of them.
using Ranges = std::unordered_map<BufferId, IntegerRange>;

/// Fuses one graph; each subgraph of control nodes has a Fuser of its own.
class Fuser {
 public:
  Fuser(Plan& plan, const ir::Graph& graph, std::vector<BufferId> inputs,
        bool checked, const Lowering& lowering, Ranges& ranges)
      : plan_(plan),
        graph_(graph),
        sources_(graph, checked, lowering.machine()),
        lowering_(lowering),
        ranges_(ranges) {
    for (size_t i = 0; i < inputs.size(); ++i)
      sources_.buffer[graph.inputs[i]] = inputs[i];
    find_users();
  }

  /// Appends the steps; gives the outputs' buffers.
  std::vector<BufferId> run(PlanSteps& steps);

 private:
  void find_users();
  bool is_before_update(ir::NodeId id) const;
  bool is_virtual(ir::NodeId node) const;
  void visit(ir::NodeId node);
  void place(ir::NodeId node);
  void place_boxes(ir::NodeId node);
  bool place_joined(ir::NodeId node);
  bool place_chosen(ir::NodeId node);
  bool dissolve(ir::NodeId node, ir::NodeId reader);
  void place_dot(ir::NodeId node);
  bool place_dot_of_view(ir::NodeId node);
  void place_sort(ir::NodeId node);
  void place_collective(ir::NodeId node);
  void place_host_call(ir::NodeId node);
  void place_if(ir::NodeId node);
  void place_loop(ir::NodeId node);
  void place_scatter(ir::NodeId node);
  BufferId materialise(ir::NodeId node);
  std::vector<size_t> candidates(ir::NodeId node);
  void join_operands(ir::NodeId node);
  void absorb(int from, int to);
  void note_readers(ir::NodeId node, size_t item);
  template <class F>
  void for_each_leaf(ir::NodeId node, F&& f) const;
  void for_each_array(ir::NodeId node, auto&& f) const;
  size_t append(PlanStep step, uint32_t source = 0);
  BufferId own_buffer(ir::NodeId node);
  void finish(Item& item, PlanSteps& steps);
  void emit(Item& item, PlanSteps& steps);
  /// The places of what a group computes.
  void add_sources(const Group& group, std::vector<uint32_t>& out) const;

  PlanSteps lower(const ir::Graph& graph, const std::vector<BufferId>& inputs,
                  std::vector<BufferId>& outputs);
  PlanSteps lower_to(const ir::Graph& graph,
                     const std::vector<BufferId>& inputs,
                     const std::vector<BufferId>& places);
  PlanSteps lower_body(const ir::Node& loop, const ir::Graph& body,
                       const std::vector<BufferId>& inputs,
                       const std::vector<BufferId>& places);
  std::optional<IntegerRange> range_of(ir::NodeId id, int depth = 0) const;
  BufferId capture(ir::NodeId id);
  void end_results(ir::NodeId id, size_t item, std::vector<BufferId> results);
  bool place_native_loop(ir::NodeId id);
  std::vector<bool> wanted_results(ir::NodeId id) const;
  int64_t turns_of(const ir::Node& loop) const;
  void add_turns(const ir::Node& loop, ir::LoopAttrs& attrs,
                 std::vector<BufferId>& inputs, std::vector<BufferId>& carries);
  std::optional<PlanSteps> two_places(const ir::LoopAttrs& attrs,
                                      const ir::Node& loop,
                                      std::vector<BufferId> inputs,
                                      const PlanSteps& body, int64_t turns);

  Plan& plan_;
  const ir::Graph& graph_;
  Sources sources_;
  const Lowering& lowering_;
  Ranges& ranges_;
  std::vector<bool> live_;
  std::vector<ir::NodeId> user_;  // the last one
  std::vector<bool> updated_;     // a scatter writes to a copy of it
  std::vector<Item> items_;
  std::vector<std::vector<BufferId>> results_;  // where project reads
  std::unordered_map<BufferId, size_t> last_reader_;
  std::unordered_map<BufferId, std::vector<size_t>> reducers_;  // the last few
  size_t last_host_call_ = 0;  // one past its item
};

/// Calls `f` for nodes near `id` that are computed by a step or stored.
template <class F>
void Fuser::for_each_leaf(ir::NodeId id, F&& f) const {
  std::vector<ir::NodeId> pending(graph_[id].inputs);
  for (size_t i = 0; i < pending.size() && i < tuning().most_read_pending;
       ++i) {
    const ir::NodeId node = pending[i];
    if (sources_.step[node] >= 0 || sources_.buffer[node] >= 0) {
      f(node);
    } else {
      const auto& inputs = graph_[node].inputs;
      pending.insert(pending.end(), inputs.begin(), inputs.end());
    }
  }
}

}  // namespace unisono::jit
