// Rows in shared memory. Where several loops go over the same row (softmax,
// layer norm), each element that a later one needs again is kept there, so that
// it is loaded, and an exponential computed, once: all threads do the row with
// wide accesses (fill_rows), then chunks are combined from what they left. What
// does not fit is loaded and computed again.
#include <algorithm>
#include <bit>

#include "jit/emit/grid_nest.h"
#include "jit/kernel/group.h"
#include "runtime/tuning/tuning.h"

namespace unisono::jit {

using llvm::Value;

namespace {

bool is_memory_access(const Expr& expr) {
  return expr.kind == Expr::Kind::load || expr.kind == Expr::Kind::gather;
}

}  // namespace

/// Elements that may fail are computed once, so there is no going over them
/// here and there.
bool GridEmitter::keeps_rows() const {
  for (size_t e = 0; e < nest_.exprs.size(); ++e)
    if (inner_[e] && nest_.exprs[e].checked) return false;
  switch (schedule_.workers) {
    case Workers::thread: return false;
    case Workers::warp: return reduced_points() >= tuning().gpu_least_warp_row;
    case Workers::block: return true;
  }
  __builtin_unreachable();
}

/// What the loop computes where elements of rows are read.
std::vector<bool> GridEmitter::needed_of(const Loop& loop,
                                         bool with_stores) const {
  std::vector<bool> needed(nest_.exprs.size());
  for (int r : loop.reductions) {
    const Reduction& reduction = nest_.reductions[r];
    needed[reduction.operand] = true;
    if (reduction.second >= 0) needed[reduction.second] = true;
  }
  if (with_stores)
    for (int s : loop.stores) needed[nest_.stores[s].value] = true;
  for (size_t e = needed.size(); e-- > 0;) {
    if (!needed[e] || rows_[e].place >= 0) continue;
    for (ExprId operand : nest_.exprs[e].operands) needed[operand] = true;
  }
  return needed;
}

bool GridEmitter::is_read_later(size_t e, const Loop& loop) const {
  int last = 0;
  for (const Expr& expr : nest_.exprs) last = std::max(last, expr.phase);
  for (int phase = loop.phase + 1; phase <= last; ++phase)
    if (needed_of(loop_of_phase(phase), true)[e]) return true;
  return false;
}

/// Makes a place for a row, if there is one: that of a row which nobody reads
/// once this one is there, or a new one.
bool GridEmitter::keep_row(size_t e, const Loop& loop) {
  const int64_t bytes = byte_size(nest_.exprs[e].dtype);
  const int64_t lines =
      schedule_.workers == Workers::warp ? int64_t{block_warps} : 1;
  const int64_t size = (bytes * lines * reduced_points() + 15) / 16 * 16;
  rows_[e] = {.place = row_bytes_, .bytes = bytes};
  const std::vector<bool> reads = needed_of(loop, false);
  for (size_t old = 0; old < rows_.size(); ++old) {
    const Row row = rows_[old];
    if (!row.filled || row.bytes != bytes || reads[old] ||
        is_read_later(old, loop))
      continue;
    const auto users = std::ranges::count(rows_, row.place, &Row::place);
    if (users > 1) continue;
    rows_[e].place = row.place;
    return true;
  }
  if (row_bytes_ + size > tuning().gpu_most_row_bytes) {
    rows_[e] = {};
    return false;
  }
  row_bytes_ += size;
  grid_.shared_bytes = std::max(grid_.shared_bytes, row_bytes_);
  return true;
}

/// Decides which elements the loop leaves for later ones; the last expressions
/// come first, as what they are made of may not be needed then.
std::vector<ExprId> GridEmitter::keep_rows(const Loop& loop) {
  std::vector<ExprId> fresh;
  const std::vector<bool> needed = needed_of(loop, true);
  for (size_t e = needed.size(); e-- > 0;) {
    const Expr& expr = nest_.exprs[e];
    const bool worth = is_memory_access(expr) ||
                       (expr.kind == Expr::Kind::operation &&
                        flops(expr.op) >= tuning().gpu_least_kept_flops);
    if (!needed[e] || !inner_[e] || rows_[e].place >= 0 || !worth ||
        !is_read_later(e, loop) || !keep_row(e, loop))
      continue;
    fresh.push_back(static_cast<ExprId>(e));
  }
  return fresh;
}

/// The fresh rows are there now; those in whose places they lie are gone.
void GridEmitter::settle_rows(const std::vector<ExprId>& fresh) {
  for (ExprId e : fresh) {
    for (Row& row : rows_)
      if (row.filled && row.place == rows_[e].place) forget_row(row);
    rows_[e].filled = true;
  }
}

/// What nobody has read from shared memory need not have been put there.
void GridEmitter::forget_row(Row& row) {
  if (!row.read)
    for (llvm::Instruction* write : row.writes) write->eraseFromParent();
  row = {};
}

/// The address of element `flat` of this worker's row.
Value* GridEmitter::row_element(size_t e, Value* flat) {
  EmitContext c = context(0);
  if (schedule_.workers == Workers::warp)
    flat = b_.CreateAdd(
        b_.CreateMul(wide(grid_.warp), index_constant(reduced_points())), flat);
  Value* row = b_.CreateConstInBoundsGEP1_64(
      b_.getInt8Ty(), grid_.shared, static_cast<uint64_t>(rows_[e].place));
  return b_.CreateGEP(memory_type(c, nest_.exprs[e].dtype), row, flat);
}

std::vector<Value*> GridEmitter::read_row(size_t e, Value* flat,
                                          int64_t width) {
  rows_[e].read = true;
  return read_wide(row_element(e, flat), nest_.exprs[e].dtype, width);
}

/// Elements that a thread takes at once, so that its accesses have 16 bytes.
int64_t GridEmitter::row_width(const Loop& loop,
                               const std::vector<bool>& needed,
                               const std::vector<ExprId>& fresh) const {
  const auto axes = std::ranges::count(nest_.reduced, true);
  if (axes != 1) return 1;
  int64_t widest = 1;
  auto see = [&](DType dtype) {
    widest = std::max<int64_t>(widest, byte_size(dtype));
  };
  for (size_t e = 0; e < needed.size(); ++e)
    if (needed[e] && inner_[e] &&
        (rows_[e].filled || is_memory_access(nest_.exprs[e])))
      see(nest_.exprs[e].dtype);
  for (ExprId e : fresh) see(nest_.exprs[e].dtype);
  for (int s : loop.stores)
    see(frame_.kernel.arguments[nest_.stores[s].argument].dtype);
  const int64_t width = 16 / widest;
  return reduced_points() % width == 0 ? width : 1;
}

/// Elements of the row that a thread takes at once.
struct GridEmitter::RowGroup {
  Value* first = nullptr;
  Point at = {};
  std::vector<std::vector<Value*>> loaded = {};  // by expression
  std::vector<Values> values = {};               // by element
  class Pass;
};

/// Group `number` of the row, which is the thread's group `held` (-1: of which
/// nothing is held).
GridEmitter::RowGroup GridEmitter::open_group(Point& point,
                                              const std::vector<bool>& needed,
                                              Value* number, int64_t width,
                                              int held) {
  const auto axis = static_cast<int>(std::ranges::find(nest_.reduced, true) -
                                     nest_.reduced.begin());
  RowGroup group{.first = b_.CreateMul(number, index_constant(width)),
                 .at = point};
  set_reduced_index(group.at, group.first, 0);
  group.loaded.resize(nest_.exprs.size());
  for (size_t e = 0; e < nest_.exprs.size(); ++e) {
    const Expr& expr = nest_.exprs[e];
    if (!needed[e] || !inner_[e]) continue;
    const auto& values = rows_[e].held;
    if (rows_[e].filled && held >= 0 && !values.empty() &&
        static_cast<int64_t>(values[0].size()) == width)
      group.loaded[e] = values[static_cast<size_t>(held)];
    else if (rows_[e].filled)
      group.loaded[e] = read_row(e, group.first, width);
    else if (expr.kind == Expr::Kind::load && width > 1 &&
             aligned_along(expr.at, axis, width))
      group.loaded[e] =
          load_wide(expr, offset_at(expr.at, unit_parts_[e], group.at), width);
  }
  return group;
}

/// One pass over a row: the threads do the loop's stores and the fresh rows,
/// and combine what they meet of the loop's reductions.
class GridEmitter::RowGroup::Pass {
 public:
  /// `partials`: how many values the reductions are combined in; 0: they are
  /// not.
  Pass(GridEmitter& grid, Point& point, const Values& values, const Loop& loop,
       const std::vector<ExprId>& fresh, size_t partials)
      : g_(grid),
        point_(point),
        values_(values),
        loop_(loop),
        fresh_(fresh),
        combines_(partials > 0),
        needed_(grid.nest_.exprs.size()),
        axis_(static_cast<int>(std::ranges::find(grid.nest_.reduced, true) -
                               grid.nest_.reduced.begin())),
        parts_(loop.stores.size() + fresh.size() + partials) {
    const Nest& nest = grid.nest_;
    for (ExprId e : fresh) needed_[e] = true;
    for (int s : loop.stores) needed_[nest.stores[s].value] = true;
    if (combines_)
      for (int r : loop.reductions) needed_[nest.reductions[r].operand] = true;
    for (size_t e = needed_.size(); e-- > 0;)
      if (needed_[e] && !grid.rows_[e].filled)
        for (ExprId operand : nest.exprs[e].operands) needed_[operand] = true;
    width_ = grid.row_width(loop, needed_, fresh);
  }
  const std::vector<bool>& needed() const { return needed_; }
  int64_t width() const { return width_; }

