#pragma once
#include <memory>

#include "lang/source/diagnostics.h"
#include "lang/syntax/ast.h"

namespace unisono::lang {

struct ParseResult {
  /// Never null. With errors, what could be read.
  std::unique_ptr<Program> program;
  /// True exactly when the parser ran out of input: more text may make a
  /// program of it. A REPL then asks for another line; everybody else shows
  /// the diagnostic, which is there too.
  bool incomplete = false;
  bool ok = false;  ///< no errors
};

/// What to write instead of a word of another language; empty if it is none.
std::string_view foreign_word_help(std::string_view word);

/// Text to syntax tree. `file` outlives the program.
ParseResult parse(const SourceFile& file, Diagnostics& diagnostics);

}  // namespace unisono::lang
