#include "host/replace_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>

namespace unisono::host {
namespace {

Error refused() { return {Error::Kind::io, std::strerror(errno)}; }

/// Writes all of it, to the disk.
bool write_all(int handle, std::string_view text) {
  while (!text.empty()) {
    const ssize_t count = write(handle, text.data(), text.size());
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return false;
    text.remove_prefix(static_cast<size_t>(count));
  }
  return fsync(handle) == 0;
}

}  // namespace

Status replace_file(const std::string& path, std::string_view text) {
  std::error_code error;
  const std::string target = std::filesystem::canonical(path, error).string();
  if (error) return Error{Error::Kind::io, error.message()};
  struct stat old = {};
  if (stat(target.c_str(), &old) != 0) return refused();
  if (access(target.c_str(), W_OK) != 0) return refused();  // a rename would do
  std::string temporary = target + ".XXXXXX";
  const int handle = mkostemp(temporary.data(), O_CLOEXEC);
  if (handle < 0) return refused();
  // Of another owner's file only the text is ours to change, where we may.
  const bool owned =
      fchown(handle, old.st_uid, old.st_gid) == 0 || errno == EPERM;
  const bool written = owned && fchmod(handle, old.st_mode & 07777) == 0 &&
                       write_all(handle, text);
  const Error problem = refused();
  const bool closed = close(handle) == 0;
  if (written && closed && std::rename(temporary.c_str(), target.c_str()) == 0)
    return Unit{};
  const Error last = written ? refused() : problem;
  unlink(temporary.c_str());
  return last;
}

}  // namespace unisono::host
