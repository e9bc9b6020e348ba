#pragma once
// The algebra that scalar expressions (jit/ir/ops.def) and elementary functions
// (math.h) are written in, here for C++ scalars. jit/emit/scalar_llvm.h is
// the same algebra over LLVM values: a template over the value type V, written
// with nothing but the functions below, computes the same bits in both.
//
//   V::Element                  the element's C++ type
//   V::Rebind<U>                the same algebra's values of another element
//   V(c)                        a constant
//   + - * unary-                integers wrap
//   /                           floats only
//   ~ & | ^                     integers and bool (~ on bool is "not")
//   x << n, x >> n              integers, 0 <= n < width; >> keeps the sign of
//                               signed ones
//   == != < <= > >=             V::Rebind<bool>; IEEE on floats
//   select(mask, a, b)
//   fma sqrt rint floor ceil trunc abs copysign    floats
//   quotient(x, y), remainder(x, y)  integers, truncated; y is neither 0 nor,
//                               with the smallest x, -1
//   convert<U>(x)               value conversion. float to integer: the value,
//                               truncated, must fit (anything else is not
//                               defined); integer to integer wraps; integer to
//                               float rounds once; to bool is not offered
//   bit_cast<U>(x)              same bits, same width
//   lookup(table, index)        table[index], index in bounds; table is a
//                               std::array with static lifetime
//   lookup_row(table, place)    a row of eight rows of a table, as an array of
//                               values; `place` says which (row_place, exp.h)
//   raise(mask, fault, operand) records a checked error where mask holds;
//                               `operand` is an operand of the expression
//   rare<F>(mask, usual, x...)  usual where mask is false, else F{}(x...),
//                               behind a branch that is not taken while no
//                               element needs it. `usual` and F's result are
//                               std::tuples of values; F is a rare function
//   iterate(state, more, step)  state = step(state) while more(state), element
//                               by element; state is a std::tuple of values
//
// There is no float `%`, no libm call, no implicit conversion between element
// types, and no undefined behaviour on any input but where a precondition above
// says so.
#include <array>
#include <bit>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <tuple>
#include <type_traits>
#include <utility>

#include "jit/scalar/element_error.h"

/// The instruction set that templates are compiled for (element_loops.h).
#ifndef UNISONO_INSTRUCTIONS
#define UNISONO_INSTRUCTIONS baseline
#endif

namespace unisono::jit::inline UNISONO_INSTRUCTIONS::scalar {

template <class T>
concept FloatElement = std::same_as<T, float> || std::same_as<T, double>;
template <class T>
concept IntegerElement = std::integral<T> && !std::same_as<T, bool>;

/// One element of a computation type: bool, an integer, float or double.
template <class T>
class Scalar {
 public:
  using Element = T;
  template <class U>
  using Rebind = Scalar<U>;
  using Mask = Scalar<bool>;

  Scalar(std::same_as<T> auto constant) : value_(constant) {}
  /// Integer constants of another integer type, for readable literals.
  template <class C>
    requires IntegerElement<T> && IntegerElement<C> && (!std::same_as<C, T>)
  Scalar(C constant) : value_(static_cast<T>(constant)) {}
  /// An operand that may be at fault: `error` is where `raise` records it.
  Scalar(T operand, ElementError* error)
    requires IntegerElement<T>
      : value_(operand), error_{error} {}

  T value() const { return value_; }

  friend Scalar operator+(Scalar a, Scalar b) {
    return wrapping(a, b, [](auto x, auto y) { return x + y; });
  }
  friend Scalar operator-(Scalar a, Scalar b) {
    return wrapping(a, b, [](auto x, auto y) { return x - y; });
  }
  friend Scalar operator*(Scalar a, Scalar b) {
    return wrapping(a, b, [](auto x, auto y) { return x * y; });
  }
  friend Scalar operator/(Scalar a, Scalar b)
    requires FloatElement<T>
  {
    return a.value_ / b.value_;
  }
  friend Scalar operator-(Scalar a) {
    if constexpr (FloatElement<T>)
      return -a.value_;
    else
      return Scalar(T{0}) - a;
  }
  friend Scalar operator~(Scalar a)
    requires std::integral<T>
  {
    if constexpr (std::same_as<T, bool>)
      return !a.value_;
    else
      return static_cast<T>(~a.value_);
  }
  friend Scalar operator&(Scalar a, Scalar b)
    requires std::integral<T>
  {
    return static_cast<T>(a.value_ & b.value_);
  }
  friend Scalar operator|(Scalar a, Scalar b)
    requires std::integral<T>
  {
    return static_cast<T>(a.value_ | b.value_);
  }
  friend Scalar operator^(Scalar a, Scalar b)
    requires std::integral<T>
  {
    return static_cast<T>(a.value_ ^ b.value_);
  }
  friend Scalar operator<<(Scalar a, Scalar n)
    requires IntegerElement<T>
  {
    return wrapping(a, n, [](auto x, auto y) { return x << y; });
  }
  friend Scalar operator>>(Scalar a, Scalar n)
    requires IntegerElement<T>
  {
    return static_cast<T>(a.value_ >> n.value_);
  }

