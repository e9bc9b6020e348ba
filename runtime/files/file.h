#pragma once
// Files, read and replaced with care: only regular files are opened, and a
// file that is written is either wholly there or not at all.
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
/// Error messages do not repeat the path.
class InputFile {
 public:
  static Result<InputFile> open(const std::string& path);
  InputFile(InputFile&& other) noexcept;
  ~InputFile();
  int64_t size() const { return size_; }
  /// All of `to`, from `offset` on; an error if the file ends before.
  Status read(int64_t offset, std::span<uint8_t> to) const;

 private:
  InputFile(int descriptor, int64_t size)
      : descriptor_(descriptor), size_(size) {}
  int descriptor_;
  int64_t size_;
};

/// Writes beside `path`, and takes its place in one step at commit(); without
/// that it leaves nothing behind.
class OutputFile {
 public:
  static Result<OutputFile> create(const std::string& path);
  Status write(std::span<const uint8_t> bytes);
  /// On the disk, then in place.
  Status commit();

 private:
  explicit OutputFile(UnfinishedFile file) : file_(std::move(file)) {}
  UnfinishedFile file_;
};

/// The whole text as such a file.
Status write_text(const std::string& path, std::string_view text);

/// `bytes` bytes, which are 0, or out_of_memory if there is no room or they are
/// more than `most`.
Result<std::vector<uint8_t>> allocate_bytes(int64_t bytes, int64_t most);

}  // namespace unisono
