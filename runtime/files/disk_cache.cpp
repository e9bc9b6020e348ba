#include "runtime/files/disk_cache.h"

#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include <algorithm>
#include <cerrno>
#include <system_error>

#include "runtime/files/unfinished_file.h"

namespace unisono {
namespace {

// An entry: a mark, a Head, the key, and the bytes to the file's end.
constexpr std::string_view mark = "unisono cache 2\n";
struct Head {
  uint64_t key_bytes = 0;
  uint32_t key_check = 0, check = 0;  // CRC-32 of the key, and of the bytes
  bool operator==(const Head&) const = default;
};
constexpr int64_t largest_entry = int64_t{1} << 28;
constexpr std::string_view entry_ending = ".entry";

Error cannot(const std::string& what, std::string why) {
  return {.kind = Error::Kind::io,
          .message = fmt::format("{}: {}", what, std::move(why))};
}
Error system_error(const std::string& what) {
  return cannot(what, std::generic_category().message(errno));
}

/// A descriptor that is closed.
class File {
 public:
  explicit File(int descriptor) : descriptor_(descriptor) {}
  ~File() {
    if (descriptor_ >= 0) close(descriptor_);
  }
  File(const File&) = delete;
  File& operator=(const File&) = delete;
  int get() const { return descriptor_; }

