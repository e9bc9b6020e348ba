// What is known about values without computing them; trees; host numbers.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>

#include "lang/builtins/written_file.h"
#include "lang/context/call_of.h"
#include "lang/context/function.h"
#include "lang/context/iterable.h"
#include "lang/context/literals.h"
#include "lang/context/processes.h"
#include "lang/context/traced_text.h"
#include "lang/context/under_way.h"
#include "lang/maps/maps.h"
#include "lang/ops/array_ops.h"
#include "lang/ops/builtin_arguments.h"
#include "lang/ops/operators.h"
#include "lang/ops/print_value.h"
#include "lang/ops/range.h"
#include "lang/ops/sizes.h"
#include "lang/ops/text.h"
#include "lang/source/builtin_examples.h"
#include "lang/syntax/ast.h"

namespace unisono::lang {
namespace {

Value sizes(const ir::Type& type) {
  std::vector<Value> out;
  for (const ir::Dim& d : type.shape) out.push_back(IntValue{d});
  return make_tuple(std::move(out));
}

const TupleValue& tuple_argument(BuiltinCall& call, const CallArgument& a,
                                 std::string_view name) {
  if (const TupleValue* tuple = a.value.tuple()) return *tuple;
  Diagnostic d =
      diagnostic(Code::wrong_argument, a.where,
                 fmt::format("`{}` of `{}`", name, call.builtin.name),
                 "a tuple or an array", type_name(a.value));
  if (a.value.is<IterableValue>() || a.value.is<ProgressValue>())
    d.set_help(
        "in a `for`, `enumerate` numbers them: `for (i, b) in "
        "enumerate(batches(x, n))`");
  if (rows_of(a.value))
    d.set_help(
        "rows of arrays are zipped with rows of arrays; a tuple as an "
        "array is `stack(t)`");
  call.walk.fail(std::move(d));
}

}  // namespace

Value builtin_shape(CallOf<"shape">& call) {
  return sizes(array_argument(call["x"])->type);
}

Value builtin_rank(CallOf<"rank">& call) {
  return IntValue{array_argument(call["x"])->type.rank()};
}

Value builtin_size(CallOf<"size">& call) {
  const ir::Type type = array_argument(call["x"])->type;
  if (call["axis"].given())
    return IntValue{type.shape[axis_argument(call["axis"], type)]};
  return checked_int(call.walk, ir::element_count(type.shape), call.where);
}

Value builtin_len(CallOf<"len">& call) {
  Value x = call["x"].value();
  while (const auto* progress = x.get_if<ProgressValue>())
    x = Value(*progress->over);
  if (const TupleValue* tuple = x.tuple())
    return IntValue{static_cast<int64_t>(tuple->items.size())};
  if (const RecordValue* record = x.record())
    return IntValue{static_cast<int64_t>(record->fields.size())};
  // Of a name, each time the same.
  const auto unknown = [&](std::optional<ir::Dim>* length) -> Value {
    if (!length) return unknown_int(call.walk);
    if (!*length) *length = unknown_int(call.walk).value;
    return IntValue{**length};
  };
  if (const auto* many = x.get_if<ManyValue>())
    return unknown(many->length.get());
  if (const auto* made = x.get_if<IterableValue>())
    return IntValue{made->iterable->length()};
  if (const auto* text = x.get_if<StrValue>()) {
    if (traced_code_point(x)) return IntValue{1};
    const auto known = known_text(call.walk, *text, call["x"].where());
    if (!known) return unknown(text->length.get());
    return IntValue{character_count(known)};
  }
  const ArrayCell* array = x.array();
  if (!array || array->type.rank() == 0)
    wrong_argument(call["x"],
                   "an array with axes, a tuple, a record or a `str`");
  return IntValue{array->type.shape[0]};
}

Value builtin_dtype(CallOf<"dtype">& call) {
  return TypeValue{{array_argument(call["x"])->type.dtype, {}}};
}

Value builtin_typeof(CallOf<"typeof">& call) {
  const Value& x = call["x"].value();
  if (const ArrayCell* array = x.array()) {
    if (array->int_argument) give_up_int_argument(call.where);
    return TypeValue{shown_type(*array), varies_note(call.walk, *array)};
  }
  // Sizes in it may be symbols that running replaces.
  if (call.walk.mode() == Mode::check) return StrValue{};
  return StrValue{type_name(x, [&](const ArrayCell& array) {
    return varies_note(call.walk, array);
  })};
}

Value builtin_callable(CallOf<"callable">& call) {
  const Value& x = call["x"].value();
  return BoolValue{x.is<std::shared_ptr<const FunctionValue>>() ||
                   x.is<TypeValue>()};
}

Value builtin_args(CallOf<"args">& call) {
  const Machine& machine = call.walk.machine();
  if (call.walk.mode() == Mode::check && !machine.arguments_known)
    return ManyValue{std::make_shared<const Value>(StrValue{})};
  std::vector<Value> out;
  for (const std::string& word : machine.arguments)
    out.push_back(StrValue{word});
  return make_tuple(std::move(out));
}

Value builtin_range(CallOf<"range">& call) {
  const auto bound = [&](Argument written) -> Value {
    const Value& value = written.value();
    const ArrayCell* array = value.array();
    const bool scalar =
        array && array->type.rank() == 0 && is_integer(array->type.dtype);
    if (!scalar && !value.is<IntValue>())
      wrong_argument(written, "an `int` or an integer scalar");
    return value;
  };
  const Argument start = call["start"], stop = call["stop"];
  const Argument step = call["step"];
  std::vector<Value> bounds = {IntValue{0}, bound(start)};
  if (stop.given()) bounds = {bound(start), bound(stop)};
  bounds.push_back(step.given() ? bound(step) : IntValue{1});
  if (const auto* known = bounds.back().get_if<IntValue>();
      known && known->value == ir::Dim(0))
    call.walk.fail(diagnostic(Code::zero_step, step.where(), "`range`"));
  return RangeValue{std::make_shared<std::vector<Value>>(std::move(bounds))};
}

Value builtin_unrolled(CallOf<"unrolled">& call) {
  constexpr int64_t most = 10'000;
  const int64_t n = known_int_argument(call["n"]);
  if (n > most)
    call.walk.fail(
        diagnostic(Code::unrolled_too_long, call["n"].where(), n, most)
            .set_help("`range(n)` is a loop that is not unrolled"));
  std::vector<Value> out;
  for (int64_t i = 0; i < n; ++i) out.push_back(IntValue{i});
  return make_tuple(std::move(out));
}

namespace {

/// Rows of arrays side by side.
Value zip_rows(CallOf<"zip">& call) {
  std::vector<Value> trees;
  ir::Dim length;
  for (const CallArgument& a : call.rest) {
    const std::shared_ptr<const Rows> rows = rows_of(a.value);
    if (!rows)
      call.walk.fail(
          diagnostic(Code::wrong_argument, a.where, "`items` of `zip`",
                     "an array, as the others are", type_name(a.value)));
    if (trees.empty()) length = rows->length();
    const auto both = same_size(length, rows->length());
    if (!both) {
      const ir::Dim more = length - rows->length();
      const bool first = more.is_constant() && more.value() > 0;
      const CallArgument &longer = first ? call.rest[0] : a,
                         &shorter = first ? a : call.rest[0];
      call.walk.fail(
          diagnostic(Code::scan_lengths_differ, a.where, "zip",
                     type_name(call.rest[0].value), length.to_string(),
                     type_name(a.value), rows->length().to_string())
              .about(more)
              .set_help(fmt::format(
                  "cut the longer one: `{}[:{}]`", longer.where.text(),
                  written_size(shorter, first ? rows->length() : length))));
    }
    length = *both;
    trees.push_back(rows->tree());
  }
  return IterableValue{
      std::make_shared<const Rows>(make_tuple(std::move(trees)), length)};
}

/// The numbers of a range, to stand beside rows.
Value range_as_array(Walk& walk, const RangeValue& range, Span where) {
  const ir::Dim count = range_count(walk, range, "the number of turns", where);
  const RangeArrays parts = range_arrays(walk, range, where);
  const auto op = [&](BinaryOp what, const ArrayValue& a, const ArrayValue& b) {
    return *binary(walk, what, {a, where}, {b, where}, where, where)
                .get_if<ArrayValue>();
  };
  const ArrayValue turn =
      iota(walk, {parts.start->type.dtype, {count}}, 0, where);
  return op(BinaryOp::add, op(BinaryOp::mul, turn, parts.step), parts.start);
}

/// The rows of an array beside the items of a tuple.
Value rows_as_items(CallOf<"zip">& call, const Rows& rows, Span where) {
  Walk& walk = call.walk;
  const ir::Dim length = rows.length();
  const auto row = [&](const ArrayValue& number) {
    return rows.row(walk, number, where);
  };
  if (!length.is_constant())
    return ManyValue{std::make_shared<const Value>(
        row(walk.unknown_array({DType::I32, {}})))};
  std::vector<Value> items;
  for (int64_t i = 0; i < length.value(); ++i)
    items.push_back(row(walk.constant_int(i, DType::I32, false, where)));
  return make_tuple(std::move(items));
}

}  // namespace

Value builtin_zip(CallOf<"zip">& call) {
  const auto is_rows = [](const CallArgument& a) {
    return rows_of(a.value) != nullptr;
  };
  const auto is_items = [](const CallArgument& a) {
    return a.value.tuple() || a.value.is<StrValue>() || a.value.is<ManyValue>();
  };
  for (CallArgument& a : call.rest)
    if (const auto* range = a.value.get_if<RangeValue>())
      a.value = range_as_array(call.walk, *range, a.where);
  if (std::ranges::any_of(call.rest, is_rows)) {
    if (!std::ranges::any_of(call.rest, is_items)) return zip_rows(call);
    for (CallArgument& a : call.rest)
      if (const auto rows = rows_of(a.value))
        a.value = rows_as_items(call, *rows, a.where);
  }
  bool many = false;
  for (CallArgument& a : call.rest) {
    a.value = text_as_items(call.walk, a.value, a.where);
    many |= a.value.is<ManyValue>();
  }
  if (many) {  // how many rows there are is not known
    std::vector<Value> row;
    for (const CallArgument& a : call.rest) {
      const auto* items = a.value.get_if<ManyValue>();
      const TupleValue* tuple =
          items ? nullptr : &tuple_argument(call, a, "items");
      if (tuple && tuple->items.empty()) return make_tuple({});
      row.push_back(items ? *items->item : tuple->items[0]);
    }
    return ManyValue{std::make_shared<const Value>(make_tuple(std::move(row)))};
  }
  std::vector<Value> out;
  for (const CallArgument& a : call.rest) {
    const TupleValue& tuple = tuple_argument(call, a, "items");
    const size_t length =
        tuple_argument(call, call.rest[0], "items").items.size();
    if (tuple.items.size() != length)
      call.walk.fail(
          diagnostic(Code::zip_lengths, a.where, length, tuple.items.size()));
  }
  if (call.rest.empty()) return make_tuple({});
  for (size_t i = 0; i < call.rest[0].value.tuple()->items.size(); ++i) {
    std::vector<Value> row;
    for (const CallArgument& a : call.rest)
      row.push_back(a.value.tuple()->items[i]);
    out.push_back(make_tuple(std::move(row)));
  }
  return make_tuple(std::move(out));
}

namespace {

/// The characters of a text with their numbers, where a tuple of them would
/// have too many leaves.
class NumberedCharacters : public Sequence {
 public:
  explicit NumberedCharacters(Text text)
      : text_(std::move(text)),
        kinds_{make_tuple(
            {IntValue{0}, StrValue{character(characters(*text_).front())}})},
        length_(static_cast<int64_t>(characters(*text_).size())) {}

