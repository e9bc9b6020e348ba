// Pictures: numbers are brought to the host, lang/pictures makes a file's bytes
// of them, and here they are written, or shown where somebody sees them.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "lang/builtins/written_file.h"
#include "lang/context/call_of.h"
#include "lang/ops/builtin_arguments.h"
#include "lang/ops/operators.h"
#include "lang/pictures/heatmap.h"
#include "lang/pictures/plot.h"
#include "lang/pictures/png.h"
#include "runtime/files/file.h"
#include "runtime/heap.h"
#include "runtime/stop.h"

namespace unisono::lang {
namespace {

/// Where a picture goes.
struct Target {
  /// Nothing: it is shown, or the path is not known yet.
  std::optional<std::string> path;
  Span where;

  bool is_png() const { return path && path->ends_with(".png"); }
};

/// `file` may be null: the call has none.
Target target_of(const BuiltinCall& call, const CallArgument* file,
                 std::initializer_list<std::string_view> endings) {
  Walk& walk = call.walk;
  refuse_in_compiled_code(call, "draw what the compiled code returns");
  if (file) require_files(walk, call.builtin.name, call.where);
  if (file)
    return {path_argument(walk, *file, "file", call.builtin.name, endings),
            file->where};
  const std::string_view ending = *endings.begin();
  if (!walk.machine().show_picture)
    walk.fail(diagnostic(Code::wrong_argument, call.where,
                         fmt::format("`file` of `{}`", call.builtin.name),
                         fmt::format("a path that ends in `{}`", ending),
                         "`none`")
                  .set_help(fmt::format(
                      "name a file: `{0}(..., \"{0}{1}\")`; only a notebook "
                      "shows pictures itself",
                      call.builtin.name, ending)));
  return {std::nullopt, call.where};
}

const CallArgument* written(Argument argument) {
  if (!argument.given()) return nullptr;
  return &static_cast<const CallArgument&>(argument);
}

/// Whether nothing is drawn in this mode.
bool only_checks(Walk& walk) {
  return walk.mode() == Mode::check || walk.machine().compile_only;
}

void give(Walk& walk, const Target& target, std::string_view type,
          const std::string& bytes) {
  if (target.path)
    write_file(walk, *target.path, bytes, target.where);
  else
    walk.machine().show_picture(type, bytes);
}

std::string bytes_of(Walk& walk, Result<std::string> picture, Span where) {
  if (!picture) walk.fail(picture.error(), where);
  return std::move(*picture);
}

/// A text, empty without one or where it is not known yet.
std::string text_of(Argument argument) {
  if (!argument.given()) return "";
  const auto* text = argument.value().get_if<StrValue>();
  if (!text) wrong_argument(argument, "a `str`");
  return text->value ? *text->value : "";
}

/// The elements as f64, row-major.
std::vector<double> elements_of(Walk& walk, const ArrayValue& array,
                                Span where) {
  const std::vector<uint8_t> bytes =
      walk.host_bytes(cast_to(walk, array, DType::F64, where), where);
  std::vector<double> out(bytes.size() / sizeof(double));
  if (!out.empty()) std::memcpy(out.data(), bytes.data(), bytes.size());
  return out;
}

/// A number for the picture; nothing if it is not given, or not yet known.
std::optional<double> number_of(Argument argument, bool known) {
  if (!argument.given()) return std::nullopt;
  const ArrayValue array = array_argument(argument);
  if (array->type.rank() != 0) wrong_argument(argument, "a number");
  if (!known) return std::nullopt;
  const double number =
      elements_of(argument.call().walk, array, argument.where())[0];
  if (!std::isfinite(number)) wrong_argument(argument, "a finite number");
  return number;
}

// ---- plot ------------------------------------------------------------------

/// An array with its place in the call.
struct Column {
  ArrayValue array;
  Span where;
};

class PlotCall {
 public:
  explicit PlotCall(CallOf<"plot">& call) : call_(call), walk_(call.walk) {}

  Value draw() {
    read_positions();
    const Target target = target_of(call_, file_, {".svg"});
    read_y(*y_);
    if (x_) read_x(*x_);
    for (size_t s = 0; s < columns_.size(); ++s) check_lengths(s);
    read_options();
    if (only_checks(walk_)) return NoneValue{};
    give(walk_, target, "image/svg+xml", svg_of_plot(series(), options_));
    return NoneValue{};
  }

