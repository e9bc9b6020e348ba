#pragma once
// From text to a syntax tree.
#include <memory>

#include "lang/source/diagnostics.h"
#include "lang/syntax/ast.h"

namespace unisono::lang {

struct ParseResult {
  /// Never null. After errors it has the statements that could be read.
  std::unique_ptr<Program> program;
  /// True exactly when the parser ran out of input: with more text this may be
  /// a program. A REPL then asks for another line; everybody else shows the
  /// diagnostic, which is there, too.
  bool incomplete = false;
  bool ok = false;  ///< no errors
};

/// What to write instead of a word of another language; empty for all others.
std::string_view foreign_word_help(std::string_view word);

/// Parses a file, which outlives the program. Mistakes go to `diagnostics`. The
/// tree is one that the walk can run: jumps are lowered (jumps.h).
ParseResult parse(const SourceFile& file, Diagnostics& diagnostics);

/// The same with the tree as it is written, for who prints it.
ParseResult parse_as_written(const SourceFile& file, Diagnostics& diagnostics);

/// Parses some of a file's bytes, [begin, end): whole statements.
ParseResult parse_lines(const SourceFile& file, uint32_t begin, uint32_t end,
                        Diagnostics& diagnostics);

/// The same, of a file that is the head of one function, `def clip(x: f32[n],
/// most: f32) -> f32[n]`, perhaps with decorators: the program is a DefStmt
/// without a body. Anything else is a mistake (host_declaration).
ParseResult parse_declaration(const SourceFile& file, Diagnostics& diagnostics);

}  // namespace unisono::lang
