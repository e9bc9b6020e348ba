#include "host/read_file.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>

namespace unisono::host {
namespace {

constexpr size_t max_bytes = size_t{64} << 20;

Error io_error(std::string_view what, const std::string& path) {
  return {Error::Kind::io,
          fmt::format("cannot {} `{}`: {}", what, path, std::strerror(errno))};
}

struct CloseFile {
  void operator()(std::FILE* file) const {
    if (file != stdin) std::fclose(file);
  }
};

}  // namespace

Result<std::string> read_text(const std::string& path) {
  std::unique_ptr<std::FILE, CloseFile> file(
      path == "-" ? stdin : std::fopen(path.c_str(), "rb"));
  if (!file) return io_error("read", path);
  std::string text;
  char piece[1 << 16];
  while (size_t count = std::fread(piece, 1, sizeof piece, file.get())) {
    text.append(piece, count);
    if (text.size() > max_bytes) {
      return Error{Error::Kind::io,
                   fmt::format("`{}` is larger than 64 MiB", path)};
    }
  }
  if (std::ferror(file.get())) return io_error("read", path);
  return text;
}

Status replace_file(const std::string& path, std::string_view text) {
  struct stat old = {};
  const mode_t mode = stat(path.c_str(), &old) == 0 ? old.st_mode & 0777 : 0644;
  std::string temporary = path + ".XXXXXX";
  const int handle = mkstemp(temporary.data());
  if (handle < 0) return io_error("write", path);
  std::unique_ptr<std::FILE, CloseFile> file(fdopen(handle, "wb"));
  const bool ok =
      std::fwrite(text.data(), 1, text.size(), file.get()) == text.size() &&
      std::fflush(file.get()) == 0 && fsync(handle) == 0 &&
      fchmod(handle, mode) == 0 &&
      std::rename(temporary.c_str(), path.c_str()) == 0;
  if (ok) return Unit{};
  Error error = io_error("write", path);
  std::remove(temporary.c_str());
  return error;
}

}  // namespace unisono::host