 private:
  const int descriptor_;
};

uint32_t checksum(std::span<const uint8_t> bytes) {
  return static_cast<uint32_t>(crc32_z(0, bytes.data(), bytes.size()));
}

/// Keys that share a name by chance take each other's place: an entry holds its
/// key. (FNV-1a: Fowler, Noll and Vo.)
std::string entry_name(std::string_view key) {
  uint64_t hash = 0xcbf29ce484222325;
  for (const char c : key)
    hash = (hash ^ static_cast<uint8_t>(c)) * 0x100000001b3;
  return fmt::format("{:016x}{}", hash, entry_ending);
}

/// Makes the folder, and those it is in.
bool make_folders(const std::string& path) {
  for (size_t slash = path.find('/', 1); slash != std::string::npos;
       slash = path.find('/', slash + 1))
    if (mkdir(path.substr(0, slash).c_str(), 0700) != 0 && errno != EEXIST)
      return false;
  return mkdir(path.c_str(), 0700) == 0 || errno == EEXIST;
}

std::span<const uint8_t> bytes_of(std::string_view text) {
  return {reinterpret_cast<const uint8_t*>(text.data()), text.size()};
}
std::span<const uint8_t> bytes_of(const Head& head) {
  return {reinterpret_cast<const uint8_t*>(&head), sizeof head};
}

Head head_of(std::string_view key, std::span<const uint8_t> bytes) {
  return {key.size(), checksum(bytes_of(key)), checksum(bytes)};
}

}  // namespace

Result<std::shared_ptr<DiskCache>> DiskCache::open(const std::string& folder,
                                                   int64_t most_bytes) {
  if (folder.empty() || folder[0] != '/' ||
      folder.find('\0') != std::string::npos)
    return cannot(folder, "not a full path");
  std::string path = folder;
  while (path.size() > 1 && path.back() == '/') path.pop_back();
  if (!make_folders(path)) return system_error(path);
  const int descriptor =
      ::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  if (descriptor < 0) return system_error(path);
  std::shared_ptr<DiskCache> cache(new DiskCache(path, descriptor, most_bytes));
  struct stat status;
  if (fstat(descriptor, &status) != 0) return system_error(path);
  if (status.st_uid != geteuid()) return cannot(path, "it is somebody else's");
  if ((status.st_mode & 077) != 0)
    return cannot(path, fmt::format("others may enter it (its mode is {:o}; "
                                    "700 is needed)",
                                    status.st_mode & 07777));
  return cache;
}

DiskCache::~DiskCache() { close(descriptor_); }

/// All of a file of ours that nobody else may read or write.
std::optional<std::vector<uint8_t>> DiskCache::read(const std::string& name,
                                                    int64_t most) const {
  const File file(openat(descriptor_, name.c_str(),
                         O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
  struct stat status;
  if (file.get() < 0 || fstat(file.get(), &status) != 0 ||
      !S_ISREG(status.st_mode) || status.st_uid != geteuid() ||
      (status.st_mode & 077) != 0 || status.st_size > most)
    return std::nullopt;
  std::vector<uint8_t> bytes(static_cast<size_t>(status.st_size));
  if (!read_all(file.get(), 0, bytes)) return std::nullopt;
  return bytes;
}

/// The whole file or none, whatever happens meanwhile.
bool DiskCache::write(const std::string& name,
                      std::initializer_list<std::span<const uint8_t>> parts) {
  auto unfinished = UnfinishedFile::create(descriptor_, name, 0600);
  if (!unfinished) return false;
  const bool written = std::all_of(parts.begin(), parts.end(), [&](auto part) {
    return static_cast<bool>(unfinished->write(part));
  });
  return written && static_cast<bool>(unfinished->replace());
}

std::optional<std::vector<uint8_t>> DiskCache::find(std::string_view key) {
  const std::string name = entry_name(key);
  auto file = read(name, largest_entry);
  if (!file) return std::nullopt;
  const size_t before = mark.size() + sizeof(Head) + key.size();
  const std::span<const uint8_t> all = *file;
  const auto has = [&](size_t at, std::span<const uint8_t> what) {
    return std::equal(what.begin(), what.end(), all.begin() + at);
  };
  bool good = all.size() > before;
  if (good) {
    const Head head = head_of(key, all.subspan(before));
    good = has(0, bytes_of(mark)) && has(mark.size(), bytes_of(head)) &&
           has(mark.size() + sizeof head, bytes_of(key));
  }
  if (!good) {
    unlinkat(descriptor_, name.c_str(), 0);
    return std::nullopt;
  }
  utimensat(descriptor_, name.c_str(), nullptr, AT_SYMLINK_NOFOLLOW);  // used
  file->erase(file->begin(), file->begin() + before);
  return file;
}

void DiskCache::keep(std::string_view key, std::span<const uint8_t> bytes) {
  const auto size = static_cast<int64_t>(mark.size() + sizeof(Head) +
                                         key.size() + bytes.size());
  if (bytes.empty() || size > std::min(largest_entry, most_bytes_)) return;
  const Head head = head_of(key, bytes);
  const bool written = write(
      entry_name(key), {bytes_of(mark), bytes_of(head), bytes_of(key), bytes});
  std::lock_guard lock(mutex_);
  if (written && bytes_ >= 0) bytes_ += size;
  if (bytes_ < 0 || bytes_ > most_bytes_) prune();
}

void DiskCache::remove(std::string_view key) {
  unlinkat(descriptor_, entry_name(key).c_str(), 0);
}

/// With the lock held: what was not used for the longest goes, if all is too
/// much until only three quarters are left; and what was never finished.
void DiskCache::prune() {
  struct Entry {
    std::string name;
    int64_t bytes;
    timespec used;
  };
  remove_abandoned(descriptor_);
  std::vector<Entry> entries;
  const int again =
      openat(descriptor_, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (again < 0) return;
  DIR* folder = fdopendir(again);
  if (!folder) {
    close(again);
    return;
  }
  bytes_ = 0;
  while (const dirent* item = readdir(folder)) {
    const std::string_view name = item->d_name;
    struct stat status;
    if (fstatat(descriptor_, item->d_name, &status, AT_SYMLINK_NOFOLLOW) != 0 ||
        !S_ISREG(status.st_mode))
      continue;
    if (!name.ends_with(entry_ending)) continue;
    entries.push_back({item->d_name, status.st_size, status.st_mtim});
    bytes_ += status.st_size;
  }
  closedir(folder);
  if (bytes_ <= most_bytes_) return;
  std::sort(entries.begin(), entries.end(), [](const Entry& a, const Entry& b) {
    return std::pair(a.used.tv_sec, a.used.tv_nsec) <
           std::pair(b.used.tv_sec, b.used.tv_nsec);
  });
  for (const Entry& entry : entries) {
    if (bytes_ <= most_bytes_ / 4 * 3) break;
    if (unlinkat(descriptor_, entry.name.c_str(), 0) == 0)
      bytes_ -= entry.bytes;
  }
}

}  // namespace unisono
