#pragma once
// A cache on disk of what is expensive to make, such as machine code, for later
// processes. Nobody but the user can put anything there: the folder is the
// user's own and closed to others. Each entry holds its key and a checksum; an
// entry that is damaged counts as missing.
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/result.h"

namespace unisono {

/// Thread-safe; several processes may use one folder at once.
class DiskCache {
 public:
  /// The cache in `folder`, a full path, which is made if it is not there. When
  /// its files hold more than `most_bytes`, the least recently used are
  /// removed. Fails (io) if the folder is a link, belongs to somebody else, or
  /// lets others in.
  static Result<std::shared_ptr<DiskCache>> open(const std::string& folder,
                                                 int64_t most_bytes);
  ~DiskCache();
  DiskCache(const DiskCache&) = delete;
  DiskCache& operator=(const DiskCache&) = delete;
  const std::string& folder() const { return folder_; }

  /// The bytes that were kept for `key`, or nothing. The key says all that they
  /// depend on.
  std::optional<std::vector<uint8_t>> find(std::string_view key);
  /// Keeps `bytes` for `key` if that is possible; a failure is not reported.
  /// Neither no bytes nor more than 256 MiB are kept.
  void keep(std::string_view key, std::span<const uint8_t> bytes);
  void remove(std::string_view key);

 private:
  DiskCache(std::string folder, int descriptor, int64_t most_bytes)
      : folder_(std::move(folder)),
        descriptor_(descriptor),
        most_bytes_(most_bytes) {}
  bool write(const std::string& name,
             std::initializer_list<std::span<const uint8_t>> parts);
  std::optional<std::vector<uint8_t>> read(const std::string& name,
                                           int64_t most) const;
  void prune();

  const std::string folder_;
  const int descriptor_;
  const int64_t most_bytes_;
  std::mutex mutex_;
  int64_t bytes_ = -1;  // of the files, about; -1: not known
};

}  // namespace unisono
