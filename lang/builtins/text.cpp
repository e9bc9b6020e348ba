// Functions of text, as Python's methods are: on the host, of known text. While
// checking, what is made of unknown text is unknown.
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstring>
#include <functional>

#include "lang/builtins/sorted_texts.h"
#include "lang/builtins/split.h"
#include "lang/context/call_of.h"
#include "lang/context/literals.h"
#include "lang/context/traced_text.h"
#include "lang/ops/array_ops.h"
#include "lang/ops/builtin_arguments.h"
#include "lang/ops/indexing.h"
#include "lang/ops/operators.h"
#include "lang/ops/print_value.h"
#include "lang/ops/text.h"
#include "lang/source/utf8.h"

namespace unisono::lang {
namespace {

constexpr std::string_view blanks = " \t\n\r\f\v";

/// What is known of each character of ASCII, as one element of a table of
/// `entry(c)`, whose bits are those of `dtype`. Null for text that is not known
/// to be such a character of compiled code.
ArrayValue look_up_character(Walk& walk, const Value& character, DType dtype,
                             const std::function<uint32_t(char32_t)>& entry,
                             Span where) {
  constexpr uint32_t ascii = 128;
  const ArrayValue point = traced_ascii(character);
  if (!point) return nullptr;
  const auto size = static_cast<size_t>(byte_size(dtype));
  std::vector<uint8_t> table(ascii * size);
  for (uint32_t c = 0; c < ascii; ++c) {
    const uint32_t bits = entry(c);
    std::memcpy(&table[c * size], &bits, size);  // little endian
  }
  const ArrayValue all = walk.constant_array({dtype, {ir::Dim(int64_t{ascii})}},
                                             std::move(table), where);
  IndexItem place;
  place.value = point;
  place.where = where;
  const Value found = index(walk, all, {std::move(place)}, where);
  return *found.get_if<ArrayValue>();
}

/// An argument that must be text: what is known of it.
Text text_argument(Argument argument) {
  const auto* text = argument.value().get_if<StrValue>();
  if (!text) wrong_argument(argument, "a `str`");
  return known_text(argument.call().walk, *text, argument.where());
}

Value made(BuiltinCall& call, std::string text) {
  check_text_size(call.walk, text.size(), call.where);
  return StrValue{std::move(text)};
}

Value many_texts() {
  return ManyValue{std::make_shared<const Value>(StrValue{})};
}

Value texts(Walk& walk, std::vector<std::string> items) {
  if (is_long_to_check(walk, items.size())) return many_texts();
  std::vector<Value> out;
  for (std::string& item : items) out.push_back(StrValue{std::move(item)});
  return make_tuple(std::move(out));
}

// ---- numbers in text -------------------------------------------------------

/// The text of a number as std::from_chars wants it: without blanks around it,
/// a plus sign, and underscores between digits. Empty if it is none.
std::string clean_number(std::string_view text) {
  const size_t begin = text.find_first_not_of(blanks);
  if (begin == std::string_view::npos) return "";
  text = text.substr(begin, text.find_last_not_of(blanks) + 1 - begin);
  if (text[0] == '+') {
    text.remove_prefix(1);
    if (text.starts_with('-')) return "";
  }
  const auto digit = [&](size_t i) {
    return i < text.size() && text[i] >= '0' && text[i] <= '9';
  };
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '_') {
      out += text[i];
      continue;
    }
    if (i == 0 || !digit(i - 1) || !digit(i + 1)) return "";
  }
  return out;
}

