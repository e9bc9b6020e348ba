#pragma once
// Graphs as threaded code (jit/scalar/step.h): no compiler is needed, and the
// code starts within microseconds. What it gives is what the reference
// evaluator gives, to the bit, its errors and their places included.
#include <cstdint>
#include <limits>
#include <memory>
#include <utility>
#include <vector>

#include "jit/ir/graph.h"
#include "jit/reference/reference.h"
#include "jit/reference/value.h"
#include "jit/scalar/step.h"
#include "runtime/result.h"

namespace unisono::jit {

namespace bytecode {

/// Where a value is while code runs: scalars in registers, arrays in slots.
struct Place {
  bool scalar = true;
  uint32_t index = 0;
};

/// A node that the reference evaluator computes, or a call of the host.
struct NodeCall {
  struct Operand {
    Place place;
    ir::Type type;
    bool dies = false;  // nothing reads the slot after this node
  };
  ir::Node node;
  std::vector<Operand> operands;
  std::vector<Place> results;
};

/// An array of which one element is read or written: element
/// ((i0 * sizes[1] + i1) * sizes[2] + ...), where the indexes are registers.
struct ElementPlace {
  std::vector<int64_t> sizes;  // in the order of the indexes
  std::vector<int64_t> strides;
  std::vector<uint32_t> indexes;  // registers
  bool wide = false;              // the indexes are i64, else i32
  bool clamps = false;  // an index outside is the nearest one, no error
  int64_t array_bytes = 0;
  ir::Type type;  // of the array
};

/// A graph that was lowered. Immutable, so any number of runs may share it.
struct Code {
  std::vector<Step> steps;
  std::vector<uint32_t> sources;    // by step
  std::vector<uint64_t> registers;  // what they hold at the beginning
  uint32_t slots = 0;
  std::vector<std::pair<uint32_t, const ir::Node*>> constants;  // of slots
  std::vector<NodeCall> calls;
  std::vector<ElementPlace> elements;
  std::vector<Place> inputs, outputs;
  std::vector<ir::Type> output_types;
  bool calls_host = false;                 // functions of the host; not prints
  std::shared_ptr<const ir::Graph> graph;  // constants are its nodes'
};

}  // namespace bytecode

class Bytecode {
 public:
  /// Null if the graph has collectives, or sizes that are not known. `checked`
  /// as in ReferenceOptions.
  static std::shared_ptr<const Bytecode> lower(
      std::shared_ptr<const ir::Graph> graph, bool checked = true);

  /// Fails as evaluate (reference.h) does for the same graph and options, whose
  /// `checked` must be that of `lower`. `device_of` and `caller_of` are not
  /// used: there is one member.
  Result<std::vector<HostArray>> run(const std::vector<HostArray>& inputs,
                                     const ReferenceOptions& options) const;

  /// Turns of the graph's loop, if its only control flow is one loop and what
  /// is inside it: the run takes so many at most, as if the loop ended then,
  /// and counts them, while it runs. The turn in which an error comes up is not
  /// counted. Of any other graph none is.
  struct Turns {
    int64_t most = std::numeric_limits<int64_t>::max();
    int64_t taken = 0;
  };
  /// What a run gave.
  struct Outcome {
    std::vector<reference::Value> values;
    /// Of arrays to which elements were written, and that somebody else held.
    int64_t bytes_copied = 0;
  };
  /// The same, for values. `turns` may be null.
  Result<Outcome> run_values(std::vector<reference::Value> inputs,
                             const ReferenceOptions& options,
                             Turns* turns = nullptr) const;

  /// Whether it calls functions of the host, which may have effects.
  bool calls_host() const { return code_.calls_host; }
  /// Whether all it does are operations on scalars and elements of arrays.
  bool is_steps_alone() const { return code_.calls.empty(); }
  /// The types of the results.
  const std::vector<ir::Type>& output_types() const {
    return code_.output_types;
  }

 private:
  bytecode::Code code_;
};

}  // namespace unisono::jit
