#pragma once
// Tokens and trees as text, for `unisono inspect` and tests.
#include <string>

#include "lang/syntax/ast.h"

namespace unisono::lang {

/// One token a line: place, kind, text.
std::string dump_tokens(const SourceFile& file);
/// The tree, one node a line, indented by depth.
std::string dump_ast(const Program& program);
/// An expression with every operator in parentheses: `(a + (b * c))`.
std::string dump_expression(const Expr& expr);

}  // namespace unisono::lang