template <class T>
T parse_number(Argument written, const std::string& text,
               std::string_view kind) {
  Walk& walk = written.call().walk;
  const std::string clean = clean_number(text);
  T value = 0;
  const char* end = clean.data() + clean.size();
  const auto [stop, error] = std::from_chars(clean.data(), end, value);
  bool good = !clean.empty() && stop == end && error == std::errc();
  if constexpr (std::is_floating_point_v<T>) {
    // Beyond the range the nearest double is infinite or 0, as in literals of
    // Python; from_chars leaves that to us.
    if (stop == end && error == std::errc::result_out_of_range) {
      static const locale_t plain = newlocale(LC_NUMERIC_MASK, "C", nullptr);
      value = strtod_l(clean.c_str(), nullptr, plain);
      good = true;
    }
    if (clean.find('(') != std::string::npos) good = false;  // nan(1)
  } else if (stop == end && error == std::errc::result_out_of_range) {
    walk.fail(diagnostic(Code::int_overflow, written.where(), clean)
                  .set_help("`float(...)` reads larger numbers, rounded"));
  }
  if (!good) {
    Diagnostic d = diagnostic(Code::not_a_number, written.where(),
                              fmt::format("{:?}", text), kind);
    double real = 0;
    const auto [last, problem] = std::from_chars(clean.data(), end, real);
    if (std::is_integral_v<T> && !clean.empty() && last == end &&
        problem == std::errc())
      d.set_help("`int(float(s))` cuts what is behind the point off");
    walk.fail(std::move(d));
  }
  return value;
}

/// The part of a float before its point.
Value whole_part(Argument written, double value) {
  value = std::trunc(value);
  if (!(value >= -0x1p63 && value < 0x1p63))
    written.call().walk.fail(diagnostic(
        Code::int_overflow, written.where(),
        std::isnan(value) ? std::string("nan") : fmt::format("{}", value)));
  return IntValue{static_cast<int64_t>(value)};
}

/// The whole number that a scalar holds, once it is computed: of a float, its
/// part before the point.
Value computed_int(Argument written) {
  const ArrayValue x = operand_argument(written);
  Walk& walk = written.call().walk;
  const Span where = written.where();
  if (x->type.rank() != 0)
    walk.fail(diagnostic(Code::wrong_argument, where,
                         describe_argument(written), "a scalar or a `str`",
                         x->type.to_string())
                  .set_help("an array is converted by `i32(x)`"));
  require_known(*x, where);
  if (x->literal)
    if (const auto literal = literal_of(x))
      return whole_part(written, *literal);
  if (walk.in_compiled_code())
    walk.fail(diagnostic(Code::int_in_compiled_code, where));
  if (walk.mode() == Mode::check) return unknown_int(walk);
  if (!is_floating(x->type.dtype)) return int_of_scalar(walk, x, where);
  double value = 0;
  const ArrayValue wide = cast_to(walk, x, DType::F64, where);
  std::memcpy(&value, walk.host_bytes(wide, where).data(), sizeof value);
  return whole_part(written, value);
}

/// What is unknown while a program is checked has to be known when it is
/// walked to be compiled (Machine::compile_only).
void require_walk(Argument written) {
  Walk& walk = written.call().walk;
  if (walk.mode() != Mode::check && walk.machine().compile_only)
    walk.fail_needs_run(written.where());
}

/// The number that a digit chosen by compiled code is; null for other text.
ArrayValue traced_digit(Argument written) {
  Walk& walk = written.call().walk;
  const Span where = written.where();
  constexpr uint32_t none = 10;
  if (!walk.machine().checked) return nullptr;
  const ArrayValue digit = look_up_character(
      walk, written.value(), DType::U32,
      [](char32_t c) { return c >= '0' && c <= '9' ? c - '0' : none; }, where);
  if (!digit) return nullptr;
  const ArrayValue number = as_int(walk, digit, where);
  const Value holds = binary(walk, BinaryOp::lt, {number, where},
                             {IntValue{none}, where}, where, where);
  assert_when_it_runs(walk, *holds.get_if<ArrayValue>(),
                      "a digit is a whole number", where);
  return number;
}

}  // namespace

