#include "lang/source/builtin_examples.h"

#include <algorithm>
#include <optional>

namespace unisono::lang {
namespace {

/// The lines below `## NAME` of a page, up to the next heading.
std::string_view section(std::string_view page, std::string_view name) {
  const std::string heading = "\n## " + std::string(name) + "\n\n";
  size_t at = page.find(heading);
  if (at == page.npos) return {};
  at += heading.size();
  const size_t end = std::min(page.find("\n## ", at), page.find("\n# ", at));
  return page.substr(at, end - at);
}

/// What stands behind `marks` at the beginning of a line.
std::optional<std::string_view> heading(std::string_view line,
                                        std::string_view marks) {
  if (!line.starts_with(marks)) return std::nullopt;
  return line.substr(marks.size());
}

}  // namespace

std::vector<BuiltinFamily> builtin_families() {
  std::vector<BuiltinFamily> out;
  for (const ExamplePage& page : example_pages()) {
    bool in_code = false;  // where a comment looks like a heading
    for (std::string_view rest = page.text; !rest.empty();) {
      const size_t end = std::min(rest.find('\n'), rest.size());
      const std::string_view line = rest.substr(0, end);
      rest.remove_prefix(std::min(end + 1, rest.size()));
      if (line.starts_with("```"))
        in_code = !in_code;
      else if (const auto title = heading(line, "# "); title && !in_code)
        out.push_back({*title, {}});
      else if (const auto name = heading(line, "## "); name && !in_code)
        out.back().names.push_back(*name);
    }
  }
  std::erase_if(out, [](const BuiltinFamily& f) { return f.names.empty(); });
  return out;
}

std::string builtin_example(std::string_view builtin) {
  std::string out;
  for (const ExamplePage& page : example_pages()) {
    bool in_code = false;
    std::string_view text = section(page.text, builtin);
    while (!text.empty()) {
      const size_t end = std::min(text.find('\n'), text.size());
      const std::string_view line = text.substr(0, end);
      text.remove_prefix(std::min(end + 1, text.size()));
      if (line.starts_with("```"))
        in_code = !in_code;
      else
        out += (in_code ? "    " : "") + std::string(line) + "\n";
    }
  }
  while (out.ends_with("\n\n")) out.pop_back();
  return out;
}

std::string builtin_documentation(std::string_view builtin,
                                  std::string_view help) {
  const std::string example = builtin_example(builtin);
  return std::string(help) + "\n" + (example.empty() ? "" : "\n") + example;
}

}  // namespace unisono::lang
