#pragma once
// What is dear to make, such as machine code, kept on disk for the next
// process. Nobody but the user can put anything there: the folder is the
// user's own and closed to others. Each entry holds its key and a checksum:
// what is not wholly right is as if it were not there.
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
  /// Of `folder`, which is made if it is not there; its files hold at most
  /// `most_bytes`, of which the least recently used go. Fails if the folder is
  /// a link, belongs to somebody else, or lets others in.
  static Result<std::shared_ptr<DiskCache>> open(const std::string& folder,
                                                 int64_t most_bytes);
  ~DiskCache();
  DiskCache(const DiskCache&) = delete;
  DiskCache& operator=(const DiskCache&) = delete;
  const std::string& folder() const { return folder_; }

  /// `key` is all that the bytes depend on.
  std::optional<std::vector<uint8_t>> find(std::string_view key);
  /// Keeps the bytes if that is possible: on the disk, then in place.
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
