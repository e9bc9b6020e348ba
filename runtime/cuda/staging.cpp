#include "runtime/cuda/staging.h"

#include <algorithm>
#include <cstring>

#include "runtime/cuda/rows.h"
#include "runtime/tuning/tuning.h"

namespace unisono::cuda {
namespace {

constexpr int64_t chunk_bytes = int64_t{4} << 20;
constexpr size_t chunk_count = 4;

}  // namespace

StagingRing::~StagingRing() {
  CurrentContext current(*gpu_);
  for (const Chunk& chunk : chunks_) {
    if (chunk.done) gpu_->driver().event_destroy(chunk.done);
    if (chunk.memory) gpu_->driver().mem_free_host(chunk.memory);
  }
}

Status StagingRing::open() {
  std::lock_guard lock(mutex_);
  const Driver& cuda = gpu_->driver();
  const std::string doing = "pinning host memory for " + name_;
  while (chunks_.size() < chunk_count) {
    Chunk chunk;
    void* memory = nullptr;
    Status done = gpu_->check(
        cuda.mem_host_alloc(&memory, chunk_bytes, host_alloc_portable), doing);
    if (!done) return done;
    done = gpu_->check(cuda.event_create(&chunk.done, event_disable_timing),
                       doing);
    if (!done) {
      cuda.mem_free_host(memory);
      return done;
    }
    chunk.memory = static_cast<char*>(memory);
    chunks_.push_back(chunk);
  }
  return Unit{};
}

std::vector<StagingRing::Piece> StagingRing::pieces(const CopyExtent& extent) {
  std::vector<Piece> out;
  if (extent.bytes >= chunk_bytes) {
    for (int64_t row = 0; row < extent.rows; ++row)
      for (int64_t at = 0; at < extent.bytes; at += chunk_bytes)
        out.push_back({.row = row,
                       .offset = at,
                       .bytes = std::min(chunk_bytes, extent.bytes - at)});
    return out;
  }
  const int64_t rows = chunk_bytes / extent.bytes;
  for (int64_t row = 0; row < extent.rows; row += rows)
    out.push_back({.row = row,
                   .rows = std::min(rows, extent.rows - row),
                   .bytes = extent.bytes});
  return out;
}

Status StagingRing::wait(const Chunk& chunk) {
  return gpu_->check(gpu_->driver().event_synchronize(chunk.done),
                     "waiting for " + name_);
}

/// Between a chunk, where rows lie close together, and the GPU.
Status StagingRing::put(Stream stream, const Chunk& chunk, char* device,
                        int64_t step, const Piece& piece, bool to_device) {
  char* rows = device + piece.row * step + piece.offset;
  const CopyExtent extent(piece.bytes, piece.rows,
                          to_device ? step : piece.bytes,
                          to_device ? piece.bytes : step);
  const Driver& cuda = gpu_->driver();
  Code code =
      to_device ? copy_rows_from_host(cuda, rows, chunk.memory, extent, stream)
                : copy_rows_to_host(cuda, chunk.memory, rows, extent, stream);
  // Also after a failure: some rows may have been put there.
  const Code marked = cuda.event_record(chunk.done, stream);
  if (code == success) code = marked;
  return gpu_->check(
      code, to_device ? "copying to " + name_ : "copying from " + name_);
}

/// A long row is cut.
template <class Copy>
void StagingRing::copy_rows(const Piece& piece, Copy&& copy) {
  if (!workers_ || piece.rows * piece.bytes < 2 * tuning().copy_grain) {
    for (int64_t row = 0; row < piece.rows; ++row) copy(row, 0, piece.bytes);
  } else if (piece.rows == 1) {
    workers_->parallel_for(
        piece.bytes, tuning().copy_grain, this,
        [&](int64_t begin, int64_t end) { copy(0, begin, end - begin); });
  } else {
    const int64_t grain =
        std::max<int64_t>(tuning().copy_grain / piece.bytes, 1);
    workers_->parallel_for(piece.rows, grain, this,
                           [&](int64_t begin, int64_t end) {
                             for (int64_t row = begin; row < end; ++row)
                               copy(row, 0, piece.bytes);
                           });
  }
}

bool StagingRing::takes(const CopyExtent& extent) {
  return extent.rows == 1 && extent.bytes < tuning().gpu_least_staged_copy;
}

// Its event tells of the last copy from a chunk, and so of all.
Status StagingRing::upload_few(Stream stream, char* to, const char* from,
                               const CopyExtent& extent) {
  std::lock_guard lock(mutex_);
  if (few_until_ == 0 || few_until_ + extent.bytes > chunk_bytes) {
    few_in_ = (few_in_ + 1) % chunks_.size();
    few_until_ = 0;
    TRY(wait(chunks_[few_in_]));
  }
  Chunk part = chunks_[few_in_];
  part.memory += few_until_;
  few_until_ += (extent.bytes + 63) / 64 * 64;
  std::memcpy(part.memory, from, static_cast<size_t>(extent.bytes));
  return put(stream, part, to, 0, {.bytes = extent.bytes}, true);
}

Status StagingRing::upload(Stream stream, char* to, const char* from,
                           const CopyExtent& extent) {
  std::lock_guard lock(mutex_);
  few_until_ = 0;
  size_t next = 0;
  for (const Piece& piece : pieces(extent)) {
    const Chunk& chunk = chunks_[next++ % chunks_.size()];
    TRY(wait(chunk));
    copy_rows(piece, [&](int64_t row, int64_t at, int64_t bytes) {
      std::memcpy(
          chunk.memory + row * piece.bytes + at,
          from + (piece.row + row) * extent.from_step + piece.offset + at,
          static_cast<size_t>(bytes));
    });
    TRY(put(stream, chunk, to, extent.to_step, piece, true));
  }
  return Unit{};
}

Status StagingRing::download(Stream stream, char* to, const char* from,
                             const CopyExtent& extent) {
  std::lock_guard lock(mutex_);
  few_until_ = 0;
  const std::vector<Piece> all = pieces(extent);
  // The GPU is ahead by as many pieces as there are chunks.
  for (size_t i = 0; i < all.size() + chunks_.size(); ++i) {
    const Chunk& chunk = chunks_[i % chunks_.size()];
    TRY(wait(chunk));
    if (i >= chunks_.size()) {
      const size_t number = i - chunks_.size();
      if (number >= all.size()) break;
      const Piece& piece = all[number];
      copy_rows(piece, [&](int64_t row, int64_t at, int64_t bytes) {
        std::memcpy(to + (piece.row + row) * extent.to_step + piece.offset + at,
                    chunk.memory + row * piece.bytes + at,
                    static_cast<size_t>(bytes));
      });
    }
    if (i >= all.size()) continue;
    TRY(put(stream, chunk, const_cast<char*>(from), extent.from_step, all[i],
            false));
  }
  return Unit{};
}

}  // namespace unisono::cuda
