// Reductions, running reductions, positions of extrema and sorts, for all that
// ops.def says of them.
#include "tests/unit/jit/op_table/op_table.h"

using namespace unisono;
using namespace unisono::jit;
using namespace unisono::jit::testing;
using ir::NodeId;
using ir::Op;
using ir::Shape;

namespace {

std::vector<int> axes_of(int rank, int set) {
  std::vector<int> axes;
  for (int i = 0; i < rank; ++i)
    if (set >> i & 1) axes.push_back(i);
  return axes;
}

Layout layout_number(int i) { return static_cast<Layout>(i % layout_count); }

/// Ordinary numbers mostly: sums of special ones are NaN.
Fill fill_number(int i) {
  constexpr Fill fills[] = {Fill::numbers, Fill::numbers, Fill::coarse,
                            Fill::numbers, Fill::special, Fill::zeros};
  return fills[static_cast<size_t>(i) % std::size(fills)];
}

/// A shape whose axis `place` is long.
Shape long_at(int rank, int place, int64_t size) {
  Shape shape(static_cast<size_t>(rank), ir::Dim(1));
  for (int i = 0; i < rank; ++i)
    shape[i] = i == place ? size : size > 1000 ? 1 + i % 2 : 2 + i;
  return shape;
}

/// Reductions of x along some axes.
void add_reductions(Trial& trial, DType dtype, const std::vector<int>& axes,
                    NodeId x) {
  const ir::Type type = trial.graph.type(x);
  const bool empty = axes.size() == 1 && type.shape[axes[0]] == ir::Dim(0);
  for (Op op : all_ops) {
    if (!ir::admits(op, dtype)) continue;
    if (ir::kind(op) == ir::Kind::reduce)
      for (auto order : {ir::ReduceOrder::elements, ir::ReduceOrder::members})
        trial.add(op, dtype, type.rank(), {x}, ir::ReduceAttrs{axes, order});
    if (ir::kind(op) == ir::Kind::argreduce && axes.size() == 1 && !empty)
      trial.add(op, dtype, type.rank(), {x}, ir::ReduceAttrs{axes});
  }
}

constexpr int64_t chunks[] = {63, 64, 65, 4095, 4096, 4097, 8200, 129};

}  // namespace

TEST_CASE("table of operations: reductions") {
  OpTable table;
  for (DType dtype : all_dtypes)
    for (int rank = 0; rank <= most_rank; ++rank)
      for (int set = 0; set < 1 << rank; ++set)
        for (int again = 0; again < (rank < 3 ? 2 : 1); ++again) {
          const int turn =
              static_cast<int>(dtype) * 5 + rank + set * 3 + again * 5;
          Trial trial(static_cast<uint32_t>(turn));
          const auto x = trial.operands({{{dtype, shape_of(rank, turn)},
                                          layout_number(turn),
                                          fill_number(turn + set)}});
          add_reductions(trial, dtype, axes_of(rank, set), x[0]);
          table.compare(trial);
        }
  for (Op op : all_ops) {
    if (ir::kind(op) == ir::Kind::reduce) table.check_covered(op, 0);
    if (ir::kind(op) == ir::Kind::argreduce) table.check_covered(op, 1);
  }
}

TEST_CASE("table of operations: reductions around the limits of chunks") {
  OpTable table;
  int turn = 0;
  for (DType dtype : all_dtypes)
    for (int64_t size : chunks) {
      const int rank = 1 + ++turn % 3;
      Trial trial(static_cast<uint32_t>(turn));
      const int place = turn / 3 % rank;
      const auto x =
          trial.operands({{{dtype, long_at(rank, place, size)},
                           turn % 2 ? Layout::dense : layout_number(turn),
                           turn % 5 ? Fill::numbers : Fill::coarse}});
      add_reductions(trial, dtype, {place}, x[0]);
      table.compare(trial);
    }
}

TEST_CASE("table of operations: running reductions") {
  OpTable table;
  int turn = 0;
  for (DType dtype : all_dtypes)
    for (int rank = 1; rank <= most_rank; ++rank)
      for (int axis = 0; axis < rank; ++axis)
        for (bool around_chunks : {false, true}) {
          ++turn;
          Trial trial(static_cast<uint32_t>(turn));
          const Shape shape = around_chunks
                                  ? long_at(rank, axis, chunks[turn / 3 % 8])
                                  : shape_of(rank, turn);
          const auto x = trial.operands(
              {{{dtype, shape}, layout_number(turn * 3), fill_number(turn)}});
          for (Op op : all_ops)
            if (ir::kind(op) == ir::Kind::scan && ir::admits(op, dtype))
              for (bool reverse : {false, true})
                trial.add(op, dtype, rank, x, ir::ScanAttrs{axis, reverse});
          table.compare(trial);
        }
  for (Op op : all_ops)
    if (ir::kind(op) == ir::Kind::scan) table.check_covered(op, 1);
}

TEST_CASE("table of operations: sorts") {
  OpTable table;
  int turn = 0;
  for (DType dtype : all_dtypes)
    for (int rank = 1; rank <= most_rank; ++rank)
      for (int layout = 0; layout < layout_count; ++layout) {
        ++turn;
        Trial trial(static_cast<uint32_t>(turn));
        const Shape shape = turn % 2 ? shape_of(rank, turn / 2)
                                     : long_at(rank, rank - 1, turn % 100);
        const auto x = trial.operands(
            {{{dtype, shape}, layout_number(layout), fill_number(turn)}});
        for (Op op : all_ops)
          if (ir::kind(op) == ir::Kind::sort) trial.add(op, dtype, rank, x);
        table.compare(trial);
      }
  for (Op op : all_ops)
    if (ir::kind(op) == ir::Kind::sort) table.check_covered(op, 1);
}
