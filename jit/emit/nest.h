#pragma once
// The code of one nest: its loop over units, and in it the loops that the
// nest's form asks for. values.cpp has the expressions, map.cpp,
// reduce.cpp, scan.cpp and scatter.cpp the forms.
#include <llvm/IR/IRBuilder.h>

#include <functional>
#include <utility>
#include <vector>

#include "jit/emit/element_llvm.h"
#include "jit/emit/emit.h"
#include "jit/kernel/choice.h"
#include "jit/kernel/kernel.h"
#include "jit/kernel/schedule.h"

namespace unisono::jit {

/// What all nests of a kernel's function share.
struct Frame {
  llvm::Module& module;
  llvm::Function* function;
  llvm::IRBuilder<>& builder;
  const Kernel& kernel;
  const Machine& machine;
  std::vector<llvm::Value*> arguments = {};  // pointers
  llvm::Value* error = nullptr;
  StopFlags flags = {};
  llvm::Value* position = nullptr;
  llvm::BasicBlock* leave = nullptr;  // where the function returns
  uint32_t checks = 0;                // in the nests emitted so far
};

/// The place in the nest that values are computed for.
struct Point {
  /// Index along each axis, of the first lane; null where no loop runs yet.
  std::vector<llvm::Value*> index;
  /// Index of each lane along axes that lanes cross irregularly, else null.
  std::vector<llvm::Value*> lane_index;
  int vector_axis = -1;         // lanes are neighbours along it
  unsigned lanes = 0;           // 0: scalars
  llvm::Value* mask = nullptr;  // of active lanes; null: all are
};

/// The values of a nest's expressions, by ExprId; null if not yet computed.
using Values = std::vector<llvm::Value*>;

/// Emits a nest for CPUs; GridEmitter (grid_nest.h) has other loops around the
/// same expressions.
class NestEmitter {
 public:
  NestEmitter(Frame& frame, const Nest& nest, const Schedule& plan);
  virtual ~NestEmitter() = default;
  /// Emits the loop over units begin ... end-1 of this nest (i64 values).
  void emit(llvm::Value* begin, llvm::Value* end);
  /// This nest adds rows that `rows` reduces (rows_and_sums): before it does,
  /// it emits units of that.
  void add_after(NestEmitter& rows) { rows_ = &rows; }

 protected:
  using Body = std::function<void(llvm::Value* index)>;
  /// What a check that fails says besides its code and value.
  struct Check {
    uint32_t source;
    const MemberPlace& member;
    size_t rank;  // among the nest's checks
  };

  // ---- loops
  /// for (i = begin; i < end; i += step) body(i)
  void loop(llvm::Value* begin, llvm::Value* end, int64_t step,
            const Body& body);
  void emit_unit(llvm::Value* unit);
  /// Leaves the function if the run shall stop.
  virtual void poll();
  using VectorBody = std::function<void(llvm::Value* index, unsigned lanes,
                                        llvm::Value* mask)>;
  /// Calls body for vectors of `lanes` along [begin, end), then for the tail.
  void vector_loop(llvm::Value* begin, llvm::Value* end, unsigned lanes,
                   const VectorBody& body);
  /// The tail, too, is a vector, of which some lanes are off.
  void masked_loop(llvm::Value* begin, llvm::Value* end, unsigned lanes,
                   const VectorBody& body);

