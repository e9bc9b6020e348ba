// Arrays that a counted loop carries, but uses row by row, become rows that it
// reads and parts that it stacks. In the body each version of the array is
// replaced by that of the turn's row: what is read there, or was written.
#include "jit/loops/carried_rows.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "jit/ir/kinds.h"
#include "jit/ir/renaming.h"
#include "runtime/check.h"

namespace unisono::jit {

using ir::Graph;
using ir::Node;
using ir::NodeId;
using ir::Op;

namespace {

/// start + step * (the turn's number), an integer scalar that never leaves its
/// type.
struct Counter {
  int64_t start = 0, step = 0;
  bool operator==(const Counter&) const = default;
};
using Counters = std::vector<std::optional<Counter>>;

/// The number that a constant is, if it is a signed integer scalar.
std::optional<int64_t> known_number(const Node& node) {
  if (node.type.rank() > 0) return std::nullopt;
  const auto& bytes = ir::attrs<ir::ConstantAttrs>(node).bytes;
  if (node.type.dtype == DType::I64) {
    int64_t value = 0;
    std::memcpy(&value, bytes.data(), sizeof value);
    return value;
  }
  if (node.type.dtype == DType::I32) {
    int32_t value = 0;
    std::memcpy(&value, bytes.data(), sizeof value);
    return value;
  }
  return std::nullopt;
}

/// What rewriting knows of the loop.
struct Loop {
  int64_t turns = 0;
  ir::Type row;  // of the array
  /// How rows are counted: as the first index that was met.
  std::optional<Counter> rows = std::nullopt;
};

class BodyRewriter {
 public:
  /// `order`: the inputs of `from` in the order in which the result has them.
  /// `arrays`: by input, whether it is the array; `counters`: what it counts.
  BodyRewriter(Loop& loop, const Graph& from, const std::vector<size_t>& order,
               const std::vector<bool>& arrays, const Counters& counters)
      : loop_(loop),
        from_(from),
        of_(from),
        is_array_(from.nodes.size(), false),
        counter_(from.nodes.size()) {
    for (const size_t i : order) {
      const NodeId id = from.inputs[i];
      of_.set(id, out_.add_input(arrays[i] ? loop.row : from.type(id),
                                 from[id].source));
      is_array_[id] = arrays[i];
      counter_[id] = counters[i];
    }
  }

  /// False if the array is used otherwise.
  bool rewrite() {
    for (const NodeId id : ir::node_ids(from_)) {
      if (from_[id].op == Op::input) continue;
      const bool ok = uses_array(from_[id]) ? place_use(id) : place(id);
      if (!ok) return false;
    }
    out_.outputs = of_.renamed(from_.outputs);
    return true;
  }

  Graph take() { return std::move(out_); }
  /// By output, whether it is the array, whose row then stands there.
  std::vector<bool> output_arrays() const {
    std::vector<bool> arrays;
    for (const NodeId id : from_.outputs) arrays.push_back(is_array_[id]);
    return arrays;
  }

 private:
  bool uses_array(const Node& node) const {
    return std::ranges::any_of(node.inputs,
                               [&](NodeId id) { return is_array_[id]; });
  }

  bool place(NodeId id) {
    counter_[id] = count(from_[id]);
    of_.set(id, out_.append(of_.renamed(id)));
    return true;
  }

  bool place_use(NodeId id) {
    const Node& node = from_[id];
    switch (node.op) {
      case Op::gather: return place_index(id, 1);
      case Op::scatter:
      case Op::scatter_add: return place_index(id, 2);
      case Op::if_else: return place_if(id);
      case Op::project: {
        const int index = ir::attrs<ir::ProjectAttrs>(node).index;
        is_array_[id] = results_.at(node.inputs[0])[index];
        of_.set(id, out_.add(Op::project, {of_[node.inputs[0]]}, node.attrs,
                             node.source));
        return true;
      }
      default: return false;  // a use of the whole array
    }
  }

