// Graphs to steps. A graph of a control node is lowered into the code around
// it: its inputs are places of the values outside. Registers are assigned once
// but for the carries of loops, so a place may stand for several nodes. A slot
// is owned by at most one node; that node's last reader may take the array over
// and change it in place.
#include <algorithm>
#include <climits>
#include <cstring>
#include <map>
#include <optional>
#include <utility>

#include "jit/bytecode/steps.h"
#include "jit/ir/kinds.h"
#include "jit/ir/routines.h"
#include "jit/scalar/element.h"
#include "runtime/check.h"

namespace unisono::jit {
namespace {

using bytecode::Code;
using bytecode::ElementPlace;
using bytecode::NodeCall;
using bytecode::Place;
using ir::Graph;
using ir::Node;
using ir::NodeId;

/// A value where a graph finds it, or leaves it.
struct Given {
  Place place;
  /// Of slots: the array is the receiver's, who empties the slot.
  bool owned = false;
};

constexpr NodeId forever = INT_MAX;

/// How often results of nodes with several are read: by projections, and the
/// first also as the node itself.
std::map<std::pair<NodeId, int>, int> result_reads(const Graph& graph) {
  std::map<std::pair<NodeId, int>, int> reads;
  for (const Node& node : graph.nodes)
    for (const NodeId operand : node.inputs)
      ++reads[{operand, node.op == ir::Op::project
                            ? ir::attrs<ir::ProjectAttrs>(node).index
                            : 0}];
  for (const NodeId output : graph.outputs) ++reads[{output, 0}];
  return reads;
}

std::vector<NodeId> last_uses(const Graph& graph) {
  std::vector<NodeId> last(graph.nodes.size(), -1);
  for (size_t i = 0; i < graph.nodes.size(); ++i)
    for (const NodeId operand : graph.nodes[i].inputs)
      last[operand] = static_cast<NodeId>(i);
  for (const NodeId output : graph.outputs) last[output] = forever;
  return last;
}

/// A move into a place, of what lies in another.
struct Transfer {
  Place to;
  Given from;
};

bool same_place(const Place& a, const Place& b) {
  return a.scalar == b.scalar && a.index == b.index;
}

class Lowering {
 public:
  Lowering(Code& code, bool checked) : code_(code), checked_(checked) {}

  void lower_program(const Graph& graph) {
    std::vector<Given> inputs;
    for (const NodeId id : graph.inputs) {
      inputs.push_back({new_place(graph.type(id)), true});
      code_.inputs.push_back(inputs.back().place);
    }
    outermost_ = only_loop(graph);
    for (const Given& output : lower(graph, inputs))
      code_.outputs.push_back(output.place);
    code_.output_types = graph.output_types();
    emit(bytecode::end_step, 0);
  }

 private:
  /// One graph while it is lowered.
  struct Scope {
    const Graph& graph;
    std::vector<NodeId> last;
    std::vector<Given> values;                     // by node
    std::map<NodeId, std::vector<Given>> results;  // of nodes with several
    /// How often each of those is read.
    std::map<std::pair<NodeId, int>, int> reads;
    /// Registers in which nodes are wanted, by node.
    std::map<NodeId, uint32_t> wanted;
  };

  static const Node* only_loop(const Graph& graph) {
    const Node* loop = nullptr;
    for (const Node& node : graph.nodes) {
      if (node.op != ir::Op::loop && node.op != ir::Op::if_else) continue;
      if (node.op == ir::Op::if_else || loop) return nullptr;
      loop = &node;
    }
    return loop;
  }

  // ---- places and steps

  Place new_place(const ir::Type& type) { return new_place(type.rank() == 0); }
  Place new_place(bool scalar) {
    if (!scalar) return {false, code_.slots++};
    code_.registers.push_back(0);
    return {true, static_cast<uint32_t>(code_.registers.size() - 1)};
  }

  size_t emit(StepFunction function, uint32_t source, uint32_t out = 0,
              uint32_t a = 0, uint32_t b = 0, uint32_t c = 0) {
    CHECK(function != nullptr);
    code_.steps.push_back({function, out, {a, b, c}, 0});
    code_.sources.push_back(source);
    return code_.steps.size() - 1;
  }

  /// Makes the jump at `step` go to `target`.
  void set_target(size_t step, size_t target) {
    code_.steps[step].in[0] = static_cast<uint32_t>(
        static_cast<int32_t>(target) - static_cast<int32_t>(step));
  }

