// What becomes one kernel, and that programs of any size compile.
#include <chrono>
#include <set>

#include "jit/ir/kinds.h"
#include "jit/scalar/element.h"
#include "tests/unit/jit/arrays.h"
#include "tests/unit/jit/compiled.h"

using namespace unisono;
using namespace unisono::jit;
using namespace unisono::jit::testing;
using ir::Graph;
using ir::NodeId;
using ir::Op;
using ir::Type;

namespace {

struct Counted {
  int kernels, copies;
  bool operator==(const Counted&) const = default;
};
std::ostream& operator<<(std::ostream& out, const Counted& c) {
  return out << c.kernels << " kernels, " << c.copies << " copies";
}

/// Compiles the printed graph, and compares what it computes.
Counted counted(const std::string& text, uint32_t seed = 1) {
  auto graph = ir::parse(text);
  if (!graph) FAIL(graph.error().message);
  Bench bench;
  RandomGraph random(seed, {});
  const Arrays inputs = random.random_inputs(*graph);
  CHECK(difference(bench, *graph, inputs) == "");
  CompileStats stats;
  CHECK(bench.compiler.compile(*graph, {}, &stats));
  return {stats.kernels, stats.copies};
}

double seconds_to_compile(const Graph& graph, int most_kernels) {
  Compiler compiler;
  CompileStats stats;
  const auto start = std::chrono::steady_clock::now();
  auto program = compiler.compile(graph, {}, &stats);
  const std::chrono::duration<double> time =
      std::chrono::steady_clock::now() - start;
  if (!program) FAIL(program.error().message);
  CHECK(stats.kernels <= most_kernels);
  return time.count();
}

NodeId constant(Graph& g, const Type& type, double value) {
  return g.add_constant(type, jit::element_bytes(type.dtype, value));
}

}  // namespace

