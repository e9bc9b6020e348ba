#pragma once
// Source texts and places in them.
#include <cstdint>
#include <deque>
#include <map>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

namespace unisono::lang {

/// One source text, with the name it was given on the command line (or in an
/// import, or `<stdin>`). Immutable; a Span points at it, so it lives in a
/// SourceMap for as long as anything refers to it.
class SourceFile {
 public:
  SourceFile(std::string path, std::string text);
  SourceFile(const SourceFile&) = delete;
  SourceFile& operator=(const SourceFile&) = delete;

  const std::string& path() const { return path_; }
  std::string_view text() const { return text_; }

  /// Line and column count from 1; the column counts code points.
  struct Place {
    int line = 1;
    int column = 1;
  };
  /// `offset` counts bytes.
  Place place(uint32_t offset) const;
  int line_count() const { return static_cast<int>(line_starts_.size()); }
  /// Line `number`, counted from 1, without its line end.
  std::string_view line(int number) const;
  /// The offset of the first byte of line `number`.
  uint32_t line_offset(int number) const;

 private:
  std::string path_;
  std::string text_;
  std::vector<uint32_t> line_starts_;
};

/// The bytes [begin, end) of a file; a default Span is nowhere.
struct Span {
  const SourceFile* file = nullptr;
  uint32_t begin = 0;
  uint32_t end = 0;

  explicit operator bool() const { return file != nullptr; }
  bool operator==(const Span&) const = default;
  std::string_view text() const {
    return file ? file->text().substr(begin, end - begin) : std::string_view();
  }
};

/// From the start of `first` to the end of `last`; both in one file.
Span cover(Span first, Span last);
/// `train.uni:12:5`; empty for a span that is nowhere.
std::string to_string(Span where);

/// Owns source files, and numbers spans so that an IR node or a compiled
/// program can carry a position in 32 bits. Not thread-safe.
class SourceMap {
 public:
  /// The reference holds as long as this map.
  const SourceFile& add(std::string path, std::string text);
  /// Equal spans have the same number; a span that is nowhere has 0.
  uint32_t number(Span where);
  /// The span with a number that `number` gave, or nowhere for 0.
  Span span(uint32_t number) const;

 private:
  std::deque<SourceFile> files_;
  std::vector<Span> spans_;
  std::map<std::tuple<const SourceFile*, uint32_t, uint32_t>, uint32_t>
      numbers_;
};

}  // namespace unisono::lang