 private:
  /// plot(x, y, file), plot(y, file), plot(y, file=...).
  void read_positions() {
    const Argument x = call_["x"], y = call_["y"], file = call_["file"];
    file_ = written(file);
    y_ = written(x);
    const bool is_file = y.given() && y.value().is<StrValue>();
    if (is_file && file_) wrong_argument(y, "arrays");
    if (is_file) {
      file_ = written(y);
    } else if (y.given()) {
      x_ = written(x);
      y_ = written(y);
    }
  }

  std::string_view y_name() const { return x_ ? "y" : "x"; }

  [[noreturn]] void wrong(std::string_view name, Span where,
                          std::string_view expected, const Value& value) {
    walk_.fail(diagnostic(Code::wrong_argument, where,
                          fmt::format("`{}` of `plot`", name), expected,
                          type_name(value)));
  }

  ArrayValue array_of(const Value& value, std::string_view name, Span where,
                      int most_axes, std::string_view expected) {
    const ArrayValue array =
        walk_.to_array(value, where, fmt::format("`{}` of `plot`", name));
    const int rank = array->type.rank();
    if (rank < 1 || rank > most_axes) wrong(name, where, expected, value);
    return array;
  }

  void read_y(const CallArgument& y) {
    constexpr std::string_view one_each =
        "an array with one axis for each series";
    const auto add = [&](const Value& item) {
      columns_.push_back({array_of(item, y_name(), y.where, 1, one_each), {}});
    };
    if (const TupleValue* tuple = y.value.tuple()) {
      for (const Value& item : tuple->items) add(item);
    } else if (const RecordValue* record = y.value.record()) {
      for (const auto& [name, item] : record->fields) {
        add(item);
        labels_.push_back(name);
      }
    } else {
      matrix_ = array_of(y.value, y_name(), y.where, 2,
                         "an array with one axis, or with two, of which each "
                         "column is a series");
      if (matrix_->type.rank() == 1) {
        columns_.push_back({matrix_, y.where});
        matrix_.reset();
        single_ = true;
      }
    }
    if (columns_.empty() && !matrix_)
      wrong(y_name(), y.where, "at least one array", y.value);
  }

  void read_x(const CallArgument& x) {
    const TupleValue* tuple = x.value.tuple();
    if (!tuple || matrix_) {
      x_columns_.push_back(
          {array_of(x.value, "x", x.where, 1, "an array with one axis"),
           x.where});
      return;
    }
    if (tuple->items.size() != columns_.size())
      wrong("x", x.where,
            fmt::format("one array, or {} as `y`", columns_.size()), x.value);
    for (const Value& item : tuple->items)
      x_columns_.push_back(
          {array_of(item, "x", x.where, 1, "arrays with one axis"), x.where});
  }

  const ArrayValue& x_of(size_t s) const {
    return x_columns_[x_columns_.size() == 1 ? 0 : s].array;
  }

  void check_lengths(size_t s) { check_length(columns_[s].array, x_, s); }

  /// Sizes that are symbols are compared when it runs.
  void check_length(const ArrayValue& y, const CallArgument* x, size_t s) {
    if (!x) return;
    const ir::Dim& have = y->type.shape[0];
    const ir::Dim& want = x_of(s)->type.shape[0];
    if (!have.is_constant() || !want.is_constant() || have == want) return;
    walk_.fail(diagnostic(
        Code::wrong_argument, y_->where, "`y` of `plot`",
        fmt::format("as long as `x`, which has {} elements", want.to_string()),
        y->type.to_string()));
  }

  void read_options() {
    if (matrix_) check_length(matrix_, x_, 0);
    options_ = {.title = text_of(call_["title"]),
                .x_label = text_of(call_["x_label"]),
                .y_label = text_of(call_["y_label"]),
                .x_log = bool_argument_or(call_["x_log"], false),
                .y_log = bool_argument_or(call_["y_log"], false)};
    const Argument style = call_["style"];
    if (const std::string name = text_of(style); name == "points")
      options_.style = PlotOptions::Style::points;
    else if (style.given() && name != "line" &&
             style.value().get_if<StrValue>()->value)
      walk_.fail(diagnostic(Code::wrong_argument, style.where(),
                            describe_argument(style), "\"line\" or \"points\"",
                            fmt::format("{:?}", name)));
    read_labels();
    options_.legend = call_["labels"].given() || !single_;
  }

