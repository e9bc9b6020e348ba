#include "host/testing/examples.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <optional>

namespace unisono::host {
namespace {

constexpr std::string_view prompt = ">>>", more = "...";

/// One line of a file.
struct Line {
  std::string_view text;  // without its end
  size_t begin = 0, end = 0;
  int number = 1;
};

std::vector<Line> lines_of(std::string_view text) {
  std::vector<Line> lines;
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find('\n', at), text.size() - 1) + 1;
    std::string_view line = text.substr(at, end - at);
    while (line.ends_with('\n') || line.ends_with('\r')) line.remove_suffix(1);
    lines.push_back({line, at, end, static_cast<int>(lines.size()) + 1});
    at = end;
  }
  return lines;
}

std::string_view trimmed(std::string_view text) {
  const size_t begin = text.find_first_not_of(" \t");
  if (begin == text.npos) return {};
  return text.substr(begin, text.find_last_not_of(" \t") - begin + 1);
}

bool begins(std::string_view text, std::string_view mark) {
  return text == mark || (text.starts_with(mark) && text[mark.size()] == ' ');
}

/// What follows `>>> ` or `... `.
std::string_view behind(std::string_view text, std::string_view mark) {
  text.remove_prefix(std::min(mark.size() + 1, text.size()));
  return text;
}

/// Reads the examples of lines that all begin with `comment`, or of all lines
/// if that is empty.
class TranscriptReader {
 public:
  TranscriptReader(const std::vector<Line>& lines, std::string_view comment)
      : lines_(lines), comment_(comment) {}

  /// Those of the lines from `begin` to `end`.
  std::vector<Example> read(size_t begin, size_t end) {
    std::vector<Example> examples;
    for (size_t i = begin; i < end;) {
      if (!begins(trimmed(inside(i)), prompt)) {
        ++i;
        continue;
      }
      examples.push_back(read_one(i, end));
    }
    return examples;
  }

 private:
  std::string_view inside(size_t i) const {
    return lines_[i].text.substr(comment_.size());
  }

  /// The example that begins at line `i`, which is then the one after it.
  Example read_one(size_t& i, size_t end) {
    Example out;
    const size_t indent = inside(i).find(prompt);
    out.line = lines_[i].number;
    out.margin = comment_ + std::string(indent, ' ');
    out.column = static_cast<int>(out.margin.size() + prompt.size() + 1);
    out.code = behind(trimmed(inside(i)), prompt);
    for (++i; i < end && begins(trimmed(inside(i)), more); ++i)
      (out.code += '\n') += behind(trimmed(inside(i)), more);
    out.expected_begin = out.expected_end =
        i < lines_.size() ? lines_[i].begin : lines_.back().end;
    for (; i < end; ++i) {
      const std::string_view line = inside(i);
      if (trimmed(line).empty() || begins(trimmed(line), prompt)) break;
      const size_t from = std::min(indent, line.find_first_not_of(' '));
      if (!out.expected.empty()) out.expected += '\n';
      out.expected += line.substr(from);
      out.expected_end = lines_[i].end;
    }
    return out;
  }

  const std::vector<Line>& lines_;
  std::string comment_;
};

/// The name of a `def` that begins in this line.
std::string defined_name(std::string_view line) {
  constexpr std::string_view def = "def ";
  if (!line.starts_with(def)) return "";
  line.remove_prefix(def.size());
  return std::string(line.substr(0, line.find_first_of("([: ")));
}

struct Fence {
  size_t begin = 0, end = 0;  // the lines inside
  std::string_view words;     // after ```
};

/// The fenced blocks of a page.
std::vector<Fence> fences_of(const std::vector<Line>& lines) {
  constexpr std::string_view mark = "```";
  std::vector<Fence> fences;
  for (size_t i = 0; i < lines.size(); ++i) {
    if (!lines[i].text.starts_with(mark)) continue;
    Fence fence{i + 1, i + 1, trimmed(lines[i].text.substr(mark.size()))};
    while (fence.end < lines.size() && trimmed(lines[fence.end].text) != mark)
      ++fence.end;
    i = fence.end;
    fences.push_back(fence);
  }
  return fences;
}