  // ---- forms
  virtual void emit_map(Point& point, llvm::Value* block);
  void emit_segment(llvm::Value* begin, llvm::Value* end,
                    const VectorBody& body);
  void emit_turns(Point& point, llvm::Value* block);
  void take_turns(Point& point, Values& values);
  std::vector<bool> expressions_in(int loop) const;
  void set_carries(Values& to, int loop,
                   llvm::ArrayRef<llvm::Value*> from) const;
  llvm::Value* take_inner_turns(int loop, Point& point, const Values& values);
  std::vector<llvm::Value*> last_carries(int loop, Point& point,
                                         const Values& values);
  void put_all(const std::vector<Turns::Put>& puts,
               llvm::ArrayRef<llvm::Value*> parts, Point& point,
               const Values& now);
  std::vector<bool> needed_for(ExprId id, const Values& values) const;
  void leave_if_failed();
  void poll_after(llvm::Value* turns, int loop);
  virtual void emit_tiles(Point& point, llvm::Value* block);
  void emit_tile(const Point& point);
  std::vector<std::vector<llvm::Value*>> load_squares(const Point& point);
  std::vector<llvm::Value*> load_square(size_t e, const Point& point, int down,
                                        unsigned size);
  void prefetch(size_t e, const Point& point, int down);
  void prefetch_at(size_t e, const Point& point, int64_t further);
  void prefetch_lanes(const std::vector<bool>& needed, const Point& point);
  void prefetch_rows(const std::vector<bool>& needed, const Point& point,
                     int64_t rows);
  std::vector<std::vector<llvm::Value*>> load_lines(const Point& point,
                                                    int down, int64_t count);
  std::vector<int> all_stores() const;
  std::pair<llvm::Value*, llvm::Value*> block_range(int axis,
                                                    llvm::Value* block);
  void emit_lanes(Point& point);
  void emit_columns_at(Point& point);
  /// `block` is the number of the chunk, for parts of long lines.
  virtual void emit_scan(Point& point, llvm::Value* block);
  virtual void emit_scan_in_order(Point& point);
  llvm::Value* scan_chunk(Point& point, const Values& fixed,
                          llvm::Value* number, llvm::Value* carry,
                          int64_t length);
  llvm::Value* scan_block_of(Point& point, const Values& fixed,
                             llvm::Value* start, llvm::Value* base,
                             int64_t length);
  llvm::Value* scan_run(Point& point, const Values& fixed, llvm::Value* start,
                        llvm::Value* carry, llvm::Value* total,
                        llvm::Value* rounds, int64_t at_once, bool stores);
  /// Points of a column whose loads are under way at once.
  virtual int64_t scanned_at_once() const { return 1; }
  /// The blocks of a members tree that wait, by level: ScanCarry's.
  struct CarryBlocks {
    std::function<llvm::Value*(llvm::Value* level)> get;
    std::function<void(llvm::Value* level, llvm::Value* value)> put;
  };
  CarryBlocks carry_blocks(llvm::Value* alike, int64_t parts);
  llvm::Value* push_part(const CarryBlocks& blocks, llvm::Value* number,
                         llvm::Value* total);
  llvm::Value* fold_blocks(const CarryBlocks& blocks, llvm::Value* rest,
                           llvm::Value* sum);
  llvm::Value* without_lowest(llvm::Value* bits);
  llvm::Value* next_carry(const CarryBlocks& blocks, llvm::Value* number,
                          llvm::Value* total);
  llvm::Value* scan_combine(llvm::Value* a, llvm::Value* b);
  llvm::Value* scan_neutral(unsigned lanes);
  void put_scanned(llvm::Value* value, Point& point);
  virtual void emit_scatter_at(Point& point);
  void in_order(int64_t count, const Body& body);
  /// Calls `emit` for the vector along the last kept axis that is unit `block`.
  void with_columns(Point& point, llvm::Value* block,
                    const std::function<void(Point&)>& emit);

  // ---- reductions
  /// What a reduction has combined so far: one value, or for argmax and argmin
  /// the best and its index.
  using Accumulator = std::vector<llvm::Value*>;
  using Accumulators = std::vector<Accumulator>;
  struct Loop {
    int phase = 0;
    std::vector<int> reductions = {};
    std::vector<int> stores = {};
    std::vector<bool> needed = {};  // expressions
    bool polls = true;
  };
  Loop loop_of_phase(int phase) const;
  Accumulator neutral(const Reduction& reduction, unsigned lanes,
                      const Values& first);
  Accumulators elements(const Loop& loop, const Values& values, Point& point);
  /// Combines a, then b; `in_order`: b's elements all come after a's.
  Accumulator combine(const Reduction& reduction, const Accumulator& a,
                      const Accumulator& b, bool in_order);
  Accumulator better(const Reduction& reduction, const Accumulator& a,
                     const Accumulator& b, bool in_order);
  Accumulators combine_all(const Loop& loop, const Accumulators& a,
                           const Accumulators& b, bool in_order);
  Accumulator halves(const Reduction& reduction, Accumulator value,
                     unsigned lanes);
  std::vector<llvm::Value*> flatten(const Accumulators& all) const;
  Accumulators unflatten(const Loop& loop,
                         llvm::ArrayRef<llvm::Value*> values) const;
  /// for (i = 0; i < count; ++i) state = step(i, state), in registers.
  std::vector<llvm::Value*> carried_loop(
      llvm::Value* count, std::vector<llvm::Value*> state,
      const std::function<std::vector<llvm::Value*>(
          llvm::Value* index, llvm::ArrayRef<llvm::Value*> state)>& step);
  /// The members tree over leaf(0) ... leaf(count - 1); the last leaf is
  /// emitted apart if it is `last_differs`.
  using Leaf = std::function<Accumulators(llvm::Value* leaf, bool last)>;
  Accumulators tree(const Loop& loop, int64_t count, bool last_differs,
                    const Leaf& leaf);
  void push_leaf(const Loop& loop, llvm::ArrayRef<llvm::Value*> stacks,
                 llvm::Value* leaf, const Accumulators& value);
  void emit_phases(Point& point, bool in_lanes);
  virtual void phase_in_lanes(Point& point, Values& values, const Loop& loop);
  Accumulators chunk_in_lanes(Point& point, const Values& values,
                              const Values& first, const Loop& loop,
                              llvm::Value* start, int64_t length);
  virtual void phase_in_columns(Point& point, Values& values, const Loop& loop);
  std::vector<llvm::Value*> chain_in_squares(Point& point, const Values& values,
                                             const Loop& loop,
                                             llvm::Value* start, int64_t rounds,
                                             std::vector<llvm::Value*> state);
  void emit_wide_columns(Point& point, llvm::Value* block);
  void set_reduced_index(Point& point, llvm::Value* flat, unsigned lanes);
  Values first_indices(Point& point, const Values& values, const Loop& loop,
                       bool in_lanes);
  int64_t reduced_points() const;
  void finish_phase(Values& values, const Loop& loop,
                    const Accumulators& results);
  void outer_values(Point& point, Values& values, int phase);
  virtual void outer_stores(Point& point, const Values& values, int phase);

