#pragma once
// What emits the functions of one product: dot.cpp has loops and the packing of
// panels, dot_multiply.cpp what multiplies them.
#include <llvm/IR/IRBuilder.h>

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "jit/emit/dot.h"
#include "jit/emit/emit.h"

namespace unisono::jit {

class DotEmitter {
 public:
  DotEmitter(llvm::Module& module, const DotShape& shape, DotTile tile);

  /// Packs A, or B.
  EmittedDot::Launch pack(const std::string& name, bool is_a);
  /// Multiplies packed operands, or operands as they are.
  EmittedDot::Launch multiply_packed(const std::string& name);
  EmittedDot::Launch multiply_direct(const std::string& name);

 private:
  using Value = llvm::Value*;
  using Body = std::function<void(Value)>;

  // ---- loops
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
  void for_loop(Value begin, Value end, int64_t step, const Body& body);
  void if_else(Value condition, const std::function<void()>& yes,
               const std::function<void()>& no);
  /// `yes` if the condition holds; one that is known makes no branch.
  void when(Value condition, const std::function<void()>& yes);
  void poll() { jit::poll(b_, flags_, leave_); }
  /// void name(ptr buffers, i64 begin, i64 end, ptr context), its body called
  /// for every unit.
  void kernel(const std::string& name, int arguments,
              const std::function<void(llvm::ArrayRef<Value> buffers,
                                       Value unit)>& unit_body);
  /// `number` divided by `count`, which is left in it, and the remainder.
  Value take(Value& number, int64_t count);

  // ---- packing
  /// `count` elements along k of each of `there` rows (of A; columns of B)
  /// become, for each k, `width` elements side by side, the last ones zeros.
  /// Rows are `across` apart in memory, their elements `along`.
  struct Panel {
    Value from, to, count;
    int64_t width, there, across, along;
    bool polls;
  };
  void for_each_k(const Panel& panel, Value begin, Value end, int64_t step,
                  const Body& body);
  void copy(const Panel& panel);
  void copy_vectors(const Panel& panel, int64_t group);
  void copy_element(const Panel& panel, Value k, Value i);
  void copy_square(const Panel& panel, Value k, int64_t first, int64_t size);
  Value interleaved(llvm::ArrayRef<Value> rows);

  // ---- multiplying
  /// A tile of the result, rows x columns, in so many vectors a row, of which
  /// the last may not be full; and where operands lie: A's rows, its elements
  /// along k, and B's rows are so far apart. Of a view A's distances are in
  /// tables. The next tile's elements of A are `next_a` on, if that is known:
  /// they are asked for in time, as the second cache has no room for all of A.
  struct Tile {
    int64_t rows, columns, a_row, a_step, b_step, next_a = 0;
  };
  /// Where the elements of a view lie: element (i, k) at the sum of what both
  /// tables, of rows and of columns, say.
  struct Tables {
    Value rows = nullptr, columns = nullptr;
  };
  /// The addresses of the elements of A that a step along k takes, by row. Of
  /// several steps from k on, step 0 is asked for first.
  using Left = std::function<std::vector<Value>(Value k, int64_t step)>;
  int vectors(const Tile& tile) const;
  /// The rows of a tile that has so many columns and fills the registers.
  int64_t rows_for(int64_t columns) const;
  llvm::Function* micro_kernel(const std::string& name, const Tile& tile);
  std::vector<Value> products(const Tile& tile, const Left& left, Value b,
                              Value from, Value to, int64_t step,
                              const std::vector<Value>& sums);
  Left left_of(const Tile& tile, Value a, const Tables& tables);
  Value local_array(llvm::Type* type, int64_t size);
  void fill_table(Value table, const std::vector<DotShape::Axis>& axes,
                  Value first, Value count);
  /// The lanes of a vector of a tile's row that the row has; null if all.
  Value mask(const Tile& tile, int vector);
  Value load(Value from, Value mask);
  void prefetch(Value place);
  /// Calls `body(first, size)` for pieces of begin ... end - 1 that have `size`
  /// elements, and for a last one of `rest`, which is there if `end` is `last`.
  void in_tiles(Value begin, Value end, int64_t last, int64_t size,
                int64_t rest,
                const std::function<void(Value first, int64_t size)>& body);

  llvm::Module& module_;
  const DotShape& shape_;
  const DotTile tile_;
  llvm::IRBuilder<> b_;
  llvm::Type* element_;
  llvm::FixedVectorType* vector_;
  StopFlags flags_;  // of the function that is emitted
  llvm::BasicBlock* leave_ = nullptr;
};

}  // namespace unisono::jit
