#pragma once
// Pinned host memory through which large copies between the host and a GPU
// pass in chunks: while the GPU copies one, the processor fills or empties
// another.
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "runtime/cuda/gpu.h"
#include "runtime/device.h"
#include "runtime/pool.h"

namespace unisono::cuda {

/// Thread-safe: one copy at a time.
class StagingRing {
 public:
  StagingRing(const std::shared_ptr<Gpu>& gpu, const std::string& name)
      : gpu_(gpu), name_(name) {}
  ~StagingRing();
  StagingRing(const StagingRing&) = delete;
  StagingRing& operator=(const StagingRing&) = delete;

  /// Pins the memory when it is first wanted. Must have succeeded before a
  /// copy.
  Status open();
  /// Copies rows from the host's memory, which may change again when this
  /// returns; the GPU's copies may still be under way in `stream`.
  Status upload(Stream stream, char* to, const char* from,
                const CopyExtent& extent);
  /// The same of so few bytes that many such copies pass through one chunk.
  Status upload_few(Stream stream, char* to, const char* from,
                    const CopyExtent& extent);
  /// Whether `upload_few` may be called for these.
  static bool takes(const CopyExtent& extent);
  /// Copies rows to the host's memory, which is filled when this returns.
  Status download(Stream stream, char* to, const char* from,
                  const CopyExtent& extent);
  /// Threads that may help to fill and to empty chunks; null: none.
  void use_workers(std::shared_ptr<Pool> workers) {
    workers_ = std::move(workers);
  }

 private:
  struct Chunk {
    char* memory = nullptr;
    Event done = nullptr;  // what was last put in a stream for it
  };
  /// What passes through one chunk: whole rows, or a part of one.
  struct Piece {
    int64_t row = 0, rows = 1;
    int64_t offset = 0, bytes = 0;  // of each row
  };
  static std::vector<Piece> pieces(const CopyExtent& extent);
  Status wait(const Chunk& chunk);
  /// Calls copy(row) for each, on several threads where that is quicker.
  template <class Copy>
  void copy_rows(const Piece& piece, Copy&& copy);
  Status put(Stream stream, const Chunk& chunk, char* device, int64_t step,
             const Piece& piece, bool to_device);

  const std::shared_ptr<Gpu> gpu_;
  const std::string name_;
  std::shared_ptr<Pool> workers_;
  std::mutex mutex_;
  std::vector<Chunk> chunks_;
  size_t few_in_ = 0;      // the chunk of few bytes
  int64_t few_until_ = 0;  // used of it so far; 0: another one is next
};

}  // namespace unisono::cuda
