// Maps on a grid. A thread does 16 bytes of the widest element, computed one
// by one, with loads and stores of 16 bytes where they are aligned. Transposes
// go through squares in shared memory, of which loads and stores both are of
// neighbours.
#include "jit/emit/grid_nest.h"
#include "runtime/check.h"

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
  fix_unit_parts(point);
  const Values fixed = fixed_values(point);
  Value* first = b_.CreateMul(block, index_constant(width));
  const int64_t extent = nest_.extents[axis], full = extent / width;
  if (extent % width == 0) return map_vector(point, first, fixed);
  Value* is_full = b_.CreateICmpSLT(block, index_constant(full));
  when(is_full, [&] { map_vector(point, first, fixed); });
  when(b_.CreateNot(is_full), [&] {
    map_element(point, b_.CreateAdd(block, index_constant(full * width - full)),
                fixed);
  });
}

void GridEmitter::map_element(Point& point, Value* index, const Values& fixed) {
  Point at = point;
  at.index[plan_.vector_axis] = index;
  Values values = fixed;
  compute(std::vector<bool>(values.size(), true), at, values);
  store_outputs(all_stores(), at, values);
}

void GridEmitter::map_vector(Point& point, Value* first, const Values& fixed) {
  const int axis = plan_.vector_axis;
  const int64_t width = plan_.block;
  Point at = point;
  at.index[axis] = first;
  std::vector<std::vector<Value*>> loaded(nest_.exprs.size());
  for (size_t e = 0; e < nest_.exprs.size(); ++e) {
    const Expr& expr = nest_.exprs[e];
    const auto id = static_cast<ExprId>(e);
    if (expr.kind == Expr::Kind::load && aligned_along(expr.at, axis, width))
      loaded[e] = load_wide(expr, offset_at(expr.at, unit_parts_[id], at));
    if (gathers_wide(expr, fixed)) {
      // One row for all: its indices are looked at once.
      check_number_ = 0;
      Value* offset = indexed_offset(
          offset_at(expr.at, unit_parts_[id], at), expr.indexed, expr.operands,
          bounds_of(expr.checked), {expr.source, expr.member, e}, at, fixed);
      if (offset) loaded[e] = load_wide(expr, offset);
    }
  }
  std::vector<std::vector<Value*>> results(nest_.stores.size());
  for (int64_t i = 0; i < width; ++i) {
    at.index[axis] = b_.CreateAdd(first, index_constant(i));
    Values values = fixed;
    for (size_t e = 0; e < loaded.size(); ++e)
      if (!loaded[e].empty()) values[e] = loaded[e][i];
    compute(std::vector<bool>(values.size(), true), at, values);
    for (size_t s = 0; s < nest_.stores.size(); ++s)
      results[s].push_back(values[nest_.stores[s].value]);
  }
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
            frame_.kernel.arguments[output.argument].dtype, results[s][i], at,
            false);
    }
  }
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

std::vector<Value*> GridEmitter::load_wide(const Expr& expr, Value* offset) {
  const int64_t width = plan_.block;
  EmitContext c = context(0);
  llvm::Type* element = memory_type(c, expr.dtype);
  Value* at = element_pointer(expr.argument, expr.dtype, offset);
  Value* loaded = b_.CreateAlignedLoad(access_type(b_, element, width), at,
                                       access_align(element, width));
  loaded = b_.CreateBitCast(loaded, llvm::FixedVectorType::get(
                                        element, static_cast<unsigned>(width)));
  std::vector<Value*> out;
  for (int64_t i = 0; i < width; ++i)
    out.push_back(
        from_memory(c, expr.dtype,
                    b_.CreateExtractElement(loaded, static_cast<uint64_t>(i))));
  return out;
}

