#include "lang/source/diagnostics.h"

#include <algorithm>

#include "lang/source/utf8.h"

namespace unisono::lang {
namespace {

constexpr int tab_width = 4;
constexpr int window_width = 120;
constexpr size_t max_text = 4000;

/// One code point of a source line as a terminal shows it.
struct Cell {
  uint32_t offset;
  std::string shown;
  int width;
};

Cell cell_at(std::string_view text, uint32_t at, uint32_t* length) {
  const CodePoint point = decode_utf8(text, at);
  *length = point.length == 0 ? 1 : point.length;
  if (point.length == 0) {
    std::string shown =
        fmt::format("\\x{:02x}", static_cast<uint8_t>(text[at]));
    return {at, shown, 4};
  }
  if (point.value == '\t') return {at, std::string(tab_width, ' '), tab_width};
  if (is_unprintable(point.value)) {
    std::string shown =
        fmt::format("\\u{{{:x}}}", static_cast<uint32_t>(point.value));
    const int width = static_cast<int>(shown.size());
    return {at, std::move(shown), width};
  }
  return {at, std::string(text.substr(at, point.length)),
          display_width(point.value)};
}

/// The cells of the bytes [begin, end), and of the rest of the last character.
std::vector<Cell> cells_of(std::string_view text, size_t begin, size_t end) {
  std::vector<Cell> cells;
  for (auto at = static_cast<uint32_t>(begin);
       at < std::min(end, text.size());) {
    uint32_t length = 0;
    cells.push_back(cell_at(text, at, &length));
    at += length;
  }
  return cells;
}

/// Text that a terminal only shows, and not too much of it.
std::string inert(std::string_view text) {
  std::string out;
  for (const Cell& cell : cells_of(text, 0, max_text)) out += cell.shown;
  if (text.size() > max_text) out += "...";
  return out;
}

struct Style {
  std::string_view severity, strong, dim, reset;
};

Style style_of(Severity severity, bool colour) {
  if (!colour) return {};
  std::string_view head;
  switch (severity) {
    case Severity::error: head = "\x1b[1;31m"; break;
    case Severity::warning: head = "\x1b[1;33m"; break;
    case Severity::note: head = "\x1b[1;36m"; break;
    case Severity::performance: head = "\x1b[1;35m"; break;
  }
  return {head, "\x1b[1m", "\x1b[1;34m", "\x1b[0m"};
}

/// The part of a line around the marked bytes that fits the window.
struct Window {
  std::string before;  ///< an ellipsis, if the line starts further left
  std::vector<Cell> cells;
  std::string after;
};

Window window_around(std::string_view line, size_t mark) {
  constexpr size_t reach = 4 * window_width;  // bytes looked at on either side
  size_t begin = mark > reach ? mark - reach : 0;
  while (begin > 0 && (static_cast<uint8_t>(line[begin]) & 0xC0) == 0x80)
    --begin;
  std::vector<Cell> cells = cells_of(line, begin, mark + reach);
  bool cut_before = begin > 0;
  bool cut_after = mark + reach < line.size();
  int total = 0;
  size_t marked = 0;
  for (const Cell& cell : cells) {
    total += cell.width;
    if (cell.offset < mark) ++marked;
  }
  size_t first = 0;
  size_t last = cells.size();
  if (total > window_width) {
    first = marked;
    int left = window_width / 3;
    while (first > 0 && left > 0) left -= cells[--first].width;
    int room = window_width;
    last = first;
    while (last < cells.size() && room > 0) room -= cells[last++].width;
    cut_before = cut_before || first > 0;
    cut_after = cut_after || last < cells.size();
  }
  cells.resize(last);
  cells.erase(cells.begin(),
              cells.begin() + static_cast<std::ptrdiff_t>(first));
  return {cut_before ? "..." : "", std::move(cells), cut_after ? "..." : ""};
}

/// Place, source line and caret line.
void excerpt(std::string& out, Span where, std::string_view label,
             size_t gutter, const Style& style) {
  const SourceFile::Place place = where.file->place(where.begin);
  const std::string pad(gutter, ' ');
  out += fmt::format("{}{}-->{} {}\n", pad, style.dim, style.reset,
                     inert(to_string(where)));
  out += fmt::format("{} {}|{}\n", pad, style.dim, style.reset);

  const std::string_view line = where.file->line(place.line);
  const uint32_t start = where.file->line_offset(place.line);
  const uint32_t mark_begin = where.begin - start;
  const uint32_t mark_end = std::max(where.end - start, mark_begin + 1);
  const Window window = window_around(line, mark_begin);

  std::string shown = window.before;
  std::string under(window.before.size(), ' ');
  size_t carets = 0;
  for (const Cell& cell : window.cells) {
    shown += cell.shown;
    const auto width = static_cast<size_t>(cell.width);
    if (cell.offset < mark_begin) under.append(width, ' ');
    if (cell.offset >= mark_begin && cell.offset < mark_end) carets += width;
  }
  shown += window.after;
  out += fmt::format("{}{:>{}} |{} {}", style.dim, place.line, gutter,
                     style.reset, shown);
  while (out.ends_with(' ')) out.pop_back();
  out += fmt::format("\n{} {}|{} {}{}{}", pad, style.dim, style.reset, under,
                     style.severity,
                     std::string(std::max<size_t>(carets, 1), '^'));
  if (!label.empty()) out += fmt::format(" {}", inert(label));
  out += fmt::format("{}\n", style.reset);
}

size_t digits(int number) { return std::to_string(number).size(); }

size_t gutter_of(const Diagnostic& d) {
  size_t gutter = 1;
  const auto consider = [&](Span where) {
    if (where)
      gutter = std::max(gutter, digits(where.file->place(where.begin).line));
  };
  consider(d.where);
  for (const Note& note : d.notes) consider(note.where);
  return gutter;
}

}  // namespace

Diagnostic& Diagnostic::set_label(std::string text) {
  label = std::move(text);
  return *this;
}
Diagnostic& Diagnostic::add_note(Span place, std::string text) {
  notes.push_back({place, std::move(text)});
  return *this;
}
Diagnostic& Diagnostic::add_fact(std::string text) {
  facts.push_back(std::move(text));
  return *this;
}
namespace {
/// Whether it holds the name of an open size, `?k12`, which no program knows.
bool names_open_size(std::string_view text) {
  for (size_t i = 0; (i = text.find("?k", i)) != text.npos; i += 2)
    if (i + 2 < text.size() && text[i + 2] >= '0' && text[i + 2] <= '9')
      return true;
  return false;
}
}  // namespace

Diagnostic& Diagnostic::set_help(std::string text) {
  help = names_open_size(text) ? "" : std::move(text);
  return *this;
}

Diagnostic& Diagnostics::add(Diagnostic diagnostic) {
  if (diagnostic.severity == Severity::error) ++error_count_;
  return all_.emplace_back(std::move(diagnostic));
}

void Diagnostics::truncate(size_t size) {
  while (all_.size() > size) {
    if (all_.back().severity == Severity::error) --error_count_;
    all_.pop_back();
  }
}

void Diagnostics::sort_by_place(size_t from) {
  const auto begin = all_.begin() + static_cast<std::ptrdiff_t>(from);
  const auto before = [](const Diagnostic& a, const Diagnostic& b) {
    return a.where.begin < b.where.begin;
  };
  for (auto next = begin; next != all_.end(); ++next)
    std::rotate(std::upper_bound(begin, next, *next, before), next, next + 1);
}

std::string_view name(Severity severity) {
  switch (severity) {
    case Severity::error: return "error";
    case Severity::warning: return "warning";
    case Severity::note: return "note";
    case Severity::performance: return "performance";
  }
  return {};
}

std::string render(const Diagnostic& d, RenderOptions options) {
  const Style style = style_of(d.severity, options.colour);
  const Style note_style = style_of(Severity::note, options.colour);
  const size_t gutter = gutter_of(d);
  const std::string pad(gutter, ' ');
  std::string out =
      fmt::format("{}{}[{}]{}{}: {}{}\n", style.severity, name(d.severity),
                  info(d.code).number, style.reset, style.strong,
                  inert(d.message), style.reset);
  if (d.where) excerpt(out, d.where, d.label, gutter, style);

  std::vector<std::string> tail;
  for (const Note& note : d.notes)
    if (!note.where) tail.push_back(inert(note.text));
  for (const std::string& fact : d.facts) tail.push_back(inert(fact));
  if (!d.help.empty()) tail.push_back("help: " + inert(d.help));
  if (!tail.empty() && d.where)
    out += fmt::format("{} {}|{}\n", pad, style.dim, style.reset);
  for (const std::string& line : tail)
    out += fmt::format("{} {}={} {}\n", pad, style.dim, style.reset, line);
  for (const Note& note : d.notes) {
    if (!note.where) continue;
    out += fmt::format("{}note{}: {}\n", note_style.severity, style.reset,
                       inert(note.text));
    excerpt(out, note.where, {}, gutter, note_style);
  }
  return out;
}

std::string render(const Diagnostics& diagnostics, RenderOptions options) {
  std::string out;
  for (const Diagnostic& d : diagnostics.all()) {
    if (!out.empty()) out += '\n';
    out += render(d, options);
  }
  return out;
}

}  // namespace unisono::lang
