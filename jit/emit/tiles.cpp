// Nests whose loads run along another axis than their stores, as in a
// transpose: squares are loaded along the one, transposed in registers, and
// stored along the other. A unit is a block of squares that stays in the cache.
#include <llvm/IR/Intrinsics.h>

#include "jit/emit/nest.h"
#include "runtime/tuning/tuning.h"

namespace unisono::jit {

using llvm::Value;

namespace {

using Shuffle = llvm::SmallVector<int>;

constexpr int64_t cache_line = 64, page = 4096;

/// Rows of a square matrix to its columns. Vectors are seen as 128-bit parts:
/// rounds of interleaving within parts transpose the elements of parts, rounds
/// of separating even from odd parts transpose the parts; on x86 each is one
/// instruction.
class Transposer {
 public:
  Transposer(llvm::IRBuilder<>& b, int size, int element_bytes)
      : b_(b), size_(size), part_(std::min(size, 16 / element_bytes)) {}

  std::vector<Value*> transpose(std::vector<Value*> rows) {
    for (int first = 0; first < size_; first += part_)
      for (int round = 1; round < part_; round *= 2) interleave(rows, first);
    for (int offset = 0; offset < part_; ++offset)
      for (int round = 1; round < size_ / part_; round *= 2)
        separate(rows, offset);
    return rows;
  }

 private:
  void interleave(std::vector<Value*>& rows, int first) {
    std::vector<Value*> out(part_);
    const int half = part_ / 2;
    for (int i = 0; i < half; ++i)
      for (int high = 0; high < 2; ++high) {
        Shuffle order;
        for (int part = 0; part < size_; part += part_)
          for (int e = 0; e < half; ++e) {
            order.push_back(part + high * half + e);
            order.push_back(size_ + part + high * half + e);
          }
        out[2 * i + high] = b_.CreateShuffleVector(
            rows[first + i], rows[first + i + half], order);
      }
    std::copy(out.begin(), out.end(), rows.begin() + first);
  }
  void separate(std::vector<Value*>& rows, int offset) {
    const int parts = size_ / part_;
    std::vector<Value*> out(parts);
    for (int i = 0; i < parts / 2; ++i)
      for (int odd = 0; odd < 2; ++odd) {
        Shuffle order;
        for (int source = 0; source < 2; ++source)
          for (int part = odd; part < parts; part += 2)
            for (int e = 0; e < part_; ++e)
              order.push_back(source * size_ + part * part_ + e);
        out[i + odd * parts / 2] =
            b_.CreateShuffleVector(rows[2 * i * part_ + offset],
                                   rows[(2 * i + 1) * part_ + offset], order);
      }
    for (int i = 0; i < parts; ++i) rows[i * part_ + offset] = out[i];
  }

