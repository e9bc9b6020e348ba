// Reductions over members that become one: which, in what order, and that no
// bit of a result knows of it.
#include <doctest/doctest.h>

#include <algorithm>

#include "jit/ir/kinds.h"
#include "jit/ir/renaming.h"
#include "jit/pipeline.h"
#include "tests/unit/jit/compiled.h"
#include "tests/unit/jit/random_compare.h"

using namespace unisono;
using namespace unisono::jit;
using namespace unisono::jit::testing;
using ir::Graph;
using ir::NodeId;
using ir::Op;

namespace {

constexpr ir::AxisId axis = 1;

ir::CollectiveAttrs over(int64_t members) {
  ir::CollectiveAttrs a;
  a.axes = {axis};
  a.sizes = {members};
  return a;
}

/// The all_reduces of a graph and of the graphs in it.
int reductions(const Graph& graph) {
  int count = 0;
  for (const ir::Node& node : graph.nodes) {
    count += node.op == Op::all_reduce;
    if (const auto* a = std::get_if<ir::IfAttrs>(&node.attrs))
      count += reductions(*a->then_graph) + reductions(*a->else_graph);
    if (const auto* a = std::get_if<ir::LoopAttrs>(&node.attrs))
      count += reductions(*a->body);
  }
  return count;
}

Graph parsed(const char* text) {
  auto g = ir::parse(text);
  if (!g) FAIL(g.error().message);
  return *std::move(g);
}
int joined(const char* text) {
  return reductions(join_all_reduces(parsed(text)));
}

/// Inputs of these types are squared, reduced, and used.
Graph step(const std::vector<ir::Type>& leaves, int64_t members) {
  Graph g;
  for (const ir::Type& type : leaves) g.add_input(type);
  for (const NodeId x : g.inputs) {
    const NodeId square = g.add(Op::mul, {x, x});
    const NodeId sum = g.add(Op::all_reduce, {square}, over(members));
    g.outputs.push_back(g.add(Op::sub, {x, sum}));
  }
  return g;
}

/// The graph with sums over members in place of some of its floats.
Graph with_sums(const Graph& graph, int64_t members, uint32_t seed) {
  std::mt19937 random(seed);
  Graph out;
  ir::Renaming placed(graph);
  for (const NodeId id : ir::node_ids(graph)) {
    const ir::Node& node = graph[id];
    if (node.op == Op::input) {
      placed.set(id, out.add_input(node.type));
      continue;
    }
    placed.set(id, out.append(placed.renamed(id)));
    if (is_floating(node.type.dtype) && !ir::has_results(node) &&
        random() % 3 == 0)
      placed.set(id, out.add(Op::all_reduce, {placed[id]}, over(members)));
  }
  out.outputs = placed.renamed(graph.outputs);
  return out;
}

std::vector<Arrays> random_members(const Graph& g, int members) {
  RandomGraph random(3, {});
  std::vector<Arrays> out;
  for (int m = 0; m < members; ++m) out.push_back(random.random_inputs(g));
  return out;
}

}  // namespace

TEST_CASE("the leaves of a training step meet once for each element type") {
  std::vector<ir::Type> leaves;
  for (int64_t i = 0; i < 20; ++i)
    leaves.push_back({i % 5 == 4 ? DType::BF16 : DType::F32,
                      i % 4 == 0   ? ir::Shape{}
                      : i % 4 == 1 ? ir::Shape{i}
                                   : ir::Shape{i, i % 3 + 1}});
  for (const int devices : {2, 3, 5}) {
    const Graph g = step(leaves, devices);
    Bench bench(0, devices);
    CompileStats stats;
    const auto inputs = random_members(g, devices);
    const auto got = bench.run_all(g, inputs, {}, &stats);
    REQUIRE_MESSAGE(got, (got ? "" : got.error().message));
    CHECK(stats.collectives == 2);
    // The graph as it is, of which the evaluator reduces each array by itself.
    const auto expected = evaluate_members(g, axis, inputs);
    REQUIRE(expected);
    for (int d = 0; d < devices; ++d)
      for (size_t i = 0; i < leaves.size(); ++i)
        CHECK(same_values((*got)[d][i], (*expected)[d][i]));
  }
}

