// Of each array of integers is asked: between which bounds they are, along
// which axes they change at all, and along which of these no two are equal
// where the others are fixed. What is computed by sums and products of numbers
// from iota has steps: an element is `start` plus its place times the steps.
#include "jit/transform/distinct.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <map>
#include <numeric>
#include <optional>
#include <vector>

#include "jit/ir/kinds.h"
#include "runtime/dtype.h"
#include "runtime/tuning/tuning.h"

namespace unisono::jit {
namespace {

using ir::Graph;
using ir::Node;
using ir::NodeId;
using ir::Op;

using Wide = __int128;
using Sizes = std::vector<int64_t>;

struct Facts {
  Sizes shape;
  Wide low = 0, high = 0;
  /// By axis. Elements whose places agree on all axes that `change` but are not
  /// `apart`, and that are equal, have places that agree on those `apart`, too.
  std::vector<bool> change = {}, apart = {};
  std::optional<std::vector<Wide>> steps = {};
  Wide start = 0;  // with `steps`

  size_t rank() const { return shape.size(); }
};
using Known = std::optional<Facts>;

/// What follows from the steps. In order of their lengths, each is longer than
/// what all shorter ones together can make: then no two places meet.
Known from_steps(Sizes shape, Wide start, std::vector<Wide> steps) {
  Facts out{.shape = std::move(shape), .low = start, .high = start};
  std::vector<size_t> axes;
  for (size_t i = 0; i < out.rank(); ++i) {
    out.change.push_back(steps[i] != 0 && out.shape[i] > 1);
    if (!out.change[i]) {
      steps[i] = 0;
      continue;
    }
    axes.push_back(i);
    const Wide far = steps[i] * (out.shape[i] - 1);
    (far < 0 ? out.low : out.high) += far;
  }
  const auto length = [&](size_t i) {
    return steps[i] < 0 ? -steps[i] : steps[i];
  };
  std::ranges::sort(axes, {}, length);
  Wide reached = 0;
  bool differ = true;
  for (const size_t i : axes) {
    differ = differ && length(i) > reached;
    reached += length(i) * (out.shape[i] - 1);
  }
  out.apart = differ ? out.change : std::vector<bool>(out.change.size(), false);
  out.start = start;
  out.steps = std::move(steps);
  return out;
}

class Reader {
 public:
  explicit Reader(const Graph& graph) : graph_(graph) {}

  Known of(NodeId id, int depth = 0) {
    if (const auto known = memo_.find(id); known != memo_.end())
      return known->second;
    const Node& node = graph_[id];
    Known out;
    if (is_integer(node.type.dtype) && depth < tuning().most_distinct_depth)
      out = read(node, depth + 1);
    // A sum that does not fit wraps.
    if (out && !fits(*out, node.type.dtype)) out = std::nullopt;
    return memo_[id] = out;
  }

 private:
  static bool fits(const Facts& x, DType dtype) {
    bool out = false;
    with_dtype(dtype, [&]<DType D>() {
      using T = typename StorageOf<D>::type;
      if constexpr (std::is_integral_v<T>)
        out = x.low >= std::numeric_limits<T>::min() &&
              x.high <= std::numeric_limits<T>::max();
    });
    return out;
  }

  Known read(const Node& node, int depth) {
    const auto operand = [&](size_t i) { return of(node.inputs[i], depth); };
    if (node.op == Op::iota) {
      std::vector<Wide> steps(node.type.shape.size(), 0);
      steps[static_cast<size_t>(ir::attrs<ir::IotaAttrs>(node).axis)] = 1;
      return from_steps(node.type.sizes(), 0, std::move(steps));
    }
    if (node.op == Op::constant) return constant(node);
    if (node.op == Op::argsort) return argsort(node);
    if (node.op == Op::add) return sum(operand(0), operand(1), 1);
    if (node.op == Op::sub) return sum(operand(0), operand(1), -1);
    if (node.op == Op::neg) return scaled(operand(0), -1);
    if (node.op == Op::mul) {
      const Known a = operand(0), b = operand(1);
      if (a && is_number(*a)) return scaled(b, a->low);
      if (b && is_number(*b)) return scaled(a, b->low);
      return std::nullopt;
    }
    if (node.op == Op::cast) return operand(0);
    if (node.op == Op::reshape) return reshaped(operand(0), node.type.sizes());
    if (node.op == Op::transpose) return transposed(node, operand(0));
    if (node.op == Op::flip) return flipped(node, operand(0));
    if (node.op == Op::slice) return sliced(node, operand(0));
    if (node.op == Op::broadcast) return broadcast(node, operand(0));
    if (node.op == Op::gather) return gathered(node, operand);
    return std::nullopt;
  }

