#pragma once
// Number literals: exact to 64 bits, and without an element type until they
// meet one. Such a number is an ArrayCell that is `weak`, a scalar of f64 or
// i64 (u64 beyond i64); an IntValue is a literal, too. Operations of weak
// numbers alone give weak numbers, and are computed at once if all are known.
#include <optional>
#include <span>
#include <string>

#include "jit/ir/graph.h"
#include "lang/context/value.h"
#include "lang/source/source.h"
#include "runtime/dtype.h"

namespace unisono::lang {

class Walk;

/// The type that weak numbers are computed in: f64 for floats, else i64.
inline DType literal_dtype(bool floating) {
  return floating ? DType::F64 : DType::I64;
}
/// The element type that a weak number takes alone, f32 or i32; of other
/// arrays theirs.
DType default_dtype(const ArrayCell& array);
/// The type that people see: with the default_dtype.
ir::Type shown_type(const ArrayCell& array);

/// The number that an int or a written literal is, if it is known.
std::optional<double> literal_of(const Value& value);
/// The integer that a constant weak number is; nothing for floats, and beyond
/// i64.
std::optional<int64_t> known_integer(const ArrayCell& array);

/// A map operation of weak constants alone, computed now: of element type
/// `result`, and weak unless that is bool. Nothing if one of `operands` is no
/// such constant, or an element is at fault.
std::optional<ArrayValue> fold_literals(ir::Op op,
                                        std::span<const ArrayValue> operands,
                                        DType result);
/// A weak constant as an element of `dtype`, no longer weak. A literal that the
/// type cannot hold is an error; what a `var` holds is converted as by a cast.
ArrayValue adopt_dtype(Walk& walk, const ArrayCell& constant, DType dtype,
                       Span where);

/// Ends the attempt to compile code for any value of an `int` of its call
/// (number_attempt.h).
[[noreturn]] void give_up_int_argument(Span where);
/// To be called where the values of `numbers` are needed: ends the attempt, if
/// there are any, and marks them as needed.
void require_known(const CallNumbers& numbers, Span where);
/// The same for the numbers that `number`, if it is weak, was computed from.
void require_known(const ArrayCell& number, Span where);

/// The least and the greatest integer of a type: "0 to 255".
std::string integer_range(DType dtype);

/// An error if a finite number, written at `where`, would be infinite.
void require_finite(Walk& walk, double value, DType dtype, Span where);

}  // namespace unisono::lang
