#pragma once
// Code as HTML: spans of the real lexer's tokens, and links from names to what
// they mean.
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "host/lsp/names.h"

namespace unisono::host::manual {

/// What a name means: where it is told of, and what a pointer over it shows.
struct NameLink {
  std::string url;  // empty: no page of this manual has it
  std::string title;
  bool is_type = false;
};
/// Asked for each name that the text does not bind itself; nothing: unknown.
using LinkOf = std::function<std::optional<NameLink>(
    const lsp::Occurrence& occurrence, const lsp::Names& names)>;

/// A program, or a piece of one, also with mistakes.
std::string highlight(std::string_view code, const LinkOf& link);
/// The same of a text that is a session: inputs after `>>>` and `...`, and what
/// they print.
std::string highlight_session(std::string_view text, const LinkOf& link);
/// The parameters and result of a function: "pad(x, widths, value=0)"; no link
/// for its own name. `decorators` are lines before it.
std::string highlight_signature(std::string_view label, const LinkOf& link,
                                const std::string& decorators = "");

}  // namespace unisono::host::manual