  /// The groups with these numbers; `before` combined with them. They are the
  /// thread's groups from `held` on, of which it holds what they compute (-1:
  /// of which it holds nothing).
  std::vector<Value*> take(const std::vector<Value*>& numbers,
                           std::vector<Value*> before, int held) {
    std::vector<RowGroup> groups;
    for (size_t i = 0; i < numbers.size(); ++i)
      groups.push_back(
          g_.open_group(point_, needed_, numbers[i], width_,
                        held < 0 ? -1 : held + static_cast<int>(i)));
    auto all_groups = [&] {
      Computed out;
      for (RowGroup& group : groups)
        for (Value* value : compute(group)) out.push_back(value);
      return out;
    };
    Quotients& quotients = g_.quotients_;
    quotients.quick = quotients.usable != nullptr;
    quotients.least_bits = quotients.least = quotients.most = nullptr;
    Computed all = all_groups();
    if (quotients.quick) {
      quotients.quick = false;
      for (RowGroup& group : groups) g_.forget_quotients(group);
      all = g_.choose(g_.has_slow_quotients(), all, all_groups, true);
    }
    const size_t each = parts_ * static_cast<size_t>(width_);
    for (size_t i = 0; i < groups.size(); ++i) {
      const auto begin = all.begin() + static_cast<ptrdiff_t>(i * each);
      const Computed mine(begin, begin + static_cast<ptrdiff_t>(each));
      put(groups[i], mine, held >= 0);
      before = combine(mine, std::move(before));
    }
    return before;
  }