  void transfer(const Place& to, const Given& from) {
    if (same_place(to, from.place)) return;
    emit(to.scalar    ? bytecode::copy_step
         : from.owned ? bytecode::move_step
                      : bytecode::share_step,
         0, to.index, from.place.index);
  }

  /// All of them at once: what one overwrites another may still read.
  void transfer_all(std::vector<Transfer> moves) {
    std::erase_if(moves, [](const Transfer& move) {
      return same_place(move.to, move.from.place);
    });
    while (!moves.empty()) {
      // One whose target nobody reads any more.
      auto free = std::ranges::find_if(moves, [&](const Transfer& move) {
        return std::ranges::none_of(moves, [&](const Transfer& other) {
          return same_place(other.from.place, move.to);
        });
      });
      if (free != moves.end()) {
        transfer(free->to, free->from);
        moves.erase(free);
        continue;
      }
      // A ring: one value steps aside.
      const Given aside = moves[0].from;
      const Place other = new_place(aside.place.scalar);
      transfer(other, aside);
      for (Transfer& move : moves)
        if (same_place(move.from.place, aside.place))
          move.from = {other, aside.owned};
    }
  }

  void release(const Place& place) {
    if (!place.scalar) emit(bytecode::release_step, 0, 0, place.index);
  }

  // ---- graphs

  /// The outputs of `graph`, whose inputs are given. Each slot is owned by one
  /// output at most. `wanted`: registers for outputs, if they can be computed
  /// there.
  std::vector<Given> lower(const Graph& graph, const std::vector<Given>& inputs,
                           std::map<NodeId, uint32_t> wanted = {}) {
    Scope scope{
        graph, last_uses(graph),    std::vector<Given>(graph.nodes.size()),
        {},    result_reads(graph), std::move(wanted)};
    for (size_t i = 0; i < graph.inputs.size(); ++i)
      scope.values[graph.inputs[i]] = inputs[i];
    for (const NodeId id : graph.inputs)
      if (scope.last[id] < 0 && scope.values[id].owned)
        release(scope.values[id].place);
    for (size_t i = 0; i < graph.nodes.size(); ++i) {
      const auto id = static_cast<NodeId>(i);
      if (graph[id].op == ir::Op::input) continue;
      lower_node(scope, id);
    }
    std::vector<Given> outputs;
    for (size_t i = 0; i < graph.outputs.size(); ++i) {
      Given output = scope.values[graph.outputs[i]];
      output.owned &= std::count(graph.outputs.begin(), graph.outputs.end(),
                                 graph.outputs[i]) == 1;
      outputs.push_back(output);
    }
    return outputs;
  }

  /// Whether nothing reads an operand of the node `id` afterwards, and the node
  /// may do with it what it likes.
  static bool dies(const Scope& scope, NodeId id, size_t position) {
    const Node& node = scope.graph[id];
    const NodeId operand = node.inputs[position];
    return scope.values[operand].owned && scope.last[operand] == id &&
           std::ranges::count(node.inputs, operand) == 1;
  }

  /// Empties the slots of operands that nothing reads any more, but for those
  /// that the node took.
  void release_operands(Scope& scope, NodeId id,
                        const std::vector<NodeId>& taken = {}) {
    std::vector<NodeId> done = taken;
    for (const NodeId operand : scope.graph[id].inputs) {
      if (scope.last[operand] != id || !scope.values[operand].owned ||
          std::ranges::find(done, operand) != done.end())
        continue;
      release(scope.values[operand].place);
      done.push_back(operand);
    }
  }

  Place result_place(const Scope& scope, NodeId id) {
    const auto wanted = scope.wanted.find(id);
    if (wanted != scope.wanted.end()) return {true, wanted->second};
    return new_place(scope.graph.type(id));
  }

  void lower_node(Scope& scope, NodeId id) {
    const Node& node = scope.graph[id];
    switch (ir::kind(node.op)) {
      case ir::Kind::control:
        if (node.op == ir::Op::if_else) return lower_if(scope, id);
        if (node.op == ir::Op::loop) return lower_loop(scope, id);
        return lower_project(scope, id);
      case ir::Kind::host: return lower_host_call(scope, id);
      case ir::Kind::source:
        if (node.op == ir::Op::constant) return lower_constant(scope, id);
        return lower_call(scope, id);
      case ir::Kind::map:
        if (node.type.rank() == 0) return lower_element(scope, id);
        return lower_call(scope, id);
      case ir::Kind::index:
        if (is_element(scope.graph, node)) return lower_index(scope, id);
        return lower_call(scope, id);
      case ir::Kind::move: return lower_call(scope, id);
      case ir::Kind::reduce:
      case ir::Kind::argreduce:
      case ir::Kind::scan:
      case ir::Kind::dot:
      case ir::Kind::sort: return lower_call(scope, id);
      case ir::Kind::collective: break;  // is_lowerable
    }
    check_failed("a graph without collectives", __FILE__, __LINE__);
  }

