#pragma once
// Graphs of tests, written as texts (jit/ir/text.h).
#include <doctest/doctest.h>

#include <string>
#include <utility>

#include "jit/ir/text.h"
#include "jit/ir/verify.h"

namespace unisono::jit::testing {

/// The graph of a text; the test ends where it is none, or breaks a rule.
inline ir::Graph parsed(const std::string& text) {
  auto graph = ir::parse(text);
  if (!graph) FAIL(graph.error().message);
  if (auto good = ir::verify(*graph); !good) FAIL(good.error().message);
  return *std::move(graph);
}

}  // namespace unisono::jit::testing
