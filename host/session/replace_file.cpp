#include "host/session/replace_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>

#include "runtime/files/unfinished_file.h"

namespace unisono::host {
namespace {

Error refused() { return {Error::Kind::io, std::strerror(errno)}; }

}  // namespace

Status replace_file(const std::string& path, std::string_view text) {
  std::error_code error;
  const std::string target = std::filesystem::canonical(path, error).string();
  if (error) return Error{Error::Kind::io, error.message()};
  remove_abandoned(std::filesystem::path(target).parent_path().string());
  struct stat old = {};
  if (stat(target.c_str(), &old) != 0) return refused();
  if (access(target.c_str(), W_OK) != 0) return refused();  // a rename would do
  auto file = UnfinishedFile::create(AT_FDCWD, target, 0600);
  if (!file) return file.error();
  const int handle = file->descriptor();
  // Of another owner's file only the text is ours to change, where we may.
  const bool owned =
      fchown(handle, old.st_uid, old.st_gid) == 0 || errno == EPERM;
  if (!owned || fchmod(handle, old.st_mode & 07777) != 0) return refused();
  const Status written =
      file->write({reinterpret_cast<const uint8_t*>(text.data()), text.size()});
  return written ? file->replace() : written;
}

}  // namespace unisono::host
