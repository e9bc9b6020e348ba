// Loops that run from the host: where their turns are known, some are captured
// once and put again and again. Results, and which error is reported, are those
// of the reference evaluator, in whatever order the simulation executes.
#include <fmt/format.h>

#include <algorithm>

#include "jit/ir/text.h"
#include "tests/unit/jit/compiled.h"
#include "tests/unit/jit/gpu/simulated.h"
#include "tests/unit/jit/parsed.h"

using namespace unisono;
using namespace unisono::jit;
using namespace unisono::jit::testing;

namespace {

/// `turns` turns of a body, which has the counter %0 and an f32[size] %1, and
/// gives the next one in its last line.
ir::Graph loop(int64_t turns, int64_t size, const std::string& body) {
  const auto last = 2 + std::count(body.begin(), body.end(), '\n');
  return parsed(fmt::format(R"(%0: f32[{1}] = input
%1: i32 = constant 0
%2: i32 = loop %1, %0 carries=2 condition={{
  %0: i32 = input
  %1: f32[{1}] = input
  %2: i32 = constant {0}
  %3: bool = lt %0, %2
  return %3
}} body={{
  %0: i32 = input
  %1: f32[{1}] = input
{2}
  %{4}: i32 = constant 1
  %{5}: i32 = add %0, %{4}
  return %{5}, %{3}
}}
%3: f32[{1}] = project %2 index=1
return %3
)",
                            turns, size, body, last, last + 1, last + 2));
}

/// Sorted halves: launches that are not fused into one.
std::string sorting(int64_t size) {
  return fmt::format(R"(  %2: f32[{0}] = constant 0.5
  %3: f32[{0}] = mul %1, %2
  %4: f32[{0}] = sort %3
  %5: f32 = cast %0
  %6: f32[{0}] = broadcast %5
  %7: f32[{0}] = sub %6, %4)",
                     size);
}
const std::string summing = R"(  %2: f32[5] = mul %1, %1
  %3: f32[5] = all_reduce %2 sizes=[{0}]
  %4: f32[5] = constant 0.001
  %5: f32[5] = mul %3, %4
  %6: f32[5] = sub %1, %5)";
/// A halo: the neighbour's elements are added while others are computed.
const std::string shifting =
    R"(  %2: f32[5] = permute %1 sizes=[{0}] pairs=[{1}]
  %3: f32[5] = mul %1, %1
  %4: f32[5] = sin %3
  %5: f32[5] = add %4, %2
  %6: f32[5] = constant 0.5
  %7: f32[5] = mul %5, %6)";

HostArray numbers(int64_t size, float first) {
  HostArray out{{DType::F32, ir::Shape{size}},
                std::vector<uint8_t>(static_cast<size_t>(4 * size))};
  auto* values = reinterpret_cast<float*>(out.bytes.data());
  for (int64_t i = 0; i < size; ++i)
    values[i] = first + 0.25f * static_cast<float>(i * 7 % 13);
  return out;
}

void check_members(Bench& bench, const ir::Graph& graph, int devices) {
  std::vector<Arrays> inputs;
  for (int d = 0; d < devices; ++d)
    inputs.push_back({numbers(5, static_cast<float>(d))});
  auto expected = evaluate_members(graph, 0, inputs);
  auto got = bench.run_all(graph, inputs);
  if (!expected) FAIL(expected.error().message);
  if (!got) FAIL(got.error().message);
  for (int d = 0; d < devices; ++d)
    CHECK(same_values((*got)[d][0], (*expected)[d][0]));
}

}  // namespace

TEST_CASE("loops of any known number of turns") {
  for (const char* settings : {"seed=0", "seed=3", "seed=5"}) {
    Bench bench(simulated_gpus(1, settings));
    // Large carries have two places, between which turns alternate.
    for (int64_t size : {64, 3000})
      for (int64_t turns : {0, 1, 2, 3, 7, 8, 15, 33, 1001}) {
        if (size * turns > 200000) continue;
        INFO(settings << ", " << turns << " turns of " << size);
        CHECK(difference(bench, loop(turns, size, sorting(size)),
                         {numbers(size, 0)}) == "");
      }
    CHECK(simulated_calls("graph_launch") > 3);
    CHECK(simulated_calls("stream_synchronize") < 100);
    CHECK(simulated_findings() == "");
  }
}

TEST_CASE("a loop reads no row behind its last turn") {
  // The slow path of cos keeps the compiler from leaving such a read out.
  auto graph = ir::parse(R"(%0: f32[2] = input
%1: f32[30, 2] = input
%2: f32[2] = loop %0, %1 carries=1 turns=30 backwards=true rows=1 body={
  %0: i64 = input
  %1: f32[2] = input
  %2: f32[2] = input
  %3: f32[2] = cos %2
  %4: f32[2] = mul %1, %3
  return %4
}
%3: f32[2] = project %2
return %3
)");
  REQUIRE(graph);
  Bench bench(simulated_gpus(1));
  HostArray rows = numbers(60, 0);
  rows.type.shape = {30, 2};
  CHECK(difference(bench, *graph, {numbers(2, 1), rows}) == "");
  CHECK(simulated_findings() == "");
}