 private:
  /// What is stored of a group, what is kept, and what is combined, by element.
  using Computed = std::vector<Value*>;

  Point place_of(Value* first, int64_t i) {
    Point at = point_;
    g_.set_reduced_index(at, g_.b_.CreateAdd(first, g_.index_constant(i)), 0);
    return at;
  }

  Computed compute(RowGroup& group) {
    Computed out;
    group.values.resize(static_cast<size_t>(width_), values_);
    for (int64_t i = 0; i < width_; ++i) {
      Point at = place_of(group.first, i);
      Values& inside = group.values[static_cast<size_t>(i)];
      for (size_t e = 0; e < inside.size(); ++e)
        if (!group.loaded[e].empty())
          inside[e] = group.loaded[e][static_cast<size_t>(i)];
      g_.compute(needed_, at, inside);
      for (int s : loop_.stores)
        out.push_back(inside[g_.nest_.stores[s].value]);
      for (ExprId e : fresh_) out.push_back(inside[e]);
      if (combines_)
        for (Value* part : g_.flatten(g_.elements(loop_, inside, at)))
          out.push_back(part);
    }
    return out;
  }

  Computed part_of(const Computed& all, size_t part) const {
    Computed out;
    for (int64_t i = 0; i < width_; ++i)
      out.push_back(all[static_cast<size_t>(i) * parts_ + part]);
    return out;
  }

