#pragma once
// Which arrays a plan stores between kernels, and why no kernel computes them
// where they are read: for who asks what makes a program slow.
#include <cstdint>
#include <string_view>
#include <vector>

namespace unisono {
struct Program;
}  // namespace unisono

namespace unisono::jit {

struct Plan;

/// An array that one kernel of a program stores and a later one reads, as both
/// could not be one.
struct StoredArray {
  uint32_t source = 0;  // the place in the program of what it is
  uint32_t reader = 0;  // and of what reads it; 0: not known
  int64_t bytes = 0;
  std::string_view why;  // a constant
};

/// Each large array that a step of the plan stores and a later one reads, once
/// for each of these.
std::vector<StoredArray> stored_arrays(const Plan& plan);
/// Those of the plan of a program that a Compiler made.
const std::vector<StoredArray>& stored_arrays(const Program& program);

}  // namespace unisono::jit
