#pragma once
// How functions report that the machine failed: an Error in place of a value.
#include <cstdint>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "runtime/check.h"

namespace unisono {

/// Why the machine failed: a stable kind for code, a sentence for people.
struct Error {
  enum class Kind {
    out_of_memory,     // a device's heap, or a size that no memory can hold
    invalid_file,      // a file that is not what it says it is
    io,                // the operating system refused
    integer_division,  // a checked error in compiled code: division by zero
    index_out_of_bounds,
    check_failed,  // any other checked error in compiled code
    cancelled,     // stop flag, deadline
    device_lost,
    stalled,  // a collective that not all devices reach in time
    compile_failed,
    host_function,  // a function that the host defined said so
  };
  Kind kind = Kind::io;
  std::string message;
  /// Position in the source for errors in compiled code: the `source` of the
  /// IR node that failed; 0 when there is none.
  uint32_t source = 0;
  /// For errors in compiled code: the logical device and its first member that
  /// failed, or -1.
  int device = -1;
  int64_t member = -1;
  /// stalled: the logical devices that have not arrived.
  std::vector<int> missing = {};
  /// The run failed before its first step, so its inputs are unchanged.
  bool untouched = false;
};

/// A value, or why there is none. To ask for the one that is not there is our
/// bug (CHECK).
template <class T>
class [[nodiscard]] Result {
 public:
  Result(T value) : state_(std::move(value)) {}      // NOLINT: implicit
  Result(Error error) : state_(std::move(error)) {}  // NOLINT: implicit
  explicit operator bool() const { return state_.index() == 0; }
  T& operator*() & { return get(); }
  const T& operator*() const& { return const_cast<Result*>(this)->get(); }
  T&& operator*() && { return std::move(get()); }
  T* operator->() { return &get(); }
  const T* operator->() const { return &const_cast<Result*>(this)->get(); }
  const Error& error() const& {
    UNISONO_CHECK(state_.index() == 1);
    return std::get<1>(state_);
  }
  Error&& error() && {
    UNISONO_CHECK(state_.index() == 1);
    return std::get<1>(std::move(state_));
  }

 private:
  T& get() {
    UNISONO_CHECK(state_.index() == 0);
    return std::get<0>(state_);
  }
  std::variant<T, Error> state_;
};

/// The value of functions that have none to give.
struct Unit {};
using Status = Result<Unit>;

/// The value of an expression of type Result<T>; where it has none, the
/// function around returns the error: `File file = TRY(open(path));`. Only in
/// functions that give a Result. (A statement expression: GCC and Clang.)
#define TRY(...)                                           \
  __extension__({                                          \
    auto&& try_result = (__VA_ARGS__);                     \
    if (!try_result) return std::move(try_result).error(); \
    *std::move(try_result);                                \
  })

}  // namespace unisono
