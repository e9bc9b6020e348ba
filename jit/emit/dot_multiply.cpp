// The blocking is that of Goto and van de Geijn, "Anatomy of High-Performance
// Matrix Multiplication" (2008): a tile of C, rows x vectors, stays in
// registers along one block of k. Blocks of k continue the chain from C, so
// every element is fma chains in the order of k (jit/ir/reduce_order.h); each
// chain has a C of its own. Large products have packed operands; small ones
// read A as it lies, and pack a block of B's columns at a time where its rows
// are far apart or run along k.
//
// A convolution is a product whose A is a view, the windows, which is never
// stored: an element lies where a table of A's rows and a table of a block of
// its columns say together (Dukhan, "The Indirect Convolution Algorithm", 2019,
// has pointers to whole pixels). Both are on the stack, filled by each unit.
#include <llvm/IR/Intrinsics.h>
#include <llvm/IR/Module.h>

#include <algorithm>

#include "jit/emit/dot_emitter.h"
#include "jit/ir/reduce_order.h"
#include "runtime/tuning/tuning.h"

namespace unisono::jit {
namespace {

constexpr int64_t page = 4096;  // bytes

/// The steps along k of a block: its panel of B, whose rows have so many bytes,
/// lies in the first cache, or where that would visit C too often, in the first
/// two: rows of C at multiples of a page fall into few sets of the first, and
/// wide tiles ask the second for little.
int64_t k_block(const DotShape& shape, int64_t row_bytes) {
  if (row_bytes <= 64) return tuning().packed_depth_narrow;
  const bool dear = shape.n * byte_size(shape.dtype) % page == 0;
  return dear || shape.dtype == DType::F64 ? tuning().packed_depth_dear
                                           : tuning().packed_depth;
}
/// The same where A is not packed.
int64_t most_k_block(int64_t row_bytes) {
  return row_bytes <= 64 ? tuning().direct_depth_narrow : tuning().direct_depth;
}

constexpr int64_t k_unroll = 4;
constexpr int64_t cache_line = 64;  // bytes

int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }

/// `depth` in blocks of one size, which is whole turns of the loop along k.
int64_t equal_blocks(int64_t depth, int64_t most) {
  const int64_t each = ceil_div(depth, ceil_div(depth, most));
  return ceil_div(each, k_unroll) * k_unroll;
}

}  // namespace

int DotEmitter::vectors(const Tile& tile) const {
  return static_cast<int>(ceil_div(tile.columns, tile_.lanes));
}

int64_t DotEmitter::rows_for(int64_t columns) const {
  if (shape_.is_view()) return tile_.rows;
  const int64_t vectors = ceil_div(columns, tile_.lanes);
  return tile_.rows * (tile_.vectors / vectors);
}

llvm::Value* DotEmitter::mask(const Tile& tile, int vector) {
  const int64_t first = vector * tile_.lanes;
  if (first + tile_.lanes <= tile.columns) return nullptr;
  llvm::SmallVector<llvm::Constant*> bits;
  for (int64_t i = first; i < first + tile_.lanes; ++i)
    bits.push_back(b_.getInt1(i < tile.columns));
  return llvm::ConstantVector::get(bits);
}

llvm::Value* DotEmitter::load(Value from, Value mask) {
  if (!mask) return b_.CreateAlignedLoad(vector_, from, element_align());
  return b_.CreateMaskedLoad(vector_, from, element_align(), mask,
                             llvm::Constant::getNullValue(vector_));
}

/// Asks for the line of memory, which need not be anybody's, to be read.
void DotEmitter::prefetch(Value place) {
  b_.CreateIntrinsic(llvm::Intrinsic::prefetch, {b_.getPtrTy()},
                     {place, b_.getInt32(0), b_.getInt32(3), b_.getInt32(1)});
}

