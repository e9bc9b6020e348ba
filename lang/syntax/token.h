#pragma once
// Tokens: the rows of token.def.
#include <cstdint>
#include <string_view>

namespace unisono::lang {

enum class TokenKind : uint8_t {
#define SPECIAL(name, description, line_end) name,
#define PUNCTUATION(name, text, line_end) name,
#define KEYWORD(name, text, line_end) name,
#include "lang/syntax/token.def"
};

/// A token is the bytes [begin, end) of its file.
struct Token {
  TokenKind kind;
  bool line_start;  ///< a line end stands between it and the token before
  uint32_t begin;
  uint32_t end;
};

/// "LeftParen"
std::string_view name(TokenKind kind);
/// "(", "def"; empty for the special ones.
std::string_view spelling(TokenKind kind);
/// "`(`", "a name": how a message names the token.
std::string_view description(TokenKind kind);
bool is_keyword(TokenKind kind);
/// Whether a statement goes on after a line end behind this token.
bool continues_line(TokenKind kind);

}  // namespace unisono::lang