  std::string type_name() const override {
    return "characters of str with their numbers";
  }
  ir::Dim length() const override { return length_; }
  const std::vector<Value>& kinds() const override { return kinds_; }
  std::string last_kind() const override { return ""; }  // there is one kind
  std::unique_ptr<Items> items(Walk&, Span) const override {
    return std::make_unique<OneByOne>(text_);
  }
  Value enumerated(Walk& walk) const override {
    walk.fail(diagnostic(Code::not_iterable, Span(), type_name()));
  }

 private:
  class OneByOne : public Items {
   public:
    explicit OneByOne(Text text)
        : text_(std::move(text)), all_(characters(*text_)) {}
    Value next(Walk&, Span) override {
      const auto at = static_cast<int64_t>(next_++);
      return make_tuple({IntValue{at}, StrValue{character(all_[next_ - 1])}});
    }

   private:
    const Text text_;
    const std::vector<std::string_view> all_;
    size_t next_ = 0;
  };

  const Text text_;
  const std::vector<Value> kinds_;
  const ir::Dim length_;
};

}  // namespace

Value builtin_enumerate(CallOf<"enumerate">& call) {
  CallArgument items = call["items"];
  if (const auto* progress = items.value.get_if<ProgressValue>()) {
    call.arguments[0]->value = *progress->over;
    return ProgressValue{std::make_shared<const Value>(builtin_enumerate(call)),
                         progress->show};
  }
  if (const auto rows = rows_of(items.value))
    return rows->enumerated(call.walk);
  if (const auto* made = items.value.get_if<IterableValue>())
    return made->iterable->enumerated(call.walk);
  if (const auto* text = items.value.get_if<StrValue>();
      text && call.walk.mode() == Mode::run) {
    const Text known = known_text(call.walk, *text, items.where);
    if (known && 2 * characters(*known).size() > max_leaves)
      return IterableValue{std::make_shared<const NumberedCharacters>(known)};
  }
  items.value = text_as_items(call.walk, items.value, items.where);
  if (const auto* many = items.value.get_if<ManyValue>())
    return ManyValue{std::make_shared<const Value>(
        make_tuple({unknown_int(call.walk), *many->item}))};
  std::vector<Value> out;
  int64_t i = 0;
  for (const Value& item : tuple_argument(call, items, "items").items)
    out.push_back(make_tuple({IntValue{i++}, item}));
  return make_tuple(std::move(out));
}

namespace {

[[noreturn]] void trees_differ(BuiltinCall& call, const Value& first,
                               const Value& other, Span where) {
  call.walk.fail(diagnostic(Code::trees_differ, where, call.builtin.name,
                            type_name(first), type_name(other)));
}

/// f of the leaves at one place of all trees; the first says what a leaf is.
Value map_trees(Argument f, const std::vector<CallArgument>& trees) {
  BuiltinCall& call = f.call();
  const Value& first = trees[0].value;
  const auto children = [&](auto child) {
    std::vector<CallArgument> out;
    for (const CallArgument& tree : trees)
      out.push_back({child(tree.value), tree.where});
    return map_trees(f, out);
  };
  if (const TupleValue* tuple = first.tuple()) {
    for (const CallArgument& t : trees)
      if (!t.value.tuple() ||
          t.value.tuple()->items.size() != tuple->items.size())
        trees_differ(call, first, t.value, t.where);
    std::vector<Value> out;
    for (size_t i = 0; i < tuple->items.size(); ++i)
      out.push_back(
          children([&](const Value& v) { return v.tuple()->items[i]; }));
    return make_tuple(std::move(out));
  }
  if (const RecordValue* record = first.record()) {
    std::vector<std::pair<std::string, Value>> out;
    for (const CallArgument& t : trees)
      if (!t.value.record() ||
          t.value.record()->fields.size() != record->fields.size())
        trees_differ(call, first, t.value, t.where);
    for (const auto& [name, value] : record->fields) {
      for (const CallArgument& t : trees)
        if (!t.value.record()->find(name))
          trees_differ(call, first, t.value, t.where);
      out.emplace_back(name, children([&](const Value& v) {
                         return *v.record()->find(name);
                       }));
    }
    return make_record(std::move(out));
  }
  return call.walk.call(f.value(), trees, {}, call.where);
}

}  // namespace

Value builtin_tree_map(CallOf<"tree_map">& call) {
  std::vector<CallArgument> trees = {call["tree"]};
  trees.insert(trees.end(), call.rest.begin(), call.rest.end());
  return map_trees(call["f"], trees);
}

Value builtin_tree_leaves(CallOf<"tree_leaves">& call) {
  std::vector<Value> out;
  for_each_leaf(call["tree"].value(),
                [&](const Value& leaf) { out.push_back(leaf); });
  return make_tuple(std::move(out));
}

namespace {

/// What an assertion says when it fails. Of text that has arrays of compiled
/// code in it, what is known.
std::string assertion_message(Argument message) {
  const auto* text =
      message.given() ? message.value().get_if<StrValue>() : nullptr;
  if (!text) return "";
  if (text->value) return ": " + *text->value;
  std::string out;
  if (text->deferred)
    for (const std::string& piece : text->deferred->format)
      out += (out.empty() ? "" : "…") + piece;
  return out.empty() ? "" : ": " + out;
}

}  // namespace

Value builtin_assert(CallOf<"assert">& call) {
  Walk& walk = call.walk;
  const auto failure = [&] {
    Diagnostic d = diagnostic(Code::assertion_failed, call.where,
                              assertion_message(call["message"]));
    const std::string_view condition = call["condition"].where().text();
    if (condition.find('\n') == condition.npos)
      d.set_label(std::string(condition));
    return d;
  };
  if (call["message"].given() && !call["message"].value().is<StrValue>())
    wrong_argument(call["message"], "a `str`");
  if (const auto* host = call["condition"].value().get_if<BoolValue>()) {
    // A branch may be walked that is never taken, while checking and in
    // compiled code.
    if (host->value == false && walk.mode() == Mode::run) walk.fail(failure());
    if (host->value == false && walk.mode() == Mode::check)
      walk.note_failed(failure());
    if (host->value == false && walk.mode() == Mode::trace)
      assert_when_it_runs(walk, array_argument(call["condition"]),
                          assertion_message(call["message"]), call.where);
    return NoneValue{};
  }
  const ArrayValue x = array_argument(call["condition"]);
  if (!is_bool(x->type.dtype)) wrong_argument(call["condition"], "a condition");
  if (walk.in_compiled_code()) {
    assert_when_it_runs(walk, x, assertion_message(call["message"]),
                        call.where);
    return NoneValue{};
  }
  if (walk.mode() == Mode::run && !walk.machine().compile_only)
    for (uint8_t element : walk.host_bytes(x, call.where))
      if (!element) walk.fail(failure());
  return NoneValue{};
}

Value builtin_print(CallOf<"print">& call) {
  Walk& walk = call.walk;
  if (walk.mode() == Mode::run && walk.machine().compile_only)
    return NoneValue{};
  if (walk.mode() == Mode::run) {
    std::string line;
    for (size_t i = 0; i < call.rest.size(); ++i) {
      if (i > 0) line += ' ';
      line += to_text(walk, call.rest[i].value, /*placed=*/false,
                      call.rest[i].where);
    }
    settle(walk, call.where);
    walk.machine().output(line + "\n");
    return NoneValue{};
  }
  TextBuilder builder(walk);
  for (size_t i = 0; i < call.rest.size(); ++i) {
    if (i > 0) builder.text(" ");
    builder.value(call.rest[i].value, "", call.rest[i].where);
  }
  if (walk.mode() == Mode::check) return NoneValue{};
  const StrValue text = builder.finish();
  ir::HostCallAttrs attrs;
  std::vector<ArrayValue> operands;
  if (text.deferred) {
    attrs = {text.deferred->format, text.deferred->specs};
    operands = text.deferred->operands;
  } else {
    attrs.format = {text.value ? *text.value : ""};
  }
  attrs.everywhere = false;
  for (const MappedAxis& axis : walk.context().mapped_axes)
    attrs.axes.push_back(axis.id);
  walk.add(ir::Op::host_call, operands, std::move(attrs), call.where);
  return NoneValue{};
}

Value builtin_clock(CallOf<"clock">& call) {
  Walk& walk = call.walk;
  refuse_in_compiled_code(
      call, "read the clock before and after the call of what is compiled");
  if (walk.mode() == Mode::check) return walk.unknown_array({DType::F64, {}});
  if (walk.machine().compile_only)
    return walk.with_absent(walk.unknown_array({DType::F64, {}}));
  walk.flush(call.where);
  wait_for_runs(walk, call.where);
  const std::chrono::duration<double> now =
      std::chrono::steady_clock::now().time_since_epoch();
  double seconds = now.count();
  agree(walk, &seconds, sizeof seconds, call.where);
  return walk.on_first_device(DType::F64, &seconds, call.where);
}

namespace {

/// Lines with two spaces before those that are not empty.
std::string indented(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    if (end > 0) out += "  ";
    out += fmt::format("{}\n", text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return out;
}

/// A function's head and its documentation.
std::string help_text(const FunctionValue& function) {
  if (const auto* builtin = std::get_if<const Builtin*>(&function.what))
    return fmt::format(
        "{}({})\n{}", (*builtin)->name, (*builtin)->signature,
        indented(builtin_documentation((*builtin)->name, (*builtin)->help)));
  const auto* closure = std::get_if<Closure>(&function.what);
  if (!closure || !closure->definition)
    return fmt::format("function {}\n", function.name);
  const DefStmt& def = *closure->definition;
  return fmt::format("{}{}\n{}", def.name.text, def.function.params_span.text(),
                     indented(def.documentation));
}

}  // namespace

Value builtin_help(CallOf<"help">& call) {
  const auto* function =
      call["f"].value().get_if<std::shared_ptr<const FunctionValue>>();
  if (!function) {
    const Argument f = call["f"];
    Diagnostic d =
        diagnostic(Code::wrong_argument, f.where(), describe_argument(f),
                   "a function", type_name(f.value()));
    if (const auto* module = f.value().get_if<ModuleValue>())
      d.set_help(
          fmt::format("`help({0}.NAME)` tells of one of its functions; "
                      "a session lists them for `?{0}`",
                      module->name));
    call.walk.fail(std::move(d));
  }
  if (call.walk.mode() != Mode::run) return NoneValue{};
  settle(call.walk, call.where);
  call.walk.machine().output(help_text(**function));
  return NoneValue{};
}

}  // namespace unisono::lang
