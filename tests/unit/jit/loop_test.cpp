// Loops in registers, and counted loops: their structure, and their values
// against the reference evaluator's.
#include <fmt/format.h>

#include <functional>

#include "jit/transform/transforms.h"
#include "jit/vmap/vmap.h"
#include "tests/unit/jit/compiled.h"
#include "tests/unit/jit/parsed.h"

using namespace unisono;
using namespace unisono::jit;
using namespace unisono::jit::testing;
using ir::Graph;
using ir::Type;

namespace {

Arrays inputs_of(const Graph& graph, double scale = 1) {
  Arrays out;
  for (const Type& type : graph.input_types()) {
    std::vector<double> values;
    for (int64_t i = 0; i < type.elements(); ++i)
      values.push_back(scale * static_cast<double>((i * 7 + 3) % 11 - 4));
    out.push_back(array(type.dtype, type.sizes(), values));
  }
  return out;
}

bool has_loop_step(Bench& bench, const Graph& graph) {
  auto program = bench.compiler.compile(graph, {});
  REQUIRE(program);
  for (const Step& step : (*program)->steps)
    if (std::holds_alternative<LoopStep>(step.what)) return true;
  return false;
}

/// A loop that stays one kernel, on vectors of all widths.
void check_native(const std::string& text, double scale = 1) {
  const Graph graph = parsed(text);
  INFO(text);
  for (int bytes : {16, 32}) {
    Bench bench(bytes);
    CHECK(!has_loop_step(bench, graph));
    CHECK(difference(bench, graph, inputs_of(graph, scale)) == "");
  }
}

/// A vmap of it over so many members.
Graph mapped(const Graph& graph, int64_t size) {
  VmapSpec spec;
  spec.size = size;
  spec.mapped.assign(graph.inputs.size(), true);
  return vmap(graph, spec);
}

const char* const recurrence = R"(%0: f32 = input
%1: f32[5] = input
%2: f32[5, 2] = input
%3: f32 = loop %0, %1, %2 carries=1 turns=5 rows=2 body={
  %0: i64 = input
  %1: f32 = input
  %2: f32 = input
  %3: f32[2] = input
  %4: f32 = mul %1, %2
  %5: f32 = sum %3 axes=[0]
  %6: f32 = cast %0
  %7: f32 = add %4, %5
  %8: f32 = add %7, %6
  %9: f32[2] = broadcast %1
  %10: f32[2] = sub %9, %3
  return %8, %10, %0
}
%4: f32 = project %3
%5: f32[5, 2] = project %3 index=1
%6: i64[5] = project %3 index=2
return %4, %5, %6
)";

const char* const newton = R"(%0: f64 = input
%1: f64 = input
%2: f64 = loop %0, %1 carries=1 condition={
  %0: f64 = input
  %1: f64 = input
  %2: f64 = mul %0, %0
  %3: f64 = sub %2, %1
  %4: f64 = constant 1e-09
  %5: bool = gt %3, %4
  return %5
} body={
  %0: f64 = input
  %1: f64 = input
  %2: f64 = div %1, %0
  %3: f64 = add %0, %2
  %4: f64 = constant 0.5
  %5: f64 = mul %3, %4
  return %5
}
%3: f64 = project %2
return %3
)";

/// A state of a vector and a matrix: products, a slice, a branch, and writes
/// at indices that are known, and that are not.
const char* const filter = R"(%0: f32[3] = input
%1: f32[3, 3] = input
%2: f32[40] = input
%3: f32[3] = loop %0, %1, %2 carries=2 turns=40 body={
  %0: i64 = input
  %1: f32[3] = input
  %2: f32[3, 3] = input
  %3: f32[40] = input
  %4: f32 = gather %3, %0 axes=[0]
  %5: f32 = constant 0.25
  %6: f32 = mul %4, %5
  %7: f32[3, 3] = dot %2, %2 contract_a=[1] contract_b=[0]
  %8: f32[3, 3] = broadcast %6
  %9: f32[3, 3] = mul %7, %8
  %10: f32[3, 3] = tanh %9
  %11: f32[3] = dot %10, %1 contract_a=[1] contract_b=[0]
  %12: f32[1, 3] = slice %10 start=[1, 0]
  %13: f32[3] = reshape %12
  %14: f32[3] = sub %11, %13
  %15: i64 = constant 1
  %16: f32[3] = scatter %14, %6, %15 axes=[0]
  %17: i64 = constant 3
  %18: i64 = mod %0, %17
  %19: f32 = gather %16, %18 axes=[0] checked=false
  %20: f32[3] = scatter %16, %19, %18 axes=[0] checked=false
  %21: f32 = constant 0
  %22: bool = gt %6, %21
  %23: f32[3] = if_else %22, %20, %14 then={
    %0: f32[3] = input
    %1: f32[3] = input
    %2: f32[3] = flip %0 axes=[0]
    return %2
  } else={
    %0: f32[3] = input
    %1: f32[3] = input
    return %1
  }
  %24: f32[3] = project %23
  return %24, %10
}
%4: f32[3] = project %3
%5: f32[3, 3] = project %3 index=1
return %4, %5
)";

