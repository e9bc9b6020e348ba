#include "tests/unit/jit/uses/uses.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "jit/derivative/derivative.h"
#include "jit/ir/kinds.h"
#include "jit/scalar/element.h"
#include "tests/unit/jit/op_table/op_table.h"

namespace unisono::jit::testing {

using ir::Graph;
using ir::NodeId;
using ir::Op;
using ir::Shape;
using ir::Type;

std::vector<Operation> operations() {
  std::vector<Operation> out;
  for (const Op op : all_ops) switch (ir::kind(op)) {
      case ir::Kind::reduce:
        out.push_back({op});
        out.push_back({op, ir::ReduceOrder::members});
        break;
      case ir::Kind::argreduce: out.push_back({op}); break;
      case ir::Kind::scan: out.push_back({op, {}, Path::scan}); break;
      case ir::Kind::sort: out.push_back({op, {}, Path::sort}); break;
      case ir::Kind::dot: out.push_back({op, {}, Path::product}); break;
      case ir::Kind::index: out.push_back({op, {}, Path::index}); break;
      case ir::Kind::map:
      case ir::Kind::move:
      case ir::Kind::source:
      case ir::Kind::control:
      case ir::Kind::collective:
      case ir::Kind::host: break;
    }
  return out;
}

std::string Case::to_string() const {
  constexpr std::string_view uses[] = {"itself",    "one place", "all places",
                                       "beside",    "again",     "again beside",
                                       "chained",   "gradient",  "in loop",
                                       "in concat", "several"};
  constexpr std::string_view axes[] = {"first", "last", "all"};
  return fmt::format(
      "{}{} of {} {} along {}, {}, on {}", ir::name(operation.op),
      operation.order == ir::ReduceOrder::members ? " by members" : "",
      unisono::name(dtype), sizes, axes[static_cast<int>(along)],
      uses[static_cast<int>(use)], devices);
}

namespace {

/// Makes the nodes of one case.
class Maker {
 public:
  Maker(const Case& c, Graph& g) : c_(c), g_(g) {
    for (const int64_t size : c.sizes) shape_.push_back(size);
    for (size_t i = 0; i < c.sizes.size(); ++i)
      if (c.along == Along::all || i == axis())
        axes_.push_back(static_cast<int>(i));
  }

  Type type() const { return {c_.dtype, shape_}; }

  /// The operation of x, and of y where it has two operands; of the case's
  /// type, and of x's shape or that of what is kept.
  NodeId result(NodeId x, NodeId y) {
    NodeId out = cast(operate(x, y), c_.dtype);
    if (c_.devices > 1) {
      ir::CollectiveAttrs a;
      a.axes = {1};
      a.sizes = {c_.devices};
      out = g_.add(Op::all_reduce, {out}, a);
    }
    return out;
  }
  /// The result at all places that were reduced, times two.
  NodeId spread(NodeId result) {
    if (g_.type(result).shape != shape_) {
      ir::BroadcastAttrs a{shape_, {}};
      for (int i = 0; i < static_cast<int>(shape_.size()); ++i)
        if (std::ranges::find(axes_, i) == axes_.end()) a.axes.push_back(i);
      result = g_.add(Op::broadcast, {result}, a);
    }
    return g_.add(Op::add, {result, result});
  }
  /// Zeros but for the result, which is not at the beginning.
  NodeId at_one_place(NodeId result) {
    ir::PadAttrs a;
    const bool reduced = g_.type(result).shape != shape_;
    Shape shape = shape_;
    for (const int axis : axes_)
      if (reduced) shape[axis] = 1;
    if (reduced) result = g_.add(Op::reshape, {result}, ir::ShapeAttrs{shape});
    for (int i = 0; i < static_cast<int>(shape_.size()); ++i) {
      const bool along = std::ranges::find(axes_, i) != axes_.end();
      const int64_t rest = reduced && along ? shape_[i].value() - 1 : 2;
      a.low.push_back(along ? rest / 2 : 0);
      a.high.push_back(along ? rest - rest / 2 : 0);
    }
    return g_.add(Op::pad, {result, constant(0)}, a);
  }
  /// What a kernel of its own computes of x.
  NodeId stored(NodeId x) {
    return g_.add(Op::cummax, {x},
                  ir::ScanAttrs{static_cast<int>(shape_.size()) - 1, false});
  }
  NodeId again(NodeId x) {
    const bool reduces = ir::kind(c_.operation.op) == ir::Kind::reduce &&
                         ir::admits(c_.operation.op, c_.dtype);
    return g_.add(reduces ? c_.operation.op : Op::sum, {x},
                  ir::ReduceAttrs{axes_, c_.operation.order});
  }
  /// Turns of m = (all places of the result of m - m - y) / 2.
  NodeId loop(NodeId x, NodeId y) {
    auto body = std::make_shared<Graph>();
    body->add_input({DType::I64, {}});
    body->add_input(type());
    body->add_input(type());
    Maker inside(c_, *body);
    const NodeId sum = body->add(Op::sub, {inside.spread(inside.result(1, 2)),
                                           body->add(Op::add, {1, 2})});
    body->outputs = {inside.half(sum)};
    ir::LoopAttrs attrs;
    attrs.body = body;
    attrs.carries = 1;
    attrs.turns = 3;
    const NodeId id = g_.add(Op::loop, {x, y}, attrs);
    return g_.add(Op::project, {id}, ir::ProjectAttrs{0});
  }
  NodeId half(NodeId x) {
    if (!is_floating(c_.dtype)) return x;
    const NodeId half =
        g_.add_constant(type(), jit::element_bytes(c_.dtype, 0.5));
    return g_.add(Op::mul, {x, half});
  }

