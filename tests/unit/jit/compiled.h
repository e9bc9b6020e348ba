#pragma once
// Runs graphs compiled and by the reference evaluator.
#include <doctest/doctest.h>

#include <cstring>
#include <string>
#include <vector>

#include "jit/compile.h"
#include "jit/ir/graph.h"
#include "jit/ir/text.h"
#include "jit/ir/verify.h"
#include "jit/reference/reference.h"
#include "runtime/execute/program.h"
#include "tests/unit/jit/arrays.h"
#include "tests/unit/jit/random_graph.h"

namespace unisono::jit::testing {

using Arrays = std::vector<HostArray>;

/// A machine and a compiler.
struct Bench {
  explicit Bench(int vector_bytes = 0, int devices = 1)
      : runtime(devices), compiler({.vector_bytes = vector_bytes}) {}
  /// On GPUs (simulated.h).
  explicit Bench(std::vector<std::unique_ptr<Device>> gpus)
      : runtime(std::move(gpus)) {}
  Runtime runtime;
  Compiler compiler;

  /// Runs on all devices: inputs[d] are those of device d; so are the results.
  Result<std::vector<Arrays>> run_all(const ir::Graph& graph,
                                      const std::vector<Arrays>& inputs,
                                      CompileOptions options = {},
                                      CompileStats* stats = nullptr) {
    const auto& devices = runtime.devices();
    options.devices = static_cast<int>(devices.size());
    options.target = code_target(devices);
    auto program = compiler.compile(graph, options, stats);
    if (!program) return program.error();
    std::vector<DeviceBlocks> blocks(graph.inputs.size());
    for (size_t d = 0; d < devices.size(); ++d)
      for (size_t i = 0; i < inputs[d].size(); ++i) {
        const HostArray& input = inputs[d][i];
        auto array = array_from_host(*devices[d], input.type.dtype,
                                     input.type.sizes(), input.bytes.data());
        if (!array) return array.error();
        blocks[i].push_back(array->blocks()[0]);
      }
    auto results = unisono::run(runtime, **program, devices, blocks);
    if (!results) return results.error();
    std::vector<Arrays> out(devices.size());
    for (const ir::Type& type : graph.output_types()) {
      const size_t i = out[0].size();
      for (size_t d = 0; d < devices.size(); ++d) {
        HostArray array{type, std::vector<uint8_t>(type.bytes())};
        if (type.bytes() > 0) {
          auto copied = devices[d]->copy_to_host(
              array.bytes.data(), (*results)[i][d]->data(), type.bytes());
          if (!copied) return copied.error();
        }
        out[d].push_back(std::move(array));
      }
    }
    return out;
  }
  Result<Arrays> run(const ir::Graph& graph, const Arrays& inputs,
                     bool checked = true, CompileStats* stats = nullptr) {
    CompileOptions options;
    options.checked = checked;
    auto out = run_all(graph, {inputs}, options, stats);
    if (!out) return out.error();
    return (*out)[0];
  }
};

/// The first element in which two arrays of one type differ.
inline std::string first_difference(const HostArray& want,
                                    const HostArray& have) {
  const size_t size = static_cast<size_t>(byte_size(want.type.dtype));
  const auto differ = [&](size_t at) {
    return std::memcmp(&want.bytes[at], &have.bytes[at], size) != 0;
  };
  // One that is not NaN in both, if there is any.
  const std::vector<double> x = values_of(want), y = values_of(have);
  size_t at = 0;
  for (size_t i = 0; i < x.size() && !at; ++i)
    if (differ(i * size) && !(x[i] != x[i] && y[i] != y[i])) at = i * size;
  while (at < want.bytes.size() && !differ(at)) at += size;
  if (at >= want.bytes.size()) return "nothing";
  uint64_t w = 0, h = 0;
  std::memcpy(&w, &want.bytes[at], size);
  std::memcpy(&h, &have.bytes[at], size);
  char text[160];
  std::snprintf(text, sizeof text, "element %zu: want %#llx, have %#llx",
                at / size, static_cast<unsigned long long>(w),
                static_cast<unsigned long long>(h));
  return text;
}

/// "" if compiled code and the evaluator agree, else what differs.
inline std::string difference(Bench& bench, const ir::Graph& graph,
                              const Arrays& inputs, bool checked = true) {
  ReferenceOptions options;
  options.checked = checked;
  auto expected = evaluate(graph, inputs, options);
  auto got = bench.run(graph, inputs, checked);
  if (!expected || !got) {
    if (!expected && !got && expected.error().kind == got.error().kind)
      return "";
    return "reference: " + (expected ? "fine" : expected.error().message) +
           ", compiled: " + (got ? "fine" : got.error().message) + "\n" +
           ir::print(graph);
  }
  for (size_t i = 0; i < expected->size(); ++i) {
    const HostArray &want = (*expected)[i], &have = (*got)[i];
    if (same_values(want, have)) continue;
    return "output " + std::to_string(i) + ", " + first_difference(want, have) +
           "\n" + ir::print(graph);
  }
  return "";
}

}  // namespace unisono::jit::testing
