#pragma once
// `unisono bench`: measures the `bench` blocks of programs.
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "host/testing/test_command.h"
#include "runtime/result.h"

namespace unisono::host {

struct BenchOptions {
  /// Programs (.uni), and folders, which are searched for them.
  std::vector<std::string> paths = {"."};
  /// Only blocks in whose name, "FILE: NAME", this stands.
  std::string filter;
  /// Seconds of samples after which a block has enough.
  double seconds = 5;
  std::optional<std::string> json;     // a file for the results
  std::optional<std::string> compare;  // such a file of an earlier run
  /// The machine's peak is measured first, and rates are parts of it.
  bool peak = true;
};

/// Where results and messages go.
struct BenchOutput {
  std::function<void(std::string_view)> say;   // results, whole lines
  std::function<void(std::string_view)> tell;  // messages
};

/// Measures them, and says a line for each when it is done; gives the exit
/// status: 0 if there are blocks and none fails, 130 when they were stopped
/// (the flag of a StopScope), else 1. A file without blocks is not run. An
/// error is one of the options: a path that is not there, or an earlier run's
/// file that is none.
Result<int> run_benches(const BenchOptions& options, const OpenSession& open,
                        const BenchOutput& output);

}  // namespace unisono::host
