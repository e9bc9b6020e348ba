#pragma once
// Files that have a temporary name until they are complete. The process that
// writes one holds a lock on it, which the system releases when the process
// ends, however it ends. So a file that has our ending and no lock was left
// behind by a process that is gone, and may be removed.
#include <sys/types.h>

#include <cstdint>
#include <span>
#include <string>
#include <utility>

#include "runtime/result.h"

namespace unisono {

/// A file that the destructor removes unless replace() gave it its name. Not
/// thread-safe. Errors: io, cancelled.
class UnfinishedFile {
 public:
  /// A file that shall be `name` in `folder`, a descriptor (or AT_FDCWD) that
  /// outlives this object. `name` may be a path from there.
  static Result<UnfinishedFile> create(int folder, const std::string& name,
                                       mode_t mode);
  UnfinishedFile(UnfinishedFile&& other) noexcept;
  ~UnfinishedFile();
  /// For fchmod and the like; owned by this object.
  int descriptor() const { return descriptor_; }
  /// Appends all bytes, unless this thread is stopped (runtime/stop.h).
  Status write(std::span<const uint8_t> bytes);
  /// Its name until replace(), from the folder; other processes may open it.
  const std::string& temporary() const { return temporary_; }
  /// Brings the file to the disk, and then in place of what has its name.
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

/// Fills `to` from `offset` of a file on, unless this thread is stopped;
/// `invalid_file` if the file ends before.
Status read_all(int descriptor, int64_t offset, std::span<uint8_t> to);

/// Writes all bytes from `offset` of a file on, unless this thread is stopped.
Status write_all(int descriptor, int64_t offset,
                 std::span<const uint8_t> bytes);

/// Removes the unfinished files in a folder that processes of this user have
/// left behind and nobody writes any more. Files that cannot be examined, or
/// may still be written, stay.
void remove_abandoned(int folder);
void remove_abandoned(const std::string& folder);

}  // namespace unisono
