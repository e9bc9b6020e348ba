#pragma once
// Markdown to HTML, by cmark-gfm, with code and links of the manual's own.
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace unisono::host::manual {

struct MarkdownOptions {
  /// The HTML of a block of code; `info` is what stands behind its fence, or
  /// empty.
  std::function<std::string(std::string_view code, std::string_view info)>
      code_block;
  /// The HTML of `code` within text; empty: as it is.
  std::function<std::string(std::string_view code)> code;
  /// Where a link or an image leads; nothing: its text stands without one.
  /// `line` counts from 1; it is that of the paragraph.
  std::function<std::optional<std::string>(std::string_view url, int line)>
      link;
  /// What stands in place of the name of a file that is a link; empty: the
  /// name.
  std::function<std::string(std::string_view url)> title;
  /// Before the ids of headings, which are unique in one text.
  std::string id_prefix;
  /// Added to the levels of headings.
  int deeper = 0;
};

struct Heading {
  int level = 1;
  std::string id, text;
};
/// A heading and the plain text below it, up to the next one; what stands
/// before the first has no id.
struct Section {
  std::string id, title, text;
};
struct Markdown {
  std::string html;
  std::string summary;  // the first paragraph, as HTML without its tags
  std::vector<Heading> headings;
  std::vector<Section> sections;
};

/// HTML in the text stands there as text; links that are scripts lead nowhere.
Markdown render_markdown(std::string_view text, const MarkdownOptions& options);

}  // namespace unisono::host::manual
