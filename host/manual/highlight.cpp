#include "host/manual/highlight.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "host/lsp/syntax.h"
#include "host/manual/html.h"
#include "lang/syntax/lexer.h"

namespace unisono::host::manual {
namespace {

using lang::TokenKind;

/// A part of the text with its class in the style sheet, or with a link.
struct Part {
  uint32_t begin = 0, end = 0;
  std::string_view style;
  std::optional<NameLink> link;
};

class Painter {
 public:
  Painter(const lsp::Syntax& syntax, const LinkOf& link)
      : syntax_(syntax), link_(link), text_(syntax.text().str()) {}

  std::string html() {
    for (const lang::Comment& comment : syntax_.program().comments)
      add(comment.span.begin, comment.span.end, "c");
    tokens(syntax_.tokens());
    for (const uint32_t word : syntax_.names().declaring_words())
      add(word, word + word_size(word), "k");
    for (const lsp::Occurrence& o : syntax_.names().occurrences()) name(o);
    std::ranges::sort(parts_, {}, &Part::begin);  // no two begin together
    std::string out;
    uint32_t at = 0;
    for (const Part& part : parts_) {
      if (part.begin < at) continue;  // inside of one that is there already
      out += escaped(text_.substr(at, part.begin - at)) + painted(part);
      at = part.end;
    }
    return out + escaped(text_.substr(at));
  }

 private:
  void add(uint32_t begin, uint32_t end, std::string_view style) {
    if (begin < end) parts_.push_back({begin, end, style, std::nullopt});
  }

  uint32_t word_size(uint32_t begin) const {
    uint32_t end = begin;
    while (end < text_.size() && text_[end] >= 'a' && text_[end] <= 'z') ++end;
    return end - begin;
  }

  void tokens(const std::vector<lang::Token>& list) {
    for (const lang::Token& t : list)
      if (t.kind == TokenKind::String)
        string(t);
      else if (t.kind == TokenKind::Integer || t.kind == TokenKind::Float)
        add(t.begin, t.end, "n");
      else if (lang::is_keyword(t.kind) && !is_name(t))
        add(t.begin, t.end, "k");
  }

  /// A keyword before `=` or behind `.` is a name.
  bool is_name(const lang::Token& t) const {
    const lsp::Occurrence* o = syntax_.names().at(t.begin);
    return o && o->where.begin == t.begin;
  }

  /// The text of a string, and in between the tokens of what it inserts.
  void string(const lang::Token& t) {
    uint32_t from = t.begin;
    for (uint32_t i = t.begin + 1; i < t.end; ++i) {
      if (text_[i] == '\\') {
        ++i;
      } else if (text_[i] == '{') {
        const auto end = lang::find_interpolation_end(text_, i + 1);
        if (!end || end->close >= t.end) break;
        add(from, i + 1, "s");
        lang::Diagnostics diagnostics;
        tokens(lang::lex_part(*syntax_.program().file, i + 1, end->colon,
                              diagnostics)
                   .tokens);
        from = end->colon;
        i = end->close;
      }
    }
    add(from, t.end, "s");
  }

  void name(const lsp::Occurrence& o) {
    if (o.where.text().starts_with('"')) return;  // the path of an import
    const bool defines = o.use == lsp::Occurrence::Use::definition;
    std::optional<NameLink> link =
        link_ ? link_(o, syntax_.names()) : std::nullopt;
    std::string_view style = "";
    if (link && link->is_type)
      style = "t";
    else if (defines && (link || is_function(o)))
      style = "d";
    else if (link || o.is_called)
      style = "f";
    if (defines && !is_in_type(o)) link.reset();  // it is told of here
    parts_.push_back({o.where.begin, o.where.end, style, std::move(link)});
  }

  /// Whether it stands in a parameter's type.
  bool is_in_type(const lsp::Occurrence& o) const {
    using Kind = lsp::Definition::Kind;
    const auto targets = syntax_.names().targets(o);
    return !targets.empty() && (targets[0]->kind == Kind::size ||
                                targets[0]->kind == Kind::type_parameter);
  }

  bool is_function(const lsp::Occurrence& o) const {
    const auto targets = syntax_.names().targets(o);
    return !targets.empty() && targets[0]->def;
  }

  std::string painted(const Part& part) const {
    std::string text = escaped(text_.substr(part.begin, part.end - part.begin));
    const std::string style =
        part.style.empty() ? "" : fmt::format(" class=\"{}\"", part.style);
    const std::string title =
        part.link && !part.link->title.empty()
            ? fmt::format(" title=\"{}\"", escaped(part.link->title))
            : "";
    if (part.link && !part.link->url.empty())
      return fmt::format("<a{} href=\"{}\"{}>{}</a>", style, part.link->url,
                         title, text);
    if (style.empty() && title.empty()) return text;
    return fmt::format("<span{}{}>{}</span>", style, title, text);
  }

  const lsp::Syntax& syntax_;
  const LinkOf& link_;
  std::string_view text_;
  std::vector<Part> parts_;
};

}  // namespace

std::string highlight(std::string_view code, const LinkOf& link) {
  const lsp::Syntax syntax("", std::string(code));
  return Painter(syntax, link).html();
}

std::string highlight_session(std::string_view text, const LinkOf& link) {
  // All inputs are one program: later ones mean names of earlier ones.
  struct Line {
    std::string_view prompt, text;  // no prompt: what was printed
  };
  std::vector<Line> lines;
  std::string program;
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    Line line{"", text.substr(0, end)};
    text.remove_prefix(std::min(end + 1, text.size()));
    const bool goes_on = !lines.empty() && !lines.back().prompt.empty();
    for (const std::string_view prompt : {">>>", "..."})
      if (line.text.starts_with(prompt) && (prompt == ">>>" || goes_on)) {
        line.prompt = prompt;
        line.text.remove_prefix(prompt.size());
        if (line.text.starts_with(' ')) line.text.remove_prefix(1);
        program += std::string(line.text) + "\n";
        break;
      }
    lines.push_back(line);
  }
  const std::string painted = highlight(program, link);
  std::string_view rest = painted;
  std::string out;
  for (const Line& line : lines) {
    if (line.prompt.empty()) {
      out += fmt::format("<span class=\"o\">{}</span>\n", escaped(line.text));
      continue;
    }
    const size_t end = std::min(rest.find('\n'), rest.size());
    out += fmt::format("<span class=\"p\">{} </span>{}\n", escaped(line.prompt),
                       rest.substr(0, end));
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  return out;
}

std::string highlight_signature(std::string_view label, const LinkOf& link,
                                const std::string& decorators) {
  // A definition of the same parameters says which of its words are names.
  const lsp::Syntax syntax("", fmt::format("{}def {} = 0", decorators, label));
  const std::string head = "<span class=\"k\">def</span> ";
  const std::string tail = " = <span class=\"n\">0</span>";
  std::string html = Painter(syntax, link).html();
  const size_t begin = html.find(head);
  if (!syntax.ok() || begin == html.npos || !html.ends_with(tail))
    return escaped(decorators) + escaped(label);
  html.erase(html.size() - tail.size());
  return html.erase(begin, head.size());
}

}  // namespace unisono::host::manual
