#include "runtime/files/csv.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstring>
#include <deque>
#include <limits>
#include <string_view>
#include <type_traits>
#include <unordered_map>

#include "runtime/check.h"
#include "runtime/files/file.h"
#include "runtime/stop.h"

namespace unisono {
namespace {

constexpr size_t most_columns = 16'384;
/// Texts are a tuple of the program's, which has no more than so many leaves.
constexpr size_t most_categories = 10'000;
constexpr std::string_view blanks = " \t";
constexpr std::string_view byte_order_mark = "\xef\xbb\xbf";

Error invalid(std::string message) {
  return {.kind = Error::Kind::invalid_file, .message = std::move(message)};
}

/// For messages: not too long, and nothing that a terminal obeys.
std::string shown(std::string_view text) {
  const bool cut = text.size() > 40;
  return fmt::format("{:?}{}", text.substr(0, 40), cut ? "..." : "");
}

std::string_view stripped(std::string_view text) {
  const size_t begin = text.find_first_not_of(blanks);
  if (begin == text.npos) return {};
  return text.substr(begin, text.find_last_not_of(blanks) + 1 - begin);
}

/// Goes over the rows of a text.
class RowReader {
 public:
  RowReader(std::string_view text, const CsvOptions& options)
      : text_(text), delimiter_(options.delimiter) {
    if (text_.starts_with(byte_order_mark)) at_ = byte_order_mark.size();
    for (int64_t i = 0; i < options.skip && at_ < text_.size(); ++i)
      skip_line();
  }

  /// Reads the next row that is not empty; false after the last one.
  Result<bool> next() {
    fields_.clear();
    unquoted_.clear();
    while (at_ < text_.size() && is_line_end(text_[at_])) end_line();
    if (at_ >= text_.size()) return false;
    row_line_ = line_;
    const size_t begin = at_;
    while (true) {
      TRY(field());
      if (fields_.size() > most_columns)
        return invalid(
            fmt::format("line {} has more than {} fields: is the "
                        "delimiter another one?",
                        row_line_, most_columns));
      if (at_ >= text_.size()) break;
      if (is_line_end(text_[at_])) {
        end_line();
        break;
      }
      ++at_;  // the delimiter
    }
    poll_.did(static_cast<int64_t>(at_ - begin));
    return true;
  }

  const std::vector<std::string_view>& fields() const { return fields_; }
  /// The line in which the row begins, from 1 on.
  int64_t line() const { return row_line_; }

 private:
  static bool is_line_end(char c) { return c == '\n' || c == '\r'; }
  void end_line() {
    if (text_[at_] == '\r' && at_ + 1 < text_.size() && text_[at_ + 1] == '\n')
      ++at_;
    ++at_;
    ++line_;
  }
  void skip_line() {
    while (at_ < text_.size() && !is_line_end(text_[at_])) ++at_;
    if (at_ < text_.size()) end_line();
  }

  /// Leaves off at the delimiter, line end or end of the text behind it.
  Status field() {
    if (at_ < text_.size() && text_[at_] == '"') return quoted_field();
    const size_t begin = at_;
    while (at_ < text_.size() && text_[at_] != delimiter_ &&
           !is_line_end(text_[at_]))
      ++at_;
    fields_.push_back(text_.substr(begin, at_ - begin));
    return Unit{};
  }

  Status quoted_field() {
    const int64_t line = line_;
    size_t begin = ++at_;
    std::string* joined = nullptr;  // pieces between doubled quotes
    while (true) {
      const size_t from = at_;
      at_ = std::min(text_.find('"', from), text_.size());
      const std::string_view piece = text_.substr(from, at_ - from);
      line_ += std::ranges::count(piece, '\n');
      poll_.did(static_cast<int64_t>(piece.size()));
      if (at_ == text_.size())
        return invalid(fmt::format(
            "the quoted field that begins in line {} does not end", line));
      ++at_;
      if (at_ == text_.size() || text_[at_] != '"') break;
      if (!joined) joined = &unquoted_.emplace_back();
      joined->append(text_, begin, at_ - begin);
      begin = ++at_;
    }
    if (at_ < text_.size() && text_[at_] != delimiter_ &&
        !is_line_end(text_[at_]))
      return invalid(fmt::format(
          "line {}: expected `{}` or the end of the line behind the closing "
          "quote, not {}",
          line_, delimiter_, shown(text_.substr(at_, 1))));
    const std::string_view rest = text_.substr(begin, at_ - 1 - begin);
    if (joined) joined->append(rest);
    fields_.push_back(joined ? std::string_view(*joined) : rest);
    return Unit{};
  }

