// Floating-point instructions: + - * / fma sqrt rcp min max and the approximate
// functions, which are computed well here and are not the silicon's bits.
#include "simcuda/opcodes/float.h"

#include "simcuda/opcodes/decode.h"
#include "simcuda/opcodes/families.h"

namespace simcuda {

// rounded.cpp: f32 and f64 with another rounding than to nearest.
Handler rounded_handler(std::string_view op, Type type);
int rounding_mode(const Opcode& op);

namespace {

/// Handlers of F for the type of the opcode and its .ftz and .sat; `Arity`
/// operands.
template <class F, int Arity>
Handler pick_float(const Opcode& op) {
  bool ftz = op.has("ftz"), sat = op.has("sat");
  auto of = [&]<class T>() -> Handler {
    auto with = []<class G>() -> Handler {
      if constexpr (Arity == 1)
        return unary<T, T, G>;
      else if constexpr (Arity == 2)
        return binary<T, T, G>;
      else
        return ternary<T, T, G>;
    };
    if (ftz) {
      return sat ? with.template operator()<Around<F, true, true>>()
                 : with.template operator()<Around<F, true, false>>();
    }
    return sat ? with.template operator()<Around<F, false, true>>()
               : with.template operator()<Around<F, false, false>>();
  };
  auto packed = [&]<class T>() -> Handler {
    auto with = []<class G>() -> Handler {
      if constexpr (Arity == 1)
        return unary<uint32_t, uint32_t, G>;
      else if constexpr (Arity == 2)
        return binary<uint32_t, uint32_t, G>;
      else
        return ternary<uint32_t, uint32_t, G>;
    };
    if (ftz) {
      return sat ? with.template operator()<Packed<Around<F, true, true>, T>>()
                 : with.template
                   operator()<Packed<Around<F, true, false>, T>>();
    }
    return sat ? with.template operator()<Packed<Around<F, false, true>, T>>()
               : with.template operator()<Packed<Around<F, false, false>, T>>();
  };
  switch (op.type()) {
    case Type::f32: return of.template operator()<float>();
    case Type::f64:
      return ftz || sat ? nullptr : of.template operator()<double>();
    case Type::f16: return of.template operator()<Half>();
    case Type::bf16: return of.template operator()<Brain>();
    case Type::f16x2: return packed.template operator()<Half>();
    case Type::bf16x2: return packed.template operator()<Brain>();
    default: return nullptr;
  }
}

template <class F, int Arity>
Handler pick_f32(bool ftz) {
  if constexpr (Arity == 1) {
    return ftz ? unary<float, float, Around<F, true, false>>
               : unary<float, float, Around<F, false, false>>;
  } else {
    return ftz ? binary<float, float, Around<F, true, false>>
               : binary<float, float, Around<F, false, false>>;
  }
}

/// What arithmetic on this type asks of the target.
bool available(Decoding& d, int bf16_target) {
  Type t = d.op.type();
  return (t != Type::bf16 && t != Type::bf16x2) || d.needs(bf16_target);
}

template <class F>
bool decode_arithmetic(Decoding& d, std::string_view name,
                       std::string_view pattern) {
  if (!available(d, name == "fma" ? 80 : 90)) return false;
  if (!d.operands(pattern)) return false;
  if (int mode = rounding_mode(d.op); mode != 0) {
    if (d.op.has("ftz") || d.op.has("sat")) return d.unsupported();
    d.out.mode = static_cast<uint8_t>(mode);
    return d.handler(rounded_handler(name, d.op.type()));
  }
  if constexpr (std::is_same_v<F, FloatFma>)
    return d.handler(pick_float<F, 3>(d.op));
  else
    return d.handler(pick_float<F, 2>(d.op));
}

template <class F, bool Ftz>
bool decode_wide_unary(Decoding& d) {
  return d.handler(d.op.type() == Type::f64
                       ? unary<double, double, F>
                       : unary<float, float, Around<F, Ftz, false>>);
}

struct Rsqrt {
  float operator()(float a) const {
    return static_cast<float>(1 / std::sqrt(static_cast<double>(a)));
  }
  double operator()(double a) const { return 1 / std::sqrt(a); }
};
struct DivApprox {
  float operator()(float a, float b) const {
    // As documented, a very large divisor gives 0 (of an infinity, NaN).
    float size = std::fabs(b);
    if (size > 0x1p126f && std::isfinite(b)) {
      return std::isinf(a) ? std::numeric_limits<float>::quiet_NaN()
                           : std::copysign(0.0f, a) * std::copysign(1.0f, b);
    }
    return a / b;
  }
};
template <double (*Function)(double)>
struct Approximate {
  template <class T>
  T operator()(T a) const {
    if constexpr (sizeof(T) == 8) {
      return Function(a);
    } else {
      double x = static_cast<double>(static_cast<float>(a));
      return static_cast<T>(static_cast<float>(Function(x)));
    }
  }
};

template <class T, bool Clear>
struct Sign {
  T operator()(T a) const {
    constexpr T top = static_cast<T>(T{1} << (8 * sizeof(T) - 1));
    return Clear ? static_cast<T>(a & ~top) : static_cast<T>(a ^ top);
  }
};
template <bool Clear>
struct SignFtz {
  float operator()(float a) const {
    return std::bit_cast<float>(
        Sign<uint32_t, Clear>()(std::bit_cast<uint32_t>(flush(a))));
  }
};
template <bool Clear>
struct SignPacked {
  uint32_t operator()(uint32_t a) const {
    return Clear ? a & 0x7fff7fff : a ^ 0x80008000;
  }
};
template <bool Clear>
Handler pick_sign(const Opcode& op) {
  switch (op.type()) {
    case Type::f16:
    case Type::bf16: return unary<uint16_t, uint16_t, Sign<uint16_t, Clear>>;
    case Type::f32:
      return op.has("ftz") ? unary<float, float, SignFtz<Clear>>
                           : unary<uint32_t, uint32_t, Sign<uint32_t, Clear>>;
    case Type::f64: return unary<uint64_t, uint64_t, Sign<uint64_t, Clear>>;
    case Type::f16x2:
    case Type::bf16x2: return unary<uint32_t, uint32_t, SignPacked<Clear>>;
    default: return nullptr;
  }
}

template <class T>
struct CopySign {
  T operator()(T from, T to) const {
    constexpr T top = T{1} << (8 * sizeof(T) - 1);
    return (from & top) | (to & ~top);
  }
};

struct TestFinite {
  template <class T>
  bool operator()(T a) const {
    return std::isfinite(a);
  }
};
struct TestInfinite {
  template <class T>
  bool operator()(T a) const {
    return std::isinf(a);
  }
};
struct TestNumber {
  template <class T>
  bool operator()(T a) const {
    return a == a;
  }
};
struct TestNan {
  template <class T>
  bool operator()(T a) const {
    return a != a;
  }
};
struct TestNormal {
  template <class T>
  bool operator()(T a) const {
    return std::isnormal(a);
  }
};
struct TestSubnormal {
  template <class T>
  bool operator()(T a) const {
    return std::fpclassify(a) == FP_SUBNORMAL;
  }
};
template <class F>
Handler pick_test(bool wide) {
  return wide ? unary<bool, double, F> : unary<bool, float, F>;
}

}  // namespace

bool decode_float_add(Decoding& d, bool subtract) {
  return subtract ? decode_arithmetic<FloatSub>(d, "sub", "t:tt")
                  : decode_arithmetic<FloatAdd>(d, "add", "t:tt");
}
bool decode_float_mul(Decoding& d) {
  return decode_arithmetic<FloatMul>(d, "mul", "t:tt");
}
bool decode_fma(Decoding& d) {
  if (d.op.has("relu")) return d.unsupported();
  return decode_arithmetic<FloatFma>(d, "fma", "t:ttt");
}
bool decode_float_div(Decoding& d) {
  if (type_bytes(d.op.type()) < 4) return d.unsupported();
  if (d.op.has("approx")) {
    return d.operands("t:tt") &&
           d.handler(pick_f32<DivApprox, 2>(d.op.has("ftz")));
  }
  if (d.op.has("full")) {
    return d.operands("t:tt") &&
           d.handler(pick_f32<FloatDiv, 2>(d.op.has("ftz")));
  }
  if (int mode = rounding_mode(d.op); mode != 0) {
    if (d.op.has("ftz")) return d.unsupported();
    d.out.mode = static_cast<uint8_t>(mode);
    return d.operands("t:tt") && d.handler(rounded_handler("div", d.op.type()));
  }
  bool ftz = d.op.has("ftz");
  return d.operands("t:tt") &&
         d.handler(d.op.type() == Type::f64 ? binary<double, double, FloatDiv>
                                            : pick_f32<FloatDiv, 2>(ftz));
}
bool decode_float_sign(Decoding& d) {
  return d.operands("t:t") &&
         d.handler(d.op.base == "abs" ? pick_sign<true>(d.op)
                                      : pick_sign<false>(d.op));
}
bool decode_float_min_max(Decoding& d) {
  if (d.op.has("xorsign")) return d.unsupported();
  if (type_bytes(d.op.type()) == 2 ||
      type_class(d.op.type()) == TypeClass::packed) {
    if (!d.needs(80)) return false;
  }
  bool nan = d.op.has("NaN");
  if (nan && !d.needs(80)) return false;
  if (!d.operands("t:tt")) return false;
  if (d.op.base == "max") {
    return d.handler(nan ? pick_float<FloatPick<true, true>, 2>(d.op)
                         : pick_float<FloatPick<true, false>, 2>(d.op));
  }
  return d.handler(nan ? pick_float<FloatPick<false, true>, 2>(d.op)
                       : pick_float<FloatPick<false, false>, 2>(d.op));
}
bool decode_sqrt(Decoding& d) {
  if (!d.operands("t:t")) return false;
  if (int mode = rounding_mode(d.op); mode != 0) {
    if (d.op.has("ftz")) return d.unsupported();
    d.out.mode = static_cast<uint8_t>(mode);
    return d.handler(rounded_handler("sqrt", d.op.type()));
  }
  return d.op.has("ftz") ? decode_wide_unary<FloatSqrt, true>(d)
                         : decode_wide_unary<FloatSqrt, false>(d);
}
bool decode_rcp(Decoding& d) {
  if (!d.operands("t:t")) return false;
  if (int mode = rounding_mode(d.op); mode != 0) {
    if (d.op.has("ftz")) return d.unsupported();
    d.out.mode = static_cast<uint8_t>(mode);
    return d.handler(rounded_handler("rcp", d.op.type()));
  }
  return d.op.has("ftz") ? decode_wide_unary<FloatRcp, true>(d)
                         : decode_wide_unary<FloatRcp, false>(d);
}
bool decode_rsqrt(Decoding& d) {
  if (!d.operands("t:t")) return false;
  return d.op.has("ftz") ? decode_wide_unary<Rsqrt, true>(d)
                         : decode_wide_unary<Rsqrt, false>(d);
}
bool decode_approximate(Decoding& d) {
  if (!d.op.has("approx") || d.op.type() == Type::f64) return d.unsupported();
  bool narrow = d.op.type() != Type::f32;
  if (narrow && d.op.base != "ex2" && d.op.base != "tanh")
    return d.unsupported();
  if ((narrow || d.op.base == "tanh") && !d.needs(75)) return false;
  if (!available(d, 90) || !d.operands("t:t")) return false;
  if (d.op.base == "ex2")
    return d.handler(pick_float<Approximate<exp2>, 1>(d.op));
  if (d.op.base == "lg2")
    return d.handler(pick_f32<Approximate<log2>, 1>(d.op.has("ftz")));
  if (d.op.base == "sin")
    return d.handler(pick_f32<Approximate<sin>, 1>(d.op.has("ftz")));
  if (d.op.base == "cos")
    return d.handler(pick_f32<Approximate<cos>, 1>(d.op.has("ftz")));
  return d.handler(pick_float<Approximate<tanh>, 1>(d.op));
}
bool decode_copysign(Decoding& d) {
  return d.operands("t:tt") &&
         d.handler(d.op.type() == Type::f64
                       ? binary<uint64_t, uint64_t, CopySign<uint64_t>>
                       : binary<uint32_t, uint32_t, CopySign<uint32_t>>);
}
bool decode_testp(Decoding& d) {
  if (!d.operands("p:t")) return false;
  bool wide = d.op.type() == Type::f64;
  switch (d.op.which(
      {"finite", "infinite", "number", "notanumber", "normal", "subnormal"})) {
    case 0: return d.handler(pick_test<TestFinite>(wide));
    case 1: return d.handler(pick_test<TestInfinite>(wide));
    case 2: return d.handler(pick_test<TestNumber>(wide));
    case 3: return d.handler(pick_test<TestNan>(wide));
    case 4: return d.handler(pick_test<TestNormal>(wide));
    case 5: return d.handler(pick_test<TestSubnormal>(wide));
  }
  return d.unsupported();
}

}  // namespace simcuda
