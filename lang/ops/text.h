#pragma once
// Text as a value: what operators, loops and functions do with it. A character
// is a Unicode code point, as in Python. While checking a text may be unknown
// (`args()`), and then so is what is made of it; a text with arrays of compiled
// code in it can be joined and printed there, and nothing else.
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lang/context/builtin.h"
#include "lang/context/walk.h"
#include "lang/ops/indexing.h"

namespace unisono::lang {

/// More than any text may have.
inline constexpr size_t max_text_bytes = size_t{16} << 20;
/// An error at `where` for what has more.
void check_text_size(Walk& walk, size_t bytes, Span where);

/// The text, or nothing while checking where only running tells. An error at
/// `where` if it has arrays of compiled code in it.
std::optional<std::string> known_text(Walk& walk, const StrValue& text,
                                      Span where);

/// Its characters, each a piece of `text`.
std::vector<std::string_view> characters(std::string_view text);

/// `a + b`: also where they have arrays of compiled code in them.
Value join_text(Walk& walk, const StrValue& a, const StrValue& b, Span where);
/// `a * n`: n copies in a row, none for a negative n.
Value repeat_text(Walk& walk, const CallArgument& text,
                  const CallArgument& count, Span where);
/// `a[i]`, `a[1:-1]`.
Value index_text(Walk& walk, const StrValue& text,
                 const std::vector<IndexItem>& items, Span where);
/// The characters of a text, as a tuple (a ManyValue while they are not known);
/// any other value as it is. What a loop runs over.
Value text_as_items(Walk& walk, const Value& value, Span where);
/// `item in container`.
Value contains(Walk& walk, const CallArgument& item,
               const CallArgument& container, Span op_span, Span where);

/// The integer that a scalar holds (run mode). Beyond i64 it is an error.
int64_t host_integer(Walk& walk, const ArrayValue& number, Span where);
/// A number that is needed on the host now: an int, or an integer scalar where
/// it can be computed. Nothing while checking; an error in compiled code.
std::optional<int64_t> host_number(Walk& walk, const CallArgument& number,
                                   std::string_view what);
/// An int of which only running tells the value (check mode).
Value unknown_int(Walk& walk);

}  // namespace unisono::lang