  // ---- nodes

  void lower_constant(Scope& scope, NodeId id) {
    const Node& node = scope.graph[id];
    const Place place = new_place(node.type);
    // Nobody owns it: the next turn of a loop reads it again.
    scope.values[id] = {place, false};
    if (!place.scalar) {
      code_.constants.emplace_back(place.index, &node);
      return;
    }
    const auto& bytes = ir::attrs<ir::ConstantAttrs>(node).bytes;
    std::memcpy(&code_.registers[place.index], bytes.data(), bytes.size());
  }

  void lower_element(Scope& scope, NodeId id) {
    const Node& node = scope.graph[id];
    const DType dtype = scope.graph.type(node.inputs.back()).dtype;
    const StepFunction function = node.op == ir::Op::cast
                                      ? cast_step(dtype, node.type.dtype)
                                      : element_step(node.op, dtype);
    uint32_t in[3] = {};
    for (size_t i = 0; i < node.inputs.size(); ++i)
      in[i] = scope.values[node.inputs[i]].place.index;
    const Place out = result_place(scope, id);
    emit(function, node.source, out.index, in[0], in[1], in[2]);
    scope.values[id] = {out, false};
  }

  /// Whether the node reads or writes one element at scalar indexes.
  bool is_element(const Graph& graph, const Node& node) const {
    const auto& a = ir::attrs<ir::IndexAttrs>(node);
    if (node.op == ir::Op::scatter_add) return false;
    const size_t first = node.op == ir::Op::gather ? 1 : 2;
    const ir::Type& array = graph.type(node.inputs[0]);
    if (clamps(node) && array.elements() == 0) return false;
    if (array.rank() == 0 || a.axes.size() != array.shape.size()) return false;
    const DType dtype = graph.type(node.inputs[first]).dtype;
    for (size_t i = first; i < node.inputs.size(); ++i)
      if (graph.type(node.inputs[i]).rank() > 0 ||
          graph.type(node.inputs[i]).dtype != dtype)
        return false;
    return true;
  }

  bool clamps(const Node& node) const {
    return !checked_ || !ir::attrs<ir::IndexAttrs>(node).checked;
  }

  ElementPlace element_place(const Scope& scope, const Node& node,
                             size_t first) {
    const ir::Type& type = scope.graph.type(node.inputs[0]);
    ElementPlace place;
    place.type = type;
    place.array_bytes = type.bytes();
    place.clamps = clamps(node);
    place.wide = scope.graph.type(node.inputs[first]).dtype == DType::I64;
    const std::vector<int64_t> sizes = type.sizes();
    for (const int axis : ir::attrs<ir::IndexAttrs>(node).axes) {
      place.sizes.push_back(sizes[axis]);
      int64_t stride = 1;
      for (size_t i = axis + 1; i < sizes.size(); ++i) stride *= sizes[i];
      place.strides.push_back(stride);
    }
    for (size_t i = first; i < node.inputs.size(); ++i)
      place.indexes.push_back(scope.values[node.inputs[i]].place.index);
    return place;
  }

  void lower_index(Scope& scope, NodeId id) {
    const Node& node = scope.graph[id];
    const bool reads = node.op == ir::Op::gather;
    const ElementPlace place = element_place(scope, node, reads ? 1 : 2);
    const auto number = static_cast<uint32_t>(code_.elements.size());
    code_.elements.push_back(place);
    const Given array = scope.values[node.inputs[0]];
    if (reads) {
      const Place out = result_place(scope, id);
      emit(bytecode::load_step(place), node.source, out.index,
           array.place.index, number, place.indexes[0]);
      code_.steps.back().number = place.sizes[0];
      scope.values[id] = {out, false};
      release_operands(scope, id);
      return;
    }
    const bool taken = dies(scope, id, 0);
    Place out = array.place;
    if (!taken) {
      out = new_place(node.type);
      emit(bytecode::share_step, node.source, out.index, array.place.index);
    }
    emit(bytecode::store_step(place), node.source, out.index,
         scope.values[node.inputs[1]].place.index, number, place.indexes[0]);
    code_.steps.back().number = place.sizes[0];
    scope.values[id] = {out, true};
    release_operands(
        scope, id, taken ? std::vector{node.inputs[0]} : std::vector<NodeId>{});
  }

