// Tables in text files: `read_csv`, `write_csv`.
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <optional>

#include "lang/builtins/sorted_texts.h"
#include "lang/builtins/written_file.h"
#include "lang/context/call_of.h"
#include "lang/context/function.h"
#include "lang/context/processes.h"
#include "lang/ops/array_ops.h"
#include "lang/ops/builtin_arguments.h"
#include "lang/ops/operators.h"
#include "lang/ops/sizes.h"
#include "lang/ops/text.h"
#include "lang/source/utf8.h"
#include "lang/syntax/lexer.h"
#include "runtime/cluster/cluster_device.h"
#include "runtime/files/csv.h"
#include "runtime/stop.h"

namespace unisono::lang {
namespace {

constexpr std::string_view tables_outside =
    "read and write tables outside of it, and pass their columns as arguments";

/// A `str`, or a tuple of them, each known.
std::vector<std::string> texts_argument(Argument argument) {
  std::vector<std::string> out;
  const auto add = [&](const Value& value) {
    const auto* text = value.get_if<StrValue>();
    if (!text || !text->value)
      wrong_argument(argument, value,
                     "a `str` or a tuple of `str`s that is "
                     "known while the program is checked");
    out.push_back(*text->value);
  };
  if (const TupleValue* tuple = argument.value().tuple())
    for (const Value& item : tuple->items) add(item);
  else
    add(argument.value());
  return out;
}

char delimiter_argument(Argument argument, const std::string& path) {
  if (!argument.given()) return path.ends_with(".tsv") ? '\t' : ',';
  const std::string text = str_argument(argument);
  if (text.size() != 1 || text.find_first_of("\"\r\n") != text.npos ||
      static_cast<unsigned char>(text[0]) >= 0x80)
    argument.call().walk.fail(diagnostic(
        Code::wrong_argument, argument.where(), describe_argument(argument),
        "one character of ASCII that is no quote and ends no line",
        fmt::format("{:?}", text)));
  return text[0];
}

// ---- names -----------------------------------------------------------------

/// A column's name as a name of the language: `Sepal.Length (cm)` is
/// `Sepal_Length_cm`. What can stand in no name becomes `_`.
std::string legal_name(std::string_view text) {
  std::string out;
  bool gap = false;
  for (size_t i = 0; i < text.size();) {
    const CodePoint c = decode_utf8(text, i);
    const size_t length = std::max(c.length, 1u);
    const bool digit = c.value >= '0' && c.value <= '9';
    const bool letter = (c.value >= 'a' && c.value <= 'z') ||
                        (c.value >= 'A' && c.value <= 'Z') || c.value == '_' ||
                        is_foreign_letter(c.value);
    if (c.length > 0 && (letter || digit)) {
      if (gap && !out.empty() && out.back() != '_') out += '_';
      if (digit && out.empty()) out += '_';
      out += text.substr(i, length);
      gap = false;
    } else {
      gap = true;
    }
    i += length;
  }
  return out;
}

/// A name for each column, all different.
std::vector<std::string> column_names(const std::vector<std::string>& texts) {
  std::vector<std::string> out;
  for (size_t i = 0; i < texts.size(); ++i) {
    const std::string plain = legal_name(texts[i]);
    const std::string name = plain.empty() ? fmt::format("c{}", i) : plain;
    std::string own = name;
    for (int n = 2; std::ranges::count(out, own) > 0; ++n)
      own = fmt::format("{}_{}", name, n);
    out.push_back(std::move(own));
  }
  return out;
}

/// A table that is read: its file, and the columns that are wanted.
class Table {
 public:
  Table(CallOf<"read_csv">& call, const std::string& path)
      : call_(call), walk_(call.walk), path_(path), file_(open()) {
    texts_ = file_.names();
    if (header_names_) {
      if (header_names_->size() != texts_.size())
        wrong_argument(call["header"],
                       fmt::format("as many names as the file has columns, {}",
                                   texts_.size()));
      texts_ = *header_names_;
    }
    for (const std::string& text : texts_) require_utf8(text);
    names_ = column_names(texts_);
    choose_columns();
    read_types();
  }

