// What is reduced, [members, n, ...], is an expression: maps of broadcasts and
// of outer products. Below these lie the factors, which have an axis of members
// or not, and the axis of n elements or not. All devices get the factors of all
// members; each then takes its part of the n elements, evaluates the same
// expression on it, and reduces it over all members. The parts come together in
// the end. n that cannot be shared out evenly is filled up with zeros.
#include "jit/transform/reduce_factors.h"

#include <algorithm>
#include <array>
#include <unordered_map>
#include <vector>

#include "jit/ir/kinds.h"
#include "jit/ir/table.h"
#include "runtime/tuning/tuning.h"

namespace unisono::jit {
namespace {

using ir::Dim;
using ir::Node;
using ir::Op;
using ir::Shape;

/// A node below the expression. `part_axis`: that of the n elements, or -1.
struct Factor {
  NodeId id = 0;
  bool has_members = false;
  int part_axis = -1;
};

class Expression {
 public:
  Expression(Graph& graph, const ir::CollectiveAttrs& devices, uint32_t source)
      : graph_(graph), devices_(devices), source_(source) {}

  /// Whether the node is such an expression; finds its factors.
  bool read(NodeId id) {
    if (++nodes_ > tuning().most_factors_nodes) return false;
    const Node& node = graph_[id];
    if (is_one_value(node)) return true;
    if (ir::kind(node.op) == ir::Kind::map)
      return ir::row(node.op).check == ir::Check::none &&
             std::ranges::all_of(node.inputs,
                                 [&](NodeId x) { return read(x); });
    if (node.op == Op::broadcast) {
      factors_.push_back(factor_of_broadcast(node));
      return true;
    }
    if (node.op != Op::dot) return false;
    const auto& a = ir::attrs<ir::DotAttrs>(node);
    const std::vector<int> first = {0};
    if (a.batch_a != first || a.batch_b != first || !a.contract_a.empty())
      return false;
    for (const Factor& factor : factors_of_dot(node))
      factors_.push_back(factor);
    return true;
  }

  /// Bytes that a device has of factors that have members.
  int64_t bytes() const {
    int64_t bytes = 0;
    for (const Factor& factor : factors_)
      if (factor.has_members) bytes += graph_.type(factor.id).bytes();
    return bytes;
  }

  /// The expression of all members, for this device's `part` elements of `n`.
  NodeId place(NodeId id, int64_t n, int64_t part) {
    if (const auto placed = placed_.find(id); placed != placed_.end())
      return placed->second;
    const Node node = graph_[id];  // a copy: nodes move as some are added
    const auto shape = [&] {
      Shape out = node.type.shape;
      out[0] = out[0] * ir::member_count(devices_);
      out[1] = Dim(part);
      return out;
    };
    std::vector<NodeId> inputs;
    NodeId out;
    if (is_one_value(node)) {
      const auto& bytes = ir::attrs<ir::ConstantAttrs>(node).bytes;
      out = graph_.add_constant({node.type.dtype, shape()}, bytes, node.source);
    } else if (node.op == Op::broadcast) {
      auto attrs = ir::attrs<ir::BroadcastAttrs>(node);
      attrs.shape = shape();
      inputs = {place(factor_of_broadcast(node), n, part)};
      out = graph_.add(node.op, inputs, std::move(attrs), node.source);
    } else if (node.op == Op::dot) {
      for (const Factor& factor : factors_of_dot(node))
        inputs.push_back(place(factor, n, part));
      out = graph_.add(node.op, inputs, node.attrs, node.source);
    } else {
      for (const NodeId operand : node.inputs)
        inputs.push_back(place(operand, n, part));
      out = graph_.add(node.op, inputs, node.attrs, node.source);
    }
    placed_[id] = out;
    return out;
  }

 private:
  static bool is_one_value(const Node& node) {
    const auto* a = std::get_if<ir::ConstantAttrs>(&node.attrs);
    return node.op == Op::constant && a && node.type.rank() > 1 &&
           static_cast<int64_t>(a->bytes.size()) == byte_size(node.type.dtype);
  }

