#pragma once
#include <string>

#include "lang/syntax/dump.h"
#include "lang/syntax/parser.h"

namespace unisono::lang::testing {

/// A text, parsed, with all that must outlive the tree.
struct Parsed {
  explicit Parsed(std::string text)
      : file("t.uni", std::move(text)),
        result(parse_as_written(file, diagnostics)) {}

  const Program& program() const { return *result.program; }
  /// The numbers of the messages: "U0101 U0103".
  std::string codes() const {
    std::string out;
    for (const Diagnostic& d : diagnostics.all()) {
      if (!out.empty()) out += ' ';
      out += info(d.code).number;
    }
    return out;
  }

  SourceFile file;
  Diagnostics diagnostics;
  ParseResult result;
};

/// The expression that is the whole text, with all parentheses; or the codes
/// of what is wrong with it.
inline std::string shape(const std::string& text) {
  const Parsed parsed(text);
  if (!parsed.result.ok) return parsed.codes();
  const auto& statements = parsed.program().statements;
  if (statements.size() != 1) return "not one statement";
  const auto* statement = as<ExprStmt>(*statements[0]);
  return statement ? dump_expression(*statement->expr) : "not an expression";
}

/// "complete", "incomplete" or the codes of what is wrong.
inline std::string status(const std::string& text) {
  const Parsed parsed(text);
  if (parsed.result.incomplete) return "incomplete";
  return parsed.diagnostics.empty() ? "complete" : parsed.codes();
}

}  // namespace unisono::lang::testing
