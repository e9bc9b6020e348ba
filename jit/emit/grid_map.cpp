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
      loaded[e] =
          load_wide(expr, offset_at(expr.at, unit_parts_[id], at), width);
    if (gathers_wide(expr, fixed)) {
      // One row for all: its indices are looked at once.
      check_number_ = 0;
      Value* offset = indexed_offset(
          offset_at(expr.at, unit_parts_[id], at), expr.indexed, expr.operands,
          bounds_of(expr.checked), {expr.source, expr.member, e}, at, fixed);
      if (offset) loaded[e] = load_wide(expr, offset, width);
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

void GridEmitter::write_wide(Value* at, DType dtype,
                             const std::vector<Value*>& lanes) {
  const auto width = static_cast<int64_t>(lanes.size());
  EmitContext c = context(0);
  llvm::Type* element = memory_type(c, dtype);
  if (width == 1) {
    b_.CreateAlignedStore(to_memory(c, dtype, lanes[0]), at,
                          access_align(element, width));
    return;
  }
  Value* all = llvm::PoisonValue::get(
      llvm::FixedVectorType::get(element, static_cast<unsigned>(width)));
  for (int64_t i = 0; i < width; ++i)
    all = b_.CreateInsertElement(all, to_memory(c, dtype, lanes[i]),
                                 static_cast<uint64_t>(i));
  b_.CreateAlignedStore(b_.CreateBitCast(all, access_type(b_, element, width)),
                        at, access_align(element, width));
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
