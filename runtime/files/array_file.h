#pragma once
// Files of arrays whose elements are read, or written, in parts: by the
// processes that have them, each its own.
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "runtime/files/file.h"
#include "runtime/files/npz.h"

namespace unisono {

/// A file of arrays that is open, and what is in it. Each header says where in
/// the file the elements begin.
struct OpenArrays {
  InputFile file;
  std::vector<NpzEntry> entries;
  /// Whether the elements lie there as they are, not packed. By entry.
  std::vector<bool> stored;
  /// The checksum (CRC-32) of all elements of an array, where the file has one.
  /// By entry; who reads parts does not know whether it is right.
  std::vector<std::optional<uint32_t>> checksums;
};
// As read_npy_header and its like.
Result<OpenArrays> open_npy(const std::string& path);
Result<OpenArrays> open_npz(const std::string& path);
Result<OpenArrays> open_safetensors(const std::string& path);

/// Whether elements in the file have the order that they have in memory, so
/// that parts can be read.
bool is_direct(const NpyHeader& header);
/// Elements as stored become elements of this machine, where they are.
void make_native(const NpyHeader& header, std::span<uint8_t> bytes);

struct ArrayType {
  std::string name;  // "" in an .npy
  DType dtype = DType::F32;
  std::vector<int64_t> shape;
};

/// Where everything stands in a file that will hold some arrays, dense and
/// row-major. It is byte for byte what write_npy and its like would write.
struct FileLayout {
  int64_t size = 0;
  std::vector<int64_t> offsets;  // of each array's elements
  std::vector<int64_t> bytes;
  /// The bytes that are no elements, each with its offset. `checksums`: of each
  /// array's elements (CRC-32), if `has_checksums`.
  std::function<std::vector<std::pair<int64_t, std::vector<uint8_t>>>(
      std::span<const uint32_t> checksums)>
      heads;
  bool has_checksums = false;
};
FileLayout npy_layout(const ArrayType& type);
/// An error (io) from 4 GiB on.
Result<FileLayout> npz_layout(std::span<const ArrayType> types);
FileLayout safetensors_layout(std::span<const ArrayType> types);

/// The checksum (CRC-32) of bytes of which several know parts: what all parts
/// give is combined by xor, with `crc_of_zeros` of all bytes.
class PartialChecksum {
 public:
  /// Of a part of `size` bytes in all.
  explicit PartialChecksum(int64_t size) : size_(size) {}
  /// Parts are added from the first byte to the last.
  void add(int64_t offset, std::span<const uint8_t> bytes);
  uint32_t get();

 private:
  void advance(int64_t bytes);
  int64_t size_, end_ = 0;
  uint32_t state_ = 0;
  /// Rows of an array are equally long, and equally far apart.
  int64_t distance_ = 0, length_ = -1;
  uint32_t operator_ = 0, zeros_ = 0;
};
uint32_t crc_of_zeros(int64_t bytes);

}  // namespace unisono
