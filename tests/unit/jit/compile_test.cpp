#include <cmath>
#include <cstdlib>

#include "jit/ir/kinds.h"
#include "jit/scalar/element.h"
#include "tests/unit/jit/arrays.h"
#include "tests/unit/jit/random_compare.h"

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

TEST_CASE("random graphs, compiled and evaluated") {
  Bench bench;
  compare_random_graphs(bench, 300, {});
}
TEST_CASE("random graphs on narrower machines") {
  for (int vector_bytes : {64, 32, 16}) {
    Bench bench(vector_bytes);
    compare_random_graphs(bench, 100, {});
  }
}
TEST_CASE("random graphs of many nodes") {
  Bench bench;
  compare_random_graphs(bench, 40, {.nodes = 60, .control_depth = 2});
}
TEST_CASE("random graphs of large arrays") {
  Bench bench;
  compare_random_graphs(bench, 30, {.elements = 50'000});
}
TEST_CASE("random graphs with collectives on several devices") {
  for (int devices : {2, 3, 8}) {
    Bench bench(0, devices);
    compare_random_members(bench, 60);
  }
  Bench bench(0, 3);
  compare_random_members(bench, 15, {.elements = 20'000});
}

TEST_CASE("host calls happen in order, with their operands") {
  Bench bench;
  std::vector<std::string> calls;
  auto say = [&](const ir::Node& node, int64_t, const Arrays& operands,
                 Arrays& results) -> Status {
    answer(operands, results);
    const auto& attrs = ir::attrs<ir::HostCallAttrs>(node);
    if (attrs.pure) return Unit{};  // equal ones may be made once
    std::string call =
        attrs.function.empty() ? attrs.format[0] : attrs.function;
    for (const HostArray& operand : operands) call += operand.type.to_string();
    for (const HostArray& operand : operands)
      call.append(operand.bytes.begin(), operand.bytes.end());
    calls.push_back(call);
    return Unit{};
  };
  for (uint32_t seed = 0; seed < 60; ++seed) {
    RandomGraph random(seed, {.nodes = 20, .host_calls = true});
    const ir::Graph graph = random.make();
    const Arrays inputs = random.random_inputs(graph);
    ReferenceOptions reference;
    reference.host_call = say;
    calls.clear();
    const auto wanted = evaluate(graph, inputs, reference);
    REQUIRE(wanted);
    const auto expected = calls;
    CompileOptions options;
    options.host_call = say;
    for (int again = 0; again < 2; ++again) {
      calls.clear();
      const auto got = bench.run_all(graph, {inputs}, options);
      REQUIRE(got);
      INFO("seed " << seed << "\n" << ir::print(graph));
      CHECK(calls == expected);
      for (size_t i = 0; i < wanted->size(); ++i)
        CHECK(same_values((*got)[0][i], (*wanted)[i]));
    }
  }
}

TEST_CASE("a failed check says what failed, and nothing else happens") {
  Bench bench;
  auto failing = [&](const char* text, const Arrays& inputs) {
    const ir::Graph graph = parsed(text);
    auto out = bench.run(graph, inputs);
    REQUIRE(!out);
    auto unchecked = bench.run(graph, inputs, false);
    CHECK(unchecked);
    CHECK(difference(bench, graph, inputs, false) == "");
    CHECK(difference(bench, graph, inputs) == "");
    return out.error();
  };
  std::vector<double> counts(100, 1), big(100, 3);
  counts[70] = 0;
  big[33] = 10;
  Error error = failing(
      R"(%0: i32[100] = input
%1: i32[100] = input
%2: i32[100] = floor_div %1, %0 @17
return %2
)",
      {array(DType::I32, {100}, counts), array(DType::I32, {100}, big)});
  CHECK(error.kind == Error::Kind::integer_division);
  CHECK(error.source == 17);
  // Nobody uses the result, yet the check is made.
  error = failing(R"(%0: f32[10, 2] = input
%1: i32[100] = input
%2: f32[100, 2] = gather %0, %1 axes=[0] @18
return %0
)",
                  {array(DType::F32, {10, 2}, std::vector<double>(20, 1)),
                   array(DType::I32, {100}, big)});
  CHECK(error.kind == Error::Kind::index_out_of_bounds);
  CHECK(error.source == 18);
  CHECK(error.message.find("10") != std::string::npos);
  error =
      failing(R"(%0: f32[10] = input
%1: i32[100] = input
%2: f32[100] = input
%3: f32[10] = scatter_add %0, %2, %1 axes=[0] @19
return %3
)",
              {array(DType::F32, {10}, std::vector<double>(10, 1)),
               array(DType::I32, {100}, big), array(DType::F32, {100}, big)});
  CHECK(error.source == 19);
  error = failing(R"(%0: i64[100] = input
%1: i64[100] = neg %0
%2: i64[100] = pow %0, %1 @20
return %2
)",
                  {array(DType::I64, {100}, big)});
  CHECK(error.kind == Error::Kind::check_failed);
}

TEST_CASE("bounds with zeros, infinities and NaN") {
  Bench bench;
  const double inf = INFINITY, nan = NAN;
  const std::vector<double> values = {0.0, -0.0, 1, -1, inf, -inf, nan, 3};
  for (DType dtype : {DType::F32, DType::F64, DType::F16})
    for (Op op : {Op::maximum, Op::minimum})
      for (double bound : {0.0, -0.0, 1.0, -3.0, inf, -inf, nan})
        for (bool first : {false, true}) {
          ir::Graph g;
          const ir::Type type{dtype, {8}};
          ir::NodeId x = g.add_input(type);
          ir::NodeId b = g.add_constant(type, jit::element_bytes(dtype, bound));
          g.outputs = {first ? g.add(op, {b, x}) : g.add(op, {x, b})};
          INFO(ir::name(op) << " with " << bound << (first ? " first" : ""));
          CHECK(difference(bench, g, {array(dtype, {8}, values)}) == "");
        }
}

TEST_CASE("arrays that no memory holds are an error") {
  Bench bench;
  for (const ir::Shape& shape :
       {ir::Shape{1 << 20, 1 << 20, 64}, ir::Shape{1 << 30, 1 << 30}}) {
    ir::Graph g;
    ir::NodeId x = g.add_input({DType::F32, {}});
    ir::NodeId wide =
        g.add(Op::broadcast, {x}, ir::BroadcastAttrs{shape, {}}, 5);
    std::vector<int> axes(shape.size());
    for (size_t i = 0; i < axes.size(); ++i) axes[i] = static_cast<int>(i);
    g.outputs = {g.add(Op::sum, {wide}, ir::ReduceAttrs{axes})};
    auto out = bench.run(g, {array(DType::F32, {}, {1})});
    REQUIRE(!out);
    CHECK(out.error().kind == Error::Kind::out_of_memory);
    CHECK(out.error().source == 5);
  }
}
