// Code for GPUs, run by the simulated driver: random graphs against the
// reference evaluator, on any wiring of devices; failed checks; and what a
// device answers when it fails itself.
#include "jit/ir/text.h"
#include "tests/unit/jit/gpu/simulated.h"
#include "tests/unit/jit/random_compare.h"

using namespace unisono;
using namespace unisono::jit;
using namespace unisono::jit::testing;
using ir::Graph;
using ir::NodeId;
using ir::Op;
using ir::Type;

namespace {

/// `x + x` of so many elements.
Graph doubling(int64_t elements) {
  Graph graph;
  const NodeId x = graph.add_input({DType::F32, ir::Shape{elements}});
  graph.outputs = {graph.add(Op::add, {x, x})};
  return graph;
}

HostArray ones(int64_t elements) {
  HostArray out{{DType::F32, ir::Shape{elements}}, {}};
  const float one = 1;
  for (int64_t i = 0; i < elements; ++i) {
    const auto* bytes = reinterpret_cast<const uint8_t*>(&one);
    out.bytes.insert(out.bytes.end(), bytes, bytes + sizeof one);
  }
  return out;
}

}  // namespace

TEST_CASE("random graphs on a simulated GPU") {
  for (const char* model : {"cc=7.5", "cc=8.0", "cc=9.0"}) {
    Bench bench(simulated_gpus(1, model));
    INFO(model);
    compare_random_graphs(bench, 60, {});
    compare_random_graphs(bench, 12, {.elements = 20'000});
  }
}

TEST_CASE("a reduction that nobody asks for leaves its operand whole") {
  Bench bench(simulated_gpus(1));
  const auto graph = ir::parse(R"(%0: i8[2, 3] = input
%1: i8[2, 3] = constant 1
%2: i8[2, 3] = bit_or %0, %1
%3: i8[2, 3] = mod %0, %2
%4: i8 = min %3 axes=[0, 1]
%5: i8[1] = reshape %4
%6: i8[0] = slice %5
return %3, %6
)");
  REQUIRE(graph);
  CHECK(difference(bench, *graph,
                   {array(DType::I8, {2, 3}, {5, 7, 90, -4, 3, 2})}) == "");
}

TEST_CASE("GPUs of several models run one program") {
  Bench bench(simulated_gpus(4, "cc=9.0,7.5,9.0,8.6"));
  const auto& devices = bench.runtime.devices();
  CompileOptions options;
  options.devices = 4;
  options.target = code_target(devices);
  CHECK(options.target.capabilities == std::vector<int>{75, 86, 90});
  auto program = bench.compiler.compile(doubling(3000), options);
  REQUIRE(program);
  const auto& launch = std::get<LaunchStep>((*program)->steps[0].what);
  // Code for each model once.
  std::vector<int> images;
  for (const GridCode::Image& image : launch.grid->code->images) {
    images.push_back(image.capability);
    CHECK(image.ptx.find(".target sm_" + std::to_string(image.capability)) !=
          std::string::npos);
  }
  CHECK(images == std::vector<int>{75, 86, 90});
  const Arrays inputs = {ones(3000)};
  auto got = bench.run_all(doubling(3000), {4, inputs});
  REQUIRE(got);
  const Arrays want = outputs_of(doubling(3000), inputs);
  for (const Arrays& own : *got) CHECK(same_bits(own[0], want[0]));
}

TEST_CASE("random graphs with collectives on simulated GPUs") {
  for (int devices : {2, 3, 8}) {
    for (const char* settings :
         {"peers=all", "peers=none", "peers=ring;seed=2", "peers=islands:2"}) {
      Bench bench(simulated_gpus(devices, settings));
      INFO(settings);
      compare_random_members(bench, 12);
      if (devices == 3) compare_random_members(bench, 4, {.elements = 20'000});
    }
  }
}

TEST_CASE("the first element that fails a check on a GPU is the one reported") {
  for (const char* settings : {"seed=0", "seed=1", "seed=2", "seed=3"}) {
    Bench bench(simulated_gpus(1, settings));
    Graph graph;
    const NodeId x = graph.add_input({DType::F32, ir::Shape{100}});
    const NodeId at = graph.add_input({DType::I32, ir::Shape{5000}});
    graph.outputs = {graph.add(Op::gather, {x, at}, ir::IndexAttrs{{0}})};
    HostArray indices{{DType::I32, ir::Shape{5000}},
                      std::vector<uint8_t>(20000)};
    auto* values = reinterpret_cast<int32_t*>(indices.bytes.data());
    for (int i = 700; i < 5000; i += 3) values[i] = 100 + i;
    auto failed = bench.run(graph, {ones(100), indices});
    REQUIRE(!failed);
    CHECK(failed.error().kind == Error::Kind::index_out_of_bounds);
    CHECK(failed.error().message.find("800") != std::string::npos);
    // The device is as good as before.
    CHECK(difference(bench, doubling(3000), {ones(3000)}) == "");
  }
}

TEST_CASE("memory of a GPU that does not suffice is an error, and no more") {
  Bench bench(simulated_gpus(1, "memory=64M"));
  const int64_t elements = int64_t{1} << 24;
  auto failed = bench.run(doubling(elements), {ones(elements)});
  REQUIRE(!failed);
  CHECK(failed.error().kind == Error::Kind::out_of_memory);
  CHECK(failed.error().message.find("sim:0") != std::string::npos);
  CHECK(difference(bench, doubling(3000), {ones(3000)}) == "");
}

TEST_CASE("a GPU that is lost gives an error each time") {
  Bench bench(simulated_gpus(1, "fault=0:3:700:sticky"));
  for (int i = 0; i < 3; ++i) {
    auto got = bench.run(doubling(3000), {ones(3000)});
    if (!got) CHECK(got.error().kind == Error::Kind::device_lost);
    if (i == 2) CHECK(!got);
  }
}

TEST_CASE("any call of the driver may fail once") {
  // The k-th call of all fails with out of memory; the work after that does
  // not.
  int failures = 0;
  for (int k = 60; k < 160; k += 3) {
    CudaOptions options;
    options.driver = SIMCUDA_LIBRARY;
    options.kind = "sim";
    options.configuration = "devices=2; fail=*:" + std::to_string(k) + ":2";
    auto devices = open_cuda_devices(options);
    if (!devices) {
      ++failures;
      continue;
    }
    Bench bench(std::move(*devices));
    const Graph graph = doubling(3000);
    int failed = 0;
    for (int run = 0; run < 4; ++run)
      if (!bench.run_all(graph, {{ones(3000)}, {ones(3000)}})) ++failed;
    INFO("call " << k);
    CHECK(failed <= 1);
    failures += failed;
  }
  CHECK(failures > 0);
}

TEST_CASE("why there is no CUDA device is said in one line") {
  auto why = [](const std::string& path, const std::string& settings) {
    CudaOptions options;
    options.driver = path;
    options.configuration = settings;
    auto devices = open_cuda_devices(options);
    REQUIRE(!devices);
    CHECK(devices.error().message.find('\n') == std::string::npos);
    return devices.error().message;
  };
  auto holds = [](const std::string& text, const char* part) {
    return text.find(part) != std::string::npos;
  };
  const std::string sim = SIMCUDA_LIBRARY;
  CHECK(holds(why("/nowhere/libcuda.so", ""), "no CUDA driver"));
  CHECK(holds(why("libm.so.6", ""), "is no CUDA driver"));
  CHECK(holds(why("libm.so.6", "devices=1"), "no simulated CUDA driver"));
  CHECK(holds(why(sim, "devices=0"), "no GPU"));
  CHECK(holds(why(sim, "devices=1; fail=cuInit:1:34"), "a stub"));
  CHECK(holds(why(sim, "devices=1; fail=cuInit:1:100"), "found no GPU"));
  CHECK(holds(why(sim, "devices=1; driver=11.4"), "11.4"));
  CHECK(holds(why(sim, "devices=1; cc=7.0"), "7.5"));
}
