#pragma once
// The loops of the reference evaluator, one per kind of operation. Operands and
// results are dense, row-major, of concrete types; `out` has the result's size.
// All of them poll (runtime/stop.h).
#include <cstdint>
#include <optional>
#include <span>

#include "jit/ir/graph.h"

namespace unisono::jit::reference {

/// memcpy that polls.
void copy_bytes(uint8_t* to, const uint8_t* from, int64_t bytes);

/// One dense array.
struct View {
  const ir::Type& type;
  const uint8_t* data;
};

// lines.cpp: kinds that work along some axes
void reduce(const ir::Node& node, View x, uint8_t* out);
void argreduce(const ir::Node& node, View x, uint8_t* out);
void scan(const ir::Node& node, View x, uint8_t* out);
void sort(const ir::Node& node, View x, uint8_t* out);
/// The combination of all members' arrays (same type), in the members tree.
void combine_members(ir::ReduceOp op, const ir::Type& type,
                     std::span<const uint8_t* const> members, uint8_t* out);

// moves.cpp
void move(const ir::Node& node, std::span<const View> x, uint8_t* out);
void iota(const ir::Node& node, uint8_t* out);

// index.cpp
struct BadIndex {
  int64_t index, size;
  int axis;
};
/// `checked`: a bad index ends the work and is returned, otherwise it is
/// clamped. `out` of scatter already holds the operand's elements; x and
/// updates are as the operation's operands.
std::optional<BadIndex> gather(const ir::Node& node, std::span<const View> x,
                               bool checked, uint8_t* out);
/// The first bad index of a gather, whose array is not read.
std::optional<BadIndex> bad_index_of(const ir::Node& node,
                                     std::span<const View> x);
std::optional<BadIndex> scatter(const ir::Node& node, std::span<const View> x,
                                bool checked, uint8_t* out);

// dot.cpp
void dot(const ir::Node& node, View a, View b, uint8_t* out);

}  // namespace unisono::jit::reference
