#include "tests/unit/jit/plans/graphs.h"

#include <algorithm>
#include <random>
#include <utility>
#include <vector>

#include "jit/scalar/element.h"

namespace unisono::jit::testing {
namespace {

using ir::Graph;
using ir::NodeId;
using ir::Op;
using ir::Shape;
using ir::Type;

class Maker {
 public:
  explicit Maker(uint32_t seed) : random_(seed) {}

  Graph rows() {
    const int64_t sizes[] = {3, 16, 40, 70, 300};
    shape_ = {sizes[below(5)], sizes[below(5)]};
    switch (below(16)) {
      case 0: shape_ = {2, 40'000}; break;     // of two stages
      case 1: shape_ = {4'096, 300}; break;    // many rows
      case 2: shape_ = {4'000, 4'096}; break;  // more than caches hold
      default: break;
    }
    const bool adds_rows = shape_[0] == 4'096;  // runs, which are whole
    const int along = adds_rows ? 2 : below(5);
    if (along != 0) axes_.push_back(1);
    if (along == 0 || along == 1) axes_.insert(axes_.begin(), 0);
    for (int i = 0; i < 2; ++i) full_.push_back(g_.add_input(full(DType::F32)));
    integers_ = g_.add_input(full(DType::I32));
    if (below(2)) full_[0] = g_.add(Op::cummax, {full_[0]}, ir::ScanAttrs{1});
    for (int i = 0; i < 9; ++i) row_step();
    g_.outputs = {full_.back()};
    if (!kept_.empty()) g_.outputs.push_back(kept_.back());
    if (below(2)) g_.outputs.push_back(full_[below(full_.size())]);
    // What other axes are reduced of.
    for (int axis = 0; axis < 2; ++axis)
      if (adds_rows || below(3) == 0)
        g_.outputs.push_back(
            g_.add(Op::sum, {any_full()}, ir::ReduceAttrs{{axis}}));
    return std::move(g_);
  }

  Graph product() {
    const int64_t sizes[] = {1, 5, 40, 64, 130, 256};
    const int64_t batch = below(4) ? 1 : 3, m = sizes[below(6)],
                  n = sizes[below(6)], k = sizes[below(6)];
    if (below(6) == 0) return windows(m + 2, n, 1 + below(40));
    const Operand a = operand(batch, m, k), b = operand(batch, n, k);
    const NodeId x = viewed(a), y = viewed(b);
    const NodeId c =
        g_.add(Op::dot, {x, y}, ir::DotAttrs{{0}, {0}, {a.axis}, {b.axis}});
    follow(c);
    return std::move(g_);
  }

 private:
  int below(size_t n) { return static_cast<int>(random_() % n); }
  Type full(DType dtype) const { return {dtype, shape_}; }
  NodeId number(const Type& type, double value) {
    return g_.add_constant(type, element_bytes(type.dtype, value));
  }
  /// A row's value at all its places.
  NodeId spread(NodeId kept) {
    ir::BroadcastAttrs a{shape_, {}};
    for (int axis = 0; axis < 2; ++axis)
      if (std::find(axes_.begin(), axes_.end(), axis) == axes_.end())
        a.axes.push_back(axis);
    return g_.add(Op::broadcast, {kept}, a);
  }
  NodeId any_full() {
    return full_[full_.size() - 1 - below(std::min<size_t>(full_.size(), 3))];
  }

  void row_step() {
    constexpr Op dear[] = {Op::exp, Op::tanh, Op::sqrt, Op::neg};
    constexpr Op cheap[] = {Op::add, Op::sub, Op::mul, Op::maximum};
    constexpr Op reductions[] = {Op::sum, Op::max, Op::min};
    switch (below(7)) {
      case 0: full_.push_back(g_.add(dear[below(4)], {any_full()})); break;
      case 1:
        full_.push_back(g_.add(cheap[below(4)], {any_full(), any_full()}));
        break;
      case 2:
      case 3:
        kept_.push_back(
            g_.add(reductions[below(3)], {any_full()}, ir::ReduceAttrs{axes_}));
        break;
      case 4:  // an odd divisor is not 0, which the compiler does not know
        integers_ = g_.add(
            Op::floor_div,
            {integers_,
             g_.add(Op::bit_or, {integers_, number(full(DType::I32), 1)})});
        full_.push_back(
            g_.add(Op::cast, {integers_}, ir::CastAttrs{DType::F32}));
        break;
      default:
        if (kept_.empty()) break;
        full_.push_back(
            g_.add(cheap[below(4)], {any_full(), spread(kept_.back())}));
        break;
    }
  }

  /// [batch, size, k] or [batch, k, size], `axis` is where k is.
  struct Operand {
    int way = 0, axis = 0;
    NodeId input = -1;
    Shape shape;
  };
  Operand operand(int64_t batch, int64_t size, int64_t k) {
    Operand out;
    out.way = below(6);
    out.axis = 1 + below(2);
    out.shape = out.axis == 1 ? Shape{batch, k, size} : Shape{batch, size, k};
    Type type{out.way == 4 ? DType::F16 : DType::F32, out.shape};
    if (out.way == 0)
      type.shape = {batch, out.shape[1].value() + 3, out.shape[2].value() + 1};
    if (out.way == 1) type.shape = {out.shape[1], batch, out.shape[2]};
    if (out.way == 2) type.shape = {out.shape[1], out.shape[2]};
    out.input = g_.add_input(type);
    return out;
  }
  NodeId viewed(const Operand& x) {
    switch (x.way) {
      case 0:
        return g_.add(Op::slice, {x.input},
                      ir::SliceAttrs{{0, 3, 1}, {1, 1, 1}, x.shape});
      case 1: return g_.add(Op::transpose, {x.input}, ir::AxesAttrs{{1, 0, 2}});
      case 2:
        return g_.add(Op::broadcast, {x.input},
                      ir::BroadcastAttrs{x.shape, {1, 2}});
      case 3: return g_.add(Op::neg, {x.input});
      case 4: return g_.add(Op::cast, {x.input}, ir::CastAttrs{DType::F32});
      default: return x.input;
    }
  }

  /// Three rows that follow one another, for each row but two.
  Graph windows(int64_t rows, int64_t columns, int64_t kernels) {
    const NodeId x = g_.add_input({DType::F32, {rows, columns}});
    NodeId weights = g_.add_input({DType::F32, {kernels, 3}});
    std::vector<NodeId> parts;
    for (int64_t i = 0; i < 3; ++i)
      parts.push_back(g_.add(
          Op::reshape,
          {g_.add(Op::slice, {x},
                  ir::SliceAttrs{{i, 0}, {1, 1}, Shape{rows - 2, columns}})},
          ir::ShapeAttrs{{1, rows - 2, columns}}));
    const NodeId stack = g_.add(Op::concat, parts, ir::AxisAttrs{0});
    if (below(2)) weights = g_.add(Op::neg, {weights});
    follow(g_.add(Op::dot, {stack, weights}, ir::DotAttrs{{}, {}, {0}, {1}}));
    return std::move(g_);
  }

  void follow(NodeId c) {
    const Type type = g_.type(c);
    g_.outputs = {c};
    if (below(2)) g_.outputs = {g_.add(Op::tanh, {c})};
    if (below(3) == 0)
      g_.outputs.push_back(
          g_.add(Op::sum, {g_.outputs[0]},
                 ir::ReduceAttrs{{below(static_cast<size_t>(type.rank()))}}));
  }

  Graph g_;
  std::mt19937 random_;
  Shape shape_;
  std::vector<int> axes_;  // that are reduced
  std::vector<NodeId> full_, kept_;
  NodeId integers_ = -1;
};

}  // namespace

ir::Graph rows_graph(uint32_t seed) { return Maker(seed).rows(); }
ir::Graph product_graph(uint32_t seed) { return Maker(seed).product(); }

}  // namespace unisono::jit::testing
