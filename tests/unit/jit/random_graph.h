#pragma once
// Random well-formed graphs whose evaluation cannot fail, for tests that
// compare what passes make of them.
#include <algorithm>
#include <random>
#include <vector>

#include "jit/ir/graph.h"
#include "jit/reference/reference.h"

namespace unisono::jit {

struct RandomOptions {
  int nodes = 12;
  int control_depth = 1;     // branches and loops nested so deep
  bool collectives = false;  // over axis 1 of `members` members
  int64_t members = 1;
  bool host_calls = false;
  int64_t elements = 0;  // of a large array; 0: all are small
  int most_rank = 3;     // of what is not computed
};

class RandomGraph {
 public:
  RandomGraph(uint32_t seed, RandomOptions options)
      : random_(seed), options_(options) {}

  ir::Graph make();
  HostArray random_array(const ir::Type& type);
  std::vector<HostArray> random_inputs(const ir::Graph& graph);

 private:
  using NodeId = ir::NodeId;

  int below(int n) { return static_cast<int>(random_() % n); }
  /// What has more is not grown further.
  int64_t most_elements() const {
    return std::max<int64_t>(2000, options_.elements);
  }
  bool chance(int percent) { return below(100) < percent; }
  int64_t random_size(int64_t most);
  ir::Shape random_shape(int rank);
  ir::Type random_type();
  NodeId any_node(const ir::Graph& g);
  NodeId node_of_type(ir::Graph& g, const ir::Type& type);
  NodeId cast_to(ir::Graph& g, NodeId x, DType dtype);
  NodeId splat(ir::Graph& g, const ir::Type& type, double value);
  NodeId small_index(ir::Graph& g, const ir::Shape& shape, int64_t size);
  std::vector<int> random_axes(int rank);
  NodeId random_map(ir::Graph& g, NodeId x);
  NodeId random_row(ir::Graph& g, NodeId x);
  NodeId random_line(ir::Graph& g, NodeId x);
  NodeId random_move(ir::Graph& g, NodeId x);
  NodeId random_index(ir::Graph& g, NodeId x);
  NodeId random_dot(ir::Graph& g, NodeId x);
  NodeId random_collective(ir::Graph& g, NodeId x);
  void random_groups(ir::CollectiveAttrs& a, bool equal);
  NodeId random_if(ir::Graph& g, NodeId x);
  NodeId random_loop(ir::Graph& g, NodeId x);
  NodeId random_counted_loop(ir::Graph& g, NodeId x);
  NodeId random_host_call(ir::Graph& g, NodeId x);
  NodeId step(ir::Graph& g);
  /// A value of the type from `g`'s nodes, after some steps.
  NodeId grow(ir::Graph& g, int steps, const ir::Type& type);

  std::mt19937 random_;
  RandomOptions options_;
  int depth_ = 0;
};

/// What the functions of the host give that random graphs call: of the operand
/// with a result's type the elements in reverse order, else zeros.
void answer(const std::vector<HostArray>& operands,
            std::vector<HostArray>& results);

/// Equal types and elements, bit for bit but for NaN, which are all the same.
bool same_values(const HostArray& a, const HostArray& b);

}  // namespace unisono::jit
