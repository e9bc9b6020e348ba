#pragma once
// Floating-point arithmetic of one lane: IEEE results with the NaN that a GPU
// gives, subnormals flushed where asked.
#include <cmath>
#include <limits>

#include "simcuda/machine/lanes.h"

namespace simcuda {

/// x, or the NaN of a GPU if x is one.
inline float canonical(float x) {
  return x != x ? std::bit_cast<float>(0x7fffffffu) : x;
}
inline double canonical(double x) { return x; }
inline Half canonical(Half x) {
  return std::isnan(static_cast<float>(x))
             ? std::bit_cast<Half>(uint16_t{0x7fff})
             : x;
}
inline Brain canonical(Brain x) { return x; }  // done by its conversion

/// x, or a zero of its sign if x is subnormal (for float and f16).
inline float flush(float x) {
  uint32_t bits = std::bit_cast<uint32_t>(x);
  return std::bit_cast<float>((bits & 0x7f800000) == 0 ? bits & 0x80000000
                                                       : bits);
}
inline double flush(double x) { return x; }
inline Half flush(Half x) {
  uint16_t bits = std::bit_cast<uint16_t>(x);
  return std::bit_cast<Half>(
      static_cast<uint16_t>((bits & 0x7c00) == 0 ? bits & 0x8000 : bits));
}
inline Brain flush(Brain x) { return x; }

/// x clamped to 0 ... 1; NaN becomes 0.
template <class T>
inline T saturate(T x) {
  float f = static_cast<float>(x);
  return f >= 1 ? static_cast<T>(1.0f) : f > 0 ? x : static_cast<T>(0.0f);
}

/// A double rounded once to T; also right for one that was rounded to odd.
template <class T>
inline T narrow(double x) {
  if constexpr (std::is_same_v<T, Brain>) {
    // To float by rounding to odd, then to bfloat16.
    float f = static_cast<float>(x);
    if (static_cast<double>(f) != x && std::isfinite(x)) {
      uint32_t bits = std::bit_cast<uint32_t>(f);
      if (std::fabs(static_cast<double>(f)) > std::fabs(x)) --bits;
      f = std::bit_cast<float>(bits | 1);
    }
    return Brain(f);
  } else {
    return static_cast<T>(x);
  }
}

/// a * b + c rounded once. The product is exact in double; the sum is rounded
/// to odd there, so that rounding it again is right.
template <class T>
inline T fma_narrow(T a, T b, T c) {
  double p = static_cast<double>(static_cast<float>(a)) *
             static_cast<double>(static_cast<float>(b));
  double z = static_cast<double>(static_cast<float>(c));
  double sum = p + z;
  double back = sum - p;
  double error = (p - (sum - back)) + (z - back);
  if (error != 0 && std::isfinite(sum)) {
    uint64_t bits = std::bit_cast<uint64_t>(sum);
    if ((bits & 1) == 0) {
      bool away = (error > 0) == (sum > 0);
      sum = std::bit_cast<double>(away ? bits + 1 : bits - 1);
    }
  }
  return narrow<T>(sum);
}

struct FloatAdd {
  template <class T>
  T operator()(T a, T b) const {
    if constexpr (sizeof(T) == 2)
      return static_cast<T>(static_cast<float>(a) + static_cast<float>(b));
    else
      return a + b;
  }
};
struct FloatSub {
  template <class T>
  T operator()(T a, T b) const {
    if constexpr (sizeof(T) == 2)
      return static_cast<T>(static_cast<float>(a) - static_cast<float>(b));
    else
      return a - b;
  }
};
struct FloatMul {
  template <class T>
  T operator()(T a, T b) const {
    if constexpr (sizeof(T) == 2)
      return static_cast<T>(static_cast<float>(a) * static_cast<float>(b));
    else
      return a * b;
  }
};
struct FloatDiv {
  template <class T>
  T operator()(T a, T b) const {
    return a / b;
  }
};
struct FloatFma {
  template <class T>
  T operator()(T a, T b, T c) const {
    if constexpr (sizeof(T) == 2)
      return fma_narrow(a, b, c);
    else
      return std::fma(a, b, c);
  }
};
struct FloatSqrt {
  template <class T>
  T operator()(T a) const {
    return std::sqrt(a);
  }
};
struct FloatRcp {
  template <class T>
  T operator()(T a) const {
    return T{1} / a;
  }
};

/// The smaller or larger of two; −0 < +0. A NaN loses, or wins if `NanWins`.
template <bool Larger, bool NanWins>
struct FloatPick {
  template <class T>
  T operator()(T a, T b) const {
    auto x = wide(a), y = wide(b);
    Bits<T> i = std::bit_cast<Bits<T>>(a), j = std::bit_cast<Bits<T>>(b);
    Bits<T> same = static_cast<Bits<T>>(Larger ? i & j : i | j);
    bool first = Larger ? x > y : x < y;
    T picked = std::bit_cast<T>(x == y ? same : first ? i : j);
    if (NanWins) return x != x || y != y ? nan(a) : picked;
    if (x != x) return y != y ? nan(a) : b;
    return y != y ? a : picked;
  }

 private:
  static float wide(float x) { return x; }
  static double wide(double x) { return x; }
  static float wide(Half x) { return static_cast<float>(x); }
  static float wide(Brain x) { return static_cast<float>(x); }
  static float nan(float) { return std::bit_cast<float>(0x7fffffffu); }
  static double nan(double) { return std::numeric_limits<double>::quiet_NaN(); }
  static Half nan(Half) { return std::bit_cast<Half>(uint16_t{0x7fff}); }
  static Brain nan(Brain) { return std::bit_cast<Brain>(uint16_t{0x7fff}); }
};

/// F with canonical NaNs, and with subnormals flushed (`Ftz`) and the result
/// saturated (`Sat`) where asked.
template <class F, bool Ftz, bool Sat>
struct Around {
  template <class T, class... More>
  T operator()(T a, More... more) const {
    T result = Ftz ? flush(canonical(F()(flush(a), flush(more)...)))
                   : canonical(F()(a, more...));
    return Sat ? saturate(result) : result;
  }
};

/// F on both halves of 32 bits.
template <class F, class T>
struct Packed {
  template <class... More>
  uint32_t operator()(More... operands) const {
    auto half = [](uint32_t x, int k) {
      return std::bit_cast<T>(static_cast<uint16_t>(x >> (16 * k)));
    };
    uint32_t low = std::bit_cast<uint16_t>(F()(half(operands, 0)...));
    uint32_t high = std::bit_cast<uint16_t>(F()(half(operands, 1)...));
    return high << 16 | low;
  }
};

}  // namespace simcuda
