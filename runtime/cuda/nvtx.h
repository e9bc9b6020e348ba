#pragma once
// NVIDIA's annotations for tools (NVTX): Nsight Systems and others show the
// ranges that a program names beside what its GPUs do. A tool says where its
// library is in NVTX_INJECTION64_PATH; without one there is nothing to call.
#include <memory>

namespace unisono::cuda {

/// Thread-safe; ranges belong to the thread that opens them.
class Nvtx {
 public:
  /// The tool's, if this process runs under one; else null. A library is opened
  /// once in a process, and stays.
  static const Nvtx* open();

  /// `name` is UTF-8 and is copied.
  void push(const char* name) const;
  /// Ends the range of this thread that was opened last.
  void pop() const;

 private:
  Nvtx() = default;
};

}  // namespace unisono::cuda
