// Operations on elements, for all that ops.def says of them.
#include "jit/scalar/element_rows.h"
#include "tests/unit/jit/op_table/op_table.h"

using namespace unisono;
using namespace unisono::jit;
using namespace unisono::jit::testing;
using ir::NodeId;
using ir::Op;
using ir::Shape;

namespace {

int operand_count(Op op) {
  if (op == Op::select || op == Op::fma) return 3;
  if (op == Op::cast) return 1;
  REQUIRE(has_row(op));
  return with_row(op, []<class Row>() { return Row::operands; });
}

bool may_raise(Op op, DType dtype) {
  return is_integer(dtype) &&
         (op == Op::floor_div || op == Op::mod || op == Op::pow);
}

/// Elementary functions are much code.
bool is_elementary(Op op) {
#define ACCURACY(name, ...) \
  if (op == Op::name) return true;
#define ACCURACY2 ACCURACY
#define ACCURACY_APART ACCURACY
#include "tests/unit/jit/element/accuracy.def"
  return false;
}

/// All rows on the same operands: a condition, then three of the type.
void add_rows(Trial& trial, DType dtype, int rank, const std::vector<NodeId>& x,
              bool elementary = true) {
  for (Op op : all_ops) {
    if (ir::kind(op) != ir::Kind::map || !ir::admits(op, dtype)) continue;
    if (is_floating(dtype) && is_elementary(op) && !elementary) continue;
    if (op == Op::cast) {
      for (DType to : all_dtypes)
        if (to != dtype) trial.add(op, dtype, rank, {x[1]}, ir::CastAttrs{to});
      continue;
    }
    if (op == Op::select) {
      trial.add(op, dtype, rank, {x[0], x[1], x[2]});
      continue;
    }
    std::vector<NodeId> operands(x.begin() + 1,
                                 x.begin() + 1 + operand_count(op));
    trial.add(op, dtype, rank, operands);
  }
}

Layout layout_number(int i) { return static_cast<Layout>(i % layout_count); }

}  // namespace

TEST_CASE("table of operations: elements") {
  OpTable table;
  // Each layout and each rank, though not each pair.
  for (DType dtype : all_dtypes)
    for (int layout = 0; layout < layout_count; ++layout)
      for (bool elementary : {true, false}) {
        const int rank = (layout + (elementary ? 0 : 2)) % (most_rank + 1);
        const int turn = static_cast<int>(dtype) * 7 + layout * 5 + rank;
        Trial trial(static_cast<uint32_t>(turn));
        const Shape shape = shape_of(rank, turn, 300);
        const auto x = trial.operands(
            {{{DType::Bool, shape}, layout_number(layout + rank)},
             {{dtype, shape}, layout_number(layout)},
             {{dtype, shape}, layout_number(layout * 3 + rank)},
             {{dtype, shape}, layout_number(layout + 2 * rank)}});
        add_rows(trial, dtype, rank, x, elementary);
        table.compare(trial, false);
      }
  for (Op op : all_ops)
    if (ir::kind(op) == ir::Kind::map) table.check_covered(op, 0);
}

TEST_CASE("table of operations: every special element with every other") {
  OpTable table;
  for (DType dtype : all_dtypes) {
    const auto n = static_cast<int64_t>(special_bits(dtype).size());
    Trial trial(3);
    const Shape shape = {n * n + 13};
    const auto x =
        trial.operands({{{DType::Bool, shape}},
                        {{dtype, shape}, Layout::dense, Fill::pairs_x},
                        {{dtype, shape}, Layout::dense, Fill::pairs_y},
                        {{dtype, shape}}});
    add_rows(trial, dtype, 1, x);
    table.compare(trial, false);
  }
}

TEST_CASE("table of operations: checked elements that are no error") {
  OpTable table;
  for (DType dtype : all_dtypes)
    for (int rank = 0; rank <= most_rank; ++rank) {
      Trial trial(static_cast<uint32_t>(rank));
      const Shape shape = shape_of(rank, static_cast<int>(dtype) + rank);
      const auto x = trial.operands(
          {{{dtype, shape}, layout_number(rank)},
           {{dtype, shape}, layout_number(rank + 2), Fill::divisors},
           {{dtype, shape}, Layout::dense, Fill::exponents}});
      for (Op op : all_ops)
        if (may_raise(op, dtype))
          trial.add(op, dtype, rank, {x[0], op == Op::pow ? x[2] : x[1]});
      table.compare(trial);
    }
}
