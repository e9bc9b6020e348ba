#pragma once
// Files under a name of their own until they are complete. Who writes one holds
// a lock on it, which the system takes away when the process ends, however it
// ends. So a file that has our ending and no lock was left behind by a process
// that is gone, and may be removed.
#include <sys/types.h>

#include <cstdint>
#include <span>
#include <string>
#include <utility>

#include "runtime/result.h"

namespace unisono {

/// Is removed unless it has been given its name. Not thread-safe.
class UnfinishedFile {
 public:
  /// For what will be `name` in a folder, which is a descriptor (or AT_FDCWD)
  /// that outlives this. `name` may be a path from there.
  static Result<UnfinishedFile> create(int folder, const std::string& name,
                                       mode_t mode);
  UnfinishedFile(UnfinishedFile&& other) noexcept;
  ~UnfinishedFile();
  /// For its owner and mode.
  int descriptor() const { return descriptor_; }
  /// Appends all bytes, unless it is stopped (runtime/stop.h).
  Status write(std::span<const uint8_t> bytes);
  /// On the disk, then in place of what has the name.
  Status replace();

 private:
  UnfinishedFile(int folder, int descriptor, std::string name,
                 std::string temporary)
      : folder_(folder),
        descriptor_(descriptor),
        name_(std::move(name)),
        temporary_(std::move(temporary)) {}
  int folder_, descriptor_;
  std::string name_, temporary_;  // the latter is empty once it is gone
};

/// Fills `to` from `offset` of a file on, unless it is stopped; `invalid_file`
/// if the file ends before.
Status read_all(int descriptor, int64_t offset, std::span<uint8_t> to);

/// Removes the unfinished files in a folder that this user's processes have
/// left behind and that nobody writes any more. What cannot be looked at, or
/// may still be written, stays.
void remove_abandoned(int folder);
void remove_abandoned(const std::string& folder);

}  // namespace unisono