Value builtin_int(CallOf<"int">& call) {
  const Value& x = call["x"].value();
  if (x.is<IntValue>()) return x;
  if (x.is<StrValue>()) {
    if (const ArrayValue digit = traced_digit(call["x"])) return digit;
    const auto text = text_argument(call["x"]);
    if (!text) require_walk(call["x"]);
    if (!text) return unknown_int(call.walk);
    return IntValue{parse_number<int64_t>(call["x"], *text, "a whole number")};
  }
  if (const auto* b = x.get_if<BoolValue>(); b && b->value)
    return IntValue{*b->value ? 1 : 0};
  return computed_int(call["x"]);
}

Value builtin_float(CallOf<"float">& call) {
  Walk& walk = call.walk;
  const Value& x = call["x"].value();
  if (x.is<StrValue>()) {
    const auto text = text_argument(call["x"]);
    if (!text) require_walk(call["x"]);
    if (!text) return walk.unknown_number(true);
    return walk.constant(parse_number<double>(call["x"], *text, "a number"),
                         DType::F32, true, call.where);
  }
  if (const auto* i = x.get_if<IntValue>()) {
    if (!i->value.is_constant()) return walk.unknown_number(true);
    return walk.constant(static_cast<double>(i->value.value()), DType::F32,
                         true, call.where);
  }
  const ArrayValue array = operand_argument(call["x"]);
  if (array->type.rank() != 0)
    walk.fail(diagnostic(Code::wrong_argument, call["x"].where(),
                         describe_argument(call["x"]), "a scalar or a `str`",
                         array->type.to_string())
                  .set_help("an array is converted by `f32(x)`"));
  if (is_floating(array->type.dtype)) return array;
  return to_dtype(walk, call["x"], {DType::F32, array->weak},
                  describe_argument(call["x"]));
}

Value builtin_str(CallOf<"str">& call) {
  if (call["x"].value().is<StrValue>()) return call["x"].value();
  TextBuilder out(call.walk);
  out.value(call["x"].value(), "", call["x"].where());
  check_text_size(call.walk, out.size(), call.where);
  return out.finish();
}

// ---- letters ---------------------------------------------------------------

namespace {

/// Letters whose other case lies at a fixed distance, or beside them: Latin,
/// Greek, Cyrillic, Armenian. Others stay as they are.
char32_t other_case(char32_t c, bool up) {
  struct Range {
    char32_t first, last;  // capitals
    char32_t distance;     // 1: pairs, the capital first
  };
  constexpr Range ranges[] = {
      {'A', 'Z', 32},      {0xc0, 0xd6, 32},   {0xd8, 0xde, 32},
      {0x100, 0x12f, 1},   {0x132, 0x137, 1},  {0x139, 0x148, 1},
      {0x14a, 0x177, 1},   {0x179, 0x17e, 1},  {0x386, 0x386, 38},
      {0x388, 0x38a, 37},  {0x38c, 0x38c, 64}, {0x38e, 0x38f, 63},
      {0x391, 0x3a1, 32},  {0x3a3, 0x3ab, 32}, {0x400, 0x40f, 80},
      {0x410, 0x42f, 32},  {0x460, 0x481, 1},  {0x48a, 0x4bf, 1},
      {0x4d0, 0x52f, 1},   {0x531, 0x556, 48}, {0x1e00, 0x1e95, 1},
      {0x1ea0, 0x1eff, 1},
  };
  if (up && c == 0xff) return 0x178;
  if (!up && c == 0x178) return 0xff;
  if (up && c == 0x3c2) return 0x3a3;  // a sigma at the end of a word
  for (const Range& r : ranges) {
    if (r.distance == 1) {
      if (c < r.first || c > r.last) continue;
      const bool capital = (c - r.first) % 2 == 0;
      return capital == up ? c : up ? c - 1 : c + 1;
    }
    if (!up && c >= r.first && c <= r.last) return c + r.distance;
    if (up && c >= r.first + r.distance && c <= r.last + r.distance)
      return c - r.distance;
  }
  return c;
}

Value with_case(Argument s, bool up) {
  if (const ArrayValue other = look_up_character(
          s.call().walk, s.value(), DType::U32,
          [&](char32_t c) { return other_case(c, up); }, s.where()))
    return ascii_character_of(other);
  const auto text = text_argument(s);
  if (!text) return StrValue{};
  std::string out;
  for (std::string_view c : characters(*text)) {
    const char32_t value = decode_utf8(c, 0).value;
    if (up && value == 0xdf)
      out += "SS";
    else
      append_utf8(out, other_case(value, up));
  }
  return made(s.call(), std::move(out));
}

/// Without some characters (blanks if they are not given) at its ends.
Value stripped(CallOf<"strip">& call, bool left, bool right) {
  const auto text = text_argument(call["s"]);
  const auto cut = call["characters"].given()
                       ? text_argument(call["characters"])
                       : Text(std::string(blanks));
  if (!text || !cut) return StrValue{};
  const auto all = characters(*text), unwanted = characters(*cut);
  const auto goes = [&](std::string_view c) {
    return std::ranges::find(unwanted, c) != unwanted.end();
  };
  size_t begin = 0, end = all.size();
  while (left && begin < end && goes(all[begin])) ++begin;
  while (right && begin < end && goes(all[end - 1])) --end;
  std::string out;
  for (size_t i = begin; i < end; ++i) out += all[i];
  return StrValue{std::move(out)};
}

/// Both texts of a question, `f` of them if they are known.
Value ask(
    Argument s, Argument other,
    const std::function<bool(const std::string&, const std::string&)>& f) {
  const auto text = text_argument(s), part = text_argument(other);
  if (!text || !part) return BoolValue{};
  return BoolValue{f(*text, *part)};
}

}  // namespace