  std::string_view text_;
  char delimiter_;
  size_t at_ = 0;
  int64_t line_ = 1, row_line_ = 1;
  std::vector<std::string_view> fields_;
  std::deque<std::string> unquoted_;  // fields with doubled quotes
  StopPoll poll_{1 << 20};
};

// ---- what a field says -----------------------------------------------------

/// Those of pandas.
bool is_missing_word(std::string_view text) {
  constexpr std::string_view words[] = {
      "#N/A", "#N/A N/A", "#NA",     "-1.#IND", "-1.#QNAN", "-NaN",
      "-nan", "1.#IND",   "1.#QNAN", "<NA>",    "N/A",      "NA",
      "NULL", "NaN",      "None",    "n/a",     "nan",      "null"};
  if (text.empty()) return true;
  if (text.size() > 8 || std::string_view("#-1<Nn").find(text[0]) == text.npos)
    return false;
  return std::ranges::count(words, text) > 0;
}

bool is_missing(std::string_view text, const CsvOptions& options) {
  return is_missing_word(text) || std::ranges::count(options.missing, text) > 0;
}

std::optional<bool> bool_of(std::string_view text) {
  if (text == "true" || text == "True" || text == "TRUE") return true;
  if (text == "false" || text == "False" || text == "FALSE") return false;
  return std::nullopt;
}

/// A number in text without blanks around it: decimal, with an exponent or
/// not, `inf` and its like. Nothing if it is none, or `T` cannot hold it.
template <class T>
std::optional<T> number_of(std::string_view text) {
  if (text.starts_with('+') && text.size() > 1 && text[1] != '-')
    text.remove_prefix(1);
  T value{};
  const char* const begin = text.data();
  const char* const end = begin + text.size();
  const auto read = std::from_chars(begin, end, value);
  if (read.ptr != end || text.empty() || text.ends_with(')'))
    return std::nullopt;
  if constexpr (std::is_floating_point_v<T>) {
    // Too small for T is 0, which is near; too large is nothing.
    if (read.ec == std::errc::result_out_of_range) {
      const size_t e = text.find_first_of("eE");
      const bool small =
          e != text.npos && e + 1 < text.size() && text[e + 1] == '-';
      if (small) return text.starts_with('-') ? -T(0) : T(0);
      return std::nullopt;
    }
  }
  if (read.ec != std::errc()) return std::nullopt;
  return value;
}

/// The digits of a decimal number without zeros around them, and the power of
/// ten that the first one stands for.
struct Digits {
  static constexpr int most = 40;
  std::array<char, most> digits = {};
  int count = 0;  // `most`: so many and perhaps more
  int power = 0;
  bool operator==(const Digits&) const = default;
};

/// Those of what number_of reads, but for `inf` and its like.
Digits digits_of(std::string_view text) {
  Digits out;
  int zeros = 0, before_point = 0;  // zeros that a later digit makes count
  bool point = false, begun = false;
  size_t at = 0;
  for (; at < text.size() && text[at] != 'e' && text[at] != 'E'; ++at) {
    const char c = text[at];
    if (c == '.') point = true;
    if (c < '0' || c > '9') continue;
    begun |= c != '0';
    before_point += begun && !point ? 1 : !begun && point ? -1 : 0;
    if (c == '0') {
      zeros += begun ? 1 : 0;
      continue;
    }
    for (; zeros > 0 && out.count < Digits::most; --zeros)
      out.digits[static_cast<size_t>(out.count++)] = '0';
    zeros = 0;
    if (out.count < Digits::most)
      out.digits[static_cast<size_t>(out.count++)] = c;
  }
  if (out.count == 0) return out;
  out.power = before_point;
  if (at < text.size())
    out.power += number_of<int>(text.substr(at + 1)).value_or(0);
  return out;
}

/// Whether the nearest `T`, a float, is a number as f64 is, or shows it with
/// the digits that it is written with: the fewest that tell it from its
/// neighbours. Then different numbers are different there, too.
template <class T>
bool shows(std::string_view text) {
  using Limits = std::numeric_limits<T>;
  const auto value = number_of<T>(text);
  if (!value) return false;
  const T size = std::fabs(*value);
  const Digits written = digits_of(text);
  if (!std::isfinite(size) || written.count == 0) return true;
  if (size < Limits::min()) return false;
  if constexpr (std::is_same_v<T, float>)
    if (static_cast<double>(*value) == number_of<double>(text)) return true;
  if (written.count == Digits::most) return false;
  if (written.count <= Limits::digits10) return true;
  char digits[Digits::most + 8];
  const auto has_these = [&](auto... format) {
    const auto end = std::to_chars(digits, std::end(digits), size, format...);
    return end.ec == std::errc() && digits_of({digits, end.ptr}) == written;
  };
  return has_these(std::chars_format::scientific) ||
         (size == std::trunc(size) && has_these(std::chars_format::fixed, 0));
}

}  // namespace

/// What is known of a column after its fields have been looked at, in whatever
/// order.
struct CsvSeen {
  bool any = false, missing = false;
  bool bools = true, numbers = true;
  bool whole = true;  // all numbers are, and i64 or u64 hold them
  /// f32 shows all fractions and holds all whole numbers exactly; f64 shows all
  /// whole numbers.
  bool narrow = true, wide = true;
  int64_t low = 0, high = 0;
  bool beyond = false;  // some need u64

