// The ways in which GPUs combine operands, by size and wiring: the same bits,
// in whatever order the simulation executes.
#include <fmt/format.h>

#include "jit/ir/text.h"
#include "tests/unit/jit/compiled.h"
#include "tests/unit/jit/gpu/simulated.h"

using namespace unisono;
using namespace unisono::jit;
using namespace unisono::jit::testing;

namespace {

/// Sums of three devices, twice: the second's operand is the first's result,
/// which may be in the same place.
ir::Graph sums(int64_t size, int devices) {
  auto graph = ir::parse(fmt::format(R"(%0: f32[{0}] = input
%1: f32[{0}] = all_reduce %0 sizes=[{1}]
%2: f32[{0}] = mul %1, %0
%3: f32[{0}] = all_reduce %2 sizes=[{1}]
return %1, %3
)",
                                     size, devices));
  if (!graph) FAIL(graph.error().message);
  return *graph;
}

std::vector<float> numbers(int64_t size, int device) {
  std::vector<float> values(static_cast<size_t>(size));
  uint32_t state = static_cast<uint32_t>(device) * 77777u + 5;
  for (float& value : values) {
    state = state * 1664525u + 1013904223u;
    value = static_cast<float>(static_cast<int32_t>(state) >> 8) * 1e-4f;
  }
  return values;
}

void check_sums(Bench& bench, int64_t size, int devices) {
  std::vector<Arrays> inputs;
  std::vector<std::vector<float>> values;
  for (int d = 0; d < devices; ++d) {
    values.push_back(numbers(size, d));
    HostArray array{{DType::F32, ir::Shape{size}},
                    std::vector<uint8_t>(static_cast<size_t>(4 * size))};
    std::memcpy(array.bytes.data(), values[d].data(), array.bytes.size());
    inputs.push_back({array});
  }
  auto got = bench.run_all(sums(size, devices), inputs);
  if (!got) FAIL(got.error().message);
  // The tree over three members: (0 + 1) + 2; over four: (0 + 1) + (2 + 3).
  auto tree = [&](auto&& of) {
    const float low = of(0) + of(1);
    return devices == 3 ? low + of(2) : low + (of(2) + of(3));
  };
  int64_t wrong = 0;
  std::vector<const float*> first, second;
  for (int d = 0; d < devices; ++d) {
    first.push_back(reinterpret_cast<const float*>((*got)[d][0].bytes.data()));
    second.push_back(reinterpret_cast<const float*>((*got)[d][1].bytes.data()));
  }
  for (int64_t i = 0; i < size; ++i) {
    const float sum = tree([&](int d) { return values[d][i]; });
    const float again = tree([&](int d) { return sum * values[d][i]; });
    for (int d = 0; d < devices; ++d)
      wrong += first[d][i] != sum || second[d][i] != again;
  }
  CHECK(wrong == 0);
}

}  // namespace

TEST_CASE("sums over GPUs of every size and wiring") {
  struct Case {
    int64_t size;
    const char* peers;
    bool beside;  // copies between GPUs that kernels do not make
  };
  for (const Case& c :
       {Case{1000, "all", false}, Case{100'000, "all", false},
        Case{1000, "none", false}, Case{100'000, "ring", false},
        Case{300'001, "none", true}, Case{400'000, "islands:2", true}})
    for (int devices : {3, 4})
      for (int seed : {0, 1, 3, 6}) {
        if (devices == 3 && std::string_view(c.peers) == "ring") continue;
        Bench bench(simulated_gpus(
            devices, fmt::format("peers={};seed={}", c.peers, seed)));
        INFO(c.size << ", " << c.peers << ", " << devices << ", " << seed);
        check_sums(bench, c.size, devices);
        CHECK((simulated_calls("memcpy_peer_async") > 0) == c.beside);
        CHECK(simulated_findings() == "");
      }
}

TEST_CASE("large sums over GPUs are brought to the others by copies") {
  for (int seed : {0, 5}) {
    Bench bench(simulated_gpus(3, fmt::format("peers=all;seed={}", seed)));
    INFO("seed " << seed);
    const int64_t size = 9'000'001;  // 36 MB: 5 pieces
    check_sums(bench, size, 3);
    // Each of two sums: each piece to two others.
    CHECK(simulated_calls("memcpy_dtod_async") == 2 * 5 * 2);
    CHECK(simulated_findings() == "");
  }
}

TEST_CASE("sums where a system does not give the access that it promises") {
  for (const char* function :
       {"device_can_access_peer", "ctx_enable_peer_access",
        "mem_pool_set_access"}) {
    Bench bench(
        simulated_gpus(3, fmt::format("fail={}:2:invalid_device", function)));
    INFO(function);
    check_sums(bench, 1000, 3);
    check_sums(bench, 300'001, 3);
    CHECK(simulated_calls("memcpy_peer_async") > 0);
    CHECK(simulated_findings() == "");
  }
}