  NodeCall call_of(const Scope& scope, NodeId id) {
    const Node& node = scope.graph[id];
    NodeCall call{node, {}, {}};
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      const Given& operand = scope.values[node.inputs[i]];
      call.operands.push_back({operand.place, scope.graph.type(node.inputs[i]),
                               !operand.place.scalar && dies(scope, id, i)});
    }
    return call;
  }

  void lower_call(Scope& scope, NodeId id) {
    NodeCall call = call_of(scope, id);
    const Place out = result_place(scope, id);
    call.results = {out};
    emit(bytecode::node_step, call.node.source, 0,
         static_cast<uint32_t>(code_.calls.size()));
    code_.calls.push_back(std::move(call));
    scope.values[id] = {out, true};
    release_operands(scope, id);
    if (scope.last[id] < 0) release(out);
  }

  void lower_host_call(Scope& scope, NodeId id) {
    NodeCall call = call_of(scope, id);
    code_.calls_host |=
        !ir::attrs<ir::HostCallAttrs>(call.node).function.empty() &&
        !ir::is_routine(call.node);
    for (NodeCall::Operand& operand : call.operands) operand.dies = false;
    std::vector<Given> results;
    for (const ir::Type& type : ir::attrs<ir::HostCallAttrs>(call.node).results)
      results.push_back({new_place(type), false});
    for (const Given& result : results) call.results.push_back(result.place);
    emit(bytecode::host_step, call.node.source, 0,
         static_cast<uint32_t>(code_.calls.size()));
    code_.calls.push_back(std::move(call));
    release_operands(scope, id);
    set_results(scope, id, std::move(results));
  }

  void set_results(Scope& scope, NodeId id, std::vector<Given> results) {
    if (!results.empty()) scope.values[id] = {results[0].place, false};
    scope.results[id] = std::move(results);
  }

  /// A result's only projection owns it.
  void lower_project(Scope& scope, NodeId id) {
    const Node& node = scope.graph[id];
    const NodeId from = node.inputs[0];
    const int index = ir::attrs<ir::ProjectAttrs>(node).index;
    Given result = scope.results.at(from)[index];
    result.owned &= scope.reads.at({from, index}) == 1;
    scope.values[id] = result;
    if (scope.last[id] < 0 && result.owned) release(result.place);
  }

  /// What the graphs of a control node find: its operands from `begin` on.
  std::vector<Given> captures(const Scope& scope, NodeId id, size_t begin) {
    std::vector<Given> out;
    const Node& node = scope.graph[id];
    for (size_t i = begin; i < node.inputs.size(); ++i)
      out.push_back({scope.values[node.inputs[i]].place, dies(scope, id, i)});
    return out;
  }

  void lower_if(Scope& scope, NodeId id) {
    const Node& node = scope.graph[id];
    const auto& a = ir::attrs<ir::IfAttrs>(node);
    const std::vector<Given> inputs = captures(scope, id, 1);
    std::vector<Given> results;
    for (const ir::Type& type : a.then_graph->output_types())
      results.push_back({new_place(type), true});
    const size_t to_else = emit(bytecode::jump_unless_step, node.source, 0, 0,
                                scope.values[node.inputs[0]].place.index);
    const auto branch = [&](const Graph& graph) {
      std::map<NodeId, uint32_t> wanted;
      for (size_t i = 0; i < graph.outputs.size(); ++i)
        if (can_be_placed(graph, graph.outputs[i]))
          wanted.emplace(graph.outputs[i], results[i].place.index);
      const std::vector<Given> outputs = lower(graph, inputs, wanted);
      std::vector<Transfer> moves;
      for (size_t i = 0; i < outputs.size(); ++i)
        moves.push_back({results[i].place, outputs[i]});
      transfer_all(std::move(moves));
    };
    branch(*a.then_graph);
    const size_t to_end = emit(bytecode::jump_step, node.source);
    set_target(to_else, code_.steps.size());
    branch(*a.else_graph);
    set_target(to_end, code_.steps.size());
    // What was given away was taken or emptied there.
    std::vector<NodeId> taken;
    for (size_t i = 1; i < node.inputs.size(); ++i)
      if (dies(scope, id, i)) taken.push_back(node.inputs[i]);
    release_operands(scope, id, taken);
    set_results(scope, id, std::move(results));
  }

