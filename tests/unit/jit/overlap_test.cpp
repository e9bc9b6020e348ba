// Collectives of several processes that are under way while devices compute;
// and no result knows of it.
#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "runtime/execute/flat_program.h"
#include "tests/unit/jit/compiled.h"
#include "tests/unit/jit/random_compare.h"

using namespace unisono;
using namespace unisono::jit;
using namespace unisono::jit::testing;

namespace {

constexpr int devices = 4;

/// The instructions in order: `k` a launch, `c` a copy, `m` a collective that
/// is done where it stands, `b` one that begins, `e` its end.
std::string shown(const Program& program) {
  std::string out;
  for (const Instruction& instruction : flatten(program).instructions) {
    switch (instruction.kind) {
      case Instruction::Kind::launch: out += 'k'; break;
      case Instruction::Kind::copy: out += 'c'; break;
      case Instruction::Kind::collective:
        out += instruction.meanwhile > 0 ? 'b' : 'm';
        break;
      case Instruction::Kind::collective_end: out += 'e'; break;
      default: break;
    }
  }
  return out;
}

/// Of several processes' devices, here all of this one's.
std::string compiled(const std::string& text) {
  auto graph = ir::parse(text);
  if (!graph) FAIL(graph.error().message);
  Bench bench(0, devices);
  CompileOptions options;
  options.one_memory = false;
  RandomGraph random(3, {});
  std::vector<Arrays> inputs;
  for (int d = 0; d < devices; ++d)
    inputs.push_back(random.random_inputs(*graph));
  const auto got = bench.run_all(*graph, inputs, options);
  REQUIRE_MESSAGE(got, (got ? "" : got.error().message));
  const auto expected = evaluate_members(*graph, 1, inputs);
  REQUIRE(expected);
  for (int d = 0; d < devices; ++d)
    for (size_t i = 0; i < graph->outputs.size(); ++i)
      CHECK(same_values((*got)[d][i], (*expected)[d][i]));
  options.devices = devices;
  options.target = code_target(bench.runtime.devices());
  return shown(**bench.compiler.compile(*graph, options));
}

}  // namespace

TEST_CASE(
    "a collective begins behind what it sends, and ends before a reader") {
  // Two products of which sums are taken: the first one's begins before the
  // second product. (Small sums would be one.)
  const std::string text =
      "%0: f32[200, 300] = input\n%1: f32[300, 310] = input\n"
      "%2: f32[200, 310] = dot %0, %1 contract_a=[1] contract_b=[0]\n"
      "%3: f32[300, 300] = dot %0, %0 contract_a=[0] contract_b=[0]\n"
      "%4: f32[300, 300] = all_reduce %3 axes=[1] sizes=[4]\n"
      "%5: f32[200, 310] = all_reduce %2 axes=[1] sizes=[4]\n"
      "%6: f32[200, 310] = sub %2, %5\n"
      "%7: f32[300, 300] = sub %3, %4\nreturn %6, %7\n";
  const std::string steps = compiled(text);
  CAPTURE(steps);
  CHECK(steps.find("bk") != std::string::npos);
  CHECK(steps.find('e') > steps.find("bk"));
  // Nothing is independent of it.
  CHECK(compiled("%0: f32[100] = input\n%1: f32[100] = mul %0, %0\n"
                 "%2: f32[100] = all_reduce %1 axes=[1] sizes=[4]\n"
                 "%3: f32[100] = sub %1, %2\nreturn %3\n") == "kmk");
}

TEST_CASE("collectives do not pass what may fail") {
  CHECK(compiled("%0: i32[100] = input\n%1: i32[100] = constant 3\n"
                 "%2: i32[100] = bit_or %0, %1\n"
                 "%3: i32[100] = all_reduce %0 axes=[1] sizes=[4]\n"
                 "%4: i32[100] = floor_div %1, %2 @5\n"
                 "%5: i32 = sum %4 axes=[0]\nreturn %5, %3\n")
            .find('b') == std::string::npos);
}

TEST_CASE("random graphs on devices of several processes") {
  int under_way = 0;
  for (const int count : {2, 3}) {
    Bench bench(0, count);
    CompileOptions options;
    options.one_memory = false;
    compare_random_members(bench, 80, {}, options, [&](const ir::Graph& graph) {
      CompileOptions alone = options;
      alone.devices = count;
      alone.target = code_target(bench.runtime.devices());
      const auto program = bench.compiler.compile(graph, alone);
      under_way += shown(**program).find('b') != std::string::npos;
    });
  }
  CHECK(under_way > 5);
}
