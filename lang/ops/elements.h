#pragma once
// Elements of arrays, where the host reads and writes them itself (run mode).
#include <cstdint>

#include "lang/context/value.h"
#include "lang/context/walk.h"
#include "lang/ops/indexing.h"

namespace unisono::lang {

/// All elements of an array that is there, dense and row-major, in memory that
/// the host reads; they stay as long as `cell` holds its array. Null if they
/// are still to be computed, were given away, lie in pieces, on a GPU, or only
/// as one element that stands for all.
const uint8_t* readable_elements(const ArrayCell& cell);

/// An array on the first device, a CPU, and its elements, which are to be set;
/// null if there is no memory.
struct UnsetArray {
  ArrayValue array;
  uint8_t* elements;
};
UnsetArray unset_array(Walk& walk, DType dtype, const ir::Shape& shape);
inline UnsetArray unset_array(Walk& walk, const ir::Type& type) {
  return unset_array(walk, type.dtype, type.shape);
}

/// All elements of `variable`, dense and row-major, for writing: in place if
/// nothing else holds the array or its memory, else after they were copied into
/// an array of `variable`'s own on the first device, which it then is. So each
/// other holder keeps what it saw: another name, a tuple, a graph that captured
/// the array, a journal, the host, an input of a session that may be taken
/// back. Memory that is borrowed counts as held.
///
/// `variable` must be the caller's only reference, as each other one counts:
/// it is the binding's own value, or was moved out of it. The pointer serves
/// until somebody else may hold the array: it is asked for again for each
/// write, which costs a few loads.
///
/// Null, and nothing is changed, where an update has to go through a graph: for
/// what `readable_elements` cannot read (but constants become arrays), numbers
/// without an element type, a first device that is a GPU, programs that are
/// compiled and not run; and where there is no memory, which the graph will
/// say.
uint8_t* own_elements(Walk& walk, ArrayValue& variable);

/// The element of a computed array that the items name; null where they name
/// more, or `index` has to do it or to say what is wrong.
ArrayValue element_at(Walk& walk, const ArrayCell& array,
                      const std::vector<IndexItem>& items);
/// `variable[items] = value` for one element, by the rules of `update`, in
/// place where `own_elements` allows it. False, and nothing is changed, where
/// it is no single element, is not known yet, or `update` has to say what is
/// wrong. A literal that the element type cannot hold is an error.
bool set_element(Walk& walk, ArrayValue& variable,
                 const std::vector<IndexItem>& items,
                 const CallArgument& value);

/// What `scatter` with these operands (ir::Op) gives for the array that
/// `variable` holds, written to it. False, and nothing is changed, where
/// `own_elements` does not allow it, `updates` or `indices` are not computed
/// yet, they are so many that compiled code is better, or an index is out of
/// range.
bool scatter_in_place(Walk& walk, ir::Op scatter, ArrayValue& variable,
                      const ArrayValue& updates,
                      const std::vector<ArrayValue>& indices,
                      const ir::IndexAttrs& attrs);

}  // namespace unisono::lang