/// Fails in the turn whose divisor is 0.
const char* const divisions = R"(%0: i32 = input
%1: i32[6] = input
%2: i32 = loop %0, %1 carries=1 turns=6 rows=1 body={
  %0: i64 = input
  %1: i32 = input
  %2: i32 = input
  %3: i32 = floor_div %1, %2 @17
  return %3
}
%3: i32 = project %2
return %3
)";

}  // namespace

TEST_CASE("counted loops survive printing, parsing and all passes") {
  for (const char* text : {recurrence, filter, divisions}) {
    const Graph graph = parsed(text);
    CHECK(ir::print(graph) == text);
    const Arrays inputs = inputs_of(graph);
    const Graph simple = cse_dce(simplify(graph));
    if (text == divisions) continue;
    CHECK(outputs_of(simple, inputs)[0].bytes ==
          outputs_of(graph, inputs)[0].bytes);
  }
}

TEST_CASE("rows come in turn, stacks are collected, also backwards") {
  Graph graph = parsed(recurrence);
  const Arrays inputs = {
      scalar_array(DType::F32, 1), array(DType::F32, {5}, {1, 2, 3, 4, 5}),
      array(DType::F32, {5, 2}, {0, 1, 0, 2, 0, 3, 0, 4, 0, 5})};
  auto outputs = outputs_of(graph, inputs);
  // x * row + sum + number: 2, 7, 26, 111, 564.
  CHECK(values_of(outputs[0]) == std::vector<double>{564});
  CHECK(values_of(outputs[1]) ==
        std::vector<double>{1, 0, 2, 0, 7, 4, 26, 22, 111, 106});
  CHECK(values_of(outputs[2]) == std::vector<double>{0, 1, 2, 3, 4});
  std::string text = recurrence;
  text.insert(text.find(" rows=2"), " backwards=true");
  graph = parsed(text);
  CHECK(ir::print(graph) == text);
  outputs = outputs_of(graph, inputs);
  // 1 * 5 + 5 + 4, then * 4 + 4 + 3, * 3 + 3 + 2, * 2 + 2 + 1, * 1 + 1 + 0.
  CHECK(values_of(outputs[0]) == std::vector<double>{392});
  CHECK(values_of(outputs[1])[8] == 1);
  CHECK(values_of(outputs[2]) == std::vector<double>{0, 1, 2, 3, 4});
  for (const auto& loop : {std::string(recurrence), text}) check_native(loop);
}

TEST_CASE("loops with small bodies are one kernel") {
  check_native(filter, 0.3);
  const Graph root = parsed(newton);
  Bench bench;
  CHECK(!has_loop_step(bench, root));
  for (double x : {2.0, 9.0, 1e12})
    CHECK(difference(bench, root,
                     {scalar_array(DType::F64, 2 * x),
                      scalar_array(DType::F64, x)}) == "");
}

TEST_CASE("members of a loop are lanes") {
  for (const char* text : {recurrence, filter})
    for (int64_t members : {1, 3, 8, 19, 40}) {
      CAPTURE(members);
      check_native(ir::print(mapped(parsed(text), members)), 0.3);
    }
}

TEST_CASE("no turns at all") {
  std::string text = recurrence;
  for (const auto& [from, to] : {std::pair("f32[5]", "f32[0]"),
                                 {"f32[5, 2]", "f32[0, 2]"},
                                 {"i64[5]", "i64[0]"},
                                 {"turns=5", "turns=0"}})
    for (size_t at; (at = text.find(from)) != std::string::npos;)
      text.replace(at, std::string(from).size(), to);
  check_native(text);
}