Value builtin_upper(CallOf<"upper">& call) {
  return with_case(call["s"], true);
}
Value builtin_lower(CallOf<"lower">& call) {
  return with_case(call["s"], false);
}
Value builtin_strip(CallOf<"strip">& call) {
  return stripped(call, true, true);
}
Value builtin_lstrip(CallOf<"lstrip">& call) {
  return stripped(call, true, false);
}
Value builtin_rstrip(CallOf<"rstrip">& call) {
  return stripped(call, false, true);
}

Value builtin_startswith(CallOf<"startswith">& call) {
  return ask(call["s"], call["part"],
             [](const std::string& text, const std::string& part) {
               return text.starts_with(part);
             });
}

Value builtin_endswith(CallOf<"endswith">& call) {
  return ask(call["s"], call["part"],
             [](const std::string& text, const std::string& part) {
               return text.ends_with(part);
             });
}

namespace {

/// Letters without capitals: the blocks of Hebrew, Arabic, Devanagari, Thai,
/// kana, Chinese and Korean.
bool is_uncased_letter(char32_t c) {
  constexpr std::pair<char32_t, char32_t> blocks[] = {
      {0x5d0, 0x5ea},   {0x620, 0x64a},   {0x904, 0x939},
      {0xe01, 0xe30},   {0x3041, 0x3096}, {0x30a1, 0x30fa},
      {0x3400, 0x4dbf}, {0x4e00, 0x9fff}, {0xac00, 0xd7a3},
  };
  return std::ranges::any_of(blocks, [&](auto block) {
    return c >= block.first && c <= block.second;
  });
}

bool is_capital(char32_t c) { return other_case(c, false) != c; }
bool is_small(char32_t c) { return c == 0xdf || other_case(c, true) != c; }
bool is_letter(char32_t c) {
  return is_capital(c) || is_small(c) || is_uncased_letter(c);
}
bool is_digit(char32_t c) { return c >= '0' && c <= '9'; }

/// Whether text has characters, and all of them are of one kind.
template <class IsKind>
Value is_made_of(Argument s, IsKind is_kind) {
  if (const ArrayValue is = look_up_character(s.call().walk, s.value(),
                                              DType::Bool, is_kind, s.where()))
    return is;
  const auto text = text_argument(s);
  if (!text) return BoolValue{};
  bool all = !text->empty();
  for (const std::string_view c : characters(*text))
    all = all && is_kind(decode_utf8(c, 0).value);
  return BoolValue{all};
}

/// Whether text has letters of a case, and none of the other.
template <class IsCase, class IsOther>
Value is_in_case(Argument s, IsCase is_case, IsOther is_other) {
  if (const ArrayValue is = look_up_character(s.call().walk, s.value(),
                                              DType::Bool, is_case, s.where()))
    return is;
  const auto text = text_argument(s);
  if (!text) return BoolValue{};
  bool found = false, other = false;
  for (const std::string_view c : characters(*text)) {
    found = found || is_case(decode_utf8(c, 0).value);
    other = other || is_other(decode_utf8(c, 0).value);
  }
  return BoolValue{found && !other};
}

/// Text with a capital where `begins` says so of the character before (0 at
/// the beginning), and small letters elsewhere.
template <class Begins>
Value with_capitals(Argument s, Begins begins) {
  const auto text = text_argument(s);
  if (!text) return StrValue{};
  std::string out;
  char32_t before = 0;
  for (const std::string_view c : characters(*text)) {
    const char32_t value = decode_utf8(c, 0).value;
    append_utf8(out, other_case(value, begins(before)));
    before = value;
  }
  return made(s.call(), std::move(out));
}

}  // namespace

