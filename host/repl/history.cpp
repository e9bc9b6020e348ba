#include "host/repl/history.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <optional>
#include <system_error>
#include <unordered_set>

#include "lang/source/utf8.h"
#include "runtime/files/unfinished_file.h"

namespace unisono::host {
namespace {

constexpr size_t most_input_bytes = 16 * 1024;
constexpr size_t most_inputs = 5000;
/// A file that is larger is made smaller by the next session.
constexpr size_t most_file_bytes = size_t{1} << 20;
/// Of one that somebody else made larger the end is read.
constexpr size_t most_read_bytes = 8 * most_file_bytes;

/// Closed, and so unlocked, at its end.
class LockedFile {
 public:
  LockedFile(const std::string& path, int flags) {
    // Who made the file smaller has put another in its place.
    for (int attempt = 0; attempt < 10; ++attempt) {
      handle_ =
          open(path.c_str(), flags | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0600);
      if (handle_ < 0) return;
      struct stat here = {}, there = {};
      const bool regular = fstat(handle_, &here) == 0 && S_ISREG(here.st_mode);
      if (regular && flock(handle_, LOCK_EX) == 0 &&
          stat(path.c_str(), &there) == 0 && here.st_ino == there.st_ino) {
        size_ = static_cast<size_t>(there.st_size);
        return;
      }
      close(handle_);
      handle_ = -1;
      if (!regular) {
        errno = EINVAL;
        return;
      }
    }
  }
  ~LockedFile() {
    if (handle_ >= 0) close(handle_);
  }
  LockedFile(const LockedFile&) = delete;
  LockedFile& operator=(const LockedFile&) = delete;
  bool is_open() const { return handle_ >= 0; }
  int handle() const { return handle_; }
  size_t size() const { return size_; }

 private:
  int handle_ = -1;
  size_t size_ = 0;
};

std::string escaped(std::string_view input) {
  std::string out;
  for (const char c : input)
    if (c == '\n')
      out += "\\n";
    else if (c == '\\')
      out += "\\\\";
    else
      out += c;
  return out + "\n";
}

/// The input that a line holds; nothing if it was not written by us.
std::optional<std::string> unescaped(std::string_view line) {
  if (line.empty() || line.size() > 2 * most_input_bytes) return std::nullopt;
  std::string out;
  for (size_t i = 0; i < line.size(); ++i) {
    const lang::CodePoint point = lang::decode_utf8(line, i);
    if (point.length == 0 || point.value == 0 || point.value == '\r')
      return std::nullopt;
    if (point.length > 1 || line[i] != '\\') {
      out += line.substr(i, point.length);
      i += point.length - 1;
      continue;
    }
    ++i;
    if (i == line.size() || (line[i] != 'n' && line[i] != '\\'))
      return std::nullopt;
    out += line[i] == 'n' ? '\n' : '\\';
  }
  return out;
}

std::vector<std::string> inputs_in(std::string_view text) {
  std::vector<std::string> out;
  for (size_t at = 0; at < text.size();) {
    const size_t end = text.find('\n', at);
    if (end == text.npos) break;  // not written to its end
    if (auto input = unescaped(text.substr(at, end - at)))
      out.push_back(std::move(*input));
    at = end + 1;
  }
  // Each where it was typed last.
  std::unordered_set<std::string_view> seen;
  std::vector<std::string> kept;
  for (size_t i = out.size(); i-- > 0 && kept.size() < most_inputs;)
    if (seen.insert(out[i]).second) kept.push_back(out[i]);
  return {kept.rbegin(), kept.rend()};
}

std::string environment(const char* name) {
  const char* value = std::getenv(name);
  return value ? value : "";
}

}  // namespace

std::string history_path() {
  if (const char* given = std::getenv("UNISONO_HISTORY")) {
    const std::string path = given;
    return path == "off" ? "" : path;
  }
  std::string folder = environment("XDG_STATE_HOME");
  if (!folder.starts_with('/')) {
    folder = environment("HOME");
    if (!folder.starts_with('/')) return "";
    folder += "/.local/state";
  }
  return folder + "/unisono/history";
}

std::vector<std::string> HistoryFile::load() const {
  if (path_.empty()) return {};
  const LockedFile file(path_, O_RDONLY);
  if (!file.is_open()) return {};
  const size_t begin =
      file.size() > most_read_bytes ? file.size() - most_read_bytes : 0;
  std::vector<uint8_t> bytes(file.size() - begin);
  if (!read_all(file.handle(), static_cast<int64_t>(begin), bytes)) return {};
  std::vector<std::string> inputs =
      inputs_in({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
  if (file.size() <= most_file_bytes) return inputs;
  std::string text;
  size_t first = inputs.size();
  for (size_t room = most_file_bytes / 2;
       first > 0 && inputs[first - 1].size() + 1 < room; --first)
    room -= inputs[first - 1].size() + 1;
  for (size_t i = first; i < inputs.size(); ++i) text += escaped(inputs[i]);
  auto smaller = UnfinishedFile::create(AT_FDCWD, path_, 0600);
  if (smaller && smaller->write({reinterpret_cast<const uint8_t*>(text.data()),
                                 text.size()}))
    (void)smaller->replace();
  return inputs;
}

Status HistoryFile::add(std::string_view input) const {
  if (path_.empty() || input.empty() || input[0] == ' ' ||
      input.size() > most_input_bytes || input.find('\0') != input.npos)
    return Unit{};
  std::error_code ignored;
  std::filesystem::create_directories(
      std::filesystem::path(path_).parent_path(), ignored);
  const LockedFile file(path_, O_RDWR | O_APPEND | O_CREAT);
  const auto failed = [] {
    return Error{Error::Kind::io, std::strerror(errno)};
  };
  if (!file.is_open()) return failed();
  std::string line = escaped(input);
  // What somebody else left without its end is no part of it.
  char last = '\n';
  if (file.size() > 0 &&
      pread(file.handle(), &last, 1, static_cast<off_t>(file.size()) - 1) ==
          1 &&
      last != '\n')
    line.insert(0, 1, '\n');
  const ssize_t written = write(file.handle(), line.data(), line.size());
  return written == static_cast<ssize_t>(line.size()) ? Status(Unit{})
                                                      : failed();
}

}  // namespace unisono::host
