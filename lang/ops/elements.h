#pragma once
// Elements of arrays, where the host reads and writes them itself, one by one
// or in boxes (run mode).
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "lang/context/value.h"
#include "lang/context/walk.h"
#include "lang/ops/indexing.h"

namespace unisono::lang {

struct IndexPlan;  // index_plan.h

/// Whether the host itself reads, computes and writes elements: in run mode, of
/// a program that is run and not only compiled, where the first device is a
/// CPU.
bool is_computed_here(Walk& walk);

/// All elements of an array that is there, dense and row-major, in memory that
/// the host reads; they stay as long as `cell` holds its array. Null if they
/// are still to be computed, were given away, lie in pieces, on a GPU, or only
/// as one element that stands for all.
const uint8_t* readable_elements(const ArrayCell& cell);

/// The position in an axis of `size` elements that an integer scalar names, if
/// the host can read it and it is in range; one from the end counts from the
/// start then.
std::optional<int64_t> position_there(const ArrayCell& scalar,
                                      const ir::Dim& size);

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

/// The element of a computed array that the items name; null where they name
/// more, or `index` has to do it or to say what is wrong.
ArrayValue element_at(Walk& walk, const ArrayCell& array,
                      const std::vector<IndexItem>& items);

// ---- writes, in run mode ----
// They are done in place if nothing else holds the array or its memory, else
// after its elements were copied into an array of the variable's own on the
// first device, which it then is. So each other holder keeps what it saw:
// another name, a tuple, a graph that captured the array, a journal, the host,
// an input of a session that may be taken back. Memory that is borrowed counts
// as held. `variable` must be the caller's only reference, as each other one
// counts: it is the binding's own value, or was moved out of it.
//
// Each is false, and nothing is changed, where an update has to go through a
// graph: for what `readable_elements` cannot read (but constants become
// arrays), where is_computed_here is false, and where there is no memory, which
// the graph will say.

/// `variable[items] = value` for one element, by the rules of `update`. False,
/// too, where it is no single element, is not known yet, or `update` has to say
/// what is wrong. A literal that the element type cannot hold is an error.
bool set_element(Walk& walk, ArrayValue& variable,
                 const std::vector<IndexItem>& items,
                 const CallArgument& value);

/// What `scatter` with these operands (ir::Op) gives for the array that
/// `variable` holds, written to it: by the host, or, of many elements and where
/// it pays, by compiled code to which the array is given away. False, too,
/// where `updates` or `indices` are not computed yet, an index is out of range,
/// or there are many elements and something else holds the array.
bool scatter_in_place(Walk& walk, ir::Op scatter, ArrayValue& variable,
                      const ArrayValue& updates,
                      const std::vector<ArrayValue>& indices,
                      const ir::IndexAttrs& attrs, Span where);

/// Whether the reference evaluator is to compute a graph of arrays that lie on
/// the first device: code for it would take longer to make. It counts as a run.
bool is_evaluated(Walk& walk, const ir::Graph& graph);

/// Compiles a graph with one output for the first device and runs it. Its first
/// input is the array of `variable`, which lies there, and which nothing else
/// holds: its memory is given away, and the output is the array of `variable`
/// then. `others` are the other inputs. Of a run that fails after it has begun
/// no array is left.
void overwrite(Walk& walk, ir::Graph graph, ArrayCell& variable,
               std::vector<unisono::Array> others, Span where);

// ---- boxes: elements that lie evenly along each axis ----

/// `base[...]` as a copy of a box whose place a number of the host decides, so
/// that no code is made for that place; and of an array that is split over
/// devices this box alone is moved, to the first one. Null where a graph is to
/// read it: `base` is not there, or on GPUs; the place stands in the program;
/// each device can read in its own block; or whole rows are so large that
/// compiled code shall read them where they lie.
ArrayValue read_box(Walk& walk, const ArrayValue& base, const IndexPlan& plan,
                    Span where);

/// `variable[...] = value` for a box, by the rules of update_variable; `value`
/// is checked, has the element type, and is broadcast to the box. What is
/// pending is computed before, where `value` waits for it or it may hold the
/// array. Of a split array each block that the box touches is written in its
/// place, or replaced by a copy if something else holds it. False, too, where
/// that is all elements, or most of a large array by a value that is still to
/// be computed.
bool store_box(Walk& walk, ArrayValue& variable, const IndexPlan& plan,
               const ArrayValue& value, bool is_joined, Span where);

/// Where the host may write to the array of `variable`: computes what is
/// pending if one of these waits for it, or if `variable` has other holders, of
/// which the pending graph may be one.
void release(Walk& walk, const ArrayValue& variable,
             std::span<const ArrayValue> operands, Span where);

}  // namespace unisono::lang
