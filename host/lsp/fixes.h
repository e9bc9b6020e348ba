#pragma once
// What to write instead of a mistake: the `help:` of a message, as edits.
#include <cstdint>
#include <string>
#include <vector>

#include "host/lsp/syntax.h"
#include "lang/source/diagnostics.h"

namespace unisono::host::lsp {

/// The bytes [begin, end) become `text`.
struct TextEdit {
  uint32_t begin, end;
  std::string text;
};
/// Edits that belong together; none lie inside one another.
struct Fix {
  std::string title;  // "Change to `total`"
  std::vector<TextEdit> edits;
};

/// Those of a message about this text; none where its help does not name
/// exactly what to write. Several are choices.
std::vector<Fix> fixes(const lang::Diagnostic& message, const Syntax& syntax);

}  // namespace unisono::host::lsp
