// Moves, sources, gather and scatter, for all that ops.def says of them.
#include <algorithm>
#include <numeric>

#include "jit/scalar/element.h"
#include "tests/unit/jit/op_table/op_table.h"

using namespace unisono;
using namespace unisono::jit;
using namespace unisono::jit::testing;
using ir::Dim;
using ir::NodeId;
using ir::Op;
using ir::Shape;
using ir::Type;

namespace {

Layout layout_number(int i) { return static_cast<Layout>(i % layout_count); }

std::vector<int> axes_of(int rank, int set) {
  std::vector<int> axes;
  for (int i = 0; i < rank; ++i)
    if (set >> i & 1) axes.push_back(i);
  return axes;
}

/// Makes one kind of move of x in all its forms.
class Moves {
 public:
  Moves(Trial& trial, NodeId x, NodeId other, NodeId value)
      : trial_(trial),
        x_(x),
        other_(other),
        value_(value),
        type_(trial.graph.type(x)) {}

  void add(Op op) {
    op_ = op;
    if (op == Op::reshape) reshape();
    if (op == Op::transpose) transpose();
    if (op == Op::broadcast) broadcast();
    if (op == Op::slice) slice();
    if (op == Op::pad) pad();
    if (op == Op::flip) flip();
    if (op == Op::concat) concat();
  }

 private:
  int rank() const { return type_.rank(); }
  int64_t size(int axis) const { return type_.shape[axis].value(); }
  void move(std::vector<NodeId> inputs, ir::Attrs attrs) {
    trial_.add(op_, type_.dtype, rank(), std::move(inputs), std::move(attrs));
  }

  void reshape() {
    const int64_t n = type_.elements();
    for (const Shape& shape : {Shape{n}, Shape{n, 1}, Shape{1, n, 1, 1}})
      move({x_}, ir::ShapeAttrs{shape});
    for (int64_t d : {2, 3, 5, 64})
      if (n % d == 0) {
        move({x_}, ir::ShapeAttrs{{d, n / d}});
        move({x_}, ir::ShapeAttrs{{1, n / d, d}});
      }
    Shape turned = type_.shape;
    std::reverse(turned.begin(), turned.end());
    move({x_}, ir::ShapeAttrs{turned});
  }
  void transpose() {
    std::vector<int> axes(static_cast<size_t>(rank()));
    std::iota(axes.begin(), axes.end(), 0);
    do {
      if (rank() == 4 && trial_.below(3)) continue;
      move({x_}, ir::AxesAttrs{axes});
    } while (std::next_permutation(axes.begin(), axes.end()));
    std::iota(axes.rbegin(), axes.rend(), 0);
    move({x_}, ir::AxesAttrs{axes});
  }
  void broadcast() {
    // Axes of other sizes among the operand's own.
    for (int before = 0; before <= rank(); ++before)
      for (int64_t extra : {0, 1, 3}) {
        ir::BroadcastAttrs a{type_.shape, {}};
        a.shape.insert(a.shape.begin() + before, Dim(extra));
        for (int i = 0; i < rank(); ++i) {
          a.axes.push_back(i < before ? i : i + 1);
          if (size(i) == 1) a.shape[a.axes.back()] = extra + 2;
        }
        move({x_}, a);
      }
    ir::BroadcastAttrs front{type_.shape, {}};
    front.shape.insert(front.shape.begin(), {2, 3});
    for (int i = 0; i < rank(); ++i) front.axes.push_back(i + 2);
    move({x_}, front);
  }
  void slice() {
    for (int form = 0; form < 8; ++form) {
      ir::SliceAttrs a;
      for (int i = 0; i < rank(); ++i) {
        const int64_t n = size(i);
        const bool whole = form < rank() && form != i;
        const int64_t start = whole || n == 0 ? 0 : trial_.below(n);
        const int64_t step = whole ? 1 : 1 + trial_.below(3);
        const int64_t most = n == 0 ? 0 : (n - start + step - 1) / step;
        a.start.push_back(start);
        a.step.push_back(step);
        a.size.push_back(whole ? most : trial_.below(most + 1));
      }
      move({x_}, a);
    }
    // A step that leads beyond the axis, never taken.
    ir::SliceAttrs far;
    for (int i = 0; i < rank(); ++i) {
      far.start.push_back(0);
      far.step.push_back(INT64_MAX / 2);
      far.size.push_back(size(i) > 0);
    }
    move({x_}, far);
  }
  void pad() {
    for (int form = 0; form < 5; ++form) {
      ir::PadAttrs a;
      for (int i = 0; i < rank(); ++i) {
        const bool none = form < 2 && i % 2 == form;
        a.low.push_back(none ? 0 : trial_.below(3));
        a.high.push_back(none ? 0 : trial_.below(form == 4 ? 70 : 3));
      }
      if (element_count(type_.shape).value() > 3000 && form == 4) continue;
      move({x_, value_}, a);
    }
  }
  void flip() {
    for (int set = 0; set < 1 << rank(); ++set)
      move({x_}, ir::AxesAttrs{axes_of(rank(), set)});
  }
  void concat() {
    for (int axis = 0; axis < rank(); ++axis) {
      ir::SliceAttrs a;
      for (int i = 0; i < rank(); ++i) {
        a.start.push_back(0);
        a.step.push_back(1);
        a.size.push_back(i == axis ? size(i) / 2 : size(i));
      }
      const NodeId half = trial_.graph.add(Op::slice, {other_}, a);
      move({x_}, ir::AxisAttrs{axis});
      move({x_, other_}, ir::AxisAttrs{axis});
      move({half, x_, x_, half}, ir::AxisAttrs{axis});
    }
  }