Value builtin_isdigit(CallOf<"isdigit">& call) {
  return is_made_of(call["s"], is_digit);
}
Value builtin_isalpha(CallOf<"isalpha">& call) {
  return is_made_of(call["s"], is_letter);
}
Value builtin_isalnum(CallOf<"isalnum">& call) {
  return is_made_of(call["s"],
                    [](char32_t c) { return is_letter(c) || is_digit(c); });
}
Value builtin_isspace(CallOf<"isspace">& call) {
  return is_made_of(call["s"], [](char32_t c) {
    return c < 128 &&
           blanks.find(static_cast<char>(c)) != std::string_view::npos;
  });
}
Value builtin_isupper(CallOf<"isupper">& call) {
  return is_in_case(call["s"], is_capital, is_small);
}
Value builtin_islower(CallOf<"islower">& call) {
  return is_in_case(call["s"], is_small, is_capital);
}
Value builtin_capitalize(CallOf<"capitalize">& call) {
  return with_capitals(call["s"], [](char32_t before) { return before == 0; });
}
Value builtin_title(CallOf<"title">& call) {
  return with_capitals(call["s"],
                       [](char32_t before) { return !is_letter(before); });
}

Value builtin_find(CallOf<"find">& call) {
  const auto text = text_argument(call["s"]),
             part = text_argument(call["part"]);
  if (!text || !part) return unknown_int(call.walk);
  const size_t at = text->find(*part);
  if (at == std::string::npos) return IntValue{-1};
  const auto before = characters(std::string_view(*text).substr(0, at));
  return IntValue{static_cast<int64_t>(before.size())};
}

// ---- orders of words -------------------------------------------------------

bool is_texts(const Value& value) {
  if (const auto* many = value.get_if<ManyValue>())
    return many->item->is<StrValue>();
  const TupleValue* tuple = value.tuple();
  return tuple && !tuple->items.empty() &&
         std::ranges::all_of(tuple->items, [](const Value& item) {
           return item.is<StrValue>();
         });
}

Value builtin_is_words(CallOf<"is_words">& call) {
  return BoolValue{is_texts(call["x"].value())};
}