  friend Mask operator==(Scalar a, Scalar b) { return a.value_ == b.value_; }
  friend Mask operator!=(Scalar a, Scalar b) { return a.value_ != b.value_; }
  friend Mask operator<(Scalar a, Scalar b) { return a.value_ < b.value_; }
  friend Mask operator<=(Scalar a, Scalar b) { return a.value_ <= b.value_; }
  friend Mask operator>(Scalar a, Scalar b) { return a.value_ > b.value_; }
  friend Mask operator>=(Scalar a, Scalar b) { return a.value_ >= b.value_; }

  friend Scalar select(std::type_identity_t<Mask> mask, Scalar a, Scalar b) {
    return mask.value() ? a.value_ : b.value_;
  }

  friend Scalar fma(Scalar a, Scalar b, Scalar c)
    requires FloatElement<T>
  {
    return __builtin_elementwise_fma(a.value_, b.value_, c.value_);
  }
  friend Scalar sqrt(Scalar a)
    requires FloatElement<T>
  {
    return __builtin_elementwise_sqrt(a.value_);
  }
  friend Scalar rint(Scalar a)
    requires FloatElement<T>
  {
    return __builtin_elementwise_roundeven(a.value_);
  }
  friend Scalar floor(Scalar a)
    requires FloatElement<T>
  {
    return __builtin_elementwise_floor(a.value_);
  }
  friend Scalar ceil(Scalar a)
    requires FloatElement<T>
  {
    return __builtin_elementwise_ceil(a.value_);
  }
  friend Scalar trunc(Scalar a)
    requires FloatElement<T>
  {
    return __builtin_elementwise_trunc(a.value_);
  }
  friend Scalar abs(Scalar a)
    requires FloatElement<T>
  {
    return __builtin_elementwise_abs(a.value_);
  }
  friend Scalar copysign(Scalar magnitude, Scalar sign)
    requires FloatElement<T>
  {
    return __builtin_elementwise_copysign(magnitude.value_, sign.value_);
  }

  friend Scalar quotient(Scalar a, Scalar b)
    requires IntegerElement<T>
  {
    return static_cast<T>(a.value_ / b.value_);
  }
  friend Scalar remainder(Scalar a, Scalar b)
    requires IntegerElement<T>
  {
    return static_cast<T>(a.value_ % b.value_);
  }

  friend void raise(std::type_identity_t<Mask> mask, Fault fault,
                    Scalar operand)
    requires IntegerElement<T>
  {
    if (!mask.value() || operand.error_ == nullptr) return;
    if (operand.error_->fault != Fault::none) return;
    *operand.error_ = {fault, static_cast<int64_t>(operand.value_)};
  }

 private:
  struct Nothing {};
  using Error = std::conditional_t<IntegerElement<T>, ElementError*, Nothing>;

  /// Two's complement without undefined behaviour: in an unsigned type at least
  /// as wide as `unsigned`, to which nothing promotes.
  template <class F>
  static Scalar wrapping(Scalar a, Scalar b, F f) {
    if constexpr (FloatElement<T>) {
      return f(a.value_, b.value_);
    } else {
      using Unsigned = std::common_type_t<std::make_unsigned_t<T>, unsigned>;
      return static_cast<T>(
          f(static_cast<Unsigned>(a.value_), static_cast<Unsigned>(b.value_)));
    }
  }

  T value_;
  [[no_unique_address]] Error error_{};
};

template <class U, class T>
Scalar<U> convert(Scalar<T> a) {
  static_assert(!std::same_as<U, bool>);
  return static_cast<U>(a.value());
}

template <class U, class T>
Scalar<U> bit_cast(Scalar<T> a) {
  return __builtin_bit_cast(U, a.value());
}

template <class T, size_t N>
Scalar<T> lookup(const std::array<T, N>& table, Scalar<int32_t> index) {
  return table.data()[index.value()];
}

/// Tables of eight rows of eight: what one instruction of a CPU chooses from,
/// and what has room side by side in the banks of a GPU's shared memory.
using RowTable = std::array<std::array<float, 8>, 8>;

inline std::array<Scalar<float>, 8> lookup_row(const RowTable& table,
                                               Scalar<float> place) {
  const auto bits = __builtin_bit_cast(uint32_t, place.value());
  const auto& row = table.data()[(bits + 7) % 8];
  return [&]<size_t... k>(std::index_sequence<k...>) {
    return std::array{Scalar<float>(row.data()[k])...};
  }(std::make_index_sequence<8>());
}

template <class F, class... V, class... X>
std::tuple<V...> rare(Scalar<bool> mask, std::tuple<V...> usual, X... x) {
  if (__builtin_expect(mask.value(), false)) return F{}(x...);
  return usual;
}

template <class State, class More, class Step>
State iterate(State state, More more, Step step) {
  while (more(state).value()) state = step(state);
  return state;
}

}  // namespace unisono::jit::inline UNISONO_INSTRUCTIONS::scalar