TEST_CASE("large arrays meet alone, and nothing does not meet") {
  const ir::Type large{DType::F32, {200, 100}}, small{DType::F32, {200, 80}},
      nothing{DType::F32, {0, 3}};
  const auto left = [](const std::vector<ir::Type>& leaves) {
    return reductions(join_all_reduces(step(leaves, 4)));
  };
  CHECK(left({large, large}) == 2);
  CHECK(left({small, large, small}) == 2);
  CHECK(left({small, nothing, small}) == 2);
  CHECK(left({small}) == 1);
}

TEST_CASE("only what agrees is joined") {
  CHECK(joined("%0: f32[2] = input\n%1: f32[2] = input\n"
               "%2: f32[2] = all_reduce %0 axes=[1] sizes=[4]\n"
               "%3: f32[2] = all_reduce %1 axes=[1] sizes=[4] reduce=max\n"
               "return %2, %3\n") == 2);
  CHECK(joined("%0: f32[2] = input\n%1: f32[2] = input\n"
               "%2: f32[2] = all_reduce %0 axes=[1] sizes=[4]\n"
               "%3: f32[2] = all_reduce %1 axes=[2] sizes=[4]\n"
               "return %2, %3\n") == 2);
  CHECK(joined("%0: f32[2] = input\n%1: f32[2] = input\n"
               "%2: f32[2] = all_reduce %0 axes=[1] sizes=[4]\n"
               "%3: f32[2] = all_reduce %1 axes=[1] sizes=[4] "
               "groups=[[0, 1], [2, 3]]\n"
               "return %2, %3\n") == 2);
  CHECK(joined("%0: f32[2] = input\n%1: f32[3] = input\n"
               "%2: f32[2] = all_reduce %0 axes=[1] sizes=[4] "
               "groups=[[0, 1], [2, 3]]\n"
               "%3: f32[3] = all_reduce %1 axes=[1] sizes=[4] "
               "groups=[[0, 1], [2, 3]]\n"
               "return %2, %3\n") == 1);
}

TEST_CASE("what is ordered stays ordered") {
  // One reads the other.
  CHECK(joined("%0: f32[2] = input\n"
               "%1: f32[2] = all_reduce %0 axes=[1] sizes=[4]\n"
               "%2: f32[2] = sub %0, %1\n"
               "%3: f32[2] = mul %2, %2\n"
               "%4: f32[2] = all_reduce %3 axes=[1] sizes=[4]\n"
               "return %4\n") == 2);
  // Two chains are joined link by link, not across.
  const Graph chains = parsed(
      "%0: f32[2] = input\n%1: f32[3] = input\n"
      "%2: f32[2] = all_reduce %0 axes=[1] sizes=[4]\n"
      "%3: f32[2] = sin %2\n"
      "%4: f32[2] = all_reduce %3 axes=[1] sizes=[4]\n"
      "%5: f32[3] = all_reduce %1 axes=[1] sizes=[4]\n"
      "%6: f32[3] = sin %5\n"
      "%7: f32[3] = all_reduce %6 axes=[1] sizes=[4]\n"
      "return %4, %7\n");
  CHECK(reductions(join_all_reduces(chains)) == 2);
  // Of layers whose gradients come one after the other, all go together.
  CHECK(joined("%0: f32[2] = input\n%1: f32[2] = input\n"
               "%2: f32[2] = all_reduce %0 axes=[1] sizes=[4]\n"  // forwards
               "%3: f32[2] = mul %2, %1\n"
               "%4: f32[2] = all_reduce %3 axes=[1] sizes=[4]\n"
               "%5: f32[2] = mul %1, %1\n"
               "%6: f32[2] = all_reduce %5 axes=[1] sizes=[4]\n"
               "return %4, %6\n") == 2);
}

