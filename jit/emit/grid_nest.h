#pragma once
// The code of one nest for a grid of threads: NestEmitter's expressions, with
// loops in which threads, warps or blocks take the units. All values are
// scalars; a thread's neighbours do its neighbours' elements.
#include <llvm/IR/DebugLoc.h>

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "jit/emit/grid.h"
#include "jit/emit/nest.h"
#include "jit/kernel/grid_schedule.h"
#include "jit/kernel/usual_numbers.h"
#include "runtime/grid.h"

namespace unisono::jit {

/// Address spaces of NVPTX.
inline constexpr unsigned global_space = 1, shared_space = 3;

/// Says of a kernel's instructions which lines they compute. What is not known
/// has the line of the first expression that has one.
class GridLines {
 public:
  /// Without `lines` nothing is said.
  GridLines(llvm::Function& function, const Kernel& kernel,
            const SourceLines& lines);
  /// What the builder makes from now on is at `place`; 0: not known.
  void at(llvm::IRBuilder<>& builder, uint32_t place);

 private:
  llvm::DIFile* file(const std::string& path);

  llvm::Module& module_;
  const SourceLines& lines_;
  llvm::DISubprogram* kernel_ = nullptr;  // null: nothing is said
  std::map<uint32_t, llvm::DebugLoc> known_;
};

/// What all nests of a kernel for a grid share.
struct GridFrame {
  Frame frame;
  llvm::Value* thread = nullptr;  // in its block, i32
  llvm::Value* lane = nullptr;    // in its warp
  llvm::Value* warp = nullptr;    // in its block
  llvm::Value* launch = nullptr;  // the launch's number
  /// Shared memory, the same for all nests, of which a block does only one.
  llvm::GlobalVariable* shared = nullptr;
  int64_t shared_bytes = 0;
  llvm::GlobalVariable* shared_table = nullptr;  // a copy of `table`
  llvm::GlobalVariable* table = nullptr;
  std::vector<GridCheck> checks = {};
  int element_bits = 0;
  GridLines* lines = nullptr;
};

class GridEmitter final : public NestEmitter {
 public:
  GridEmitter(GridFrame& grid, const Nest& nest, const GridSchedule& schedule);
  /// Emits what block number `block` (i64) of this nest does.
  void emit_block(llvm::Value* block);

 private:
  EmitContext context(unsigned lanes) override;
  llvm::Value* in_shared(llvm::GlobalVariable* table);
  void fill_table(llvm::Instruction* first);
  void locate(const Expr& expr) override;
  void poll() override {}  // a launch ends by itself
  void emit_map(Point& point, llvm::Value* block) override;
  void emit_tiles(Point& point, llvm::Value* block) override;
  void emit_scan(Point& point, llvm::Value* block) override;
  void emit_scan_in_order(Point& point) override;
  void emit_scatter_at(Point& point) override;
  void phase_in_lanes(Point& point, Values& values, const Loop& phase) override;
  void phase_in_columns(Point& point, Values& values,
                        const Loop& loop) override;
  void outer_stores(Point& point, const Values& values, int phase) override;
  void report(int32_t code, llvm::Value* where, llvm::Value* value,
              int64_t bound, const Check& check, Point& point) override;

  llvm::Value* error_key(size_t number, const Check& check, Point& point);

  void emit_units(llvm::Value* block);
  void emit_turns(llvm::Value* block);