  /// A read or write at scalar indexes, the first of which is the turn's row;
  /// `first` is where the indexes begin among the operands.
  bool place_index(NodeId id, size_t first) {
    const Node& node = from_[id];
    const auto& a = ir::attrs<ir::IndexAttrs>(node);
    for (size_t i = 1; i < node.inputs.size(); ++i)
      if (is_array_[node.inputs[i]]) return false;
    if (a.axes[0] != 0 || from_.type(node.inputs[first]).rank() > 0)
      return false;
    const std::optional<Counter>& at = counter_[node.inputs[first]];
    if (!at || (loop_.rows && *loop_.rows != *at)) return false;
    loop_.rows = at;
    is_array_[id] = node.op != Op::gather;
    // What is left are indexes into the row.
    const NodeId row = of_[node.inputs[0]];
    ir::IndexAttrs rest{{a.axes.begin() + 1, a.axes.end()}, a.checked};
    for (int& axis : rest.axes) --axis;
    std::vector<NodeId> operands = {row};
    for (size_t i = 1; i < node.inputs.size(); ++i)
      if (i != first) operands.push_back(of_[node.inputs[i]]);
    if (!rest.axes.empty()) {
      of_.set(id, out_.add(node.op, operands, rest, node.source));
      return true;
    }
    if (node.op == Op::gather) of_.set(id, row);
    if (node.op == Op::scatter) of_.set(id, operands[1]);
    if (node.op == Op::scatter_add)
      of_.set(id, out_.add(Op::add, operands, ir::NoAttrs{}, node.source));
    return true;
  }

  bool place_if(NodeId id) {
    const Node& node = from_[id];
    ir::IfAttrs a = ir::attrs<ir::IfAttrs>(node);
    std::vector<size_t> order;
    std::vector<bool> arrays;
    Counters counters;
    for (size_t i = 1; i < node.inputs.size(); ++i) {
      order.push_back(i - 1);
      arrays.push_back(is_array_[node.inputs[i]]);
      counters.push_back(counter_[node.inputs[i]]);
    }
    std::vector<bool> results;
    for (auto* graph : {&a.then_graph, &a.else_graph}) {
      BodyRewriter branch(loop_, **graph, order, arrays, counters);
      if (!branch.rewrite()) return false;
      if (graph == &a.else_graph && branch.output_arrays() != results)
        return false;
      results = branch.output_arrays();
      *graph = std::make_shared<const Graph>(branch.take());
    }
    Node copy = of_.renamed(id);
    of_.set(id, out_.add(Op::if_else, copy.inputs, a, node.source));
    results_.emplace(id, std::move(results));
    // A `project` of it is a use of the array, or of nothing.
    is_array_[id] = true;
    return true;
  }

  /// What the node counts, if it is made of the turn's number and constants.
  std::optional<Counter> count(const Node& node) const {
    const auto operand = [&](size_t i) { return counter_[node.inputs[i]]; };
    std::optional<Counter> out;
    __int128 start = 0, step = 0;
    switch (node.op) {
      case Op::constant:
        if (const auto number = known_number(node)) out = Counter{*number, 0};
        return out;
      case Op::cast:
        if (!operand(0)) return out;
        start = operand(0)->start, step = operand(0)->step;
        break;
      case Op::add:
      case Op::sub: {
        if (!operand(0) || !operand(1)) return out;
        const int sign = node.op == Op::add ? 1 : -1;
        start =
            __int128{operand(0)->start} + sign * __int128{operand(1)->start};
        step = __int128{operand(0)->step} + sign * __int128{operand(1)->step};
        break;
      }
      case Op::mul: {
        if (!operand(0) || !operand(1)) return out;
        const bool by_first = operand(0)->step == 0;
        const Counter factor = *operand(by_first ? 0 : 1),
                      other = *operand(by_first ? 1 : 0);
        if (factor.step != 0) return out;
        start = __int128{factor.start} * other.start;
        step = __int128{factor.start} * other.step;
        break;
      }
      default: return out;
    }
    if (node.type.dtype != DType::I32 && node.type.dtype != DType::I64)
      return out;
    const __int128 limit = __int128{1}
                           << (node.type.dtype == DType::I32 ? 31 : 63);
    const __int128 last = start + step * (loop_.turns - 1);
    if (std::min(start, last) < -limit || std::max(start, last) >= limit)
      return out;
    return Counter{static_cast<int64_t>(start), static_cast<int64_t>(step)};
  }

