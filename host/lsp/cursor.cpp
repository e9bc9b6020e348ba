#include "host/lsp/cursor.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include "lang/source/diagnostics.h"

namespace unisono::host::lsp {
namespace {

using lang::Token;
using lang::TokenKind;

class Reader {
 public:
  Reader(std::string_view text, std::vector<Token> tokens)
      : text_(text), tokens_(std::move(tokens)) {}

  std::string_view text(const Token& t) const {
    return text_.substr(t.begin, t.end - t.begin);
  }
  size_t size() const { return tokens_.size(); }
  const Token& operator[](size_t i) const { return tokens_[i]; }
  bool is(size_t i, TokenKind kind) const {
    return i < tokens_.size() && tokens_[i].kind == kind;
  }
  bool is_word(size_t i) const {
    return i < tokens_.size() && (tokens_[i].kind == TokenKind::Identifier ||
                                  lang::is_keyword(tokens_[i].kind));
  }

  /// The chain that ends before token `end`; `first` becomes that of its
  /// beginning.
  Chain chain(size_t end, size_t* first = nullptr) const {
    Chain out;
    size_t i = end;
    while (i > 0 && is_word(i - 1) &&
           (is(i - 1, TokenKind::Identifier) || is(i - 2, TokenKind::Dot))) {
      out.names.insert(out.names.begin(), std::string(text(tokens_[i - 1])));
      --i;
      if (i == 0 || !is(i - 1, TokenKind::Dot)) break;
      --i;
      out.continues = i > 0 && !is_word(i - 1);
      if (out.continues) break;
    }
    if (out.names.empty()) out.continues = true;
    if (first) *first = i;
    return out;
  }

  /// The innermost call that is open behind the last token.
  std::optional<OpenCall> call() const {
    int depth = 0, commas = 0;
    // Where the last argument begins, once that is known.
    std::optional<size_t> argument;
    bool nested = false;  // in a tuple or an index in it
    std::vector<std::string> given;
    const auto note_name = [&](size_t begin) {
      if (depth == 0 && is_word(begin) && is(begin + 1, TokenKind::Assign))
        given.emplace_back(text(tokens_[begin]));
    };
    for (size_t i = tokens_.size(); i-- > 0;) {
      switch (tokens_[i].kind) {
        case TokenKind::RightParen:
        case TokenKind::RightBracket:
        case TokenKind::RightBrace: ++depth; break;
        case TokenKind::LeftBrace:
          if (depth-- == 0) return std::nullopt;
          break;
        case TokenKind::LeftBracket:
          if (depth > 0) {
            --depth;
            break;
          }
          commas = 0;  // items of an index or array
          given.clear();
          argument.reset();
          nested = true;
          break;
        case TokenKind::LeftParen: {
          if (depth > 0) {
            --depth;
            break;
          }
          const bool is_call =
              i > 0 && !tokens_[i].line_start &&
              (is_word(i - 1) || is(i - 1, TokenKind::RightParen) ||
               is(i - 1, TokenKind::RightBracket));
          const bool keyword = i > 0 && lang::is_keyword(tokens_[i - 1].kind) &&
                               !is(i - 2, TokenKind::Dot);
          if (!is_call || keyword) {
            commas = 0;  // items of a tuple
            given.clear();
            argument.reset();
            nested = true;
            break;
          }
          note_name(i + 1);
          std::optional<OpenCall> out =
              finish(i, commas, argument.value_or(i + 1), std::move(given));
          if (out) out->at_start &= !nested;
          return out;
        }
        case TokenKind::Comma:
          if (depth > 0) break;
          ++commas;
          if (!argument) argument = i + 1;
          note_name(i + 1);
          break;
        default: break;
      }
    }
    return std::nullopt;
  }

 private:
  std::optional<OpenCall> finish(size_t paren, int commas, size_t argument,
                                 std::vector<std::string> given) const {
    OpenCall out;
    size_t first = paren;
    out.callee = chain(paren, &first);
    // `def f(`, `fn(` are no calls.
    if (first > 0 && is(first - 1, TokenKind::Def)) return std::nullopt;
    out.at = paren > 0 ? tokens_[paren - 1].begin : 0;
    out.argument = commas;
    out.at_start = argument >= tokens_.size();
    if (is_word(argument) && is(argument + 1, TokenKind::Assign))
      out.name = std::string(text(tokens_[argument]));
    if (out.name) std::erase(given, *out.name);
    out.given = std::move(given);
    return out;
  }

  std::string_view text_;
  std::vector<Token> tokens_;
};

/// The tokens of the interpolation around a byte of a string; nothing if it is
/// in the text.
std::optional<std::vector<Token>> interpolation(const Syntax& syntax,
                                                const Token& string,
                                                uint32_t offset) {
  const std::string_view text = syntax.text().str();
  for (uint32_t i = string.begin + 1; i < offset; ++i) {
    if (text[i] == '\\') ++i;
    if (text[i] != '{' || i >= offset) continue;
    const auto end = lang::find_interpolation_end(text, i + 1);
    if (!end) return std::nullopt;
    if (offset > end->close) {
      i = end->close;
      continue;
    }
    if (offset > end->colon) return std::nullopt;  // in its format
    lang::Diagnostics diagnostics;
    return lang::lex_part(*syntax.program().file, i + 1, end->colon,
                          diagnostics)
        .tokens;
  }
  return std::nullopt;
}

bool binds_a_name(TokenKind kind) {
  return kind == TokenKind::Let || kind == TokenKind::Var ||
         kind == TokenKind::Def || kind == TokenKind::For;
}

}  // namespace

Cursor cursor_at(const Syntax& syntax, uint32_t offset) {
  Cursor out;
  const std::vector<lang::Comment>& comments = syntax.program().comments;
  for (const lang::Comment& comment : comments)
    if (comment.span.begin < offset && offset <= comment.span.end) return out;
  std::vector<Token> tokens = syntax.tokens();
  const auto at = std::ranges::find_if(tokens, [&](const Token& t) {
    return t.kind == TokenKind::String && t.begin < offset && offset < t.end;
  });
  if (at != tokens.end()) {
    auto inside = interpolation(syntax, *at, offset);
    if (!inside) return out;
    tokens = std::move(*inside);
  }
  // What is being typed is no part of what stands before it.
  std::erase_if(tokens, [&](const Token& t) {
    const bool word =
        t.kind == TokenKind::Identifier || lang::is_keyword(t.kind);
    return t.begin >= offset || t.kind == TokenKind::EndOfFile ||
           t.kind == TokenKind::EndOfPart || (word && t.end >= offset);
  });
  const Reader before(syntax.text().str(), std::move(tokens));
  out.call = before.call();
  const size_t count = before.size();
  if (count == 0) {
    out.where = Cursor::Where::name;
    return out;
  }
  const Token& last = before[count - 1];
  const bool same_line =
      syntax.text().line_of(last.begin) == syntax.text().line_of(offset);
  if (last.kind == TokenKind::Invalid && last.end >= offset) return out;
  if (last.kind == TokenKind::Dot) {
    out.where = Cursor::Where::member;
    out.object = before.chain(count - 1);
  } else if (last.kind == TokenKind::Import && same_line) {
    out.where = Cursor::Where::module;
  } else if (!(binds_a_name(last.kind) && same_line) &&
             !((last.kind == TokenKind::Integer ||
                last.kind == TokenKind::Float) &&
               last.end == offset)) {
    out.where = Cursor::Where::name;
  }
  return out;
}

}  // namespace unisono::host::lsp