  // ---- maps (grid.cpp, grid_map.cpp)
  void map_element(Point& point, llvm::Value* index, const Values& fixed);
  struct Neighbours;
  Values fixed_in_box(Point& point);
  void map_box(Point& point, llvm::Value* row, llvm::Value* first,
               const Values& fixed);
  void map_row(Point at, llvm::Value* first, const Values& fixed,
               const std::vector<std::vector<llvm::Value*>>& loaded);
  /// Quick operations on numbers in the usual range, and what has been seen of
  /// their operands.
  struct Usual {
    UsualNumbers numbers;
    bool quick = false;                // whether they are in use
    llvm::Value* sizes = nullptr;      // bits above the range's, the most, i32
    llvm::Value* exponents = nullptr;  // the largest |x|
  };
  void prepare_usual(const Values& fixed);
  void see_usual(const Values& values);
  llvm::Value* has_unusual();
  llvm::Value* scaled_sum(const Expr& expr, const Values& values);
  std::vector<Neighbours> load_neighbours(const Point& point);
  bool loads_neighbours(const Expr& expr) const;
  static Neighbours* neighbours_of(std::vector<Neighbours>& all,
                                   const Expr& expr);
  int64_t constant_in_box(const Expr& expr, int64_t row, int64_t column) const;
  bool gathers_wide(const Expr& expr, const Values& fixed) const;
  /// `width` neighbours as one access.
  std::vector<llvm::Value*> load_wide(const Expr& expr, llvm::Value* offset,
                                      int64_t width);
  void store_wide(const Store& store, llvm::Value* offset,
                  const std::vector<llvm::Value*>& lanes);
  std::vector<llvm::Value*> read_wide(llvm::Value* at, DType dtype,
                                      int64_t width);
  llvm::Instruction* write_wide(llvm::Value* at, DType dtype,
                                const std::vector<llvm::Value*>& lanes);

  // ---- control
  void when(llvm::Value* condition, const std::function<void()>& body);
  /// The values of body() where the condition holds, else `otherwise`.
  std::vector<llvm::Value*> choose(
      llvm::Value* condition, const std::vector<llvm::Value*>& otherwise,
      const std::function<std::vector<llvm::Value*>()>& body,
      bool rarely = false);
  /// carried_loop, for counts that may be 0.
  std::vector<llvm::Value*> counted_loop(
      llvm::Value* count, const std::vector<llvm::Value*>& state,
      const std::function<std::vector<llvm::Value*>(
          llvm::Value* index, llvm::ArrayRef<llvm::Value*> state)>& step);

  // ---- threads
  llvm::Value* i32(int64_t value);
  llvm::Value* wide(llvm::Value* value);    // i32 to i64
  llvm::Value* narrow(llvm::Value* value);  // i64 to i32
  llvm::Value* is_leader();
  int workers() const;    // threads that do a unit together
  llvm::Value* worker();  // this thread's number among the workers, i64
  void synchronise();     // the workers
  enum class Shuffle : uint8_t { down, index };
  llvm::Value* shuffle(Shuffle how, llvm::Value* value, llvm::Value* by,
                       int width = warp_threads);
  std::vector<llvm::Value*> shuffle_all(Shuffle how,
                                        const std::vector<llvm::Value*>& values,
                                        int64_t by);
  /// Reserves a place in shared memory for `count` elements of a register
  /// type, after `used` bytes, which grows.
  llvm::Value* shared_array(llvm::Type* type, int64_t count, int64_t& used);
  void put_shared(llvm::Value* array, llvm::Value* index, llvm::Value* value);
  llvm::Value* get_shared(llvm::Value* array, llvm::Type* type,
                          llvm::Value* index);

  // ---- reductions
  /// Does the points at elements `flat` of the reduced axes, and at `width`
  /// from each of them on: all values are computed before any is stored, so
  /// that their loads overlap.
  std::vector<Accumulators> visit(Point& point, const Values& values,
                                  const Loop& loop,
                                  const std::vector<llvm::Value*>& flat,
                                  int64_t width = 1);
  void visit_all(Point& point, const Values& values, const Loop& loop);
  size_t unroll() const;
  Accumulators few_in_thread(Point& point, const Values& values,
                             const Loop& loop);
  Accumulators chunk_in_warp(Point& point, const Values& values,
                             const Values& first, const Loop& loop,
                             llvm::Value* start, llvm::Value* length);
  bool takes_pairs_of_chunks(const Loop& loop) const;
  void chunks_in_pairs(Point& point, const Values& values, const Values& first,
                       const Loop& loop, llvm::Value* leaf,
                       llvm::Value* present,
                       llvm::ArrayRef<llvm::Value*> places);
  Accumulators combined(const Loop& loop, const std::vector<llvm::Value*>& a,
                        const std::vector<llvm::Value*>& b, bool in_order);

