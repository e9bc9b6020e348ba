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

HostArray ramp(ir::Shape shape, float step = 0.25F, float start = -3) {
  HostArray out{{DType::F32, shape}, {}};
  std::vector<float> values(static_cast<size_t>(out.type.elements()));
  for (size_t i = 0; i < values.size(); ++i)
    values[i] = start + step * static_cast<float>(i);
  return array_of(DType::F32, shape, values);
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
