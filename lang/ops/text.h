#pragma once
// Operators, loops and functions on text. A character is a Unicode code point,
// as in Python. While checking, a text may be unknown (`args()`), and so is
// then what is made of it. A text with arrays of compiled code in it can only
// be joined and printed there, and a character that is chosen there compared.
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lang/context/builtin.h"
#include "lang/context/walk.h"
#include "lang/ops/indexing.h"

namespace unisono::lang {

/// No text has more bytes.
inline constexpr size_t max_text_bytes = size_t{16} << 20;
/// Of a tree of values that a program makes.
inline constexpr size_t max_leaves = 65'536;
inline constexpr size_t max_levels = 256;
/// An error at `where` if a text would have more bytes.
void check_text_size(Walk& walk, size_t bytes, Span where);

/// The text; nothing while checking if it is known only at run time. An error
/// at `where` if it has arrays of compiled code in it.
Text known_text(Walk& walk, const StrValue& text, Span where);

/// The characters of `text`, each a piece of it.
std::vector<std::string_view> characters(std::string_view text);
/// How many there are.
int64_t character_count(const Text& text);
/// The text of one character.
Text character(std::string_view text);
/// In compiled code, the character with this number, a u32 scalar: it can be
/// compared with others, and printed.
Value character_of(const ArrayValue& code_point);

/// `a + b`; texts with arrays of compiled code in them are joined, too.
Value join_text(Walk& walk, const StrValue& a, const StrValue& b, Span where);
/// `a * n`: n copies in a row, none for a negative n.
Value repeat_text(Walk& walk, const CallArgument& text,
                  const CallArgument& count, Span where);
/// `a[i]`, `a[1:-1]`. In compiled code `i` may be an element: then the result
/// is text with an array in it, which can also be compared with a character.
Value index_text(Walk& walk, const StrValue& text,
                 const std::vector<IndexItem>& items, Span where);
/// What a loop over `value` runs over: the characters of a text, as a tuple (a
/// ManyValue while they are not known); any other value as it is.
Value text_as_items(Walk& walk, const Value& value, Span where);
/// Whether so many items of a text are not looked at one by one before the
/// program runs: then they are any number of unknown ones.
bool is_long_to_check(Walk& walk, size_t items);
/// The format of an operand of text (DeferredText) that is a code point. No
/// format of a number.
inline constexpr std::string_view character_spec = "c";
/// `a op b` of texts, one of which is such a character; nothing for others.
std::optional<Value> character_comparison(Walk& walk, BinaryOp op,
                                          const CallArgument& a,
                                          const CallArgument& b, Span op_span,
                                          Span where);

/// `item in container`.
Value contains(Walk& walk, const CallArgument& item,
               const CallArgument& container, Span op_span, Span where);

/// The integer that a scalar holds (run mode); an error if i64 cannot hold it.
int64_t host_integer(Walk& walk, const ArrayValue& number, Span where);
/// The value of a number that the host needs now: an int, or an integer scalar,
/// which is computed. Nothing while checking, if it is not known; an error for
/// a scalar in compiled code. `what` names it in messages.
std::optional<int64_t> host_number(Walk& walk, const CallArgument& number,
                                   std::string_view what);
/// An int whose value is known only at run time (check mode).
IntValue unknown_int(Walk& walk);
/// `value`, if it is an array of rank 0 of integers.
const ArrayValue* integer_scalar(const Value& value);
/// The int that an integer scalar holds, which is computed for it: on the host
/// it may stand wherever an int is expected. Not in compiled code. While
/// checking, an unknown one.
IntValue int_of_scalar(Walk& walk, const ArrayValue& scalar, Span where);
/// The int that `value` is or, on the host, as an integer scalar holds. Nothing
/// for other values.
std::optional<ir::Dim> int_of(Walk& walk, const Value& value, Span where);

}  // namespace unisono::lang
