// Statements of the host, evaluated where their arrays lie, give what the
// reference evaluator gives.
#include <doctest/doctest.h>

#include "jit/ir/text.h"
#include "jit/reference/nodes.h"
#include "jit/reference/straight.h"
#include "tests/unit/jit/random_graph.h"

using namespace unisono;
using namespace unisono::jit;

namespace {

/// The difference of both ways; empty if there is none.
std::string compare(const ir::Graph& graph,
                    const std::vector<HostArray>& inputs) {
  std::vector<reference::Value> values;
  for (const HostArray& input : inputs)
    values.push_back(
        reference::Value::view(input.bytes.data(), input.type.bytes()));
  const auto expected = evaluate(graph, inputs);
  const auto got = reference::evaluate_straight(graph, values, true);
  if (!expected || !got) return !expected == !got ? "" : "one of them fails";
  for (size_t i = 0; i < got->size(); ++i) {
    HostArray array{graph.type(graph.outputs[i]), {}};
    array.bytes.resize(static_cast<size_t>(array.type.bytes()));
    reference::copy_dense((*got)[i], array.type, array.bytes.data());
    if (!same_values(array, (*expected)[i])) return "other values";
  }
  return "";
}

}  // namespace

TEST_CASE("straight graphs: random ones, as the reference evaluator has them") {
  for (uint32_t seed = 0; seed < 400; ++seed) {
    RandomOptions options{.nodes = 20, .control_depth = 0};
    if (seed % 8 == 0) options.elements = 20'000;
    RandomGraph random(seed, options);
    const ir::Graph graph = random.make();
    REQUIRE(reference::is_straight(graph));
    const auto inputs = random.random_inputs(graph);
    std::vector<std::vector<uint8_t>> before;
    for (const HostArray& input : inputs) before.push_back(input.bytes);
    INFO("seed " << seed << "\n" << ir::print(graph));
    CHECK(compare(graph, inputs) == "");
    for (size_t i = 0; i < inputs.size(); ++i)
      CHECK(inputs[i].bytes == before[i]);
  }
}

TEST_CASE("straight graphs: an operand that is read later is not overwritten") {
  const auto graph = ir::parse(
      "%0: f32[4] = input\n%1: i32[1] = input\n%2: f32[1] = input\n"
      "%3: f32[4] = add %0, %0\n"
      "%4: f32[4] = scatter %3, %2, %1 axes=[0]\n"
      "%5: f32[4] = add %4, %3\n"
      "%6: f32[4] = scatter %3, %2, %1 axes=[0]\n"
      "return %5, %6, %0\n");
  if (!graph) FAIL(graph.error().message);
  RandomGraph random(3, {});
  auto inputs = random.random_inputs(*graph);
  inputs[1].bytes.assign(4, 0);
  CHECK(compare(*graph, inputs) == "");
}

TEST_CASE("straight graphs: control and collectives are none") {
  RandomOptions options{.nodes = 30, .control_depth = 2};
  int found = 0;
  for (uint32_t seed = 0; seed < 20; ++seed)
    found += !reference::is_straight(RandomGraph(seed, options).make());
  CHECK(found > 10);
}

TEST_CASE("straight graphs: an estimate grows with the work") {
  const auto of = [](const char* text) {
    const auto graph = ir::parse(text);
    if (!graph) FAIL(graph.error().message);
    return reference::estimate(*graph);
  };
  const auto small =
      of("%0: f32[100] = input\n%1: f32[100] = exp %0\nreturn %1\n");
  const auto large =
      of("%0: f32[1000000] = input\n%1: f32[1000000] = exp %0\nreturn %1\n");
  CHECK(small.evaluate < small.compile);
  CHECK(large.evaluate > large.compile);
  CHECK(small.compile == large.compile);
}
