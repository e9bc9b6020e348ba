#include "runtime/files/file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <new>
#include <system_error>
#include <utility>

#include "runtime/stop.h"

namespace unisono {
namespace {

/// Why the last call failed; who reports it says what was to be done.
Error system_error() {
  return {.kind = Error::Kind::io,
          .message = std::generic_category().message(errno)};
}

}  // namespace

Result<InputFile> InputFile::open(const std::string& path) {
  if (path.find('\0') != std::string::npos)
    return Error{.kind = Error::Kind::io, .message = "the path holds a NUL"};
  // O_NONBLOCK: opening a pipe that nobody writes must not wait.
  int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (descriptor < 0) return system_error();
  struct stat status;
  if (fstat(descriptor, &status) != 0) {
    Error error = system_error();
    close(descriptor);
    return error;
  }
  if (!S_ISREG(status.st_mode)) {
    close(descriptor);
    return Error{.kind = Error::Kind::io, .message = "not a regular file"};
  }
  return InputFile(descriptor, status.st_size);
}

InputFile::InputFile(InputFile&& other) noexcept
    : descriptor_(std::exchange(other.descriptor_, -1)), size_(other.size_) {}

InputFile::~InputFile() {
  if (descriptor_ >= 0) close(descriptor_);
}

Status InputFile::read(int64_t offset, std::span<uint8_t> to) const {
  return read_all(descriptor_, offset, to);
}

Result<OutputFile> OutputFile::create(const std::string& path) {
  if (path.find('\0') != std::string::npos)
    return Error{.kind = Error::Kind::io, .message = "the path holds a NUL"};
  // A folder cannot be replaced; a device, /dev/null say, must not be.
  struct stat old = {};
  const bool is_there = stat(path.c_str(), &old) == 0;
  if (is_there && !S_ISREG(old.st_mode))
    return Error{.kind = Error::Kind::io,
                 .message = S_ISDIR(old.st_mode) ? "it is a folder"
                                                 : "not a regular file"};
  auto file = TRY(UnfinishedFile::create(AT_FDCWD, path, 0666));
  // A file that is replaced keeps its permissions.
  if (is_there) fchmod(file.descriptor(), old.st_mode & 0777);
  return OutputFile(std::move(file));
}

Status OutputFile::write(std::span<const uint8_t> bytes) {
  return file_.write(bytes);
}

Status OutputFile::resize(int64_t bytes) {
  if (ftruncate(file_.descriptor(), bytes) != 0) return system_error();
  return Unit{};
}

Status OutputFile::write(int64_t offset, std::span<const uint8_t> bytes) {
  return write_all(file_.descriptor(), offset, bytes);
}

Status OutputFile::commit() {
  if (stop_requested()) return stopped_error();
  return file_.replace();
}

Status write_text(const std::string& path, std::string_view text) {
  auto file = TRY(OutputFile::create(path));
  const std::span bytes(reinterpret_cast<const uint8_t*>(text.data()),
                        text.size());
  TRY(file.write(bytes));
  return file.commit();
}

Result<std::vector<uint8_t>> allocate_bytes(int64_t bytes, int64_t most) {
  Error error{.kind = Error::Kind::out_of_memory,
              .message = fmt::format("out of memory: {} bytes", bytes)};
  if (bytes > most) return error;
  try {
    std::vector<uint8_t> out;
    resize_in_pieces(out, bytes);
    return out;
  } catch (const std::bad_alloc&) {
    return error;
  } catch (const Stopped&) {
    return stopped_error();
  }
}

}  // namespace unisono