  // ---- values
  void compute(const std::vector<bool>& needed, Point& point, Values& values);
  llvm::Value* value_of(const Expr& expr, ExprId id, Point& point,
                        const Values& values);
  virtual llvm::Value* operation(const Expr& expr, ExprId id, Point& point,
                                 const Values& values);
  llvm::Value* bounded(const Expr& expr, llvm::Value* a, llvm::Value* b);
  llvm::Value* divided_by_power(const Expr& expr, llvm::Value* x);
  llvm::Value* iota(const Expr& expr, ExprId id, Point& point);
  llvm::Value* gather(const Expr& expr, ExprId id, Point& point,
                      const Values& values);
  /// What becomes of an index out of bounds: clamped; or reported, with 0 in
  /// its place; or only 0 in its place, as an earlier kernel has reported it.
  enum class Bounds : uint8_t { clamped, reported, were_reported };
  llvm::Value* indexed_offset(llvm::Value* offset,
                              const std::vector<Expr::IndexedAxis>& axes,
                              const std::vector<ExprId>& indices, Bounds bounds,
                              const Check& check, Point& point,
                              const Values& values);
  static Bounds bounds_of(bool checked) {
    return checked ? Bounds::reported : Bounds::clamped;
  }
  llvm::Value* all_lane_offsets(const Affine& at, llvm::Value* offset,
                                Point& point);
  void store(const Affine& at, llvm::Value* unit_part, int argument,
             DType dtype, llvm::Value* value, Point& point, bool streaming);
  void store_at(int argument, DType dtype, llvm::Value* offset,
                const Affine& at, llvm::Value* value, Point& point,
                bool streaming);
  void store_in_order(llvm::Value* stored, llvm::Value* to, DType dtype,
                      bool streaming);
  void store_outputs(const std::vector<int>& stores, Point& point,
                     const Values& values);
  /// Elements argument[offset + lane * stride], or [lane_offsets].
  llvm::Value* load_at(int argument, DType dtype, llvm::Value* offset,
                       int64_t stride, Point& point);
  llvm::Value* gather_at(int argument, DType dtype, llvm::Value* offsets,
                         Point& point);
  void scatter_at(int argument, DType dtype, llvm::Value* offsets,
                  llvm::Value* stored, Point& point);
  llvm::Value* element_pointer(int argument, DType dtype, llvm::Value* offset);
  /// The part of an Affine that the unit fixes, and the whole at a point.
  llvm::Value* unit_part(const Affine& at, const Point& point);
  llvm::Value* offset_at(const Affine& at, llvm::Value* unit_part,
                         const Point& point);
  /// Offsets of all lanes if they are irregular, else null.
  llvm::Value* lane_offsets(const Affine& at, llvm::Value* offset,
                            const Point& point);
  bool varies(const Affine& at, const Point& point) const;
  llvm::Value* widened(llvm::Value* value, const Point& point);
  llvm::Value* lane_numbers(llvm::Type* element, unsigned lanes);
  llvm::Value* lane_mask(llvm::Value* active, unsigned lanes);
  llvm::Value* constant_mask(int64_t active, unsigned lanes);
  virtual void report(int32_t code, llvm::Value* where, llvm::Value* value,
                      int64_t bound, const Check& check, Point& point);
  llvm::Value* member_at(const MemberPlace& place, llvm::Value* lane,
                         Point& point);
  virtual EmitContext context(unsigned lanes);
  /// What follows is code for this expression.
  virtual void locate(const Expr& expr);
  llvm::Type* vector_type(llvm::Type* element, unsigned lanes);
  llvm::Value* index_constant(int64_t value);
  llvm::Value* element_constant(DType dtype, uint64_t bits);
  void fix_unit_parts(const Point& point);

  Frame& frame_;
  llvm::IRBuilder<>& b_;
  const Nest nest_;
  const Schedule plan_;
  std::vector<bool> inner_;           // changes along reduced axes
  std::vector<bool> in_loop_;         // changes along the vectorised axis
  std::vector<bool> unit_axis_;       // its index is fixed by the unit
  const Segment* segment_ = nullptr;  // of the vectorised axis
  Values unit_parts_, store_parts_;
  NestEmitter* rows_ = nullptr;
  llvm::Value* side_part_ = nullptr;    // of the scan's or scatter's access
  std::vector<llvm::Value*> failures_;  // of checks in the present turn
  std::vector<int> in_turns_;  // by expression: in which it is computed
  std::vector<std::vector<llvm::Value*>> last_;  // of inner turns: carries
  int check_number_ = 0;  // reports so far of one expression at one point
};

}  // namespace unisono::jit