  void look(std::string_view text) {
    any = true;
    if (bools && !bool_of(text)) bools = false;
    if (!numbers) return;
    if (const auto value = number_of<int64_t>(text)) {
      low = std::min(low, *value);
      high = std::max(high, *value);
      narrow = narrow && is_exact<float>(*value);
      wide = wide && (is_exact<double>(*value) || shows<double>(text));
      return;
    }
    if (number_of<uint64_t>(text)) {
      beyond = true;
      narrow = false;
      wide = wide && shows<double>(text);
      return;
    }
    whole = false;
    const auto value = number_of<double>(text);
    if (!value) {
      numbers = false;
    } else if (text.find_first_not_of("+-0123456789") == text.npos) {
      narrow = false;
      wide = wide && shows<double>(text);
    } else {
      // With a point or an exponent it is the nearest f64 at least. What is too
      // small for that is 0.
      narrow = narrow && (*value == 0 || shows<float>(text));
    }
  }

  bool is_text() const {
    if (!any || bools) return false;
    return !numbers || (!is_integer() && !wide);
  }
  DType dtype() const {
    if (!any) return DType::F32;
    if (bools) return missing ? DType::F32 : DType::Bool;
    if (!is_integer()) return narrow ? DType::F32 : DType::F64;
    using Limits = std::numeric_limits<int32_t>;
    if (beyond) return DType::U64;
    return low >= Limits::min() && high <= Limits::max() ? DType::I32
                                                         : DType::I64;
  }

