// Machine code of kernels is kept on disk: what is there is not made again,
// and what is wrong is made anew.
#include <sys/stat.h>

#include <filesystem>
#include <fstream>

#include "runtime/execute/program.h"
#include "tests/unit/jit/compiled.h"
#include "tests/unit/jit/gpu/simulated.h"
#include "tests/unit/runtime/files.h"

using namespace unisono;
using namespace unisono::jit;
using namespace unisono::jit::testing;
using ir::Graph;
using ir::NodeId;
using ir::Op;

namespace {

/// How often PTX was translated in the simulation that there is.
uint64_t translations() { return simulated_calls("link_complete"); }

Graph tripling() {
  Graph graph;
  const NodeId x = graph.add_input({DType::I32, ir::Shape{3000}});
  graph.outputs = {graph.add(Op::add, {x, graph.add(Op::add, {x, x})})};
  return graph;
}

/// Runs it in a new simulation; gives the number of translations.
uint64_t run_once(const std::string& folder, const std::string& settings,
                  const std::string& driver = SIMCUDA_LIBRARY) {
  CudaOptions options;
  options.driver = driver;
  options.kind = "sim";
  options.configuration = "devices=1;" + settings;
  if (!folder.empty()) {
    auto cache = DiskCache::open(folder, 1 << 20);
    if (!cache) FAIL(cache.error().message);
    options.cache = *cache;
  }
  auto devices = open_cuda_devices(options);
  if (!devices) FAIL(devices.error().message);
  Bench bench(std::move(*devices));
  RandomGraph random(1, {});
  const Graph graph = tripling();
  CHECK(difference(bench, graph, random.random_inputs(graph)) == "");
  return translations();
}

std::vector<std::filesystem::path> entries(const std::string& folder) {
  std::vector<std::filesystem::path> found;
  for (const auto& item : std::filesystem::directory_iterator(folder))
    if (item.path().extension() == ".entry") found.push_back(item.path());
  return found;
}

}  // namespace

TEST_CASE("kernels are translated once for a GPU and a driver") {
  TemporaryFolder temporary;
  const std::string folder = temporary / "cache";
  const uint64_t made = run_once(folder, "driver=12.6");
  CHECK(made > 0);
  CHECK(entries(folder).size() == made);
  CHECK(run_once(folder, "driver=12.6") == 0);
  CHECK(run_once(folder, "driver=12.6;seed=3") == 0);
  // Another driver, another GPU, no cache.
  CHECK(run_once(folder, "driver=12.8") == made);
  CHECK(run_once(folder, "driver=12.6;cc=8.0") == made);
  CHECK(entries(folder).size() == 3 * made);
  run_once("", "driver=12.6");
  CHECK(simulated_calls("module_load_data_ex") == made);
  CHECK(run_once(folder, "driver=12.6") == 0);
}

TEST_CASE("another build of the driver has kernels of its own") {
  TemporaryFolder temporary;
  const std::string folder = temporary / "cache";
  const uint64_t made = run_once(folder, "driver=12.6");
  const std::string other = temporary / "libsimcuda.so.2";
  std::filesystem::copy_file(SIMCUDA_LIBRARY, other);
  run_once(folder, "driver=12.6", other);
  CHECK(entries(folder).size() == 2 * made);
  run_once(folder, "driver=12.6", other);
  CHECK(entries(folder).size() == 2 * made);
}

TEST_CASE("where the linker fails, kernels are loaded without it") {
  TemporaryFolder temporary;
  const std::string folder = temporary / "cache";
  run_once(folder, "fail=cuLinkComplete:1:invalid_ptx:sticky");
  CHECK(simulated_calls("module_load_data_ex") > 0);
  CHECK(entries(folder).empty());
}

TEST_CASE("a bad entry of the cache is a miss") {
  TemporaryFolder temporary;
  const std::string folder = temporary / "cache";
  const uint64_t made = run_once(folder, "");
  const auto files = entries(folder);
  REQUIRE(files.size() == made);
  auto spoil = [&](auto&& how) {
    for (const auto& path : files) how(path);
    CHECK(run_once(folder, "") == made);
    CHECK(run_once(folder, "") == 0);  // it has been made good
  };
  spoil([](const auto& path) {
    Bytes bytes = get_file(path);
    bytes[bytes.size() / 2] ^= 0x20;
    put_file(path, bytes);
  });
  spoil([](const auto& path) {
    std::filesystem::resize_file(path, std::filesystem::file_size(path) - 1);
  });
  spoil([](const auto& path) { chmod(path.c_str(), 0666); });
  spoil([](const auto& path) { std::filesystem::remove(path); });
}

TEST_CASE("an entry that the driver refuses is a miss") {
  TemporaryFolder temporary;
  const std::string folder = temporary / "cache";
  const uint64_t made = run_once(folder, "");
  // 209: no code for this GPU; the first cubin that is loaded is refused.
  CHECK(run_once(folder, "fail=cuModuleLoadData:1:209") == 1);
  CHECK(run_once(folder, "") == 0);
  CHECK(made > 0);
}

TEST_CASE("a cache that nothing can be written to changes nothing") {
  TemporaryFolder temporary;
  const std::string folder = temporary / "cache";
  auto cache = DiskCache::open(folder, 1);  // no entry is small enough
  REQUIRE(cache);
  CHECK(run_once(folder, "") > 0);
  std::filesystem::remove_all(folder);
  (*cache)->keep("key", Bytes(1));
  CHECK(!(*cache)->find("key"));
}

TEST_CASE("PTX that is too new is an error with both versions") {
  Bench bench(simulated_gpus(1, "ptx=6.0;driver=12.1"));
  auto failed =
      bench.run(tripling(), RandomGraph(1, {}).random_inputs(tripling()));
  REQUIRE(!failed);
  CHECK(failed.error().kind == Error::Kind::compile_failed);
  const std::string& message = failed.error().message;
  INFO(message);
  CHECK(message.find("PTX 7") != std::string::npos);
  CHECK(message.find("driver 12.1") != std::string::npos);
  CHECK(message.find("ptxas") != std::string::npos);  // the driver's log
}