Value builtin_count_words(CallOf<"count_words">& call) {
  Walk& walk = call.walk;
  const Argument words = call["words"];
  const TupleValue* tuple = words.value().tuple();
  if (!is_texts(words.value()) && !(tuple && tuple->items.empty()))
    wrong_argument(words, "a tuple of `str`s");
  std::vector<std::string> all;
  for (size_t i = 0; tuple && i < tuple->items.size(); ++i)
    if (auto text = known_text(walk, *tuple->items[i].get_if<StrValue>(),
                               words.where()))
      all.push_back(*text);
  if (!tuple || all.size() < tuple->items.size())  // while checking
    return make_tuple(
        {many_texts(),
         walk.unknown_array({DType::I32, {unknown_int(walk).value}})});
  std::ranges::sort(all);
  std::vector<Value> different;
  std::vector<uint8_t> counts;
  for (size_t i = 0; i < all.size();) {
    const size_t first = i;
    while (i < all.size() && all[i] == all[first]) ++i;
    const auto count = static_cast<int32_t>(i - first);
    const auto* bytes = reinterpret_cast<const uint8_t*>(&count);
    counts.insert(counts.end(), bytes, bytes + sizeof count);
    different.push_back(StrValue{std::move(all[first])});
  }
  const auto size = static_cast<int64_t>(different.size());
  return make_tuple({make_tuple(std::move(different)),
                     walk.constant_array({DType::I32, {size}},
                                         std::move(counts), call.where)});
}

Value sorted_texts(CallOf<"sort">& call, bool positions, bool descending) {
  Walk& walk = call.walk;
  const Value& x = call["x"].value();
  const TupleValue* tuple = x.tuple();
  std::vector<std::pair<std::string, int32_t>> all;
  const size_t count = tuple ? tuple->items.size() : 0;
  for (size_t i = 0; i < count; ++i)
    if (auto text = known_text(walk, *tuple->items[i].get_if<StrValue>(),
                               call["x"].where()))
      all.emplace_back(*text, static_cast<int32_t>(i));
  if (!tuple || all.size() < count) {  // while checking
    if (positions)
      return walk.unknown_array({DType::I32,
                                 {tuple ? ir::Dim(static_cast<int64_t>(count))
                                        : unknown_int(walk).value}});
    return tuple ? make_tuple(std::vector<Value>(count, StrValue{})) : x;
  }
  std::ranges::sort(all, [&](const auto& a, const auto& b) {
    if (a.first == b.first) return a.second < b.second;
    return descending ? b.first < a.first : a.first < b.first;
  });
  if (positions) {
    std::vector<uint8_t> bytes(count * sizeof(int32_t));
    for (size_t i = 0; i < count; ++i)
      std::memcpy(bytes.data() + i * sizeof(int32_t), &all[i].second,
                  sizeof(int32_t));
    return walk.constant_array({DType::I32, {static_cast<int64_t>(count)}},
                               std::move(bytes), call.where);
  }
  std::vector<Value> out;
  for (auto& [text, place] : all) out.push_back(StrValue{std::move(text)});
  return make_tuple(std::move(out));
}

namespace {
/// How many items of a tuple are equal to `item`.
Value count_items(CallOf<"count">& call, const TupleValue& items) {
  int64_t n = 0;
  bool known = true;
  for (const Value& item : items.items) {
    const auto equal = host_equal(item, call["part"].value());
    if (!equal && item.array())
      call.walk.fail(diagnostic(Code::wrong_argument, call["s"].where(),
                                describe_argument(call["s"]),
                                "a `str`, or a tuple of `str`s",
                                type_name(call["s"].value()))
                         .set_help("of numbers: `count_nonzero(x == value)`"));
    known = known && (!equal || *equal);
    n += equal && *equal && **equal ? 1 : 0;
  }
  return known ? Value(IntValue{n}) : unknown_int(call.walk);
}
}  // namespace

Value builtin_count(CallOf<"count">& call) {
  if (const TupleValue* items = call["s"].value().tuple())
    return count_items(call, *items);
  if (call["s"].value().is<ManyValue>()) return unknown_int(call.walk);
  const auto text = text_argument(call["s"]),
             part = text_argument(call["part"]);
  if (!text || !part) return unknown_int(call.walk);
  if (part->empty())
    return IntValue{static_cast<int64_t>(characters(*text).size()) + 1};
  int64_t n = 0;
  for (size_t at = 0; (at = text->find(*part, at)) != std::string::npos;
       at += part->size())
    ++n;
  return IntValue{n};
}

