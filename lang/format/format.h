#pragma once
#include <string>

#include "lang/syntax/ast.h"

namespace unisono::lang {

/// The program in the one layout there is. Keeps every comment, at most one
/// empty line between statements, and the user's choice to spread a bracket
/// over several lines; the result parses to the same tree, and formatting it
/// again changes nothing. The program was parsed without errors.
std::string format(const Program& program);

}  // namespace unisono::lang