  /// How many series there are, if that is known yet.
  std::optional<size_t> series_count() const {
    if (!matrix_) return columns_.size();
    const ir::Dim& count = matrix_->type.shape[1];
    if (!count.is_constant()) return std::nullopt;
    return static_cast<size_t>(count.value());
  }

  void read_labels() {
    const Argument labels = call_["labels"];
    if (!labels.given() || labels.value().is<ManyValue>()) return;
    labels_.clear();
    std::vector<Value> items = {labels.value()};
    if (const TupleValue* tuple = labels.value().tuple()) items = tuple->items;
    for (const Value& item : items) {
      const auto* text = item.get_if<StrValue>();
      if (!text) wrong_argument(labels, "a `str`, or a tuple of them");
      labels_.push_back(text->value ? *text->value : "");
    }
    const auto count = series_count();
    if (!count || *count == labels_.size()) return;
    walk_.fail(diagnostic(Code::wrong_argument, labels.where(),
                          describe_argument(labels),
                          fmt::format("{} {}, one for each series", *count,
                                      *count == 1 ? "text" : "texts"),
                          fmt::format("{}", labels_.size())));
  }

  std::string label(size_t s) const {
    return s < labels_.size() ? labels_[s] : std::to_string(s);
  }

  std::vector<Series> series() {
    std::vector<Series> out;
    for (size_t s = 0; s < columns_.size(); ++s)
      out.push_back(
          {label(s), {}, elements_of(walk_, columns_[s].array, y_->where)});
    if (matrix_) {
      const std::vector<double> all = elements_of(walk_, matrix_, y_->where);
      const size_t count = *series_count();
      for (size_t s = 0; s < count; ++s) {
        out.push_back({label(s), {}, {}});
        for (size_t i = s; i < all.size(); i += count)
          out.back().y.push_back(all[i]);
      }
    }
    for (size_t s = 0; s < out.size(); ++s) {
      Series& one = out[s];
      if (x_) {
        one.x = elements_of(walk_, x_of(s), x_->where);
        continue;
      }
      for (size_t i = 0; i < one.y.size(); ++i)
        one.x.push_back(static_cast<double>(i));
    }
    return out;
  }