  Factor factor_of_broadcast(const Node& node) const {
    const auto& a = ir::attrs<ir::BroadcastAttrs>(node);
    Factor factor{node.inputs[0]};
    const Shape& shape = graph_.type(factor.id).shape;
    for (size_t i = 0; i < a.axes.size(); ++i) {
      const bool whole = shape[i] == a.shape[a.axes[i]];
      if (a.axes[i] == 0) factor.has_members = whole;
      if (a.axes[i] == 1 && whole) factor.part_axis = static_cast<int>(i);
    }
    return factor;
  }

  std::array<Factor, 2> factors_of_dot(const Node& node) const {
    const bool in_left = graph_.type(node.inputs[0]).rank() > 1;
    return {Factor{node.inputs[0], true, in_left ? 1 : -1},
            Factor{node.inputs[1], true, in_left ? -1 : 1}};
  }

  /// Of all members, this device's part.
  NodeId place(const Factor& factor, int64_t n, int64_t part) {
    NodeId id = factor.id;
    if (factor.has_members) {
      id = graph_.add(Op::all_gather, {id}, devices_, source_);
      Shape shape = graph_.type(id).shape;
      shape[1] = shape[0] * shape[1];
      shape.erase(shape.begin());
      id = graph_.add(Op::reshape, {id}, ir::ShapeAttrs{shape}, source_);
    }
    if (factor.part_axis < 0) return id;
    const auto axis = static_cast<size_t>(factor.part_axis);
    const int64_t all = part * ir::member_count(devices_).value();
    if (all > n) {
      const ir::Type type = graph_.type(id);
      Shape low(type.shape.size(), Dim(0)), high = low;
      high[axis] = Dim(all - n);
      const NodeId zero = graph_.add_constant(
          {type.dtype, {}},
          std::vector<uint8_t>(static_cast<size_t>(byte_size(type.dtype))),
          source_);
      id = graph_.add(Op::pad, {id, zero}, ir::PadAttrs{low, high}, source_);
    }
    ir::CollectiveAttrs own = devices_;
    own.dim = factor.part_axis;
    own.tiled = true;
    return graph_.add(Op::own_part, {id}, own, source_);
  }

  Graph& graph_;
  const ir::CollectiveAttrs& devices_;
  const uint32_t source_;
  size_t nodes_ = 0;
  std::vector<Factor> factors_;
  std::unordered_map<NodeId, NodeId> placed_;
};

}  // namespace

std::optional<NodeId> reduce_factors(Graph& graph, NodeId own, Op op,
                                     int64_t stored,
                                     const ir::CollectiveAttrs& devices,
                                     uint32_t source) {
  const ir::Type type = graph.type(own);
  const int64_t teams = ir::member_count(devices).value();
  if (type.rank() < 3) return std::nullopt;  // an outer product at least
  const int64_t members = type.shape[0].value(), n = type.shape[1].value();
  if (n < teams || type.elements() == 0) return std::nullopt;
  Expression expression(graph, devices, source);
  if (!expression.read(own)) return std::nullopt;
  const int64_t exchanged = type.bytes() / members * stored;
  if (expression.bytes() * tuning().least_factors_gain > exchanged)
    return std::nullopt;

  const int64_t part = (n + teams - 1) / teams;
  NodeId id = expression.place(own, n, part);
  id = graph.add(op, {id}, ir::ReduceAttrs{{0}, ir::ReduceOrder::members},
                 source);
  ir::CollectiveAttrs together = devices;
  together.tiled = true;
  id = graph.add(Op::all_gather, {id}, together, source);
  if (part * teams == n) return id;
  Shape size = graph.type(id).shape;
  size[0] = Dim(n);
  return graph.add(Op::slice, {id},
                   ir::SliceAttrs{Shape(size.size(), Dim(0)),
                                  Shape(size.size(), Dim(1)), size},
                   source);
}

}  // namespace unisono::jit