  /// Whether a step computes the node into any register, and that is all.
  bool can_be_placed(const Graph& graph, NodeId id) const {
    const Node& node = graph[id];
    if (node.type.rank() > 0) return false;
    return ir::kind(node.op) == ir::Kind::map ||
           (node.op == ir::Op::gather && is_element(graph, node));
  }

  /// A place that holds a number from the beginning.
  Place number(int64_t value) {
    const Place place = new_place({DType::I64, {}});
    code_.registers[place.index] = static_cast<uint64_t>(value);
    return place;
  }

  /// What a loop's operands are inside: carries have places of their own, but
  /// for arrays that nobody else needs, which are `taken`.
  std::vector<Given> enter_loop(Scope& scope, NodeId id, size_t carries,
                                std::vector<NodeId>& taken) {
    const Node& node = scope.graph[id];
    std::vector<Given> places;
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      const NodeId input = node.inputs[i];
      const Place operand = scope.values[input].place;
      Place place = operand;
      if (i < carries && !operand.scalar && dies(scope, id, i)) {
        taken.push_back(input);
      } else if (i < carries) {
        place = new_place(scope.graph.type(input));
        transfer(place, {operand, false});
      }
      places.push_back({place, false});
    }
    return places;
  }

  void lower_loop(Scope& scope, NodeId id) {
    const Node& node = scope.graph[id];
    const auto& a = ir::attrs<ir::LoopAttrs>(node);
    const auto count = static_cast<size_t>(a.carries);
    std::vector<NodeId> taken;
    const std::vector<Given> places = enter_loop(scope, id, count, taken);
    std::vector<Given> results(places.begin(),
                               places.begin() + static_cast<ptrdiff_t>(count));
    Place turn_number;
    if (a.is_counted()) {
      turn_number = new_place({DType::I64, {}});
      transfer(turn_number, {number(a.backwards ? a.turns - 1 : 0), false});
      for (size_t i = count; i < a.body->outputs.size(); ++i)
        results.push_back({new_stack(a, i), false});
    }

    const size_t to_condition = emit(bytecode::jump_step, node.source);
    const size_t top = code_.steps.size();
    std::vector<Given> body_inputs;
    if (a.is_counted()) body_inputs.push_back({turn_number, false});
    for (size_t i = 0; i < places.size(); ++i) {
      const bool is_row = i >= count && i < count + static_cast<size_t>(a.rows);
      if (is_row)
        body_inputs.push_back({row_of(scope.graph.type(node.inputs[i]),
                                      places[i].place, turn_number),
                               true});
      else
        body_inputs.push_back(
            {places[i].place, i < count && !places[i].place.scalar});
    }
    const std::vector<Given> next =
        lower(*a.body, body_inputs, carries_in_place(a, places));
    for (size_t i = count; i < next.size(); ++i)
      put_row(a, i, results[i].place, next[i], turn_number);
    std::vector<Transfer> moves;
    for (size_t i = 0; i < count; ++i)
      moves.push_back({places[i].place, next[i]});
    transfer_all(std::move(moves));
    Place condition;
    if (a.is_counted())
      emit(element_step(ir::Op::add, DType::I64), node.source,
           turn_number.index, turn_number.index,
           number(a.backwards ? -1 : 1).index);
    std::optional<size_t> count_turn;
    if (&node == outermost_)
      count_turn = emit(bytecode::count_step, node.source);
    set_target(to_condition, code_.steps.size());
    if (a.is_counted()) {
      condition = new_place({DType::Bool, {}});
      emit(element_step(a.backwards ? ir::Op::gt : ir::Op::lt, DType::I64),
           node.source, condition.index, turn_number.index,
           number(a.backwards ? -1 : a.turns).index);
    } else {
      condition = lower(*a.condition, places)[0].place;
    }
    const size_t turn =
        emit(bytecode::turn_step, node.source, 0, 0, condition.index);
    set_target(turn, top);
    code_.steps[turn].in[2] = static_cast<uint32_t>(turn - top + 1);
    if (count_turn) set_target(*count_turn, turn + 1);

    release_operands(scope, id, taken);
    for (Given& result : results) result.owned = true;
    set_results(scope, id, std::move(results));
  }

  // ---- rows of counted loops

  /// The types of row and number, as an element that is read or written.
  static ElementPlace element_at(const ir::Type& array, const Place& turn) {
    ElementPlace place;
    place.type = array;
    place.array_bytes = array.bytes();
    place.wide = true;
    place.sizes = array.sizes();
    place.strides = {1};
    place.indexes = {turn.index};
    return place;
  }

