#pragma once
// `unisono test`: the tests that stand in programs and pages.
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "host/session/session.h"
#include "runtime/result.h"

namespace unisono::host {

struct TestOptions {
  /// Programs (.uni), pages (.md) and folders, which are searched for both.
  std::vector<std::string> paths = {"."};
  /// Only tests in whose name, "FILE: NAME", this stands.
  std::string filter;
  /// Writes what examples give in place of what they expect.
  bool update = false;
  std::optional<std::string> junit;  // a file for the results, as JUnit's XML
};

/// A session for one file, whose output goes to `output`. `devices` of its CPU,
/// or, if that is 0, those of the command line.
using OpenSession = std::function<Result<std::unique_ptr<Session>>(
    std::function<void(std::string_view)> output, int devices)>;

/// Runs them and tells what failed, and how many, by `tell`; gives the exit
/// status: 0 if there are tests and all pass, 130 when they were stopped (the
/// flag of a StopScope), else 1. A file without tests is not run. An error is
/// one of the options: a path that is not there.
Result<int> run_tests(const TestOptions& options, const OpenSession& open,
                      const std::function<void(std::string_view)>& tell);

}  // namespace unisono::host
