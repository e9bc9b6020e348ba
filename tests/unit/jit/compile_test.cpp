#include <cstdlib>

#include "tests/unit/jit/compiled.h"

using namespace unisono;
using namespace unisono::jit;
using namespace unisono::jit::testing;
using ir::Op;

namespace {

ir::Graph parsed(const char* text) {
  auto graph = ir::parse(text);
  if (!graph) FAIL(graph.error().message);
  return *graph;
}

HostArray ramp(const ir::Shape& shape, float step = 0.25F, float start = -3) {
  HostArray out{{DType::F32, shape}, {}};
  const int64_t n = out.type.elements();
  out.bytes.resize(static_cast<size_t>(n) * sizeof(float));
  for (int64_t i = 0; i < n; ++i) {
    const float value = start + step * static_cast<float>(i);
    std::memcpy(&out.bytes[static_cast<size_t>(i) * sizeof value], &value,
                sizeof value);
  }
  return out;
}

}  // namespace

TEST_CASE("a chain of operations is one kernel") {
  Bench bench;
  ir::Graph graph = parsed(R"(%0: f32[1000] = input
%1: f32[1000] = mul %0, %0
%2: f32[1000] = add %1, %0
%3: f32[1000] = sqrt %2
return %3
)");
  CompileStats stats;
  auto out = bench.run(graph, {ramp({1000})}, true, &stats);
  REQUIRE(out);
  CHECK(stats.kernels == 1);
  CHECK(stats.copies == 0);
  CHECK(difference(bench, graph, {ramp({1000})}) == "");
}

TEST_CASE("a program is compiled once") {
  Bench bench;
  ir::Graph graph = parsed(R"(%0: f32[10] = input
%1: f32[10] = neg %0
return %1
)");
  for (int i = 0; i < 3; ++i)
    CHECK(difference(bench, graph, {ramp({10})}) == "");
  CHECK(bench.compiler.programs_compiled() == 1);
  CHECK(bench.compiler.kernels_generated() == 1);
}

namespace {

/// UNISONO_SEEDS=1000 for a longer run, UNISONO_SEED=17 for one.
int setting(const char* name, int otherwise) {
  const char* text = std::getenv(name);
  return text ? std::atoi(text) : otherwise;
}

void compare_random_graphs(int vector_bytes, int seeds, RandomOptions options) {
  Bench bench(vector_bytes);
  const int only = setting("UNISONO_SEED", -1);
  int failures = 0;
  for (int seed = 0; seed < setting("UNISONO_SEEDS", seeds); ++seed) {
    if (only >= 0 && seed != only) continue;
    RandomGraph random(static_cast<uint32_t>(seed), options);
    const ir::Graph graph = random.make();
    const auto inputs = random.random_inputs(graph);
    if (std::getenv("UNISONO_TRACE"))
      std::fprintf(stderr, "seed %d\n%s", seed, ir::print(graph).c_str());
    const std::string wrong = difference(bench, graph, inputs);
    INFO("seed " << seed);
    CHECK(wrong == "");
    if (!wrong.empty() && ++failures == 5) return;
  }
}

}  // namespace

TEST_CASE("random graphs, compiled and evaluated") {
  compare_random_graphs(0, 300, {});
}
TEST_CASE("random graphs on narrower machines") {
  compare_random_graphs(32, 100, {});
  compare_random_graphs(16, 100, {});
}
TEST_CASE("random graphs of many nodes") {
  compare_random_graphs(0, 40, {.nodes = 60, .control_depth = 2});
}
