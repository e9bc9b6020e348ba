#include "lang/source/source.h"

#include <fmt/format.h>

#include <algorithm>

namespace unisono::lang {

SourceFile::SourceFile(std::string path, std::string text)
    : path_(std::move(path)), text_(std::move(text)) {
  line_starts_.push_back(0);
  for (size_t i = 0; i < text_.size(); ++i)
    if (text_[i] == '\n') line_starts_.push_back(static_cast<uint32_t>(i + 1));
}

SourceFile::Place SourceFile::place(uint32_t offset) const {
  offset = std::min(offset, static_cast<uint32_t>(text_.size()));
  const auto after =
      std::upper_bound(line_starts_.begin(), line_starts_.end(), offset);
  const uint32_t start = *(after - 1);
  int column = 1;
  for (uint32_t i = start; i < offset; ++i) {
    const bool continuation = (static_cast<uint8_t>(text_[i]) & 0xC0) == 0x80;
    if (!continuation) ++column;
  }
  return {static_cast<int>(after - line_starts_.begin()), column};
}

uint32_t SourceFile::line_offset(int number) const {
  const int index = std::clamp(number - 1, 0, line_count() - 1);
  return line_starts_[static_cast<size_t>(index)];
}

std::string_view SourceFile::line(int number) const {
  if (number < 1 || number > line_count()) return {};
  std::string_view rest = std::string_view(text_).substr(line_offset(number));
  rest = rest.substr(0, rest.find('\n'));
  if (rest.ends_with('\r')) rest.remove_suffix(1);
  return rest;
}

Span cover(Span first, Span last) {
  if (!first) return last;
  if (!last) return first;
  return {first.file, first.begin, std::max(first.end, last.end)};
}

std::string to_string(Span where) {
  if (!where) return {};
  const SourceFile::Place place = where.file->place(where.begin);
  return fmt::format("{}:{}:{}", where.file->path(), place.line, place.column);
}

const SourceFile& SourceMap::add(std::string path, std::string text) {
  return files_.emplace_back(std::move(path), std::move(text));
}

uint32_t SourceMap::number(Span where) {
  if (!where) return 0;
  const auto [entry, inserted] =
      numbers_.try_emplace({where.file, where.begin, where.end},
                           static_cast<uint32_t>(spans_.size() + 1));
  if (inserted) spans_.push_back(where);
  return entry->second;
}

Span SourceMap::span(uint32_t number) const {
  if (number == 0 || number > spans_.size()) return {};
  return spans_[number - 1];
}

}  // namespace unisono::lang