void GridEmitter::store_wide(const Store& store, Value* offset,
                             const std::vector<Value*>& lanes) {
  const DType dtype = frame_.kernel.arguments[store.argument].dtype;
  const auto width = static_cast<int64_t>(lanes.size());
  EmitContext c = context(0);
  llvm::Type* element = memory_type(c, dtype);
  Value* all = llvm::PoisonValue::get(
      llvm::FixedVectorType::get(element, static_cast<unsigned>(width)));
  for (int64_t i = 0; i < width; ++i)
    all = b_.CreateInsertElement(all, to_memory(c, dtype, lanes[i]),
                                 static_cast<uint64_t>(i));
  b_.CreateAlignedStore(b_.CreateBitCast(all, access_type(b_, element, width)),
                        element_pointer(store.argument, dtype, offset),
                        access_align(element, width));
}

/// A square of 32 x 32: loads run down its columns, stores along its rows; a
/// row of shared memory has one element more, so that both ways hit all banks.
void GridEmitter::emit_tiles(Point& point, Value* block) {
  const int down = plan_.tile_axis, along = plan_.vector_axis;
  constexpr int64_t pitch = grid_tile + 1, rounds = grid_tile / block_warps;
  // Of a square's axis that has one block the number says nothing.
  auto start_of = [&](Value* number, int axis) -> Value* {
    if (nest_.extents[axis] <= grid_tile) return index_constant(0);
    return b_.CreateMul(number, index_constant(grid_tile));
  };
  Value *first_down = start_of(point.index[down], down),
        *first_along = start_of(block, along);
  point.index[down] = nullptr;
  point.vector_axis = -1;
  fix_unit_parts(point);
  Value *lane = wide(grid_.lane), *warp = wide(grid_.warp);
  auto inside = [&](const Point& at) {
    return b_.CreateAnd(
        b_.CreateICmpSLT(at.index[down], index_constant(nest_.extents[down])),
        b_.CreateICmpSLT(at.index[along],
                         index_constant(nest_.extents[along])));
  };
  auto row_of = [&](int64_t round) {
    return b_.CreateAdd(warp, index_constant(round * block_warps));
  };
  EmitContext c = context(0);
  int64_t used = 0;
  std::vector<Value*> squares(nest_.exprs.size());
  for (size_t e = 0; e < nest_.exprs.size(); ++e) {
    const Expr& expr = nest_.exprs[e];
    llvm::Type* type = register_type(c, expr.dtype);
    if (expr.kind != Expr::Kind::load || expr.at.factors[down] != 1 ||
        std::abs(expr.at.factors[along]) <= 1 ||
        used + 16 + grid_tile * pitch * byte_size(expr.dtype) >
            grid_shared_bytes)
      continue;
    squares[e] = shared_array(type, grid_tile * pitch, used);
    for (int64_t round = 0; round < rounds; ++round) {
      Point at = point;
      at.index[down] = b_.CreateAdd(first_down, lane);
      at.index[along] = b_.CreateAdd(first_along, row_of(round));
      when(inside(at), [&] {
        Value* value = value_of(expr, static_cast<ExprId>(e), at, {});
        put_shared(
            squares[e],
            b_.CreateAdd(b_.CreateMul(row_of(round), index_constant(pitch)),
                         lane),
            value);
      });
    }
  }
  synchronise();
  for (int64_t round = 0; round < rounds; ++round) {
    Point at = point;
    at.index[down] = b_.CreateAdd(first_down, row_of(round));
    at.index[along] = b_.CreateAdd(first_along, lane);
    when(inside(at), [&] {
      Values values(nest_.exprs.size());
      for (size_t e = 0; e < squares.size(); ++e)
        if (squares[e])
          values[e] =
              get_shared(squares[e], register_type(c, nest_.exprs[e].dtype),
                         b_.CreateAdd(b_.CreateMul(lane, index_constant(pitch)),
                                      row_of(round)));
      compute(std::vector<bool>(values.size(), true), at, values);
      store_outputs(all_stores(), at, values);
    });
  }
}

}  // namespace unisono::jit