TEST_CASE("no meeting moves past an effect or a check") {
  // A device prints b when it has met the others for a.
  const auto between = [](const char* effect) {
    return joined(
        (std::string("%0: f32[2] = input\n%1: f32[3] = input\n"
                     "%2: f32[2] = all_reduce %0 axes=[1] sizes=[4]\n") +
         effect +
         "%4: f32[3] = all_reduce %1 axes=[1] sizes=[4]\n"
         "return %2, %4\n")
            .c_str());
  };
  CHECK(
      between("%3: bool = host_call %1 format=[\"b\", \"\"] specs=[\"\"]\n") ==
      2);
  CHECK(between("%3: f32[3] = sin %1\n") == 1);
  // Nor past a check: an error between two meetings is the first device's.
  CHECK(joined("%0: i32[2] = input\n%1: i32[2] = input\n"
               "%2: i32[2] = all_reduce %0 axes=[1] sizes=[4]\n"
               "%3: i32[2] = floor_div %1, %0\n"
               "%4: i32[2] = all_reduce %1 axes=[1] sizes=[4]\n"
               "return %2, %3, %4\n") == 2);
}

TEST_CASE("what is equal, or read by nobody, is not joined") {
  const Graph g =
      join_all_reduces(parsed("%0: f32[2] = input\n%1: f32[3] = input\n"
                              "%2: f32[2] = all_reduce %0 axes=[1] sizes=[4]\n"
                              "%3: f32[2] = all_reduce %0 axes=[1] sizes=[4]\n"
                              "%4: f32[3] = all_reduce %1 axes=[1] sizes=[4]\n"
                              "return %2, %3\n"));
  CHECK(reductions(g) == 1);
  for (const ir::Node& node : g.nodes) CHECK(node.op != Op::concat);
}

TEST_CASE("joined in the turns of a loop") {
  CHECK(joined("%0: f32[2] = input\n%1: f32[3] = input\n"
               "%2: f32[2] = loop %0, %1 carries=2 turns=3 body={\n"
               "  %0: i64 = input\n  %1: f32[2] = input\n"
               "  %2: f32[3] = input\n"
               "  %3: f32[2] = all_reduce %1 axes=[1] sizes=[4]\n"
               "  %4: f32[3] = all_reduce %2 axes=[1] sizes=[4]\n"
               "  return %3, %4\n}\n"
               "%3: f32[2] = project %2\n%4: f32[3] = project %2 index=1\n"
               "return %3, %4\n") == 1);
}

TEST_CASE("random graphs with collectives keep their bits and their calls") {
  int fewer = 0;
  for (const uint32_t seed : seeds(300)) {
    RandomOptions options{.nodes = 30, .control_depth = 2, .host_calls = true};
    options.collectives = true;
    options.members = 3 + seed % 4;
    RandomGraph random(seed, options);
    // Without what is dead: a meeting of which nobody reads the result orders
    // what is printed, too.
    const Graph g = cse_dce(with_sums(random.make(), options.members, seed));
    const Graph h = join_all_reduces(g);
    if (auto good = ir::verify(h); !good) FAIL(good.error().message);
    fewer += reductions(h) < reductions(g);
    std::vector<Arrays> inputs;
    for (int64_t m = 0; m < options.members; ++m)
      inputs.push_back(random.random_inputs(g));
    const auto results = [&](const Graph& graph, std::string& calls) {
      ReferenceOptions o;
      o.device_of = [](int64_t member) { return static_cast<int>(member); };
      o.host_call = [&](const ir::Node& node, int64_t member,
                        const Arrays& operands, Arrays& values) -> Status {
        answer(operands, values);
        const auto& a = ir::attrs<ir::HostCallAttrs>(node);
        if (a.pure) return Unit{};
        calls += a.function + (a.format.empty() ? "" : a.format[0]) +
                 std::to_string(member) + "\n";
        return Unit{};
      };
      return evaluate_members(graph, axis, inputs, o);
    };
    std::string said_before, said_after;
    const auto before = results(g, said_before), after = results(h, said_after);
    INFO("seed " << seed << "\n" << ir::print(g) << ir::print(h));
    REQUIRE(bool(before) == bool(after));
    if (!before) continue;
    CHECK(said_before == said_after);
    for (size_t m = 0; m < before->size(); ++m)
      for (size_t i = 0; i < (*before)[m].size(); ++i)
        CHECK(same_values((*before)[m][i], (*after)[m][i]));
  }
  CHECK(fewer > 10);
}