  static bool is_number(const Facts& x) { return x.low == x.high; }

  static Known constant(const Node& node) {
    const auto& bytes = ir::attrs<ir::ConstantAttrs>(node).bytes;
    const auto size = static_cast<size_t>(byte_size(node.type.dtype));
    const size_t count = bytes.size() / size;
    if (count == 0 || count > tuning().most_sorted_constant)
      return std::nullopt;
    std::vector<Wide> values;
    with_dtype(node.type.dtype, [&]<DType D>() {
      using T = typename StorageOf<D>::type;
      if constexpr (std::is_integral_v<T>)
        for (size_t i = 0; i < count; ++i) {
          T value;
          std::memcpy(&value, bytes.data() + i * size, size);
          values.push_back(value);
        }
    });
    if (values.empty()) return std::nullopt;
    if (count == 1)
      return from_steps(node.type.sizes(), values[0],
                        std::vector<Wide>(node.type.shape.size(), 0));
    std::ranges::sort(values);
    if (std::ranges::adjacent_find(values) != values.end()) return std::nullopt;
    return all_apart(node.type.sizes(), values.front(), values.back());
  }

  static Facts all_apart(Sizes shape, Wide low, Wide high) {
    Facts out{.shape = std::move(shape), .low = low, .high = high};
    for (const int64_t size : out.shape) out.change.push_back(size > 1);
    out.apart = out.change;
    return out;
  }

  static Known argsort(const Node& node) {
    const Sizes shape = node.type.sizes();
    if (shape.empty()) return std::nullopt;
    Facts out = all_apart(shape, 0, std::max<int64_t>(shape.back() - 1, 0));
    std::fill(out.apart.begin(), out.apart.end() - 1, false);
    return out;
  }

  static Known scaled(Known x, Wide by) {
    if (!x) return std::nullopt;
    if (x->steps || by == 0) {
      std::vector<Wide> steps =
          x->steps.value_or(std::vector<Wide>(x->rank(), 0));
      for (Wide& step : steps) step *= by;
      return from_steps(x->shape, x->start * by, std::move(steps));
    }
    x->low *= by;
    x->high *= by;
    if (by < 0) std::swap(x->low, x->high);
    return x;
  }

  static Known sum(Known a, Known b, Wide sign) {
    b = scaled(std::move(b), sign);
    if (!a || !b) return std::nullopt;
    if (a->steps && b->steps) {
      for (size_t i = 0; i < a->rank(); ++i) (*a->steps)[i] += (*b->steps)[i];
      return from_steps(a->shape, a->start + b->start, *a->steps);
    }
    if (is_number(*a)) std::swap(a, b);
    if (!is_number(*b)) return std::nullopt;
    a->low += b->low;
    a->high += b->low;
    return a;
  }

  static Known reshaped(const Known& x, Sizes shape) {
    if (!x) return std::nullopt;
    const auto long_axes = [](const Sizes& sizes) {
      std::vector<size_t> out;
      for (size_t i = 0; i < sizes.size(); ++i)
        if (sizes[i] != 1) out.push_back(i);
      return out;
    };
    const std::vector<size_t> from = long_axes(x->shape), to = long_axes(shape);
    const bool same = std::ranges::equal(
        from, to, {}, [&](size_t i) { return x->shape[i]; },
        [&](size_t i) { return shape[i]; });
    if (!same) {
      if (is_number(*x))
        return from_steps(shape, x->low, std::vector<Wide>(shape.size(), 0));
      const bool all =
          std::ranges::all_of(from, [&](size_t i) { return x->apart[i]; });
      if (!all) return std::nullopt;
      return all_apart(std::move(shape), x->low, x->high);
    }
    return moved(*x, std::move(shape), from, to);
  }

  /// Axis from[i] becomes axis to[i]; along all others nothing changes.
  static Known moved(const Facts& x, Sizes shape,
                     const std::vector<size_t>& from,
                     const std::vector<size_t>& to) {
    Facts out{.shape = std::move(shape), .low = x.low, .high = x.high};
    out.change.assign(out.rank(), false);
    out.apart = out.change;
    std::vector<Wide> steps(out.rank(), 0);
    for (size_t i = 0; i < from.size(); ++i) {
      out.change[to[i]] = x.change[from[i]];
      out.apart[to[i]] = x.apart[from[i]];
      if (x.steps) steps[to[i]] = (*x.steps)[from[i]];
    }
    if (x.steps) return from_steps(out.shape, x.start, std::move(steps));
    return out;
  }

