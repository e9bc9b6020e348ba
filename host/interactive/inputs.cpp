#include "host/interactive/inputs.h"

#include <algorithm>
#include <cctype>
#include <optional>

#include "lang/syntax/lexer.h"
#include "lang/syntax/parser.h"
#include "runtime/dtype.h"
#include "runtime/stop.h"

namespace unisono::host {
namespace {

constexpr size_t most_coloured = 64 * 1024;

std::string_view trimmed(std::string_view text) {
  const size_t begin = text.find_first_not_of(" \t\n");
  if (begin == text.npos) return {};
  return text.substr(begin, text.find_last_not_of(" \t\n") - begin + 1);
}

bool take(std::string_view& text, std::string_view prefix) {
  if (!text.starts_with(prefix)) return false;
  text.remove_prefix(prefix.size());
  return true;
}

/// `In [3]: `, `unisono[4×cpu]> `
bool take_bracketed(std::string_view& text, std::string_view begin,
                    std::string_view end) {
  if (!text.starts_with(begin)) return false;
  const size_t close = text.find(end);
  if (close == text.npos || close > 60 ||
      text.substr(0, close).find('\n') != text.npos)
    return false;
  text.remove_prefix(close + end.size());
  return true;
}

/// The line behind a prompt, or nothing if it has none.
std::optional<std::string_view> behind_prompt(std::string_view line,
                                              bool& first) {
  std::string_view rest =
      line.substr(std::min(line.find_first_not_of(" \t"), line.size()));
  first = take(rest, ">>>") || take_bracketed(rest, "unisono[", "]>") ||
          take_bracketed(rest, "In [", "]:") || take(rest, "unisono>");
  if (!first && !take(rest, "...") && !take(rest, "   ...:"))
    return std::nullopt;
  if (!first && rest.starts_with(":")) rest.remove_prefix(1);
  if (!rest.empty() && rest[0] != ' ') {
    if (!first) return std::nullopt;  // `...` of the language
    return rest;
  }
  if (!rest.empty()) rest.remove_prefix(1);
  return rest;
}

Style style_of(const lang::SourceFile& file, const lang::Token& token) {
  using lang::TokenKind;
  switch (token.kind) {
    case TokenKind::Invalid: return Style::mistake;
    case TokenKind::Integer:
    case TokenKind::Float: return Style::number;
    case TokenKind::String: return Style::string;
    case TokenKind::Identifier: {
      const std::string_view word =
          file.text().substr(token.begin, token.end - token.begin);
      const bool type = word == "int" || word == "str" || word == "type" ||
                        std::ranges::any_of(all_dtypes, [&](DType dtype) {
                          return name(dtype) == word;
                        });
      return type ? Style::type : Style::plain;
    }
    default: return is_keyword(token.kind) ? Style::keyword : Style::plain;
  }
}

}  // namespace

InputState state_of_input(const std::string& text) {
  const std::string_view inner = trimmed(text);
  if (inner.empty() || inner[0] == ':' || inner.starts_with('?') ||
      inner.ends_with('?'))
    return InputState::complete;
  const std::string bare = without_prompts(text);
  const StopScope whole(nullptr);
  const lang::SourceFile file("", bare);
  lang::Diagnostics diagnostics;
  const lang::ParseResult parsed = lang::parse(file, diagnostics);
  if (parsed.incomplete) return InputState::incomplete;
  return parsed.ok ? InputState::complete : InputState::invalid;
}

bool is_complete_input(const std::string& text) {
  return state_of_input(text) != InputState::incomplete;
}

bool hides_result(const std::string& text) {
  const StopScope whole(nullptr);
  const lang::SourceFile file("", text);
  lang::Diagnostics diagnostics;
  const lang::Tokens tokens = lang::lex(file, diagnostics);
  const size_t count = tokens.tokens.size();
  return count > 1 &&
         tokens.tokens[count - 2].kind == lang::TokenKind::Semicolon;
}

std::string without_prompts(const std::string& text) {
  bool first = false;
  const std::string_view all = text;
  const size_t begin = std::min(all.find_first_not_of(" \t\n"), all.size());
  const size_t line_begin = begin == 0 ? 0 : all.rfind('\n', begin) + 1;
  if (!behind_prompt(all.substr(line_begin, all.find('\n', begin) - line_begin),
                     first) ||
      !first)
    return text;
  std::string out, input;
  const auto incomplete = [&] {
    const lang::SourceFile file("", input);
    lang::Diagnostics diagnostics;
    return lang::parse(file, diagnostics).incomplete;
  };
  const StopScope whole(nullptr);
  for (size_t at = line_begin; at < all.size();) {
    const size_t end = std::min(all.find('\n', at), all.size());
    const std::string_view line = all.substr(at, end - at);
    const auto rest = behind_prompt(line, first);
    at = end + 1;
    if (rest && first) {
      out += input;
      input = std::string(*rest) + "\n";
    } else if (rest) {
      input += std::string(*rest) + "\n";
    } else if (!input.empty() && incomplete()) {
      input += std::string(line) + "\n";
    }
  }
  out += input;
  while (out.ends_with('\n')) out.pop_back();
  return out;
}

std::vector<Style> styles_of(std::string_view text) {
  if (text.size() > most_coloured) return {};
  std::vector<Style> out(text.size(), Style::plain);
  const size_t begin = text.find_first_not_of(' ');
  if (begin != text.npos && (text[begin] == ':' || text[begin] == '?')) {
    size_t end = begin + 1;
    while (end < text.size() && text[end] != ' ') ++end;
    std::fill(out.begin() + static_cast<std::ptrdiff_t>(begin),
              out.begin() + static_cast<std::ptrdiff_t>(end), Style::keyword);
    return out;
  }
  const StopScope whole(nullptr);
  const lang::SourceFile file("", std::string(text));
  lang::Diagnostics diagnostics;
  const lang::Tokens tokens = lang::lex(file, diagnostics);
  const auto mark = [&](uint32_t from, uint32_t to, Style style) {
    std::fill(out.begin() + from,
              out.begin() + std::min<size_t>(to, out.size()), style);
  };
  for (const lang::Token& token : tokens.tokens)
    mark(token.begin, token.end, style_of(file, token));
  for (const lang::Comment& comment : tokens.comments)
    mark(comment.span.begin, comment.span.end, Style::comment);
  return out;
}

std::string coloured(std::string_view text) {
  const std::vector<Style> styles = styles_of(text);
  if (styles.empty()) return std::string(text);
  std::string out;
  for (size_t at = 0; at < text.size();) {
    size_t end = at;
    while (end < text.size() && styles[end] == styles[at]) ++end;
    out += styled(text.substr(at, end - at), styles[at], true);
    at = end;
  }
  return out;
}

}  // namespace unisono::host