 private:
  bool is_integer() const {
    return numbers && whole && !missing && !(beyond && low < 0);
  }
  /// Whether floats of type `T` are all integers of this size and less.
  template <class T>
  static bool is_exact(int64_t value) {
    constexpr int64_t most = int64_t{1} << std::numeric_limits<T>::digits;
    return value >= -most && value <= most;
  }
};

namespace {

/// A field as an element at `to`; false if it is none.
bool store(std::string_view text, bool missing, DType dtype, uint8_t* to) {
  return with_dtype(dtype, [&]<DType D>() {
    using T = typename StorageOf<D>::type;
    const auto put = [&](T value) {
      std::memcpy(to, &value, sizeof value);
      return true;
    };
    if constexpr (D == DType::Bool) {
      if (missing) return false;
      const auto value = bool_of(text);
      if (value) return put(*value);
      return (text == "0" || text == "1") && put(text == "1");
    } else if constexpr (std::is_integral_v<T>) {
      if (missing) return false;
      const auto value = number_of<T>(text);
      return value && put(*value);
    } else {
      using Read = std::conditional_t<std::is_same_v<T, double>, double, float>;
      if (missing) return put(T(std::numeric_limits<Read>::quiet_NaN()));
      if (const auto value = bool_of(text)) return put(T(Read(*value)));
      const auto value = number_of<Read>(text);
      return value && put(T(*value));
    }
  });
}

bool is_text(const CsvRequest& request) {
  return request.text || request.categories;
}

/// The texts of a column as they are met, and where each row has which.
class Texts {
 public:
  explicit Texts(const CsvRequest& request) : open_(!request.categories) {
    if (!open_)
      for (const std::string& text : *request.categories) number(text);
  }
  /// The text's position; -1 if it is none of those that were given, -2 if
  /// there are too many.
  int32_t number(std::string_view text) {
    if (const auto known = numbers_.find(std::string(text));
        known != numbers_.end())
      return known->second;
    if (!open_ && closed_) return -1;
    if (open_ && texts_.size() == most_categories) return -2;
    const auto next = static_cast<int32_t>(texts_.size());
    numbers_.emplace(text, next);
    texts_.emplace_back(text);
    return next;
  }
  void close() { closed_ = true; }
  /// The texts of a file's own sorted, and the position that each number gets.
  std::vector<std::string> finish(std::vector<int32_t>& places) {
    places.resize(texts_.size());
    std::vector<std::string> sorted = texts_;
    if (open_) std::ranges::sort(sorted);
    for (size_t i = 0; i < texts_.size(); ++i)
      places[i] = open_ ? static_cast<int32_t>(
                              std::ranges::lower_bound(sorted, texts_[i]) -
                              sorted.begin())
                        : static_cast<int32_t>(i);
    return sorted;
  }

 private:
  bool open_, closed_ = false;
  std::unordered_map<std::string, int32_t> numbers_;
  std::vector<std::string> texts_;
};

}  // namespace

/// A column while it is filled.
class CsvFilling {
 public:
  CsvFilling(const CsvRequest& request, const CsvSeen& seen)
      : texts_(request), typed_(request.dtype) {
    column_.is_text = is_text(request) || (!typed_ && seen.is_text());
    column_.dtype =
        column_.is_text ? DType::I32 : request.dtype.value_or(seen.dtype());
    texts_.close();
  }

  /// Room for all elements; takes it from `most`.
  Status allocate(int64_t rows, int64_t& most) {
    const int64_t bytes = rows * byte_size(column_.dtype);
    column_.elements = TRY(allocate_bytes(bytes, most));
    most -= bytes;
    stores_ = true;
    return Unit{};
  }
  /// Whether `put` finds out more: elements, texts, what is of no such type.
  bool wants_fields() const { return stores_ || column_.is_text || typed_; }

  /// What is wrong with the field; empty if nothing is.
  std::string put(std::string_view field, int64_t row,
                  const CsvOptions& options) {
    const std::string_view bare = stripped(field);
    const bool missing = is_missing(bare, options);
    uint8_t unwanted[8];
    uint8_t* to = stores_
                      ? column_.elements.data() + row * byte_size(column_.dtype)
                      : unwanted;
    if (column_.is_text) return put_text(field, missing, to);
    if (store(bare, missing, column_.dtype, to)) return "";
    const std::string_view type = unisono::name(column_.dtype);
    return missing ? fmt::format(
                         "nothing stands here, and {} has no value for "
                         "that; floats have",
                         type)
                   : fmt::format("{} is no {}", shown(field), type);
  }

  CsvColumn finish() {
    if (!column_.is_text) return std::move(column_);
    std::vector<int32_t> places;
    column_.categories = texts_.finish(places);
    for (size_t at = 0; at < column_.elements.size(); at += sizeof(int32_t)) {
      int32_t number;
      std::memcpy(&number, &column_.elements[at], sizeof number);
      if (number < 0) continue;
      std::memcpy(&column_.elements[at], &places[number], sizeof number);
    }
    return std::move(column_);
  }

