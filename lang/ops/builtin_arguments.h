#pragma once
// Arguments of a builtin, read as what they should be. What does not fit is an
// error that names the argument, what it is, and what was expected.
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lang/context/builtin.h"
#include "lang/context/walk.h"

namespace unisono::lang {

/// Argument `i`, or null if it is left out or `none`.
const CallArgument* given(const BuiltinCall& call, size_t i);

/// An array, or an int or bool as one.
ArrayValue array_argument(BuiltinCall& call, size_t i);
/// The same; a number without an element type stays one.
ArrayValue operand_argument(BuiltinCall& call, size_t i);
/// An int: a number known when the program is compiled (a symbol in check
/// mode, perhaps).
ir::Dim int_argument(BuiltinCall& call, size_t i);
ir::Dim int_argument_or(BuiltinCall& call, size_t i, ir::Dim otherwise);
/// An int whose value is needed now: no symbol will do.
int64_t known_int_argument(BuiltinCall& call, size_t i);
/// A bool that is known now.
bool bool_argument_or(BuiltinCall& call, size_t i, bool otherwise);
/// A str that is known now.
std::string str_argument(BuiltinCall& call, size_t i);
/// An element type: `f32`.
DType dtype_argument(BuiltinCall& call, size_t i);
std::optional<DType> dtype_argument_or_none(BuiltinCall& call, size_t i);
/// Sizes: an int or a tuple of ints, none of them negative but for -1 where
/// `allow_minus_one`.
ir::Shape shape_argument(BuiltinCall& call, size_t i,
                         bool allow_minus_one = false);
/// An int or a tuple of ints, each known.
std::vector<int64_t> known_ints_argument(BuiltinCall& call, size_t i);

/// Axis `i` of an array of this type, counted from 0: negative ones count from
/// the end. `extra` axes more are allowed (for a new axis: 1).
int axis_argument(BuiltinCall& call, size_t i, const ir::Type& type,
                  int extra = 0);
/// An int or a tuple of ints: ascending, each once. All axes if it is not
/// given.
std::vector<int> axes_argument(BuiltinCall& call, size_t i,
                               const ir::Type& type);
int normalise_axis(BuiltinCall& call, int64_t axis, const ir::Type& type,
                   int rank, Span where);

/// "argument `axis` of `sum`", for messages.
std::string describe_argument(const BuiltinCall& call, size_t i);
/// Fails: argument `i` is not what was `expected` ("a tuple of arrays").
[[noreturn]] void wrong_argument(BuiltinCall& call, size_t i,
                                 std::string_view expected);
/// The same about an item of the argument.
[[noreturn]] void wrong_argument(BuiltinCall& call, size_t i,
                                 const Value& value, std::string_view expected);
/// "(2, 3)", "(2,)": a shape as it is written.
std::string shape_text(const ir::Shape& shape);
/// An error for a size that is negative or that no number can hold.
void check_size(Walk& walk, const ir::Dim& size, Span where);

}  // namespace unisono::lang
