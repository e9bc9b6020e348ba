// Large arrays: vectors that are interleaved, loops without masks, units shared
// among workers, stores that bypass the cache.
#include "jit/scalar/element.h"
#include "jit/target/target.h"
#include "tests/unit/jit/op_table/op_table.h"

using namespace unisono;
using namespace unisono::jit;
using namespace unisono::jit::testing;
using ir::NodeId;
using ir::Op;
using ir::Shape;
using ir::Type;

namespace {

/// Operations of each kind on one large operand and a second one.
void add_some(Trial& trial, DType dtype, const std::vector<NodeId>& x,
              int turn) {
  const Type type = trial.graph.type(x[0]);
  const int rank = type.rank();
  int count = 0;
  for (Op op : all_ops) {
    if (!ir::admits(op, dtype)) continue;
    const ir::Kind kind = ir::kind(op);
    // A third of the rows each time.
    if (++count % 3 != turn % 3) continue;
    const std::vector<Type> both = {type, type};
    if (kind == ir::Kind::map && ir::infer_type(op, both, ir::NoAttrs{}))
      trial.add(op, dtype, rank, {x[0], x[1]});
    if (kind == ir::Kind::reduce)
      trial.add(op, dtype, rank, {x[0]}, ir::ReduceAttrs{{turn % rank}});
    if (kind == ir::Kind::scan)
      trial.add(op, dtype, rank, {x[0]},
                ir::ScanAttrs{turn % rank, turn % 2 == 0});
    if (kind == ir::Kind::argreduce)
      trial.add(op, dtype, rank, {x[0]}, ir::ReduceAttrs{{turn % rank}});
    if (kind == ir::Kind::sort) trial.add(op, dtype, rank, {x[0]});
  }
  std::vector<int> axes;
  for (int i = rank; i-- > 0;) axes.push_back(i);
  trial.add(Op::transpose, dtype, rank, {x[turn % 2]}, ir::AxesAttrs{axes});
  trial.add(Op::concat, dtype, rank, {x[0], x[1]}, ir::AxisAttrs{turn % rank});
}

}  // namespace

TEST_CASE("table of operations: large arrays") {
  OpTable table(false);
  int turn = 0;
  for (DType dtype : all_dtypes)
    // Above and below the limits of interleaving and of masks.
    // The thin ones leave one row that is longer than a unit outside of the
    // squares of a transpose.
    for (const Shape& shape :
         {Shape{32771}, Shape{183, 181}, Shape{3, 65, 171}, Shape{524'309},
          Shape{733, 719}, Shape{33'003, 17}, Shape{17, 33'003}}) {
      Trial trial(static_cast<uint32_t>(++turn));
      const auto layout = [&](int by) {
        return static_cast<Layout>((turn * by) % layout_count);
      };
      const auto x =
          trial.operands({{{dtype, shape}, layout(3), Fill::numbers},
                          {{dtype, shape}, layout(5), Fill::divisors}});
      add_some(trial, dtype, x, turn);
      table.compare(trial, false);
    }
}

TEST_CASE("table of operations: arrays larger than the cache") {
  const int64_t cache = make_cpu_target()->machine().last_level_cache;
  OpTable table(false);
  int turn = 0;
  for (DType dtype : {DType::F32, DType::I8, DType::F64}) {
    // Just enough for stores that bypass the cache; aligned rows, and not.
    const int64_t elements = cache / 2 / byte_size(dtype);
    for (const Shape& shape :
         {Shape{elements + 37}, Shape{elements / 4096 + 1, 4096},
          Shape{elements / 1000 + 1, 1001}}) {
      Trial trial(static_cast<uint32_t>(++turn));
      const Type type{dtype, shape};
      const NodeId x = trial.graph.add_input({dtype, {shape.back()}});
      trial.inputs.push_back(
          filled(trial.graph.type(x), Fill::numbers, trial.random));
      const int rank = type.rank();
      const NodeId wide = rank == 1
                              ? x
                              : trial.graph.add(Op::broadcast, {x},
                                                ir::BroadcastAttrs{shape, {1}});
      const NodeId count =
          trial.graph.add(Op::iota, {}, ir::IotaAttrs{type, 0});
      const NodeId sum = trial.add(Op::add, dtype, rank, {wide, count});
      if (rank == 2)
        trial.add(Op::transpose, dtype, rank, {sum}, ir::AxesAttrs{{1, 0}});
      const NodeId zero = trial.graph.add_constant(
          {dtype, {}}, jit::element_bytes(dtype, int64_t{0}));
      const std::vector<ir::Dim> low(static_cast<size_t>(rank), 1);
      trial.add(Op::pad, dtype, rank, {wide, zero}, ir::PadAttrs{low, low});
      table.compare(trial);
    }
  }
}