 private:
  std::string put_text(std::string_view field, bool missing, uint8_t* to) {
    const int32_t number = missing ? -1 : texts_.number(field);
    if (number == -2)
      return fmt::format(
          "more than {} different texts: leave the column out, `columns` names "
          "those to read",
          most_categories);
    if (number == -1 && !missing)
      return fmt::format("{} is none of the categories that `types` gives",
                         shown(field));
    std::memcpy(to, &number, sizeof number);
    return "";
  }

  CsvColumn column_;
  Texts texts_;
  bool typed_, stores_ = false;
};

namespace {

std::string_view text_of(const std::vector<uint8_t>& bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

Error wrong_fields(int64_t line, size_t have, size_t expected) {
  return invalid(fmt::format("line {} has {} field{}, but the first row has {}",
                             line, have, have == 1 ? "" : "s", expected));
}

}  // namespace

Result<CsvFile> CsvFile::open(const std::string& path, CsvOptions options,
                              int64_t most_bytes) {
  const InputFile file = TRY(InputFile::open(path));
  CsvFile out;
  out.bytes_ = TRY(allocate_bytes(file.size(), most_bytes));
  out.most_bytes_ = most_bytes - file.size();
  out.options_ = std::move(options);
  TRY(file.read(0, out.bytes_));
  return unless_stopped([&]() -> Result<CsvFile> {
    const std::string_view text = text_of(out.bytes_);
    bool zeros = false;
    in_pieces(static_cast<int64_t>(text.size()), int64_t{16} << 20,
              [&](int64_t begin, int64_t end) {
                zeros |=
                    text.substr(begin, end - begin).find('\0') != text.npos;
              });
    if (zeros)
      return invalid(
          "it holds bytes of 0, so it is no text, or UTF-16: save it as UTF-8");
    RowReader rows(text, out.options_);
    if (!TRY(rows.next())) return invalid("there is no row in it");
    for (const std::string_view field : rows.fields())
      out.names_.emplace_back(out.options_.header ? field : std::string_view());
    return std::move(out);
  });
}

Status CsvFile::look(const std::vector<CsvRequest>& requests,
                     std::vector<CsvSeen>& seen) {
  RowReader rows(text_of(bytes_), options_);
  if (options_.header) TRY(rows.next());
  for (rows_ = 0; TRY(rows.next()); ++rows_) {
    if (rows.fields().size() != names_.size())
      return wrong_fields(rows.line(), rows.fields().size(), names_.size());
    for (size_t i = 0; i < requests.size(); ++i) {
      if (requests[i].dtype || is_text(requests[i])) continue;
      const std::string_view field =
          stripped(rows.fields()[requests[i].column]);
      if (is_missing(field, options_))
        seen[i].missing = true;
      else
        seen[i].look(field);
    }
  }
  return Unit{};
}

Status CsvFile::fill(const std::vector<CsvRequest>& requests,
                     std::vector<CsvFilling>& columns) const {
  RowReader rows(text_of(bytes_), options_);
  if (options_.header) TRY(rows.next());
  for (int64_t row = 0; TRY(rows.next()); ++row)
    for (size_t i = 0; i < requests.size(); ++i) {
      const size_t column = requests[i].column;
      const std::string wrong =
          columns[i].put(rows.fields()[column], row, options_);
      if (wrong.empty()) continue;
      const std::string name = names_[column].empty()
                                   ? fmt::format("{}", column + 1)
                                   : shown(names_[column]);
      return invalid(
          fmt::format("line {}, column {}: {}", rows.line(), name, wrong));
    }
  return Unit{};
}

Result<std::vector<CsvColumn>> CsvFile::columns(
    const std::vector<CsvRequest>& requests, bool with_elements) {
  return unless_stopped([&]() -> Result<std::vector<CsvColumn>> {
    std::vector<CsvSeen> seen(requests.size());
    TRY(look(requests, seen));
    std::vector<CsvFilling> columns;
    bool again = false;
    int64_t most = most_bytes_;
    for (size_t i = 0; i < requests.size(); ++i) {
      columns.emplace_back(requests[i], seen[i]);
      if (with_elements) TRY(columns[i].allocate(rows_, most));
      again |= columns[i].wants_fields();
    }
    if (again) TRY(fill(requests, columns));
    std::vector<CsvColumn> out;
    for (CsvFilling& column : columns) out.push_back(column.finish());
    return out;
  });
}

// ---- writing ---------------------------------------------------------------

namespace {

void append_field(std::string& out, std::string_view text, char delimiter) {
  const bool plain = text.find_first_of("\"\r\n") == text.npos &&
                     text.find(delimiter) == text.npos && !text.empty();
  if (plain) {
    out += text;
    return;
  }
  out += '"';
  for (const char c : text) {
    if (c == '"') out += '"';
    out += c;
  }
  out += '"';
}

template <class T>
void append_float(std::string& out, T value) {
  if (std::isnan(value)) return;  // missing
  char text[64];
  const auto done = std::to_chars(text, text + sizeof text, value);
  const std::string_view digits(text, done.ptr - text);
  out += digits;
  if (digits.find_first_of(".en") == digits.npos) out += ".0";
}

/// A 16-bit float with as few digits as say which it is.
template <class T>
void append_short(std::string& out, T value) {
  const auto wide = static_cast<float>(value);
  for (int digits = 1; std::isfinite(wide) && digits <= 5; ++digits) {
    const std::string text = fmt::format("{:.{}g}", wide, digits);
    const auto near = number_of<float>(text);
    if (!near || static_cast<float>(T(*near)) != wide) continue;
    out += text;
    if (text.find_first_of(".e") == text.npos) out += ".0";
    return;
  }
  append_float(out, wide);
}

void append_element(std::string& out, DType dtype, const uint8_t* at) {
  with_dtype(dtype, [&]<DType D>() {
    typename StorageOf<D>::type value;
    std::memcpy(&value, at, sizeof value);
    if constexpr (D == DType::Bool)
      out += value ? "true" : "false";
    else if constexpr (D == DType::F16 || D == DType::BF16)
      append_short(out, value);
    else if constexpr (std::is_floating_point_v<decltype(value)>)
      append_float(out, value);
    else
      out += fmt::format("{}", value);
  });
}

}  // namespace

Status write_csv(const std::string& path, const std::vector<CsvSource>& columns,
                 char delimiter, bool header) {
  OutputFile file = TRY(OutputFile::create(path));
  std::string out;
  const auto write = [&]() -> Status {
    TRY(file.write({reinterpret_cast<const uint8_t*>(out.data()), out.size()}));
    out.clear();
    return Unit{};
  };
  if (header) {
    for (size_t i = 0; i < columns.size(); ++i) {
      if (i > 0) out += delimiter;
      append_field(out, columns[i].name, delimiter);
    }
    out += '\n';
  }
  const int64_t rows = columns.empty() ? 0 : columns[0].data.shape[0];
  for (const CsvSource& column : columns) CHECK(column.data.shape[0] == rows);
  for (int64_t row = 0; row < rows; ++row) {
    const size_t begin = out.size();
    for (size_t i = 0; i < columns.size(); ++i) {
      if (i > 0) out += delimiter;
      const CsvSource& column = columns[i];
      const DType dtype = column.data.dtype;
      const uint8_t* at = column.data.bytes.data() + row * byte_size(dtype);
      if (!column.categories) {
        append_element(out, dtype, at);
        continue;
      }
      std::string number;
      append_element(number, dtype, at);
      const auto place = number_of<int64_t>(number);
      if (!place || *place >= static_cast<int64_t>(column.categories->size()))
        return invalid(fmt::format(
            "row {} of `{}` has the code {}, but there are {} categories", row,
            column.name, number, column.categories->size()));
      if (*place >= 0)
        append_field(out, (*column.categories)[*place], delimiter);
    }
    // An empty line would be no row.
    if (out.size() == begin) out += "\"\"";
    out += '\n';
    if (out.size() > size_t{1} << 20) TRY(write());
  }
  TRY(write());
  return file.commit();
}

}  // namespace unisono