/// `a` points at the tile's first row and k = 0; of a view, to its batch.
DotEmitter::Left DotEmitter::left_of(const Tile& tile, Value a,
                                     const Tables& tables) {
  if (!tables.rows)
    return [this, tile, a, first = Value()](Value k, int64_t step) mutable {
      if (step == 0) first = at(a, mul(k, tile.a_step));
      std::vector<Value> out;
      for (int64_t r = 0; r < tile.rows; ++r)
        out.push_back(at(first, i64(step * tile.a_step + r * tile.a_row)));
      return out;
    };
  const auto entry = [this](Value table, Value index) {
    return b_.CreateLoad(b_.getInt64Ty(),
                         b_.CreateGEP(b_.getInt64Ty(), table, index));
  };
  std::vector<Value> rows;
  for (int64_t r = 0; r < tile.rows; ++r)
    rows.push_back(at(a, entry(tables.rows, i64(r))));
  return [this, rows, entry, tables](Value k, int64_t step) {
    Value offset = entry(tables.columns, add(k, i64(step)));
    std::vector<Value> out;
    for (Value row : rows) out.push_back(at(row, offset));
    return out;
  };
}

/// sums + a[k] * b[k] for from <= k < to, `step` of them in one turn. b points
/// at k = 0.
std::vector<llvm::Value*> DotEmitter::products(const Tile& tile,
                                               const Left& left, Value b,
                                               Value from, Value to,
                                               int64_t step,
                                               const std::vector<Value>& sums) {
  llvm::Function* f = b_.GetInsertBlock()->getParent();
  auto* head = llvm::BasicBlock::Create(b_.getContext(), "k.head", f);
  auto* inside = llvm::BasicBlock::Create(b_.getContext(), "k.body", f);
  auto* done = llvm::BasicBlock::Create(b_.getContext(), "k.done", f);
  llvm::BasicBlock* before = b_.GetInsertBlock();
  b_.CreateBr(head);
  b_.SetInsertPoint(head);
  llvm::PHINode* k = b_.CreatePHI(b_.getInt64Ty(), 2);
  k->addIncoming(from, before);
  std::vector<llvm::PHINode*> carried;
  for (Value sum : sums) {
    carried.push_back(b_.CreatePHI(vector_, 2));
    carried.back()->addIncoming(sum, before);
  }
  b_.CreateCondBr(b_.CreateICmpSLE(add(k, i64(step)), to), inside, done);
  b_.SetInsertPoint(inside);
  std::vector<Value> next(carried.begin(), carried.end());
  Value b_first = at(b, mul(k, tile.b_step));
  const int vectors = this->vectors(tile);
  if (tile.next_a && step == k_unroll) {
    // Elements that these steps of the next tile take.
    Value next_a = left(k, 0)[0];
    const int64_t line = cache_line / byte_size(shape_.dtype);
    for (int64_t i = 0; i < step * tile.a_step; i += line)
      prefetch(at(next_a, i64(tile.next_a + i)));
  }
  for (int64_t s = 0; s < step; ++s) {
    std::vector<Value> right;
    for (int v = 0; v < vectors; ++v)
      right.push_back(load(at(b_first, i64(s * tile.b_step + v * tile_.lanes)),
                           mask(tile, v)));
    const std::vector<Value> from_a = left(k, s);
    for (int64_t r = 0; r < tile.rows; ++r) {
      Value factor = b_.CreateVectorSplat(
          tile_.lanes,
          b_.CreateAlignedLoad(element_, from_a[r], element_align()));
      for (int v = 0; v < vectors; ++v) {
        Value& sum = next[r * vectors + v];
        sum = b_.CreateIntrinsic(llvm::Intrinsic::fma, {vector_},
                                 {factor, right[v], sum});
      }
    }
  }
  k->addIncoming(add(k, i64(step)), inside);
  for (size_t i = 0; i < carried.size(); ++i)
    carried[i]->addIncoming(next[i], inside);
  b_.CreateBr(head);
  b_.SetInsertPoint(done);
  return {carried.begin(), carried.end()};
}

