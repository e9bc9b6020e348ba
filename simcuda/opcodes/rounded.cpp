// Arithmetic rounded towards zero, down or up: the host's rounding mode is set
// for the 32 lanes and restored. This file is compiled with -frounding-math.
#include <cfenv>

#include "simcuda/opcodes/decode.h"
#include "simcuda/opcodes/float.h"

namespace simcuda {

/// A place in the table of `rounded`; 0: to nearest, or none given.
int rounding_mode(const Opcode& op) { return op.which({"rz", "rm", "rp"}) + 1; }

namespace {

template <class T, class F, int Arity>
Flow rounded(Warp& warp, const Instruction& i) {
  const auto* a = warp.row<RowOf<T>>(i.a);
  const auto* b = Arity > 1 ? warp.row<RowOf<T>>(i.b) : a;
  const auto* c = Arity > 2 ? warp.row<RowOf<T>>(i.c) : a;
  auto* d = warp.row<RowOf<T>>(i.dst);
  static constexpr int modes[] = {FE_TONEAREST, FE_TOWARDZERO, FE_DOWNWARD,
                                  FE_UPWARD};
  const int before = fegetround();
  fesetround(modes[i.mode]);
  each_lane(warp, [&](int lane) {
    volatile T x = from_row<T>(a[lane]), y = from_row<T>(b[lane]),
               z = from_row<T>(c[lane]);
    volatile T result;
    if constexpr (Arity == 1)
      result = F()(T(x));
    else if constexpr (Arity == 2)
      result = F()(T(x), T(y));
    else
      result = F()(T(x), T(y), T(z));
    d[lane] = to_row<T>(canonical(T(result)));
  });
  fesetround(before);
  return Flow::next;
}

template <class F, int Arity>
Handler pick(Type type) {
  if (type == Type::f32) return rounded<float, F, Arity>;
  if (type == Type::f64) return rounded<double, F, Arity>;
  return nullptr;
}

}  // namespace

Handler rounded_handler(std::string_view op, Type type) {
  if (op == "add") return pick<FloatAdd, 2>(type);
  if (op == "sub") return pick<FloatSub, 2>(type);
  if (op == "mul") return pick<FloatMul, 2>(type);
  if (op == "div") return pick<FloatDiv, 2>(type);
  if (op == "fma") return pick<FloatFma, 3>(type);
  if (op == "sqrt") return pick<FloatSqrt, 1>(type);
  if (op == "rcp") return pick<FloatRcp, 1>(type);
  return nullptr;
}

}  // namespace simcuda
