#pragma once
// The generated test over the table of operations (jit/ir/ops.def): every row
// for every element type it admits, on operands of all ranks and layouts, with
// special values, compiled against the reference evaluator. Many operations
// share a program, so that it compiles fast.
#include <map>
#include <random>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "jit/ir/kinds.h"
#include "tests/unit/jit/compiled.h"

namespace unisono::jit::testing {

/// Every row of the table.
inline constexpr ir::Op all_ops[] = {
#define UNARY(name, ...) ir::Op::name,
#define BINARY UNARY
#define COMPARE UNARY
#define PREDICATE UNARY
#define REDUCE UNARY
#define SCAN UNARY
#define OTHER UNARY
#include "jit/ir/ops.def"
};

inline constexpr int most_rank = 4;

/// How an operand comes out of what was given.
enum class Layout : uint8_t {
  dense,
  transposed,
  flipped,
  strided,   // a slice with offsets and steps
  reversed,  // a slice with negative steps
  broadcast,
  splat,    // a constant that is one value
  literal,  // a constant array
  reshaped,
  joined,    // parts of it, concatenated
  padded,    // its border is one value
  gathered,  // by constant indices
  chosen,    // by another operation
};
inline constexpr int layout_count = static_cast<int>(Layout::chosen) + 1;
std::string_view name(Layout layout);

/// What elements an operand has.
enum class Fill : uint8_t {
  special,    // edges of the type, and random bits
  pairs_x,    // as `pairs_y`, where ...
  pairs_y,    // ... every special value meets every other
  numbers,    // ordinary numbers that seldom repeat, few special ones
  coarse,     // small integers, so that many are equal
  zeros,      // zeros of both signs
  divisors,   // special values, but never 0
  exponents,  // 0 ... 12
};

/// Edges of the type, as stored bits: zeros, subnormals, extremes, infinities,
/// NaN, ties of rounding to narrower types, widths of integers.
const std::vector<uint64_t>& special_bits(DType dtype);
/// An array of these elements.
HostArray filled(const ir::Type& type, Fill fill, std::mt19937& random);

struct Operand {
  ir::Type type;
  Layout layout = Layout::dense;
  Fill fill = Fill::special;
};

/// One program: operations over common operands, each result an output.
class Trial {
 public:
  explicit Trial(uint32_t seed) : random(seed) {}

  /// Adds the operands; once, before anything else.
  std::vector<ir::NodeId> operands(const std::vector<Operand>& operands);
  /// Adds an operation whose result is an output. `dtype` and `rank` are those
  /// of the row's test case.
  ir::NodeId add(ir::Op op, DType dtype, int rank,
                 std::vector<ir::NodeId> inputs,
                 ir::Attrs attrs = ir::NoAttrs{});
  /// Makes a node an output, as a case of `op`. `exact`: NaN keep their bits.
  void output(ir::Op op, DType dtype, int rank, ir::NodeId result, bool exact);

  int below(int64_t n) { return static_cast<int>(random() % n); }

  struct Output {
    ir::Op op;
    DType dtype;
    int rank;
    bool exact;
    std::string to_string() const;
  };

  ir::Graph graph;
  Arrays inputs;
  std::vector<Output> outputs;
  std::string name;
  std::mt19937 random;
};

/// Compares trials on machines of all widths of vectors, and remembers what was
/// compared.
class OpTable {
 public:
  /// With a simulated GPU, which is slow, among the machines.
  explicit OpTable(bool with_gpu = true);
  /// Compiled and evaluated, all outputs are equal.
  void compare(Trial& trial, bool checked = true);
  /// The same with one member of axis 1 on each device.
  void compare_members(const Trial& trial, const std::vector<Arrays>& inputs);
  /// Every element type that the row admits was met at all these ranks.
  void check_covered(ir::Op op, int least_rank, int largest_rank = most_rank);
  void check_covered(ir::Op op, DType dtype, int rank);

 private:
  void check_outputs(const Trial& trial, const Arrays& want,
                     const Arrays& have);
  void met(const Trial& trial);

  std::vector<std::unique_ptr<Bench>> benches_;
  size_t next_ = 0;
  int failures_ = 0;
  std::set<std::tuple<ir::Op, DType, int>> met_;
};

/// A shape of the rank; its sizes are 0, 1, odd, or around the widths of
/// vectors and the chunks of reductions. `turn` numbers the choices.
ir::Shape shape_of(int rank, int turn, int64_t most_elements = 5000);

}  // namespace unisono::jit::testing
