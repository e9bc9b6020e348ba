#pragma once
// 16-bit floats. Conversions compute all cases and choose, without branches, so
// that loops over them become vector code.
#include <bit>
#include <cstdint>

namespace unisono {

/// IEEE binary16 as stored: the bits, and conversions that round once (to
/// nearest, ties to even). Arithmetic happens in float. A NaN keeps its sign,
/// and loses its payload.
struct Half {
  uint16_t bits = 0;
  Half() = default;
  explicit Half(float value) {
    const uint32_t f = std::bit_cast<uint32_t>(value);
    const uint32_t sign = f >> 16 & 0x8000;
    const uint32_t magnitude = f & 0x7fffffff;
    // Exponent bias 127 becomes 15; a carry out of the mantissa is right.
    const uint32_t odd = magnitude >> 13 & 1;
    const uint32_t normal = (magnitude - (112u << 23) + 0xfff + odd) >> 13;
    // Below the least normal, 2^-14, in steps of 2^-24: adding 0.5 leaves that
    // many bits and rounds the rest.
    const float shifted = std::bit_cast<float>(magnitude) + 0.5f;
    const uint32_t small = std::bit_cast<uint32_t>(shifted) - 0x3f000000;
    uint32_t result = magnitude < 0x38800000 ? small : normal;
    result = magnitude >= 0x477ff000 ? 0x7c00 : result;  // 2^16, rounded
    result = magnitude > 0x7f800000 ? 0x7e00 : result;
    bits = static_cast<uint16_t>(sign | result);
  }
  explicit operator float() const {
    const uint32_t sign = (bits & 0x8000u) << 16;
    const uint32_t magnitude = bits & 0x7fffu;
    const uint32_t normal = (magnitude << 13) + (112u << 23);
    const uint32_t special = normal + (112u << 23);  // infinity, NaN
    // 1.mantissa minus 1 in steps of 2^-24 is exact.
    const float small = std::bit_cast<float>(0x38800000 + (magnitude << 13)) -
                        std::bit_cast<float>(0x38800000);
    uint32_t result = magnitude >= 0x7c00 ? special : normal;
    result = magnitude < 0x400 ? std::bit_cast<uint32_t>(small) : result;
    return std::bit_cast<float>(sign | result);
  }
};

/// The upper half of a float: 8 bits of exponent, 7 of the mantissa. Otherwise
/// like Half, but a NaN keeps the top bits of its payload.
struct BFloat16 {
  uint16_t bits = 0;
  BFloat16() = default;
  explicit BFloat16(float value) {
    const uint32_t f = std::bit_cast<uint32_t>(value);
    const uint32_t rounded = (f + 0x7fff + (f >> 16 & 1)) >> 16;
    const uint32_t nan = f >> 16 | 0x40;
    bits = static_cast<uint16_t>((f & 0x7fffffff) > 0x7f800000 ? nan : rounded);
  }
  explicit operator float() const {
    return std::bit_cast<float>(static_cast<uint32_t>(bits) << 16);
  }
};

}  // namespace unisono
