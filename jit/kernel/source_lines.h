#pragma once
// Lines of the program, for code that says what it computes.
#include <cstdint>
#include <functional>
#include <string>

namespace unisono::jit {

/// A line of the program, and a column of it, both counted from 1.
struct SourceLine {
  std::string file;
  int line = 0;  // 0: nowhere
  int column = 0;
};
/// Where a place is (Expr::source). Called by the thread that compiles.
using SourceLines = std::function<SourceLine(uint32_t place)>;

}  // namespace unisono::jit
