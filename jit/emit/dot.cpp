// The blocking is that of Goto and van de Geijn, "Anatomy of High-Performance
// Matrix Multiplication" (2008): a panel of A has `rows` rows, one of B has
// `vectors` vectors of columns, both run along k; a tile of C is rows x
// vectors and stays in registers along one block of k. Blocks of k continue
// the chain from C, so every element is one fma chain in the order of k.
#include "jit/emit/dot.h"

#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/Intrinsics.h>
#include <llvm/IR/Module.h>

#include <algorithm>
#include <functional>
#include <vector>

#include "jit/emit/emit.h"

namespace unisono::jit {
namespace {

constexpr int64_t k_block = 256;  // panels of one block lie in the caches
constexpr int64_t m_panels_a_unit = 16;
constexpr int64_t n_panels_a_unit = 4;
constexpr int64_t k_between_polls = 4096;  // where panels are packed
constexpr int k_unroll = 4;
constexpr int64_t most_square = 8;  // transposed in registers

int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }

/// Emits one function of the three.
class DotEmitter {
 public:
  DotEmitter(llvm::Module& module, const DotShape& shape, DotTile tile)
      : module_(module),
        shape_(shape),
        tile_(tile),
        b_(module.getContext()),
        element_(shape.dtype == DType::F64 ? b_.getDoubleTy()
                                           : b_.getFloatTy()),
        vector_(llvm::FixedVectorType::get(element_, tile.lanes)),
        m_panels_(ceil_div(shape.m, tile.rows)),
        n_panels_(ceil_div(shape.n, tile.columns())) {}

  EmittedDot::Launch pack(const std::string& name, bool is_a);
  EmittedDot::Launch multiply(const std::string& name);

 private:
  using Value = llvm::Value*;
  using Body = std::function<void(Value)>;

  Value i64(int64_t value) { return b_.getInt64(static_cast<uint64_t>(value)); }
  Value mul(Value a, int64_t b) { return b_.CreateMul(a, i64(b)); }
  Value add(Value a, Value b) { return b_.CreateAdd(a, b); }
  Value min(Value a, Value b) {
    return b_.CreateBinaryIntrinsic(llvm::Intrinsic::smin, a, b);
  }
  Value at(Value pointer, Value index) {
    return b_.CreateGEP(element_, pointer, index);
  }
  llvm::Align element_align() {
    return llvm::Align(static_cast<uint64_t>(byte_size(shape_.dtype)));
  }
  /// Where a panel comes from and goes to: rows `across` apart, their elements
  /// `along`.
  struct Panel {
    Value from, to;
    int64_t width, across, along;
  };
  void copy_element(const Panel& panel, Value k, Value i);
  void copy_part(const Panel& panel, Value there);
  void copy_whole(const Panel& panel);
  void copy_square(const Panel& panel, Value k, int64_t first, int64_t size);
  Value interleaved(llvm::ArrayRef<Value> rows);
  void if_else(Value condition, const std::function<void()>& yes,
               const std::function<void()>& no);
  void for_loop(Value begin, Value end, int64_t step, const Body& body);
  /// The same along k, with polls from time to time; `step` divides their
  /// distance.
  void for_each_k(int64_t begin, int64_t end, int64_t step, const Body& body);
  void poll() { jit::poll(b_, flags_, leave_); }
  /// void name(ptr buffers, i64 begin, i64 end, ptr context), its body called
  /// for every unit.
  void kernel(const std::string& name, int arguments,
              const std::function<void(llvm::ArrayRef<Value> buffers,
                                       Value unit)>& unit_body);
  llvm::Function* micro_kernel(const std::string& name);
  std::vector<Value> products(Value a, Value b, Value from, Value to,
                              int64_t step, std::vector<Value> sums);
  Value column_mask(Value columns, int vector, Value row_is_there);