  Value read(bool with_elements) {
    auto columns = file_.columns(requests_, with_elements);
    if (!columns) fail(columns.error());
    std::vector<std::pair<std::string, Value>> fields;
    for (size_t i = 0; i < columns->size(); ++i)
      fields.emplace_back(names_[requests_[i].column],
                          column((*columns)[i], with_elements));
    return make_record(std::move(fields));
  }

 private:
  [[noreturn]] void fail(const Error& error) {
    cannot_read(walk_, path_, error, call_["path"].where());
  }

  void require_utf8(std::string_view text) {
    for (size_t i = 0; i < text.size();) {
      const uint32_t length = decode_utf8(text, i).length;
      if (length == 0)
        fail(
            {.kind = Error::Kind::invalid_file,
             .message = fmt::format("the text `{}` is not UTF-8: save the file "
                                    "as UTF-8",
                                    visible(text))});
      i += length;
    }
  }

  CsvFile open() {
    CsvOptions options;
    options.delimiter = delimiter_argument(call_["delimiter"], path_);
    if (call_["missing"].given())
      options.missing = texts_argument(call_["missing"]);
    if (call_["skip"].given()) {
      options.skip = known_int_argument(call_["skip"]);
      if (options.skip < 0)
        walk_.fail(diagnostic(Code::wrong_argument, call_["skip"].where(),
                              describe_argument(call_["skip"]),
                              "a number of lines, 0 or more",
                              fmt::format("{}", options.skip)));
    }
    const Argument header = call_["header"];
    if (header.given() && header.value().tuple()) {
      header_names_ = texts_argument(header);
      options.header = false;
    } else {
      options.header = bool_argument_or(header, true);
    }
    auto file = CsvFile::open(path_, options);
    if (!file) fail(file.error());
    return std::move(*file);
  }

  /// The column with this name, as it stands in the file or as it is here.
  size_t find(Argument argument, const std::string& name) {
    for (const auto& names : {names_, texts_})
      if (const auto at = std::ranges::find(names, name); at != names.end())
        return static_cast<size_t>(at - names.begin());
    std::string all;
    for (size_t i = 0; i < names_.size() && i < 12; ++i)
      all += fmt::format("{}`{}`", i > 0 ? ", " : "", names_[i]);
    if (names_.size() > 12) all += ", ...";
    walk_.fail(diagnostic(Code::unknown_column, argument.where(), name,
                          fmt::format("{:?}", path_))
                   .add_fact("it has " + all));
  }

  void choose_columns() {
    const Argument columns = call_["columns"];
    if (!columns.given()) {
      for (size_t i = 0; i < names_.size(); ++i)
        requests_.push_back({.column = i});
      return;
    }
    for (const std::string& name : texts_argument(columns)) {
      const size_t column = find(columns, name);
      if (std::ranges::count(requests_, column, &CsvRequest::column) > 0)
        walk_.fail(diagnostic(Code::wrong_argument, columns.where(),
                              describe_argument(columns), "each column once",
                              fmt::format("`{}` twice", name)));
      requests_.push_back({.column = column});
    }
  }

  void read_types() {
    const Argument types = call_["types"];
    if (!types.given()) return;
    const RecordValue* record = types.value().record();
    if (!record) {
      for (CsvRequest& request : requests_)
        read_type(types, types.value(), request);
      return;
    }
    for (const auto& [name, type] : record->fields) {
      const size_t column = find(types, name);
      const auto request =
          std::ranges::find(requests_, column, &CsvRequest::column);
      if (request != requests_.end()) read_type(types, type, *request);
    }
  }

