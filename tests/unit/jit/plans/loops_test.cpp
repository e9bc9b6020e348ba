// The graphs of loops.txt and steps.txt, each compiled as it says there, with
// the evaluator's results. The head of loops.txt tells what stands before a
// graph.
#include <algorithm>
#include <fstream>
#include <sstream>
#include <vector>

#include "jit/plan/native_loop.h"
#include "jit/vmap/vmap.h"
#include "runtime/tuning/tuning.h"
#include "tests/unit/jit/compiled.h"
#include "tests/unit/moved.h"

using namespace unisono;
using namespace unisono::jit;
using namespace unisono::jit::testing;

namespace {

/// Graphs that come one after the other, and what is asked of them.
struct Case {
  std::string name, tuning;
  bool in_steps = false, checked = true, names_members = false;
  int64_t failing = -1;          // member
  std::vector<int64_t> members;  // vmap of them; none: itself
  std::vector<std::pair<size_t, std::vector<double>>> inputs;
  std::string text;
};

std::vector<double> numbers(std::istringstream& words) {
  std::vector<double> out;
  for (double number = 0; words >> number;) out.push_back(number);
  return out;
}

std::vector<Case> cases(const std::string& name) {
  std::ifstream file(UNISONO_SOURCE_DIR "/tests/unit/jit/plans/" + name);
  std::vector<Case> out;
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with("## ")) {
      out.emplace_back().name = line.substr(3);
    } else if (!line.starts_with("# ")) {
      if (!out.empty()) out.back().text += line + "\n";
    } else if (!out.empty()) {
      Case& now = out.back();
      std::istringstream words(line.substr(2));
      std::string what;
      words >> what;
      if (what == "steps") now.in_steps = true;
      if (what == "unchecked") now.checked = false;
      if (what == "tuning") words >> now.tuning;
      if (what == "members" || what == "named")
        for (const double size : numbers(words))
          now.members.push_back(static_cast<int64_t>(size));
      if (what == "named") now.names_members = true;
      if (what == "fails") words >> now.failing;
      if (what == "input") {
        size_t input = 0;
        words >> input;
        now.inputs.emplace_back(input, numbers(words));
      }
    }
  }
  return out;
}

ir::Graph graph_of(const Case& given, int64_t members) {
  auto graph = ir::parse(given.text);
  if (!graph)
    FAIL_CHECK(given.name << graph.error().message << "\n" << given.text);
  if (auto good = graph ? ir::verify(*graph) : ir::verify({}); !good)
    FAIL_CHECK(given.name << good.error().message << "\n" << given.text);
  if (!graph) return {};
  if (members == 0) return *graph;
  return vmap(*graph, {.size = members,
                       .mapped = std::vector<bool>(graph->inputs.size(), true),
                       .names_members = given.names_members});
}

/// The numbers that it says, again and again, or some from -0.5 to 0.75.
Arrays inputs_of(const Case& given, const ir::Graph& graph) {
  Arrays out;
  for (size_t i = 0; i < graph.inputs.size(); ++i) {
    const ir::Type& type = graph.type(graph.inputs[i]);
    std::vector<double> some;
    for (const auto& [input, values] : given.inputs)
      if (input == i) some = values;
    std::vector<double> values;
    for (int64_t e = 0; e < type.elements(); ++e)
      values.push_back(some.empty()
                           ? 0.125 * static_cast<double>((e * 7 + 3) % 11 - 4)
                           : some[static_cast<size_t>(e) % some.size()]);
    out.push_back(array(type.dtype, type.sizes(), values));
  }
  return out;
}

bool has_loop_step(Bench& bench, const ir::Graph& graph, bool checked) {
  CompileOptions options;
  options.checked = checked;
  auto program = bench.compiler.compile(graph, options);
  REQUIRE(program);
  return std::ranges::any_of((*program)->steps, [](const Step& step) {
    return std::holds_alternative<LoopStep>(step.what);
  });
}

void check(const Case& given, int64_t members) {
  const ir::Graph graph = graph_of(given, members);
  if (graph.nodes.empty()) return;
  const Arrays inputs = inputs_of(given, graph);
  CAPTURE(given.name);
  CAPTURE(members);
  Bench bench(32);
  CHECK(has_loop_step(bench, graph, given.checked) == given.in_steps);
  CHECK(difference(bench, graph, inputs, given.checked) == "");
  ReferenceOptions options;
  options.checked = given.checked;
  const auto expected = evaluate(graph, inputs, options);
  const auto got = bench.run(graph, inputs, given.checked);
  if (!expected && !got) CHECK(got.error().source == expected.error().source);
  if (given.names_members) {
    CHECK(static_cast<bool>(got) == (given.failing < 0));
    if (!got) CHECK(got.error().member == given.failing);
  }
}

void check_all(const std::string& file) {
  const std::vector<Case> all = cases(file);
  CHECK(all.size() > 10);
  for (const Case& given : all) {
    const Moved moved(
        [&](Tuning& own) { CHECK(read_tuning(given.tuning, own) == ""); });
    if (given.members.empty()) check(given, 0);
    for (const int64_t members : given.members) check(given, members);
  }
}

}  // namespace

TEST_CASE("loops of many kinds, in one kernel or in steps") {
  check_all("loops.txt");
}

TEST_CASE("graphs whose steps are not kernels alone") {
  check_all("steps.txt");
}

TEST_CASE("a kernel that nobody stops has few turns of few operations") {
  const auto may = [](int64_t turns, int adds, bool stops) {
    std::string text = "%0: f32 = input\n%1: f32 = loop %0 carries=1 turns=" +
                       std::to_string(turns) +
                       " body={\n  %0: i64 = input\n  %1: f32 = input\n";
    for (int i = 0; i < adds; ++i)
      text.append("  %" + std::to_string(i + 2) + ": f32 = add %" +
                  std::to_string(i + 1) + ", %1\n");
    text.append("  return %" + std::to_string(adds + 1) +
                "\n}\n%2: f32 = project %1\nreturn %2\n");
    const auto graph = ir::parse(text);
    REQUIRE(graph);
    Machine machine;
    machine.stops_kernels = stops;
    return may_be_native(*graph, (*graph)[1], machine);
  };
  const int64_t most = tuning().most_native_turns;
  const auto nodes = static_cast<int>(tuning().most_native_operations / most);
  CHECK(may(most, nodes - 2, false));
  CHECK_FALSE(may(most, nodes - 1, false));
  CHECK_FALSE(may(most + 1, 1, false));
  CHECK(may(most, nodes - 1, true));
  CHECK(may(most + 1, 1, true));
}