  void put(RowGroup& group, const Computed& all, bool holds) {
    for (size_t k = 0; k < fresh_.size(); ++k) {
      const auto e = static_cast<size_t>(fresh_[k]);
      const Computed mine = part_of(all, loop_.stores.size() + k);
      Row& row = g_.rows_[e];
      row.writes.push_back(g_.write_wide(g_.row_element(e, group.first),
                                         g_.nest_.exprs[e].dtype, mine));
      if (holds) row.held.push_back(mine);
    }
    for (size_t s = 0; s < loop_.stores.size(); ++s) {
      const int number = loop_.stores[s];
      const Store& output = g_.nest_.stores[number];
      const Computed stored = part_of(all, s);
      if (width_ > 1 && aligned_along(output.at, axis_, width_)) {
        g_.store_wide(
            output, g_.offset_at(output.at, g_.store_parts_[number], group.at),
            stored);
        continue;
      }
      for (int64_t i = 0; i < width_; ++i) {
        Point at = place_of(group.first, i);
        g_.store(output.at, g_.store_parts_[number], output.argument,
                 g_.frame_.kernel.arguments[output.argument].dtype,
                 stored[static_cast<size_t>(i)], at, false);
      }
    }
  }

  std::vector<Value*> combine(const Computed& all, std::vector<Value*> before) {
    const size_t first = loop_.stores.size() + fresh_.size();
    for (int64_t i = 0; i < width_ && !before.empty(); ++i) {
      const auto begin =
          all.begin() + static_cast<ptrdiff_t>(static_cast<size_t>(i) * parts_);
      before = g_.flatten(g_.combined(loop_, before,
                                      {begin + static_cast<ptrdiff_t>(first),
                                       begin + static_cast<ptrdiff_t>(parts_)},
                                      false));
    }
    return before;
  }

