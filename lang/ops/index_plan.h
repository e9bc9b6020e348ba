#pragma once
// The meaning of the items between the brackets of an array, axis by axis, for
// `index`, `update` and `scatter_add`.
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "lang/ops/array_ops.h"
#include "lang/ops/indexing.h"

namespace unisono::lang {

/// One item, or an axis that no item names.
struct Selection {
  enum class Kind : uint8_t {
    full,      // the whole axis
    slice,     // start, start + step, ..., `size` of them
    window,    // the same of compiled code, where `index` is the start
    position,  // one known element; the result has no such axis
    computed,  // elements at the positions that an integer array holds
    newaxis,   // no axis of the array: a new one of size 1
  };
  Kind kind = Kind::full;
  int axis = -1;  // of the array; -1 for newaxis
  ir::Dim start = 0, step = 1, size = 1;
  ArrayValue index;      // of computed and window: i32 or i64
  bool checked = false;  // of computed: may be out of range
  /// Of computed, in run mode: the position, if a lone number that is there
  /// says it, and it is in range.
  std::optional<int64_t> place;
  /// A number of the host decides where this is: another turn, another place.
  bool moves = false;
  Span where;
};

/// All items in order, every axis once.
struct IndexPlan {
  std::vector<Selection> selections;
  /// The common shape of computed indices, and where its axes stand in the
  /// result: at the first computed item if they are side by side, else first.
  ir::Shape computed_shape;
  bool has_computed = false;
  bool computed_first = false;

  /// The shape of the result.
  ir::Shape shape() const;
  /// Whether it may leave elements out.
  bool selects() const;
  /// The selections that the result's axes come from, in order; null where the
  /// axes of computed_shape stand.
  std::vector<const Selection*> layout() const;
};

/// The plan for an array of this type. An error for items that do not fit.
IndexPlan plan_index(Walk& walk, const ir::Type& type,
                     const std::vector<IndexItem>& items, Span where);

/// The computed indices, in order, at their common shape and element type.
std::vector<ArrayValue> computed_indices(Walk& walk, const IndexPlan& plan,
                                         Span where);
/// The positions of a window or slice.
ArrayValue positions_of(Walk& walk, const Selection& s, Span where);

/// Where a boolean array is true: one index array per axis. In run mode only;
/// while checking, their size is a new symbol.
std::vector<ArrayValue> positions_of_true(Walk& walk, const ArrayValue& mask,
                                          Span where);

/// The elements of `base` where a mask of its shape is true, in order, copied
/// from where they lie; null where `base` is not computed yet, or a graph has
/// to do it.
ArrayValue elements_of_true(Walk& walk, const ArrayValue& base,
                            const ArrayValue& mask, Span where);

struct SliceRange {
  ir::Dim start = 0, step = 1, size = 0;
};
/// A slice of `n` elements, cut to what there is as NumPy does; `step` is not
/// 0.
SliceRange known_slice(std::optional<int64_t> start,
                       std::optional<int64_t> stop, int64_t step, int64_t n);
/// The same of an axis of `size` elements.
SliceRange slice_range(Walk& walk, const IndexItem& item, const ir::Dim& size);

/// `base` with `value` set at, or added to, the selected elements; `scatter` is
/// the operation.
ArrayValue update_array(Walk& walk, ir::Op scatter, const ArrayValue& base,
                        const std::vector<IndexItem>& items,
                        const CallArgument& value, Span where);

}  // namespace unisono::lang
