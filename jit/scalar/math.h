#pragma once
// All elementary functions, for float and double (16-bit floats are computed in
// float). Each is branch-free but for rare arguments, and made of the algebra
// of scalar.h alone: the same bits as C++ and as LLVM IR. docs/accuracy.md has
// the errors; the polynomials are minimax fits on the intervals given.
#include "jit/scalar/arc.h"
#include "jit/scalar/erf.h"
#include "jit/scalar/erf_inv.h"
#include "jit/scalar/exp.h"
#include "jit/scalar/gamma.h"
#include "jit/scalar/log.h"
#include "jit/scalar/power.h"
#include "jit/scalar/trig.h"

namespace unisono::jit::inline UNISONO_INSTRUCTIONS::scalar {

// Functions seldom used in float are computed in double and rounded.
template <SingleValue V>
V asinh(V x) {
  return convert<float>(asinh(convert<double>(x)));
}
template <SingleValue V>
V acosh(V x) {
  return convert<float>(acosh(convert<double>(x)));
}
template <SingleValue V>
V atanh(V x) {
  return convert<float>(atanh(convert<double>(x)));
}
template <SingleValue V>
V lgamma(V x) {
  return convert<float>(lgamma(convert<double>(x)));
}
template <SingleValue V>
V digamma(V x) {
  return convert<float>(digamma(convert<double>(x)));
}
template <SingleValue V>
V trigamma(V x) {
  return convert<float>(trigamma(convert<double>(x)));
}
template <SingleValue V>
V polygamma(V n, V x) {
  return convert<float>(polygamma(convert<double>(n), convert<double>(x)));
}

}  // namespace unisono::jit::inline UNISONO_INSTRUCTIONS::scalar
