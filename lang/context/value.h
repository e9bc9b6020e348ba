#pragma once
// The values of the language, in all modes of the walk.
#include <concepts>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <new>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "jit/ir/graph.h"
#include "lang/source/source.h"
#include "runtime/array.h"
#include "runtime/recycling.h"

namespace unisono {
class KeptCopies;
}  // namespace unisono

namespace unisono::lang {

class GraphScope;      // scope.h: a graph under construction
struct FunctionValue;  // function.h
struct Environment;    // environment.h
struct TypeStmt;       // ast.h
class Iterable;        // iterable.h
struct Value;

/// The axes over which a value varies inside maps, ascending and unique.
using AxisSet = std::vector<ir::AxisId>;

/// Where, and to which function, an array was given away by `donate`. The
/// array's memory is the function's since.
struct Donation {
  Span where;  // the argument
  std::string function;
};

/// An `int` or a literal that was passed to compiled code, while that code is
/// traced without its value (lang/maps/number_attempt.h): the number is then an
/// argument, and the code serves other numbers, too; of ints those from `low`
/// to `high`, which fit the element types that the code asked for.
struct NumberArgument {
  int64_t low = INT64_MIN, high = INT64_MAX;
  /// Its value was asked for: the attempt to do without is given up.
  bool needed = false;
};
/// The numbers that a value was computed from, each once.
using CallNumbers = std::set<std::shared_ptr<NumberArgument>>;

/// Arguments of derivatives by their numbers (Derivative in context.h),
/// ascending and unique.
using DerivativeArguments = std::vector<uint32_t>;

/// While the rule of a `custom_jvp` is checked: how a value depends on the
/// tangents that the rule was given. A zero is linear in anything.
struct Linearity {
  enum class State : uint8_t { none, zero, linear, other } state = State::none;
  /// Of `other`: the operation that is not linear.
  Span broken_by = {};
  bool operator==(const Linearity& b) const { return state == b.state; }
};

/// One array value; shared by all names that hold it, so that a lazy value is
/// computed once. What it holds depends on the walk's mode (docs/internals.md):
///   check   only `type`, `weak`, `varies`; the type may have symbolic sizes
///   trace   also `scope` and `node`
///   run     `scope` and `node` while pending, then `array`
/// A constant is the same in all modes: it holds `constant`, and each graph
/// that uses it makes a node for it.
struct ArrayCell {
  ir::Type type;
  /// A number without an element type: a literal, or the result of literals
  /// alone. It is a scalar of 64 bits (f64, i64, or u64 beyond i64), takes the
  /// type of the array that it meets, and alone is f32 or i32
  /// (lang/context/literals.h).
  bool weak = false;
  /// Weak, and what the program itself says: an element type that cannot hold
  /// it is an error. The value of a `var` is not literal.
  bool literal = false;
  /// Set, while code is traced, if this is an `int` of the call.
  std::shared_ptr<NumberArgument> int_argument = nullptr;
  /// While code is traced, of a weak number: the numbers of the call that it
  /// was computed from.
  CallNumbers call_numbers;
  /// One element (the same everywhere), or all in row-major order; null if this
  /// is no constant.
  std::shared_ptr<const std::vector<uint8_t>> constant;
  /// The axes mapped around the code over which members' values may differ.
  AxisSet varies;
  /// Why it varies, for messages: the place of the mapped argument or the call
  /// of `axis_index` that it comes from.
  Span varies_from;
  /// The arguments of derivatives taken around the code on which it depends
  /// through floats. Always empty outside derivatives, and of what is no float.
  DerivativeArguments depends = {};
  Linearity linearity = {};
  std::weak_ptr<GraphScope> scope;
  ir::NodeId node = -1;
  std::optional<unisono::Array> array;
  /// The same elements where compiled functions have read them, if `array` lies
  /// elsewhere; null if there are none. A write to the elements resets it,
  /// before it asks whether something else holds the blocks.
  std::shared_ptr<unisono::KeptCopies> copies;
  /// Null unless the array was given away.
  std::shared_ptr<const Donation> donated;
  /// While programs are checked and traced: values of one number are equal
  /// (lang/sizes/known_sizes.h). 0 if nobody has asked.
  uint64_t number = 0;
};
using ArrayValue = std::shared_ptr<ArrayCell>;

/// An integer known when the program is compiled, so it can be a size. In
/// check mode it may be symbolic; in the other modes it is a constant.
struct IntValue {
  ir::Dim value;
};
/// A host boolean; empty while checking if it is known only at run time.
struct BoolValue {
  std::optional<bool> value;
  bool open = false;  // it depends on a size that only running tells
};
/// Text with arrays of a trace in it, known only at run time: `format` has one
/// piece before each operand and one after the last, `specs` one for each
/// operand.
struct DeferredText {
  std::vector<std::string> format, specs;
  std::vector<ArrayValue> operands;
  /// The numbers of the call that are in it.
  CallNumbers call_numbers = {};
};
/// The text of a string, or none: values share it, so that they are cheap to
/// copy. Used like an optional string that does not change.
class Text {
 public:
  Text() = default;
  Text(std::nullopt_t) {}  // NOLINT: implicit
  Text(std::string text)   // NOLINT: implicit
      : held_(make_recycled<Held>(std::move(text))) {}
  Text(const std::optional<std::string>& text) {  // NOLINT: implicit
    if (text) *this = Text(*text);
  }
  explicit operator bool() const { return held_ != nullptr; }
  const std::string& operator*() const { return held_->text; }
  const std::string* operator->() const { return &held_->text; }
  operator std::optional<std::string>() const {  // NOLINT: implicit
    return held_ ? std::optional(held_->text) : std::nullopt;
  }
  bool operator==(const Text& other) const {
    return held_ == other.held_ ||
           (held_ && other.held_ && held_->text == other.held_->text);
  }
  /// Whether both are one text in memory.
  bool is(const Text& other) const { return held_ == other.held_; }
  /// Whether each byte is a character.
  bool is_ascii() const { return held_->is_ascii; }
  /// This with `more`, which may be part of it, behind it: in place, by the
  /// work that `more` is, if no other value shares the text.
  void append(std::string_view more) {
    if (held_.use_count() > 1) {
      auto longer = make_recycled<Held>(std::string());
      longer->text.reserve(2 * (held_->text.size() + more.size()));
      longer->text = held_->text;
      longer->is_ascii = held_->is_ascii;
      held_ = std::move(longer);
    }
    held_->is_ascii = held_->is_ascii && all_ascii(more);
    held_->text.append(more);
  }