Value builtin_replace(CallOf<"replace">& call) {
  const auto text = text_argument(call["s"]), old = text_argument(call["old"]),
             by = text_argument(call["new"]);
  if (!text || !old || !by) return StrValue{};
  std::string out;
  const auto add = [&](std::string_view piece) {
    out += piece;
    check_text_size(call.walk, out.size(), call.where);
  };
  if (old->empty()) {  // between all characters, as in Python
    add(*by);
    for (std::string_view c : characters(*text)) {
      add(c);
      add(*by);
    }
    return made(call, std::move(out));
  }
  size_t from = 0;
  for (size_t at; (at = text->find(*old, from)) != std::string::npos;
       from = at + old->size()) {
    add(std::string_view(*text).substr(from, at - from));
    add(*by);
  }
  add(std::string_view(*text).substr(from));
  return made(call, std::move(out));
}

// ---- parts -----------------------------------------------------------------

namespace {

/// At most `most` cuts, all if that is negative; the rest stays whole.
std::vector<std::string> words_of(std::string_view text, int64_t most) {
  std::vector<std::string> out;
  size_t at = text.find_first_not_of(blanks);
  while (at != std::string_view::npos) {
    const bool last = most >= 0 && static_cast<int64_t>(out.size()) == most;
    const size_t end =
        last ? std::string_view::npos : text.find_first_of(blanks, at);
    out.emplace_back(text.substr(at, end - at));
    at = end == std::string_view::npos ? end
                                       : text.find_first_not_of(blanks, end);
  }
  return out;
}

std::vector<std::string> parts_of(std::string_view text,
                                  std::string_view separator, int64_t most) {
  std::vector<std::string> out;
  while (most < 0 || static_cast<int64_t>(out.size()) < most) {
    const size_t at = text.find(separator);
    if (at == std::string_view::npos) break;
    out.emplace_back(text.substr(0, at));
    text.remove_prefix(at + separator.size());
  }
  out.emplace_back(text);
  return out;
}

}  // namespace

// Where arrays have `parts` and `axis` Python has the separator, and how many
// cuts.
Value split_text(CallOf<"split">& call) {
  const Argument by = call["sep"].given() ? call["sep"] : call["parts"];
  const Argument cuts =
      call["maxsplit"].given() ? call["maxsplit"] : call["axis"];
  const auto separator = by.given() ? text_argument(by) : Text();
  const auto text = text_argument(call["x"]);
  const auto most = cuts.given()
                        ? host_number(call.walk, cuts, describe_argument(cuts))
                        : std::optional<int64_t>(-1);
  if (separator && separator->empty())
    call.walk.fail(diagnostic(Code::wrong_argument, by.where(),
                              "the separator of `split`", "some text",
                              "an empty `str`")
                       .set_help("a loop runs over the characters: "
                                 "`for c in s`"));
  if (!text || !most || (by.given() && !separator)) return many_texts();
  return texts(call.walk, separator ? parts_of(*text, *separator, *most)
                                    : words_of(*text, *most));
}

Value builtin_splitlines(CallOf<"splitlines">& call) {
  const auto text = text_argument(call["s"]);
  if (!text) return many_texts();
  std::vector<std::string> lines = parts_of(*text, "\n", -1);
  if (lines.back().empty()) lines.pop_back();
  for (std::string& line : lines)
    if (line.ends_with('\r')) line.pop_back();
  return texts(call.walk, std::move(lines));
}

