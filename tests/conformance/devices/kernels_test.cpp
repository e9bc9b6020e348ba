// Compiled work on every kind of device, against the reference evaluator: the
// operations of the table, collectives of three devices, errors, interrupts.
// Exceptions: the payload of a NaN may differ (same_values counts all as one);
// work that a GPU has begun is finished before an interrupt is answered, as
// nothing stops a kernel.
#include <atomic>
#include <chrono>
#include <cstring>
#include <thread>

#include "jit/scalar/element.h"
#include "tests/conformance/devices/machine.h"
#include "tests/unit/jit/compiled.h"
#include "tests/unit/jit/random_graph.h"

namespace unisono::device_test {
namespace {

using jit::HostArray;
using jit::testing::Arrays;
using jit::testing::Bench;

std::unique_ptr<Bench> open_bench(Kind kind, int count) {
  if (kind == Kind::host) return std::make_unique<Bench>(0, count);
  auto devices = open_gpus(kind, count);
  if (devices.empty()) return nullptr;
  return std::make_unique<Bench>(std::move(devices));
}

template <class Body>
void on_each_bench(int count, Body&& body) {
  for (Kind kind : kinds()) {
    INFO("devices: ", std::string(kind_name(kind)));
    const std::unique_ptr<Bench> bench = open_bench(kind, count);
    REQUIRE(bench);
    body(*bench);
  }
}

TEST_CASE("graphs of the table's operations") {
  on_each_bench(1, [](Bench& bench) {
    for (uint32_t seed = 1000; seed < 1060; ++seed) {
      jit::RandomGraph random(seed, {});
      const ir::Graph graph = random.make();
      INFO("seed ", seed);
      CHECK(difference(bench, graph, random.random_inputs(graph)) == "");
    }
  });
}

TEST_CASE("collectives of three devices") {
  on_each_bench(3, [](Bench& bench) {
    for (uint32_t seed = 2000; seed < 2030; ++seed) {
      jit::RandomGraph random(seed, {.collectives = true, .members = 3});
      const ir::Graph graph = random.make();
      std::vector<Arrays> inputs;
      for (int d = 0; d < 3; ++d) inputs.push_back(random.random_inputs(graph));
      const auto expected = jit::evaluate_members(graph, 1, inputs);
      const auto got = bench.run_all(graph, inputs);
      INFO("seed ", seed, "\n", ir::print(graph));
      REQUIRE(static_cast<bool>(expected) == static_cast<bool>(got));
      if (!expected) continue;
      for (size_t d = 0; d < 3; ++d)
        for (size_t i = 0; i < (*got)[d].size(); ++i)
          CHECK(jit::same_values((*got)[d][i], (*expected)[d][i]));
    }
  });
}

HostArray numbers(DType dtype, int64_t elements, int32_t step) {
  HostArray array{{dtype, ir::Shape{elements}},
                  std::vector<uint8_t>(static_cast<size_t>(elements) * 4)};
  for (int64_t i = 0; i < elements; ++i) {
    const auto whole = static_cast<int32_t>(i) * step;
    const auto real = static_cast<float>(whole);
    std::memcpy(&array.bytes[static_cast<size_t>(i) * 4],
                dtype == DType::F32 ? static_cast<const void*>(&real) : &whole,
                4);
  }
  return array;
}

/// x[at], with so many elements in x and in at.
ir::Graph gathering(int64_t elements, int64_t places) {
  ir::Graph graph;
  const auto x = graph.add_input({DType::F32, ir::Shape{elements}});
  const auto at = graph.add_input({DType::I32, ir::Shape{places}});
  graph.outputs = {graph.add(ir::Op::gather, {x, at}, ir::IndexAttrs{{0}})};
  return graph;
}

TEST_CASE(
    "a failed check is the first one, and the device is as good as before") {
  on_each_bench(1, [](Bench& bench) {
    const ir::Graph graph = gathering(1000, 5000);
    const Arrays good = {numbers(DType::F32, 1000, 1),
                         numbers(DType::I32, 5000, 0)};
    for (int turn = 0; turn < 3; ++turn) {
      // 3 · 334 = 1002 is the first that lies outside.
      const auto failed = bench.run(
          graph, {numbers(DType::F32, 1000, 1), numbers(DType::I32, 5000, 3)});
      REQUIRE(!failed);
      CHECK(failed.error().kind == Error::Kind::index_out_of_bounds);
      CHECK(failed.error().message.find("1002") != std::string::npos);
      CHECK(difference(bench, graph, good) == "");
    }
  });
}

TEST_CASE("integer division by zero is an error on every device") {
  on_each_bench(1, [](Bench& bench) {
    ir::Graph graph;
    const auto x = graph.add_input({DType::I32, ir::Shape{300}});
    graph.outputs = {graph.add(ir::Op::floor_div, {x, x})};
    const auto failed = bench.run(graph, {numbers(DType::I32, 300, 1)});
    REQUIRE(!failed);
    CHECK(failed.error().kind == Error::Kind::integer_division);
    CHECK(difference(bench, graph, {numbers(DType::I32, 300, 1)}, false) == "");
  });
}

TEST_CASE("a loop that does not end is stopped") {
  on_each_bench(1, [](Bench& bench) {
    // x = x + x of zeros, while their sum is below 1.
    using namespace ir;
    const Type type{DType::F32, Shape{20000}};
    auto condition = std::make_shared<Graph>(),
         body = std::make_shared<Graph>();
    const NodeId x = condition->add_input(type);
    const NodeId sum = condition->add(Op::sum, {x}, ReduceAttrs{{0}, {}});
    const NodeId one = condition->add_constant(
        {DType::F32, {}}, jit::element_bytes(DType::F32, 1.0));
    condition->outputs = {condition->add(Op::lt, {sum, one})};
    const NodeId y = body->add_input(type);
    body->outputs = {body->add(Op::add, {y, y})};
    Graph graph;
    const NodeId start = graph.add_input(type);
    graph.outputs = {
        graph.add(Op::loop, {start}, LoopAttrs{condition, body, 1})};

    const auto& devices = bench.runtime.devices();
    jit::CompileOptions options;
    options.target = code_target(devices);
    auto program = bench.compiler.compile(graph, options);
    REQUIRE(program);
    const HostArray zeros = numbers(DType::F32, 20000, 0);
    auto input =
        array_from_host(*devices[0], DType::F32, {20000}, zeros.bytes.data());
    REQUIRE(input);
    std::atomic<bool> stop{false};
    std::thread later([&] {
      std::this_thread::sleep_for(std::chrono::milliseconds(30));
      stop = true;
    });
    const auto stopped = run(bench.runtime, **program, devices,
                             {{input->blocks()[0]}}, {.stop = &stop});
    later.join();
    REQUIRE(!stopped);
    CHECK(stopped.error().kind == Error::Kind::cancelled);
    CHECK(difference(
              bench, gathering(10, 10),
              {numbers(DType::F32, 10, 1), numbers(DType::I32, 10, 1)}) == "");
  });
}

}  // namespace
}  // namespace unisono::device_test
