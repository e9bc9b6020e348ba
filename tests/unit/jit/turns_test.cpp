// What a turn of a loop that is no kernel costs: matrices are transposed before
// the first one, and small kernels are launched together.
#include <doctest/doctest.h>

#include <algorithm>
#include <string>

#include "jit/loops/transpose_captures.h"
#include "tests/unit/jit/compiled.h"
#include "tests/unit/jit/parsed.h"

using namespace unisono;
using namespace unisono::jit;
using namespace unisono::jit::testing;
using ir::Op;

namespace {

/// A recurrence over 20 turns that multiplies a captured matrix and the carry.
std::string recurrence(int rows, int columns, const std::string& product) {
  const std::string matrix =
      "f32[" + std::to_string(rows) + ", " + std::to_string(columns) + "]";
  const std::string vector = "f32[" + std::to_string(columns) + "]",
                    result = "f32[" + std::to_string(rows) + "]";
  return "%0: " + vector + " = input\n%1: " + matrix +
         " = input\n%2: " + vector +
         " = loop %0, %1 carries=1 turns=20 body={\n" +
         "  %0: i64 = input\n  %1: " + vector + " = input\n  %2: " + matrix +
         " = input\n  %3: " + result + " = dot " + product +
         "\n  %4: " + vector +
         " = add %1, %1\n  return %4, %3\n}\n%3: f32[20, " +
         std::to_string(rows) + "] = project %2 index=1\nreturn %3\n";
}

int transposes(const std::string& text) {
  const ir::Graph graph = transpose_captures(parsed(text));
  REQUIRE(ir::verify(graph));
  return static_cast<int>(std::ranges::count_if(
      graph.nodes,
      [](const ir::Node& node) { return node.op == Op::transpose; }));
}

/// Launches of a turn.
int launches(const std::string& text) {
  Compiler compiler;
  const auto program = compiler.compile(parsed(text), {});
  REQUIRE(program);
  int count = 0;
  for (const Step& step : (*program)->steps)
    if (const auto* loop = std::get_if<LoopStep>(&step.what))
      count += static_cast<int>(
          std::ranges::count_if(*loop->body, [](const Step& inside) {
            return std::holds_alternative<LaunchStep>(inside.what);
          }));
  return count;
}

}  // namespace

TEST_CASE("captured matrices are transposed where their rows are contracted") {
  const std::string left = "%2, %1 contract_a=[1] contract_b=[0]",
                    right = "%1, %2 contract_a=[0] contract_b=[1]";
  CHECK(transposes(recurrence(64, 48, left)) == 1);
  CHECK(transposes(recurrence(64, 48, right)) == 1);
  // Along columns already; small; one that changes from turn to turn.
  CHECK(transposes(
            recurrence(64, 64, "%2, %1 contract_a=[0] contract_b=[0]")) == 0);
  CHECK(transposes(recurrence(8, 8, left)) == 0);
  CHECK(transposes("%0: f32[64, 64] = input\n%1: f32[64] = input\n"
                   "%2: f32[64, 64] = loop %0, %1 carries=1 turns=20 body={\n"
                   "  %0: i64 = input\n  %1: f32[64, 64] = input\n"
                   "  %2: f32[64] = input\n"
                   "  %3: f32[64] = dot %1, %2 contract_a=[1] contract_b=[0]\n"
                   "  %4: f32[64, 64] = neg %1\n  return %4, %3\n}\n"
                   "%3: f32[20, 64] = project %2 index=1\nreturn %3\n") == 0);
  // Too few columns; an array of three axes.
  CHECK(transposes(recurrence(512, 4, left)) == 0);
  CHECK(
      transposes("%0: f32[64] = input\n%1: f32[64, 64, 2] = input\n"
                 "%2: f32[64] = loop %0, %1 carries=1 turns=20 body={\n"
                 "  %0: i64 = input\n  %1: f32[64] = input\n"
                 "  %2: f32[64, 64, 2] = input\n  %3: f32[64, 2] = dot %2, %1 "
                 "contract_a=[1] contract_b=[0]\n"
                 "  return %1, %3\n}\n"
                 "%3: f32[20, 64, 2] = project %2 index=1\nreturn %3\n") == 0);
  // One copy does for two products.
  const std::string twice =
      "%0: f32[48] = input\n%1: f32[64, 48] = input\n"
      "%2: f32[48] = loop %0, %1 carries=1 turns=20 body={\n"
      "  %0: i64 = input\n  %1: f32[48] = input\n  %2: f32[64, 48] = input\n"
      "  %3: f32[64] = dot %2, %1 contract_a=[1] contract_b=[0]\n"
      "  %4: f32[48] = add %1, %1\n"
      "  %5: f32[64] = dot %4, %2 contract_a=[0] contract_b=[1]\n"
      "  return %4, %3, %5\n}\n%3: f32[20, 64] = project %2 index=1\n"
      "%4: f32[20, 64] = project %2 index=2\nreturn %3, %4\n";
  CHECK(transposes(twice) == 1);
  // No bit changes.
  Bench bench;
  {
    const ir::Graph graph = parsed(twice);
    RandomGraph random(7, {});
    CHECK(difference(bench, graph, random.random_inputs(graph)) == "");
  }
  for (const std::string& product : {left, right}) {
    const ir::Graph graph = parsed(recurrence(64, 48, product));
    RandomGraph random(7, {});
    CHECK(difference(bench, graph, random.random_inputs(graph)) == "");
  }
}

TEST_CASE("rows of stacks are stored by one launch") {
  std::string body, results, outputs, types;
  for (int i = 0; i < 8; ++i) {
    const std::string id = std::to_string(i + 4);
    body += "  %" + id + ": f32[70] = " + (i % 2 ? "sin" : "exp") + " %" +
            std::to_string(i + 3) + "\n";
    results += ", %" + id;
    outputs += "%" + std::to_string(i + 3) +
               ": f32[20, 70] = project %2 index=" + std::to_string(i + 1) +
               "\n";
    types += (i ? ", %" : "%") + std::to_string(i + 3);
  }
  const std::string text =
      "%0: f32[70] = input\n%1: f32[70, 70] = input\n"
      "%2: f32[70] = loop %0, %1 carries=1 turns=20 body={\n"
      "  %0: i64 = input\n  %1: f32[70] = input\n  %2: f32[70, 70] = input\n"
      "  %3: f32[70] = dot %1, %2 contract_a=[0] contract_b=[0]\n" +
      body + "  return %3" + results + "\n}\n" + outputs + "return " + types +
      "\n";
  // The product and the functions, the number of the turn, and the rows.
  CHECK(launches(text) <= 4);
  Bench bench;
  const ir::Graph graph = parsed(text);
  RandomGraph random(8, {});
  CHECK(difference(bench, graph, random.random_inputs(graph)) == "");
}
