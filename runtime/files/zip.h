#pragma once
// The part of the zip format that archives of arrays use: no encryption, no
// spanning, methods `stored` and `deflate`, zip64 sizes. APPNOTE.TXT 6.3.
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "runtime/files/file.h"
#include "runtime/result.h"

namespace unisono {

struct ZipEntry {
  std::string name;
  bool deflated = false;
  uint32_t crc = 0;
  int64_t packed = 0;  // bytes in the file
  int64_t size = 0;    // bytes unpacked
  int64_t data_offset = 0;
};

/// The entries in the order of the central directory. All lie in the file and
/// apart from each other.
Result<std::vector<ZipEntry>> read_zip_directory(const InputFile& file);

/// Unpacks the first `to.size()` bytes of an entry, at most entry.size. If they
/// are all, the checksum must be right and nothing may follow, else
/// invalid_file.
Status unpack(const InputFile& file, const ZipEntry& entry,
              std::span<uint8_t> to);

// Archives whose entries are stored, and written by several. `size` of each
// entry is known, and in the end `crc`.

/// Where each entry's bytes begin, and the size of the whole; an error (io) if
/// that is 4 GiB or more.
struct ZipPlaces {
  std::vector<int64_t> data;
  int64_t size = 0;
};
Result<ZipPlaces> place_stored(std::span<const ZipEntry> entries);
/// What stands before each entry, and behind all, with its offset.
std::vector<std::pair<int64_t, std::vector<uint8_t>>> stored_heads(
    std::span<const ZipEntry> entries);
/// The checksum of `head` and then `bytes` bytes that have `checksum`.
uint32_t crc_of_both(std::span<const uint8_t> head, uint32_t checksum,
                     int64_t bytes);
/// The one that `bytes` bytes behind `head` have if `both` is that of both.
uint32_t crc_behind(std::span<const uint8_t> head, uint32_t both,
                    int64_t bytes);
/// Polls.
uint32_t crc_of_bytes(std::span<const uint8_t> bytes);

/// Writes entries one after the other, then the directory.
class ZipWriter {
 public:
  explicit ZipWriter(OutputFile file) : file_(std::move(file)) {}
  /// Adds an entry whose bytes are `head` and then `body`; it is stored if
  /// `deflate` would not make it smaller. An error (io) if the archive would
  /// have 4 GiB or more.
  Status add(const std::string& name, std::span<const uint8_t> head,
             std::span<const uint8_t> body, bool deflate);
  /// Writes the directory, and puts the file in its place.
  Status commit();

 private:
  /// Throws Stopped where this thread is stopped.
  Status add_entry(const std::string& name, std::span<const uint8_t> head,
                   std::span<const uint8_t> body, bool deflate);

  OutputFile file_;
  int64_t offset_ = 0;
  int entries_ = 0;
  std::vector<uint8_t> directory_;
};

}  // namespace unisono
