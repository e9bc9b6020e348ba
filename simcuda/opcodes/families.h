#pragma once
// Families to which other families hand over their floats.
#include "simcuda/opcodes/decode.h"

namespace simcuda {

inline bool is_float(Type type) {
  return type_class(type) == TypeClass::floating ||
         type_class(type) == TypeClass::packed;
}
bool decode_float_add(Decoding& d, bool subtract);
bool decode_float_mul(Decoding& d);
bool decode_float_div(Decoding& d);
bool decode_float_sign(Decoding& d);
bool decode_float_min_max(Decoding& d);

/// One step of a matrix unit: c + the sum of `count` exact products (mma.cpp).
float add_aligned(float c, const double* products, int count);
/// fence.proxy.async.
Flow show_writes(Warp& warp, const Instruction& i);

}  // namespace simcuda