  llvm::IRBuilder<>& b_;
  int size_, part_;
};

}  // namespace

void NestEmitter::emit_tiles(Point& point, Value* block) {
  const int down = plan_.tile_axis, along = plan_.vector_axis;
  const auto [first_row, last_row] = block_range(down, point.index[down]);
  const auto [first, last] = block_range(along, block);
  point.index[down] = nullptr;
  fix_unit_parts(point);
  loop(first_row, last_row, plan_.lanes,
       [&, begin = first, end = last](Value* row) {
         loop(begin, end, plan_.lanes, [&](Value* column) {
           Point at = point;
           at.index[down] = row;
           at.index[along] = column;
           at.lanes = static_cast<unsigned>(plan_.lanes);
           emit_tile(at);
         });
       });
}

/// A square of load e as its columns: rows are neighbours along the vectorised
/// axis, from the point on, elements of a row along `down`. Rows
/// of lanes that are masked off are those of the axis's last element.
std::vector<Value*> NestEmitter::load_square(size_t e, const Point& point,
                                             int down, unsigned size) {
  const Expr& expr = nest_.exprs[e];
  const int along = plan_.vector_axis;
  // Shuffles of single bits are slow: bools are bytes until later.
  const DType dtype = expr.dtype == DType::Bool ? DType::U8 : expr.dtype;
  Point across = point;
  across.vector_axis = down;
  across.lanes = size;
  across.mask = nullptr;
  Value* first = offset_at(expr.at, unit_parts_[e], across);
  std::vector<Value*> rows;
  for (unsigned i = 0; i < size; ++i) {
    Value* row = index_constant(i);
    if (point.mask)
      row = b_.CreateBinaryIntrinsic(
          llvm::Intrinsic::smin, row,
          b_.CreateSub(index_constant(nest_.extents[along] - 1),
                       point.index[along]));
    Value* step = b_.CreateMul(row, index_constant(expr.at.factors[along]));
    rows.push_back(
        load_at(expr.argument, dtype, b_.CreateAdd(first, step), 1, across));
  }
  return Transposer(b_, static_cast<int>(size),
                    static_cast<int>(byte_size(dtype)))
      .transpose(std::move(rows));
}

/// For each load that runs along `down` but not along the lanes, its vectors at
/// `count` elements along `down` from the point on.
std::vector<std::vector<Value*>> NestEmitter::load_lines(const Point& point,
                                                         int down,
                                                         int64_t count) {
  const int along = plan_.vector_axis;
  std::vector<std::vector<Value*>> lines(nest_.exprs.size());
  for (size_t e = 0; e < nest_.exprs.size(); ++e) {
    const Expr& expr = nest_.exprs[e];
    const int64_t across = expr.at.factors[along];
    if (expr.kind != Expr::Kind::load || expr.at.factors[down] != 1 ||
        across == 0 || across == 1)
      continue;
    prefetch(e, point, down);
    EmitContext c = context(point.lanes);
    for (int64_t k = 0; k < count; k += point.lanes) {
      Point at = point;
      at.index[down] = b_.CreateAdd(point.index[down], index_constant(k));
      for (Value* line : load_square(e, at, down, point.lanes))
        lines[e].push_back(from_memory(c, expr.dtype, line));
    }
  }
  return lines;
}

/// Fetches what load e reads soon: further on in its rows, or where these are
/// short, which processors do not foresee, at the same place of the next ones.
void NestEmitter::prefetch(size_t e, const Point& point, int down) {
  const Expr& expr = nest_.exprs[e];
  const int64_t across = expr.at.factors[plan_.vector_axis];
  const int64_t ahead = tuning().prefetched_bytes / byte_size(expr.dtype);
  const bool is_short = nest_.extents[down] <= tuning().most_short_line;
  for (unsigned i = 0; i < point.lanes; ++i)
    prefetch_at(e, point,
                is_short ? (i + point.lanes) * across : i * across + ahead);
}

/// Fetches what load e reads so many elements further on.
void NestEmitter::prefetch_at(size_t e, const Point& point, int64_t further) {
  const Expr& expr = nest_.exprs[e];
  Value* offset = b_.CreateAdd(offset_at(expr.at, unit_parts_[e], point),
                               index_constant(further));
  b_.CreateIntrinsic(llvm::Intrinsic::prefetch, {b_.getPtrTy()},
                     {element_pointer(expr.argument, expr.dtype, offset),
                      b_.getInt32(0), b_.getInt32(3), b_.getInt32(1)});
}

/// Fetches what loads of large arrays read soon that run along the lanes. A
/// processor does that by itself, but not across pages, and its own work waits
/// the longer the more there is of it.
void NestEmitter::prefetch_lanes(const std::vector<bool>& needed,
                                 const Point& point) {
  if (point.vector_axis < 0) return;
  for (size_t e = 0; e < nest_.exprs.size(); ++e) {
    const Expr& expr = nest_.exprs[e];
    const int64_t size = byte_size(expr.dtype);
    if (!needed[e] || expr.kind != Expr::Kind::load ||
        expr.at.factors[point.vector_axis] != 1 ||
        nest_.points() * size < tuning().large_array_bytes)
      continue;
    for (int64_t at = 0; at < point.lanes * size; at += cache_line)
      prefetch_at(e, point, (page + at) / size);
  }
}

/// Fetches what the loads of large arrays read at the same place so many rows
/// further on.
void NestEmitter::prefetch_rows(const std::vector<bool>& needed,
                                const Point& point, int64_t rows) {
  const size_t down = nest_.extents.size() - 1;
  for (size_t e = 0; e < nest_.exprs.size(); ++e) {
    const Expr& expr = nest_.exprs[e];
    const int64_t size = byte_size(expr.dtype);
    if (!needed[e] || expr.kind != Expr::Kind::load ||
        expr.at.factors[point.vector_axis] != 1 || !nest_.reduced[down] ||
        expr.at.factors[down] == 0 ||
        nest_.points() * size < tuning().large_array_bytes)
      continue;
    for (int64_t at = 0; at < point.lanes * size; at += cache_line)
      prefetch_at(e, point, rows * expr.at.factors[down] + at / size);
  }
}

/// The loads of a square that run down its columns, as its rows.
std::vector<std::vector<Value*>> NestEmitter::load_squares(const Point& point) {
  const int down = plan_.tile_axis, along = plan_.vector_axis;
  std::vector<std::vector<Value*>> squares(nest_.exprs.size());
  for (size_t e = 0; e < nest_.exprs.size(); ++e) {
    const Expr& expr = nest_.exprs[e];
    if (expr.kind != Expr::Kind::load || expr.at.factors[down] != 1 ||
        std::abs(expr.at.factors[along]) <= 1)
      continue;
    squares[e] = load_square(e, point, down, point.lanes);
  }
  return squares;
}

void NestEmitter::emit_tile(const Point& point) {
  const int down = plan_.tile_axis;
  std::vector<std::vector<Value*>> squares = load_squares(point);
  const std::vector<bool> all(nest_.exprs.size(), true);
  auto emit_row = [&](Value* i, const std::vector<Value*>& of_square) {
    Point row = point;
    row.index[down] = b_.CreateAdd(point.index[down], i);
    Values values(nest_.exprs.size());
    EmitContext c = context(row.lanes);
    for (size_t e = 0; e < of_square.size(); ++e)
      if (of_square[e])
        values[e] = from_memory(c, nest_.exprs[e].dtype, of_square[e]);
    compute(all, row, values);
    store_outputs(all_stores(), row, values);
  };
  std::vector<Value*> of_square(squares.size());
  if (nest_.exprs.size() <= tuning().most_unrolled_tile_exprs) {
    for (int i = 0; i < plan_.lanes; ++i) {
      for (size_t e = 0; e < squares.size(); ++e)
        of_square[e] = squares[e].empty() ? nullptr : squares[e][i];
      emit_row(index_constant(i), of_square);
    }
    return;
  }
  // Much to compute: one copy of its code, which reads the rows from the stack.
  std::vector<Value*> places(squares.size());
  for (size_t e = 0; e < squares.size(); ++e) {
    if (squares[e].empty()) continue;
    llvm::IRBuilder<> entry(&frame_.function->getEntryBlock(),
                            frame_.function->getEntryBlock().begin());
    llvm::Type* row = squares[e][0]->getType();
    places[e] = entry.CreateAlloca(
        row, entry.getInt32(static_cast<uint32_t>(plan_.lanes)));
    for (int i = 0; i < plan_.lanes; ++i)
      b_.CreateStore(squares[e][i],
                     b_.CreateGEP(row, places[e], index_constant(i)));
  }
  loop(index_constant(0), index_constant(plan_.lanes), 1, [&](Value* i) {
    for (size_t e = 0; e < squares.size(); ++e) {
      if (!places[e]) continue;
      llvm::Type* row = squares[e][0]->getType();
      of_square[e] = b_.CreateLoad(row, b_.CreateGEP(row, places[e], i));
    }
    emit_row(i, of_square);
  });
}

}  // namespace unisono::jit
