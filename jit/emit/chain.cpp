// The fma chains of products that are no panels: vectors lie along an axis that
// the product keeps, every lane has a chain of its own. What the lanes read
// lies side by side (a row of a matrix, whose columns are the lanes), or along
// k, where it is transposed in registers. Either way memory is read once, in
// order. Other reductions of columns whose rows are added one after another are
// as the former (row_sums.h).
#include "jit/emit/nest.h"
#include "jit/ir/reduce_order.h"

namespace unisono::jit {

using llvm::Value;

/// `rounds` times as many elements as a square has, from element `start` of the
/// reduced axes on, combined with `state`.
std::vector<Value*> NestEmitter::chain_in_squares(Point& point,
                                                  const Values& values,
                                                  const Loop& loop,
                                                  Value* start, int64_t rounds,
                                                  std::vector<Value*> state) {
  const int last = static_cast<int>(nest_.extents.size()) - 1;
  return carried_loop(
      index_constant(rounds), std::move(state),
      [&](Value* round, llvm::ArrayRef<Value*> current) {
        Value* first = b_.CreateAdd(
            start, b_.CreateMul(round, index_constant(plan_.square)));
        Point at = point;
        set_reduced_index(at, first, 0);
        at.vector_axis = point.vector_axis;
        const auto lines = load_lines(at, last, plan_.square);
        Accumulators sums = unflatten(loop, current);
        Value* begin = at.index[last];
        for (int64_t k = 0; k < plan_.square; ++k) {
          at.index[last] = b_.CreateAdd(begin, index_constant(k));
          Values inside = values;
          for (size_t e = 0; e < lines.size(); ++e)
            if (!lines[e].empty()) inside[e] = lines[e][k];
          compute(loop.needed, at, inside);
          sums = combine_all(loop, sums, elements(loop, inside, at), true);
        }
        return flatten(sums);
      });
}

/// A unit is a block of columns, whose sums so far lie on the stack: some rows
/// are added to all of them at once, so that rows are read in long pieces.
void NestEmitter::emit_wide_columns(Point& point, Value* block) {
  const int axis = plan_.vector_axis;
  const auto lanes = static_cast<unsigned>(plan_.lanes);
  const auto [begin, end] = block_range(axis, block);
  fix_unit_parts(point);
  const Loop loop = loop_of_phase(0);
  EmitContext c = context(lanes);
  llvm::IRBuilder<> entry(&frame_.function->getEntryBlock(),
                          frame_.function->getEntryBlock().begin());
  std::vector<llvm::Type*> types;
  std::vector<Value*> arrays;  // one for each reduction
  for (const int r : loop.reductions) {
    types.push_back(register_type(c, nest_.reductions[r].dtype));
    arrays.push_back(entry.CreateAlloca(
        types.back(), entry.getInt32(static_cast<uint32_t>(
                          (plan_.block + plan_.lanes - 1) / plan_.lanes))));
  }
  // Calls body with the places of a vector's sums.
  const auto each = [&, first = begin, last = end](auto&& body) {
    vector_loop(first, last, lanes, [&](Value* index, unsigned, Value* mask) {
      Point at = point;
      at.index[axis] = index;
      at.lanes = lanes;
      at.mask = mask;
      Value* number = b_.CreateUDiv(b_.CreateSub(index, first),
                                    index_constant(plan_.lanes));
      std::vector<Value*> sums;
      for (size_t i = 0; i < arrays.size(); ++i)
        sums.push_back(b_.CreateGEP(types[i], arrays[i], number));
      body(at, sums);
    });
  };
  const auto load = [&](const std::vector<Value*>& sums) {
    Accumulators out;
    for (size_t i = 0; i < sums.size(); ++i)
      out.push_back({b_.CreateLoad(types[i], sums[i])});
    return out;
  };
  const auto put = [&](const Accumulators& totals,
                       const std::vector<Value*>& sums) {
    for (size_t i = 0; i < sums.size(); ++i)
      b_.CreateStore(totals[i][0], sums[i]);
  };
  const Values none(nest_.exprs.size());
  each([&](Point&, const std::vector<Value*>& sums) {
    Accumulators totals;
    for (const int r : loop.reductions)
      totals.push_back(neutral(nest_.reductions[r], lanes, none));
    put(totals, sums);
  });
  const auto add_rows = [&](Value* first, int64_t rows) {
    if (rows_) {
      Value* run =
          b_.CreateMul(point.index[0], index_constant(orders().reduce_run));
      Value* row = b_.CreateAdd(run, first);
      rows_->emit(row, b_.CreateAdd(row, index_constant(rows)));
    }
    each([&](Point& at, const std::vector<Value*>& sums) {
      Accumulators totals = load(sums);
      for (int64_t k = 0; k < rows; ++k) {
        Point here = at;
        set_reduced_index(here, b_.CreateAdd(first, index_constant(k)), 0);
        here.vector_axis = axis;
        prefetch_rows(loop.needed, here, rows);
        Values inside = none;
        compute(loop.needed, here, inside);
        store_outputs(loop.stores, here, inside);
        totals = combine_all(loop, totals, elements(loop, inside, here), true);
      }
      put(totals, sums);
    });
  };
  const int64_t count = reduced_points(), rest = count % plan_.rows_at_once;
  this->loop(index_constant(0), index_constant(count - rest),
             plan_.rows_at_once,
             [&](Value* first) { add_rows(first, plan_.rows_at_once); });
  if (rest) add_rows(index_constant(count - rest), rest);
  each([&](Point& at, const std::vector<Value*>& sums) {
    Values values(nest_.exprs.size());
    outer_values(at, values, 0);
    outer_stores(at, values, 0);
    finish_phase(values, loop, load(sums));
    outer_values(at, values, 1);
    outer_stores(at, values, 1);
  });
}

}  // namespace unisono::jit
