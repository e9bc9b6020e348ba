// Rows that are gone over several times, and products of operands that lie in
// all ways: compiled code against the reference evaluator.
#include "tests/unit/jit/plans/graphs.h"
#include "tests/unit/jit/compiled.h"

using namespace unisono;
using namespace unisono::jit;
using namespace unisono::jit::testing;

namespace {

void compare(const ir::Graph& graph, uint32_t seed) {
  constexpr int64_t most_elements = 100'000;  // so that it ends soon
  for (const ir::NodeId input : graph.inputs)
    if (graph.type(input).elements() > most_elements) return;
  Bench bench;
  CAPTURE(seed);
  CHECK(difference(bench, graph, RandomGraph(seed, {}).random_inputs(graph)) ==
        "");
}

}  // namespace

TEST_CASE("rows in several loops, compiled") {
  for (uint32_t seed = 0; seed < 60; ++seed) compare(rows_graph(seed), seed);
}

TEST_CASE("products of all operands, compiled") {
  for (uint32_t seed = 0; seed < 60; ++seed) compare(product_graph(seed), seed);
}
