#pragma once
// Random graphs, compiled and by the reference evaluator.
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <string>
#include <vector>

#include "tests/unit/jit/compiled.h"

namespace unisono::jit::testing {

/// UNISONO_SEEDS=1000 for a longer run, UNISONO_SEED=17 for one.
inline std::vector<uint32_t> seeds(uint32_t otherwise) {
  auto setting = [](const char* name) {
    const char* text = std::getenv(name);
    return text ? static_cast<uint32_t>(std::atoi(text)) : 0;
  };
  if (std::getenv("UNISONO_SEED")) return {setting("UNISONO_SEED")};
  std::vector<uint32_t> all(std::max(setting("UNISONO_SEEDS"), otherwise));
  for (uint32_t i = 0; i < all.size(); ++i) all[i] = i;
  return all;
}

/// UNISONO_TRACE=1 shows each graph and what it is compiled to.
inline void show(Bench& bench, uint32_t seed, const ir::Graph& graph) {
  if (!std::getenv("UNISONO_TRACE")) return;
  std::fprintf(stderr, "seed %u\n%s", seed, ir::print(graph).c_str());
  bench.compiler.observe({.after_pass = {}, .dump = [](const CodeText& dump) {
                            std::fprintf(stderr, "%s%s", dump.kernels.c_str(),
                                         dump.assembly.c_str());
                          }});
}

inline void compare_random_graphs(Bench& bench, uint32_t count,
                                  RandomOptions options) {
  int failures = 0;
  for (uint32_t seed : seeds(count)) {
    RandomGraph random(seed, options);
    const ir::Graph graph = random.make();
    const auto inputs = random.random_inputs(graph);
    show(bench, seed, graph);
    const std::string wrong = difference(bench, graph, inputs);
    INFO("seed " << seed);
    CHECK(wrong == "");
    if (!wrong.empty() && ++failures == 5) return;
  }
}

/// With collectives between the bench's devices, each with inputs of its own.
/// `seen` is told of each graph that has run.
inline void compare_random_members(
    Bench& bench, uint32_t count, RandomOptions options = {},
    const CompileOptions& compile = {},
    const std::function<void(const ir::Graph&)>& seen = nullptr) {
  const auto devices = static_cast<int>(bench.runtime.devices().size());
  options.collectives = true;
  options.members = devices;
  for (uint32_t seed : seeds(count)) {
    RandomGraph random(seed, options);
    const ir::Graph graph = random.make();
    show(bench, seed, graph);
    std::vector<Arrays> inputs;
    for (int d = 0; d < devices; ++d)
      inputs.push_back(random.random_inputs(graph));
    auto expected = evaluate_members(graph, 1, inputs);
    auto got = bench.run_all(graph, inputs, compile);
    INFO("seed " << seed << " on " << devices << "\n" << ir::print(graph));
    if (!expected || !got) {
      CHECK(!expected);
      CHECK(!got);
      continue;
    }
    for (int d = 0; d < devices; ++d)
      for (size_t i = 0; i < (*got)[d].size(); ++i)
        CHECK(same_values((*got)[d][i], (*expected)[d][i]));
    if (seen) seen(graph);
  }
}

}  // namespace unisono::jit::testing