 private:
  size_t axis() const {
    return c_.along == Along::first ? 0 : c_.sizes.size() - 1;
  }
  bool is_line() const { return c_.along == Along::all; }
  int64_t length() const {
    int64_t n = 1;
    for (const int axis : axes_) n *= c_.sizes[axis];
    return n;
  }
  NodeId constant(double value) {
    return g_.add_constant({c_.dtype, {}}, jit::element_bytes(c_.dtype, value));
  }
  NodeId cast(NodeId x, DType dtype) {
    return g_.type(x).dtype == dtype
               ? x
               : g_.add(Op::cast, {x}, ir::CastAttrs{dtype});
  }
  NodeId as_line(NodeId x) {
    return g_.add(Op::reshape, {x}, ir::ShapeAttrs{{length()}});
  }
  /// `f` of x as a line where all axes are meant, along axis 0.
  template <class F>
  NodeId as_one_axis(NodeId x, F&& f) {
    if (!is_line()) return f(x, static_cast<int>(axis()));
    return g_.add(Op::reshape, {f(as_line(x), 0)}, ir::ShapeAttrs{shape_});
  }
  NodeId turned(NodeId x) {
    return g_.add(Op::transpose, {x}, ir::AxesAttrs{{1, 0}});
  }
  NodeId operate(NodeId x, NodeId y) {
    const Op op = c_.operation.op;
    switch (ir::kind(op)) {
      case ir::Kind::reduce: {
        const bool of_bools = !ir::admits(op, c_.dtype);
        const NodeId operand = of_bools ? g_.add(Op::lt, {x, y}) : x;
        return g_.add(op, {operand},
                      ir::ReduceAttrs{axes_, c_.operation.order});
      }
      case ir::Kind::argreduce:
        return g_.add(op, {is_line() ? as_line(x) : x},
                      ir::ReduceAttrs{{is_line() ? 0 : axes_[0]}});
      case ir::Kind::scan:
        return as_one_axis(x, [&](NodeId line, int axis) {
          return g_.add(op, {line}, ir::ScanAttrs{axis, c_.sizes[0] % 2 == 0});
        });
      case ir::Kind::sort:
        return as_one_axis(x, [&](NodeId line, int axis) {
          const bool turn = axis + 1 < g_.type(line).rank();
          const NodeId sorted = g_.add(op, {turn ? turned(line) : line});
          return turn ? turned(sorted) : sorted;
        });
      case ir::Kind::index:
        return as_one_axis(x, [&](NodeId line, int axis) {
          return indexed(line, is_line() ? as_line(y) : y, axis);
        });
      default: return product(x, y);
    }
  }
  /// With the first line of y, or with all of it.
  NodeId product(NodeId x, NodeId y) {
    ir::DotAttrs a;
    a.precision = ir::Precision::exact;
    a.contract_a = axes_;
    a.contract_b = axes_;
    if (!is_line()) {
      ir::SliceAttrs first;
      for (size_t i = 0; i < c_.sizes.size(); ++i) {
        first.start.push_back(0);
        first.step.push_back(1);
        first.size.push_back(i == axis() ? c_.sizes[i] : 1);
      }
      y = g_.add(Op::reshape, {g_.add(Op::slice, {y}, first)},
                 ir::ShapeAttrs{{length()}});
      a.contract_b = {0};
    }
    return g_.add(Op::dot, {x, y}, a);
  }
  /// Positions that are met several times.
  NodeId indexed(NodeId x, NodeId updates, int axis) {
    const int64_t n = g_.type(x).shape[axis].value();
    const Type type{DType::I32, {n}};
    const auto number = [&](int64_t value) {
      return g_.add_constant(type, jit::element_bytes(DType::I32, value));
    };
    NodeId at = g_.add(Op::iota, {}, ir::IotaAttrs{type, 0});
    at = g_.add(Op::mul, {at, number(7919)});
    at = g_.add(Op::mod, {at, number(n / 2 + 1)});
    const ir::IndexAttrs attrs{{axis}, true};
    // The positions' axis comes first.
    const bool turn = axis > 0;
    if (c_.operation.op != Op::gather)
      return g_.add(c_.operation.op, {x, turn ? turned(updates) : updates, at},
                    attrs);
    const NodeId found = g_.add(Op::gather, {x, at}, attrs);
    return turn ? turned(found) : found;
  }