  Loop& loop_;
  const Graph& from_;
  Graph out_;
  ir::Renaming of_;  // of the array: of its row
  std::vector<bool> is_array_;
  Counters counter_;
  std::map<NodeId, std::vector<bool>> results_;  // of if_else nodes
};

/// The graph without an input that nothing reads.
Graph without_input(const Graph& graph, size_t index) {
  Graph out;
  ir::Renaming of(graph);
  for (size_t i = 0; i < graph.inputs.size(); ++i)
    if (i != index)
      of.set(graph.inputs[i], out.add_input(graph.type(graph.inputs[i])));
  for (const NodeId id : ir::node_ids(graph))
    if (graph[id].op != Op::input) of.set(id, out.append(of.renamed(id)));
  out.outputs = of.renamed(graph.outputs);
  return out;
}

}  // namespace

std::optional<CarriedRows> rows_of_carry(const ir::LoopAttrs& loop, int carry) {
  const Graph& body = *loop.body;
  const size_t input = loop.parameter(static_cast<size_t>(carry));
  ir::Type row = body.type(body.inputs[input]);
  if (!loop.is_counted() || loop.turns < 1 || loop.backwards || row.rank() == 0)
    return std::nullopt;
  const int64_t size = row.shape[0].value();
  row.shape.erase(row.shape.begin());

  // The array's row goes behind the other rows.
  const auto last_row = static_cast<size_t>(1 + loop.carries + loop.rows);
  std::vector<size_t> order;
  for (size_t i = 0; i < body.inputs.size(); ++i) {
    if (i != input) order.push_back(i);
    if (i + 1 == last_row) order.push_back(input);
  }
  std::vector<bool> arrays(body.inputs.size(), false);
  arrays[input] = true;
  Counters counters(body.inputs.size());
  counters[0] = Counter{0, 1};
  Loop known{loop.turns, row};
  BodyRewriter rewriter(known, body, order, arrays, counters);
  if (!rewriter.rewrite() || !known.rows) return std::nullopt;
  std::vector<bool> outputs = rewriter.output_arrays();
  for (size_t i = 0; i < outputs.size(); ++i)
    if (outputs[i] != (i == static_cast<size_t>(carry))) return std::nullopt;
  const Counter at = *known.rows;
  const int64_t last = at.start + at.step * (loop.turns - 1);
  if ((at.step != 1 && at.step != -1) || std::min(at.start, last) < 0 ||
      std::max(at.start, last) >= size)
    return std::nullopt;

  CarriedRows out{loop, at.start, at.step < 0};
  Graph graph = rewriter.take();
  const NodeId part = graph.outputs[carry];
  graph.outputs.erase(graph.outputs.begin() + carry);
  graph.outputs.push_back(part);
  const NodeId before = graph.inputs[last_row - 1];
  out.reads = std::ranges::count(graph.outputs, before) > 0;
  for (const Node& node : graph.nodes)
    out.reads |= std::ranges::count(node.inputs, before) > 0;
  if (!out.reads) graph = without_input(graph, last_row - 1);
  out.loop.carries -= 1;
  out.loop.rows += out.reads ? 1 : 0;
  out.loop.body = std::make_shared<const Graph>(std::move(graph));
  return out;
}

}  // namespace unisono::jit