TEST_CASE("a check in a loop ends it, with the error of its turn") {
  const Graph graph = parsed(divisions);
  Bench bench;
  CHECK(!has_loop_step(bench, graph));
  const HostArray x = scalar_array(DType::I32, 1000);
  const HostArray good = array(DType::I32, {6}, {1, 2, 3, 4, 5, 6});
  const HostArray bad = array(DType::I32, {6}, {1, 2, 0, 4, 0, 6});
  CHECK(difference(bench, graph, {x, good}) == "");
  auto failed = bench.run(graph, {x, bad});
  REQUIRE(!failed);
  CHECK(failed.error().source == 17);
  CHECK(difference(bench, graph, {x, bad}) == "");
  // Unchecked it goes on.
  CHECK(difference(bench, graph, {x, bad}, false) == "");
}

TEST_CASE("loops that read and write elements are one kernel") {
  // Under a condition, two at once, what was just written, and in members.
  const std::string text = R"(%0: f32[300] = input
%1: f32[300] = loop %0 carries=1 turns=200 body={
  %0: i64 = input
  %1: f32[300] = input
  %2: i64 = constant 1
  %3: i64 = add %0, %2
  %4: f32 = gather %1, %0 axes=[0]
  %5: f32 = gather %1, %3 axes=[0]
  %6: bool = gt %4, %5
  %7: f32[300] = if_else %6, %1, %0, %3, %4, %5 then={
    %0: f32[300] = input
    %1: i64 = input
    %2: i64 = input
    %3: f32 = input
    %4: f32 = input
    %5: f32[300] = scatter %0, %4, %1 axes=[0]
    %6: f32[300] = scatter %5, %3, %2 axes=[0]
    return %6
  } else={
    %0: f32[300] = input
    %1: i64 = input
    %2: i64 = input
    %3: f32 = input
    %4: f32 = input
    %5: f32 = add %3, %4
    %6: f32[300] = scatter_add %0, %5, %1 axes=[0]
    return %6
  }
  %8: f32[300] = project %7
  %9: i64 = constant 7
  %10: f32 = gather %8, %9 axes=[0]
  %11: f32[300] = scatter_add %8, %10, %3 axes=[0]
  return %11
}
%2: f32[300] = project %1
return %2
)";
  check_native(text, 0.01);
  for (int64_t members : {3, 40})
    check_native(ir::print(mapped(parsed(text), members)), 0.01);
}

TEST_CASE("a branch that is not taken has no errors in a loop's kernel") {
  const auto text = [](int limit) {
    return R"(%0: f32[300] = input
%1: i64 = constant 295
%2: f32[300] = loop %0, %1 carries=1 turns=20 body={
  %0: i64 = input
  %1: f32[300] = input
  %2: i64 = input
  %3: i64 = add %0, %2
  %4: i64 = constant )" +
           std::to_string(limit) + R"(
  %5: bool = lt %3, %4
  %6: f32[300] = if_else %5, %1, %3 then={
    %0: f32[300] = input
    %1: i64 = input
    %2: f32 = gather %0, %1 axes=[0]
    %3: f32[300] = scatter_add %0, %2, %1 axes=[0]
    return %3
  } else={
    %0: f32[300] = input
    %1: i64 = input
    return %0
  }
  %7: f32[300] = project %6
  return %7
}
%3: f32[300] = project %2
return %3
)";
  };
  check_native(text(300));
  check_native(text(303));  // both say which index is outside
}

TEST_CASE("a loop whose points need others stays a loop of kernels") {
  const std::string text = R"(%0: f32[300] = input
%1: f32[300] = loop %0 carries=1 turns=4 body={
  %0: i64 = input
  %1: f32[300] = input
  %2: f32[300] = flip %1 axes=[0]
  %3: f32[300] = add %1, %2
  return %3, %2
}
%2: f32[300] = project %1
%3: f32[4, 300] = project %1 index=1
return %2, %3
)";
  const Graph graph = parsed(text);
  Bench bench;
  CHECK(has_loop_step(bench, graph));
  CHECK(difference(bench, graph, inputs_of(graph)) == "");
}