 private:
  struct Held {
    explicit Held(std::string text)
        : text(std::move(text)), is_ascii(all_ascii(this->text)) {}
    std::string text;
    bool is_ascii;
  };
  static bool all_ascii(std::string_view text) {
    unsigned char bits = 0;
    for (const char c : text) bits |= static_cast<unsigned char>(c);
    return bits < 0x80;
  }
  std::shared_ptr<Held> held_;
};
/// A string; empty while checking if it is known only at run time, and where it
/// is `deferred`.
struct StrValue {
  Text value;
  std::shared_ptr<const DeferredText> deferred = nullptr;
  /// While checking, of an unknown text that has a name: its length, from when
  /// it was asked for first. So `len(s)` is the same size wherever it stands.
  std::shared_ptr<std::optional<ir::Dim>> length = nullptr;
};
/// `none`, and the value of a block without a last expression.
struct NoneValue {};
/// What a function gives by a `return` in a loop, before there was one.
struct UnsetValue {};

/// A type as a value: `f32[n, d]`. Sizes left open (`_`, `...`) are not values
/// and are handled where annotations are matched.
struct TypeValue {
  ir::Type type;
  /// Of `typeof` inside a map: the axes over which that value varies, for
  /// people: " varies over dev".
  std::string note = {};
};

/// `type Params[d] = ...`, where it was declared.
struct TypeAliasValue {
  const TypeStmt* definition = nullptr;
  std::shared_ptr<Environment> environment;
};

/// How large a tree of values is: one value is one leaf of height 0. Values are
/// shared, so a tree may have more leaves than memory has bytes.
struct TreeSize {
  size_t leaves = 1;
  size_t height = 0;
};
struct TupleValue {
  std::vector<Value> items;
  TreeSize size;
  /// What the tuple is with one more item.
  void append(Value item);
};
struct RecordValue {
  std::vector<std::pair<std::string, Value>> fields;
  TreeSize size;
  /// Null if there is no such field.
  const Value* find(std::string_view name) const;
};
/// `range(start, stop, step)`; each is an IntValue or an integer scalar array.
struct RangeValue {
  std::shared_ptr<const std::vector<Value>> start_stop_step;
};
struct DeviceValue {
  int index = 0;  // into the session's devices
};
/// A mesh of devices, in row-major order, over which axes declared together
/// run. The devices of one axis alone are a mesh of one axis.
struct Mesh {
  std::vector<int64_t> sizes;
  std::vector<int> devices;
  bool operator==(const Mesh&) const = default;
};
/// A declared axis, as a value: over devices (their indices), or logical (no
/// devices; its size comes from the data).
struct AxisInfo {
  ir::AxisId id = 0;
  std::string name;
  /// Of an axis of a mesh: those where the other axes are at 0.
  std::optional<std::vector<int>> devices;
  std::shared_ptr<const Mesh> mesh = nullptr;  // set if `devices` is
  int mesh_axis = 0;
  Span declared;
  /// Made for a map without `over`; `name` is then the map's: "pmap(scale)".
  bool anonymous = false;
  /// A symbol: the number of members while a definition is checked.
  ir::Dim any_size;
};
struct AxisValue {
  std::shared_ptr<const AxisInfo> axis;
};
/// `split(k)`, an entry of in_axes or out_axes.
struct SplitValue {
  int axis = 0;
};
/// While checking: a tuple whose number of items is known only at run time;
/// each is like `item` (`args()`, text that is split).
struct ManyValue {
  std::shared_ptr<const Value> item;
  std::shared_ptr<std::optional<ir::Dim>> length = nullptr;  // as of StrValue
};
/// What a `for` of the host runs over, and makes as it goes: `batches`.
struct IterableValue {
  std::shared_ptr<const Iterable> iterable;
};
/// What a `for` runs over, and who waits for it is told how far the loop is,
/// with the numbers that the variables of these names hold.
struct ProgressValue {
  std::shared_ptr<const Value> over;
  std::shared_ptr<const std::vector<std::string>> show;
};
/// An imported module: its definitions.
struct ModuleValue {
  std::string name;
  std::shared_ptr<Environment> environment;
};

/// Any value of the language. Cheap to copy.
struct Value {
  using Any = std::variant<
      NoneValue, ArrayValue, IntValue, BoolValue, StrValue, TypeValue,
      std::shared_ptr<const TupleValue>, std::shared_ptr<const RecordValue>,
      std::shared_ptr<const FunctionValue>, RangeValue, DeviceValue, AxisValue,
      SplitValue, ModuleValue, TypeAliasValue, ManyValue, IterableValue,
      ProgressValue, UnsetValue>;
  /// In a union, so that what most values hold is copied and dropped without
  /// the call by a table that a variant makes.
  union {
    Any any;
  };

