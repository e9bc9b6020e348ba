#include "runtime/dtype.h"

#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <string>

using namespace unisono;

namespace {

const char* const points[] = {"bool", "i*",   "u8",  "u16", "u32",
                              "u64",  "i8",   "i16", "i32", "i64",
                              "f*",   "bf16", "f16", "f32", "f64"};

/// JAX's published table with 64-bit types enabled, rows and columns as in
/// `points`; `i*` and `f*` are the types of literals.
const char* const table[15][15] = {
    {"bool", "i*", "u8", "u16", "u32", "u64", "i8", "i16", "i32", "i64", "f*",
     "bf16", "f16", "f32", "f64"},
    {"i*", "i*", "u8", "u16", "u32", "u64", "i8", "i16", "i32", "i64", "f*",
     "bf16", "f16", "f32", "f64"},
    {"u8", "u8", "u8", "u16", "u32", "u64", "i16", "i16", "i32", "i64", "f*",
     "bf16", "f16", "f32", "f64"},
    {"u16", "u16", "u16", "u16", "u32", "u64", "i32", "i32", "i32", "i64", "f*",
     "bf16", "f16", "f32", "f64"},
    {"u32", "u32", "u32", "u32", "u32", "u64", "i64", "i64", "i64", "i64", "f*",
     "bf16", "f16", "f32", "f64"},
    {"u64", "u64", "u64", "u64", "u64", "u64", "f*", "f*", "f*", "f*", "f*",
     "bf16", "f16", "f32", "f64"},
    {"i8", "i8", "i16", "i32", "i64", "f*", "i8", "i16", "i32", "i64", "f*",
     "bf16", "f16", "f32", "f64"},
    {"i16", "i16", "i16", "i32", "i64", "f*", "i16", "i16", "i32", "i64", "f*",
     "bf16", "f16", "f32", "f64"},
    {"i32", "i32", "i32", "i32", "i64", "f*", "i32", "i32", "i32", "i64", "f*",
     "bf16", "f16", "f32", "f64"},
    {"i64", "i64", "i64", "i64", "i64", "f*", "i64", "i64", "i64", "i64", "f*",
     "bf16", "f16", "f32", "f64"},
    {"f*", "f*", "f*", "f*", "f*", "f*", "f*", "f*", "f*", "f*", "f*", "bf16",
     "f16", "f32", "f64"},
    {"bf16", "bf16", "bf16", "bf16", "bf16", "bf16", "bf16", "bf16", "bf16",
     "bf16", "bf16", "bf16", "f32", "f32", "f64"},
    {"f16", "f16", "f16", "f16", "f16", "f16", "f16", "f16", "f16", "f16",
     "f16", "f32", "f16", "f32", "f64"},
    {"f32", "f32", "f32", "f32", "f32", "f32", "f32", "f32", "f32", "f32",
     "f32", "f32", "f32", "f32", "f64"},
    {"f64", "f64", "f64", "f64", "f64", "f64", "f64", "f64", "f64", "f64",
     "f64", "f64", "f64", "f64", "f64"},
};

WeakDType from_text(const std::string& text) {
  if (text == "i*") return {DType::I32, true};
  if (text == "f*") return {DType::F32, true};
  return {*dtype_from_name(text), false};
}

/// The nearest of the sixteen-bit floats by trying all of them in f64.
template <class F>
double nearest(double value) {
  uint16_t best = 0;
  double best_distance = std::numeric_limits<double>::infinity();
  for (uint32_t b = 0; b < 0x10000; ++b) {
    F f;
    f.bits = static_cast<uint16_t>(b);
    const double v = static_cast<float>(f);
    if (!std::isfinite(v)) continue;
    const double d = std::abs(v - value);
    if (d < best_distance || (d == best_distance && (b & 1) == 0)) {
      best = f.bits;
      best_distance = d;
    }
  }
  F f;
  f.bits = best;
  return static_cast<float>(f);
}

template <class F>
void round_trip() {
  for (uint32_t b = 0; b < 0x10000; ++b) {
    F f;
    f.bits = static_cast<uint16_t>(b);
    const float v = static_cast<float>(f);
    const F back(v);
    if (std::isnan(v))
      CHECK(std::isnan(static_cast<float>(back)));
    else
      REQUIRE(back.bits == f.bits);
  }
}

}  // namespace

TEST_CASE("promotion is the published lattice") {
  for (int i = 0; i < 15; ++i)
    for (int j = 0; j < 15; ++j) {
      CAPTURE(points[i]);
      CAPTURE(points[j]);
      CHECK(promote(from_text(points[i]), from_text(points[j])) ==
            from_text(table[i][j]));
    }
}

TEST_CASE("names and sizes of element types") {
  for (DType d : all_dtypes) CHECK(dtype_from_name(name(d)) == d);
  CHECK(!dtype_from_name("f128"));
  CHECK(byte_size(DType::Bool) == 1);
  CHECK(byte_size(DType::BF16) == 2);
  CHECK(byte_size(DType::U64) == 8);
  CHECK(is_unsigned(DType::U8));
  CHECK(!is_integer(DType::Bool));
  CHECK(is_floating(DType::BF16));
}

TEST_CASE("every f16 and bf16 survives a round trip through f32") {
  round_trip<Half>();
  round_trip<BFloat16>();
}

TEST_CASE("rounding to f16: nearest, ties to even, subnormals, overflow") {
  CHECK(Half(65504.0f).bits == 0x7bff);
  CHECK(Half(65519.996f).bits == 0x7bff);
  CHECK(Half(65520.0f).bits == 0x7c00);
  CHECK(Half(-1e30f).bits == 0xfc00);
  CHECK(Half(-0.0f).bits == 0x8000);
  CHECK(Half(0x1p-24f).bits == 1);
  CHECK(Half(0x1p-25f).bits == 0);          // tie, to even
  CHECK(Half(0x1.000002p-25f).bits == 1);   // just above it
  CHECK(Half(0x1.8p-24f).bits == 2);        // tie, to even
  CHECK(Half(0x1.ff8p-15f).bits == 0x3ff);  // largest subnormal
  CHECK(Half(0x1.ffcp-15f).bits == 0x400);  // tie, into the normals
  CHECK(Half(std::numeric_limits<float>::quiet_NaN()).bits == 0x7e00);
  CHECK(Half(-std::numeric_limits<float>::infinity()).bits == 0xfc00);
  CHECK(Half(1.0f + 0x1p-11f).bits == 0x3c00);  // tie, to even
  CHECK(Half(1.0f + 0x3p-11f).bits == 0x3c02);
  for (float v : {0.1f, -3.14159f, 6.1e-5f, 6.0e-5f, 1.7e-7f, 1234.567f})
    CHECK(static_cast<float>(Half(v)) == nearest<Half>(v));
}

TEST_CASE("rounding to bf16") {
  CHECK(BFloat16(1.0f + 0x1p-8f).bits == 0x3f80);  // tie, to even
  CHECK(BFloat16(1.0f + 0x3p-8f).bits == 0x3f82);
  CHECK(BFloat16(3.4e38f).bits == 0x7f80);
  CHECK(BFloat16(-0.0f).bits == 0x8000);
  CHECK(BFloat16(std::bit_cast<float>(0x7f800001u)).bits == 0x7fc0);
  CHECK(BFloat16(std::bit_cast<float>(0x00008001u)).bits == 1);
  for (float v : {0.1f, -3.14159f, 1e-39f, 1e-40f, 1234.567f})
    CHECK(static_cast<float>(BFloat16(v)) == nearest<BFloat16>(v));
}