/// void micro(a, b, c, i64 count, i1 first): one tile of C and one block of k;
/// `first` says that the chain starts here and not from C. Of a view both
/// tables follow.
llvm::Function* DotEmitter::micro_kernel(const std::string& name,
                                         const Tile& tile) {
  llvm::Type *pointer = b_.getPtrTy(), *integer = b_.getInt64Ty();
  std::vector<llvm::Type*> arguments = {pointer, pointer, pointer, integer,
                                        b_.getInt1Ty()};
  if (shape_.is_view()) arguments.insert(arguments.end(), 2, pointer);
  auto* type = llvm::FunctionType::get(b_.getVoidTy(), arguments, false);
  const llvm::IRBuilder<>::InsertPointGuard guard(b_);
  auto* f = llvm::Function::Create(type, llvm::Function::InternalLinkage, name,
                                   module_);
  add_attributes(*f);
  f->addFnAttr(llvm::Attribute::NoInline);
  Value a = f->getArg(0), b = f->getArg(1), c = f->getArg(2);
  Value count = f->getArg(3), first = f->getArg(4);
  const auto block = [&](const char* label) {
    return llvm::BasicBlock::Create(b_.getContext(), label, f);
  };
  auto *entry = block("entry"), *load = block("load"), *start = block("start");
  const int vectors = this->vectors(tile);
  const int cells = static_cast<int>(tile.rows) * vectors;
  const auto place = [&](int cell) {
    return at(c, i64(cell / vectors * shape_.n + cell % vectors * tile_.lanes));
  };
  Value zero = llvm::Constant::getNullValue(vector_);

  b_.SetInsertPoint(entry);
  b_.CreateCondBr(first, start, load);
  b_.SetInsertPoint(load);
  std::vector<Value> sums;
  for (int cell = 0; cell < cells; ++cell)
    sums.push_back(this->load(place(cell), mask(tile, cell % vectors)));
  b_.CreateBr(start);
  b_.SetInsertPoint(start);
  for (Value& sum : sums) {
    llvm::PHINode* phi = b_.CreatePHI(vector_, 2);
    phi->addIncoming(zero, entry);
    phi->addIncoming(sum, load);
    sum = phi;
  }
  Tables tables;
  if (shape_.is_view()) tables = {f->getArg(5), f->getArg(6)};
  const Left left = left_of(tile, a, tables);
  Value most = mul(b_.CreateSDiv(count, i64(k_unroll)), k_unroll);
  sums = products(tile, left, b, i64(0), most, k_unroll, sums);
  sums = products(tile, left, b, most, count, 1, sums);
  for (int cell = 0; cell < cells; ++cell)
    if (Value part = mask(tile, cell % vectors))
      b_.CreateMaskedStore(sums[cell], place(cell), element_align(), part);
    else
      b_.CreateAlignedStore(sums[cell], place(cell), element_align());
  b_.CreateRetVoid();
  return f;
}

void DotEmitter::in_tiles(Value begin, Value end, int64_t last, int64_t size,
                          int64_t rest,
                          const std::function<void(Value, int64_t)>& body) {
  if (last - rest > 0)
    for_loop(begin, min(end, i64(last - rest)), size,
             [&](Value first) { body(first, size); });
  if (rest)
    when(b_.CreateICmpEQ(end, i64(last)),
         [&] { body(i64(last - rest), rest); });
}

