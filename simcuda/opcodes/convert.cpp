// cvt: between all types, in all roundings. A float outside an integer's range
// becomes the nearest integer there is; a NaN becomes 0, or, as 64 bits, only
// the top bit (what the hardware does).
#include <cfenv>

#include "simcuda/opcodes/decode.h"
#include "simcuda/opcodes/families.h"
#include "simcuda/opcodes/float.h"

namespace simcuda {
namespace {

enum Rounding : uint8_t { to_nearest, to_zero, down, up };

template <class T>
constexpr bool is_real = !std::is_integral_v<T>;

/// Of two neighbours (value rounded to nearest, and the exact value) the one
/// that the rounding asks for.
template <class T>
T step_to(T nearest, double exact, Rounding rounding) {
  double value = static_cast<double>(static_cast<float>(nearest));
  if constexpr (std::is_same_v<T, double>) value = nearest;
  if (rounding == to_nearest || value == exact || exact != exact)
    return nearest;
  Bits<T> bits = std::bit_cast<Bits<T>>(nearest);
  constexpr Bits<T> sign =
      static_cast<Bits<T>>(Bits<T>{1} << (8 * sizeof(T) - 1));
  bool upward = rounding == up || (rounding == to_zero && exact < 0);
  if (upward == (value > exact)) return nearest;  // already on that side
  // One step up or down in value.
  if ((bits & ~sign) == 0) {
    bits = upward ? 1 : static_cast<Bits<T>>(sign | 1);
  } else {
    bool negative = (bits & sign) != 0;
    bits = static_cast<Bits<T>>(negative == upward ? bits - 1 : bits + 1);
  }
  return std::bit_cast<T>(bits);
}

template <class T>
double widen(T x) {
  if constexpr (std::is_same_v<T, double>)
    return x;
  else
    return static_cast<double>(static_cast<float>(x));
}

double round_integral(double x, Rounding rounding) {
  switch (rounding) {
    case to_nearest: return std::nearbyint(x);
    case to_zero: return std::trunc(x);
    case down: return std::floor(x);
    case up: return std::ceil(x);
  }
  return x;
}

template <class D>
D real_to_integer(double x, Rounding rounding) {
  using Limits = std::numeric_limits<D>;
  if (x != x) return sizeof(D) == 8 ? static_cast<D>(uint64_t{1} << 63) : D{0};
  x = round_integral(x, rounding);
  if (x <= static_cast<double>(Limits::min())) return Limits::min();
  if (x >= static_cast<double>(Limits::max())) return Limits::max();
  return static_cast<D>(x);
}

/// An integer of up to 64 bits to a float, rounded once.
template <class D, class S>
D integer_to_real(S x, Rounding rounding) {
  constexpr int modes[] = {FE_TONEAREST, FE_TOWARDZERO, FE_DOWNWARD, FE_UPWARD};
  if constexpr (std::is_same_v<D, double> || std::is_same_v<D, float>) {
    if (rounding == to_nearest) return static_cast<D>(x);
    const int before = std::fegetround();
    std::fesetround(modes[rounding]);
    volatile S value = x;
    volatile D result = static_cast<D>(value);
    std::fesetround(before);
    return result;
  } else {
    double value = static_cast<double>(x);
    // What 53 bits cannot hold is rounded to odd.
    __int128 back = static_cast<__int128>(value), whole = x;
    if (back != whole) {
      uint64_t bits = std::bit_cast<uint64_t>(value);
      bool over = (back > whole) == (whole > 0);
      value = std::bit_cast<double>((over ? bits - 1 : bits) | 1);
    }
    return step_to<D>(narrow<D>(value), value, rounding);
  }
}

enum Flag : uint8_t {
  flag_sat = 1,
  flag_ftz = 2,
  flag_integral = 4,
  flag_relu = 8
};

template <class D, class S>
D convert_value(S x, Rounding rounding, uint8_t flags) {
  if constexpr (is_real<S> && is_real<D>) {
    if (flags & flag_ftz) x = flush(x);
    double exact = widen(x);
    D y;
    if (flags & flag_integral)
      y = narrow<D>(round_integral(exact, rounding));
    else
      y = step_to<D>(narrow<D>(exact), exact, rounding);
    y = canonical(y);
    if (flags & flag_ftz) y = flush(y);
    if (flags & flag_relu && widen(y) < 0) y = D(0.0f);
    if (flags & flag_sat) y = saturate(y);
    return y;
  } else if constexpr (is_real<S>) {
    if (flags & flag_ftz) x = flush(x);
    return real_to_integer<D>(widen(x), rounding);
  } else if constexpr (is_real<D>) {
    D y = integer_to_real<D>(x, rounding);
    return flags & flag_sat ? saturate(y) : y;
  } else {
    if (flags & flag_sat) {
      __int128 value = x;
      value = std::min<__int128>(value, std::numeric_limits<D>::max());
      value = std::max<__int128>(value, std::numeric_limits<D>::min());
      return static_cast<D>(value);
    }
    return static_cast<D>(x);
  }
}

template <class D, class S>
Flow convert(Warp& warp, const Instruction& i) {
  const auto* a = warp.row<RowOf<S>>(i.a);
  auto* d = warp.row<RowOf<D>>(i.dst);
  const auto rounding = static_cast<Rounding>(i.mode);
  each_lane(warp, [&](int lane) {
    d[lane] =
        to_row<D>(convert_value<D, S>(from_row<S>(a[lane]), rounding, i.mode2));
  });
  return Flow::next;
}

/// What C++ converts the same way, and the compiler as vectors.
template <class D, class S>
struct PlainTo {
  D operator()(S x) const {
    if constexpr (std::is_same_v<D, S>)
      return x;
    else if constexpr (is_real<D>)
      return canonical(static_cast<D>(x));
    else
      return static_cast<D>(x);
  }
};
struct FloatToInt32 {
  int32_t operator()(float x) const {
    // Clamped before, as the conversion itself is undefined out of range.
    float inside = x >= -0x1p31f && x < 0x1p31f ? x : 0.0f;
    int32_t value = static_cast<int32_t>(inside);
    value = x >= 0x1p31f ? INT32_MAX : value;
    return x < -0x1p31f ? INT32_MIN : value;
  }
};

template <class D, class S>
Handler pick_convert(Rounding rounding, uint8_t flags) {
  if constexpr (std::is_same_v<D, int32_t> && std::is_same_v<S, float>) {
    if (flags == flag_integral && rounding == to_zero)
      return unary<int32_t, float, FloatToInt32>;
  }
  constexpr bool simple =
      is_real<S>
          ? is_real<D> && (std::is_same_v<S, float> ||
                           (std::is_same_v<D, float> && sizeof(S) == 2) ||
                           std::is_same_v<D, S>)
          : !is_real<D> || sizeof(D) >= 4;
  if constexpr (simple) {
    if (rounding == to_nearest && flags == 0) return unary<D, S, PlainTo<D, S>>;
  }
  return convert<D, S>;
}

template <class Pick>
Handler with_type(Type type, Pick&& pick) {
  switch (type) {
    case Type::u8:
    case Type::b8: return pick.template operator()<uint8_t>();
    case Type::s8: return pick.template operator()<int8_t>();
    case Type::f16: return pick.template operator()<Half>();
    case Type::bf16: return pick.template operator()<Brain>();
    case Type::f32: return pick.template operator()<float>();
    case Type::f64: return pick.template operator()<double>();
    default: return pick_integer(type, pick);
  }
}

Handler convert_handler(Type to, Type from, Rounding rounding, uint8_t flags) {
  return with_type(to, [=]<class D>() -> Handler {
    return with_type(from, [=]<class S>() -> Handler {
      return pick_convert<D, S>(rounding, flags);
    });
  });
}

/// The unsigned or signed integer type of this size.
Type integer_type(int bytes, bool with_sign) {
  switch (bytes) {
    case 1: return with_sign ? Type::s8 : Type::u8;
    case 2: return with_sign ? Type::s16 : Type::u16;
    case 4: return with_sign ? Type::s32 : Type::u32;
    default: return with_sign ? Type::s64 : Type::u64;
  }
}

template <class T>
Flow convert_pair(Warp& warp, const Instruction& i) {
  const auto* a = warp.row<uint32_t>(i.a);
  const auto* b = warp.row<uint32_t>(i.b);
  auto* d = warp.row<uint32_t>(i.dst);
  const auto rounding = static_cast<Rounding>(i.mode);
  each_lane(warp, [&](int lane) {
    auto half = [&](uint32_t bits) {
      return uint32_t{std::bit_cast<uint16_t>(convert_value<T, float>(
          std::bit_cast<float>(bits), rounding, i.mode2))};
    };
    d[lane] = half(a[lane]) << 16 | half(b[lane]);
  });
  return Flow::next;
}

/// The 10 bits of a tf32's fraction; ties away from zero, or to even.
template <bool Away>
struct ToTf32 {
  uint32_t operator()(uint32_t bits) const {
    if ((bits & 0x7fffffff) > 0x7f800000) return 0x7fffffff;
    uint32_t odd = bits >> 13 & 1;
    return (bits + (Away ? 0x1000 : 0xfff + odd)) & ~0x1fffu;
  }
};

bool decode_special_cvt(Decoding& d) {
  Type to = d.op.type(0);
  if (to == Type::tf32) {
    if (!d.needs(80)) return false;
    d.out.dst = d.write(d.operand(0), Type::b32, false);
    d.out.a = d.read(d.operand(1), Type::f32, false);
    return d.handler(d.op.has("rna")
                         ? unary<uint32_t, uint32_t, ToTf32<true>>
                         : unary<uint32_t, uint32_t, ToTf32<false>>);
  }
  if (d.op.type(1) != Type::f32 || d.count() != 3) return d.unsupported();
  if (!d.needs(80)) return false;
  d.out.dst = d.write(d.operand(0), Type::b32, false);
  d.out.a = d.read(d.operand(1), Type::f32, false);
  d.out.b = d.read(d.operand(2), Type::f32, false);
  return d.handler(to == Type::f16x2 ? convert_pair<Half>
                                     : convert_pair<Brain>);
}

}  // namespace

bool decode_cvt(Decoding& d) {
  if (d.op.types.size() != 2) return d.unsupported();
  Type to = d.op.type(0), from = d.op.type(1);
  int integral = d.op.which({"rni", "rzi", "rmi", "rpi"});
  int rounding = d.op.which({"rn", "rz", "rm", "rp"});
  d.out.mode = static_cast<uint8_t>(std::max({integral, rounding, 0}));
  d.out.mode2 = static_cast<uint8_t>(
      (d.op.has("sat") ? flag_sat : 0) | (d.op.has("ftz") ? flag_ftz : 0) |
      (integral >= 0 ? flag_integral : 0) | (d.op.has("relu") ? flag_relu : 0));
  if (d.op.has("satfinite")) return d.unsupported();
  if (type_class(to) == TypeClass::packed || to == Type::tf32)
    return decode_special_cvt(d);
  if (d.count() != 2) return d.fail("`cvt` takes two operands");
  const bool real = is_float(to), real_from = is_float(from);
  if (real != real_from && real_from && integral < 0)
    return d.fail("`cvt` to an integer needs a rounding");
  if (real && rounding < 0 && integral < 0 &&
      (!real_from || type_bytes(to) < type_bytes(from))) {
    return d.fail("`cvt` to a float needs a rounding");
  }
  if ((to == Type::bf16 || from == Type::bf16) &&
      !d.needs(to == Type::f32 || from == Type::f32 ? 80 : 90)) {
    return false;
  }
  d.out.dst = d.write(d.operand(0), to, true);
  d.out.a = d.read(d.operand(1), from, true);
  Handler run =
      convert_handler(to, from, static_cast<Rounding>(d.out.mode), d.out.mode2);
  if (!d.handler(run)) return false;
  Instruction main = d.out;
  bool moved = false;
  auto emit = [&](const Instruction& i) {
    if (moved)
      d.follow(i);
    else
      d.out = i;
    moved = true;
  };
  // A wider source is cut first, a wider destination extended after.
  if (type_bytes(from) <= 4 && d.register_bytes(d.operand(1)) == 8) {
    Instruction cut;
    cut.run = convert_handler(Type::u32, Type::u64, to_nearest, 0);
    cut.a = main.a;
    cut.dst = main.a = d.scratch();
    emit(cut);
  }
  int room = d.register_bytes(d.operand(0));
  bool extend = !real && room > type_bytes(to) &&
                (is_signed(to) || (room == 8 && type_bytes(to) <= 4));
  if (!extend) return emit(main), true;
  Instruction widen;
  widen.run =
      convert_handler(integer_type(room, is_signed(to)), to, to_nearest, 0);
  widen.dst = main.dst;
  widen.a = main.dst = d.scratch();
  emit(main);
  emit(widen);
  return true;
}

}  // namespace simcuda
