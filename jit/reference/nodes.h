#pragma once
#include <span>

#include "jit/ir/graph.h"
#include "jit/reference/value.h"
#include "runtime/result.h"

namespace unisono::jit::reference {

/// One operand of a node: its type, and its value, which the node may take over
/// if it `dies` there.
struct Operand {
  const ir::Type* type;
  Value* value;
  bool dies = false;
};

/// The value of a node that is no control, collective or host call. An error
/// has the node's source.
Result<Value> run_node(const ir::Node& node, std::span<const Operand> operands,
                       bool checked);

/// All elements to `out`.
void copy_dense(const Value& value, const ir::Type& type, uint8_t* out);
/// The same elements, none of them repeated; `!ok()` without memory.
Value dense(const Value& value, const ir::Type& type);

/// "f32[1000000, 1000000] needs 4000000000000 bytes"
Error out_of_memory(const ir::Type& type);
/// Whether a value of the type may be held at all.
bool fits_in_memory(const ir::Type& type);

}  // namespace unisono::jit::reference