  static Known transposed(const Node& node, const Known& x) {
    if (!x) return std::nullopt;
    std::vector<size_t> from, to;
    for (const int axis : ir::attrs<ir::AxesAttrs>(node).axes) {
      to.push_back(from.size());
      from.push_back(static_cast<size_t>(axis));
    }
    return moved(*x, node.type.sizes(), from, to);
  }

  static Known flipped(const Node& node, Known x) {
    if (!x || !x->steps) return x;
    for (const int axis : ir::attrs<ir::AxesAttrs>(node).axes) {
      Wide& step = (*x->steps)[static_cast<size_t>(axis)];
      x->start += step * (x->shape[static_cast<size_t>(axis)] - 1);
      step = -step;
    }
    return from_steps(x->shape, x->start, *x->steps);
  }

  static Known sliced(const Node& node, Known x) {
    if (!x) return std::nullopt;
    const auto& a = ir::attrs<ir::SliceAttrs>(node);
    x->shape = node.type.sizes();
    if (!x->steps) return x;
    for (size_t i = 0; i < x->rank(); ++i) {
      x->start += (*x->steps)[i] * a.start[i].value();
      (*x->steps)[i] *= a.step[i].value();
    }
    return from_steps(x->shape, x->start, *x->steps);
  }

  static Known broadcast(const Node& node, const Known& x) {
    if (!x) return std::nullopt;
    const Sizes shape = node.type.sizes();
    const auto& axes = ir::attrs<ir::BroadcastAttrs>(node).axes;
    std::vector<size_t> from, to;
    for (size_t i = 0; i < axes.size(); ++i) {
      if (x->shape[i] != shape[static_cast<size_t>(axes[i])]) continue;
      from.push_back(i);
      to.push_back(static_cast<size_t>(axes[i]));
    }
    return moved(*x, shape, from, to);
  }

  /// What different positions pick of different numbers.
  template <class Operand>
  static Known gathered(const Node& node, const Operand& operand) {
    if (node.inputs.size() != 2) return std::nullopt;
    const Known x = operand(0);
    Known at = operand(1);
    if (!x || !at || x->rank() != 1 || !names_places(*at, x->shape[0]))
      return std::nullopt;
    if (x->steps && at->low >= 0) {
      Known out = scaled(at, (*x->steps)[0]);
      return sum(
          out,
          from_steps(at->shape, x->start, std::vector<Wide>(at->rank(), 0)), 1);
    }
    if (x->shape[0] > 1 && !x->apart[0]) return std::nullopt;
    at->low = x->low;
    at->high = x->high;
    at->steps.reset();
    return at;
  }

 public:
  /// Whether different numbers are different places of an axis, of which the
  /// last is -1, too.
  static bool names_places(const Facts& x, int64_t size) {
    return x.low >= -Wide{size} && x.high < size && x.high - x.low < size;
  }

 private:
  const Graph& graph_;
  std::map<NodeId, Known> memo_;
};

}  // namespace

bool positions_differ(const Graph& graph, std::span<const NodeId> indices,
                      std::span<const int64_t> sizes) {
  Reader reader(graph);
  std::vector<Facts> arrays;
  for (size_t i = 0; i < indices.size(); ++i)
    if (Known facts = reader.of(indices[i]);
        facts && Reader::names_places(*facts, sizes[i]))
      arrays.push_back(*std::move(facts));
  // Two elements that name one place agree on more and more axes.
  const Sizes shape = graph.type(indices[0]).sizes();
  std::vector<bool> agree;
  for (const int64_t size : shape) agree.push_back(size <= 1);
  for (bool more = true; more;) {
    more = false;
    for (const Facts& array : arrays) {
      bool all = true;
      for (size_t k = 0; k < shape.size(); ++k)
        all = all && (agree[k] || array.apart[k] || !array.change[k]);
      for (size_t k = 0; all && k < shape.size(); ++k) {
        more = more || (array.apart[k] && !agree[k]);
        agree[k] = agree[k] || array.apart[k];
      }
    }
  }
  return std::ranges::all_of(agree, [](bool same) { return same; });
}

std::optional<Steps> steps_of(const Graph& graph, NodeId id) {
  const Known facts = Reader(graph).of(id);
  if (!facts || !facts->steps) return std::nullopt;
  // They fit: the elements do.
  Steps out{static_cast<int64_t>(facts->start), {}};
  for (const Wide step : *facts->steps)
    out.steps.push_back(static_cast<int64_t>(step));
  return out;
}

}  // namespace unisono::jit