/// One unit is a rectangle of panels along one chain. B is packed, or each unit
/// packs a panel of one block of k at a time, which then lies in the first two
/// caches: a whole B would go to memory and back.
EmittedDot::Launch DotEmitter::multiply_packed(const std::string& name) {
  const bool packs = packs_b_in_units(shape_);
  const int64_t rows = tile_.rows, columns = tile_.columns();
  const int64_t m_panels = ceil_div(shape_.m, rows);
  const int64_t n_panels = ceil_div(shape_.n, columns);
  const int64_t products = dot_chains(shape_) * shape_.batch;
  int64_t m_size = packs ? tuning().most_m_panels : tuning().m_panels_a_unit;
  while (m_size > tuning().least_m_panels &&
         products * ceil_div(m_panels, m_size) * n_panels <
             tuning().least_product_units)
    m_size /= 2;
  const int64_t m_units = ceil_div(m_panels, m_size);
  const bool few =
      products * m_units * ceil_div(n_panels, tuning().n_panels_a_unit) <
      tuning().few_product_units;
  const int64_t n_size = packs && few ? 1 : tuning().n_panels_a_unit;
  const int64_t n_units = ceil_div(n_panels, n_size);
  const int64_t a_panel = shape_.k * rows, b_panel = shape_.k * columns;
  const int64_t k_size =
      equal_blocks(std::min(shape_.k, orders().dot_chain),
                   k_block(shape_, columns * byte_size(shape_.dtype)));
  const auto micro = [&](int64_t tile_rows, int64_t tile_columns) {
    const std::string own = name + ".micro" + std::to_string(tile_rows) + "x" +
                            std::to_string(tile_columns);
    return micro_kernel(own,
                        {tile_rows, tile_columns, 1, rows, columns, a_panel});
  };
  kernel(name, 3, [&](llvm::ArrayRef<Value> buffers, Value unit) {
    Value panel = packs ? local_array(element_, k_size * columns) : nullptr;
    Value product = unit;
    Value n_unit = take(product, n_units), m_unit = take(product, m_units);
    Value c = at(buffers[2], mul(product, shape_.m * shape_.n));
    Value chain = product, batch = take(chain, shape_.batch);
    Value a = at(buffers[0], mul(batch, m_panels * a_panel));
    Value b = packs ? at(buffers[1],
                         add(mul(batch, shape_.b_batch), i64(shape_.b_offset)))
                    : at(buffers[1], mul(batch, n_panels * b_panel));
    Value i_first = mul(m_unit, m_size * rows);
    Value j_first = mul(n_unit, n_size * columns);
    Value i_last = min(add(i_first, i64(m_size * rows)), i64(shape_.m));
    Value j_last = min(add(j_first, i64(n_size * columns)), i64(shape_.n));
    Value k_first = mul(chain, orders().dot_chain);
    Value k_last = min(add(k_first, i64(orders().dot_chain)), i64(shape_.k));
    for_loop(k_first, k_last, k_size, [&](Value k) {
      poll();
      Value count = min(b_.CreateSub(k_last, k), i64(k_size));
      Value first = b_.CreateICmpEQ(k, k_first);
      in_tiles(
          j_first, j_last, shape_.n, columns, shape_.n % columns,
          [&](Value j, int64_t tile_columns) {
            // Panel number j / columns, from k on.
            Value b_at = panel;
            if (packs)
              copy({at(b, add(mul(k, shape_.b_row), mul(j, shape_.b_column))),
                    panel, count, columns, tile_columns, shape_.b_column,
                    shape_.b_row, false});
            else
              b_at = at(b, add(mul(j, shape_.k), mul(k, columns)));
            in_tiles(i_first, i_last, shape_.m, rows, shape_.m % rows,
                     [&](Value i, int64_t tile_rows) {
                       Value a_at = at(a, add(mul(i, shape_.k), mul(k, rows)));
                       b_.CreateCall(
                           micro(tile_rows, tile_columns),
                           {a_at, b_at, at(c, add(mul(i, shape_.n), j)), count,
                            first});
                     });
          });
    });
  });
  return {name, products * m_units * n_units, 1};
}

/// Memory of the function's own, for the whole call.
llvm::Value* DotEmitter::local_array(llvm::Type* type, int64_t size) {
  auto& entry = b_.GetInsertBlock()->getParent()->getEntryBlock();
  llvm::IRBuilder<> top(&entry, entry.begin());
  auto* place =
      top.CreateAlloca(type, top.getInt32(static_cast<uint32_t>(size)));
  place->setAlignment(llvm::Align(64));
  return place;
}

/// Where the elements number `first` ... `first` + `count` - 1 along these axes
/// lie.
void DotEmitter::fill_table(Value table,
                            const std::vector<DotShape::Axis>& axes,
                            Value first, Value count) {
  for_loop(i64(0), count, 1, [&](Value i) {
    Value number = add(first, i), offset = i64(0);
    for (size_t axis = axes.size(); axis-- > 0;) {
      Value place = axis ? take(number, axes[axis].extent) : number;
      offset = add(offset, mul(place, axes[axis].stride));
    }
    b_.CreateStore(offset, b_.CreateGEP(b_.getInt64Ty(), table, i));
  });
}

