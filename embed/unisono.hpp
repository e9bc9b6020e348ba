// Unisono inside a C++20 program: a header over unisono.h, where each thing is
// described. docs/embedding.md shows how they are used.
//
//   unisono::Engine engine({.devices = "cpu:4"});
//   unisono::Session session = engine.session();
//   session.eval("def scale(x: f32[n], k: f32) -> f32[n] { x * k }");
//   auto y = session.function("scale")->call({Value::borrow(x, {n}), 2.0});
//
// A Result is a value or an Error. What throws an Exception is marked so:
// constructors, and Result::value.
#ifndef UNISONO_HPP
#define UNISONO_HPP

#include <array>
#include <chrono>
#include <concepts>
#include <cstdint>
#include <cstring>
#include <exception>
#include <functional>
#include <initializer_list>
#include <memory>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "unisono.h"

namespace unisono {
// Programs that were compiled with different versions of this header may be
// linked together.
inline namespace v1 {

// ---- errors -----------------------------------------------------------------

enum class Kind : int32_t {
  none = UNISONO_NO_ERROR,
  syntax = UNISONO_SYNTAX,
  check = UNISONO_CHECK,
  runtime = UNISONO_RUNTIME,
  file = UNISONO_FILE,
  limit = UNISONO_LIMIT,
  cancelled = UNISONO_CANCELLED,
  memory = UNISONO_MEMORY,
  device = UNISONO_DEVICE,
  host = UNISONO_HOST,
  misuse = UNISONO_MISUSE,
  busy = UNISONO_BUSY,
  internal = UNISONO_INTERNAL
};

/// Why there is no value, or what else a call has to say. Texts live as long as
/// a copy of the error does.
class Error {
 public:
  /// Takes the reference.
  explicit Error(UnisonoError* error)
      : error_(error, [](UnisonoError* e) { unisono_error_release(e); }) {}

  Kind kind() const {
    return static_cast<Kind>(unisono_error_kind(error_.get()));
  }
  std::string_view summary() const {
    return unisono_error_summary(error_.get());
  }
  std::string_view text(bool colour = false) const {
    return unisono_error_text(error_.get(), colour ? 1 : 0);
  }
  std::string_view json() const { return unisono_error_json(error_.get()); }

  struct Note {
    UnisonoPlace where;
    std::string_view text;
  };
  struct Message : UnisonoMessage {
    std::vector<Note> notes;
    std::vector<std::string_view> facts;
  };
  std::vector<Message> messages() const {
    std::vector<Message> out;
    const size_t count = unisono_error_message_count(error_.get());
    for (size_t i = 0; i < count; ++i) {
      Message message{UNISONO_MESSAGE_INIT, {}, {}};
      unisono_error_message(error_.get(), i, &message);
      for (size_t n = 0; n < message.note_count; ++n) {
        Note note{};
        const char* text = "";
        unisono_error_note(error_.get(), i, n, &note.where, &text);
        note.text = text;
        message.notes.push_back(note);
      }
      for (size_t n = 0; n < message.fact_count; ++n)
        message.facts.emplace_back(unisono_error_fact(error_.get(), i, n));
      out.push_back(std::move(message));
    }
    return out;
  }

 private:
  std::shared_ptr<UnisonoError> error_;
};

class Exception : public std::exception {
 public:
  explicit Exception(Error error)
      : error_(std::move(error)), what_(error_.summary()) {}
  const char* what() const noexcept override { return what_.c_str(); }
  const Error& error() const { return error_; }

 private:
  Error error_;
  std::string what_;
};

/// A value, or why there is none.
template <class T>
class [[nodiscard]] Result {
 public:
  Result(T value) : state_(std::in_place_index<0>, std::move(value)) {}
  Result(Error error) : state_(std::in_place_index<1>, std::move(error)) {}
  explicit operator bool() const noexcept { return state_.index() == 0; }
  T& operator*() & { return *std::get_if<0>(&state_); }
  const T& operator*() const& { return *std::get_if<0>(&state_); }
  T&& operator*() && { return std::move(*std::get_if<0>(&state_)); }
  T* operator->() { return std::get_if<0>(&state_); }
  const T* operator->() const { return std::get_if<0>(&state_); }
  const Error& error() const { return *std::get_if<1>(&state_); }
  /// Throws an Exception if there is none.
  T value() && {
    if (!*this) throw Exception(error());
    return std::move(**this);
  }
  const T& value() const& {
    if (!*this) throw Exception(error());
    return **this;
  }

 private:
  std::variant<T, Error> state_;
};
struct Unit {};
using Status = Result<Unit>;

namespace detail {

inline void must(UnisonoError* error) {
  if (error) throw Exception(Error(error));
}
inline Status status(UnisonoError* error) {
  if (error) return Error(error);
  return Unit{};
}

inline Error misuse(const std::string& message) {
  return Error(
      unisono_error_create(UNISONO_MISUSE, message.data(), message.size()));
}

template <class T>
struct is_array : std::false_type {};
template <class T, size_t n>
struct is_array<std::array<T, n>> : std::true_type {};

}  // namespace detail

// ---- element types, tensors -------------------------------------------------

template <class T>
concept Element = std::is_arithmetic_v<T> && !std::is_same_v<T, long double> &&
                  (sizeof(T) <= 8);

template <Element T>
constexpr UnisonoDtype dtype_of() {
  if constexpr (std::is_same_v<T, bool>) return UNISONO_BOOL;
  if constexpr (std::is_floating_point_v<T>)
    return sizeof(T) == 4 ? UNISONO_F32 : UNISONO_F64;
  constexpr int first = std::is_signed_v<T> ? UNISONO_I8 : UNISONO_U8;
  constexpr int width = sizeof(T) == 1   ? 0
                        : sizeof(T) == 2 ? 1
                        : sizeof(T) == 4 ? 2
                                         : 3;
  return static_cast<UnisonoDtype>(first + width);
}

/// Elements of somebody else, dense.
template <class T, size_t rank>
struct View {
  T* data = nullptr;
  std::array<int64_t, rank> shape{};

  int64_t size() const {
    int64_t all = 1;
    for (const int64_t size : shape) all *= size;
    return all;
  }
  T* begin() const { return data; }
  T* end() const { return data + size(); }
  T& operator()(std::convertible_to<int64_t> auto... at) const
    requires(sizeof...(at) == rank)
  {
    int64_t offset = 0;
    size_t axis = 0;
    ((offset = offset * shape[axis++] + static_cast<int64_t>(at)), ...);
    return data[offset];
  }
};

namespace detail {

/// Whether a tensor has the elements and the rank of a view.
template <class T, size_t rank>
bool fits(const UnisonoTensor& tensor) {
  return tensor.dtype == dtype_of<std::remove_const_t<T>>() &&
         tensor.rank == static_cast<int32_t>(rank);
}
template <class T, size_t rank>
View<T, rank> view_of(const UnisonoTensor& tensor) {
  View<T, rank> view{static_cast<T*>(tensor.data), {}};
  for (size_t i = 0; i < rank; ++i) view.shape[i] = tensor.shape[i];
  return view;
}

}  // namespace detail

/// Says which fields of a plain structure are those of a record, in order:
/// `UNISONO_RECORD(Params, w, b)`, outside of any namespace.
template <class T>
struct Record;
template <class T>
concept IsRecord = requires { Record<T>::names; };

// ---- values -----------------------------------------------------------------

/// Immutable; copies share it. Any thread.
class Value {
 public:
  // All constructors throw if there is no memory, or no such value.
  Value() { detail::must(unisono_value_none(&value_)); }
  Value(bool truth) { detail::must(unisono_value_bool(truth, &value_)); }
  template <std::integral T>
    requires(!std::is_same_v<T, bool>)
  Value(T number) {
    if (!std::in_range<int64_t>(number)) {
      *this = scalar(number);
      return;
    }
    detail::must(unisono_value_int(static_cast<int64_t>(number), &value_));
  }
  /// A number without an element type, as in a program, if it is finite.
  template <std::floating_point T>
  Value(T number) {
    const auto wide = static_cast<double>(number);
    if (wide - wide == 0)
      detail::must(unisono_value_number(wide, &value_));
    else
      *this = scalar(number);
  }
  Value(std::string_view text) {
    detail::must(unisono_value_text(text.data(), text.size(), &value_));
  }
  Value(const char* text) : Value(std::string_view(text)) {}
  Value(const std::string& text) : Value(std::string_view(text)) {}
  /// Takes the reference.
  explicit Value(UnisonoValue* value) : value_(value) {}

  Value(const Value& other) : value_(unisono_value_retain(other.value_)) {}
  Value(Value&& other) noexcept
      : value_(std::exchange(other.value_, nullptr)) {}
  Value& operator=(Value other) noexcept {
    std::swap(value_, other.value_);
    return *this;
  }
  ~Value() { unisono_value_release(value_); }

  /// A scalar with an element type.
  template <Element T>
  static Value scalar(T number) {
    return copy(std::span<const T>(&number, 1), {});
  }
  template <Element T>
  static Value copy(std::span<const T> data, std::vector<int64_t> shape) {
    const UnisonoTensor tensor = tensor_of(data.data(), shape);
    UnisonoValue* value = nullptr;
    detail::must(unisono_value_copy(&tensor, &value));
    return Value(value);
  }
  /// The elements stay where they are, and must not change until `release` is
  /// called, once, on any thread.
  template <Element T>
  static Value borrow(const T* data, std::vector<int64_t> shape,
                      std::function<void()> release = {}) {
    auto told =
        release ? std::make_unique<std::function<void()>>(std::move(release))
                : nullptr;
    const UnisonoTensor tensor = tensor_of(data, shape);
    UnisonoValue* value = nullptr;
    detail::must(unisono_value_borrow(&tensor, told ? &call_release : nullptr,
                                      told.get(), &value));
    static_cast<void>(told.release());
    return Value(value);
  }
  /// The elements belong to the value.
  template <Element T>
    requires(!std::is_same_v<T, bool>)
  static Value adopt(std::vector<T> data, std::vector<int64_t> shape) {
    auto kept = std::make_shared<std::vector<T>>(std::move(data));
    const T* elements = kept->data();
    return borrow(elements, std::move(shape), [kept] {});
  }
  static Value tuple(std::initializer_list<Value> items) {
    std::vector<const UnisonoValue*> handles;
    for (const Value& item : items) handles.push_back(item.value_);
    UnisonoValue* value = nullptr;
    detail::must(unisono_value_tuple(handles.data(), handles.size(), &value));
    return Value(value);
  }
  static Value record(
      const std::vector<std::pair<std::string, Value>>& fields) {
    std::vector<const char*> names;
    std::vector<const UnisonoValue*> handles;
    for (const auto& [name, field] : fields) {
      names.push_back(name.c_str());
      handles.push_back(field.value_);
    }
    UnisonoValue* value = nullptr;
    detail::must(unisono_value_record(names.data(), handles.data(),
                                      handles.size(), &value));
    return Value(value);
  }
  /// A value for a scalar (with its element type), text, a std::vector or
  /// std::array of elements, or a structure that UNISONO_RECORD names.
  template <class T>
  static Value of(const T& from);

  /// DLPack: see unisono.h.
  static Result<Value> from_dlpack(DLManagedTensorVersioned* tensor) {
    UnisonoValue* value = nullptr;
    if (auto* error = unisono_value_from_dlpack(tensor, &value))
      return Error(error);
    return Value(value);
  }
  Result<DLManagedTensorVersioned*> to_dlpack(bool copy = false) const {
    DLManagedTensorVersioned* tensor = nullptr;
    if (auto* error = unisono_value_to_dlpack(value_, copy ? 1 : 0, &tensor))
      return Error(error);
    return tensor;
  }

  UnisonoValueKind kind() const {
    return static_cast<UnisonoValueKind>(unisono_value_kind(value_));
  }
  /// "f32[3]". Throws if there is no memory for it.
  std::string type() const {
    const char* type = "";
    detail::must(unisono_value_type(value_, &type));
    return type;
  }
  size_t size() const { return unisono_value_size(value_); }
  /// A template, as 0 could be the name of a field otherwise.
  template <std::integral Index>
  Result<Value> operator[](Index index) const {
    UnisonoValue* item = nullptr;
    if (auto* error =
            unisono_value_item(value_, static_cast<size_t>(index), &item))
      return Error(error);
    return Value(item);
  }
  Result<Value> operator[](const char* field) const {
    UnisonoValue* item = nullptr;
    if (auto* error = unisono_value_field(value_, field, &item))
      return Error(error);
    return Value(item);
  }
  /// The elements of an array, which live as long as this value.
  Result<UnisonoTensor> tensor() const {
    UnisonoTensor tensor{};
    if (auto* error = unisono_value_get_tensor(value_, &tensor))
      return Error(error);
    return tensor;
  }
  template <Element T, size_t rank>
  Result<View<const T, rank>> view() const {
    auto tensor = this->tensor();
    if (!tensor) return tensor.error();
    if (!detail::fits<T, rank>(*tensor))
      return detail::misuse(
          "an array of another type or rank was expected, "
          "not " +
          type());
    return detail::view_of<const T, rank>(*tensor);
  }
  /// What Value::of made, or could have made.
  template <class T>
  Result<T> as() const;

  UnisonoValue* handle() const { return value_; }

 private:
  static void call_release(void* user) {
    const std::unique_ptr<std::function<void()>> told(
        static_cast<std::function<void()>*>(user));
    (*told)();
  }
  template <class T>
  static UnisonoTensor tensor_of(const T* data,
                                 const std::vector<int64_t>& shape) {
    return {const_cast<T*>(data), shape.data(), nullptr,
            static_cast<int32_t>(shape.size()), dtype_of<T>()};
  }
  UnisonoValue* value_ = nullptr;
};

// ---- conversions ------------------------------------------------------------

namespace detail {

/// How a C++ type is a value; a specialisation for each kind of type.
template <class T>
struct Convert;

template <Element T>
struct Convert<T> {
  static Value to(T from) { return Value::scalar(from); }
  static Result<T> from(const Value& value) {
    if constexpr (std::is_same_v<T, bool>) {
      int truth = 0;
      if (auto* error = unisono_value_get_bool(value.handle(), &truth))
        return Error(error);
      return truth != 0;
    } else if constexpr (std::is_floating_point_v<T>) {
      double number = 0;
      if (auto* error = unisono_value_get_number(value.handle(), &number))
        return Error(error);
      return static_cast<T>(number);
    } else {
      int64_t number = 0;
      if (auto* error = unisono_value_get_int(value.handle(), &number))
        return Error(error);
      if (!std::in_range<T>(number))
        return misuse("the number does not fit the integer type");
      return static_cast<T>(number);
    }
  }
};

template <>
struct Convert<std::string> {
  static Value to(const std::string& from) { return Value(from); }
  static Result<std::string> from(const Value& value) {
    const char* text = "";
    size_t length = 0;
    if (auto* error = unisono_value_get_text(value.handle(), &text, &length))
      return Error(error);
    return std::string(text, length);
  }
};

template <>
struct Convert<Value> {
  static Value to(const Value& from) { return from; }
  static Result<Value> from(const Value& value) { return value; }
};

template <Element T>
struct Convert<std::vector<T>> {
  static Value to(const std::vector<T>& from) {
    return Value::copy(std::span<const T>(from),
                       {static_cast<int64_t>(from.size())});
  }
  static Result<std::vector<T>> from(const Value& value) {
    const auto view = value.view<T, 1>();
    if (!view) return view.error();
    return std::vector<T>(view->begin(), view->end());
  }
};

template <Element T, size_t n>
struct Convert<std::array<T, n>> {
  static Value to(const std::array<T, n>& from) {
    return Value::copy(std::span<const T>(from), {static_cast<int64_t>(n)});
  }
  static Result<std::array<T, n>> from(const Value& value) {
    const auto view = value.view<T, 1>();
    if (!view) return view.error();
    if (view->shape[0] != static_cast<int64_t>(n))
      return misuse("an array of another size was expected, not " +
                    value.type());
    std::array<T, n> out;
    std::copy(view->begin(), view->end(), out.begin());
    return out;
  }
};

template <IsRecord T>
struct Convert<T> {
  static Value to(const T& from) {
    std::vector<std::pair<std::string, Value>> fields;
    size_t index = 0;
    std::apply(
        [&](const auto&... field) {
          (fields.emplace_back(
               Record<T>::names[index++],
               Convert<std::remove_cvref_t<decltype(field)>>::to(field)),
           ...);
        },
        Record<T>::tie(from));
    return Value::record(fields);
  }
  static Result<T> from(const Value& value) {
    T out{};
    std::optional<Error> error;
    size_t index = 0;
    std::apply(
        [&](auto&... field) {
          (read(value, Record<T>::names[index++], field, error), ...);
        },
        Record<T>::tie(out));
    if (error) return *error;
    return out;
  }

 private:
  template <class Field>
  static void read(const Value& value, const std::string& name, Field& field,
                   std::optional<Error>& error) {
    if (error) return;
    const Result<Value> part = value[name.c_str()];
    if (!part) {
      error = part.error();
      return;
    }
    auto converted = Convert<Field>::from(*part);
    if (converted)
      field = std::move(*converted);
    else
      error = converted.error();
  }
};

/// "w, b" as names.
inline std::vector<std::string> split_names(std::string_view text) {
  std::vector<std::string> names;
  while (!text.empty()) {
    const size_t begin = text.find_first_not_of(" \n\t");
    const size_t end = std::min(text.find(','), text.size());
    names.emplace_back(text.substr(begin, end - begin));
    while (names.back().ends_with(' ')) names.back().pop_back();
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return names;
}

}  // namespace detail

template <class T>
Value Value::of(const T& from) {
  return detail::Convert<T>::to(from);
}
template <class T>
Result<T> Value::as() const {
  return detail::Convert<T>::from(*this);
}

// ---- limits, stops ----------------------------------------------------------

/// What one call may take; nothing given: as much as it likes.
struct Limits {
  std::chrono::nanoseconds wall{0};
  int64_t steps = 0;
};
struct CallOptions {
  Limits limits{};
  std::stop_token stop{};
};

namespace detail {

/// The options of a call in the form of unisono.h, while it runs.
class Options {
 public:
  explicit Options(const CallOptions& options) {
    all_.wall_nanoseconds = options.limits.wall.count();
    all_.steps = options.limits.steps;
    if (!options.stop.stop_possible()) return;
    must(unisono_stop_create(&all_.stop));
    callback_.emplace(options.stop,
                      Request{all_.stop});  // at once, if it was requested
  }
  Options(const Options&) = delete;
  ~Options() {
    callback_.reset();
    unisono_stop_release(all_.stop);
  }
  const UnisonoCallOptions* get() const { return &all_; }

 private:
  struct Request {
    UnisonoStop* stop;
    void operator()() const { unisono_stop_request(stop); }
  };
  UnisonoCallOptions all_ = UNISONO_CALL_OPTIONS_INIT;
  std::optional<std::stop_callback<Request>> callback_;
};

}  // namespace detail

// ---- functions --------------------------------------------------------------

namespace detail {

/// The arrays that a C++ type is to a typed function: where they lie.
template <class T>
struct Leaves;
template <Element T>
struct Leaves<T> {
  static constexpr size_t count = 1;
  static void add(const T& from, const void**& to) { *to++ = &from; }
  static void add(T& from, void**& to) { *to++ = &from; }
};
template <Element T, size_t n>
struct Leaves<std::array<T, n>> {
  static constexpr size_t count = 1;
  static void add(const std::array<T, n>& from, const void**& to) {
    *to++ = from.data();
  }
  static void add(std::array<T, n>& from, void**& to) { *to++ = from.data(); }
};
template <class... Fields>
struct Leaves<std::tuple<Fields&...>> {
  static constexpr size_t count =
      (Leaves<std::remove_const_t<Fields>>::count + ... + 0);
};
template <IsRecord T>
struct Leaves<T> {
  static constexpr size_t count =
      Leaves<decltype(Record<T>::tie(std::declval<T&>()))>::count;
  static void add(const T& from, const void**& to) {
    std::apply(
        [&](const auto&... field) {
          (Leaves<std::remove_cvref_t<decltype(field)>>::add(field, to), ...);
        },
        Record<T>::tie(from));
  }
  static void add(T& from, void**& to) {
    std::apply(
        [&](auto&... field) {
          (Leaves<std::remove_cvref_t<decltype(field)>>::add(field, to), ...);
        },
        Record<T>::tie(from));
  }
};
template <class... Items>
struct Leaves<std::tuple<Items...>> {
  static constexpr size_t count = (Leaves<Items>::count + ... + 0);
  static void add(std::tuple<Items...>& from, void**& to) {
    std::apply([&](auto&... item) { (Leaves<Items>::add(item, to), ...); },
               from);
  }
};

/// The types that C++ has for the arrays, to compare.
template <class T>
void add_types(const Value& example, std::vector<std::string>& types) {
  if (const size_t parts = example.size(); parts > 0)
    for (size_t i = 0; i < parts; ++i) add_types<T>(example[i].value(), types);
  else
    types.push_back(example.type());
}
template <class T>
Value example_of() {
  return Value::of(T{});
}

}  // namespace detail

/// A function compiled for C++ types: elements, std::arrays of elements, and
/// structures of these (UNISONO_RECORD); a std::tuple of several results. A
/// call allocates nothing here. Any thread.
template <class Signature>
class Typed;
template <class R, class... Arguments>
class Typed<R(Arguments...)> {
 public:
  Result<R> operator()(const Arguments&... arguments) const {
    R result{};
    if (UnisonoError* error = call(result, nullptr, arguments...))
      return Error(error);
    return result;
  }
  Result<R> call(const CallOptions& options,
                 const Arguments&... arguments) const {
    R result{};
    const detail::Options all(options);
    if (UnisonoError* error = call(result, all.get(), arguments...))
      return Error(error);
    return result;
  }

 private:
  friend class Function;
  explicit Typed(UnisonoTyped* typed)
      : typed_(typed, [](UnisonoTyped* t) { unisono_typed_release(t); }) {}

  UnisonoError* call(R& result, const UnisonoCallOptions* options,
                     const Arguments&... arguments) const {
    constexpr size_t count = (detail::Leaves<Arguments>::count + ... + 0);
    const void* in[count + 1];
    void* out[detail::Leaves<R>::count + 1];
    const void** next = in;
    (detail::Leaves<Arguments>::add(arguments, next), ...);
    void** to = out;
    detail::Leaves<R>::add(result, to);
    return unisono_typed_call(typed_.get(), in, out, options);
  }
  std::shared_ptr<UnisonoTyped> typed_;
};

struct Named {
  std::string_view name;
  Value value;
};

/// A value that can be called. Any thread.
class Function {
 public:
  explicit Function(Value value) : value_(std::move(value)) {}
  const Value& value() const { return value_; }
  /// "scale(x: f32[n], k: f32) -> f32[n]". Throws if there is no memory for it.
  std::string signature() const {
    const char* signature = "";
    detail::must(unisono_function_signature(value_.handle(), &signature));
    return signature;
  }
  Result<Value> call(std::initializer_list<Value> arguments,
                     std::initializer_list<Named> named = {},
                     const CallOptions& options = {}) const {
    std::vector<const UnisonoValue*> positional, by_name;
    std::vector<std::string> names;
    std::vector<const char*> name_texts;
    for (const Value& argument : arguments)
      positional.push_back(argument.handle());
    for (const Named& argument : named) {
      names.emplace_back(argument.name);
      by_name.push_back(argument.value.handle());
    }
    for (const std::string& name : names) name_texts.push_back(name.c_str());
    UnisonoValue* result = nullptr;
    const detail::Options all(options);
    if (auto* error =
            unisono_call(value_.handle(), positional.data(), positional.size(),
                         name_texts.data(), by_name.data(), by_name.size(),
                         all.get(), &result))
      return Error(error);
    return Value(result);
  }
  /// `typed<float(float, float)>()`: compiled and checked once, here.
  template <class Signature>
  Result<Typed<Signature>> typed() const {
    return typed(static_cast<Signature*>(nullptr));
  }

 private:
  template <class R, class... Arguments>
  Result<Typed<R(Arguments...)>> typed(R (*)(Arguments...)) const {
    const std::vector<Value> examples{detail::example_of<Arguments>()...};
    std::vector<const UnisonoValue*> handles;
    for (const Value& example : examples) handles.push_back(example.handle());
    UnisonoTyped* made = nullptr;
    if (auto* error = unisono_typed_create(value_.handle(), handles.data(),
                                           handles.size(), &made))
      return Error(error);
    Typed<R(Arguments...)> typed(made);
    std::vector<std::string> wanted;
    add_results(static_cast<R*>(nullptr), wanted);
    bool same = wanted.size() == unisono_typed_result_count(made);
    for (size_t i = 0; same && i < wanted.size(); ++i) {
      UnisonoTensor tensor{};
      unisono_typed_result(made, i, &tensor);
      same = wanted[i] == name_of(tensor);
    }
    if (same) return typed;
    std::string text = "the results of " + signature() + " are (";
    for (size_t i = 0; i < unisono_typed_result_count(made); ++i) {
      UnisonoTensor tensor{};
      unisono_typed_result(made, i, &tensor);
      text += (i ? ", " : "") + name_of(tensor);
    }
    text += "), and those of the C++ type are (";
    for (size_t i = 0; i < wanted.size(); ++i)
      text += (i ? ", " : "") + wanted[i];
    return detail::misuse(text + ")");
  }
  template <class R>
  static void add_results(R*, std::vector<std::string>& to) {
    detail::add_types<R>(detail::example_of<R>(), to);
  }
  template <class... Items>
  static void add_results(std::tuple<Items...>*, std::vector<std::string>& to) {
    (detail::add_types<Items>(detail::example_of<Items>(), to), ...);
  }
  static std::string name_of(const UnisonoTensor& tensor) {
    constexpr const char* names[] = {"bool", "i8",  "i16", "i32", "i64",
                                     "u8",   "u16", "u32", "u64", "f16",
                                     "bf16", "f32", "f64"};
    std::string out = names[tensor.dtype];
    for (int32_t i = 0; i < tensor.rank; ++i)
      out += (i ? ", " : "[") + std::to_string(tensor.shape[i]);
    return tensor.rank ? out + "]" : out;
  }
  Value value_;
};

// ---- sessions ---------------------------------------------------------------

/// What the outside world is to a program. Callbacks that throw have failed:
/// the program ends with what they say.
struct Host {
  std::function<void(std::string_view lines)> print{};
  std::function<std::string(const std::string& path)> import{};
  bool files = false;
  std::vector<std::string> arguments{};
  uint32_t depth = 0;
  int64_t device_bytes = 0, host_bytes = 0;
};

enum class Completeness : int32_t {
  complete = UNISONO_COMPLETE,
  incomplete = UNISONO_INCOMPLETE,
  invalid = UNISONO_INVALID
};
inline Completeness completeness(std::string_view source) {
  return static_cast<Completeness>(
      unisono_completeness(source.data(), source.size()));
}

enum class Effect { pure, io };

namespace detail {

/// Tells a reply what was thrown.
template <class Body>
void answer(UnisonoReply* reply, Body&& body) noexcept {
  try {
    body();
  } catch (const std::exception& exception) {
    unisono_reply_fail(reply, exception.what(), std::strlen(exception.what()));
  } catch (...) {
    unisono_reply_fail(reply, "an exception of an unknown type", 31);
  }
}

/// Reads the parameters of a C++ function from tensors: elements and
/// View<const T, rank> are arguments, View<T, rank> a result, and so is what it
/// returns.
template <class F, class Parameters>
struct Call;
template <class F, class R, class... Parameters>
struct Call<F, R(Parameters...)> {
  const UnisonoTensor* arguments;
  const UnisonoTensor* results;

  void operator()(F& function) {
    std::tuple<std::remove_cvref_t<Parameters>...> all{
        next(static_cast<std::remove_cvref_t<Parameters>*>(nullptr))...};
    if constexpr (std::is_void_v<R>) {
      std::apply(function, all);
    } else {
      require(fits<R, 0>(*results));
      const R result = std::apply(function, all);
      std::memcpy(results->data, &result, sizeof result);
    }
  }

 private:
  static void require(bool fits) {
    if (!fits)
      throw Exception(
          misuse("the declaration has other types than the C++ "
                 "function"));
  }
  template <Element T>
  T next(T*) {
    require(fits<T, 0>(*arguments));
    T value;
    std::memcpy(&value, arguments++->data, sizeof value);
    return value;
  }
  template <class T, size_t rank>
  View<T, rank> next(View<T, rank>*) {
    const UnisonoTensor& from = std::is_const_v<T> ? *arguments++ : *results++;
    require(fits<T, rank>(from));
    return view_of<T, rank>(from);
  }
};

template <class F>
struct SignatureOf : SignatureOf<decltype(&F::operator())> {};
template <class R, class... P>
struct SignatureOf<R (*)(P...)> {
  using type = R(P...);
};
template <class C, class R, class... P>
struct SignatureOf<R (C::*)(P...)> {
  using type = R(P...);
};
template <class C, class R, class... P>
struct SignatureOf<R (C::*)(P...) const> {
  using type = R(P...);
};

}  // namespace detail

/// One thread at a time. Movable.
class Session {
 public:
  /// Checks a program and runs it: the value of its last statement.
  Result<Value> eval(std::string_view source, const char* name = "<eval>",
                     const CallOptions& options = {}) {
    UnisonoValue* result = nullptr;
    const detail::Options all(options);
    if (auto* error = unisono_eval(session_.get(), source.data(), source.size(),
                                   name, all.get(), &result))
      return Error(error);
    return Value(result);
  }
  Status check(std::string_view source, const char* name = "<eval>") {
    return detail::status(
        unisono_check(session_.get(), source.data(), source.size(), name));
  }
  std::optional<Error> warnings() const {
    if (UnisonoError* all = unisono_session_warnings(session_.get()))
      return Error(all);
    return std::nullopt;
  }
  Result<Value> get(const char* name) {
    UnisonoValue* value = nullptr;
    if (auto* error = unisono_session_get(session_.get(), name, &value))
      return Error(error);
    return Value(value);
  }
  Status set(const char* name, const Value& value) {
    return detail::status(
        unisono_session_set(session_.get(), name, value.handle()));
  }
  Result<Function> function(const char* name) {
    auto value = get(name);
    if (!value) return value.error();
    if (value->kind() != UNISONO_VALUE_FUNCTION)
      return detail::misuse(std::string(name) + " is no function, but " +
                            value->type());
    return Function(std::move(*value));
  }
  /// As `print` shows it.
  Result<std::string> format(const Value& value) {
    UnisonoValue* text = nullptr;
    if (auto* error =
            unisono_session_format(session_.get(), value.handle(), &text))
      return Error(error);
    return Value(text).as<std::string>();
  }
  /// `define("def clip(x: f32, most: f32) -> f32", [](float x, float most) {
  /// ... })`. Parameters of the C++ function are elements, View<const T, rank>,
  /// and View<T, rank> for results; it may return an element. A rule for its
  /// derivative stands before the `def`: `@custom_jvp(rule) def ...`.
  template <class F>
  Status define(const char* declaration, F function,
                Effect effect = Effect::pure) {
    auto kept = std::make_unique<F>(std::move(function));
    const auto call = [](void* user, const UnisonoTensor* arguments,
                         const UnisonoTensor* results, UnisonoReply* reply) {
      detail::answer(reply, [&] {
        detail::Call<F, typename detail::SignatureOf<F>::type>{
            arguments, results}(*static_cast<F*>(user));
      });
    };
    UnisonoError* error = unisono_define_function(
        session_.get(), declaration,
        effect == Effect::io ? UNISONO_FUNCTION_HAS_EFFECTS : 0, call,
        kept.get(), [](void* user) { delete static_cast<F*>(user); });
    if (error) return Error(error);
    static_cast<void>(kept.release());
    return Unit{};
  }
  UnisonoSession* handle() const { return session_.get(); }

 private:
  friend class Engine;
  explicit Session(UnisonoSession* session)
      : session_(session, &unisono_session_release) {}
  std::unique_ptr<UnisonoSession, void (*)(UnisonoSession*)> session_;
};

/// See UnisonoEngineOptions.
struct EngineOptions {
  const char* devices = nullptr;
  int32_t workers = 0;
  bool reference_only = false;
  const char* cache_folder = nullptr;
  int64_t device_bytes = 0;
};

/// Any thread; copies share it.
class Engine {
 public:
  /// Throws if there are no such devices.
  explicit Engine(const EngineOptions& options = {}) {
    UnisonoEngineOptions all = UNISONO_ENGINE_OPTIONS_INIT;
    all.devices = options.devices;
    all.workers = options.workers;
    all.reference_only = options.reference_only ? 1 : 0;
    all.cache_folder = options.cache_folder;
    all.device_bytes = options.device_bytes;
    UnisonoEngine* engine = nullptr;
    detail::must(unisono_engine_create(&all, &engine));
    engine_ = {engine, [](UnisonoEngine* e) { unisono_engine_release(e); }};
  }
  /// Throws if there is no memory, or an option is no sensible one.
  Session session(Host host = {}) const {
    UnisonoSessionOptions all = UNISONO_SESSION_OPTIONS_INIT;
    all.grants = host.files ? UNISONO_GRANT_FILES : 0;
    all.depth = host.depth;
    all.device_bytes = host.device_bytes;
    all.host_bytes = host.host_bytes;
    std::vector<const char*> arguments;
    for (const std::string& argument : host.arguments)
      arguments.push_back(argument.c_str());
    all.arguments = arguments.data();
    all.argument_count = arguments.size();
    auto kept = std::make_unique<Host>(std::move(host));
    if (kept->print) all.print = &print;
    if (kept->import) all.import = &import;
    all.user = kept.get();
    all.release = [](void* user) { delete static_cast<Host*>(user); };
    UnisonoSession* session = nullptr;
    detail::must(unisono_session_create(engine_.get(), &all, &session));
    static_cast<void>(kept.release());
    return Session(session);
  }
  size_t device_count() const {
    return unisono_engine_device_count(engine_.get());
  }

 private:
  static void print(void* user, const char* text, size_t length,
                    UnisonoReply* reply) {
    detail::answer(reply, [&] {
      static_cast<Host*>(user)->print(std::string_view(text, length));
    });
  }
  static void import(void* user, const char* path, UnisonoReply* reply) {
    detail::answer(reply, [&] {
      const std::string text = static_cast<Host*>(user)->import(path);
      unisono_reply_text(reply, text.data(), text.size());
    });
  }
  std::shared_ptr<UnisonoEngine> engine_;
};

}  // namespace v1
}  // namespace unisono

#define UNISONO_PARENS ()
#define UNISONO_EXPAND(...) \
  UNISONO_EXPAND2(UNISONO_EXPAND2(UNISONO_EXPAND2(__VA_ARGS__)))
#define UNISONO_EXPAND2(...) \
  UNISONO_EXPAND1(UNISONO_EXPAND1(UNISONO_EXPAND1(__VA_ARGS__)))
#define UNISONO_EXPAND1(...) \
  UNISONO_EXPAND0(UNISONO_EXPAND0(UNISONO_EXPAND0(__VA_ARGS__)))
#define UNISONO_EXPAND0(...) __VA_ARGS__
#define UNISONO_FIELDS(field, ...) \
  record.field __VA_OPT__(, UNISONO_FIELDS_AGAIN UNISONO_PARENS(__VA_ARGS__))
#define UNISONO_FIELDS_AGAIN() UNISONO_FIELDS
#define UNISONO_RECORD(Structure, ...)                              \
  template <>                                                       \
  struct unisono::Record<Structure> {                               \
    static inline const std::vector<std::string> names =            \
        unisono::detail::split_names(#__VA_ARGS__);                 \
    static auto tie(Structure& record) {                            \
      return std::tie(UNISONO_EXPAND(UNISONO_FIELDS(__VA_ARGS__))); \
    }                                                               \
    static auto tie(const Structure& record) {                      \
      return std::tie(UNISONO_EXPAND(UNISONO_FIELDS(__VA_ARGS__))); \
    }                                                               \
  };

#endif  // UNISONO_HPP