  size_t add_call(NodeCall call) {
    code_.calls.push_back(std::move(call));
    return emit(bytecode::node_step, 0, 0,
                static_cast<uint32_t>(code_.calls.size() - 1));
  }

  /// Row `turn` of an array.
  Place row_of(const ir::Type& type, const Place& array, const Place& turn) {
    const ir::Type row{type.dtype, {type.shape.begin() + 1, type.shape.end()}};
    const Place out = new_place(row);
    if (type.rank() == 1) {
      const ElementPlace place = element_at(type, turn);
      emit(bytecode::load_step(place), 0, out.index, array.index,
           static_cast<uint32_t>(code_.elements.size()), turn.index);
      code_.steps.back().number = place.sizes[0];
      code_.elements.push_back(place);
    } else {
      add_call({{ir::Op::gather, {}, ir::IndexAttrs{{0}, false}, row},
                {{array, type, false}, {turn, {DType::I64, {}}, false}},
                {out}});
    }
    return out;
  }

  /// An array for what a counted loop's turns give as output `index`.
  Place new_stack(const ir::LoopAttrs& a, size_t index) {
    const ir::Type type = stack_type(a, a.body->type(a.body->outputs[index]));
    const Place out = new_place(type);
    ir::ConstantAttrs zeros{type, element_bytes(type.dtype, int64_t{0})};
    add_call({{ir::Op::constant, {}, std::move(zeros), type}, {}, {out}});
    return out;
  }

  void put_row(const ir::LoopAttrs& a, size_t index, const Place& stack,
               const Given& row, const Place& turn) {
    const ir::Type& part = a.body->type(a.body->outputs[index]);
    const ir::Type type = stack_type(a, part);
    if (part.rank() == 0) {
      const ElementPlace place = element_at(type, turn);
      emit(bytecode::store_step(place), 0, stack.index, row.place.index,
           static_cast<uint32_t>(code_.elements.size()), turn.index);
      code_.steps.back().number = place.sizes[0];
      code_.elements.push_back(place);
      return;
    }
    add_call({{ir::Op::scatter, {}, ir::IndexAttrs{{0}, false}, type},
              {{stack, type, true},
               {row.place, part, false},
               {turn, {DType::I64, {}}, false}},
              {stack}});
    if (row.owned) release(row.place);
  }

  /// The carries' registers, for those nodes that give their next values and
  /// come after the last use of the present one.
  std::map<NodeId, uint32_t> carries_in_place(
      const ir::LoopAttrs& a, const std::vector<Given>& places) const {
    const Graph& body = *a.body;
    const std::vector<NodeId> last = last_uses(body);
    std::map<NodeId, uint32_t> out;
    for (size_t i = 0; i < static_cast<size_t>(a.carries); ++i) {
      const NodeId next = body.outputs[i];
      if (last[body.inputs[a.parameter(i)]] <= next &&
          can_be_placed(body, next))
        out.emplace(next, places[i].place.index);
    }
    return out;
  }

  Code& code_;
  const bool checked_;
  const Node* outermost_ = nullptr;
};

bool is_lowerable(const Graph& graph) {
  return std::ranges::all_of(graph.nodes, [](const Node& node) {
    if (ir::kind(node.op) == ir::Kind::collective) return false;
    for (const ir::Dim& size : node.type.shape)
      if (!size.is_constant()) return false;
    if (const auto* a = std::get_if<ir::ConstantAttrs>(&node.attrs))
      return !a->bytes.empty() || node.type.bytes() == 0;
    if (const auto* a = std::get_if<ir::IfAttrs>(&node.attrs))
      return is_lowerable(*a->then_graph) && is_lowerable(*a->else_graph);
    if (const auto* a = std::get_if<ir::LoopAttrs>(&node.attrs))
      return (a->is_counted() || is_lowerable(*a->condition)) &&
             is_lowerable(*a->body);
    return true;
  });
}

}  // namespace

std::shared_ptr<const Bytecode> Bytecode::lower(
    std::shared_ptr<const ir::Graph> graph, bool checked) {
  if (!is_lowerable(*graph)) return nullptr;
  auto out = std::make_shared<Bytecode>();
  Lowering(out->code_, checked).lower_program(*graph);
  out->code_.graph = std::move(graph);
  return out;
}

}  // namespace unisono::jit
