#pragma once
// What a concat or pad is read as: a choice of sources by position
// (Expr::Kind::choice), with no array of its own. Positions are known, so
// nothing is chosen at run time: loops are cut where a choice changes.
#include <cstdint>
#include <vector>

#include "jit/kernel/kernel.h"

namespace unisono::jit {

/// Places inside an axis of a nest: an index at each, the first of a new part.
struct AxisCuts {
  size_t axis = 0;
  std::vector<int64_t> at = {};
};
/// Where the operand of a choice changes in a nest with these extents. Its
/// index crosses one axis at most.
AxisCuts cuts_of(const Expr& choice, const std::vector<int64_t>& extents);

/// The nest in parts, in each of which all choices that differ along other axes
/// than `last` are made; the others stay. `last` is -1, or the last axis.
std::vector<Nest> cut_choices(Nest nest, int last);

/// A part of an axis along which alone the nest's choices differ.
struct Segment {
  int64_t begin = 0, end = 0;
  /// By expression: the operand that a choice is here, and whether its value is
  /// asked for.
  std::vector<ExprId> chosen = {};
  std::vector<bool> needed = {};
};
/// The axis, cut where choices change; in one piece if there are none. No
/// choice differs along another axis.
std::vector<Segment> segments(const Nest& nest, int axis);

}  // namespace unisono::jit
