#pragma once
// Files, read and replaced with care: only regular files are opened, and a
// file that is written is either wholly there or not at all. Errors: io,
// invalid_file, out_of_memory, and cancelled where it is stopped
// (runtime/stop.h); messages do not repeat the path.
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/files/unfinished_file.h"
#include "runtime/result.h"

namespace unisono {

/// A regular file, open for reading; devices, pipes and folders are refused.
class InputFile {
 public:
  static Result<InputFile> open(const std::string& path);
  InputFile(InputFile&& other) noexcept;
  ~InputFile();
  /// Bytes, when the file was opened.
  int64_t size() const { return size_; }
  /// Fills all of `to` from `offset` on; invalid_file if the file ends before.
  Status read(int64_t offset, std::span<uint8_t> to) const;

 private:
  InputFile(int descriptor, int64_t size)
      : descriptor_(descriptor), size_(size) {}
  int descriptor_;
  int64_t size_;
};

/// Writes a new file beside `path`, which takes its place in one step at
/// commit(); without commit() nothing is left behind.
class OutputFile {
 public:
  /// A file that is replaced keeps its permissions; what is there and no
  /// regular file is refused.
  static Result<OutputFile> create(const std::string& path);
  Status write(std::span<const uint8_t> bytes);
  /// For those who write it in parts: it has `bytes` bytes from now on.
  Status resize(int64_t bytes);
  Status write(int64_t offset, std::span<const uint8_t> bytes);
  const std::string& temporary() const { return file_.temporary(); }
  /// Returns when the file is on the disk and in its place.
  Status commit();

 private:
  explicit OutputFile(UnfinishedFile file) : file_(std::move(file)) {}
  UnfinishedFile file_;
};

/// Replaces `path` by a file with this text, as OutputFile does.
Status write_text(const std::string& path, std::string_view text);

/// As many zeros as `bytes`; out_of_memory if there is no room for them or they
/// are more than `most`.
Result<std::vector<uint8_t>> allocate_bytes(int64_t bytes, int64_t most);

}  // namespace unisono