  llvm::Module& module_;
  const DotShape& shape_;
  const DotTile tile_;
  llvm::IRBuilder<> b_;
  llvm::Type* element_;
  llvm::FixedVectorType* vector_;
  const int64_t m_panels_, n_panels_;
  StopFlags flags_;  // of the function that is emitted
  llvm::BasicBlock* leave_ = nullptr;
};

void DotEmitter::for_loop(Value begin, Value end, int64_t step,
                          const Body& body) {
  llvm::Function* f = b_.GetInsertBlock()->getParent();
  auto* head = llvm::BasicBlock::Create(b_.getContext(), "head", f);
  auto* inside = llvm::BasicBlock::Create(b_.getContext(), "body", f);
  auto* done = llvm::BasicBlock::Create(b_.getContext(), "done", f);
  llvm::BasicBlock* before = b_.GetInsertBlock();
  b_.CreateBr(head);
  b_.SetInsertPoint(head);
  llvm::PHINode* i = b_.CreatePHI(b_.getInt64Ty(), 2);
  i->addIncoming(begin, before);
  b_.CreateCondBr(b_.CreateICmpSLT(i, end), inside, done);
  b_.SetInsertPoint(inside);
  body(i);
  i->addIncoming(add(i, i64(step)), b_.GetInsertBlock());
  b_.CreateBr(head);
  b_.SetInsertPoint(done);
}

void DotEmitter::for_each_k(int64_t begin, int64_t end, int64_t step,
                            const Body& body) {
  if (end - begin <= k_between_polls)
    return for_loop(i64(begin), i64(end), step, body);
  for_loop(i64(begin), i64(end), k_between_polls, [&](Value first) {
    poll();
    for_loop(first, min(add(first, i64(k_between_polls)), i64(end)), step,
             body);
  });
}

void DotEmitter::kernel(
    const std::string& name, int arguments,
    const std::function<void(llvm::ArrayRef<Value>, Value)>& unit_body) {
  llvm::Type* pointer = b_.getPtrTy();
  llvm::Function* f = add_kernel_function(module_, name);
  b_.SetInsertPoint(llvm::BasicBlock::Create(b_.getContext(), "entry", f));
  std::vector<Value> buffers;
  for (int i = 0; i < arguments; ++i) {
    buffers.push_back(b_.CreateLoad(
        pointer, b_.CreateConstGEP1_64(pointer, f->getArg(0), i)));
  }
  flags_ = stop_flags(b_, f->getArg(3));
  leave_ = llvm::BasicBlock::Create(b_.getContext(), "leave");
  for_loop(f->getArg(1), f->getArg(2), 1, [&](Value unit) {
    poll();
    unit_body(buffers, unit);
  });
  b_.CreateBr(leave_);
  leave_->insertInto(f);
  b_.SetInsertPoint(leave_);
  b_.CreateRetVoid();
}

void DotEmitter::if_else(Value condition, const std::function<void()>& yes,
                         const std::function<void()>& no) {
  llvm::Function* f = b_.GetInsertBlock()->getParent();
  auto* then = llvm::BasicBlock::Create(b_.getContext(), "then", f);
  auto* other = llvm::BasicBlock::Create(b_.getContext(), "else", f);
  auto* done = llvm::BasicBlock::Create(b_.getContext(), "done", f);
  b_.CreateCondBr(condition, then, other);
  b_.SetInsertPoint(then);
  yes();
  b_.CreateBr(done);
  b_.SetInsertPoint(other);
  no();
  b_.CreateBr(done);
  b_.SetInsertPoint(done);
}

void DotEmitter::copy_element(const Panel& panel, Value k, Value i) {
  Value source = at(panel.from, add(mul(k, panel.along), mul(i, panel.across)));
  Value x = b_.CreateAlignedLoad(element_, source, element_align());
  b_.CreateAlignedStore(x, at(panel.to, add(mul(k, panel.width), i)),
                        element_align());
}

/// The first `there` rows of a panel, and zeros for the others.
void DotEmitter::copy_part(const Panel& panel, Value there) {
  for_each_k(0, shape_.k, 1, [&](Value k) {
    for_loop(i64(0), there, 1, [&](Value i) { copy_element(panel, k, i); });
    for_loop(there, i64(panel.width), 1, [&](Value i) {
      b_.CreateAlignedStore(llvm::ConstantFP::get(element_, 0),
                            at(panel.to, add(mul(k, panel.width), i)),
                            element_align());
    });
  });
}

/// row 0's element 0, row 1's element 0, ..., row 0's element 1, ...
llvm::Value* DotEmitter::interleaved(llvm::ArrayRef<Value> rows) {
  if (rows.size() == 1) return rows[0];
  std::vector<Value> even, odd;
  for (size_t i = 0; i < rows.size(); ++i)
    (i % 2 ? odd : even).push_back(rows[i]);
  Value a = interleaved(even), b = interleaved(odd);
  const auto count =
      llvm::cast<llvm::FixedVectorType>(a->getType())->getNumElements();
  llvm::SmallVector<int> order;
  for (unsigned i = 0; i < count; ++i) {
    order.push_back(static_cast<int>(i));
    order.push_back(static_cast<int>(i + count));
  }
  return b_.CreateShuffleVector(a, b, order);
}

/// A panel of which all rows are there. They lie one element apart, or their
/// elements do and are transposed in registers, or neither.
void DotEmitter::copy_whole(const Panel& panel) {
  int64_t group = tile_.lanes;
  if (panel.across != 1) group = std::min<int64_t>(group, most_square);
  while (panel.width % group) group /= 2;
  if (panel.across == 1) {
    auto* type = llvm::FixedVectorType::get(element_, group);
    for_each_k(0, shape_.k, 1, [&](Value k) {
      for (int64_t i = 0; i < panel.width; i += group) {
        Value x = b_.CreateAlignedLoad(
            type, at(panel.from, add(mul(k, panel.along), i64(i))),
            element_align());
        b_.CreateAlignedStore(x, at(panel.to, add(mul(k, panel.width), i64(i))),
                              element_align());
      }
    });
    return;
  }
  int64_t done = 0;
  if (panel.along == 1) {
    done = shape_.k / group * group;
    for_each_k(0, done, group, [&](Value k) {
      for (int64_t i = 0; i < panel.width; i += group)
        copy_square(panel, k, i, group);
    });
  }
  for_each_k(done, shape_.k, 1, [&](Value k) {
    for_loop(i64(0), i64(panel.width), 1,
             [&](Value i) { copy_element(panel, k, i); });
  });
}

/// `size` elements from k on of each of the `size` rows from `first` on.
void DotEmitter::copy_square(const Panel& panel, Value k, int64_t first,
                             int64_t size) {
  auto* type = llvm::FixedVectorType::get(element_, size);
  std::vector<Value> rows;
  for (int64_t i = first; i < first + size; ++i)
    rows.push_back(b_.CreateAlignedLoad(
        type, at(panel.from, add(k, i64(i * panel.across))), element_align()));
  Value all = interleaved(rows);
  for (int64_t j = 0; j < size; ++j) {
    llvm::SmallVector<int> part;
    for (int64_t i = 0; i < size; ++i)
      part.push_back(static_cast<int>(j * size + i));
    Value to = at(panel.to, add(mul(add(k, i64(j)), panel.width), i64(first)));
    b_.CreateAlignedStore(b_.CreateShuffleVector(all, part), to,
                          element_align());
  }
}

/// A panel of `width` rows of A (columns of B): for each k its elements side by
/// side, zeros where the matrix ends. One unit is one panel.
EmittedDot::Launch DotEmitter::pack(const std::string& name, bool is_a) {
  const int64_t width = is_a ? tile_.rows : tile_.columns();
  const int64_t panels = is_a ? m_panels_ : n_panels_;
  const int64_t size = is_a ? shape_.m : shape_.n;
  const int64_t across = is_a ? shape_.a_row : shape_.b_column;
  const int64_t along = is_a ? shape_.a_column : shape_.b_row;
  const int64_t batch_stride = is_a ? shape_.a_batch : shape_.b_batch;
  const int64_t offset = is_a ? shape_.a_offset : shape_.b_offset;
  kernel(name, 2, [&](llvm::ArrayRef<Value> buffers, Value unit) {
    Value panel = b_.CreateSRem(unit, i64(panels));
    Value first = mul(panel, width);
    Value from =
        at(buffers[0], add(mul(b_.CreateSDiv(unit, i64(panels)), batch_stride),
                           add(mul(first, across), i64(offset))));
    Value to = at(buffers[1], mul(unit, shape_.k * width));
    Value there = min(b_.CreateSub(i64(size), first), i64(width));
    const Panel panel_at{from, to, width, across, along};
    if (size % width == 0) return copy_whole(panel_at);
    if_else(
        b_.CreateICmpEQ(there, i64(width)), [&] { copy_whole(panel_at); },
        [&] { copy_part(panel_at, there); });
  });
  const int64_t work = shape_.k * width;
  return {name, shape_.batch * panels, std::max<int64_t>(1, 32768 / work)};
}

/// sums + a[k] * b[k] for from <= k < to, `step` of them in one turn. a and b
/// point at k = 0 of their panels.
std::vector<llvm::Value*> DotEmitter::products(Value a, Value b, Value from,
                                               Value to, int64_t step,
                                               std::vector<Value> sums) {
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
  for (int64_t s = 0; s < step; ++s) {
    Value column = add(k, i64(s));
    Value a_at = at(a, mul(column, tile_.rows));
    Value b_at = at(b, mul(column, tile_.columns()));
    std::vector<Value> right;
    for (int v = 0; v < tile_.vectors; ++v) {
      right.push_back(b_.CreateAlignedLoad(
          vector_, at(b_at, i64(v * tile_.lanes)), element_align()));
    }
    for (int r = 0; r < tile_.rows; ++r) {
      Value left = b_.CreateVectorSplat(
          tile_.lanes,
          b_.CreateAlignedLoad(element_, at(a_at, i64(r)), element_align()));
      for (int v = 0; v < tile_.vectors; ++v) {
        Value& sum = next[r * tile_.vectors + v];
        sum = b_.CreateIntrinsic(llvm::Intrinsic::fma, {vector_},
                                 {left, right[v], sum});
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

/// Lanes of vector number `vector` that lie in the matrix, if the row does.
llvm::Value* DotEmitter::column_mask(Value columns, int vector,
                                     Value row_is_there) {
  std::vector<llvm::Constant*> numbers;
  for (int lane = 0; lane < tile_.lanes; ++lane) {
    numbers.push_back(
        b_.getInt64(static_cast<uint64_t>(vector * tile_.lanes + lane)));
  }
  Value inside = b_.CreateICmpSLT(llvm::ConstantVector::get(numbers),
                                  b_.CreateVectorSplat(tile_.lanes, columns));
  return b_.CreateAnd(inside, b_.CreateVectorSplat(tile_.lanes, row_is_there));
}

/// void micro(a, b, c, i64 count, i1 first, i64 rows, i64 columns): one tile of
/// C and one block of k. The part of the tile inside the matrix is rows x
/// columns; `first` says that the chain starts here and not from C.
llvm::Function* DotEmitter::micro_kernel(const std::string& name) {
  llvm::Type *pointer = b_.getPtrTy(), *integer = b_.getInt64Ty();
  auto* type = llvm::FunctionType::get(
      b_.getVoidTy(),
      {pointer, pointer, pointer, integer, b_.getInt1Ty(), integer, integer},
      false);
  auto* f = llvm::Function::Create(type, llvm::Function::InternalLinkage, name,
                                   module_);
  add_attributes(*f);
  f->addFnAttr(llvm::Attribute::NoInline);
  Value a = f->getArg(0), b = f->getArg(1), c = f->getArg(2);
  Value count = f->getArg(3), first = f->getArg(4), rows = f->getArg(5),
        columns = f->getArg(6);
  const auto block = [&](const char* label) {
    return llvm::BasicBlock::Create(b_.getContext(), label, f);
  };
  auto *entry = block("entry"), *load = block("load"), *start = block("start");
  const int cells = tile_.rows * tile_.vectors;
  const auto place = [&](int cell) {
    return at(c, i64(cell / tile_.vectors * shape_.n +
                     cell % tile_.vectors * tile_.lanes));
  };
  const auto mask = [&](int cell) {
    Value row = b_.CreateICmpSLT(i64(cell / tile_.vectors), rows);
    return column_mask(columns, cell % tile_.vectors, row);
  };
  Value zero = llvm::Constant::getNullValue(vector_);

  b_.SetInsertPoint(entry);
  b_.CreateCondBr(first, start, load);
  b_.SetInsertPoint(load);
  std::vector<Value> sums;
  for (int cell = 0; cell < cells; ++cell) {
    sums.push_back(b_.CreateMaskedLoad(vector_, place(cell), element_align(),
                                       mask(cell), zero));
  }
  b_.CreateBr(start);
  b_.SetInsertPoint(start);
  for (Value& sum : sums) {
    llvm::PHINode* phi = b_.CreatePHI(vector_, 2);
    phi->addIncoming(zero, entry);
    phi->addIncoming(sum, load);
    sum = phi;
  }
  Value most = mul(b_.CreateSDiv(count, i64(k_unroll)), k_unroll);
  sums = products(a, b, i64(0), most, k_unroll, sums);
  sums = products(a, b, most, count, 1, sums);

  auto *whole = block("whole"), *part = block("part"), *done = block("done");
  Value full = b_.CreateAnd(b_.CreateICmpEQ(rows, i64(tile_.rows)),
                            b_.CreateICmpEQ(columns, i64(tile_.columns())));
  b_.CreateCondBr(full, whole, part);
  b_.SetInsertPoint(whole);
  for (int cell = 0; cell < cells; ++cell)
    b_.CreateAlignedStore(sums[cell], place(cell), element_align());
  b_.CreateBr(done);
  b_.SetInsertPoint(part);
  for (int cell = 0; cell < cells; ++cell)
    b_.CreateMaskedStore(sums[cell], place(cell), element_align(), mask(cell));
  b_.CreateBr(done);
  b_.SetInsertPoint(done);
  b_.CreateRetVoid();
  return f;
}

/// One unit is a rectangle of panels.
EmittedDot::Launch DotEmitter::multiply(const std::string& name) {
  llvm::Function* micro = micro_kernel(name + ".micro");
  const int64_t m_units = ceil_div(m_panels_, m_panels_a_unit);
  const int64_t n_units = ceil_div(n_panels_, n_panels_a_unit);
  const int64_t a_panel = shape_.k * tile_.rows;
  const int64_t b_panel = shape_.k * tile_.columns();
  kernel(name, 3, [&](llvm::ArrayRef<Value> buffers, Value unit) {
    Value batch = b_.CreateSDiv(unit, i64(m_units * n_units));
    Value tile = b_.CreateSRem(unit, i64(m_units * n_units));
    Value m_first = mul(b_.CreateSDiv(tile, i64(n_units)), m_panels_a_unit);
    Value n_first = mul(b_.CreateSRem(tile, i64(n_units)), n_panels_a_unit);
    Value m_last = min(add(m_first, i64(m_panels_a_unit)), i64(m_panels_));
    Value n_last = min(add(n_first, i64(n_panels_a_unit)), i64(n_panels_));
    Value a = at(buffers[0], mul(batch, m_panels_ * a_panel));
    Value b = at(buffers[1], mul(batch, n_panels_ * b_panel));
    Value c = at(buffers[2], mul(batch, shape_.m * shape_.n));
    for_loop(i64(0), i64(shape_.k), k_block, [&](Value k) {
      poll();
      Value count = min(b_.CreateSub(i64(shape_.k), k), i64(k_block));
      Value first = b_.CreateICmpEQ(k, i64(0));
      for_loop(n_first, n_last, 1, [&](Value np) {
        Value j = mul(np, tile_.columns());
        Value b_at = at(b, add(mul(np, b_panel), mul(k, tile_.columns())));
        Value columns =
            min(b_.CreateSub(i64(shape_.n), j), i64(tile_.columns()));
        for_loop(m_first, m_last, 1, [&](Value mp) {
          Value i = mul(mp, tile_.rows);
          Value a_at = at(a, add(mul(mp, a_panel), mul(k, tile_.rows)));
          Value rows = min(b_.CreateSub(i64(shape_.m), i), i64(tile_.rows));
          b_.CreateCall(micro, {a_at, b_at, at(c, add(mul(i, shape_.n), j)),
                                count, first, rows, columns});
        });
      });
    });
  });
  return {name, shape_.batch * m_units * n_units, 1};
}

}  // namespace

EmittedDot emit_dot(llvm::Module& module, const std::string& name,
                    const DotShape& shape, int vector_bytes) {
  DotEmitter emitter(module, shape, dot_tile(shape.dtype, vector_bytes));
  EmittedDot dot;
  dot.pack_a = emitter.pack(name + ".pack_a", true);
  dot.pack_b = emitter.pack(name + ".pack_b", false);
  dot.multiply = emitter.multiply(name);
  return dot;
}

}  // namespace unisono::jit
