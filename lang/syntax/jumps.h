#pragma once
// `break`, `continue` and `return`, checked and lowered.
//
// A jump is lowered to what the walk and compiled code know already: an `if`
// with the statements after it in a branch, and flags that loops look at.
//
//   if c { return a }            if c { a } else { rest }
//   rest
//
//   for x in xs {                for x in xs {            # left: `break 1`
//     if c { break }               if c { break } else { rest }
//     rest                       }
//   }
//
// A flag is a `var` of type `bool`, whose name no program can have, as it has a
// space (is_hidden): `break N` says that the N-th loop, from the outermost, is
// left, `continue N` that the rest of its turn is skipped, `return flag` that
// the function has its result, which `return value` then is. A JumpStmt that is
// left in the tree sets its flags, and is the last statement of its block.
#include <string>
#include <string_view>

#include "lang/source/diagnostics.h"
#include "lang/syntax/ast.h"

namespace unisono::lang {

/// Reports jumps that stand outside of what they leave, or where a value is
/// computed.
void check_jumps(const Program& program, Diagnostics& diagnostics);

/// Lowers the jumps of a program, in which check_jumps found no mistake.
void lower_jumps(Program& program);

inline const std::string return_flag = "return flag";
inline const std::string return_value = "return value";

/// Whether a variable is one of those that lowering makes.
inline bool is_hidden(std::string_view name) {
  return name.find(' ') != std::string_view::npos;
}

}  // namespace unisono::lang