  void read_type(Argument types, const Value& value, CsvRequest& request) {
    const auto* type = value.get_if<TypeValue>();
    if (type && type->type.rank() == 0) {
      request.dtype = type->type.dtype;
      return;
    }
    const auto* function = value.get_if<std::shared_ptr<const FunctionValue>>();
    const auto* builtin =
        function ? std::get_if<const Builtin*>(&(*function)->what) : nullptr;
    if (builtin && *builtin == find_builtin("str")) {
      request.text = true;
      return;
    }
    request.categories.emplace();
    const TupleValue* tuple = value.tuple();
    bool texts = tuple != nullptr && !tuple->items.empty();
    for (size_t i = 0; texts && i < tuple->items.size(); ++i) {
      const auto* text = tuple->items[i].get_if<StrValue>();
      texts = text && text->value &&
              std::ranges::count(*request.categories, *text->value) == 0;
      if (texts) request.categories->push_back(*text->value);
    }
    if (texts) return;
    const std::string& name = names_[request.column];
    walk_.fail(
        diagnostic(Code::wrong_argument, types.where(),
                   describe_argument(types),
                   fmt::format("for `{}` an element type, `str`, or a tuple of "
                               "the texts that it has, all different",
                               name),
                   type_name(value))
            .set_help(fmt::format("a type for all columns is `types=f64`, for "
                                  "some `types=({} = f64)`",
                                  name)));
  }

  Value column(const CsvColumn& column, bool with_elements) {
    for (const std::string& text : column.categories) require_utf8(text);
    const ir::Type type{column.dtype, {ir::Dim(file_.rows())}};
    Value elements = walk_.unknown_array(type);
    if (with_elements) {
      Device& device = home_device(walk_.machine().runtime->devices());
      auto array = array_from_host(device, column.dtype, {file_.rows()},
                                   column.elements.data());
      if (!array) walk_.fail(array.error(), call_.where);
      elements = walk_.from_array(std::move(*array));
    }
    if (!column.is_text) return elements;
    std::vector<Value> texts;
    for (const std::string& text : column.categories)
      texts.push_back(StrValue{text});
    return make_record({{"codes", std::move(elements)},
                        {"categories", make_tuple(std::move(texts))}});
  }

