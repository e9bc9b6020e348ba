#pragma once
// Number literals: exact to 64 bits, and without an element type until they
// meet one. In an ArrayCell that is `weak`, and a scalar of f64 or i64 (u64
// beyond i64); an IntValue is a literal, too. Operations of weak numbers alone
// give weak numbers, and are computed where they stand if both are known.
#include <optional>
#include <span>
#include <string>

#include "jit/ir/graph.h"
#include "lang/context/value.h"
#include "lang/source/source.h"
#include "runtime/dtype.h"

namespace unisono::lang {

class Walk;

/// What a weak number is computed in: f64 for floats, else i64.
inline DType literal_dtype(bool floating) {
  return floating ? DType::F64 : DType::I64;
}
/// What it is alone: f32 or i32; of other arrays their element type.
DType default_dtype(const ArrayCell& array);
/// The type that people see, with that element type.
ir::Type shown_type(const ArrayCell& array);

/// The number that an int or a written literal is, if it is known.
std::optional<double> literal_of(const Value& value);
/// The integer that a constant weak number is; nothing for floats, and beyond
/// i64.
std::optional<int64_t> known_integer(const ArrayCell& array);

/// A map operation of weak constants alone, computed now. Nothing if one of
/// `operands` is no such constant, or an element is at fault.
std::optional<ArrayValue> fold_literals(ir::Op op,
                                        std::span<const ArrayValue> operands,
                                        DType result);
/// The constant as an element of `dtype`, no longer weak. A literal, and an
/// integer, that the type cannot hold is an error.
ArrayValue adopt_dtype(Walk& walk, const ArrayCell& constant, DType dtype,
                       Span where);

/// Ends the attempt to compile code for any value of an `int` of its call
/// (number_attempt.h).
[[noreturn]] void give_up_int_argument(Span where);
/// The same, if there are numbers of the call among `numbers`, the values of
/// which are asked for.
void require_known(const CallNumbers& numbers, Span where);
/// The same for those that a weak `number` was computed from.
void require_known(const ArrayCell& number, Span where);

/// The least and the greatest integer of a type: "0 to 255".
std::string integer_range(DType dtype);

/// An error if a finite number, written at `where`, would be infinite.
void require_finite(Walk& walk, double value, DType dtype, Span where);

}  // namespace unisono::lang
