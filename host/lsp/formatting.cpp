// Formatting keeps all tokens, but for `;` and a `,` before a closing bracket,
// and all comments, in their order. So two line ends with the same tokens
// before them are the same place, and what lies between two such places can be
// formatted without the rest.
#include <algorithm>
#include <string_view>
#include <vector>

#include "host/lsp/answers.h"
#include "lang/format/format.h"

namespace unisono::host::lsp {
namespace {

using lang::TokenKind;

/// The tokens and comments that formatting keeps, in the order of the text.
std::vector<lang::Span> kept_parts(const Syntax& syntax) {
  const auto& tokens = syntax.tokens();
  std::vector<lang::Span> out;
  for (size_t i = 0; i < tokens.size(); ++i) {
    const TokenKind next =
        i + 1 < tokens.size() ? tokens[i + 1].kind : TokenKind::EndOfFile;
    const bool is_last_comma =
        tokens[i].kind == TokenKind::Comma &&
        (next == TokenKind::RightParen || next == TokenKind::RightBracket ||
         next == TokenKind::RightBrace);
    if (tokens[i].begin < tokens[i].end && !is_last_comma &&
        tokens[i].kind != TokenKind::Semicolon)
      out.push_back({syntax.program().file, tokens[i].begin, tokens[i].end});
  }
  for (const lang::Comment& c : syntax.program().comments)
    out.push_back(c.span);
  std::ranges::sort(out, {}, &lang::Span::begin);
  return out;
}

/// For each line of the text, and its end, how many parts begin before it.
struct Lines {
  std::vector<uint32_t> starts;  // bytes, and the size of the text
  std::vector<size_t> parts;
};
Lines lines_of(const std::string& text, const std::vector<lang::Span>& parts) {
  Lines out;
  const auto add = [&](size_t start) {
    size_t before = out.parts.empty() ? 0 : out.parts.back();
    while (before < parts.size() && parts[before].begin < start) ++before;
    out.starts.push_back(static_cast<uint32_t>(start));
    out.parts.push_back(before);
  };
  add(0);
  for (size_t i = 0; i < text.size(); ++i)
    if (text[i] == '\n') add(i + 1);
  if (out.starts.back() < text.size()) add(text.size());
  return out;
}

Json edit(View& view, uint32_t begin, uint32_t end, std::string text) {
  return {{"range", view.range({nullptr, begin, end})},
          {"newText", std::move(text)}};
}

}  // namespace

Json format_edits(View& view) {
  if (!view.syntax().ok()) return nullptr;
  const std::string& before = view.syntax().text().str();
  const std::string after = lang::format(view.syntax().program());
  if (before == after) return Json::array();
  // What is the same at both ends stays, and with it an editor's marks.
  const size_t least = std::min(before.size(), after.size());
  size_t head = 0, tail = 0;
  while (head < least && before[head] == after[head]) ++head;
  while (head > 0 && before[head - 1] != '\n') --head;
  while (tail < least - head &&
         before[before.size() - 1 - tail] == after[after.size() - 1 - tail])
    ++tail;
  while (tail > 0 && before[before.size() - tail - 1] != '\n') --tail;
  return Json::array({edit(view, static_cast<uint32_t>(head),
                           static_cast<uint32_t>(before.size() - tail),
                           after.substr(head, after.size() - tail - head))});
}

Json format_edits(View& view, uint32_t begin, uint32_t end) {
  if (!view.syntax().ok()) return nullptr;
  const std::string& before = view.syntax().text().str();
  const Syntax formatted(view.syntax().path(),
                         lang::format(view.syntax().program()));
  const std::string& after = formatted.text().str();
  const Lines a = lines_of(before, kept_parts(view.syntax()));
  const Lines b = lines_of(after, kept_parts(formatted));
  if (a.parts.back() != b.parts.back()) return nullptr;
  Json out = Json::array();
  // Line i of the one and line k of the other are the same place; so are the
  // ends of the empty lines and comments before them.
  for (size_t i = 0, k = 0;
       i + 1 < a.starts.size() || k + 1 < b.starts.size();) {
    const bool ends = i + 1 >= a.starts.size(),
               ended = k + 1 >= b.starts.size();
    size_t next_i = i + (ends ? 0 : 1), next_k = k + (ended ? 0 : 1);
    while (a.parts[next_i] != b.parts[next_k])
      if (a.parts[next_i] < b.parts[next_k])
        ++next_i;
      else
        ++next_k;
    const uint32_t from = a.starts[i], to = a.starts[next_i];
    std::string text =
        after.substr(b.starts[k], b.starts[next_k] - b.starts[k]);
    // A range that ends where a line begins is not about that line.
    const bool touched = from == to
                             ? begin <= from && from < std::max(end, 1u)
                             : from < std::max(end, begin + 1) && begin < to;
    if (touched && before.compare(from, to - from, text) != 0)
      out.push_back(edit(view, from, to, std::move(text)));
    i = next_i;
    k = next_k;
  }
  return out;
}

}  // namespace unisono::host::lsp
