#pragma once
// Text that compiled code works on: characters that it chooses, and texts that
// a loop on the host, run as code, makes longer. Both are DeferredText.
#include <cstdint>
#include <string_view>

#include "lang/context/walk.h"

namespace unisono::lang {

/// The formats of an operand of text that is a code point, and of one that is
/// less than 128. No formats of numbers.
inline constexpr std::string_view code_point_spec = "c", ascii_spec = "a";
bool is_character_spec(std::string_view spec);

/// The character with this number, a u32 scalar, in compiled code.
Value traced_character_of(const ArrayValue& code_point, std::string_view spec);
/// The same of a character that is of ASCII for certain.
Value ascii_character_of(const ArrayValue& code_point);
/// The number of a character that compiled code chooses, or null.
ArrayValue traced_code_point(const Value& value);
/// The same, if it is certain that the character is of ASCII.
ArrayValue traced_ascii(const Value& value);
/// The integer that `x` is, without an element type, as `int`s are.
ArrayValue as_int(Walk& walk, const ArrayValue& x, Span where);

/// The text of a variable that a loop on the host, run as code, makes longer:
/// that is all it can do with it. `number`: which one, from 1 (HostLoop in
/// lang/walk/host_loop.h).
StrValue growing_text(int64_t number);
/// The number of such a text; 0 of any other.
int64_t growing_number(const StrValue& text);

}  // namespace unisono::lang