  Trial& trial_;
  NodeId x_, other_, value_;
  Type type_;
  Op op_ = Op::reshape;
};

int least_rank(Op op) { return op == Op::concat ? 1 : 0; }

}  // namespace

TEST_CASE("table of operations: moves") {
  OpTable table;
  for (DType dtype : all_dtypes)
    for (int rank = 0; rank <= most_rank; ++rank)
      for (int again = 0; again < 2; ++again) {
        const int turn = static_cast<int>(dtype) * 3 + rank * 5 + again * 4;
        Trial trial(static_cast<uint32_t>(turn));
        const Shape shape = shape_of(rank, turn, again ? 700 : 5000);
        const auto x =
            trial.operands({{{dtype, shape}, layout_number(turn)},
                            {{dtype, shape}, layout_number(again + rank)},
                            {{dtype, {}}, layout_number(turn + rank)}});
        Moves moves(trial, x[0], x[1], x[2]);
        for (Op op : all_ops)
          if (ir::kind(op) == ir::Kind::move) moves.add(op);
        table.compare(trial);
      }
  for (Op op : all_ops)
    if (ir::kind(op) == ir::Kind::move) table.check_covered(op, least_rank(op));
}

TEST_CASE("table of operations: sources") {
  OpTable table;
  for (DType dtype : all_dtypes)
    for (int rank = 0; rank <= most_rank; ++rank)
      for (int turn = rank; turn < rank + 3; ++turn) {
        Trial trial(static_cast<uint32_t>(turn));
        const Type type{dtype, shape_of(rank, turn * 3 + rank)};
        const auto x = trial.operands({{type, Layout::dense},
                                       {type, Layout::splat},
                                       {type, Layout::literal}});
        trial.output(Op::input, dtype, rank, x[0], true);
        trial.output(Op::input, dtype, rank, x[0], true);
        trial.output(Op::constant, dtype, rank, x[1], true);
        trial.output(Op::constant, dtype, rank, x[2], true);
        // Sources that something is computed from, too.
        const NodeId masked =
            trial.graph.add(Op::eq, {x[2], x[0]}, ir::NoAttrs{});
        trial.output(Op::constant, dtype, rank, masked, true);
        for (int axis = 0; axis < rank && !is_bool(dtype); ++axis) {
          const NodeId counted =
              trial.add(Op::iota, dtype, rank, {}, ir::IotaAttrs{type, axis});
          const NodeId less = trial.graph.add(Op::lt, {counted, x[0]});
          trial.output(Op::iota, dtype, rank, less, true);
        }
        table.compare(trial);
      }
  for (Op op : all_ops) {
    if (ir::kind(op) != ir::Kind::source) continue;
    for (DType dtype : all_dtypes) {
      const bool counts = op == Op::iota;  // not in bools
      for (int rank = counts; rank <= most_rank; ++rank)
        if (!counts || !is_bool(dtype)) table.check_covered(op, dtype, rank);
    }
  }
}

