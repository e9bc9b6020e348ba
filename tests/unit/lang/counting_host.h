#pragma once
// A session's walk for tests that count what it compiles and copies.
#include <doctest/doctest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "lang/context/walk.h"
#include "lang/syntax/parser.h"
#include "runtime/recorder.h"

namespace unisono::lang {

struct CountingHost {
  /// On so many CPUs; `threshold` is Machine::compile_threshold.
  explicit CountingHost(int devices = 1,
                        int64_t threshold = Machine().compile_threshold,
                        int64_t memory_limit = 0)
      : runtime(devices, 0, memory_limit) {
    machine.runtime = &runtime;
    machine.compiler = &compiler;
    machine.recorder = &recorder;
    machine.compile_threshold = threshold;
    machine.output = [this](std::string_view text) { printed += text; };
    walk = std::make_unique<Walk>(machine, sources, diagnostics);
  }

  bool run(std::string text) {
    const SourceFile& file = sources.add("test.uni", std::move(text));
    programs.push_back(parse(file, diagnostics).program);
    return walk->check(*programs.back()) && walk->run(*programs.back());
  }
  /// Programs that running the text compiles.
  int64_t compiled(std::string text) {
    const int64_t before = compiler.programs_compiled();
    const bool ok = run(std::move(text));
    CHECK_MESSAGE(ok, render(diagnostics));
    return compiler.programs_compiled() - before;
  }
  /// Bytes that running the text copied from device to device.
  int64_t copied(std::string text) {
    const int64_t before = total();
    const bool ok = run(std::move(text));
    CHECK_MESSAGE(ok, render(diagnostics));
    return total() - before;
  }
  int64_t total() const {
    int64_t bytes = 0;
    for (const auto& [pair, total] : recorder.copies())
      if (pair.second != Recorder::host) bytes += total.bytes;
    return bytes;
  }
  /// Bytes that all devices have now.
  int64_t in_use() const {
    int64_t bytes = 0;
    for (const Device* device : runtime.devices())
      bytes += device->bytes_in_use();
    return bytes;
  }
  std::string take_printed() { return std::exchange(printed, ""); }

  Runtime runtime;
  jit::Compiler compiler;
  Recorder recorder{/*keep_events=*/false};
  Machine machine;
  SourceMap sources;
  Diagnostics diagnostics;
  std::vector<std::unique_ptr<Program>> programs;
  std::unique_ptr<Walk> walk;
  std::string printed;
};

}  // namespace unisono::lang
