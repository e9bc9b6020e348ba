// Maps on a grid. A thread does 16 bytes of the widest element, computed one
// by one, with loads and stores of 16 bytes where they are aligned; where rows
// are read of which others lie above and below, so much of several rows, and
// each element is loaded once. Transposes
// go through squares in shared memory, of which loads and stores both are of
// neighbours.
#include <bit>
#include <cmath>
#include <map>
#include <optional>

#include "jit/emit/grid_nest.h"
#include "runtime/check.h"
#include "runtime/tuning/tuning.h"

namespace unisono::jit {

using llvm::Value;

void GridEmitter::emit_map(Point& point, Value* block) {
  const int axis = plan_.vector_axis;
  const int64_t width = plan_.block;
  point.vector_axis = -1;
  if (width == 1) {
    if (axis >= 0) point.index[axis] = block;
    fix_unit_parts(point);
    Values values(nest_.exprs.size());
    if (nest_.turns)  // what is stored are carries; there is no row after the
                      // last
      take_turns(point, values);
    else
      compute(std::vector<bool>(values.size(), true), point, values);
    return store_outputs(all_stores(), point, values);
  }
  Value* row = nullptr;
  if (plan_.rows_axis >= 0) {
    row =
        b_.CreateMul(point.index[plan_.rows_axis], index_constant(plan_.rows));
    point.index[plan_.rows_axis] = nullptr;  // no unit part has it
  }
  fix_unit_parts(point);
  const Values fixed = fixed_in_box(point);
  Value* first = b_.CreateMul(block, index_constant(width));
  if (turn_start_ > 0) first = b_.CreateAdd(first, index_constant(turn_start_));
  const int64_t extent = nest_.extents[axis], full = extent / width;
  if (extent % width == 0) return map_box(point, row, first, fixed);
  Value* is_full = b_.CreateICmpSLT(block, index_constant(full));
  when(is_full, [&] { map_box(point, row, first, fixed); });
  when(b_.CreateNot(is_full), [&] {
    map_element(point, b_.CreateAdd(block, index_constant(full * width - full)),
                fixed);
  });
}

/// Values of what changes along neither axis of a box.
Values GridEmitter::fixed_in_box(Point& point) {
  std::vector<bool> fixed(nest_.exprs.size(), true);
  for (int axis : {plan_.vector_axis, plan_.rows_axis}) {
    if (axis < 0) continue;
    const std::vector<bool> varying = varying_expressions(nest_, axis);
    for (size_t e = 0; e < fixed.size(); ++e)
      if (varying[e]) fixed[e] = false;
  }
  Values values(nest_.exprs.size());
  compute(fixed, point, values);
  return values;
}

void GridEmitter::map_element(Point& point, Value* index, const Values& fixed) {
  Point at = point;
  at.index[plan_.vector_axis] = index;
  Values values = fixed;
  compute(std::vector<bool>(values.size(), true), at, values);
  store_outputs(all_stores(), at, values);
}

/// What a thread loads of one array, by the constant part of the offset: loads
/// of neighbours differ in that alone, so each element is loaded once.
struct GridEmitter::Neighbours {
  const Expr* expr = nullptr;  // one of the loads
  ExprId id = 0;
  std::map<int64_t, Value*> elements = {};
};

/// The loads of a box of rows along which elements lie side by side.
std::vector<GridEmitter::Neighbours> GridEmitter::load_neighbours(
    const Point& point) {
  const int axis = plan_.vector_axis;
  const int64_t width = plan_.block;
  std::vector<Neighbours> all;
  for (size_t e = 0; e < nest_.exprs.size(); ++e) {
    const Expr& expr = nest_.exprs[e];
    if (!loads_neighbours(expr)) continue;
    Neighbours* own = neighbours_of(all, expr);
    if (!own) {
      all.push_back({&expr, static_cast<ExprId>(e)});
      own = &all.back();
    }
    for (int64_t r = 0; r < plan_.rows; ++r)
      for (int64_t i = 0; i < width; ++i)
        own->elements[constant_in_box(expr, r, i)] = nullptr;
  }
  for (Neighbours& own : all) {
    Value* offset = offset_at(own.expr->at, unit_parts_[own.id], point);
    Affine others = own.expr->at;
    others.constant = 0;
    const bool aligned = aligned_along(others, axis, width);
    auto is_whole = [&](int64_t begin) {
      if (!aligned || begin % width) return false;
      for (int64_t i = 0; i < width; ++i)
        if (!own.elements.contains(begin + i)) return false;
      return true;
    };
    for (auto& [constant, value] : own.elements) {
      if (value) continue;
      const int64_t count = is_whole(constant) ? width : 1;
      Value* begin = b_.CreateAdd(
          offset, index_constant(constant - own.expr->at.constant));
      const std::vector<Value*> loaded = load_wide(*own.expr, begin, count);
      for (int64_t i = 0; i < count; ++i)
        own.elements[constant + i] = loaded[static_cast<size_t>(i)];
    }
  }
  return all;
}

bool GridEmitter::loads_neighbours(const Expr& expr) const {
  return expr.kind == Expr::Kind::load &&
         expr.at.factors[plan_.vector_axis] == 1;
}

GridEmitter::Neighbours* GridEmitter::neighbours_of(
    std::vector<Neighbours>& all, const Expr& expr) {
  for (Neighbours& one : all)
    if (one.expr->argument == expr.argument && one.expr->dtype == expr.dtype &&
        one.expr->at.factors == expr.at.factors)
      return &one;
  return nullptr;
}

int64_t GridEmitter::constant_in_box(const Expr& expr, int64_t row,
                                     int64_t column) const {
  const int64_t down =
      plan_.rows_axis < 0 ? 0 : row * expr.at.factors[plan_.rows_axis];
  return expr.at.constant + down + column;
}

/// A box of plan_.rows rows, from `row` on (null: one row that the unit has),
/// and as many columns as a wide access has, from `first` on.
void GridEmitter::map_box(Point& point, Value* row, Value* first,
                          const Values& fixed) {
  const int axis = plan_.vector_axis;
  const int64_t width = plan_.block;
  Point at = point;
  at.index[axis] = first;
  if (row) at.index[plan_.rows_axis] = row;
  std::vector<Neighbours> neighbours = load_neighbours(at);
  if (!loaded_ && !neighbours.empty() && b_.GetInsertBlock() == start_)
    loaded_ = &start_->back();
  for (int64_t r = 0; r < plan_.rows; ++r) {
    at.index[axis] = first;
    if (row) at.index[plan_.rows_axis] = b_.CreateAdd(row, index_constant(r));
    std::vector<std::vector<Value*>> loaded(nest_.exprs.size());
    for (size_t e = 0; e < nest_.exprs.size(); ++e) {
      const Expr& expr = nest_.exprs[e];
      const auto id = static_cast<ExprId>(e);
      if (loads_neighbours(expr)) {
        Neighbours* own = neighbours_of(neighbours, expr);
        for (int64_t i = 0; i < width; ++i)
          loaded[e].push_back(own->elements.at(constant_in_box(expr, r, i)));
      }
      if (gathers_wide(expr, fixed)) {
        // One row for all: its indices are looked at once.
        check_number_ = 0;
        Value* offset =
            indexed_offset(offset_at(expr.at, unit_parts_[id], at),
                           expr.indexed, expr.operands, bounds_of(expr.checked),
                           {expr.source, expr.member, e}, at, fixed);
        if (offset) loaded[e] = load_wide(expr, offset, width);
      }
    }
    map_row(at, first, fixed, loaded);
  }
}

/// One row of a box; `loaded` has the elements of what was loaded, by
/// expression.
void GridEmitter::map_row(Point at, Value* first, const Values& fixed,
                          const std::vector<std::vector<Value*>>& loaded) {
  const int axis = plan_.vector_axis;
  const int64_t width = plan_.block;
  auto compute_row = [&] {
    std::vector<Value*> out;
    for (int64_t i = 0; i < width; ++i) {
      at.index[axis] = b_.CreateAdd(first, index_constant(i));
      Values values = fixed;
      for (size_t e = 0; e < loaded.size(); ++e)
        if (!loaded[e].empty()) values[e] = loaded[e][static_cast<size_t>(i)];
      compute(std::vector<bool>(values.size(), true), at, values);
      if (usual_.quick) see_usual(values);
      for (const Store& store : nest_.stores)
        out.push_back(values[store.value]);
    }
    return out;
  };
  prepare_usual(fixed);
  std::vector<Value*> all = compute_row();
  if (usual_.quick) {
    usual_.quick = false;
    all = choose(has_unusual(), all, compute_row, true);
  }
  std::vector<std::vector<Value*>> results(nest_.stores.size());
  for (size_t n = 0; n < all.size(); ++n)
    results[n % results.size()].push_back(all[n]);
  for (size_t s = 0; s < nest_.stores.size(); ++s) {
    const Store& output = nest_.stores[s];
    at.index[axis] = first;
    if (aligned_along(output.at, axis, width)) {
      store_wide(output, offset_at(output.at, store_parts_[s], at), results[s]);
      continue;
    }
    for (int64_t i = 0; i < width; ++i) {
      at.index[axis] = b_.CreateAdd(first, index_constant(i));
      store(output.at, store_parts_[s], output.argument,
            frame_.kernel.arguments[output.argument].dtype,
            results[s][static_cast<size_t>(i)], at, false);
    }
  }
}

// ---- numbers in the usual range

namespace {

constexpr int bias = 127, mantissa_bits = 23;

}  // namespace

/// Whether a row is computed as of usual numbers first.
void GridEmitter::prepare_usual(const Values& fixed) {
  usual_ = {};
  for (const Expr& expr : nest_.exprs)
    if (expr.checked || expr.kind == Expr::Kind::gather) return;
  std::vector<bool> is_fixed(fixed.size());
  for (size_t e = 0; e < fixed.size(); ++e) is_fixed[e] = fixed[e] != nullptr;
  usual_.numbers = usual_numbers(nest_, is_fixed);
  usual_.quick = usual_.numbers.saved >= tuning().gpu_least_quick_instructions;
}

/// Notes what quick operations of an element have read. All ranges have as many
/// exponents, so that bits less those of a range's first number, as unsigned
/// ones, are compared at once for all: a GPU adds and takes the larger one in
/// one instruction.
void GridEmitter::see_usual(const Values& values) {
  for (size_t e = 0; e < values.size(); ++e) {
    const UsualChecks& checks = usual_.numbers.checks[e];
    if (checks.size) {
      Value* bits = b_.CreateBitCast(values[e], b_.getInt32Ty());
      if (!checks.positive) bits = b_.CreateAnd(bits, i32(0x7fffffff));
      Value* moved =
          b_.CreateSub(bits, i32(int64_t{checks.low + bias} << mantissa_bits));
      usual_.sizes = usual_.sizes
                         ? b_.CreateBinaryIntrinsic(llvm::Intrinsic::umax,
                                                    usual_.sizes, moved)
                         : moved;
    }
    if (!checks.exponent) continue;
    Value* size = b_.CreateUnaryIntrinsic(llvm::Intrinsic::fabs, values[e]);
    usual_.exponents = usual_.exponents
                           ? b_.CreateBinaryIntrinsic(llvm::Intrinsic::maximum,
                                                      usual_.exponents, size)
                           : size;
  }
}

/// Whether what was seen has to be computed as other numbers.
Value* GridEmitter::has_unusual() {
  Value* unusual = b_.getFalse();
  if (usual_.sizes)
    unusual = b_.CreateICmpUGE(usual_.sizes,
                               i32(int64_t{usual_exponents} << mantissa_bits));
  if (usual_.exponents)
    unusual = b_.CreateOr(
        unusual, b_.CreateFCmpUGT(
                     usual_.exponents,
                     llvm::ConstantFP::get(b_.getFloatTy(), usual_exponent)));
  return unusual;
}

// ---- sums that are multiplied by a power of 2

namespace {

/// What a constant of f32 is, if it is neither small nor large.
std::optional<float> constant_of(const Expr& expr) {
  if (expr.kind != Expr::Kind::constant) return {};
  const float x = std::bit_cast<float>(static_cast<uint32_t>(expr.bits));
  if (!(std::fabs(x) >= 0x1p-30f && std::fabs(x) <= 0x1p30f)) return {};
  return x;
}

}  // namespace

/// c * (d + y), for constants c and d of which c is a power of 2, is the fma
/// of c, y and c * d to the bit: c moves nothing but the exponent, and a sum
/// with d is 0 or larger than 2^-55, so that nothing is subnormal.
Value* GridEmitter::scaled_sum(const Expr& expr, const Values& values) {
  if (expr.op != ir::Op::mul || expr.dtype != DType::F32) return nullptr;
  for (const size_t side : {0, 1}) {
    const auto scale = constant_of(nest_.exprs[expr.operands[side]]);
    const Expr& sum = nest_.exprs[expr.operands[1 - side]];
    if (!scale || !(*scale > 0) ||
        (std::bit_cast<uint32_t>(*scale) & 0x7fffff) != 0 ||
        sum.kind != Expr::Kind::operation ||
        (sum.op != ir::Op::add && sum.op != ir::Op::sub))
      continue;
    for (const size_t place : {0, 1}) {
      const auto constant = constant_of(nest_.exprs[sum.operands[place]]);
      if (!constant) continue;
      // Which of the two terms is subtracted.
      const bool minus_constant = sum.op == ir::Op::sub && place == 1;
      const bool minus_other = sum.op == ir::Op::sub && place == 0;
      EmitContext c = context(0);
      const auto number = [&](float x) {
        return llvm::ConstantFP::get(b_.getFloatTy(), x);
      };
      return emit_element(
          c, ir::Op::fma, DType::F32,
          {number(minus_other ? -*scale : *scale),
           values[sum.operands[1 - place]],
           number(minus_constant ? -*constant * *scale : *constant * *scale)});
    }
  }
  return nullptr;
}

namespace {

/// `width` elements as one access: small ones as parts of words.
llvm::Type* access_type(llvm::IRBuilder<>& b, llvm::Type* element,
                        int64_t width) {
  const auto lanes = static_cast<unsigned>(width);
  const unsigned bits = element->getPrimitiveSizeInBits() * lanes;
  if (element->getPrimitiveSizeInBits() >= 32 || bits < 32)
    return llvm::FixedVectorType::get(element, lanes);
  return llvm::FixedVectorType::get(b.getInt32Ty(), bits / 32);
}

llvm::Align access_align(llvm::Type* element, int64_t width) {
  return llvm::Align(static_cast<uint64_t>(
      width * static_cast<int64_t>(element->getPrimitiveSizeInBits()) / 8));
}

}  // namespace

/// Whether a gather takes neighbours of one row, aligned.
bool GridEmitter::gathers_wide(const Expr& expr, const Values& fixed) const {
  if (expr.kind != Expr::Kind::gather ||
      !aligned_along(expr.at, plan_.vector_axis, plan_.block))
    return false;
  for (size_t i = 0; i < expr.indexed.size(); ++i)
    if (!fixed[expr.operands[i]] || expr.indexed[i].stride % plan_.block)
      return false;
  return true;
}

std::vector<Value*> GridEmitter::load_wide(const Expr& expr, Value* offset,
                                           int64_t width) {
  return read_wide(element_pointer(expr.argument, expr.dtype, offset),
                   expr.dtype, width);
}

void GridEmitter::store_wide(const Store& store, Value* offset,
                             const std::vector<Value*>& lanes) {
  const DType dtype = frame_.kernel.arguments[store.argument].dtype;
  write_wide(element_pointer(store.argument, dtype, offset), dtype, lanes);
}

std::vector<Value*> GridEmitter::read_wide(Value* at, DType dtype,
                                           int64_t width) {
  EmitContext c = context(0);
  llvm::Type* element = memory_type(c, dtype);
  if (width == 1)
    return {from_memory(
        c, dtype,
        b_.CreateAlignedLoad(element, at, access_align(element, width)))};
  Value* loaded = b_.CreateAlignedLoad(access_type(b_, element, width), at,
                                       access_align(element, width));
  loaded = b_.CreateBitCast(loaded, llvm::FixedVectorType::get(
                                        element, static_cast<unsigned>(width)));
  std::vector<Value*> out;
  for (int64_t i = 0; i < width; ++i)
    out.push_back(from_memory(
        c, dtype, b_.CreateExtractElement(loaded, static_cast<uint64_t>(i))));
  return out;
}

llvm::Instruction* GridEmitter::write_wide(Value* at, DType dtype,
                                           const std::vector<Value*>& lanes) {
  const auto width = static_cast<int64_t>(lanes.size());
  EmitContext c = context(0);
  llvm::Type* element = memory_type(c, dtype);
  if (width == 1)
    return b_.CreateAlignedStore(to_memory(c, dtype, lanes[0]), at,
                                 access_align(element, width));
  Value* all = llvm::PoisonValue::get(
      llvm::FixedVectorType::get(element, static_cast<unsigned>(width)));
  for (int64_t i = 0; i < width; ++i)
    all = b_.CreateInsertElement(all, to_memory(c, dtype, lanes[i]),
                                 static_cast<uint64_t>(i));
  return b_.CreateAlignedStore(
      b_.CreateBitCast(all, access_type(b_, element, width)), at,
      access_align(element, width));
}

/// A square: loads run down its columns, stores along its rows; a row of shared
/// memory has one element more, so that both ways hit all banks. A warp does a
/// row in parts of its own width.
void GridEmitter::emit_tiles(Point& point, Value* block) {
  const int down = plan_.tile_axis, along = plan_.vector_axis;
  const int64_t tile = plan_.block, pitch = tile + 1;
  const int64_t parts = tile / warp_threads,
                rounds = tile / block_warps * parts;
  // Of a square's axis that has one block the number says nothing.
  auto start_of = [&](Value* number, int axis) -> Value* {
    if (nest_.extents[axis] <= tile) return index_constant(0);
    return b_.CreateMul(number, index_constant(tile));
  };
  Value *first_down = start_of(point.index[down], down),
        *first_along = start_of(block, along);
  point.index[down] = nullptr;
  point.vector_axis = -1;
  fix_unit_parts(point);
  Value *lane = wide(grid_.lane), *warp = wide(grid_.warp);
  auto inside = [&](const Point& at) {
    auto within = [&](int axis) -> Value* {
      if (nest_.extents[axis] % tile == 0) return b_.getTrue();
      return b_.CreateICmpSLT(at.index[axis],
                              index_constant(nest_.extents[axis]));
    };
    return b_.CreateAnd(within(down), within(along));
  };
  auto row_of = [&](int64_t round) {
    return b_.CreateAdd(warp, index_constant(round / parts * block_warps));
  };
  auto column_of = [&](int64_t round) {
    return b_.CreateAdd(lane, index_constant(round % parts * warp_threads));
  };
  auto place_of = [&](Value* row, Value* column) {
    return b_.CreateAdd(b_.CreateMul(row, index_constant(pitch)), column);
  };
  EmitContext c = context(0);
  int64_t used = 0;
  std::vector<Value*> squares(nest_.exprs.size());
  for (size_t e = 0; e < nest_.exprs.size(); ++e) {
    const Expr& expr = nest_.exprs[e];
    if (!goes_through_square(expr, down, along) ||
        used + 16 + tile * pitch * byte_size(expr.dtype) > grid_shared_bytes)
      continue;
    squares[e] = shared_array(register_type(c, expr.dtype), tile * pitch, used);
  }
  // All loads of a square are under way before the first is stored, unless some
  // threads have no element.
  const bool whole =
      nest_.extents[down] % tile == 0 && nest_.extents[along] % tile == 0;
  for (size_t e = 0; e < squares.size(); ++e) {
    if (!squares[e]) continue;
    std::vector<Value*> loaded(static_cast<size_t>(rounds));
    auto put = [&](int64_t round) {
      put_shared(squares[e], place_of(row_of(round), column_of(round)),
                 loaded[static_cast<size_t>(round)]);
    };
    for (int64_t round = 0; round < rounds; ++round) {
      Point at = point;
      at.index[down] = b_.CreateAdd(first_down, column_of(round));
      at.index[along] = b_.CreateAdd(first_along, row_of(round));
      when(inside(at), [&] {
        loaded[static_cast<size_t>(round)] =
            value_of(nest_.exprs[e], static_cast<ExprId>(e), at, {});
        if (!whole) put(round);
      });
    }
    for (int64_t round = 0; whole && round < rounds; ++round) put(round);
  }
  synchronise();
  for (int64_t round = 0; round < rounds; ++round) {
    Point at = point;
    at.index[down] = b_.CreateAdd(first_down, row_of(round));
    at.index[along] = b_.CreateAdd(first_along, column_of(round));
    when(inside(at), [&] {
      Values values(nest_.exprs.size());
      for (size_t e = 0; e < squares.size(); ++e)
        if (squares[e])
          values[e] =
              get_shared(squares[e], register_type(c, nest_.exprs[e].dtype),
                         place_of(column_of(round), row_of(round)));
      compute(std::vector<bool>(values.size(), true), at, values);
      store_outputs(all_stores(), at, values);
    });
  }
}

}  // namespace unisono::jit
