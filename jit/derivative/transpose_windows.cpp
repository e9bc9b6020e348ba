// The transpose of a product with windows: sums of c[p] w[t] at the places p +
// t d of what the windows are of are products of windows on c with w turned
// round, so the cotangent of a convolution is a convolution. The general way, a
// product for all windows and the sum of what lies on each other, stores as
// many elements as there are in windows, several times.
#include <algorithm>
#include <functional>
#include <optional>
#include <utility>
#include <vector>

#include "jit/derivative/transpose.h"
#include "jit/ir/affine_view.h"
#include "runtime/tuning/tuning.h"

namespace unisono::jit {

using ir::AffineView;
using ir::Node;
using ir::Op;
using ir::Shape;

namespace {

/// How an axis of the base is seen by axes of the view: `place` alone, or
/// windows of `taps` elements `distance` apart, the first of each at `start` +
/// the place. -1: by no axis.
struct Seen {
  int place = -1, tap = -1;
  int64_t start = 0, distance = 0;
};

/// By axis of the base, of a view of this shape; nothing where it is seen in
/// another way.
std::optional<std::vector<Seen>> seen(const AffineView& view,
                                      const Shape& shape,
                                      const std::vector<bool>& is_contracted) {
  std::vector<Seen> out;
  std::vector<int> uses(shape.size(), 0);
  for (const AffineView::Place& place : view.places) {
    Seen axis{.start = place.start};
    for (size_t i = 0; i < shape.size(); ++i) {
      if (place.steps[i] == 0) continue;
      ++uses[i];
      int& own = is_contracted[i] ? axis.tap : axis.place;
      if (own >= 0 || place.steps[i] < 0) return std::nullopt;
      if (!is_contracted[i] && place.steps[i] != 1) return std::nullopt;
      if (is_contracted[i]) axis.distance = place.steps[i];
      own = static_cast<int>(i);
    }
    if (axis.place < 0 && axis.tap >= 0) {
      if (axis.distance != 1) return std::nullopt;
      std::swap(axis.place, axis.tap);
    }
    out.push_back(axis);
  }
  for (size_t i = 0; i < shape.size(); ++i)
    if (uses[i] != 1 && !(uses[i] == 0 && shape[i] == ir::Dim(1)))
      return std::nullopt;
  return out;
}

std::vector<bool> flags(size_t count, const std::vector<int>& set) {
  std::vector<bool> out(count, false);
  for (const int i : set) out[static_cast<size_t>(i)] = true;
  return out;
}

}  // namespace

/// Elements `from` ... `to` - 1 along an axis, zeros where there are none.
NodeId Transposer::cut_or_padded(NodeId x, size_t axis, int64_t from,
                                 int64_t to) {
  const ir::Type own = out.type(x);
  const size_t rank = own.shape.size();
  const int64_t size = own.shape[axis].value();
  const int64_t first = std::clamp<int64_t>(from, 0, size);
  const int64_t last = std::clamp<int64_t>(to, first, size);
  if (first > 0 || last < size) {
    ir::SliceAttrs part{Shape(rank, 0), Shape(rank, 1), own.shape};
    part.start[axis] = first;
    part.size[axis] = last - first;
    x = add(Op::slice, {x}, part);
  }
  const int64_t low = std::min(to, first) - from;
  const int64_t high = (to - from) - (last - first) - low;
  if (low == 0 && high == 0) return x;
  ir::PadAttrs around{Shape(rank, 0), Shape(rank, 0)};
  around.low[axis] = low;
  around.high[axis] = high;
  return add(Op::pad, {x, zeros({own.dtype, {}})}, around);
}

/// Windows of `taps` elements `distance` apart, along a new axis behind this
/// one.
NodeId Transposer::windows(NodeId x, size_t axis, int64_t taps,
                           int64_t distance) {
  const Shape own = out.type(x).shape;
  const size_t rank = own.size();
  ir::SliceAttrs part{Shape(rank, 0), Shape(rank, 1), own};
  part.size[axis] = own[axis].value() - (taps - 1) * distance;
  Shape apart = part.size;
  apart.insert(apart.begin() + static_cast<ptrdiff_t>(axis) + 1, 1);
  std::vector<NodeId> parts;
  for (int64_t tap = 0; tap < taps; ++tap) {
    part.start[axis] = tap * distance;
    parts.push_back(
        add(Op::reshape, {add(Op::slice, {x}, part)}, ir::ShapeAttrs{apart}));
  }
  return add(Op::concat, parts, ir::AxisAttrs{static_cast<int>(axis) + 1});
}

bool Transposer::dot_of_windows(const DotAxes& d, const Node& node, NodeId c,
                                AxisMask varies) {
  const NodeId a = node.inputs[0], b = node.inputs[1];
  if (!is_linear(a) || is_linear(b)) return false;
  const auto view = ir::affine_view(graph_, a);
  if (!view || !view->stacks) return false;
  const Shape& shape = type(a).shape;
  const auto axes = seen(*view, shape, flags(shape.size(), d.contract_a));
  if (!axes) return false;
  // What is in a border has no cotangent to be computed.
  NodeId to = view->base;
  const Node& base = graph_[to];
  const bool padded = base.op == Op::pad && !is_linear(base.inputs[1]);
  if (padded) to = base.inputs[0];
  const Shape whole = type(to).shape;
  const auto index_of = [](const std::vector<int>& list, int x) {
    return static_cast<size_t>(std::ranges::find(list, x) - list.begin());
  };

  // Each window's axis of c, and of b turned round.
  const size_t batch = d.batch_a.size();
  std::vector<int> taps, b_taps, turned;
  int64_t results = 1;
  struct Window {
    size_t y, axis;
    int64_t taps, low;
  };
  std::vector<Window> all;
  for (size_t y = 0; y < whole.size(); ++y) {
    const Seen& s = (*axes)[y];
    const int64_t low =
        padded ? ir::attrs<ir::PadAttrs>(base).low[y].value() : 0;
    const bool entire =
        s.tap < 0 && s.start == 0 && low == 0 &&
        (s.place < 0 ? whole[y] == ir::Dim(1)
                     : whole[y] == shape[static_cast<size_t>(s.place)]);
    if (entire) continue;
    if (s.place < 0 || index_of(d.free_a, s.place) == d.free_a.size())
      return false;
    const int64_t count =
        s.tap < 0 ? 1 : shape[static_cast<size_t>(s.tap)].value();
    all.push_back({y, batch + index_of(d.free_a, s.place), count, low});
    if (s.tap >= 0) {
      b_taps.push_back(d.contract_b[index_of(d.contract_a, s.tap)]);
      if (count > 1) turned.push_back(b_taps.back());
    }
  }
  std::vector<int> rest;  // contracted axes of b that become axes of the result
  for (int i = 0; i < type(b).rank(); ++i)
    if (index_of(d.contract_b, i) < d.contract_b.size() &&
        index_of(b_taps, i) == b_taps.size()) {
      rest.push_back(i);
      results *= type(b).shape[static_cast<size_t>(i)].value();
    }
  const auto empty = [](const Shape& shape) {
    return std::ranges::find(shape, ir::Dim(0)) != shape.end();
  };
  if (b_taps.empty() || results < orders().window_results || empty(whole) ||
      empty(out.type(c).shape) || empty(type(b).shape))
    return false;

  // All borders first: what is padded is then an array of which the windows are
  // a view. Windows from the last axis on, so that the others keep their
  // numbers.
  std::ranges::sort(all, std::greater(), &Window::axis);
  for (const Window& w : all) {
    const Seen& s = (*axes)[w.y];
    const int64_t reach = (w.taps - 1) * s.distance;
    const int64_t from = w.low - s.start - reach;
    c = cut_or_padded(c, w.axis, from, from + whole[w.y].value() + reach);
  }
  for (const Window& w : all) {
    const Seen& s = (*axes)[w.y];
    if (s.tap >= 0) c = windows(c, w.axis, w.taps, s.distance);
  }
  ir::DotAttrs attrs;
  attrs.precision = ir::attrs<ir::DotAttrs>(node).precision;
  const size_t c_rank = out.type(c).shape.size();
  std::vector<size_t> place_of_free(d.free_a.size());
  std::vector<int> tap_axes(b_taps.size());
  for (size_t i = 0; i < d.free_a.size(); ++i) {
    place_of_free[i] = batch + i;
    for (const Window& w : all)
      if ((*axes)[w.y].tap >= 0 && w.axis < batch + i) ++place_of_free[i];
  }
  for (const Window& w : all) {
    const Seen& s = (*axes)[w.y];
    if (s.tap < 0) continue;
    const int b_tap = d.contract_b[index_of(d.contract_a, s.tap)];
    tap_axes[index_of(b_taps, b_tap)] =
        static_cast<int>(place_of_free[w.axis - batch]) + 1;
  }
  for (size_t i = 0; i < batch; ++i) {
    attrs.batch_a.push_back(static_cast<int>(i));
    attrs.batch_b.push_back(static_cast<int>(i));
  }
  attrs.contract_a = tap_axes;
  for (size_t i = 0; i < d.free_b.size(); ++i)
    attrs.contract_a.push_back(static_cast<int>(c_rank - d.free_b.size() + i));
  // b as [batch, contracted, rest].
  std::vector<int> order = d.batch_b;
  order.insert(order.end(), b_taps.begin(), b_taps.end());
  order.insert(order.end(), d.free_b.begin(), d.free_b.end());
  for (size_t i = batch; i < order.size(); ++i)
    attrs.contract_b.push_back(static_cast<int>(i));
  order.insert(order.end(), rest.begin(), rest.end());
  NodeId factor = known(b);
  if (!turned.empty())
    factor = add(Op::flip, {factor}, ir::AxesAttrs{std::move(turned)});
  factor = add(Op::transpose, {factor}, ir::AxesAttrs{std::move(order)});
  NodeId product = add(Op::dot, {c, factor}, attrs);

  // Its axes: batch, places of a's free axes, rest.
  std::vector<int> back;
  for (const Seen& s : *axes) {
    if (s.place < 0) continue;
    if (const size_t i = index_of(d.batch_a, s.place); i < batch) {
      back.push_back(static_cast<int>(i));
    } else if (const size_t i = index_of(d.free_a, s.place);
               i < d.free_a.size()) {
      back.push_back(static_cast<int>(batch + i));
    } else {
      const int of_b = d.contract_b[index_of(d.contract_a, s.place)];
      back.push_back(
          static_cast<int>(batch + d.free_a.size() + index_of(rest, of_b)));
    }
  }
  // Axes of size 1 that the view does not move along are at the end.
  std::vector<bool> used = flags(out.type(product).shape.size(), back);
  for (size_t i = 0; i < used.size(); ++i)
    if (!used[i]) back.push_back(static_cast<int>(i));
  product = add(Op::transpose, {product}, ir::AxesAttrs{std::move(back)});
  if (out.type(product).shape != whole)
    product = add(Op::reshape, {product}, ir::ShapeAttrs{whole});
  give(to, Masked{product}, varies);
  return true;
}

}  // namespace unisono::jit
