#include "lang/ops/text.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>

#include "lang/context/literals.h"
#include "lang/context/traced_text.h"
#include "lang/ops/array_ops.h"
#include "lang/ops/index_plan.h"
#include "lang/ops/operators.h"
#include "lang/ops/print_value.h"
#include "lang/sizes/known_sizes.h"
#include "lang/source/utf8.h"

namespace unisono::lang {

void check_text_size(Walk& walk, size_t bytes, Span where) {
  if (bytes > max_text_bytes)
    walk.fail(diagnostic(Code::too_long, where, "this text", max_text_bytes,
                         "bytes"));
  walk.count_host_bytes(static_cast<int64_t>(bytes), where);
}

IntValue unknown_int(Walk& walk) { return IntValue{walk.open_size()}; }

const ArrayValue* integer_scalar(const Value& value) {
  const auto* array = value.get_if<ArrayValue>();
  const bool found =
      array && (*array)->type.rank() == 0 && is_integer((*array)->type.dtype);
  return found ? array : nullptr;
}

IntValue int_of_scalar(Walk& walk, const ArrayValue& scalar, Span where) {
  require_known(*scalar, where);
  if (walk.mode() != Mode::check)
    return IntValue{host_integer(walk, scalar, where)};
  const auto literal = scalar->literal ? known_integer(*scalar) : std::nullopt;
  if (literal) return IntValue{*literal};
  // What a `var` begins with is not what it holds later.
  return scalar->constant ? unknown_int(walk)
                          : IntValue{host_size_of(walk, *scalar)};
}

Text known_text(Walk& walk, const StrValue& text, Span where) {
  if (text.deferred) {
    require_known(text.deferred->call_numbers, where);
    walk.fail(
        diagnostic(Code::host_value_in_compiled_code, where, "this text")
            .set_help("compiled code can join text with arrays in it, and "
                      "print it"));
  }
  return text.value;
}

// Those of ASCII are there once.
Text character(std::string_view text) {
  static const auto ascii = [] {
    std::array<Text, 128> all;
    for (size_t i = 0; i < all.size(); ++i)
      all[i] = std::string(1, static_cast<char>(i));
    return all;
  }();
  if (text.size() == 1 && static_cast<unsigned char>(text[0]) < ascii.size())
    return ascii[static_cast<unsigned char>(text[0])];
  return std::string(text);
}

int64_t character_count(const Text& text) {
  const size_t count =
      text.is_ascii() ? text->size() : characters(*text).size();
  return static_cast<int64_t>(count);
}

std::vector<std::string_view> characters(std::string_view text) {
  std::vector<std::string_view> out;
  for (size_t at = 0; at < text.size();) {
    const uint32_t length = std::max(decode_utf8(text, at).length, 1u);
    out.push_back(text.substr(at, length));
    at += length;
  }
  return out;
}

Value join_text(Walk& walk, const StrValue& a, const StrValue& b, Span where) {
  if (a.value && b.value) {
    const size_t bytes = a.value->size() + b.value->size();
    check_text_size(walk, bytes, where);
    std::string both;
    both.reserve(bytes);
    both += *a.value;
    both += *b.value;
    return StrValue{std::move(both)};
  }
  TextBuilder out(walk);
  out.value(a, "", where);
  out.value(b, "", where);
  check_text_size(walk, out.size(), where);
  return out.finish();
}

std::optional<ir::Dim> int_of(Walk& walk, const Value& value, Span where) {
  if (const auto* i = value.get_if<IntValue>()) return i->value;
  const ArrayValue* scalar = integer_scalar(value);
  if (!scalar || walk.in_compiled_code()) return std::nullopt;
  return int_of_scalar(walk, *scalar, where).value;
}

int64_t host_integer(Walk& walk, const ArrayValue& number, Span where) {
  int64_t value = 0;
  const bool is_u64 = number->type.dtype == DType::U64;
  const ArrayValue wide =
      cast_to(walk, number, is_u64 ? DType::U64 : DType::I64, where);
  std::memcpy(&value, walk.host_bytes(wide, where).data(), sizeof value);
  if (is_u64 && value < 0)
    walk.fail(
        diagnostic(Code::int_overflow, where, static_cast<uint64_t>(value)));
  return value;
}

std::optional<int64_t> host_number(Walk& walk, const CallArgument& number,
                                   std::string_view what) {
  if (const auto* i = number.value.get_if<IntValue>())
    return i->value.is_constant() ? std::optional(i->value.value())
                                  : std::nullopt;
  const ArrayValue* array = integer_scalar(number.value);
  if (!array)
    walk.fail(diagnostic(Code::wrong_argument, number.where, what, "an `int`",
                         type_name(number.value)));
  if (walk.in_compiled_code())
    walk.fail(
        diagnostic(Code::host_value_in_compiled_code, number.where, what));
  if (walk.mode() == Mode::check) return std::nullopt;
  return host_integer(walk, *array, number.where);
}

Value repeat_text(Walk& walk, const CallArgument& text,
                  const CallArgument& count, Span where) {
  const auto once =
      known_text(walk, *text.value.get_if<StrValue>(), text.where);
  const auto n = host_number(walk, count, "how often a `str` is repeated");
  if (!once || !n) return StrValue{};
  if (*n <= 0 || once->empty()) return StrValue{std::string()};
  const auto most = static_cast<int64_t>(max_text_bytes / once->size());
  if (*n > most) check_text_size(walk, max_text_bytes + 1, where);
  check_text_size(walk, once->size() * static_cast<size_t>(*n), where);
  std::string out;
  out.reserve(once->size() * static_cast<size_t>(*n));
  for (int64_t i = 0; i < *n; ++i) out += *once;
  return StrValue{std::move(out)};
}

// ---- characters that compiled code chooses ---------------------------------

namespace {

/// Longer texts are not put into compiled code.
constexpr int64_t most_characters = int64_t{1} << 16;

/// The code points of a text; nothing of what is not UTF-8, or is too long.
std::optional<std::vector<uint8_t>> code_points(std::string_view text) {
  std::vector<uint32_t> points;
  for (size_t at = 0; at < text.size();) {
    const CodePoint point = decode_utf8(text, at);
    if (point.length == 0) return std::nullopt;
    points.push_back(point.value);
    at += point.length;
  }
  if (static_cast<int64_t>(points.size()) > most_characters)
    return std::nullopt;
  std::vector<uint8_t> out(points.size() * sizeof(uint32_t));
  std::memcpy(out.data(), points.data(), out.size());
  return out;
}

/// Whether there is text without arrays of which the check knows nothing. Where
/// nothing runs (Machine::compile_only), code for such text cannot be made.
bool is_unknown(Walk& walk, const StrValue& text, Span where) {
  if (text.value || text.deferred) return false;
  if (walk.mode() != Mode::check) walk.fail_needs_run(where);
  return true;
}

/// `text[i]` for an element i. Of text that the check does not know it is a
/// character of which nobody knows more: what is made for it may.
std::optional<Value> traced_character(Walk& walk, const Text& text,
                                      const std::vector<IndexItem>& items,
                                      Span where) {
  if (is_unknown(walk, {text}, where)) {
    const ArrayValue all = walk.unknown_array({DType::U32, {walk.open_size()}});
    return ascii_character_of(
        *index(walk, all, items, where).get_if<ArrayValue>());
  }
  auto points = code_points(*text);
  if (!points) return std::nullopt;
  const auto count = static_cast<int64_t>(points->size() / sizeof(uint32_t));
  const ArrayValue all = walk.constant_array({DType::U32, {ir::Dim(count)}},
                                             std::move(*points), where);
  const Value chosen = index(walk, all, items, where);
  const ArrayValue& point = *chosen.get_if<ArrayValue>();
  return text.is_ascii() ? ascii_character_of(point) : character_of(point);
}

}  // namespace

static_assert(character_spec == code_point_spec);

Value character_of(const ArrayValue& code_point) {
  return traced_character_of(code_point, code_point_spec);
}

std::optional<Value> character_comparison(Walk& walk, BinaryOp op,
                                          const CallArgument& a,
                                          const CallArgument& b, Span op_span,
                                          Span where) {
  CallArgument points[2] = {a, b};
  bool chosen = false;
  for (CallArgument& each : points) {
    if (ArrayValue point = traced_code_point(each.value)) {
      each.value = point;
      chosen = true;
    }
  }
  if (!chosen) return std::nullopt;
  for (CallArgument& each : points) {
    const auto* text = each.value.get_if<StrValue>();
    if (!text) continue;
    if (is_unknown(walk, *text, each.where)) {
      each.value = walk.unknown_array({DType::U32, {}});
      continue;
    }
    if (!text->value) return std::nullopt;
    const auto point = code_points(*text->value);
    const bool equality = op == BinaryOp::eq || op == BinaryOp::ne;
    if (point && point->size() == sizeof(uint32_t))
      each.value = walk.constant_array({DType::U32, {}}, *point, each.where);
    else if (equality)  // no character is such a text
      return BoolValue{op == BinaryOp::ne};
    else
      return std::nullopt;
  }
  for (const CallArgument& each : points)
    if (!each.value.array()) return std::nullopt;
  return binary(walk, op, points[0], points[1], op_span, where);
}

Value index_text(Walk& walk, const StrValue& text,
                 const std::vector<IndexItem>& items, Span where) {
  const auto known = known_text(walk, text, where);
  const auto wrong = [&](std::string given) {
    walk.fail(diagnostic(Code::wrong_index, where, "a `str`", std::move(given))
                  .set_help("a character is `s[0]`, a part `s[1:3]`"));
  };
  if (items.size() != 1) wrong("several indices");
  const IndexItem& item = items[0];
  if (item.kind == IndexItem::Kind::ellipsis) wrong("`...`");
  if (item.kind == IndexItem::Kind::value && !item.value.array() &&
      !item.value.is<IntValue>())
    wrong(type_name(item.value));
  if (item.kind == IndexItem::Kind::value) {
    const auto* number = item.value.get_if<ArrayValue>();
    const bool is_traced =
        walk.in_compiled_code() && integer_scalar(item.value);
    std::optional<int64_t> index;
    if (is_traced && (*number)->weak && (*number)->constant) {
      index = host_integer(walk, *number, item.where);
    } else {
      if (is_traced)
        if (auto character = traced_character(walk, known, items, where))
          return *character;
      index =
          host_number(walk, {item.value, item.where}, "the index of a `str`");
    }
    if (!known || !index) return StrValue{};
    const int64_t n = character_count(known);
    if (*index < -n || *index >= n)
      walk.fail(diagnostic(Code::text_index_out_of_range, item.where, *index, n,
                           n == 1 ? "" : "s"));
    const int64_t at = *index < 0 ? *index + n : *index;
    if (known.is_ascii())
      return StrValue{character(std::string_view(*known).substr(at, 1))};
    return StrValue{character(characters(*known)[at])};
  }
  // Bounds may be integer scalars, as an index may.
  IndexItem slice = item;
  for (auto* bound : {&slice.start, &slice.stop, &slice.step}) {
    if (!*bound || (*bound)->value.is<NoneValue>()) continue;
    const auto n = host_number(walk, **bound, "a bound of a slice");
    if (!n) return StrValue{};
    (*bound)->value = IntValue{*n};
  }
  if (!known) return StrValue{};
  const SliceRange range = slice_range(walk, slice, character_count(known));
  if (known.is_ascii() && range.step == ir::Dim(1))
    return StrValue{known->substr(range.start.value(), range.size.value())};
  const auto all = characters(*known);
  std::string out;
  for (int64_t i = 0; i < range.size.value(); ++i)
    out += all[range.start.value() + i * range.step.value()];
  return StrValue{std::move(out)};
}

Value text_as_items(Walk& walk, const Value& value, Span where) {
  const auto* text = value.get_if<StrValue>();
  if (!text) return value;
  const auto known = known_text(walk, *text, where);
  if (!known) return ManyValue{std::make_shared<const Value>(StrValue{})};
  const auto all = characters(*known);
  if (is_long_to_check(walk, all.size()))
    return ManyValue{std::make_shared<const Value>(StrValue{})};
  std::vector<Value> out;
  out.reserve(all.size());
  for (std::string_view c : all) out.push_back(StrValue{character(c)});
  return make_tuple(std::move(out));
}

bool is_long_to_check(Walk& walk, size_t items) {
  return walk.mode() == Mode::check && !walk.in_compiled_code() && items > 1000;
}

// ---- in --------------------------------------------------------------------

namespace {

/// Whether an item of a tuple is `item`: a BoolValue or a boolean scalar.
Value is_item(Walk& walk, const CallArgument& item, const CallArgument& other,
              Span op_span, Span where) {
  if (auto same =
          character_comparison(walk, BinaryOp::eq, item, other, op_span, where))
    return *same;
  if (const auto equal = host_equal(item.value, other.value))
    return BoolValue{*equal};
  if (!element_type(item.value) || !element_type(other.value))
    return BoolValue{false};
  const Value same = binary(walk, BinaryOp::eq, item, other, op_span, where);
  if (same.array()->type.rank() > 0)
    walk.fail(diagnostic(Code::operator_types, op_span, "in",
                         type_name(item.value), type_name(other.value))
                  .set_help("of arrays, say when they are the same: "
                            "`all(a == b)`"));
  return same;
}

Value in_range(Walk& walk, const CallArgument& item, const RangeValue& range,
               Span op_span) {
  const auto* i = item.value.get_if<IntValue>();
  int64_t parts[3];
  bool known = i && i->value.is_constant();
  for (int k = 0; k < 3; ++k) {
    const auto* part = (*range.start_stop_step)[k].get_if<IntValue>();
    if (!i || !part)
      walk.fail(diagnostic(Code::operator_types, op_span, "in",
                           type_name(item.value), "range")
                    .set_help("compare: `i >= 0 and i < n`"));
    known = known && part->value.is_constant();
    parts[k] = known ? part->value.value() : 0;
  }
  if (!known) return BoolValue{};
  const auto [start, stop, step] = parts;
  const int64_t n = i->value.value();
  const bool inside =
      step > 0 ? n >= start && n < stop : n <= start && n > stop;
  // Their difference need not fit.
  const auto distance = static_cast<uint64_t>(step > 0 ? n : start) -
                        static_cast<uint64_t>(step > 0 ? start : n);
  const uint64_t by = step > 0 ? static_cast<uint64_t>(step)
                               : uint64_t{0} - static_cast<uint64_t>(step);
  return BoolValue{inside && distance % by == 0};
}

/// The `or` of what was found so far and one more.
Value either(Walk& walk, const Value& a, const Value& b, Span op_span,
             Span where) {
  const auto* known = a.get_if<BoolValue>();
  if (known && known->value == false) return b;
  return binary(walk, BinaryOp::logical_or, {a, where}, {b, where}, op_span,
                where);
}

}  // namespace

Value contains(Walk& walk, const CallArgument& item,
               const CallArgument& container, Span op_span, Span where) {
  const Value& in = container.value;
  const auto fail = [&](std::string help) {
    walk.fail(diagnostic(Code::operator_types, op_span, "in",
                         type_name(item.value), type_name(in))
                  .set_help(std::move(help)));
  };
  const auto* text = item.value.get_if<StrValue>();
  if (const auto* whole = in.get_if<StrValue>()) {
    if (!text) fail("text is found in text: `str(x) in s`");
    if (traced_code_point(item.value) &&
        is_unknown(walk, *whole, container.where))
      return *character_comparison(walk, BinaryOp::eq, item, container, op_span,
                                   where);
    if (traced_code_point(item.value) && whole->value) {
      Value found = BoolValue{false};
      for (const std::string_view c : characters(*whole->value))
        found = either(
            walk, found,
            is_item(walk, item, {StrValue{std::string(c)}, container.where},
                    op_span, where),
            op_span, where);
      return found;
    }
    const auto part = known_text(walk, *text, item.where);
    const auto all = known_text(walk, *whole, container.where);
    if (!part || !all) return BoolValue{};
    return BoolValue{all->find(*part) != std::string::npos};
  }
  if (in.is<ManyValue>()) return BoolValue{};
  if (const RecordValue* record = in.record()) {
    if (!text) fail("a record holds fields by name: `\"w\" in r`");
    const auto name = known_text(walk, *text, item.where);
    if (!name) return BoolValue{};
    return BoolValue{record->find(*name) != nullptr};
  }
  if (const TupleValue* tuple = in.tuple()) {
    Value found = BoolValue{false};
    for (const Value& other : tuple->items) {
      const Value same =
          is_item(walk, item, {other, container.where}, op_span, where);
      found = either(walk, found, same, op_span, where);
      if (const auto* known = found.get_if<BoolValue>();
          known && known->value == true)
        break;
    }
    return found;
  }
  if (const auto* range = in.get_if<RangeValue>())
    return in_range(walk, item, *range, op_span);
  const ArrayCell* array = in.array();
  if (!array || array->type.rank() == 0)
    fail(
        "what stands after `in` is a tuple, a `str`, an array, a record or a "
        "range");
  if (!element_type(item.value)) fail("an array holds numbers");
  const Value same =
      binary(walk, BinaryOp::eq, item, container, op_span, where);
  const ArrayCell* equal = same.array();
  if (const ArrayCell* one = item.value.array(); one && one->type.rank() > 0)
    fail("of arrays, say what is meant: `any(all(x == row, axis=-1))`");
  std::vector<int> axes;
  for (int i = 0; i < equal->type.rank(); ++i) axes.push_back(i);
  return reduce(walk, ir::Op::any, *same.get_if<ArrayValue>(), axes, false,
                where);
}

}  // namespace unisono::lang
