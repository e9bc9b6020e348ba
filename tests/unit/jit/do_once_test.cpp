// What is the same on all devices is computed by one of them, where devices
// meet anyway; and no result knows of it.
#include <doctest/doctest.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "jit/arrange/do_once.h"
#include "tests/unit/jit/compiled.h"
#include "tests/unit/jit/parsed.h"
#include "tests/unit/jit/random_compare.h"

using namespace unisono;
using namespace unisono::jit;
using namespace unisono::jit::testing;

namespace {

constexpr int devices = 4;

/// The steps in order, loops and branches in brackets: `k` a launch of each
/// device, `K` one that is done once, `c` and `C` copies, `m` a collective.
std::string shown(const Steps& steps) {
  std::string out;
  for (const Step& step : steps)
    if (std::holds_alternative<LaunchStep>(step.what))
      out += step.once ? 'K' : 'k';
    else if (std::holds_alternative<CopyStep>(step.what))
      out += step.once ? 'C' : 'c';
    else if (std::holds_alternative<CollectiveStep>(step.what))
      out += 'm';
    else if (const auto* loop = std::get_if<LoopStep>(&step.what))
      out += "[" + shown(*loop->condition) + ";" + shown(*loop->body) + "]";
    else
      out += '?';
  return out;
}

struct Compiled {
  std::shared_ptr<const Program> program;
  std::string steps;
  std::vector<bool> shared;  // outputs
};

/// The program, whose results are those of the evaluator with inputs that are
/// the same on all devices where `same` says so.
Compiled compiled(const std::string& text, const std::vector<bool>& same) {
  const ir::Graph graph = parsed(text);
  Bench bench(0, devices);
  CompileOptions options;
  options.same = same;
  RandomGraph random(3, {});
  std::vector<Arrays> inputs;
  for (int d = 0; d < devices; ++d)
    inputs.push_back(random.random_inputs(graph));
  for (size_t i = 0; i < same.size(); ++i)
    for (Arrays& own : inputs)
      if (same[i]) own[i] = inputs[0][i];
  const auto got = bench.run_all(graph, inputs, options);
  REQUIRE_MESSAGE(got, (got ? "" : got.error().message));
  const auto expected = evaluate_members(graph, 1, inputs);
  REQUIRE(expected);
  for (int d = 0; d < devices; ++d)
    for (size_t i = 0; i < graph.outputs.size(); ++i)
      CHECK(same_values((*got)[d][i], (*expected)[d][i]));

  options.devices = devices;
  options.target = code_target(bench.runtime.devices());
  Compiled result{*bench.compiler.compile(graph, options), {}, {}};
  result.steps = shown(result.program->steps);
  for (const SlotId output : result.program->outputs)
    result.shared.push_back(result.program->slots[output].shared);
  return result;
}

}  // namespace

TEST_CASE("an update of what all have, behind the sum that it needs") {
  const std::string text =
      "%0: f32[100] = input\n%1: f32[100] = input\n"
      "%2: f32[100] = mul %0, %1\n"
      "%3: f32[100] = all_reduce %2 axes=[1] sizes=[4]\n"
      "%4: f32[100] = sub %0, %3\n%5: f32[100] = neg %1\n"
      "return %4, %5, %3, %0\n";
  const auto step = compiled(text, {true, false});
  CHECK(step.steps == "kmK");
  CHECK(step.shared == std::vector<bool>{true, false, true, true});
  CHECK(compiled(text, {false, false}).steps == "kmk");
  CHECK(compiled(text, {true, true}).steps == "KmK");
}

TEST_CASE("what stays with each device") {
  // Its position.
  CHECK(compiled("%0: i32[100] = input\n%1: i32 = axis_index axes=[1] "
                 "sizes=[4]\n%2: i32[100] = broadcast %1 shape=[100]\n"
                 "%3: i32[100] = add %0, %2\nreturn %3\n",
                 {true})
            .steps == "k");
  // What may fail; what is computed from it is the same all the same.
  const auto checked = compiled(
      "%0: i32[100] = input\n%1: i32[100] = constant 3\n"
      "%2: i32[100] = bit_or %0, %1\n"
      "%3: i32[100] = floor_div %1, %2 @5\n"
      "%4: i32 = sum %3 axes=[0]\nreturn %3, %4\n",
      {true});
  CHECK(checked.steps.find('k') != std::string::npos);
  CHECK_FALSE(checked.shared[0]);
  // A sum over some of the devices.
  CHECK_FALSE(compiled("%0: f32[100] = input\n"
                       "%1: f32[100] = all_reduce %0 axes=[1] sizes=[4] "
                       "groups=[[0, 1], [2, 3]]\n"
                       "%2: f32[100] = neg %1\nreturn %2\n",
                       {false})
                  .shared[0]);
}