TEST_CASE("loops that meet in each turn") {
  const char* const cycles[] = {"",
                                "",
                                "(0, 1), (1, 0)",
                                "(0, 1), (1, 2), (2, 0)",
                                "",
                                "",
                                "(0, 1), (1, 2), (2, 3), (3, 4), (4, 5)"};
  for (int devices : {2, 3, 6})
    for (const char* peers : {"peers=all", "peers=none"})
      for (int seed = 0; seed < (devices == 3 ? 8 : 2); ++seed) {
        Bench bench(
            simulated_gpus(devices, fmt::format("{};seed={}", peers, seed)));
        INFO(devices << ", " << peers << ", seed " << seed);
        check_members(bench,
                      loop(900, 5, fmt::format(fmt::runtime(summing), devices)),
                      devices);
        check_members(
            bench,
            loop(600, 5,
                 fmt::format(fmt::runtime(shifting), devices, cycles[devices])),
            devices);
        CHECK(simulated_calls("graph_launch") > 2);
        CHECK(simulated_findings() == "");
      }
}

TEST_CASE("of all failed checks in a loop the first turn's is reported") {
  // Element 0 of the carry grows by 1 in each turn, from another start on each
  // device, and is an index.
  const std::string body = R"(  %2: i32[5] = cast %1
  %3: f32[5] = gather %1, %2 axes=[0]
  %4: f32[5] = constant 0
  %5: f32[5] = mul %3, %4
  %6: f32[5] = all_reduce %5 sizes=[3]
  %7: f32[5] = constant 0.01
  %8: f32[5] = add %1, %7
  %9: f32[5] = add %8, %6)";
  const ir::Graph graph = loop(1000, 5, body);
  for (int seed = 0; seed < 4; ++seed)
    for (float late : {0.0f, 2.0f}) {
      Bench bench(simulated_gpus(3, fmt::format("seed={}", seed)));
      // Those of device 2 are the first to leave 0 ... 4, then device 0's.
      std::vector<Arrays> inputs(3);
      for (int d = 0; d < 3; ++d) {
        inputs[d] = {numbers(5, 0)};
        auto* values = reinterpret_cast<float*>(inputs[d][0].bytes.data());
        for (int i = 0; i < 5; ++i)
          values[i] = 0.125f * static_cast<float>(i) + (d == 2   ? 2.5f
                                                        : d == 0 ? late
                                                                 : 0.0f);
      }
      auto expected = evaluate_members(graph, 0, inputs);
      auto got = bench.run_all(graph, inputs);
      REQUIRE(!expected);
      REQUIRE(!got);
      INFO("seed " << seed);
      CHECK(got.error().kind == expected.error().kind);
      CHECK(got.error().message == expected.error().message);
      CHECK(got.error().device == 2);
      CHECK(simulated_calls("graph_launch") > 0);
      // The word for errors is as good as before.
      for (Arrays& input : inputs) {
        auto* values = reinterpret_cast<float*>(input[0].bytes.data());
        for (int i = 0; i < 5; ++i) values[i] = -20.0f * 0;
      }
      const ir::Graph shorter = loop(300, 5, body);
      CHECK(bench.run_all(shorter, inputs));
    }
}

TEST_CASE("where work cannot be captured it is put turn by turn") {
  for (const char* fault :
       {"cuStreamBeginCapture_v2:1:801:sticky", "cuStreamEndCapture:1:901",
        "cuGraphInstantiateWithFlags:1:out_of_memory"}) {
    Bench bench(simulated_gpus(2, std::string("fail=") + fault));
    INFO(fault);
    check_members(bench, loop(600, 5, fmt::format(fmt::runtime(summing), 2)),
                  2);
    CHECK(simulated_calls("graph_launch") == 0);
    check_members(
        bench, loop(600, 5, fmt::format(fmt::runtime(shifting), 2, "(0, 1)")),
        2);
  }
}

TEST_CASE("a loop in a loop is captured once") {
  const ir::Graph graph = parsed(R"(%0: f32[3000] = input
%1: i32 = constant 0
%2: i32 = loop %1, %0 carries=2 condition={
  %0: i32 = input
  %1: f32[3000] = input
  %2: i32 = constant 6
  %3: bool = lt %0, %2
  return %3
} body={
  %0: i32 = input
  %1: f32[3000] = input
  %2: i32 = constant 0
  %3: i32 = loop %2, %1 carries=2 condition={
    %0: i32 = input
    %1: f32[3000] = input
    %2: i32 = constant 40
    %3: bool = lt %0, %2
    return %3
  } body={
    %0: i32 = input
    %1: f32[3000] = input
    %2: f32[3000] = constant 0.5
    %3: f32[3000] = mul %1, %2
    %4: f32[3000] = sort %3
    %5: f32[3000] = sub %2, %4
    %6: i32 = constant 2
    %7: i32 = add %0, %6
    return %7, %5
  }
  %4: f32[3000] = project %3 index=1
  %5: i32 = constant 1
  %6: i32 = add %0, %5
  return %6, %4
}
%3: f32[3000] = project %2 index=1
return %3
)");
  for (const char* settings : {"seed=0", "seed=1", "seed=6"}) {
    Bench bench(simulated_gpus(1, settings));
    CHECK(difference(bench, graph, {numbers(3000, 1)}) == "");
    CHECK(simulated_calls("graph_instantiate") == 1);
    CHECK(simulated_calls("graph_launch") > 5);
    CHECK(simulated_findings() == "");
  }
}

TEST_CASE("a GPU that is lost while captured work is done is an error") {
  for (int k : {20, 300, 900}) {
    Bench bench(simulated_gpus(2, fmt::format("fault=1:{}:700:sticky", k)));
    const ir::Graph graph = loop(600, 5, fmt::format(fmt::runtime(summing), 2));
    auto got = bench.run_all(graph, {{numbers(5, 0)}, {numbers(5, 1)}});
    REQUIRE(!got);
    CHECK(got.error().kind == Error::Kind::device_lost);
  }
}
