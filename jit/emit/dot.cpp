// Loops of products of matrices, and the packing of their operands into panels:
// one of A has a tile's rows, one of B its columns; both run along k.
#include <llvm/IR/Intrinsics.h>
#include <llvm/IR/Module.h>

#include <algorithm>

#include "jit/emit/dot_emitter.h"
#include "runtime/tuning/tuning.h"

namespace unisono::jit {
namespace {

constexpr int64_t most_square = 8;  // transposed in registers

int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }

}  // namespace

DotEmitter::DotEmitter(llvm::Module& module, const DotShape& shape,
                       DotTile tile)
    : module_(module),
      shape_(shape),
      tile_(tile),
      b_(module.getContext()),
      element_(shape.dtype == DType::F64 ? b_.getDoubleTy() : b_.getFloatTy()),
      vector_(llvm::FixedVectorType::get(element_, tile.lanes)) {}

// ---- loops -----------------------------------------------------------------

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

void DotEmitter::when(Value condition, const std::function<void()>& yes) {
  if_else(condition, yes, [] {});
}

llvm::Value* DotEmitter::take(Value& number, int64_t count) {
  if (count == 1) return i64(0);
  Value rest = b_.CreateURem(number, i64(count));
  number = b_.CreateUDiv(number, i64(count));
  return rest;
}

// ---- packing ---------------------------------------------------------------

/// `step` divides the distance between polls.
void DotEmitter::for_each_k(const Panel& panel, Value begin, Value end,
                            int64_t step, const Body& body) {
  if (!panel.polls) return for_loop(begin, end, step, body);
  for_loop(begin, end, tuning().packed_between_looks, [&](Value first) {
    poll();
    for_loop(first, min(add(first, i64(tuning().packed_between_looks)), end),
             step, body);
  });
}

void DotEmitter::copy_element(const Panel& panel, Value k, Value i) {
  Value source = at(panel.from, add(mul(k, panel.along), mul(i, panel.across)));
  Value x = b_.CreateAlignedLoad(element_, source, element_align());
  b_.CreateAlignedStore(x, at(panel.to, add(mul(k, panel.width), i)),
                        element_align());
}

/// Rows that lie one element apart: vectors of `group` of them, the last one of
/// which may not be full.
void DotEmitter::copy_vectors(const Panel& panel, int64_t group) {
  auto* type = llvm::FixedVectorType::get(element_, group);
  for_each_k(panel, i64(0), panel.count, 1, [&](Value k) {
    for (int64_t i = 0; i < panel.width; i += group) {
      Value x = llvm::Constant::getNullValue(type);
      Value from = at(panel.from, add(mul(k, panel.along), i64(i)));
      if (i + group <= panel.there) {
        x = b_.CreateAlignedLoad(type, from, element_align());
      } else if (i < panel.there) {
        llvm::SmallVector<llvm::Constant*> bits;
        for (int64_t e = i; e < i + group; ++e)
          bits.push_back(b_.getInt1(e < panel.there));
        x = b_.CreateMaskedLoad(type, from, element_align(),
                                llvm::ConstantVector::get(bits), x);
      }
      b_.CreateAlignedStore(x, at(panel.to, add(mul(k, panel.width), i64(i))),
                            element_align());
    }
  });
}

/// Rows lie one element apart, or their elements do and are transposed in
/// registers, or neither.
void DotEmitter::copy(const Panel& panel) {
  int64_t group = tile_.lanes;
  if (panel.across != 1) group = std::min<int64_t>(group, most_square);
  while (panel.width % group) group /= 2;
  if (panel.across == 1) return copy_vectors(panel, group);
  // Tiles have an even number of rows, and of columns.
  const int64_t squared = panel.along == 1 ? panel.there / group * group : 0;
  Value done = i64(0);
  if (squared) {
    done = mul(b_.CreateSDiv(panel.count, i64(group)), group);
    for_each_k(panel, i64(0), done, group, [&](Value k) {
      for (int64_t i = 0; i < squared; i += group)
        copy_square(panel, k, i, group);
    });
  }
  const auto singly = [&](Value begin, Value end, int64_t first, int64_t last) {
    if (first == last) return;
    for_each_k(panel, begin, end, 1, [&](Value k) {
      for_loop(i64(first), i64(last), 1, [&](Value i) {
        if (first < panel.there) return copy_element(panel, k, i);
        b_.CreateAlignedStore(llvm::ConstantFP::get(element_, 0),
                              at(panel.to, add(mul(k, panel.width), i)),
                              element_align());
      });
    });
  };
  singly(i64(0), done, squared, panel.there);
  singly(done, panel.count, 0, panel.there);
  singly(i64(0), panel.count, panel.there, panel.width);
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

/// A panel of a tile's rows of A (columns of B). One unit is one panel.
EmittedDot::Launch DotEmitter::pack(const std::string& name, bool is_a) {
  const int64_t width = is_a ? tile_.rows : tile_.columns();
  const int64_t size = is_a ? shape_.m : shape_.n;
  const int64_t panels = ceil_div(size, width);
  const int64_t across = is_a ? shape_.a_row : shape_.b_column;
  const int64_t along = is_a ? shape_.a_column : shape_.b_row;
  const int64_t batch_stride = is_a ? shape_.a_batch : shape_.b_batch;
  const int64_t offset = is_a ? shape_.a_offset : shape_.b_offset;
  kernel(name, 2, [&](llvm::ArrayRef<Value> buffers, Value unit) {
    Value batch = unit, panel = take(batch, panels);
    Value first = mul(panel, width);
    Value from = at(buffers[0], add(mul(batch, batch_stride),
                                    add(mul(first, across), i64(offset))));
    Value to = at(buffers[1], mul(unit, shape_.k * width));
    const auto part = [&](int64_t there) {
      copy({from, to, i64(shape_.k), width, there, across, along,
            shape_.k > tuning().packed_between_looks});
    };
    if (size % width == 0) return part(width);
    if_else(
        b_.CreateICmpEQ(panel, i64(panels - 1)), [&] { part(size % width); },
        [&] { part(width); });
  });
  const int64_t work = shape_.k * width;
  return {name, shape_.batch * panels, std::max<int64_t>(1, 32768 / work)};
}

EmittedDot emit_dot(llvm::Module& module, const std::string& name,
                    const DotShape& shape, int vector_bytes) {
  DotEmitter emitter(module, shape,
                     shape.is_view() ? view_tile(shape, vector_bytes)
                                     : dot_tile(shape.dtype, vector_bytes));
  if (dot_form(shape) == DotForm::direct)
    return {{emitter.multiply_direct(name)}};
  std::vector<EmittedDot::Launch> launches = {
      emitter.pack(name + ".pack_a", true)};
  if (!packs_b_in_units(shape))
    launches.push_back(emitter.pack(name + ".pack_b", false));
  launches.push_back(emitter.multiply_packed(name));
  return {std::move(launches)};
}

}  // namespace unisono::jit