  // ---- rows in shared memory (grid_row.cpp)
  /// An expression whose elements of the row lie in shared memory, and, where a
  /// thread has few, those that it filled in its registers, too.
  struct Row {
    int64_t place = -1;  // its first byte; -1: there is none
    int64_t bytes = 0;   // of an element
    bool filled = false;
    bool read = false;  // from shared memory
    std::vector<llvm::Instruction*> writes = {};
    std::vector<std::vector<llvm::Value*>> held = {};  // by group of the thread
  };
  void forget_row(Row& row);
  bool keeps_rows() const;
  std::vector<bool> needed_of(const Loop& loop, bool with_stores) const;
  std::vector<ExprId> keep_rows(const Loop& loop);
  bool keep_row(size_t e, const Loop& loop);
  bool is_read_later(size_t e, const Loop& loop) const;
  void settle_rows(const std::vector<ExprId>& fresh);
  llvm::Value* row_element(size_t e, llvm::Value* flat);
  std::vector<llvm::Value*> read_row(size_t e, llvm::Value* flat,
                                     int64_t width);
  int64_t row_width(const Loop& loop, const std::vector<bool>& needed,
                    const std::vector<ExprId>& fresh) const;
  struct RowGroup;
  RowGroup open_group(Point& point, const std::vector<bool>& needed,
                      llvm::Value* number, int64_t width, int held);
  std::vector<llvm::Value*> fill_rows(Point& point, const Values& values,
                                      const Loop& loop,
                                      const std::vector<ExprId>& fresh,
                                      std::vector<llvm::Value*> state);
  bool takes_any_order(const Loop& loop) const;
  Accumulators over_workers(const Loop& loop, std::vector<llvm::Value*> parts);

  // ---- quotients by what is the same for a whole row (grid_row.cpp)
  /// Divisors of expressions that are computed as quick quotients now, and
  /// what has been seen of their numerators.
  struct Quotients {
    std::vector<EmittedDivisor> divisors;           // by expression
    bool quick = false;                             // whether they are in use
    llvm::Value* usable = nullptr;                  // i1
    llvm::Value* least_bits = nullptr;              // of those from 0 to 1
    llvm::Value *least = nullptr, *most = nullptr;  // of others
  };
  llvm::Value* operation(const Expr& expr, ExprId id, Point& point,
                         const Values& values) override;
  void prepare_quotients(const std::vector<bool>& needed, const Values& values);
  void forget_quotients(RowGroup& group);
  void see_numerator(ExprId id, llvm::Value* x);
  llvm::Value* has_slow_quotients();
  bool is_below_zero(ExprId id) const;
  bool is_from_zero_to_one(ExprId id) const;

  // ---- the members tree in a block (grid_tree.cpp)
  /// Puts leaves start ... start + present - 1 (present <= Tree::tile) to
  /// `places`, one array for each part of an accumulator.
  using Leaves = std::function<void(llvm::Value* start, llvm::Value* present,
                                    llvm::ArrayRef<llvm::Value*> places)>;
  struct Tree {
    const Loop& loop;
    std::vector<llvm::Type*> types;  // of the parts
    const Leaves& leaves;
    int64_t tile = grid_threads;  // leaves that are combined at once
    std::vector<std::vector<llvm::Value*>> levels = {};  // arrays of a level
    std::vector<llvm::Value*> warps = {};  // arrays of results of warps
  };
  std::vector<llvm::Type*> part_types(const Loop& loop);
  Accumulators block_tree(const Loop& loop, int64_t count,
                          const Leaves& leaves);
  std::vector<llvm::Value*> warp_tree(Tree& tree, int64_t count);
  std::vector<llvm::Value*> tree_level(Tree& tree, size_t level,
                                       llvm::Value* start,
                                       llvm::Value* present);
  std::vector<llvm::Value*> tree_tile(Tree& tree,
                                      const std::vector<llvm::Value*>& arrays,
                                      llvm::Value* present);
  std::vector<llvm::Value*> whole_tree_steps(const Loop& loop,
                                             std::vector<llvm::Value*> parts,
                                             int64_t most);
  std::vector<llvm::Value*> tree_steps(const Loop& loop,
                                       std::vector<llvm::Value*> parts,
                                       llvm::Value* number,
                                       llvm::Value* present, int64_t most);