  CallOf<"read_csv">& call_;
  Walk& walk_;
  const std::string& path_;
  std::optional<std::vector<std::string>> header_names_;
  CsvFile file_;
  std::vector<std::string> texts_, names_;  // [column]
  std::vector<CsvRequest> requests_;
};

}  // namespace

Value builtin_read_csv(CallOf<"read_csv">& call) {
  Walk& walk = call.walk;
  require_files(walk, call.builtin.name, call.where);
  refuse_in_compiled_code(call, tables_outside);
  const auto path =
      any_path_argument(walk, call["path"], "path", call.builtin.name);
  if (walk.mode() != Mode::check) {
    if (!walk.machine().compile_only) return Table(call, *path).read(true);
    return walk.with_absent(Table(call, *path).read(false));
  }
  std::error_code ignored;
  if (!path || walk.written_files.contains(*path) ||
      !std::filesystem::exists(*path, ignored))
    fail_unknown_file(call, call["path"], "(x: f32[n], y: i32[n])");
  return Table(call, *path).read(false);
}

// ---- writing ---------------------------------------------------------------

namespace {

/// A column to be written: numbers, and texts if they are positions in these.
struct Column {
  std::string name;
  ArrayValue numbers;
  std::optional<std::vector<std::string>> categories;
};

/// A tuple of words as a column: each is a category of its own.
void words_column(Walk& walk, const Value& words, Span where, Column& out) {
  const TupleValue* items = words.tuple();
  out.categories.emplace();
  if (!items) {  // while checking
    out.numbers = walk.unknown_array({DType::I32, {unknown_int(walk).value}});
    return;
  }
  for (const Value& item : items->items) {
    const Text word = known_text(walk, *item.get_if<StrValue>(), where);
    out.categories->push_back(word ? *word : "");
  }
  out.numbers =
      iota(walk, {DType::I32, {static_cast<int64_t>(items->items.size())}}, 0,
           where);
}

Column column_argument(Argument table, const std::string& name,
                       const Value& value) {
  Walk& walk = table.call().walk;
  const std::string what = fmt::format("column `{}`", name);
  const auto expected = [&](std::string_view expected, const Value& seen) {
    walk.fail(diagnostic(Code::wrong_argument, table.where(), what, expected,
                         type_name(seen)));
  };
  Column out{name, nullptr, {}};
  if (is_texts(value)) {
    words_column(walk, value, table.where(), out);
    return out;
  }
  const RecordValue* record = value.record();
  const Value* codes = record ? record->find("codes") : nullptr;
  const Value* categories = record ? record->find("categories") : nullptr;
  if (record || value.tuple() || value.is<StrValue>()) {
    const TupleValue* texts = categories ? categories->tuple() : nullptr;
    if (!codes || !texts)
      expected(
          "an array of one axis, a tuple of words, or `(codes = ..., "
          "categories = ...)`",
          value);
    out.categories.emplace();
    for (const Value& item : texts->items) {
      const auto* text = item.get_if<StrValue>();
      if (!text) expected("text with `str`s as its categories", *categories);
      out.categories->push_back(text->value ? *text->value : "");
    }
  }
  out.numbers = walk.to_array(codes ? *codes : value, table.where(), what);
  if (out.numbers->type.rank() != 1)
    expected("an array of one axis", codes ? *codes : value);
  if (codes && !is_integer(out.numbers->type.dtype))
    expected("text with integers as its codes", *codes);
  return out;
}

}  // namespace

Value builtin_write_csv(CallOf<"write_csv">& call) {
  Walk& walk = call.walk;
  require_files(walk, call.builtin.name, call.where);
  refuse_in_compiled_code(call, tables_outside);
  const auto path =
      any_path_argument(walk, call["path"], "path", call.builtin.name);
  const Argument table = call["table"];
  const RecordValue* record = table.value().record();
  if (!record || record->fields.empty())
    wrong_argument(table, "a record of columns: `(x = x[:, 0], y = x[:, 1])`");
  std::vector<Column> columns;
  for (const auto& [name, value] : record->fields)
    columns.push_back(column_argument(table, name, value));
  const ir::Dim& rows = columns[0].numbers->type.shape[0];
  for (const Column& column : columns) {
    const ir::Dim& own = column.numbers->type.shape[0];
    if (!same_size(own, rows) && (own - rows).is_constant())
      walk.fail(diagnostic(
                    Code::scan_lengths_differ, table.where(), call.builtin.name,
                    fmt::format("`{}`", columns[0].name), rows.to_string(),
                    fmt::format("`{}`", column.name), own.to_string())
                    .about(own - rows));
  }
  const char delimiter =
      delimiter_argument(call["delimiter"], path.value_or(""));
  const bool header = bool_argument_or(call["header"], true);
  if (walk.mode() == Mode::check || walk.machine().compile_only) {
    // What types it has when it is read, its elements say.
    if (path) walk.written_files[*path] = std::nullopt;
    return NoneValue{};
  }
  sweep_beside(walk, *path);
  std::vector<CsvSource> sources;
  for (const Column& column : columns) {
    const ArrayValue& numbers = column.numbers;
    sources.push_back({column.name,
                       {numbers->type.dtype, numbers->type.sizes(),
                        walk.host_bytes(numbers, table.where())},
                       column.categories});
  }
  const Status written = write_once(walk, call.where, [&] {
    return unless_stopped(
        [&] { return write_csv(*path, sources, delimiter, header); });
  });
  if (!written)
    cannot_write(walk, *path, written.error(), call["path"].where());
  return NoneValue{};
}

}  // namespace unisono::lang