  CallOf<"plot">& call_;
  Walk& walk_;
  const CallArgument* x_ = nullptr;
  const CallArgument* y_ = nullptr;
  const CallArgument* file_ = nullptr;
  std::vector<Column> columns_, x_columns_;
  ArrayValue matrix_;  // in place of `columns_`
  bool single_ = false;
  std::vector<std::string> labels_;
  PlotOptions options_;
};

}  // namespace

Value builtin_plot(CallOf<"plot">& call) { return PlotCall(call).draw(); }

Value builtin_heatmap(CallOf<"heatmap">& call) {
  Walk& walk = call.walk;
  const Target target =
      target_of(call, written(call["file"]), {".svg", ".png"});
  const ArrayValue x = array_argument(call["x"]);
  if (x->type.rank() != 2) wrong_argument(call["x"], "an array with two axes");
  const bool draws = !only_checks(walk);
  const HeatmapOptions options{.title = text_of(call["title"]),
                               .x_label = text_of(call["x_label"]),
                               .y_label = text_of(call["y_label"]),
                               .low = number_of(call["low"], draws),
                               .high = number_of(call["high"], draws)};
  for (const Argument text : {call["title"], call["x_label"], call["y_label"]})
    if (text.given() && target.is_png())
      walk.fail(diagnostic(Code::wrong_argument, text.where(),
                           describe_argument(text), "left out here", "a `str`")
                    .set_help("a `.png` file has the colours alone; an `.svg` "
                              "file has axes and titles, too"));
  if (options.low && options.high && *options.low >= *options.high)
    walk.fail(
        diagnostic(Code::wrong_argument, call["high"].where(),
                   describe_argument(call["high"]),
                   fmt::format("more than `low`, which is {}", *options.low),
                   fmt::format("{}", *options.high)));
  if (target.is_png())
    for (const ir::Dim& size : x->type.shape)
      if (size.is_constant() &&
          (size.value() == 0 || size.value() > most_png_pixels))
        wrong_argument(call["x"],
                       fmt::format("an array with sizes from 1 to {} for a "
                                   "`.png` file",
                                   most_png_pixels));
  if (!draws) return NoneValue{};
  const std::vector<int64_t> sizes = x->type.sizes();
  const Matrix matrix{sizes[0], sizes[1],
                      elements_of(walk, x, call["x"].where())};
  if (target.is_png())
    give(walk, target, "image/png",
         bytes_of(walk, png_of_heatmap(matrix, options), call.where));
  else
    give(walk, target, "image/svg+xml",
         bytes_of(walk, svg_of_heatmap(matrix, options), call.where));
  return NoneValue{};
}

namespace {

/// Of an array of type `type`; 0 if it can be no picture.
int channels_of(const ir::Type& type) {
  if (type.rank() == 2) return 1;
  if (type.rank() != 3) return 0;
  const ir::Dim& last = type.shape[2];
  if (!last.is_constant()) return 3;  // any for now
  const int64_t channels = last.value();
  return channels == 1 || channels == 3 || channels == 4
             ? static_cast<int>(channels)
             : 0;
}

/// The array's elements as bytes of pixels.
std::vector<uint8_t> pixel_bytes(Walk& walk, const ArrayValue& x, Span where) {
  if (x->type.dtype == DType::U8) return walk.host_bytes(x, where);
  std::vector<uint8_t> out;
  for (const double element : elements_of(walk, x, where)) {
    if (out.size() % (size_t{1} << 16) == 0) poll_stop();
    // NaN is none of these.
    out.push_back(element > 0 ? static_cast<uint8_t>(
                                    std::lround(std::min(element, 1.0) * 255))
                              : 0);
  }
  return out;
}

/// Each pixel `scale` times, both ways.
Result<Pixels> enlarged(const Pixels& pixels, int64_t scale) {
  Pixels out{pixels.width * scale, pixels.height * scale, pixels.channels, {}};
  const int64_t row = out.width * out.channels;
  out.bytes =
      TRY(allocate_bytes(row * out.height, MemoryBudget::default_limit()));
  for (int64_t y = 0; y < out.height; ++y) {
    poll_stop();
    uint8_t* to = out.bytes.data() + y * row;
    if (y % scale != 0) {
      std::memcpy(to, to - row, static_cast<size_t>(row));
      continue;
    }
    const uint8_t* from =
        pixels.bytes.data() + y / scale * pixels.width * pixels.channels;
    for (int64_t x = 0; x < out.width; ++x)
      for (int c = 0; c < out.channels; ++c)
        to[x * out.channels + c] = from[x / scale * out.channels + c];
  }
  return out;
}

}  // namespace

Value builtin_image(CallOf<"image">& call) {
  Walk& walk = call.walk;
  const Target target = target_of(call, written(call["file"]), {".png"});
  const ArrayValue x = array_argument(call["x"]);
  const ir::Type& type = x->type;
  const bool fits =
      is_floating(type.dtype) || is_bool(type.dtype) || type.dtype == DType::U8;
  if (!fits || channels_of(type) == 0)
    wrong_argument(call["x"],
                   "a matrix, or a stack of 3 or 4 along its last axis, of "
                   "`u8` or of floats from 0 to 1");
  const int64_t scale =
      call["scale"].given() ? known_int_argument(call["scale"]) : 1;
  if (scale < 1 || scale > most_png_pixels)
    walk.fail(diagnostic(Code::wrong_argument, call["scale"].where(),
                         describe_argument(call["scale"]),
                         fmt::format("from 1 to {}", most_png_pixels),
                         std::to_string(scale)));
  for (int axis = 0; axis < 2; ++axis) {
    const ir::Dim& size = type.shape[axis];
    if (size.is_constant() &&
        (size.value() == 0 || size.value() > most_png_pixels / scale))
      wrong_argument(call["x"],
                     fmt::format("an array with sides from 1 to {} pixels",
                                 most_png_pixels));
  }
  if (only_checks(walk)) return NoneValue{};
  const std::vector<int64_t> sizes = type.sizes();
  Pixels pixels{sizes[1], sizes[0], channels_of(type),
                pixel_bytes(walk, x, call["x"].where())};
  if (scale > 1) {
    auto large = unless_stopped([&] { return enlarged(pixels, scale); });
    if (!large) walk.fail(large.error(), call.where);
    pixels = std::move(*large);
  }
  give(walk, target, "image/png", bytes_of(walk, png_of(pixels), call.where));
  return NoneValue{};
}

}  // namespace unisono::lang