  GridEmitter& g_;
  Point& point_;
  const Values& values_;
  const Loop& loop_;
  const std::vector<ExprId>& fresh_;
  const bool combines_;
  std::vector<bool> needed_;
  const int axis_;
  const size_t parts_;
  int64_t width_ = 1;
};

/// A pass over the row by all threads; `state`, unless it is empty, combined
/// with what they meet.
std::vector<Value*> GridEmitter::fill_rows(Point& point, const Values& values,
                                           const Loop& loop,
                                           const std::vector<ExprId>& fresh,
                                           std::vector<Value*> state) {
  RowGroup::Pass pass(*this, point, values, loop, fresh, state.size());
  prepare_quotients(pass.needed(), values);
  // As many loads are under way at once as a thread has registers for.
  const int64_t step = workers(), all = reduced_points() / pass.width();
  const auto at_once =
      std::clamp<int64_t>(16 / pass.width(), 1, static_cast<int64_t>(unroll()));
  const int64_t rounds = all / (step * at_once);
  auto numbers_of = [&](Value* first, int64_t count) {
    std::vector<Value*> numbers;
    for (int64_t i = 0; i < count; ++i)
      numbers.push_back(b_.CreateAdd(
          first, b_.CreateAdd(worker(), index_constant(i * step))));
    return numbers;
  };
  // Those of 16 bits would be converted once more.
  const bool is_wide = std::ranges::all_of(
      fresh, [&](ExprId e) { return byte_size(nest_.exprs[e].dtype) >= 4; });
  if (is_wide && all % step == 0 &&
      all / step * pass.width() <= tuning().gpu_most_held) {
    for (int64_t done = 0; done < all / step; done += at_once)
      state = pass.take(numbers_of(index_constant(done * step),
                                   std::min(at_once, all / step - done)),
                        state, static_cast<int>(done));
    quotients_ = {};
    return state;
  }
  state = counted_loop(
      index_constant(rounds), state,
      [&](Value* round, llvm::ArrayRef<Value*> before) {
        return pass.take(
            numbers_of(b_.CreateMul(round, index_constant(step * at_once)),
                       at_once),
            before.vec(), -1);
      });
  for (int64_t done = rounds * step * at_once; done < all; done += step) {
    Value* number = b_.CreateAdd(worker(), index_constant(done));
    Value* exists = done + step <= all
                        ? b_.getTrue()
                        : b_.CreateICmpSLT(number, index_constant(all));
    state =
        choose(exists, state, [&] { return pass.take({number}, state, -1); });
  }
  quotients_ = {};
  return state;
}

/// Whether the loop's reductions have the same bits in whatever order they
/// combine.
bool GridEmitter::takes_any_order(const Loop& loop) const {
  return std::ranges::all_of(loop.reductions,
                             [&](int r) {
                               const Reduction& reduction = nest_.reductions[r];
                               if (reduction.kind != Reduction::Kind::combine)
                                 return false;
                               return reduction.op == ir::Op::maximum ||
                                      reduction.op == ir::Op::minimum ||
                                      (reduction.op == ir::Op::add &&
                                       is_integer(reduction.dtype));
                             }) &&
         !loop.reductions.empty();
}

/// The parts that the unit's workers have, combined in an order of their own;
/// all of them get the result.
NestEmitter::Accumulators GridEmitter::over_workers(const Loop& loop,
                                                    std::vector<Value*> parts) {
  for (int64_t half = warp_threads / 2; half > 0; half /= 2)
    parts = flatten(
        combined(loop, parts, shuffle_all(Shuffle::down, parts, half), false));
  if (schedule_.workers == Workers::warp)
    return unflatten(loop, shuffle_all(Shuffle::index, parts, 0));
  int64_t used = row_bytes_;
  std::vector<Value*> places;
  for (Value* part : parts)
    places.push_back(shared_array(part->getType(), block_warps, used));
  synchronise();  // nobody reads what was there before
  when(b_.CreateICmpEQ(grid_.lane, i32(0)), [&] {
    for (size_t i = 0; i < parts.size(); ++i)
      put_shared(places[i], wide(grid_.warp), parts[i]);
  });
  synchronise();
  Value* own = wide(b_.CreateAnd(grid_.lane, i32(block_warps - 1)));
  for (size_t i = 0; i < parts.size(); ++i)
    parts[i] = get_shared(places[i], parts[i]->getType(), own);
  for (int64_t half = block_warps / 2; half > 0; half /= 2)
    parts = flatten(
        combined(loop, parts, shuffle_all(Shuffle::down, parts, half), false));
  return unflatten(loop, shuffle_all(Shuffle::index, parts, 0));
}

// ---- quotients by what is the same for a whole row
// ---------------------------

/// Whether it is an x - max(x) of the nest's rows: at most 0, or NaN.
bool GridEmitter::is_below_zero(ExprId id) const {
  const Expr& expr = nest_.exprs[id];
  if (expr.kind != Expr::Kind::operation || expr.op != ir::Op::sub)
    return false;
  const ExprId x = expr.operands[0];
  auto is_cast_of = [](const Expr& e, DType from) {
    return e.kind == Expr::Kind::operation && e.op == ir::Op::cast &&
           e.operand_dtype == from;
  };
  // Floats of 16 bits are combined as what they are in f32.
  const Expr* most = &nest_.exprs[expr.operands[1]];
  const bool is_wide = is_cast_of(*most, DType::F32);
  if (is_wide) most = &nest_.exprs[most->operands[0]];
  if (most->kind != Expr::Kind::reduced) return false;
  const Reduction& reduction = nest_.reductions[most->reduction];
  if (reduction.kind != Reduction::Kind::combine ||
      reduction.op != ir::Op::maximum)
    return false;
  const Expr& operand = nest_.exprs[reduction.operand];
  return is_wide ? is_cast_of(operand, expr.dtype) && operand.operands[0] == x
                 : reduction.operand == x;
}

bool GridEmitter::is_from_zero_to_one(ExprId id) const {
  const Expr& expr = nest_.exprs[id];
  return expr.kind == Expr::Kind::operation && expr.op == ir::Op::exp &&
         is_below_zero(expr.operands[0]);
}

/// Reciprocals of what the loop divides its elements by.
void GridEmitter::prepare_quotients(const std::vector<bool>& needed,
                                    const Values& values) {
  quotients_ = {};
  quotients_.divisors.resize(nest_.exprs.size());
  for (size_t e = 0; e < needed.size(); ++e) {
    const Expr& expr = nest_.exprs[e];
    if (!needed[e] || !inner_[e] || rows_[e].filled ||
        expr.kind != Expr::Kind::operation || expr.op != ir::Op::div ||
        inner_[expr.operands[1]] || !values[expr.operands[1]])
      continue;
    EmitContext c = context(0);
    const EmittedDivisor divisor =
        emit_divisor(c, expr.dtype, values[expr.operands[1]]);
    if (!divisor.usable) continue;
    quotients_.divisors[e] = divisor;
    quotients_.usable = quotients_.usable
                            ? b_.CreateAnd(quotients_.usable, divisor.usable)
                            : divisor.usable;
  }
}

/// What quotients have a part in is computed again.
void GridEmitter::forget_quotients(RowGroup& group) {
  std::vector<bool> gone(nest_.exprs.size());
  for (size_t e = 0; e < gone.size(); ++e) {
    gone[e] = quotients_.divisors[e].usable != nullptr;
    for (ExprId operand : nest_.exprs[e].operands)
      gone[e] = gone[e] || gone[operand];
    for (Values& values : group.values)
      if (gone[e]) values[e] = nullptr;
  }
}

/// Notes a numerator of f32; of exponentials below one 0 is a quick one, too.
void GridEmitter::see_numerator(ExprId id, Value* x) {
  auto join = [&](Value*& all, llvm::Intrinsic::ID how, Value* one) {
    all = all ? b_.CreateBinaryIntrinsic(how, all, one) : one;
  };
  if (is_from_zero_to_one(id)) {
    Value* bits = b_.CreateBitCast(x, b_.getInt32Ty());
    return join(quotients_.least_bits, llvm::Intrinsic::umin,
                b_.CreateAdd(bits, i32(-1)));
  }
  Value* size = b_.CreateUnaryIntrinsic(llvm::Intrinsic::fabs, x);
  join(quotients_.least, llvm::Intrinsic::minimum, size);
  join(quotients_.most, llvm::Intrinsic::maximum, size);
}

/// Whether quotients since `quick` was set have to be computed as such.
Value* GridEmitter::has_slow_quotients() {
  Value* slow = b_.CreateNot(quotients_.usable);
  auto number = [&](float constant) {
    return llvm::ConstantFP::get(b_.getFloatTy(), constant);
  };
  if (quotients_.least_bits)
    slow = b_.CreateOr(
        slow,
        b_.CreateICmpULT(quotients_.least_bits,
                         i32(std::bit_cast<int32_t>(least_numerator) - 1)));
  if (quotients_.least) {
    // NaN is slow.
    slow = b_.CreateOr(
        slow, b_.CreateFCmpULT(quotients_.least, number(least_numerator)));
    slow = b_.CreateOr(
        slow, b_.CreateFCmpUGT(quotients_.most, number(most_numerator)));
  }
  return slow;
}

Value* GridEmitter::operation(const Expr& expr, ExprId id, Point& point,
                              const Values& values) {
  if (expr.op == ir::Op::exp && is_below_zero(expr.operands[0])) {
    EmitContext c = context(0);
    if (Value* result =
            emit_exp_below_zero(c, expr.dtype, values[expr.operands[0]]))
      return result;
  }
  if (usual_.quick && usual_.numbers.quick[id]) {
    EmitContext c = context(0);
    llvm::SmallVector<Value*, 2> operands;
    for (ExprId operand : expr.operands) operands.push_back(values[operand]);
    return emit_usual(c, expr.op, operands);
  }
  if (quotients_.quick && quotients_.divisors[id].usable) {
    EmitContext c = context(0);
    Value* x = values[expr.operands[0]];
    if (expr.dtype == DType::F32) see_numerator(expr.operands[0], x);
    return emit_quotient(c, expr.dtype, x, quotients_.divisors[id]);
  }
  if (Value* result = scaled_sum(expr, values)) return result;
  return NestEmitter::operation(expr, id, point, values);
}

}  // namespace unisono::jit
