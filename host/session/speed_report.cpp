#include "host/session/speed_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <map>
#include <set>
#include <span>
#include <tuple>
#include <utility>
#include <vector>

#include "lang/source/stdlib.h"

namespace unisono::host {
namespace {

using Part = lang::LineTimes::Part;
using Nanoseconds = std::chrono::nanoseconds;

constexpr size_t most_lines = 20;
/// Of a line's time; less is not named.
constexpr double least_share = 0.01;
/// A line that was compiled more often than this is told why.
constexpr int64_t usual_compilations = 4;

struct Line {
  const lang::SourceFile* file = nullptr;  // null: no line
  int number = 0;
  auto operator<=>(const Line&) const = default;
};

double milliseconds(Nanoseconds time) {
  return std::chrono::duration<double, std::milli>(time).count();
}

/// The last place in the program itself, else in the library, as kernels are
/// named.
lang::Span shown_place(Session& session,
                       const lang::LineTimes::Places& places) {
  lang::Span shown;
  for (const uint32_t place : places) {
    const lang::Span span = session.walk().source_span(place);
    if (span && (!shown || !lang::is_in_stdlib(span))) shown = span;
  }
  return shown;
}

Line line_of(lang::Span span) {
  return span ? Line{span.file, span.file->place(span.begin).line} : Line();
}

/// "train.uni:12".
std::string name_of(const Line& line) {
  return fmt::format("{}:{}", line.file->path(), line.number);
}

/// The text of a line, without what is left of it and what is too long.
std::string text_of(const Line& line) {
  constexpr size_t most = 56;
  std::string_view text = line.file->line(line.number);
  text.remove_prefix(std::min(text.find_first_not_of(" \t"), text.size()));
  if (text.size() <= most) return std::string(text);
  size_t end = most;
  while (end > 0 && (text[end] & 0xC0) == 0x80) --end;
  return std::string(text.substr(0, end)) + "...";
}

const char* name_of(Part part) {
  switch (part) {
    case Part::walk: return "walk";
    case Part::code: return "code";
    case Part::compile: return "compile";
    case Part::devices: return "devices";
    case Part::copies: return "copies";
  }
  __builtin_unreachable();
}

struct LineSum {
  lang::LineTimes::Times times;

  Nanoseconds all() const {
    Nanoseconds sum{0};
    for (const Nanoseconds time : times.time) sum += time;
    return sum;
  }
};

/// "devices 3.120 ms, compile 2.001 ms", the longest first.
std::string parts_of(const LineSum& line) {
  std::vector<std::pair<Nanoseconds, std::string>> parts;
  for (int i = 0; i < lang::LineTimes::parts; ++i) {
    const Nanoseconds time = line.times.time[static_cast<size_t>(i)];
    if (milliseconds(time) < least_share * milliseconds(line.all()) ||
        time.count() == 0)
      continue;
    parts.emplace_back(
        time, fmt::format("{} {:.3f} ms", name_of(static_cast<Part>(i)),
                          milliseconds(time)));
  }
  std::ranges::sort(parts, std::greater());
  std::string text;
  for (const auto& part : parts)
    text += (text.empty() ? "" : ", ") + part.second;
  return text;
}

using Lines = std::vector<std::pair<Line, LineSum>>;

/// Why something took the slower way, in the order of the text.
std::string reasons(Session& session, const lang::LineTimes& times,
                    const Lines& lines) {
  std::set<std::tuple<std::string, int, std::string>> notes;
  for (const auto& [place, note] : times.notes()) {
    const lang::Span span = session.walk().source_span(place);
    if (!span) continue;
    notes.emplace(span.file->path(), line_of(span).number,
                  fmt::format("{}: {}", name_of(line_of(span)), note));
  }
  for (const auto& [line, sum] : lines)
    if (line.file && sum.times.compilations > usual_compilations)
      notes.emplace(
          line.file->path(), line.number,
          fmt::format("{}: compiled {} times, as each call has other types, "
                      "sizes, or numbers that decide something",
                      name_of(line), sum.times.compilations));
  std::string text;
  for (const auto& note : notes)
    text += fmt::format("{}{}\n", text.empty() ? "why not faster:\n" : "",
                        std::get<2>(note));
  return text;
}

}  // namespace

std::string speed_report(Session& session, const Recorder& recorder,
                         const lang::LineTimes& times) {
  const Nanoseconds all = Recorder::Clock::now() - recorder.started();
  std::map<Line, LineSum> by_line;
  Nanoseconds charged{0};
  for (const auto& [places, each] : times.times()) {
    const lang::Span span = shown_place(session, places);
    LineSum& line = by_line[line_of(span)];
    line.times.compilations += each.compilations;
    for (size_t i = 0; i < each.time.size(); ++i) {
      line.times.time[i] += each.time[i];
      charged += each.time[i];
    }
  }
  std::vector<std::pair<Line, LineSum>> lines(by_line.begin(), by_line.end());
  std::ranges::sort(lines, [](const auto& a, const auto& b) {
    return a.second.all() > b.second.all();
  });

  const auto row = [&](Nanoseconds time, const std::string& what) {
    return fmt::format("{:>12.3f} {:>6.1f}  {}\n", milliseconds(time),
                       100 * milliseconds(time) / milliseconds(all), what);
  };
  std::string text = fmt::format("{:>12} {:>6}  line\n", "ms", "%");
  for (const auto& [line, sum] :
       std::span(lines).first(std::min(lines.size(), most_lines))) {
    text += row(sum.all(),
                line.file ? fmt::format("{}  {}", name_of(line), text_of(line))
                          : "(no line)");
    text += fmt::format("{:>21}{}\n", "", parts_of(sum));
  }
  if (lines.size() > most_lines) {
    Nanoseconds rest{0};
    for (const auto& each : std::span(lines).subspan(most_lines))
      rest += each.second.all();
    text += row(rest, fmt::format("{} more lines", lines.size() - most_lines));
  }
  text += row(all - charged, "(the program is read and checked)");
  return text + reasons(session, times, lines);
}

}  // namespace unisono::host
