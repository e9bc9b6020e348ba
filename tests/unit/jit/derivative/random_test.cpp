// Derivatives of random graphs, with branches, loops and collectives: values
// stay, and vjp is the transpose of jvp, also of the graphs of derivatives.
#include <doctest/doctest.h>

#include <cstdlib>
#include <memory>
#include <regex>

#include "jit/ir/text.h"
#include "tests/unit/jit/derivative/check_derivative.h"
#include "tests/unit/jit/random_compare.h"
#include "tests/unit/jit/random_graph.h"

using namespace unisono;
using namespace unisono::jit;
using namespace unisono::jit::testing;
using ir::Graph;

namespace {

/// All loops have a limit, and differences see what derivatives do.
void prepare(Graph& graph) {
  const auto inside = [](std::shared_ptr<const Graph>& part) {
    Graph copy = *part;
    prepare(copy);
    part = std::make_shared<const Graph>(std::move(copy));
  };
  for (ir::Node& node : graph.nodes) {
    if (node.op == ir::Op::stop_gradient && is_floating(node.type.dtype))
      node.op = ir::Op::neg;
    if (auto* a = std::get_if<ir::IfAttrs>(&node.attrs)) {
      inside(a->then_graph);
      inside(a->else_graph);
    } else if (auto* a = std::get_if<ir::LoopAttrs>(&node.attrs)) {
      if (!a->is_counted()) a->most = 5;
      inside(a->body);
    }
  }
}

/// The graph with f64 for all floats.
Graph of_doubles(const Graph& graph) {
  std::string text = ir::print(graph);
  text = std::regex_replace(text, std::regex("\\b(bf16|f16|f32)\\b"), "f64");
  text = std::regex_replace(text, std::regex("nan:0x[0-9a-f]+"), "nan");
  // There is no derivative of polygamma by its order.
  text = std::regex_replace(text, std::regex("\\bpolygamma\\b"), "atan2");
  Graph out = *ir::parse(text);
  prepare(out);
  return out;
}

}  // namespace

TEST_CASE("derivatives of random graphs") {
  const char* given = std::getenv("UNISONO_GRAPHS");
  const uint32_t count =
      given ? static_cast<uint32_t>(std::strtoul(given, nullptr, 10)) : 1000;
  std::mt19937 random(5);
  for (uint32_t seed = 0; seed < count; ++seed) {
    RandomOptions options{.nodes = 6 + static_cast<int>(seed % 12),
                          .control_depth = static_cast<int>(seed % 3)};
    options.collectives = seed % 2 == 1;
    options.members = options.collectives ? 3 + seed % 6 : 1;
    RandomGraph maker(seed, options);
    DerivativeCase c;
    c.graph = of_doubles(maker.make());
    c.smooth = false;
    c.exact = 1e-8;
    c.inputs.resize(static_cast<size_t>(options.members));
    for (const ir::Type& type : c.graph.input_types()) {
      const bool same = random() % 2 == 0;
      c.shared.push_back(same);
      for (auto& member : c.inputs) {
        const size_t i = member.size();
        member.push_back(same && &member != c.inputs.data() ? c.inputs[0][i]
                         : is_floating(type.dtype)
                             ? numbers(type.shape, -2, 2, random)
                             : maker.random_array(type));
      }
    }
    const auto wrong = wrong_derivative(c, random);
    INFO("seed " << seed);
    REQUIRE_MESSAGE(!wrong, *wrong);
  }
}

TEST_CASE("derivatives of random graphs, compiled") {
  // Of all element types; compiled code has the bits of the evaluator.
  Bench bench;
  for (const uint32_t seed : seeds(60)) {
    RandomGraph maker(
        seed, {.nodes = 6 + static_cast<int>(seed % 12), .control_depth = 2});
    Graph graph = maker.make();
    prepare(graph);
    Arrays inputs = maker.random_inputs(graph);
    DerivativeSpec spec;
    std::vector<HostArray> along;
    for (const ir::Type& type : graph.input_types()) {
      spec.inputs.push_back(is_floating(type.dtype));
      if (spec.inputs.back()) along.push_back(maker.random_array(type));
    }
    const auto forward = jvp(graph, spec);
    const auto backward = vjp(graph, spec);
    if (!std::holds_alternative<Graph>(forward)) continue;  // of trigamma
    INFO("seed " << seed);
    Arrays with_tangents = inputs;
    with_tangents.insert(with_tangents.end(), along.begin(), along.end());
    CHECK(difference(bench, std::get<Graph>(forward), with_tangents) == "");
    for (const ir::Type& type : graph.output_types())
      if (is_floating(type.dtype)) inputs.push_back(maker.random_array(type));
    CHECK(difference(bench, std::get<Graph>(backward), inputs) == "");
  }
}
