#pragma once
// Names of generated code for `perf`, which looks for them in a file of the
// process: tools/perf/Documentation/jit-interface.txt of Linux.
#include <cstdint>
#include <cstdio>
#include <memory>
#include <set>
#include <string>

#include "runtime/result.h"

namespace unisono::host {

/// Used by one thread at a time.
class PerfMap {
 public:
  /// Begins `/tmp/perf-PID.map`, which is the process's own.
  static Result<std::unique_ptr<PerfMap>> open();
  /// Names the code at an address; does nothing if the address has a name.
  void add(const void* code, int64_t bytes, const std::string& name);

 private:
  explicit PerfMap(std::FILE* file) : file_(file, &std::fclose) {}
  std::unique_ptr<std::FILE, int (*)(std::FILE*)> file_;
  std::set<const void*> known_;
};

}  // namespace unisono::host
