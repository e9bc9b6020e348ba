// The gradient of a product by one part of a `concat` is a slice of the
// gradient by the whole: a recurrence h, x -> [x, h] @ w would multiply by all
// rows of w in each turn, and read half of the result.
#include <algorithm>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "jit/ir/renaming.h"
#include "jit/transform/transforms.h"
#include "runtime/stop.h"

namespace unisono::jit {
namespace {

using ir::DotAttrs;
using ir::Node;
using ir::Op;
using ir::SliceAttrs;

/// Elements begin ... end - 1 along each axis of a result.
struct Box {
  std::vector<int64_t> begin, end;

  int64_t elements() const {
    int64_t product = 1;
    for (size_t i = 0; i < begin.size(); ++i) product *= end[i] - begin[i];
    return product;
  }
};

/// By node: what slices read of a product that nothing else reads.
class ReadParts {
 public:
  explicit ReadParts(const Graph& graph) : parts_(graph.nodes.size()) {
    std::vector<bool> whole(graph.nodes.size());
    for (const NodeId id : graph.outputs) whole[id] = true;
    for (const Node& node : graph.nodes) {
      for (const NodeId id : node.inputs)
        if (graph[id].op != Op::dot || node.op != Op::slice)
          whole[id] = true;
        else
          join(parts_[id], node);
    }
    for (const NodeId id : ir::node_ids(graph))
      if (whole[id] || !is_worth_it(graph[id], parts_[id])) parts_[id].reset();
  }

  const std::optional<Box>& operator[](NodeId id) const { return parts_[id]; }

 private:
  static void join(std::optional<Box>& part, const Node& slice) {
    const auto& a = ir::attrs<SliceAttrs>(slice);
    Box box;
    for (size_t i = 0; i < a.start.size(); ++i) {
      const int64_t size = a.size[i].value(), start = a.start[i].value();
      box.begin.push_back(start);
      box.end.push_back(size == 0 ? start
                                  : start + (size - 1) * a.step[i].value() + 1);
    }
    if (!part) {
      part = std::move(box);
      return;
    }
    for (size_t i = 0; i < box.begin.size(); ++i) {
      part->begin[i] = std::min(part->begin[i], box.begin[i]);
      part->end[i] = std::max(part->end[i], box.end[i]);
    }
  }

  /// A little less work is not worth sizes that fit registers less well.
  static bool is_worth_it(const Node& node, const std::optional<Box>& part) {
    return part && part->elements() > 0 &&
           part->elements() <= node.type.elements() / 8 * 7;
  }

  std::vector<std::optional<Box>> parts_;
};

/// The product of the parts of its factors that `box` depends on.
NodeId narrow(Graph& out, Node dot, const Box& box) {
  const auto& a = ir::attrs<DotAttrs>(dot);
  size_t axis = 0;  // of the result
  SliceAttrs cut[2];
  for (const size_t side : {size_t{0}, size_t{1}}) {
    const ir::Shape& shape = out.type(dot.inputs[side]).shape;
    cut[side] = {ir::Shape(shape.size(), 0), ir::Shape(shape.size(), 1), shape};
  }
  const auto keep = [&](size_t side, int operand_axis, size_t result_axis) {
    cut[side].start[operand_axis] = box.begin[result_axis];
    cut[side].size[operand_axis] =
        box.end[result_axis] - box.begin[result_axis];
  };
  for (size_t i = 0; i < a.batch_a.size(); ++i, ++axis) {
    keep(0, a.batch_a[i], axis);
    keep(1, a.batch_b[i], axis);
  }
  for (const size_t side : {size_t{0}, size_t{1}}) {
    const auto& batch = side ? a.batch_b : a.batch_a;
    const auto& contract = side ? a.contract_b : a.contract_a;
    const int rank = out.type(dot.inputs[side]).rank();
    for (int i = 0; i < rank; ++i)
      if (!std::ranges::count(batch, i) && !std::ranges::count(contract, i))
        keep(side, i, axis++);
  }
  for (const size_t side : {size_t{0}, size_t{1}})
    if (cut[side].size != out.type(dot.inputs[side]).shape)
      dot.inputs[side] =
          out.add(Op::slice, {dot.inputs[side]}, cut[side], dot.source);
  return out.add(Op::dot, dot.inputs, dot.attrs, dot.source);
}

void rewrite(std::shared_ptr<const Graph>& graph) {
  if (graph) graph = std::make_shared<const Graph>(narrow_products(*graph));
}

}  // namespace

Graph narrow_products(const Graph& graph) {
  const ReadParts parts(graph);
  Graph out;
  ir::Renaming placed(graph);
  for (const NodeId id : ir::node_ids(graph)) {
    poll_stop();
    if (graph[id].op == Op::input) {
      placed.set(id, out.add_input(graph.type(id), graph[id].source));
      continue;
    }
    Node node = placed.renamed(id);
    if (auto* branch = std::get_if<ir::IfAttrs>(&node.attrs))
      rewrite(branch->then_graph), rewrite(branch->else_graph);
    if (auto* loop = std::get_if<ir::LoopAttrs>(&node.attrs))
      rewrite(loop->condition), rewrite(loop->body);
    if (const auto& box = parts[id]) {
      placed.set(id, narrow(out, std::move(node), *box));
      continue;
    }
    if (node.op == Op::slice) {
      if (const auto& box = parts[graph[id].inputs[0]]) {
        auto& a = std::get<SliceAttrs>(node.attrs);
        for (size_t i = 0; i < a.start.size(); ++i)
          a.start[i] = a.start[i] - box->begin[i];
      }
      if (node.type == out.type(node.inputs[0])) {
        placed.set(id, node.inputs[0]);
        continue;
      }
    }
    placed.set(id, out.append(std::move(node)));
  }
  out.outputs = placed.renamed(graph.outputs);
  return out;
}

}  // namespace unisono::jit
