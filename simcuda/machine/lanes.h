#pragma once
// How handlers work on all lanes at once: a loop over 32 elements that the
// compiler turns into vector code. Where only some of the lanes execute, all
// are computed and the others keep what they have.
#include <bit>
#include <cstdint>
#include <type_traits>

#include "simcuda/machine/warp.h"

namespace simcuda {

/// f16, computed in float and rounded: one + - * / or sqrt is still rounded
/// rightly, as float has more than twice the digits of f16.
using Half = _Float16;

/// bfloat16: the upper half of a float.
struct Brain {
  uint16_t bits = 0;
  Brain() = default;
  explicit Brain(float value) {
    uint32_t f = std::bit_cast<uint32_t>(value);
    uint32_t up = (f + 0x7fff + (f >> 16 & 1)) >> 16;
    bits = (f & 0x7fffffff) > 0x7f800000 ? 0x7fff : static_cast<uint16_t>(up);
  }
  explicit operator float() const {
    return std::bit_cast<float>(uint32_t{bits} << 16);
  }
};

/// The type of a lane in a row of T.
template <class T>
using RowOf = std::conditional_t<sizeof(T) == 8, uint64_t, uint32_t>;

template <size_t N>
struct BitsOf;
template <>
struct BitsOf<1> {
  using Type = uint8_t;
};
template <>
struct BitsOf<2> {
  using Type = uint16_t;
};
template <>
struct BitsOf<4> {
  using Type = uint32_t;
};
template <>
struct BitsOf<8> {
  using Type = uint64_t;
};
template <class T>
using Bits = typename BitsOf<sizeof(T)>::Type;

template <class T>
inline T from_row(RowOf<T> row) {
  if constexpr (std::is_same_v<T, bool>)
    return row != 0;
  else
    return std::bit_cast<T>(static_cast<Bits<T>>(row));
}
template <class T>
inline RowOf<T> to_row(T value) {
  if constexpr (std::is_same_v<T, bool>)
    return value ? 1 : 0;
  else
    return std::bit_cast<Bits<T>>(value);
}

/// Calls body(lane) for each lane that executes, in order: for what must not be
/// done for other lanes (memory), or is no vector code.
template <class Body>
inline void each_lane(const Warp& warp, Body&& body) {
  if (warp.mask == ~0u)
    for (int lane = 0; lane < warp_size; ++lane) body(lane);
  else
    for (uint32_t m = warp.mask; m != 0; m &= m - 1) body(std::countr_zero(m));
}

/// d[lane] = compute(lane) where the lane executes. Rows are the same or
/// apart, so the lanes are independent.
template <class Row, class Compute>
inline void map_lanes(Warp& warp, Row* d, Compute&& compute) {
  if (warp.converged) {
#pragma clang loop vectorize(assume_safety)
    for (int lane = 0; lane < warp_size; ++lane) d[lane] = compute(lane);
  } else {
    const uint32_t* live = warp.live;
#pragma clang loop vectorize(assume_safety)
    for (int lane = 0; lane < warp_size; ++lane) {
      Row value = compute(lane);
      d[lane] = live[lane] ? value : d[lane];
    }
  }
}

/// Handlers made of a function object: d = F(a), F(a, b), F(a, b, c).
template <class D, class A, class F>
Flow unary(Warp& warp, const Instruction& i) {
  const auto* a = warp.row<RowOf<A>>(i.a);
  map_lanes(warp, warp.row<RowOf<D>>(i.dst), [=](int lane) {
    return to_row<D>(static_cast<D>(F()(from_row<A>(a[lane]))));
  });
  return Flow::next;
}
template <class D, class A, class F, class B = A>
Flow binary(Warp& warp, const Instruction& i) {
  const auto* a = warp.row<RowOf<A>>(i.a);
  const auto* b = warp.row<RowOf<B>>(i.b);
  map_lanes(warp, warp.row<RowOf<D>>(i.dst), [=](int lane) {
    return to_row<D>(
        static_cast<D>(F()(from_row<A>(a[lane]), from_row<B>(b[lane]))));
  });
  return Flow::next;
}
template <class D, class A, class F, class B = A, class C = A>
Flow ternary(Warp& warp, const Instruction& i) {
  const auto* a = warp.row<RowOf<A>>(i.a);
  const auto* b = warp.row<RowOf<B>>(i.b);
  const auto* c = warp.row<RowOf<C>>(i.c);
  map_lanes(warp, warp.row<RowOf<D>>(i.dst), [=](int lane) {
    return to_row<D>(static_cast<D>(
        F()(from_row<A>(a[lane]), from_row<B>(b[lane]), from_row<C>(c[lane]))));
  });
  return Flow::next;
}

/// pick<T>() for the integer T of this size and sign (bits are unsigned); null
/// for types that are no such integers.
template <class Pick>
Handler pick_integer(Type type, Pick&& pick) {
  switch (type) {
    case Type::u16:
    case Type::b16: return pick.template operator()<uint16_t>();
    case Type::s16: return pick.template operator()<int16_t>();
    case Type::u32:
    case Type::b32: return pick.template operator()<uint32_t>();
    case Type::s32: return pick.template operator()<int32_t>();
    case Type::u64:
    case Type::b64: return pick.template operator()<uint64_t>();
    case Type::s64: return pick.template operator()<int64_t>();
    case Type::pred:
    case Type::b8:
    case Type::u8:
    case Type::s8:
    case Type::f16:
    case Type::bf16:
    case Type::f32:
    case Type::f64:
    case Type::tf32:
    case Type::f16x2:
    case Type::bf16x2:
    case Type::none: return nullptr;
  }
  return nullptr;
}

}  // namespace simcuda
