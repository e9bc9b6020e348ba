// A view is followed back move by move. The parts of a stack are followed one
// by one: where they see one base, each a fixed distance behind the one before,
// the stack is a view, too, that moves by this distance along its new axis.
#include "jit/ir/affine_view.h"

#include <algorithm>
#include <utility>

#include "jit/ir/kinds.h"

namespace unisono::ir {
namespace {

/// Moves that are looked at for one view: stacks of stacks of stacks.
constexpr int most_moves = 4096;

using Place = AffineView::Place;

class Viewer {
 public:
  explicit Viewer(const Graph& graph) : graph_(graph) {}

  AffineView follow(NodeId id) {
    AffineView view{.base = id, .places = {}};
    const size_t rank = graph_.type(id).shape.size();
    for (size_t i = 0; i < rank; ++i) {
      view.places.push_back({0, std::vector<int64_t>(rank, 0)});
      view.places[i].steps[i] = 1;
    }
    while (++moves_ < most_moves && step_back(view)) {
    }
    return view;
  }

 private:
  const Shape& shape(NodeId id) const { return graph_.type(id).shape; }

  /// Makes it a view of its base's operand; false if it cannot be one.
  bool step_back(AffineView& view) {
    const Node& node = graph_[view.base];
    if (kind(node.op) != Kind::move || view.places.empty()) return false;
    std::vector<Place>& at = view.places;
    const Shape& from = shape(node.inputs[0]);
    const size_t axes = at[0].steps.size();
    std::vector<Place> next(from.size(), {0, std::vector<int64_t>(axes, 0)});
    switch (move_of(node.op)) {
      case Move::slice: {
        const auto& a = attrs<SliceAttrs>(node);
        for (size_t i = 0; i < next.size(); ++i)
          next[i] = scaled(at[i], a.step[i].value(), a.start[i].value());
        break;
      }
      case Move::transpose: {
        const auto& order = attrs<AxesAttrs>(node).axes;
        for (size_t i = 0; i < order.size(); ++i)
          next[static_cast<size_t>(order[i])] = at[i];
        break;
      }
      case Move::broadcast: {
        const auto& to = attrs<BroadcastAttrs>(node).axes;
        for (size_t i = 0; i < to.size(); ++i)
          if (!(from[i] == Dim(1))) next[i] = at[static_cast<size_t>(to[i])];
        break;
      }
      case Move::flip: {
        next = at;
        for (const int axis : attrs<AxesAttrs>(node).axes) {
          const auto i = static_cast<size_t>(axis);
          next[i] = scaled(at[i], -1, from[i].value() - 1);
        }
        break;
      }
      case Move::reshape: {
        const Shape& to = shape(view.base);
        size_t i = 0;
        for (size_t j = 0; j < to.size(); ++j) {
          if (to[j] == Dim(1)) continue;
          while (i < from.size() && from[i] == Dim(1)) ++i;
          if (i == from.size() || !(from[i] == to[j])) return false;
          next[i++] = at[j];
        }
        while (i < from.size() && from[i] == Dim(1)) ++i;
        if (i < from.size()) return false;
        break;
      }
      case Move::concat: return step_back_stack(view, node);
      case Move::pad: return false;
    }
    at = std::move(next);
    view.base = node.inputs[0];
    return true;
  }

  bool step_back_stack(AffineView& view, const Node& stack) {
    const auto axis = static_cast<size_t>(attrs<AxisAttrs>(stack).axis);
    if (stack.inputs.size() < 2) return false;
    for (const NodeId part : stack.inputs)
      if (!(shape(part)[axis] == Dim(1))) return false;
    const AffineView first = follow(stack.inputs[0]);
    if (first.places.empty()) return false;  // of numbers
    std::vector<int64_t> distance(first.places.size());
    for (size_t i = 1; i < stack.inputs.size(); ++i) {
      const AffineView part = follow(stack.inputs[i]);
      if (part.base != first.base || moves_ >= most_moves) return false;
      for (size_t p = 0; p < part.places.size(); ++p) {
        const int64_t ahead = part.places[p].start - first.places[p].start;
        if (i == 1) distance[p] = ahead;
        if (ahead != static_cast<int64_t>(i) * distance[p] ||
            part.places[p].steps != first.places[p].steps)
          return false;
      }
    }
    // The places of the stack's elements, in terms of the view's axes.
    std::vector<Place> next;
    for (size_t p = 0; p < first.places.size(); ++p) {
      Place whole = first.places[p];
      whole.steps[axis] = distance[p];
      Place place{whole.start,
                  std::vector<int64_t>(view.places[0].steps.size(), 0)};
      for (size_t i = 0; i < view.places.size(); ++i) {
        place.start += whole.steps[i] * view.places[i].start;
        for (size_t k = 0; k < place.steps.size(); ++k)
          place.steps[k] += whole.steps[i] * view.places[i].steps[k];
      }
      next.push_back(std::move(place));
    }
    view.places = std::move(next);
    view.base = first.base;
    view.stacks = true;
    return true;
  }

  static Place scaled(const Place& place, int64_t by, int64_t offset) {
    Place out{place.start * by + offset, place.steps};
    for (int64_t& step : out.steps) step *= by;
    return out;
  }

  const Graph& graph_;
  int moves_ = 0;
};

}  // namespace

bool may_be_view(const Node& node) {
  return kind(node.op) == Kind::move && node.op != Op::concat &&
         node.op != Op::pad;
}

std::optional<AffineView> affine_view(const Graph& graph, NodeId id) {
  AffineView view = Viewer(graph).follow(id);
  if (view.base == id) return std::nullopt;
  return view;
}

}  // namespace unisono::ir
