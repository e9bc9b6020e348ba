#pragma once
// The evaluation of single nodes, and values as dense arrays.
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

/// Whether `run_node` evaluates nodes of a kind: their work is in their
/// operands and result alone.
bool evaluates(ir::Kind kind);

/// The value of a node that is no control, collective or host call. An error
/// names the node's place in the program.
Result<Value> run_node(const ir::Node& node, std::span<const Operand> operands,
                       bool checked);

/// Writes all elements to `out`, which has the bytes of the type.
void copy_dense(const Value& value, const ir::Type& type, uint8_t* out);
/// The value with every element held by itself; not ok() if there is no memory.
Value dense(const Value& value, const ir::Type& type);

/// "f32[1000000, 1000000] needs 4000000000000 bytes"
Error out_of_memory(const ir::Type& type);
/// Whether a value of the type may be held at all (evaluate() in reference.h).
bool fits_in_memory(const ir::Type& type);

}  // namespace unisono::jit::reference
