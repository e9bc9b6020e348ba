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
#include "jit/reference.h"
#include "runtime/program.h"
#include "tests/unit/jit/random_graph.h"

namespace unisono::jit::testing {

using Arrays = std::vector<HostArray>;

/// One machine with one device, and a compiler.
struct Bench {
  explicit Bench(int vector_bytes = 0) : compiler(vector_bytes) {}
  Runtime runtime{1};
  Compiler compiler;

  Result<Arrays> run(const ir::Graph& graph, const Arrays& inputs,
                     bool checked = true, CompileStats* stats = nullptr) {
    CompileOptions options;
    options.checked = checked;
    auto program = compiler.compile(graph, options, stats);
    if (!program) return program.error();
    Device* device = runtime.devices()[0];
    std::vector<std::vector<std::shared_ptr<Buffer>>> blocks;
    for (const HostArray& input : inputs) {
      auto array = array_from_host(*device, input.type.dtype,
                                   input.type.sizes(), input.bytes.data());
      if (!array) return array.error();
      blocks.push_back(array->blocks());
    }
    auto results = unisono::run(runtime, **program, {device}, blocks);
    if (!results) return results.error();
    Arrays out;
    const auto types = graph.output_types();
    for (size_t i = 0; i < types.size(); ++i) {
      HostArray array{types[i], std::vector<uint8_t>(types[i].bytes())};
      if (types[i].bytes() > 0)
        device->copy_to_host(array.bytes.data(), (*results)[i][0]->data(),
                             types[i].bytes());
      out.push_back(std::move(array));
    }
    return out;
  }
};

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
    const size_t size = static_cast<size_t>(byte_size(want.type.dtype));
    size_t at = 0;
    while (at < want.bytes.size() &&
           std::memcmp(&want.bytes[at], &have.bytes[at], size) == 0)
      at += size;
    uint64_t w = 0, h = 0;
    std::memcpy(&w, &want.bytes[at], size);
    std::memcpy(&h, &have.bytes[at], size);
    char text[160];
    std::snprintf(text, sizeof text,
                  "output %zu, element %zu: want %#llx, have %#llx\n", i,
                  at / size, static_cast<unsigned long long>(w),
                  static_cast<unsigned long long>(h));
    return text + ir::print(graph);
  }
  return "";
}

}  // namespace unisono::jit::testing
