#pragma once
// A session's walk for tests that count what it compiles.
#include <doctest/doctest.h>

#include <memory>
#include <string>
#include <vector>

#include "lang/context/walk.h"
#include "lang/syntax/parser.h"

namespace unisono::lang {

struct CountingHost {
  /// On so many CPUs; `threshold` is Machine::compile_threshold.
  CountingHost(int devices, int64_t threshold) : runtime(devices) {
    machine.runtime = &runtime;
    machine.compiler = &compiler;
    machine.compile_threshold = threshold;
    machine.output = [this](std::string_view text) { printed += text; };
    walk = std::make_unique<Walk>(machine, sources, diagnostics);
  }

  /// Programs that running the text compiles.
  int64_t compiled(std::string text) {
    const int64_t before = compiler.programs_compiled();
    const SourceFile& file = sources.add("test.uni", std::move(text));
    programs.push_back(parse(file, diagnostics).program);
    const bool ok =
        walk->check(*programs.back()) && walk->run(*programs.back());
    CHECK_MESSAGE(ok, render(diagnostics));
    return compiler.programs_compiled() - before;
  }

  Runtime runtime;
  jit::Compiler compiler;
  Machine machine;
  SourceMap sources;
  Diagnostics diagnostics;
  std::vector<std::unique_ptr<Program>> programs;
  std::unique_ptr<Walk> walk;
  std::string printed;
};

}  // namespace unisono::lang
