#pragma once
// Text in threaded code, and arrays that functions make. A register holds a
// number; what stands for text, for a tuple of texts or ints, or for such an
// array lies beside the registers, one for each, and is shared and counted as
// everywhere.
//
// A step has a quick way for what programs do most: text of ASCII, small ints.
// For all else it asks TextRun::evaluate, which does what the walk would.
#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "jit/bytecode/call_steps.h"
#include "lang/context/value.h"
#include "lang/context/walk.h"

namespace unisono::lang {

/// An array that a function has made: its register has the address of the view.
struct OwnArray : jit::bytecode::ElementView {
  std::vector<int64_t> shape;
  ArrayValue cell;              // it lies in the host's memory
  uint8_t* elements = nullptr;  // may be written, where one register holds it
};
std::shared_ptr<OwnArray> own_array(ArrayValue cell, uint8_t* elements,
                                    std::vector<int64_t> shape);
/// Null if there is no memory, or a size is negative, or they are too large.
std::shared_ptr<OwnArray> make_own_array(Walk& walk, DType dtype,
                                         std::vector<int64_t> shape);
/// One with the elements of another array of this shape.
std::shared_ptr<OwnArray> copy_own_array(Walk& walk, DType dtype,
                                         std::vector<int64_t> shape,
                                         const uint8_t* elements);

/// What belongs to a register that stands for text, a tuple, or an array that
/// was made here.
struct Held {
  Text text;
  std::shared_ptr<const TupleValue> items;
  std::shared_ptr<OwnArray> array = nullptr;
};

/// A run: what the steps find behind their StepRun.
struct TextRun : jit::bytecode::CallRun {
  Walk* host = nullptr;
  const uint64_t* first = nullptr;  // of all registers
  std::vector<Held> held;           // of each, as far as any was needed
  const Held* constants = nullptr;
  /// Computes the step's result another way. False: it failed.
  bool (*evaluate)(TextRun& run, const jit::Step* step,
                   uint64_t* window) = nullptr;

  Held& at(const uint64_t* window, uint32_t place) {
    return held[static_cast<size_t>(window - first) + place];
  }
};

/// "Held" is what belongs to a register. What has a result puts it in `out`.
enum class TextStep : uint8_t {
  /// A function begins that has so many registers, `number`.
  begin,
  /// held = constant `number`; in[0] and what it holds; that, of which nothing
  /// is left.
  constant,
  copy,
  move,
  /// What TextRun::evaluate gives.
  evaluate,
  /// in[0] + in[1].
  join,
  /// Text behind that of `out`: that of in[0], constant `number`, the digits of
  /// the int in[0]. Fails where it is too long.
  append,
  append_constant,
  append_int,
  /// A boolean: in[0] op in[1], with the Compare `number`.
  compare,
  /// A boolean: whether in[0] is a part of in[1]; or, if `number`, whether not.
  contains,
  /// The same, where constant in[1] is on the right.
  compare_constant,
  contains_constant,
  /// The character of in[0] at the int in[1].
  character,
  /// held = in[0], so that its characters are found at once; in[1] = how many.
  characters,
  /// The one at in[1], which is there, of what `characters` gave.
  next_character,
  /// From the int in[1] to in[2]; `number` says which are given, and the step
  /// (slice_number).
  slice,
  /// The text, or the int, that is item in[1] of the tuple in[0].
  text_item,
  int_item,
  /// The tuple `out` with one item more: the text, or the int, in[0]. Fails
  /// where it has `number` items already.
  add_text,
  add_int,
  /// Ints: how many characters, or items, in[0] has.
  length,
  items_length,
  /// Fails unless the tuple in[0] has `number` items, or some.
  require_items,
  require_some,
  /// An array of the type `number` (array_number), whose sizes are in in[0] and
  /// the registers behind it: of elements in[1]; of 0, 1, 2, ...; of those that
  /// the array in[0] (an ElementView) has. Fails where it cannot be made.
  make_array,
  count_array,
  copy_array,
};
jit::StepFunction text_step(TextStep step);

/// The element, of so many bytes, at place in[0] of the array `out` is in[1].
/// The array is then this register's alone.
jit::StepFunction store_element_step(int64_t bytes);

constexpr int64_t array_number(DType dtype, int rank) {
  return static_cast<int64_t>(rank) << 8 | static_cast<int64_t>(dtype);
}

/// `step` fits 32 bits.
constexpr int64_t slice_number(bool has_start, bool has_stop, int64_t step) {
  return step * 4 + (has_start ? 1 : 0) + (has_stop ? 2 : 0);
}

/// The quick way of a function of one text, or of an int (`chr`, `str`); the
/// one that asks for all if it has none.
jit::StepFunction text_function_step(std::string_view builtin);

}  // namespace unisono::lang