/// One unit is a rectangle of tiles along one chain.
EmittedDot::Launch DotEmitter::multiply_direct(const std::string& name) {
  const int64_t m = shape_.m, n = shape_.n;
  const int64_t depth = std::min(shape_.k, orders().dot_chain);
  const int64_t width = tile_.columns();
  const int64_t k_size =
      equal_blocks(depth, most_k_block(width * byte_size(shape_.dtype)));
  const int64_t most_columns = std::min<int64_t>(tile_.columns(), n);
  const int64_t products = dot_chains(shape_) * shape_.batch;
  // Rows and columns of a unit. Rows are whole tiles of every kind.
  int64_t rows = ceil_div(std::min(m, tuning().direct_unit_rows), rows_for(1)) *
                 rows_for(1);
  int64_t columns = n;
  if (products < tuning().many_products) {
    const int64_t panels = std::max<int64_t>(
        1, tuning().direct_unit_fmas / (rows * depth * most_columns));
    columns = std::min(n, panels * most_columns);
  }
  const int64_t m_units = ceil_div(m, rows), n_units = ceil_div(n, columns);
  const int64_t row = shape_.b_row * byte_size(shape_.dtype);
  const bool far = k_size * row > tuning().far_block_bytes ||
                   (k_size * row > tuning().crowded_block_bytes &&
                    row % tuning().crowding_bytes == 0);
  const bool packs = shape_.b_column != 1 || (far && m > 2 * tile_.rows);
  const auto micro = [&](int64_t tile_rows, int64_t tile_columns) {
    const std::string own = name + ".micro" + std::to_string(tile_rows) + "x" +
                            std::to_string(tile_columns);
    return micro_kernel(own, {tile_rows, tile_columns, shape_.a_row,
                              shape_.a_column, packs ? width : shape_.b_row});
  };
  const bool view = shape_.is_view();
  kernel(name, 3, [&](llvm::ArrayRef<Value> buffers, Value unit) {
    Value panel = packs ? local_array(element_, k_size * width) : nullptr;
    Tables tables;
    if (view)
      tables = {local_array(b_.getInt64Ty(), rows),
                local_array(b_.getInt64Ty(), k_size)};
    Value product = unit;
    Value n_unit = take(product, n_units), m_unit = take(product, m_units);
    Value c = at(buffers[2], mul(product, m * n));
    Value chain = product, batch = take(chain, shape_.batch);
    Value a =
        at(buffers[0], add(mul(batch, shape_.a_batch), i64(shape_.a_offset)));
    Value b =
        at(buffers[1], add(mul(batch, shape_.b_batch), i64(shape_.b_offset)));
    Value i_first = mul(m_unit, rows), j_first = mul(n_unit, columns);
    Value i_last = min(add(i_first, i64(rows)), i64(m));
    Value j_last = min(add(j_first, i64(columns)), i64(n));
    Value k_first = mul(chain, orders().dot_chain);
    Value k_last = min(add(k_first, i64(orders().dot_chain)), i64(shape_.k));
    if (view)
      fill_table(tables.rows, shape_.a_rows, i_first,
                 b_.CreateSub(i_last, i_first));
    for_loop(k_first, k_last, k_size, [&](Value k) {
      poll();
      Value count = min(b_.CreateSub(k_last, k), i64(k_size));
      if (view) fill_table(tables.columns, shape_.a_columns, k, count);
      Value first = b_.CreateICmpEQ(k, k_first);
      in_tiles(j_first, j_last, n, width, n % width,
               [&](Value j, int64_t tile_columns) {
                 Value b_at =
                     at(b, add(mul(k, shape_.b_row), mul(j, shape_.b_column)));
                 if (packs) {
                   copy({b_at, panel, count, width, tile_columns,
                         shape_.b_column, shape_.b_row, false});
                   b_at = panel;
                 }
                 const int64_t most_rows = rows_for(tile_columns);
                 in_tiles(i_first, i_last, m, most_rows, m % most_rows,
                          [&](Value i, int64_t tile_rows) {
                            Value to = at(c, add(mul(i, n), j));
                            llvm::Function* f = micro(tile_rows, tile_columns);
                            if (view) {
                              Value own_rows =
                                  b_.CreateGEP(b_.getInt64Ty(), tables.rows,
                                               b_.CreateSub(i, i_first));
                              b_.CreateCall(f, {a, b_at, to, count, first,
                                                own_rows, tables.columns});
                              return;
                            }
                            Value a_at = at(a, add(mul(i, shape_.a_row),
                                                   mul(k, shape_.a_column)));
                            b_.CreateCall(f, {a_at, b_at, to, count, first});
                          });
               });
    });
  });
  const int64_t fmas = std::min(rows, m) * depth * columns;
  return {name, products * m_units * n_units,
          std::max<int64_t>(1, tuning().direct_unit_fmas / fmas)};
}

}  // namespace unisono::jit
