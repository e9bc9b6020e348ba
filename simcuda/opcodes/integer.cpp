// Integer and bit instructions. Arithmetic wraps; division by zero and the one
// quotient that overflows give what NVIDIA's GPUs give (all ones; the
// dividend).
#include <algorithm>
#include <limits>

#include "simcuda/machine/lanes.h"
#include "simcuda/opcodes/decode.h"
#include "simcuda/opcodes/families.h"

namespace simcuda {
namespace {

template <class T>
using Unsigned = std::make_unsigned_t<T>;
// Wide enough that a product of two 16-bit values is no signed overflow.
template <class T>
using Word = std::conditional_t<sizeof(T) == 8, uint64_t, uint32_t>;

struct Add {
  template <class T>
  T operator()(T a, T b) const {
    return static_cast<T>(Word<T>(a) + Word<T>(b));
  }
};
struct Sub {
  template <class T>
  T operator()(T a, T b) const {
    return static_cast<T>(Word<T>(a) - Word<T>(b));
  }
};
struct MulLow {
  template <class T>
  T operator()(T a, T b) const {
    return static_cast<T>(Word<T>(a) * Word<T>(b));
  }
};
struct MulHigh {
  template <class T>
  T operator()(T a, T b) const {
    if constexpr (sizeof(T) == 8) {
      using Wide =
          std::conditional_t<std::is_signed_v<T>, __int128, unsigned __int128>;
      return static_cast<T>(Wide{a} * Wide{b} >> 64);
    } else {
      using Wide = std::conditional_t<std::is_signed_v<T>, int64_t, uint64_t>;
      return static_cast<T>(Wide{a} * Wide{b} >> (8 * sizeof(T)));
    }
  }
};
template <class T>
using Wider = std::conditional_t<
    sizeof(T) == 2, std::conditional_t<std::is_signed_v<T>, int32_t, uint32_t>,
    std::conditional_t<std::is_signed_v<T>, int64_t, uint64_t>>;
struct MulWide {
  template <class T>
  Wider<T> operator()(T a, T b) const {
    return static_cast<Wider<T>>(static_cast<Wider<T>>(a) *
                                 static_cast<Wider<T>>(b));
  }
};
struct MadLow {
  template <class T>
  T operator()(T a, T b, T c) const {
    return static_cast<T>(Word<T>(a) * Word<T>(b) + Word<T>(c));
  }
};
struct MadHigh {
  template <class T>
  T operator()(T a, T b, T c) const {
    return Add()(MulHigh()(a, b), c);
  }
};
struct MadWide {
  template <class T>
  Wider<T> operator()(T a, T b, Wider<T> c) const {
    return Add()(MulWide()(a, b), c);
  }
};
struct Mul24Low {
  template <class T>
  T operator()(T a, T b) const {
    auto low = [](T x) { return static_cast<T>(Word<T>(x) << 8) >> 8; };
    return static_cast<T>(Word<T>(low(a)) * Word<T>(low(b)));
  }
};
struct Div {
  template <class T>
  T operator()(T a, T b) const {
    if (b == 0) return static_cast<T>(~T{0});
    if (std::is_signed_v<T> && b == static_cast<T>(-1))
      return static_cast<T>(Word<T>{0} - Word<T>(a));
    return static_cast<T>(a / b);
  }
};
struct Rem {
  template <class T>
  T operator()(T a, T b) const {
    if (b == 0) return a;
    if (std::is_signed_v<T> && b == static_cast<T>(-1)) return 0;
    return static_cast<T>(a % b);
  }
};
struct Sad {
  template <class T>
  T operator()(T a, T b, T c) const {
    return static_cast<T>(Word<T>(c) + (a < b ? Word<T>(b) - Word<T>(a)
                                              : Word<T>(a) - Word<T>(b)));
  }
};
struct Abs {
  template <class T>
  T operator()(T a) const {
    return static_cast<T>(a < 0 ? Word<T>{0} - Word<T>(a) : Word<T>(a));
  }
};
struct Neg {
  template <class T>
  T operator()(T a) const {
    return static_cast<T>(Word<T>{0} - Word<T>(a));
  }
};
struct Min {
  template <class T>
  T operator()(T a, T b) const {
    return b < a ? b : a;
  }
};
struct Max {
  template <class T>
  T operator()(T a, T b) const {
    return a < b ? b : a;
  }
};
struct And {
  template <class T>
  T operator()(T a, T b) const {
    return a & b;
  }
};
struct Or {
  template <class T>
  T operator()(T a, T b) const {
    return a | b;
  }
};
struct Xor {
  template <class T>
  T operator()(T a, T b) const {
    return a ^ b;
  }
};
struct Not {
  template <class T>
  T operator()(T a) const {
    return static_cast<T>(~a);
  }
};
struct NotPredicate {
  uint32_t operator()(uint32_t a) const { return a ^ 1; }
};
struct CNot {
  template <class T>
  T operator()(T a) const {
    return a == 0;
  }
};
// Shift counts are unsigned and saturate at the width.
struct Shl {
  template <class T>
  T operator()(T a, uint32_t n) const {
    constexpr uint32_t width = 8 * sizeof(T);
    return static_cast<T>(n < width ? Word<T>(a) << (n & (width - 1)) : 0);
  }
};
struct Shr {
  template <class T>
  T operator()(T a, uint32_t n) const {
    constexpr uint32_t width = 8 * sizeof(T);
    if (std::is_signed_v<T>)
      return static_cast<T>(a >> (n < width ? n : width - 1));
    return static_cast<T>(n < width ? a >> (n & (width - 1)) : 0);
  }
};
struct ShfLeftWrap {
  uint32_t operator()(uint32_t low, uint32_t high, uint32_t n) const {
    return static_cast<uint32_t>((uint64_t{high} << 32 | low) << (n & 31) >>
                                 32);
  }
};
struct ShfRightWrap {
  uint32_t operator()(uint32_t low, uint32_t high, uint32_t n) const {
    return static_cast<uint32_t>((uint64_t{high} << 32 | low) >> (n & 31));
  }
};
struct ShfLeftClamp {
  uint32_t operator()(uint32_t low, uint32_t high, uint32_t n) const {
    return n >= 32 ? low : ShfLeftWrap()(low, high, n);
  }
};
struct ShfRightClamp {
  uint32_t operator()(uint32_t low, uint32_t high, uint32_t n) const {
    return n >= 32 ? high : ShfRightWrap()(low, high, n);
  }
};
struct Popc {
  template <class T>
  uint32_t operator()(T a) const {
    return static_cast<uint32_t>(std::popcount(a));
  }
};
struct Clz {
  template <class T>
  uint32_t operator()(T a) const {
    return static_cast<uint32_t>(std::countl_zero(a));
  }
};
template <bool ShiftAmount>
struct Bfind {
  template <class T>
  uint32_t operator()(T a) const {
    using U = Unsigned<T>;
    U bits = static_cast<U>(a < 0 ? ~a : a);
    if (bits == 0) return ~0u;
    uint32_t leading = static_cast<uint32_t>(std::countl_zero(bits));
    return ShiftAmount ? leading : 8 * sizeof(T) - 1 - leading;
  }
};
struct Brev {
  template <class T>
  T operator()(T a) const {
    if constexpr (sizeof(T) == 8)
      return __builtin_bitreverse64(a);
    else
      return __builtin_bitreverse32(a);
  }
};
struct Bfe {
  template <class T>
  T operator()(T a, uint32_t position, uint32_t length) const {
    constexpr uint32_t width = 8 * sizeof(T);
    position &= 0xff;
    length &= 0xff;
    if (length == 0) return 0;
    using U = Unsigned<T>;
    // Bits beyond the top are zeros, or copies of the sign.
    T shifted = position < width ? static_cast<T>(a >> position)
                : a < 0          ? static_cast<T>(-1)
                                 : T{0};
    if (length >= width) return shifted;
    U field = static_cast<U>(shifted) & ((U{1} << length) - 1);
    if (std::is_signed_v<T>) {
      uint32_t top = std::min(position + length - 1, width - 1);
      bool negative = a >> top & 1;
      if (negative) field |= ~((U{1} << length) - 1);
    }
    return static_cast<T>(field);
  }
};
template <class T>
Flow bit_field_insert(Warp& warp, const Instruction& i) {
  const auto* a = warp.row<T>(i.a);
  const auto* b = warp.row<T>(i.b);
  const auto* c = warp.row<uint32_t>(i.c);
  const auto* length = warp.row<uint32_t>(warp.kernel->slots[i.list]);
  map_lanes(warp, warp.row<T>(i.dst), [=](int lane) {
    constexpr uint32_t width = 8 * sizeof(T);
    uint32_t p = c[lane] & 0xff, n = length[lane] & 0xff;
    if (n == 0 || p >= width) return b[lane];
    T field = n >= width ? ~T{0} : (T{1} << n) - 1;
    return static_cast<T>((b[lane] & ~(field << p)) | (a[lane] & field) << p);
  });
  return Flow::next;
}
struct Prmt {
  uint32_t operator()(uint32_t a, uint32_t b, uint32_t selector) const {
    uint64_t bytes = uint64_t{b} << 32 | a;
    uint32_t result = 0;
    for (int k = 0; k < 4; ++k) {
      uint32_t s = selector >> (4 * k) & 15;
      uint32_t byte = static_cast<uint32_t>(bytes >> (8 * (s & 7)) & 0xff);
      if (s & 8) byte = byte & 0x80 ? 0xff : 0;
      result |= byte << (8 * k);
    }
    return result;
  }
};
/// The other modes: the selector's two low bits say how.
template <int Mode>
struct PrmtMode {
  uint32_t operator()(uint32_t a, uint32_t b, uint32_t c) const {
    static constexpr uint16_t table[6][4] = {
        {0x3210, 0x4321, 0x5432, 0x6543},  // f4e
        {0x5670, 0x6701, 0x7012, 0x0123},  // b4e
        {0x0000, 0x1111, 0x2222, 0x3333},  // rc8
        {0x3210, 0x3211, 0x3222, 0x3333},  // ecl
        {0x0000, 0x1110, 0x2210, 0x3210},  // ecr
        {0x1010, 0x3232, 0x1010, 0x3232},  // rc16
    };
    return Prmt()(a, b, table[Mode][c & 3]);
  }
};
template <bool SignedA, bool SignedB>
struct Dp4a {
  uint32_t operator()(uint32_t a, uint32_t b, uint32_t c) const {
    for (int k = 0; k < 32; k += 8) {
      uint32_t x = SignedA ? static_cast<uint32_t>(static_cast<int8_t>(a >> k))
                           : a >> k & 0xff;
      uint32_t y = SignedB ? static_cast<uint32_t>(static_cast<int8_t>(b >> k))
                           : b >> k & 0xff;
      c += x * y;
    }
    return c;
  }
};
Flow lop3(Warp& warp, const Instruction& i) {
  const auto* a = warp.row<uint32_t>(i.a);
  const auto* b = warp.row<uint32_t>(i.b);
  const auto* c = warp.row<uint32_t>(i.c);
  const auto table = static_cast<uint32_t>(i.offset);
  map_lanes(warp, warp.row<uint32_t>(i.dst), [=](int lane) {
    uint32_t result = 0;
    for (uint32_t k = 0; k < 8; ++k) {
      uint32_t term = (k & 4 ? a[lane] : ~a[lane]) &
                      (k & 2 ? b[lane] : ~b[lane]) &
                      (k & 1 ? c[lane] : ~c[lane]);
      result |= table >> k & 1 ? term : 0;
    }
    return result;
  });
  return Flow::next;
}

/// a + b or a - b with a carry in and out.
template <class T, bool Subtract, bool In, bool Out>
Flow with_carry(Warp& warp, const Instruction& i) {
  const auto* a = warp.row<T>(i.a);
  const auto* b = warp.row<T>(i.b);
  auto* d = warp.row<T>(i.dst);
  each_lane(warp, [&](int lane) {
    using Wide = unsigned __int128;
    Wide y = Subtract ? static_cast<T>(~b[lane]) : b[lane];
    // The carry of a subtraction is a borrow: its complement is added.
    Wide in = In ? (Subtract ? !warp.carry[lane] : warp.carry[lane]) : Subtract;
    Wide sum = Wide{a[lane]} + y + in;
    d[lane] = static_cast<T>(sum);
    bool carry = sum >> (8 * sizeof(T)) & 1;
    if (Out) warp.carry[lane] = Subtract ? !carry : carry;
  });
  return Flow::next;
}
template <class T, bool Subtract>
Handler pick_carry(bool in, bool out) {
  if (in) {
    return out ? with_carry<T, Subtract, true, true>
               : with_carry<T, Subtract, true, false>;
  }
  return with_carry<T, Subtract, false, true>;
}
bool decode_carry(Decoding& d, bool subtract) {
  bool in = d.op.base.back() == 'c', out = d.op.has("cc");
  bool wide = type_bytes(d.op.type()) == 8;
  if (wide) {
    return d.operands("t:tt") &&
           d.handler(subtract ? pick_carry<uint64_t, true>(in, out)
                              : pick_carry<uint64_t, false>(in, out));
  }
  return d.operands("t:tt") &&
         d.handler(subtract ? pick_carry<uint32_t, true>(in, out)
                            : pick_carry<uint32_t, false>(in, out));
}

struct AddSaturated {
  int32_t operator()(int32_t a, int32_t b) const {
    int64_t sum = int64_t{a} + b;
    return static_cast<int32_t>(std::clamp<int64_t>(sum, INT32_MIN, INT32_MAX));
  }
};
struct SubSaturated {
  int32_t operator()(int32_t a, int32_t b) const {
    int64_t sum = int64_t{a} - b;
    return static_cast<int32_t>(std::clamp<int64_t>(sum, INT32_MIN, INT32_MAX));
  }
};

template <class F>
bool decode_two(Decoding& d) {
  return d.operands("t:tt") &&
         d.handler(pick_integer(d.op.type(), []<class T>() -> Handler {
           return binary<T, T, F>;
         }));
}
template <class F>
bool decode_one(Decoding& d) {
  return d.operands("t:t") &&
         d.handler(pick_integer(
             d.op.type(), []<class T>() -> Handler { return unary<T, T, F>; }));
}

}  // namespace

bool decode_add(Decoding& d) {
  if (is_float(d.op.type())) return decode_float_add(d, false);
  if (d.op.base == "addc" || d.op.has("cc")) return decode_carry(d, false);
  if (d.op.has("sat")) {
    return d.operands("t:tt") &&
           d.handler(binary<int32_t, int32_t, AddSaturated>);
  }
  return decode_two<Add>(d);
}
bool decode_sub(Decoding& d) {
  if (is_float(d.op.type())) return decode_float_add(d, true);
  if (d.op.base == "subc" || d.op.has("cc")) return decode_carry(d, true);
  if (d.op.has("sat")) {
    return d.operands("t:tt") &&
           d.handler(binary<int32_t, int32_t, SubSaturated>);
  }
  return decode_two<Sub>(d);
}
bool decode_mul(Decoding& d) {
  if (is_float(d.op.type())) return decode_float_mul(d);
  if (d.op.has("hi")) return decode_two<MulHigh>(d);
  if (d.op.has("lo")) return decode_two<MulLow>(d);
  if (!d.op.has("wide")) return d.unsupported();
  return d.operands("w:tt") &&
         d.handler(pick_integer(d.op.type(), []<class T>() -> Handler {
           if constexpr (sizeof(T) == 8)
             return nullptr;
           else
             return binary<Wider<T>, T, MulWide>;
         }));
}
bool decode_mad(Decoding& d) {
  if (is_float(d.op.type())) return decode_fma(d);
  if (d.op.has("cc")) return d.unsupported();
  if (d.op.has("wide")) {
    return d.operands("w:ttw") &&
           d.handler(pick_integer(d.op.type(), []<class T>() -> Handler {
             if constexpr (sizeof(T) == 8)
               return nullptr;
             else
               return ternary<Wider<T>, T, MadWide, T, Wider<T>>;
           }));
  }
  bool high = d.op.has("hi");
  if (!high && !d.op.has("lo")) return d.unsupported();
  return d.operands("t:ttt") &&
         d.handler(pick_integer(d.op.type(), [=]<class T>() -> Handler {
           return high ? ternary<T, T, MadHigh> : ternary<T, T, MadLow>;
         }));
}
bool decode_mul24(Decoding& d) {
  if (!d.op.has("lo")) return d.unsupported();
  return d.operands("t:tt") &&
         d.handler(is_signed(d.op.type())
                       ? binary<int32_t, int32_t, Mul24Low>
                       : binary<uint32_t, uint32_t, Mul24Low>);
}
bool decode_div(Decoding& d) {
  if (is_float(d.op.type())) return decode_float_div(d);
  return decode_two<Div>(d);
}
bool decode_rem(Decoding& d) { return decode_two<Rem>(d); }
bool decode_sad(Decoding& d) {
  return d.operands("t:ttt") &&
         d.handler(pick_integer(d.op.type(), []<class T>() -> Handler {
           return ternary<T, T, Sad>;
         }));
}
bool decode_abs(Decoding& d) {
  if (is_float(d.op.type())) return decode_float_sign(d);
  return decode_one<Abs>(d);
}
bool decode_neg(Decoding& d) {
  if (is_float(d.op.type())) return decode_float_sign(d);
  return decode_one<Neg>(d);
}
bool decode_min(Decoding& d) {
  if (is_float(d.op.type())) return decode_float_min_max(d);
  return decode_two<Min>(d);
}
bool decode_max(Decoding& d) {
  if (is_float(d.op.type())) return decode_float_min_max(d);
  return decode_two<Max>(d);
}
bool decode_bitwise(Decoding& d) {
  Type type = d.op.type();
  if (d.op.base == "not") {
    if (type == Type::pred) {
      return d.operands("t:t") &&
             d.handler(unary<uint32_t, uint32_t, NotPredicate>);
    }
    return decode_one<Not>(d);
  }
  if (type == Type::pred) {
    return d.operands("t:tt") &&
           d.handler(d.op.base == "and"  ? binary<uint32_t, uint32_t, And>
                     : d.op.base == "or" ? binary<uint32_t, uint32_t, Or>
                                         : binary<uint32_t, uint32_t, Xor>);
  }
  if (d.op.base == "and") return decode_two<And>(d);
  if (d.op.base == "or") return decode_two<Or>(d);
  return decode_two<Xor>(d);
}
bool decode_cnot(Decoding& d) { return decode_one<CNot>(d); }
bool decode_lop3(Decoding& d) {
  if (d.count() != 5 || d.operand(4).kind != Operand::Kind::integer)
    return d.fail("`lop3` takes five operands, the last a constant");
  d.out.offset = static_cast<int64_t>(d.operand(4).bits);
  d.out.dst = d.write(d.operand(0), Type::b32, false);
  d.out.a = d.read(d.operand(1), Type::b32, false);
  d.out.b = d.read(d.operand(2), Type::b32, false);
  d.out.c = d.read(d.operand(3), Type::b32, false);
  return d.handler(lop3);
}
bool decode_shift(Decoding& d) {
  bool left = d.op.base == "shl";
  return d.operands("t:tu") &&
         d.handler(pick_integer(d.op.type(), [=]<class T>() -> Handler {
           return left ? binary<T, T, Shl, uint32_t>
                       : binary<T, T, Shr, uint32_t>;
         }));
}
bool decode_funnel_shift(Decoding& d) {
  bool left = d.op.has("l"), wrap = d.op.has("wrap");
  Handler run = left ? (wrap ? ternary<uint32_t, uint32_t, ShfLeftWrap>
                             : ternary<uint32_t, uint32_t, ShfLeftClamp>)
                     : (wrap ? ternary<uint32_t, uint32_t, ShfRightWrap>
                             : ternary<uint32_t, uint32_t, ShfRightClamp>);
  return d.operands("t:ttu") && d.handler(run);
}
bool decode_count_bits(Decoding& d) {
  bool wide = type_bytes(d.op.type()) == 8;
  if (!d.operands("u:t")) return false;
  if (d.op.base == "bfind") {
    bool amount = d.op.has("shiftamt");
    return d.handler(pick_integer(d.op.type(), [=]<class T>() -> Handler {
      return amount ? unary<uint32_t, T, Bfind<true>>
                    : unary<uint32_t, T, Bfind<false>>;
    }));
  }
  if (d.op.base == "popc") {
    return d.handler(wide ? unary<uint32_t, uint64_t, Popc>
                          : unary<uint32_t, uint32_t, Popc>);
  }
  return d.handler(wide ? unary<uint32_t, uint64_t, Clz>
                        : unary<uint32_t, uint32_t, Clz>);
}
bool decode_brev(Decoding& d) {
  bool wide = type_bytes(d.op.type()) == 8;
  return d.operands("t:t") && d.handler(wide ? unary<uint64_t, uint64_t, Brev>
                                             : unary<uint32_t, uint32_t, Brev>);
}
bool decode_bfe(Decoding& d) {
  return d.operands("t:tuu") &&
         d.handler(pick_integer(d.op.type(), []<class T>() -> Handler {
           return ternary<T, T, Bfe, uint32_t, uint32_t>;
         }));
}
bool decode_bfi(Decoding& d) {
  if (d.count() != 5) return d.fail("`bfi` takes five operands");
  Type type = d.op.type();
  d.out.dst = d.write(d.operand(0), type, false);
  d.out.a = d.read(d.operand(1), type, false);
  d.out.b = d.read(d.operand(2), type, false);
  d.out.c = d.read(d.operand(3), Type::u32, false);
  d.add_slots(d.out, {d.read(d.operand(4), Type::u32, false)}, 0);
  return d.handler(type_bytes(type) == 8 ? bit_field_insert<uint64_t>
                                         : bit_field_insert<uint32_t>);
}
bool decode_prmt(Decoding& d) {
  static constexpr Handler modes[] = {
      ternary<uint32_t, uint32_t, PrmtMode<0>>,
      ternary<uint32_t, uint32_t, PrmtMode<1>>,
      ternary<uint32_t, uint32_t, PrmtMode<2>>,
      ternary<uint32_t, uint32_t, PrmtMode<3>>,
      ternary<uint32_t, uint32_t, PrmtMode<4>>,
      ternary<uint32_t, uint32_t, PrmtMode<5>>,
  };
  int mode = d.op.which({"f4e", "b4e", "rc8", "ecl", "ecr", "rc16"});
  return d.operands("t:ttt") &&
         d.handler(mode < 0 ? ternary<uint32_t, uint32_t, Prmt> : modes[mode]);
}
bool decode_dp4a(Decoding& d) {
  bool a = is_signed(d.op.type(0)), b = is_signed(d.op.type(1));
  return d.operands("u:uuu") &&
         d.handler(a ? (b ? ternary<uint32_t, uint32_t, Dp4a<true, true>>
                          : ternary<uint32_t, uint32_t, Dp4a<true, false>>)
                     : (b ? ternary<uint32_t, uint32_t, Dp4a<false, true>>
                          : ternary<uint32_t, uint32_t, Dp4a<false, false>>));
}

}  // namespace simcuda
