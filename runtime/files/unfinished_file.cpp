#include "runtime/files/unfinished_file.h"

#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstdint>
#include <ctime>
#include <string_view>
#include <system_error>
#include <utility>

#include "runtime/stop.h"

namespace unisono {
namespace {

// NAME.0123456789abcdef.unisono-part
constexpr std::string_view ending = ".unisono-part";
constexpr size_t digits = 16;
constexpr size_t longest_name = NAME_MAX;
/// In larger folders what is further behind is not looked for.
constexpr int most_entries = 100'000;
/// Where another machine's locks may be unknown here, a file that nobody has
/// touched for so long.
constexpr time_t remote_seconds = 24 * 3600;
/// One call of read or write moves at most this much: some milliseconds, after
/// which is asked whether to go on.
constexpr size_t largest_transfer = size_t{4} << 20;

Error system_error() {
  return {.kind = Error::Kind::io,
          .message = std::generic_category().message(errno)};
}

bool is_unfinished(std::string_view name) {
  if (!name.ends_with(ending)) return false;
  name.remove_suffix(ending.size());
  if (name.size() < digits + 1 || name[name.size() - digits - 1] != '.')
    return false;
  return std::ranges::all_of(name.substr(name.size() - digits), [](char c) {
    return ('0' <= c && c <= '9') || ('a' <= c && c <= 'f');
  });
}

/// A name beside `name` that nobody else has.
Result<std::string> name_beside(const std::string& name) {
  uint64_t random = 0;
  if (getrandom(&random, sizeof random, 0) != sizeof random)
    return system_error();
  const std::string own = fmt::format(".{:016x}{}", random, ending);
  const size_t base = name.rfind('/') + 1;  // 0 without a folder
  return name.substr(0,
                     std::min(name.size(), base + longest_name - own.size())) +
         own;
}

bool is_remote(int descriptor) {
  // NFS, SMB and its like, Ceph, AFS, Coda, FUSE, 9P, Lustre, GPFS, OCFS2,
  // GFS2: statfs(2).
  constexpr uint32_t kinds[] = {0x6969,     0x517b,     0xff534d42, 0xfe534d42,
                                0x00c36400, 0x5346414f, 0x73757245, 0x65735546,
                                0x01021997, 0x0bd00bd0, 0x47504653, 0x7461636f,
                                0x01161970};
  struct statfs system = {};
  return fstatfs(descriptor, &system) != 0 ||
         std::ranges::count(kinds, static_cast<uint32_t>(system.f_type)) > 0;
}

bool is_same_file(const struct stat& a, const struct stat& b) {
  return a.st_dev == b.st_dev && a.st_ino == b.st_ino;
}

void remove_if_abandoned(int folder, const char* name) {
  const int file =
      openat(folder, name, O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
  if (file < 0) return;
  struct stat status = {}, there = {};
  bool abandoned = fstat(file, &status) == 0 && S_ISREG(status.st_mode) &&
                   status.st_uid == geteuid() &&
                   flock(file, LOCK_EX | LOCK_NB) == 0;
  if (abandoned && is_remote(file))
    abandoned = status.st_mtim.tv_sec + remote_seconds < time(nullptr);
  // With the lock in hand nobody else gives it another name.
  if (abandoned && fstatat(folder, name, &there, AT_SYMLINK_NOFOLLOW) == 0 &&
      is_same_file(status, there))
    unlinkat(folder, name, 0);
  close(file);
}

}  // namespace

Result<UnfinishedFile> UnfinishedFile::create(int folder,
                                              const std::string& name,
                                              mode_t mode) {
  for (int attempt = 0; attempt < 100; ++attempt) {
    auto temporary = TRY(name_beside(name));
    const int descriptor =
        openat(folder, temporary.c_str(),
               O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, mode);
    if (descriptor < 0 && errno == EEXIST) continue;
    if (descriptor < 0) return system_error();
    UnfinishedFile file(folder, descriptor, name, std::move(temporary));
    // Somebody may have taken it for abandoned before it had its lock. Where
    // there are no locks nobody does.
    struct stat status = {};
    if (flock(descriptor, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK)
      continue;
    if (fstat(descriptor, &status) == 0 && status.st_nlink == 0) continue;
    return file;
  }
  return Error{.kind = Error::Kind::io,
               .message = "no name is free for the file while it is written"};
}

UnfinishedFile::UnfinishedFile(UnfinishedFile&& other) noexcept
    : folder_(other.folder_),
      descriptor_(std::exchange(other.descriptor_, -1)),
      name_(std::move(other.name_)),
      temporary_(std::exchange(other.temporary_, {})) {}

UnfinishedFile::~UnfinishedFile() {
  if (!temporary_.empty()) unlinkat(folder_, temporary_.c_str(), 0);
  if (descriptor_ >= 0) close(descriptor_);
}

/// Calls move(bytes), which is read or write, until all of them are moved; it
/// is called again after a signal.
template <class Byte, class Move>
Status move_all(std::span<Byte> bytes, Move&& move) {
  while (!bytes.empty()) {
    if (stop_requested()) return stopped_error();
    const ssize_t count =
        move(bytes.first(std::min(bytes.size(), largest_transfer)));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return system_error();
    if (count == 0)
      return Error{.kind = Error::Kind::invalid_file,
                   .message = "the file ends too early"};
    bytes = bytes.subspan(static_cast<size_t>(count));
  }
  return Unit{};
}

Status UnfinishedFile::write(std::span<const uint8_t> bytes) {
  return move_all(bytes, [&](std::span<const uint8_t> piece) {
    return ::write(descriptor_, piece.data(), piece.size());
  });
}

Status read_all(int descriptor, int64_t offset, std::span<uint8_t> to) {
  return move_all(to, [&](std::span<uint8_t> piece) {
    const ssize_t count = pread(descriptor, piece.data(), piece.size(), offset);
    offset += std::max<ssize_t>(count, 0);
    return count;
  });
}

Status write_all(int descriptor, int64_t offset,
                 std::span<const uint8_t> bytes) {
  return move_all(bytes, [&](std::span<const uint8_t> piece) {
    const ssize_t count =
        pwrite(descriptor, piece.data(), piece.size(), offset);
    offset += std::max<ssize_t>(count, 0);
    return count;
  });
}

Status UnfinishedFile::replace() {
  if (fsync(descriptor_) != 0 ||
      renameat(folder_, temporary_.c_str(), folder_, name_.c_str()) != 0)
    return system_error();
  temporary_.clear();
  return Unit{};
}

void remove_abandoned(int folder) {
  const int again = openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (again < 0) return;
  DIR* entries = fdopendir(again);
  if (!entries) {
    close(again);
    return;
  }
  int looked_at = 0;
  while (const dirent* entry = readdir(entries)) {
    if (++looked_at > most_entries) break;
    if (is_unfinished(entry->d_name))
      remove_if_abandoned(dirfd(entries), entry->d_name);
  }
  closedir(entries);
}

void remove_abandoned(const std::string& folder) {
  const int descriptor =
      open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (descriptor < 0) return;
  remove_abandoned(descriptor);
  close(descriptor);
}

}  // namespace unisono