  // ---- scans
  /// Shared memory of a scan's chunks, and how threads share a chunk.
  struct ScanPlaces {
    llvm::Type* type = nullptr;       // of what is scanned
    llvm::Value* elements = nullptr;  // of a chunk, in groups with gaps
    llvm::Value* totals = nullptr;    // of groups
    llvm::Value* blocks = nullptr;    // totals of blocks of groups
    llvm::Value* carry = nullptr;     // one value
    llvm::Value* waiting = nullptr;   // blocks of the members tree, by level
    int64_t width = 1;                // elements that a thread brings at once
    int64_t steps = 0;                // how often it does
    int64_t groups = 0;               // that have a place
  };
  /// A chunk whose groups are scanned.
  struct ScannedChunk {
    // What this thread brought and stores, by step: the first element's number
    // in the line, whether it exists (i1), and where it is staged.
    std::vector<llvm::Value*> firsts = {}, present = {}, places = {};
    std::vector<llvm::Value*> prefix = {};  // of this thread's group
    std::vector<llvm::Value*> own = {};     // the group's pieces
  };
  int64_t scanned_at_once() const override;
  ScanPlaces scan_places(int64_t chunks);
  CarryBlocks carry_blocks_in(const ScanPlaces& places);
  llvm::Value* staged(const ScanPlaces& places, llvm::Value* element);
  std::vector<llvm::Value*> staged_group(const ScanPlaces& places,
                                         llvm::Value* group);
  std::vector<llvm::Value*> pieces_at(llvm::Value* at);
  std::vector<llvm::Value*> read_sixteen(
      const std::vector<llvm::Value*>& pieces);
  void write_sixteen(const std::vector<llvm::Value*>& pieces,
                     const std::vector<llvm::Value*>& values);
  llvm::Value* fold_sixteen(const std::vector<llvm::Value*>& pieces,
                            int64_t count);
  llvm::Value* fold_totals(const ScanPlaces& places);
  std::vector<llvm::Value*> scanned_elements(Point& point, const Values& fixed,
                                             llvm::Value* first, int64_t width);
  ScannedChunk scan_groups(Point& point, const Values& fixed,
                           const ScanPlaces& places, llvm::Value* number);
  void put_chunk(Point& point, const ScannedChunk& chunk,
                 const ScanPlaces& places, llvm::Value* carry);
  void put_elements(Point& point, llvm::Value* first,
                    const std::vector<llvm::Value*>& values);
  llvm::Value* take_ticket();
  llvm::Value* linked_carry(const ScanPlaces& places, llvm::Value* row,
                            llvm::Value* number);
  llvm::Value* row_of(const Point& point);
  void scan_carries(llvm::Value* column);

  // ---- scatters (grid_scatter.cpp)
  llvm::Value* place_of(const Point& point, const Values& values,
                        llvm::Value* offset, Bounds bounds, bool as_target);
  Bounds looked_at_before() const;
  void emit_chosen(Point& point, const Values& values);
  void emit_sorted(Point& point);
  llvm::Value* scratch_at(int argument, llvm::Value* index);

  GridFrame& grid_;
  const GridSchedule schedule_;
  const std::function<llvm::Value*(llvm::GlobalVariable*)> in_shared_;
  bool uses_table_ = false;
  llvm::BasicBlock* start_ = nullptr;  // of the nest
  /// Behind what a thread loads first, which is under way while it waits for
  /// the table; null: nothing is loaded in that block.
  llvm::Instruction* loaded_ = nullptr;
  std::vector<std::pair<size_t, int>> seen_checks_;  // rank, number
  size_t first_check_;
  std::vector<Row> rows_;  // by expression
  Quotients quotients_;
  Usual usual_;
  int64_t row_bytes_ = 0;   // of shared memory
  int64_t turn_start_ = 0;  // of schedule_.turns: elements before its own
  llvm::Value* repeat_ = nullptr;  // number among schedule_.repeats
};

}  // namespace unisono::jit