std::string joined(const std::vector<Line>& lines, size_t begin, size_t end) {
  std::string out;
  for (size_t i = begin; i < end; ++i) {
    if (i > begin) out += '\n';
    out += lines[i].text;
  }
  return out;
}

/// N of "uni N"; 0 of "uni", nothing of other blocks.
std::optional<int> program_devices(std::string_view words) {
  if (words == "uni") return 0;
  constexpr std::string_view begin = "uni ";
  if (!words.starts_with(begin)) return std::nullopt;
  words.remove_prefix(begin.size());
  int count = 0;
  const auto [end, error] =
      std::from_chars(words.data(), words.data() + words.size(), count);
  const bool whole = end == words.data() + words.size();
  return error == std::errc() && whole && count > 0 ? std::optional(count)
                                                    : std::nullopt;
}

}  // namespace

std::vector<ExampleGroup> examples_of_program(std::string_view text) {
  constexpr std::string_view comment = "##";
  const std::vector<Line> lines = lines_of(text);
  TranscriptReader reader(lines, comment);
  std::vector<ExampleGroup> groups;
  for (size_t i = 0; i < lines.size(); ++i) {
    if (!lines[i].text.starts_with(comment)) continue;
    size_t end = i;
    while (end < lines.size() && lines[end].text.starts_with(comment)) ++end;
    ExampleGroup group{"", lines[i].number, reader.read(i, end)};
    // Decorators stand between the comment and what it is for.
    size_t below = end;
    while (below < lines.size() && lines[below].text.starts_with('@')) ++below;
    if (below < lines.size()) group.name = defined_name(lines[below].text);
    if (group.name.empty()) group.name = fmt::format("line {}", group.line);
    if (!group.examples.empty()) groups.push_back(std::move(group));
    i = end;
  }
  return groups;
}

PageTests tests_of_page(std::string_view text) {
  const std::vector<Line> lines = lines_of(text);
  const std::vector<Fence> fences = fences_of(lines);
  TranscriptReader reader(lines, "");
  PageTests tests;
  for (size_t f = 0; f < fences.size(); ++f) {
    const Fence& fence = fences[f];
    if (fence.begin == fence.end) continue;
    if (begins(lines[fence.begin].text, prompt)) {
      const int line = lines[fence.begin].number;
      tests.groups.push_back({fmt::format("line {}", line), line,
                              reader.read(fence.begin, fence.end)});
      continue;
    }
    const std::optional<int> devices = program_devices(fence.words);
    if (!devices) continue;
    PageProgram program;
    program.devices = *devices;
    Example& example = program.example;
    example.code = joined(lines, fence.begin, fence.end) + "\n";
    example.line = lines[fence.begin].number;
    const size_t after = fence.end + 1;
    // An empty line, ```output.
    const bool shown = f + 1 < fences.size() &&
                       fences[f + 1].words == "output" &&
                       fences[f + 1].begin <= after + 2;
    if (shown) {
      const Fence& output = fences[f + 1];
      example.expected = joined(lines, output.begin, output.end);
      example.expected_begin = lines[output.begin - 1].end;
      example.expected_end = output.end < lines.size() ? lines[output.end].begin
                                                       : lines.back().end;
    } else {
      example.expected_begin = example.expected_end =
          fence.end < lines.size() ? lines[fence.end].end : lines.back().end;
      example.opening = "\n```output\n";
      example.closing = "```\n";
    }
    tests.programs.push_back(std::move(program));
  }
  return tests;
}

std::string with_results(std::string_view text,
                         const std::vector<Replacement>& replacements) {
  std::vector<Replacement> sorted = replacements;
  std::ranges::sort(sorted, {}, [](const Replacement& replacement) {
    return replacement.example->expected_begin;
  });
  std::string out;
  size_t at = 0;
  for (const auto& [example, got] : sorted) {
    out += text.substr(at, example->expected_begin - at);
    at = example->expected_end;
    if (!out.empty() && !out.ends_with('\n')) out += '\n';
    if (got.empty()) continue;
    out += example->opening;
    for (const Line& line : lines_of(got)) {
      const std::string whole = example->margin + std::string(line.text);
      out += whole.substr(0, whole.find_last_not_of(' ') + 1);
      out += '\n';
    }
    out += example->closing;
  }
  out += text.substr(at);
  return out;
}

}  // namespace unisono::host