/// What is compiled, as text.
std::string kernels_of(Bench& bench, const Graph& graph) {
  std::string kernels;
  bench.compiler.observe({.after_pass = {}, .dump = [&](const CodeText& code) {
                            kernels += code.kernels;
                          }});
  REQUIRE(bench.compiler.compile(graph, {}));
  return kernels;
}

TEST_CASE("a loop in a loop knows the range of the outer one's number") {
  // The sort keeps the outer loop from being one kernel; the inner one does not
  // check its index, the sum of both numbers, where that is always inside: it
  // is of 29 elements, but not of 25. The outer one's number is computed.
  for (const int size : {300, 29, 25})
    for (const bool counted : {true, false}) {
      const std::string body = fmt::format(R"(  %0: i64 = input
  %1: f32[{0}] = input
  %2: f32[{0}] = sort %1
  %3: i64 = constant 1
  %4: i64 = mul %0, %3
  %5: i64 = add %4, %3
  %6: i64 = sub %5, %3
  %7: i64 = constant 2
  %8: i64 = sub %6, %7
  %9: i64 = add %8, %7
  %10: f32[{0}] = loop %2, %9 carries=1 turns=10 body={{
    %0: i64 = input
    %1: f32[{0}] = input
    %2: i64 = input
    %3: i64 = add %0, %2
    %4: f32 = gather %1, %3 axes=[0]
    %5: f32[{0}] = scatter_add %1, %4, %3 axes=[0]
    return %5
  }}
  %11: f32[{0}] = project %10
)",
                                           size);
      const std::string text = counted ? fmt::format(R"(%0: f32[{0}] = input
%1: f32[{0}] = loop %0 carries=1 turns=20 body={{
{1}  return %11
}}
%2: f32[{0}] = project %1
return %2
)",
                                                     size, body)
                                       : fmt::format(R"(%0: f32[{0}] = input
%1: i64 = constant 0
%2: i64 = loop %1, %0 carries=2 condition={{
  %0: i64 = input
  %1: f32[{0}] = input
  %2: i64 = constant 20
  %3: bool = lt %0, %2
  return %3
}} body={{
{1}  %12: i64 = add %0, %3
  return %12, %11
}}
%3: f32[{0}] = project %2 index=1
return %3
)",
                                                     size, body);
      const Graph graph = parsed(text);
      Bench bench;
      INFO(text);
      CHECK(difference(bench, graph, inputs_of(graph, 0.01)) == "");
      const std::string kernels = kernels_of(bench, graph);
      CHECK((kernels.find(" inside ") == std::string::npos) == (size == 25));
      CHECK((kernels.find(" checked@") != std::string::npos) == (size == 25));
    }
}

TEST_CASE("a loop in a loop knows an index that is a constant outside both") {
  // The sort keeps the outer loop from being one kernel.
  for (const char* index : {"constant 7", "constant 25", "sum %1 axes=[0]"})
    for (const double scale : {1, 10}) {
      const std::string text = fmt::format(R"(%0: f32[30] = input
%1: i64[3] = input
%2: i64 = {}
%3: f32[30] = loop %0, %2 carries=1 turns=20 body={{
  %0: i64 = input
  %1: f32[30] = input
  %2: i64 = input
  %3: f32[30] = sort %1
  %4: f32[30] = loop %3, %2 carries=1 turns=10 body={{
    %0: i64 = input
    %1: f32[30] = input
    %2: i64 = input
    %3: i64 = add %0, %2
    %4: f32 = gather %1, %3 axes=[0]
    %5: f32[30] = scatter_add %1, %4, %3 axes=[0]
    return %5
  }}
  %5: f32[30] = project %4
  return %5
}}
%4: f32[30] = project %3
return %4
)",
                                           index);
      const Graph graph = parsed(text);
      const Arrays inputs = {inputs_of(graph, 0.01)[0],
                             array(DType::I64, {3}, {scale, scale, scale})};
      Bench bench;
      INFO(text);
      CHECK(difference(bench, graph, inputs) == "");
      const std::string kernels = kernels_of(bench, graph);
      const bool known = std::string_view(index) == "constant 7";
      CHECK((kernels.find(" inside ") != std::string::npos) == known);
      CHECK((kernels.find(" checked@") == std::string::npos) == known);
    }
}
