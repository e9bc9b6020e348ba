#pragma once
#include <string>
#include <string_view>

#include "jit/ir/graph.h"
#include "runtime/result.h"

namespace unisono::ir {

/// The printed form, one line per node: `%3: f32[4, 3] = mul %1, %2`, then
/// attributes as `name=value` where they are not what the type says or the
/// usual ones, then `@source`. The last line is `return %3, %5`.
std::string print(const Graph& graph);
/// Reads the printed form; print(parse(print(g))) == print(g). The result is
/// well-formed (verify.h). Never crashes on bad input: an error
/// (compile_failed) names the line.
Result<Graph> parse(std::string_view text);

}  // namespace unisono::ir