TEST_CASE(
    "steps of a loop are done once where devices meet, and nowhere else") {
  const std::string meets =
      "%0: f32[5000] = input\n%1: f32[5000] = input\n"
      "%2: f32[5000] = loop %0, %1 carries=1 turns=7 body={\n"
      "  %0: i64 = input\n  %1: f32[5000] = input\n  %2: f32[5000] = input\n"
      "  %3: f32[5000] = mul %1, %2\n"
      "  %4: f32[5000] = all_reduce %3 axes=[1] sizes=[4]\n"
      "  %5: f32[5000] = sub %1, %4\n  return %5\n}\n"
      "%3: f32[5000] = project %2\nreturn %3\n";
  const auto loop = compiled(meets, {true, false});
  // The copy of the carry is the first, the number of the turn waits for the
  // meeting, and each device asks for itself whether there is a turn more.
  CHECK(loop.shared[0]);
  const auto body = loop.steps.substr(loop.steps.find(';') + 1);
  CHECK(body.find('m') != std::string::npos);
  CHECK(body.find('K') > body.find('m'));
  CHECK(body.find_first_of("kc", body.find('m')) == std::string::npos);
  // Without a meeting in its turns every device does all of it.
  const std::string alone =
      "%0: f32[5000] = input\n%1: f32[100, 100] = input\n"
      "%2: f32[5000] = loop %0 carries=1 turns=7 body={\n"
      "  %0: i64 = input\n  %1: f32[5000] = input\n"
      "  %2: f32[5000] = cumsum %1 axis=0\n  return %2\n}\n"
      "%3: f32[5000] = project %2\n"
      "%4: f32[100, 100] = mul %1, %1\nreturn %3, %4\n";
  const auto own = compiled(alone, {true, false});
  CHECK(own.steps.substr(own.steps.find('[')).find_first_of("KC") ==
        std::string::npos);
}

TEST_CASE("what is done once comes before what each device does") {
  // The sums of %1 differ, and are not needed by those of %0.
  const auto step = compiled(
      "%0: f32[5000] = input\n%1: f32[5000] = input\n"
      "%2: f32[5000] = cumsum %1 axis=0\n%3: f32[5000] = cumsum %0 axis=0\n"
      "return %2, %3\n",
      {true, false});
  CHECK(step.steps == "Kk");
  CHECK(step.shared == std::vector<bool>{false, true});
}

TEST_CASE("what is done once needs what each device does") {
  // A loop without a meeting stays with each; behind it is a meeting more.
  const auto loop = compiled(
      "%0: f32[5000] = input\n"
      "%1: f32[5000] = loop %0 carries=1 turns=7 body={\n"
      "  %0: i64 = input\n  %1: f32[5000] = input\n"
      "  %2: f32[5000] = cumsum %1 axis=0\n  return %2\n}\n"
      "%2: f32[5000] = project %1\n"
      "%3: f32[5000] = cumsum %2 axis=0\nreturn %3\n",
      {true});
  CHECK(loop.steps.back() == 'K');
  // But behind what may fail there is none.
  const auto checked = compiled(
      "%0: i32[5000] = input\n%1: i32[5000] = constant 3\n"
      "%2: i32[5000] = bit_or %0, %1\n"
      "%3: i32[5000] = floor_div %1, %2 @5\n"
      "%4: i32[5000] = cumsum %3 axis=0\nreturn %3, %4\n",
      {true});
  CHECK(checked.steps.back() == 'k');
}

TEST_CASE("what a device needs before the meeting of a turn it does itself") {
  // %3 waits for no meeting, as %4 needs it before; %5 waits.
  const auto turns = compiled(
      "%0: f32[5000] = input\n%1: f32[5000] = input\n"
      "%2: f32[5000] = loop %0, %1 carries=1 turns=3 body={\n"
      "  %0: i64 = input\n  %1: f32[5000] = input\n  %2: f32[5000] = input\n"
      "  %3: f32[5000] = cumsum %1 axis=0\n"
      "  %4: f32[5000] = mul %3, %2\n"
      "  %5: f32[5000] = cummax %1 axis=0\n"
      "  %6: f32[5000] = cumsum %4 axis=0\n"
      "  %7: f32[5000] = all_reduce %6 axes=[1] sizes=[4]\n"
      "  %8: f32[5000] = sub %5, %7\n  return %8\n}\n"
      "%3: f32[5000] = project %2\nreturn %3\n",
      {true, false});
  const std::string body = turns.steps.substr(turns.steps.find(';'));
  CHECK(body.find_first_of("KC") > body.find('m'));
  CHECK(std::ranges::count(body, 'K') >= 2);
  CHECK(body.find('k', body.find('m')) == std::string::npos);
}

TEST_CASE("random graphs, of which some inputs are the same everywhere") {
  for (const int count : {2, 3, 8}) {
    Bench bench(0, count);
    for (const uint32_t seed : seeds(80)) {
      RandomOptions random_options;
      random_options.collectives = true;
      random_options.members = count;
      RandomGraph random(seed, random_options);
      const ir::Graph graph = random.make();
      show(bench, seed, graph);
      std::vector<Arrays> inputs;
      for (int d = 0; d < count; ++d)
        inputs.push_back(random.random_inputs(graph));
      CompileOptions options;
      for (size_t i = 0; i < graph.inputs.size(); ++i) {
        options.same.push_back(seed % 3 == 0 || i % 2 == 0);
        for (Arrays& own : inputs)
          if (options.same[i]) own[i] = inputs[0][i];
      }
      const auto expected = evaluate_members(graph, 1, inputs);
      const auto got = bench.run_all(graph, inputs, options);
      INFO("seed " << seed << " on " << count << "\n" << ir::print(graph));
      if (!expected || !got) {
        CHECK(!expected);
        CHECK(!got);
        continue;
      }
      for (int d = 0; d < count; ++d)
        for (size_t i = 0; i < (*got)[d].size(); ++i)
          CHECK(same_values((*got)[d][i], (*expected)[d][i]));
    }
  }
}