  Value() noexcept : any() {}
  template <class T>
    requires(std::constructible_from<Any, T> &&
             !std::same_as<std::remove_cvref_t<T>, Value>)
  Value(T value) : any(std::move(value)) {}  // NOLINT: implicit
  Value(const Value& other) : any(copied(other.any)) {}
  Value(Value&& other) noexcept : any(moved(other.any)) {}
  Value& operator=(const Value& other) {
    if (this != &other) *this = Value(other);
    return *this;
  }
  Value& operator=(Value&& other) noexcept {
    auto *to = std::get_if<ArrayValue>(&any),
         *from = std::get_if<ArrayValue>(&other.any);
    if (to && from) {
      *to = std::move(*from);
      return *this;
    }
    if (this == &other) return *this;
    // What is dropped last may hold `other`.
    Value before(std::move(*this));
    drop();
    new (&any) Any(moved(other.any));
    return *this;
  }
  ~Value() { drop(); }

  template <class T>
  const T* get_if() const {
    return std::get_if<T>(&any);
  }
  template <class T>
  bool is() const {
    return std::holds_alternative<T>(any);
  }
  /// The tuple, record or array that this is; null if it is none.
  const TupleValue* tuple() const;
  const RecordValue* record() const;
  ArrayCell* array() const {
    const auto* array = get_if<ArrayValue>();
    return array ? array->get() : nullptr;
  }

 private:
  static Any copied(const Any& other) {
    if (const auto* array = std::get_if<ArrayValue>(&other))
      return Any(std::in_place_type<ArrayValue>, *array);
    return other;
  }
  static Any moved(Any& other) noexcept {
    if (auto* array = std::get_if<ArrayValue>(&other))
      return Any(std::in_place_type<ArrayValue>, std::move(*array));
    return std::move(other);
  }
  void drop() {
    if (auto* array = std::get_if<ArrayValue>(&any))
      array->~shared_ptr();
    else if (any.index() > 0)
      any.~Any();
  }
};

inline const TupleValue* Value::tuple() const {
  const auto* tuple = get_if<std::shared_ptr<const TupleValue>>();
  return tuple ? tuple->get() : nullptr;
}
inline const RecordValue* Value::record() const {
  const auto* record = get_if<std::shared_ptr<const RecordValue>>();
  return record ? record->get() : nullptr;
}

TreeSize tree_size(const Value& value);
Value make_tuple(std::vector<Value> items);
Value make_record(std::vector<std::pair<std::string, Value>> fields);

/// The type of a value, for messages and `typeof`: "f32[3]", "(f32[2], i32)",
/// "int", "str", "function scale", "(w: f32[d], b: f32)".
std::string type_name(const Value& value);
/// The same, with the text that `note` gives for each array behind its type.
using ArrayNote = std::function<std::string(const ArrayCell&)>;
std::string type_name(const Value& value, const ArrayNote& note);

/// The same with `?` for each open size: "f32[?, 8]". Of values that differ in
/// such sizes alone it is the same.
std::string open_type_name(const Value& value);

/// The tree with each leaf replaced by what `f` gives for it, called in order.
/// Tuples and records are nodes of a tree, everything else is a leaf.
Value map_leaves(const Value& tree,
                 const std::function<Value(const Value&)>& f);
void for_each_leaf(const Value& tree,
                   const std::function<void(const Value&)>& f);

/// Union of two axis sets.
AxisSet join(const AxisSet& a, const AxisSet& b);
/// Union of two sets of arguments.
DerivativeArguments join(const DerivativeArguments& a,
                         const DerivativeArguments& b);
/// Gives `to` what is known of `from` besides its type: over which axes it
/// varies and why, and on which derivatives it depends.
void copy_facts(const ArrayCell& from, ArrayCell& to);

}  // namespace unisono::lang
