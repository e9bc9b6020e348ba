#include "lang/syntax/read_source.h"

#include <cerrno>
#include <cstring>
#include <memory>

#include "lang/syntax/lexer.h"

namespace unisono::lang {
namespace {

Error refused() {
  if (errno == ENOENT) return {Error::Kind::io, "there is no such file"};
  if (errno == EISDIR) return {Error::Kind::io, "it is a folder"};
  return {Error::Kind::io, std::strerror(errno)};
}

struct CloseFile {
  void operator()(std::FILE* file) const { std::fclose(file); }
};

}  // namespace

Result<std::string> read_source(const std::string& path) {
  const std::unique_ptr<std::FILE, CloseFile> file(
      std::fopen(path.c_str(), "rb"));
  return file ? read_source(file.get()) : refused();
}

Result<std::string> read_source(std::FILE* file) {
  std::string text;
  char piece[1 << 16];
  while (text.size() <= max_file_bytes) {
    const size_t count = std::fread(piece, 1, sizeof piece, file);
    text.append(piece, count);
    if (count < sizeof piece) break;
  }
  if (std::ferror(file)) return refused();
  return text;
}

}  // namespace unisono::lang