namespace {

/// Index arrays of a shape for an axis of `size` elements: from either end, or
/// anything if `wild`.
HostArray indices(const Type& type, int64_t size, bool wild, Trial& trial) {
  HostArray out{type, {}};
  for (int64_t n = type.elements(); n-- > 0;) {
    int64_t i = size == 0 ? 0 : trial.below(2 * size) - size;
    if (wild && trial.below(3) == 0)
      i = trial.below(2) ? size + trial.below(3) : -size - 1 - trial.below(3);
    if (wild && trial.below(9) == 0)
      i = type.dtype == DType::I32 ? INT32_MIN : INT64_MAX;
    for (uint8_t b : jit::element_bytes(type.dtype, i)) out.bytes.push_back(b);
  }
  return out;
}

/// Axes that are indexed, in the order of the index arrays.
std::vector<int> indexed_axes(Trial& trial, int rank) {
  std::vector<int> axes(static_cast<size_t>(rank));
  std::iota(axes.begin(), axes.end(), 0);
  std::shuffle(axes.begin(), axes.end(), trial.random);
  axes.resize(1 + static_cast<size_t>(trial.below(std::min(rank, 3))));
  return axes;
}

/// gather, scatter and scatter_add with the same indices.
void try_indices(OpTable& table, DType dtype, int rank, int turn) {
  Trial trial(static_cast<uint32_t>(turn));
  const Type type{dtype, shape_of(rank, turn, turn % 4 ? 300 : 5000)};
  const std::vector<int> axes = indexed_axes(trial, rank);
  // Unchecked, any index will do, even of an axis without elements.
  const bool wild = turn % 3 == 0;
  Shape positions = shape_of(turn % 3, turn / 3, turn % 4 ? 130 : 8);
  for (int axis : axes)
    if (type.shape[axis] == Dim(0) && !wild) positions = {3, 0};
  Type part{dtype, positions};
  for (int i = 0; i < rank; ++i)
    if (std::find(axes.begin(), axes.end(), i) == axes.end())
      part.shape.push_back(type.shape[i]);
  const Type index{turn % 2 ? DType::I32 : DType::I64, positions};
  std::vector<Operand> operands = {
      {type, layout_number(turn)},
      {part, layout_number(turn + 4)},
      {part, layout_number(turn + 4), Fill::numbers}};
  // The indices are the last inputs, dense: they are set below.
  operands.insert(operands.end(), axes.size(), {index, Layout::dense});
  const auto x = trial.operands(operands);
  for (size_t i = 0; i < axes.size(); ++i)
    trial.inputs[trial.inputs.size() - axes.size() + i] =
        indices(index, type.shape[axes[i]].value(), wild, trial);
  const ir::IndexAttrs attrs{axes, !wild};
  for (Op op : all_ops) {
    if (ir::kind(op) != ir::Kind::index || !ir::admits(op, dtype)) continue;
    std::vector<NodeId> inputs = {x[0]};
    if (op == Op::scatter) inputs.push_back(x[1]);
    if (op == Op::scatter_add) inputs.push_back(x[2]);
    inputs.insert(inputs.end(), x.begin() + 3, x.end());
    trial.add(op, dtype, rank, inputs, attrs);
  }
  table.compare(trial);
}

}  // namespace

TEST_CASE("table of operations: gather and scatter") {
  OpTable table;
  for (DType dtype : all_dtypes)
    for (int rank = 1; rank <= most_rank; ++rank)
      for (int again = 0; again < 7; ++again)
        try_indices(table, dtype, rank,
                    again + rank * 7 + static_cast<int>(dtype) * 29);
  for (Op op : all_ops)
    if (ir::kind(op) == ir::Kind::index) table.check_covered(op, 1);
}