Value builtin_join(CallOf<"join">& call) {
  Walk& walk = call.walk;
  const auto* separator = call["separator"].value().get_if<StrValue>();
  if (!separator) {
    const bool turned = call["items"].value().is<StrValue>();
    Diagnostic d = diagnostic(Code::wrong_argument, call["separator"].where(),
                              describe_argument(call["separator"]), "a `str`",
                              type_name(call["separator"].value()));
    if (turned) d.set_help("the separator comes first: `\", \".join(items)`");
    walk.fail(std::move(d));
  }
  const Value items =
      text_as_items(walk, call["items"].value(), call["items"].where());
  const auto require = [&](const Value& item) {
    if (item.is<StrValue>()) return;
    walk.fail(diagnostic(Code::wrong_argument, call["items"].where(),
                         "an item of " + describe_argument(call["items"]),
                         "a `str`", type_name(item))
                  .set_help("make text of it first: `str(x)`, or `\"{x}\"`"));
  };
  if (const auto* many = items.get_if<ManyValue>()) {
    require(*many->item);
    return StrValue{};
  }
  const TupleValue* tuple = items.tuple();
  if (!tuple) wrong_argument(call["items"], "a tuple of `str`s");
  TextBuilder out(walk);
  for (size_t i = 0; i < tuple->items.size(); ++i) {
    require(tuple->items[i]);
    if (i > 0) out.value(*separator, "", call["separator"].where());
    out.value(tuple->items[i], "", call["items"].where());
    check_text_size(walk, out.size(), call.where);
  }
  return out.finish();
}

Value builtin_ord(CallOf<"ord">& call) {
  if (const ArrayValue point = traced_ascii(call["c"].value()))
    return as_int(call.walk, point, call["c"].where());
  const auto text = text_argument(call["c"]);
  if (!text) return unknown_int(call.walk);
  if (text->empty() || character_count(text) != 1)
    wrong_argument(call["c"], "one character");
  return IntValue{static_cast<int64_t>(decode_utf8(*text, 0).value)};
}

namespace {
/// The character with a number that compiled code computes.
Value traced_chr(Argument written) {
  Walk& walk = written.call().walk;
  const Span where = written.where();
  const auto holds = [&](BinaryOp op, int64_t than) {
    return binary(walk, op, {written.value(), where}, {IntValue{than}, where},
                  where, where);
  };
  const auto both = [&](BinaryOp op, const Value& a, const Value& b) {
    return binary(walk, op, {a, where}, {b, where}, where, where);
  };
  const Value in_range = both(BinaryOp::logical_and, holds(BinaryOp::ge, 0),
                              holds(BinaryOp::le, 0x10ffff));
  const Value no_surrogate =
      both(BinaryOp::logical_or, holds(BinaryOp::lt, 0xd800),
           holds(BinaryOp::gt, 0xdfff));
  const Value both_hold = both(BinaryOp::logical_and, in_range, no_surrogate);
  assert_when_it_runs(walk, *both_hold.get_if<ArrayValue>(),
                      "it is the number of a character", where);
  return character_of(
      cast_to(walk, *written.value().get_if<ArrayValue>(), DType::U32, where));
}
}  // namespace

Value builtin_chr(CallOf<"chr">& call) {
  const ArrayValue* number = integer_scalar(call["n"].value());
  // Comparisons with all of these need 32 bits.
  if (number && !(*number)->constant && call.walk.mode() == Mode::trace &&
      call.walk.machine().checked && byte_size((*number)->type.dtype) >= 4)
    return traced_chr(call["n"]);
  const auto code =
      host_number(call.walk, call["n"], describe_argument(call["n"]));
  if (!code) return StrValue{};
  if (*code < 0 || *code > 0x10ffff || (*code >= 0xd800 && *code <= 0xdfff))
    call.walk.fail(diagnostic(
        Code::wrong_argument, call["n"].where(), describe_argument(call["n"]),
        "the number of a character", fmt::format("{}", *code)));
  std::string out;
  append_utf8(out, static_cast<char32_t>(*code));
  return StrValue{character(out)};
}

}  // namespace unisono::lang
