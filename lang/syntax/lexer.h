#pragma once
// From text to tokens.
#include <optional>
#include <string_view>
#include <vector>

#include "lang/source/diagnostics.h"
#include "lang/syntax/ast.h"
#include "lang/syntax/token.h"

namespace unisono::lang {

/// After so many mistakes the rest of a file is not read.
inline constexpr size_t max_errors = 20;
/// A larger file is an error, and is not read.
inline constexpr size_t max_file_bytes = 4 << 20;

struct Tokens {
  std::vector<Token> tokens;  ///< the last one is EndOfFile or EndOfPart
  std::vector<Comment> comments;
};

/// The tokens of a file. There are no tokens for line ends: each token knows
/// whether it starts a line, and the parser knows whether that matters. A
/// string is one token with everything in its interpolations. Bytes that are no
/// token are reported here, and stand in the list as Invalid.
Tokens lex(const SourceFile& file, Diagnostics& diagnostics);

/// The same of some of a file's bytes, [begin, end), which are known to be
/// text.
Tokens lex_lines(const SourceFile& file, uint32_t begin, uint32_t end,
                 Diagnostics& diagnostics);

/// The tokens of one interpolation, the bytes [begin, end).
Tokens lex_part(const SourceFile& file, uint32_t begin, uint32_t end,
                Diagnostics& diagnostics);

/// Whether names may have the letter beyond ASCII: Latin, Greek, Cyrillic.
bool is_foreign_letter(char32_t letter);

/// Offsets of the `}` that closes an interpolation, and of the `:` before its
/// format, or again of the `}` if there is no format.
struct InterpolationEnd {
  uint32_t colon;
  uint32_t close;
};
/// The end of the interpolation whose first byte is `begin` (after the `{`).
/// Strings and brackets inside are skipped. Nothing if it does not close on its
/// line.
std::optional<InterpolationEnd> find_interpolation_end(std::string_view text,
                                                       uint32_t begin);

}  // namespace unisono::lang