  const Case& c_;
  Graph& g_;
  Shape shape_;
  std::vector<int> axes_;
};

bool is_possible(const Case& c) {
  const Op op = c.operation.op;
  const bool of_bools =
      ir::admits(op, DType::Bool) && !ir::admits(op, DType::I32);
  if (!of_bools && !ir::admits(op, c.dtype)) return false;
  return c.use != Use::gradient || is_floating(c.dtype);
}

}  // namespace

std::optional<Graph> graph_of(const Case& c) {
  if (!is_possible(c)) return std::nullopt;
  Graph g;
  Maker make(c, g);
  const NodeId x = g.add_input(make.type()), y = g.add_input(make.type());
  const auto beside = [&](NodeId result) {
    return g.add(Op::sub, {y, make.spread(result)});
  };
  if (c.use == Use::in_loop) {
    g.outputs = {make.loop(x, make.stored(y))};
    return g;
  }
  if (c.use == Use::chained) {
    const NodeId stored = make.stored(x);
    const auto beside_it = [&](NodeId result) {
      return g.add(Op::sub, {stored, make.spread(result)});
    };
    const NodeId first = beside_it(make.result(stored, y));
    g.outputs = {first, beside_it(make.again(first))};
    return g;
  }
  const NodeId result = make.result(x, y);
  switch (c.use) {
    case Use::itself: g.outputs = {g.add(Op::add, {result, result})}; break;
    case Use::one_place: g.outputs = {make.at_one_place(result)}; break;
    case Use::all_places: g.outputs = {make.spread(result)}; break;
    case Use::beside: g.outputs = {beside(result)}; break;
    case Use::again: g.outputs = {make.again(make.spread(result))}; break;
    case Use::again_beside: g.outputs = {make.again(beside(result))}; break;
    case Use::gradient: {
      g.outputs = {g.add(Op::mul, {result, result})};
      DerivativeSpec spec{.inputs = {true, false}};
      if (c.devices > 1) {
        spec.axes = {{1, c.devices}};
        spec.varies = {{1}, {1}};
      }
      auto derived = vjp(g, spec);
      if (auto* graph = std::get_if<Graph>(&derived)) return std::move(*graph);
      return std::nullopt;
    }
    case Use::in_loop:
    case Use::chained: break;
    case Use::in_concat:
      g.outputs = {g.add(Op::concat, {make.spread(result), x, beside(result)},
                         ir::AxisAttrs{0})};
      break;
    case Use::to_several:
      g.outputs = {result, make.spread(result), beside(result)};
      break;
  }
  return g;
}

namespace {

/// So many different ones.
constexpr int most_numbers = 101;

double number(const Operation& operation, DType dtype, std::mt19937& random) {
  const double part = static_cast<double>(random() % 10007) / 10007;
  if (!is_floating(dtype)) return static_cast<double>(random() % 7) * 2 - 5;
  const bool multiplies =
      operation.op == Op::prod || operation.op == Op::cumprod;
  if (multiplies) return 1 + (part - 0.5) * 0x1p-6;
  const double size = std::ldexp(1 + part, static_cast<int>(random() % 17) - 8);
  return random() % 3 == 0 ? -size : size;
}

}  // namespace

Arrays numbers_for(const Operation& operation, const Graph& graph,
                   std::mt19937& random) {
  Arrays out;
  for (const Type& type : graph.input_types()) {
    std::vector<std::vector<uint8_t>> choices;
    for (int i = 0; i < most_numbers; ++i)
      choices.push_back(jit::element_bytes(
          type.dtype, number(operation, type.dtype, random)));
    HostArray array{type, std::vector<uint8_t>(type.bytes())};
    const auto size = static_cast<size_t>(byte_size(type.dtype));
    for (size_t at = 0; at < array.bytes.size(); at += size)
      std::ranges::copy(choices[random() % choices.size()],
                        array.bytes.begin() + static_cast<ptrdiff_t>(at));
    out.push_back(std::move(array));
  }
  return out;
}

}  // namespace unisono::jit::testing
