#pragma once
// Arguments of a builtin, read as what they should be. Where an argument is
// something else these functions end in Walk::fail, with an error that names
// the argument, what it is, and what was expected.
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lang/context/builtin.h"
#include "lang/context/walk.h"

namespace unisono::lang {

/// An array, or an int or bool as one.
ArrayValue array_argument(Argument argument);
/// The same; a number without an element type stays one.
ArrayValue operand_argument(Argument argument);
/// An int: a number known when the program is compiled (a symbol in check
/// mode, perhaps).
ir::Dim int_argument(Argument argument);
ir::Dim int_argument_or(Argument argument, ir::Dim otherwise);
/// An int whose value is needed now: no symbol will do.
int64_t known_int_argument(Argument argument);
/// A bool that is known now.
bool bool_argument_or(Argument argument, bool otherwise);
/// A str that is known now.
std::string str_argument(Argument argument);
/// An element type: `f32`.
DType dtype_argument(Argument argument);
std::optional<DType> dtype_argument_or_none(Argument argument);
/// Sizes: an int or a tuple of ints, none of them negative but for -1 where
/// `allow_minus_one`.
ir::Shape shape_argument(Argument argument, bool allow_minus_one = false);
/// An int or a tuple of ints, each known.
std::vector<int64_t> known_ints_argument(Argument argument);

/// An axis of an array of this type, counted from 0: negative ones count from
/// the end. `extra` axes more are allowed (for a new axis: 1).
int axis_argument(Argument argument, const ir::Type& type, int extra = 0);
/// The same; if it is not given, axis `otherwise`, and an error is at `where`.
int axis_argument_or(Argument argument, int64_t otherwise, const ir::Type& type,
                     Span where);
/// An int or a tuple of ints: ascending, each once. All axes if it is not
/// given.
std::vector<int> axes_argument(Argument argument, const ir::Type& type);
int normalise_axis(BuiltinCall& call, int64_t axis, const ir::Type& type,
                   int rank, Span where);

/// "argument `axis` of `sum`", for messages.
std::string describe_argument(Argument argument);
/// `value`, which is the argument or an item of it, as an int; on the host the
/// number that an integer scalar holds, too. Nothing if it is something else.
std::optional<ir::Dim> as_int(Argument argument, const Value& value);
/// Fails: the argument is not what was `expected` ("a tuple of arrays").
[[noreturn]] void wrong_argument(Argument argument, std::string_view expected);
/// The same about an item of the argument.
[[noreturn]] void wrong_argument(Argument argument, const Value& value,
                                 std::string_view expected);
/// "(2, 3)", "(2,)": a shape as it is written.
std::string shape_text(const ir::Shape& shape);
/// An error for a size that is negative or that no number can hold.
void check_size(Walk& walk, const ir::Dim& size, Span where);

}  // namespace unisono::lang
