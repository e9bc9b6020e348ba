#pragma once
#include <span>

#include "jit/ir/graph.h"

namespace unisono::jit {

/// A counted loop, whose operands have these types, as one with a condition.
/// Its operands are: an i64 scalar that is 0, or turns - 1 backwards; the
/// carries; the stacks, with any contents; the rows and captures. Its carries
/// are the first three, and results accordingly.
ir::LoopAttrs plain_loop(const ir::LoopAttrs& loop,
                         std::span<const ir::Type> operands);

}  // namespace unisono::jit
