#pragma once
#include <string>
#include <string_view>

#include "lang/format/format.h"
#include "lang/syntax/dump.h"
#include "lang/syntax/parser.h"

namespace unisono::lang::testing {

/// The tree without places: equal for two layouts of one program.
inline std::string tree_of(const Program& program) {
  std::string out;
  std::string_view rest = out;
  const std::string dump = dump_ast(program);
  rest = dump;
  while (!rest.empty()) {
    const std::string_view line = rest.substr(0, rest.find('\n'));
    out += line.substr(0, line.rfind(" @"));
    out += '\n';
    rest.remove_prefix(line.size() + 1);
  }
  return out;
}

/// What is wrong with the formatter on this text, or nothing. A text that does
/// not parse is fine.
inline std::string format_fault(const std::string& text) {
  const SourceFile file("a.uni", text);
  Diagnostics diagnostics;
  const ParseResult first = parse_as_written(file, diagnostics);
  if (!first.ok) return {};
  const std::string once = format(*first.program);

  const SourceFile file_once("b.uni", once);
  Diagnostics diagnostics_once;
  const ParseResult second = parse_as_written(file_once, diagnostics_once);
  if (!second.ok) return "does not parse:\n" + once + render(diagnostics_once);
  if (tree_of(*first.program) != tree_of(*second.program))
    return "has another tree:\n" + once;
  if (first.program->comments.size() != second.program->comments.size())
    return "lost a comment:\n" + once;
  for (size_t i = 0; i < first.program->comments.size(); ++i) {
    if (first.program->comments[i].span.text() !=
        second.program->comments[i].span.text()) {
      return "changed a comment:\n" + once;
    }
  }
  const std::string twice = format(*second.program);
  if (once != twice) return "once:\n" + once + "twice:\n" + twice;
  return {};
}

}  // namespace unisono::lang::testing