TEST_CASE("views cost no kernel") {
  CHECK(counted(R"(%0: f32[30, 40] = input
%1: f32[40, 30] = transpose %0 axes=[1, 0]
%2: f32[1200] = reshape %1
%3: f32[600] = slice %2 start=[0] step=[2]
%4: f32[600] = flip %3 axes=[0]
%5: f32[20, 30] = reshape %4
%6: f32[20, 30] = exp %5
return %6
)") == Counted{1, 0});
  CHECK(counted(R"(%0: f32[40] = input
%1: f32[30, 1] = input
%2: f32[30, 40] = broadcast %0 axes=[1]
%3: f32[30, 40] = broadcast %1 axes=[0, 1]
%4: f32[30, 40] = mul %2, %3
%5: f32[30, 40] = iota axis=1
%6: f32[30, 40] = add %4, %5
return %6
)") == Counted{1, 0});
  // Reshaped or not, an input that is an output is not copied.
  CHECK(counted(R"(%0: f32[40] = input
%1: f32[8, 5] = reshape %0
return %0, %1
)") == Counted{0, 0});
}

TEST_CASE("what shares a space shares a kernel") {
  CHECK(counted(R"(%0: f32[1000] = input
%1: f32[1000] = sin %0
%2: f32[1000] = cos %0
%3: f32[1000] = mul %1, %2
return %1, %2, %3
)") == Counted{1, 0});
  CHECK(counted(R"(%0: f32[100, 1000] = input
%1: f32[100] = sum %0 axes=[1]
%2: f32[100] = max %0 axes=[1]
%3: f32[100, 1000] = mul %0, %0
%4: f32[100] = sum %3 axes=[1]
%5: f32[100] = sub %4, %1
%6: f32[100] = add %5, %2
return %6
)") == Counted{1, 0});
}

TEST_CASE("long columns are added in runs of rows, which are joined") {
  CHECK(counted(R"(%0: f32[1024, 1100] = input
%1: f32[1100] = sum %0 axes=[0]
return %1
)") == Counted{2, 0});
  // All runs lie in the cache: a vector of columns at a time.
  CHECK(counted(R"(%0: f32[700, 1100] = input
%1: f32[1100] = sum %0 axes=[0]
return %1
)") == Counted{1, 0});
  // What the columns are used for needs the array once more: one kernel, whose
  // columns are in the cache then.
  CHECK(counted(R"(%0: f32[1024, 1100] = input
%1: f32[1100] = sum %0 axes=[0]
%2: f32[1024, 1100] = broadcast %1 axes=[1]
%3: f32[1024, 1100] = sub %0, %2
return %3
)") == Counted{1, 0});
}

TEST_CASE("rows are reduced and added in one pass") {
  // As in the gradient of a layer_norm: the runs are joined by another kernel.
  CHECK(counted(R"(%0: f32[2048, 600] = input
%1: f32[2048, 600] = input
%2: f32[2048] = sum %0 axes=[1]
%3: f32[2048, 600] = broadcast %2 axes=[0]
%4: f32[2048, 600] = sub %0, %3
%5: f32[2048, 600] = mul %1, %4
%6: f32[2048] = sum %5 axes=[1]
%7: f32[2048, 600] = broadcast %6 axes=[0]
%8: f32[2048, 600] = mul %4, %7
%9: f32[600] = sum %5 axes=[0]
%10: f32[600] = sum %1 axes=[0]
return %8, %9, %10
)") == Counted{2, 0});
}

TEST_CASE("a row's reductions and what they are used for are one kernel") {
  CHECK(counted(R"(%0: f32[100, 1000] = input
%1: f32[100] = sum %0 axes=[1]
%2: f32[100, 1000] = broadcast %1 axes=[0]
%3: f32[100, 1000] = sub %0, %2
%4: f32[100, 1000] = mul %3, %3
%5: f32[100] = sum %4 axes=[1]
%6: f32[100, 1000] = broadcast %5 axes=[0]
%7: f32[100, 1000] = div %3, %6
return %7
)") == Counted{1, 0});
  CHECK(counted(R"(%0: f32[100, 1000] = input
%1: f32[100] = max %0 axes=[1]
%2: f32[100, 1000] = broadcast %1 axes=[0]
%3: f32[100, 1000] = sub %0, %2
%4: f32[100, 1000] = exp %3
%5: f32[100] = sum %4 axes=[1]
%6: f32[100, 1000] = broadcast %5 axes=[0]
%7: f32[100, 1000] = div %4, %6
return %7
)") == Counted{1, 0});
}

TEST_CASE("two sums over the rows of an array are one pass over it") {
  // Whatever lies between them: the second needs the means of the rows.
  CHECK(counted(R"(%0: f32[200, 300] = input
%1: f32[200, 300] = input
%2: f32[200] = sum %0 axes=[1]
%3: f32[300] = sum %1 axes=[0]
%4: f32[200, 300] = broadcast %2 axes=[0]
%5: f32[200, 300] = sub %0, %4
%6: f32[200, 300] = mul %1, %5
%7: f32[300] = sum %6 axes=[0]
return %5, %3, %7
)") == Counted{2, 0});
  CHECK(counted(R"(%0: f32[200, 300] = input
%1: f32[200, 300] = input
%2: f32[300] = sum %1 axes=[0]
%3: f32[300] = sum %0 axes=[0]
%4: f32[200, 300] = add %0, %1
%5: f32[300] = sum %4 axes=[0]
return %2, %3, %5
)") == Counted{2, 0});
}

TEST_CASE("concatenation and padding are written in place") {
  CHECK(counted(R"(%0: f32[30, 40] = input
%1: f32[30, 20] = input
%2: f32[30, 40] = neg %0
%3: f32[30, 60] = concat %2, %1 axis=1
%4: f32 = constant 1
%5: f32[32, 62] = pad %3, %4 low=[1, 1] high=[1, 1]
%6: f32[31, 62] = slice %5 start=[1, 0]
return %6
)") == Counted{1, 0});
  // A slice that lies within one part reads that part.
  CHECK(counted(R"(%0: f32[30] = input
%1: f32[20] = input
%2: f32[50] = concat %0, %1 axis=0
%3: f32[10] = slice %2 start=[35]
return %3
)") == Counted{1, 0});
  // Beside what must be stored first, as a sum, the rest is stored in place.
  CHECK(counted(R"(%0: f32[30, 40] = input
%1: f32[60] = input
%2: f32[30] = sum %0 axes=[1]
%3: f32[60] = exp %1
%4: f32[90] = concat %2, %3 axis=0
return %4
)") == Counted{2, 0});
}

TEST_CASE("a stencil reads what is moved where it lies") {
  const std::string neighbours = R"(%6: f32[30, 40] = slice %5 start=[0, 1]
%7: f32[30, 40] = slice %5 start=[2, 1]
%8: f32[30, 40] = slice %5 start=[1, 0]
%9: f32[30, 40] = slice %5 start=[1, 2]
%10: f32[30, 40] = add %6, %7
%11: f32[30, 40] = add %8, %9
%12: f32[30, 40] = mul %10, %11
%13: f32[30, 40] = sub %12, %0
return %13
)";
  // Padded; with rows of others above and below.
  CHECK(counted(R"(%0: f32[30, 40] = input
%1: f32 = constant 1
%2: f32 = constant 2
%3: f32 = constant 3
%4: f32 = constant 1
%5: f32[32, 42] = pad %0, %4 low=[1, 1] high=[1, 1]
)" + neighbours) == Counted{1, 0});
  const std::string rows = R"(%0: f32[30, 40] = input
%1: f32[1, 40] = input
%2: f32[1, 40] = input
%3: f32[32, 40] = concat %1, %0, %2 axis=0
%4: f32 = constant 1
%5: f32[32, 42] = pad %3, %4 low=[0, 1] high=[0, 1]
)";
  CHECK(counted(rows + neighbours) == Counted{1, 0});
  // Rolled along both axes.
  CHECK(counted(R"(%0: f32[30, 40] = input
%1: f32[1, 40] = slice %0 start=[29, 0]
%2: f32[29, 40] = slice %0 start=[0, 0]
%3: f32[30, 40] = concat %1, %2 axis=0
%4: f32[30, 39] = slice %0 start=[0, 1]
%5: f32[30, 1] = slice %0 start=[0, 0]
%6: f32[30, 40] = concat %4, %5 axis=1
%7: f32[30, 40] = add %3, %6
return %7
)") == Counted{1, 0});
  // Pads that are read once, as in the gradient of a stencil: what is in them
  // is computed there.
  CHECK(counted(R"(%0: f32[30, 40] = input
%1: f32 = constant 0
%2: f32[30, 40] = exp %0
%3: f32[30, 42] = pad %2, %1 low=[0, 2] high=[0, 0]
%4: f32[30, 40] = mul %0, %0
%5: f32[30, 42] = pad %4, %1 low=[0, 0] high=[0, 2]
%6: f32[30, 42] = add %3, %5
return %6
)") == Counted{1, 0});
  // What is computed and then read at several places is stored, but not what
  // is around it: not exp twice, not the pad.
  CHECK(counted(R"(%0: f32[30, 40] = input
%1: f32 = constant 0
%2: f32[30, 40] = exp %0
%3: f32[30, 42] = pad %2, %1 low=[0, 1] high=[0, 1]
%4: f32[30, 40] = slice %3 start=[0, 0]
%5: f32[30, 40] = slice %3 start=[0, 2]
%6: f32[30, 40] = add %4, %5
return %6
)") == Counted{2, 0});
  // A sum has its order, so it reads an array; so does what has as many parts
  // as elements.
  CHECK(counted(R"(%0: f32[30] = input
%1: f32[20] = input
%2: f32[50] = concat %0, %1 axis=0
%3: f32 = sum %2 axes=[0]
return %3
)") == Counted{2, 0});
  CHECK(counted(R"(%0: f32[300, 1] = input
%1: f32[300, 1] = input
%2: f32[300, 2] = concat %0, %1 axis=1
%3: f32[300, 2] = mul %2, %2
return %3
)") == Counted{2, 0});
}

namespace {

/// A loop of `turns` turns over x: f32[n] and i: i32[3], given the body's lines
/// from %6 on; the results are in %8 and %9.
Counted counted_loop(int64_t n, int turns, const std::string& lines,
                     const std::string& results) {
  const std::string x = "f32[" + std::to_string(n) + "]";
  const std::string inputs =
      "  %0: i32 = input\n  %1: " + x + " = input\n  %2: " + x + " = input\n";
  return counted("%0: " + x + " = input\n%1: " + x +
                 " = input\n%2: i32 = constant 0\n" +
                 "%3: i32 = loop %2, %0, %1 carries=3 condition={\n" + inputs +
                 "  %3: i32 = constant " + std::to_string(turns) +
                 "\n  %4: bool = lt %0, %3\n  return %4\n} body={\n" + inputs +
                 "  %3: i32 = constant 1\n  %4: i32 = add %0, %3\n" + lines +
                 "  return %4, " + results + "\n}\n%4: " + x +
                 " = project %3 index=1\n%5: " + x +
                 " = project %3 index=2\nreturn %4, %5\n");
}

}  // namespace

TEST_CASE("carries are changed in place, or go back and forth") {
  for (int turns : {0, 1, 2, 5}) {
    // In registers.
    CHECK(counted_loop(2000, turns,
                       "  %5: f32[2000] = mul %1, %2\n"
                       "  %6: f32[2000] = sub %5, %1\n",
                       "%6, %2")
              .copies == 0);
    CHECK(counted_loop(20, turns, "", "%2, %1").copies == 0);
    // In place: what is copied is the start, but of the counter, which is the
    // turn's number.
    CHECK(counted_loop(2000, turns,
                       "  %5: f32[2000] = sort %2\n"
                       "  %6: f32[2000] = sub %1, %5\n",
                       "%6, %2")
              .copies == 2);
    // A stencil reads neighbours: two places.
    CHECK(counted_loop(2000, turns,
                       "  %5: f32[2000] = flip %1 axes=[0]\n"
                       "  %6: f32[2000] = sub %5, %2\n",
                       "%6, %2")
              .copies == 3);
    // Swapped, large and small.
    for (int64_t size : {2000, 20})
      CHECK(counted_loop(size, turns,
                         "  %5: f32[" + std::to_string(size) + "] = sort %2\n",
                         "%5, %1")
                .copies > 3);
    CHECK(counted_loop(20, turns,
                       "  %5: f32[20] = sort %1\n"
                       "  %6: f32[20] = add %5, %2\n",
                       "%6, %6")
              .copies > 3);
    // The old value is read after the new one is made.
    CHECK(counted_loop(2000, turns,
                       "  %5: f32[2000] = cumsum %1 axis=0\n"
                       "  %6: f32[2000] = cumsum %5 axis=0\n"
                       "  %7: f32[2000] = sub %6, %1\n",
                       "%5, %7")
              .copies > 2);
    // One element changes: nothing is copied in the loop.
    CHECK(counted_loop(2000, turns,
                       "  %5: f32 = constant 7\n  %6: i32 = constant 5\n"
                       "  %7: f32[2000] = scatter_add %1, %5, %6 axes=[0]\n",
                       "%7, %2")
              .copies == 2);
  }
}

TEST_CASE("updates of an array that nobody reads afterwards are in place") {
  const std::string head =
      "%0: f32[2000] = input\n%1: f32[2000] = add %0, %0\n"
      "%2: f32 = constant 7\n%3: i32 = constant 5\n%4: i32 = constant 6\n"
      "%5: f32[2000] = scatter %1, %2, %3 axes=[0]\n"
      "%6: f32[2000] = scatter %5, %2, %4 axes=[0]\n";
  CHECK(counted(head + "return %6\n").copies == 0);
  // What was there before is read as well.
  CHECK(counted(head + "%7: f32[2000] = sub %6, %1\nreturn %7\n").copies == 1);
  CHECK(counted(head + "return %6, %5\n").copies == 1);
  CHECK(counted(head + "return %6, %5, %1\n").copies == 2);
  // An input is the caller's.
  CHECK(counted("%0: f32[2000] = input\n%1: f32 = constant 7\n"
                "%2: i32 = constant 5\n"
                "%3: f32[2000] = scatter %0, %1, %2 axes=[0]\nreturn %3\n")
            .copies == 1);
}

TEST_CASE("updates under a branch are in place") {
  const std::string arm =
      "  %0: f32[2000] = input\n  %1: f32 = constant 7\n"
      "  %2: i32 = constant 5\n";
  const std::string head =
      "%0: f32[2000] = input\n%1: bool = input\n"
      "%2: f32[2000] = add %0, %0\n%3: f32[2000] = if_else %1, %2 then={\n" +
      arm + "  %3: f32[2000] = scatter %0, %1, %2 axes=[0]\n  return %3\n" +
      "} else={\n" + arm + "  return %0\n}\n%4: f32[2000] = project %3\n";
  CHECK(counted(head + "return %4\n").copies == 0);
  CHECK(counted(head + "%5: f32[2000] = sub %4, %2\nreturn %5\n").copies ==
        2);  // one in each arm
}

TEST_CASE("updates of a carry are in place: under a branch, swapped") {
  const std::string arm =
      "    %0: f32[2000] = input\n    %1: f32 = constant 7\n"
      "    %2: i32 = constant 5\n";
  const std::string inner =
      "  %5: i32 = constant 2\n  %6: bool = lt %0, %5\n"
      "  %7: f32[2000] = if_else %6, %1 then={\n" +
      arm + "    %3: f32[2000] = scatter %0, %1, %2 axes=[0]\n" +
      "    return %3\n  } else={\n" + arm +
      "    return %0\n  }\n  %8: f32[2000] = project %7\n";
  const std::string swapped =
      "  %5: i32 = constant 2\n  %6: i32 = constant 9\n"
      "  %7: f32 = gather %1, %5 axes=[0]\n"
      "  %8: f32 = gather %1, %6 axes=[0]\n"
      "  %9: f32[2000] = scatter %1, %8, %5 axes=[0]\n"
      "  %10: f32[2000] = scatter %9, %7, %6 axes=[0]\n";
  for (int turns : {0, 1, 2, 5}) {
    CHECK(counted_loop(2000, turns, inner, "%8, %2").copies == 2);
    CHECK(counted_loop(2000, turns, swapped, "%10, %2").copies == 2);
  }
}

TEST_CASE("updates that copy in a loop are told") {
  const auto told = [](const char* lines, const char* results) {
    const std::string text =
        "%0: f32[20000] = input\n%1: i32 = constant 0\n"
        "%2: i32 = loop %1, %0 carries=2 condition={\n"
        "  %0: i32 = input\n  %1: f32[20000] = input\n"
        "  %2: i32 = constant 4\n  %3: bool = lt %0, %2\n  return %3\n"
        "} body={\n  %0: i32 = input\n  %1: f32[20000] = input\n"
        "  %2: i32 = constant 1\n  %3: i32 = add %0, %2\n"
        "  %4: f32 = constant 7\n" +
        std::string(lines) + "  return %3, " + results +
        "\n}\n%3: f32[20000] = project %2 index=1\nreturn %3\n";
    auto graph = ir::parse(text);
    if (!graph) FAIL(graph.error().message);
    Compiler compiler;
    auto program = compiler.compile(*graph, {});
    if (!program) FAIL(program.error().message);
    std::vector<uint32_t> sources;
    for (const auto& update : (*program)->copied_updates) {
      CHECK(update.bytes == 80'000);
      sources.push_back(update.source);
    }
    return sources;
  };
  const char* write = "  %5: f32[20000] = scatter %1, %4, %0 axes=[0] @3\n";
  CHECK(told(write, "%5").empty());
  const std::string reads = std::string(write) +
                            "  %6: f32[20000] = flip %1 axes=[0]\n"
                            "  %7: f32[20000] = add %5, %6\n";
  const std::vector<uint32_t> expected = {3};
  const std::vector<uint32_t> sources = told(reads.c_str(), "%7");
  CHECK(std::set(sources.begin(), sources.end()) ==
        std::set(expected.begin(), expected.end()));
}

TEST_CASE("equal kernels are generated once") {
  Graph g;
  const Type type{DType::F32, {1000}};
  NodeId x = g.add_input(type);
  for (int i = 0; i < 10; ++i) {
    x = g.add(Op::cumsum, {x}, ir::ScanAttrs{0, false});
    x = g.add(Op::flip, {x}, ir::AxesAttrs{{0}});
  }
  g.outputs = {x};
  Compiler compiler;
  CHECK(compiler.compile(g, {}));
  CHECK(compiler.kernels_generated() <= 3);
}

TEST_CASE("programs of ten thousand operations compile") {
  const Type type{DType::F32, {1000}};
  Graph chain;
  NodeId x = chain.add_input(type);
  for (int i = 0; i < 5000; ++i) {
    x = chain.add(Op::mul, {x, constant(chain, type, 1.0 / (i + 1))});
    x = chain.add(Op::add, {x, chain.inputs[0]});
  }
  chain.outputs = {x};
  MESSAGE("a chain: " << seconds_to_compile(chain, 100) << " s");

  Graph braid;
  NodeId a = braid.add_input(type), b = a;
  for (int i = 0; i < 3300; ++i) {
    NodeId next = braid.add(Op::sin, {braid.add(Op::mul, {a, b})});
    b = braid.add(Op::sub, {a, next});
    a = next;
  }
  braid.outputs = {a, b};
  MESSAGE("a braid: " << seconds_to_compile(braid, 200) << " s");

  Graph wide;
  std::vector<NodeId> inputs;
  for (int i = 0; i < 2000; ++i) inputs.push_back(wide.add_input(type));
  NodeId total = inputs[0];
  for (NodeId input : inputs) total = wide.add(Op::maximum, {total, input});
  wide.outputs = {total};
  MESSAGE("two thousand inputs: " << seconds_to_compile(wide, 120) << " s");

  Graph moves;
  x = moves.add_input({DType::F32, {30, 40}});
  for (int i = 0; i < 5000; ++i) {
    x = moves.add(Op::transpose, {x}, ir::AxesAttrs{{1, 0}});
    x = moves.add(Op::flip, {x}, ir::AxesAttrs{{i % 2}});
  }
  moves.outputs = {x};
  MESSAGE("views: " << seconds_to_compile(moves, 30) << " s");

  Graph reductions;
  x = reductions.add_input({DType::F32, {50, 60}});
  for (int i = 0; i < 1000; ++i) {
    NodeId sum = reductions.add(Op::sum, {x}, ir::ReduceAttrs{{i % 2}});
    NodeId wide_sum = reductions.add(Op::broadcast, {sum},
                                     ir::BroadcastAttrs{{50, 60}, {1 - i % 2}});
    x = reductions.add(Op::sub, {x, wide_sum});
  }
  reductions.outputs = {x};
  MESSAGE("reductions: " << seconds_to_compile(reductions, 2100) << " s");
}
