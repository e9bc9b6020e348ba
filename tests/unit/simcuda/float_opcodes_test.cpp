// Floating-point instructions: IEEE bits, roundings, conversions.
#include <cfenv>
#include <cmath>
#include <limits>
#include <random>

#include "tests/unit/simcuda/opcodes.h"

using namespace opcode_test;

namespace {

using Lanes = std::vector<std::vector<uint64_t>>;
constexpr uint64_t nan32 = 0x7fffffff;

float as_float(uint64_t x) { return std::bit_cast<float>(uint32_t(x)); }
double as_double(uint64_t x) { return std::bit_cast<double>(x); }
uint64_t canonical(float x) { return x != x ? nan32 : bits(x); }

Lanes floats(int operands, uint64_t seed) {
  std::mt19937_64 random(seed);
  const float inf = std::numeric_limits<float>::infinity();
  const float edges[] = {0.0f, -0.0f, 1.0f,      -1.0f,           inf,
                         -inf, NAN,   0x1p-149f, 0x1.fffffep127f, 0.5f,
                         1.5f, 2.5f};
  Lanes lanes(128);
  for (auto& lane : lanes) {
    for (int k = 0; k < operands; ++k) {
      uint64_t x = random();
      lane.push_back(x % 4 == 0 ? bits(edges[random() % 12])
                     : x % 4 == 1
                         ? uint32_t(random())
                         : bits(float(int64_t(random() % 20001) - 10000) /
                                float(1 + random() % 64)));
    }
  }
  return lanes;
}
Lanes doubles(int operands, uint64_t seed) {
  std::mt19937_64 random(seed);
  Lanes lanes(64);
  for (auto& lane : lanes) {
    for (int k = 0; k < operands; ++k) {
      lane.push_back(
          bits(double(int64_t(random())) / double(1 + random() % 1000)));
    }
  }
  return lanes;
}
/// Rounded as the mode says; the volatiles keep the compiler from knowing.
template <class T, class F>
T rounded(int mode, F f, T a, T b) {
  volatile T x = a, y = b;
  std::fesetround(mode);
  volatile T result = f(T(x), T(y));
  std::fesetround(FE_TONEAREST);
  return result;
}

uint64_t half_bits(float x) {
  return std::bit_cast<uint16_t>(static_cast<_Float16>(x));
}
float half_value(uint64_t x) {
  return static_cast<float>(std::bit_cast<_Float16>(uint16_t(x)));
}

}  // namespace

TEST_CASE("opcodes: f32 arithmetic has IEEE's bits") {
  std::vector<Case> cases;
  auto two = floats(2, 1), three = floats(3, 2), one = floats(1, 3);
  cases.push_back(computed("add.rn.f32", "f ff", two, [](auto& v) {
    return canonical(as_float(v[0]) + as_float(v[1]));
  }));
  cases.push_back(computed("sub.f32", "f ff", two, [](auto& v) {
    return canonical(as_float(v[0]) - as_float(v[1]));
  }));
  cases.push_back(computed("mul.f32", "f ff", two, [](auto& v) {
    return canonical(as_float(v[0]) * as_float(v[1]));
  }));
  cases.push_back(computed("div.rn.f32", "f ff", two, [](auto& v) {
    return canonical(as_float(v[0]) / as_float(v[1]));
  }));
  cases.push_back(computed("fma.rn.f32", "f fff", three, [](auto& v) {
    return canonical(std::fma(as_float(v[0]), as_float(v[1]), as_float(v[2])));
  }));
  cases.push_back(computed("sqrt.rn.f32", "f f", one, [](auto& v) {
    return canonical(std::sqrt(as_float(v[0])));
  }));
  cases.push_back(computed("rcp.rn.f32", "f f", one, [](auto& v) {
    return canonical(1 / as_float(v[0]));
  }));
  cases.push_back(computed("neg.f32", "f f", one,
                           [](auto& v) { return v[0] ^ 0x80000000; }));
  cases.push_back(computed("abs.f32", "f f", one,
                           [](auto& v) { return v[0] & 0x7fffffff; }));
  struct Mode {
    const char* name;
    int mode;
  };
  for (Mode m : {Mode{"rz", FE_TOWARDZERO}, Mode{"rm", FE_DOWNWARD},
                 Mode{"rp", FE_UPWARD}}) {
    cases.push_back(computed(
        std::string("add.") + m.name + ".f32", "f ff", two, [m](auto& v) {
          return canonical(rounded<float>(
              m.mode, [](float a, float b) { return a + b; }, as_float(v[0]),
              as_float(v[1])));
        }));
    cases.push_back(computed(
        std::string("mul.") + m.name + ".f32", "f ff", two, [m](auto& v) {
          return canonical(rounded<float>(
              m.mode, [](float a, float b) { return a * b; }, as_float(v[0]),
              as_float(v[1])));
        }));
  }
  // Subnormals become zeros, of arguments and of results.
  cases.push_back(
      {"add.ftz.f32",
       "f ff",
       {{0x00000001, 0}, {0x80000001, 0x80000000}, {0x00800000, 0x80800001}},
       {0, 0x80000000, 0x80000000}});
  cases.push_back({"add.sat.f32",
                   "f ff",
                   {{bits(0.75f), bits(0.5f)},
                    {bits(-1.0f), 0},
                    {bits(NAN), 0},
                    {bits(0.25f), 0}},
                   {bits(1.0f), 0, 0, bits(0.25f)}});
  run(cases);
}

TEST_CASE("opcodes: min and max of floats") {
  const uint64_t n = bits(NAN), one = bits(1.0f), two = bits(2.0f);
  const uint64_t zero = bits(0.0f), minus = bits(-0.0f);
  Lanes lanes = {{one, two}, {two, one},    {n, one},     {one, n},
                 {n, n},     {zero, minus}, {minus, zero}};
  std::vector<Case> cases;
  cases.push_back(
      {"min.f32", "f ff", lanes, {one, one, one, one, nan32, minus, minus}});
  cases.push_back(
      {"max.f32", "f ff", lanes, {two, two, one, one, nan32, zero, zero}});
  cases.push_back({"min.NaN.f32",
                   "f ff",
                   lanes,
                   {one, one, nan32, nan32, nan32, minus, minus}});
  cases.push_back({"max.f64",
                   "g gg",
                   {{bits(1.0), bits(2.0)}, {bits(-0.0), bits(0.0)}},
                   {bits(2.0), bits(0.0)}});
  run(cases);
}

TEST_CASE("opcodes: f64 arithmetic has IEEE's bits") {
  std::vector<Case> cases;
  auto two = doubles(2, 5), three = doubles(3, 6);
  cases.push_back(computed("add.f64", "g gg", two, [](auto& v) {
    return bits(as_double(v[0]) + as_double(v[1]));
  }));
  cases.push_back(computed("mul.rn.f64", "g gg", two, [](auto& v) {
    return bits(as_double(v[0]) * as_double(v[1]));
  }));
  cases.push_back(computed("div.rn.f64", "g gg", two, [](auto& v) {
    return bits(as_double(v[0]) / as_double(v[1]));
  }));
  cases.push_back(computed("fma.rn.f64", "g ggg", three, [](auto& v) {
    return bits(std::fma(as_double(v[0]), as_double(v[1]), as_double(v[2])));
  }));
  cases.push_back(computed("div.rp.f64", "g gg", two, [](auto& v) {
    return bits(rounded<double>(
        FE_UPWARD, [](double a, double b) { return a / b; }, as_double(v[0]),
        as_double(v[1])));
  }));
  cases.push_back(computed("sqrt.rn.f64", "g g", doubles(1, 7), [](auto& v) {
    double x = as_double(v[0]);
    return x < 0 ? 0xfff8000000000000 : bits(std::sqrt(x));
  }));
  run(cases);
}

TEST_CASE("opcodes: f16 and bf16") {
  std::vector<Case> cases;
  std::mt19937 random(9);
  Lanes lanes(128);
  for (auto& lane : lanes) {
    for (int k = 0; k < 3; ++k) {
      // Finite: an exponent of less than 31.
      lane.push_back((random() & 0x83ff) | (8 + random() % 14) << 10);
    }
  }
  cases.push_back(computed("add.f16", "h hh", lanes, [](auto& v) {
    return half_bits(half_value(v[0]) + half_value(v[1]));
  }));
  cases.push_back(computed("mul.f16", "h hh", lanes, [](auto& v) {
    return half_bits(half_value(v[0]) * half_value(v[1]));
  }));
  // The exact value has at most 60 bits between its ends: long double has 64.
  cases.push_back(computed("fma.rn.f16", "h hhh", lanes, [](auto& v) {
    long double exact =
        static_cast<long double>(half_value(v[0])) * half_value(v[1]) +
        static_cast<long double>(half_value(v[2]));
    return uint64_t(std::bit_cast<uint16_t>(static_cast<_Float16>(exact)));
  }));
  cases.push_back(
      {"add.f16x2",
       "r rr",
       {{half_bits(1) << 16 | half_bits(2), half_bits(3) << 16 | half_bits(4)}},
       {half_bits(4) << 16 | half_bits(6)}});
  cases.push_back({"fma.rn.bf16",
                   "h hhh",
                   {{0x3f80, 0x4000, 0x3f80},   // 1 * 2 + 1
                    {0x3f81, 0x3f81, 0x0000}},  // 1.0078125², rounded
                   {0x4040, 0x3f82}});
  cases.push_back({"add.bf16", "h hh", {{0x3f80, 0x3f80}}, {0x4000}});
  cases.push_back({"neg.f16x2", "r r", {{0x3c00bc00}}, {0xbc003c00}});
  cases.push_back({"abs.bf16", "h h", {{0xbf80}}, {0x3f80}});
  cases.push_back({"max.f16", "h hh", {{0x3c00, 0x4000}}, {0x4000}});
  cases.push_back(
      {"setp.lt.f16", "p hh", {{0x3c00, 0x4000}, {0x4000, 0x3c00}}, {1, 0}});
  run(cases);
}

TEST_CASE("opcodes: comparisons of floats with NaN") {
  const uint64_t n = bits(NAN), one = bits(1.0f), two = bits(2.0f);
  Lanes lanes = {{one, two}, {two, one}, {one, one}, {n, one}};
  std::vector<Case> cases;
  cases.push_back({"setp.lt.f32", "p ff", lanes, {1, 0, 0, 0}});
  cases.push_back({"setp.ltu.f32", "p ff", lanes, {1, 0, 0, 1}});
  cases.push_back({"setp.ne.f32", "p ff", lanes, {1, 1, 0, 0}});
  cases.push_back({"setp.neu.f32", "p ff", lanes, {1, 1, 0, 1}});
  cases.push_back({"setp.equ.f32", "p ff", lanes, {0, 0, 1, 1}});
  cases.push_back({"setp.geu.f32", "p ff", lanes, {0, 1, 1, 1}});
  cases.push_back({"setp.num.f32", "p ff", lanes, {1, 1, 1, 0}});
  cases.push_back({"setp.nan.f32", "p ff", lanes, {0, 0, 0, 1}});
  cases.push_back(
      {"testp.finite.f32", "p f", {{one}, {n}, {bits(INFINITY)}}, {1, 0, 0}});
  cases.push_back({"testp.subnormal.f32", "p f", {{one}, {1}}, {0, 1}});
  cases.push_back({"copysign.f32",
                   "f ff",
                   {{0x80000000, one}, {0, 0x80000001}},
                   {bits(-1.0f), 1}});
  run(cases);
}

TEST_CASE("opcodes: cvt from floats to integers") {
  const float inf = INFINITY;
  Lanes lanes;
  for (float x : {0.5f, 1.5f, 2.5f, -0.5f, -1.5f, 2.7f, -2.7f, 3e9f, -3e9f,
                  1e20f, inf, -inf}) {
    lanes.push_back({bits(x)});
  }
  lanes.push_back({bits(NAN)});
  std::vector<Case> cases;
  auto s32 = [](int32_t x) { return uint64_t(uint32_t(x)); };
  const uint64_t big = s32(INT32_MAX), small = s32(INT32_MIN);
  cases.push_back(
      {"cvt.rni.s32.f32",
       "r f",
       lanes,
       {0, 2, 2, 0, s32(-2), 3, s32(-3), big, small, big, big, small, 0}});
  cases.push_back(
      {"cvt.rzi.s32.f32",
       "r f",
       lanes,
       {0, 1, 2, 0, s32(-1), 2, s32(-2), big, small, big, big, small, 0}});
  cases.push_back({"cvt.rmi.s32.f32",
                   "r f",
                   lanes,
                   {0, 1, 2, s32(-1), s32(-2), 2, s32(-3), big, small, big, big,
                    small, 0}});
  cases.push_back(
      {"cvt.rpi.s32.f32",
       "r f",
       lanes,
       {1, 2, 3, 0, s32(-1), 3, s32(-2), big, small, big, big, small, 0}});
  cases.push_back(
      {"cvt.rzi.u32.f32",
       "r f",
       lanes,
       {0, 1, 2, 0, 0, 2, 0, 3000000000, 0, 0xffffffff, 0xffffffff, 0, 0}});
  cases.push_back({"cvt.rzi.s64.f32",
                   "d f",
                   {{bits(-3e9f)}, {bits(1e20f)}},
                   {uint64_t(-3000000000ll), 0x7fffffffffffffff}});
  cases.push_back({"cvt.rzi.s16.f32",
                   "h f",
                   {{bits(70000.f)}, {bits(-5.9f)}},
                   {0x7fff, 0xfffb}});
  cases.push_back({"cvt.rni.f32.f32",
                   "f f",
                   {{bits(2.5f)}, {bits(-0.3f)}},
                   {bits(2.0f), bits(-0.0f)}});
  cases.push_back({"cvt.rmi.f64.f64", "g g", {{bits(-2.5)}}, {bits(-3.0)}});
  run(cases);
}

TEST_CASE("opcodes: cvt between floats, and from integers") {
  std::vector<Case> cases;
  const double third = 1.0 / 3;
  cases.push_back({"cvt.rn.f32.f64",
                   "f g",
                   {{bits(third)}, {bits(-third)}},
                   {bits(float(third)), bits(-float(third))}});
  const float near = float(third);  // above a third
  const float below = std::nextafter(near, 0.0f);
  cases.push_back({"cvt.rz.f32.f64",
                   "f g",
                   {{bits(third)}, {bits(-third)}},
                   {bits(below), bits(-below)}});
  cases.push_back({"cvt.rm.f32.f64",
                   "f g",
                   {{bits(third)}, {bits(-third)}, {bits(1e300)}},
                   {bits(below), bits(-near), bits(0x1.fffffep127f)}});
  cases.push_back({"cvt.rp.f32.f64",
                   "f g",
                   {{bits(third)}, {bits(-third)}},
                   {bits(near), bits(-below)}});
  cases.push_back({"cvt.f64.f32", "g f", {{bits(0.1f)}}, {bits(double(0.1f))}});
  cases.push_back({"cvt.rn.f16.f32",
                   "h f",
                   {{bits(1.0f)},
                    {bits(65520.f)},
                    {bits(1e-8f)},
                    {bits(0.1f)},
                    {bits(NAN)}},
                   {0x3c00, 0x7c00, 0, 0x2e66, 0x7fff}});
  cases.push_back({"cvt.rz.f16.f32",
                   "h f",
                   {{bits(65520.f)}, {bits(0.1f)}},
                   {0x7bff, 0x2e66}});
  cases.push_back({"cvt.f32.f16",
                   "f h",
                   {{0x3c00}, {0x0001}, {0xfc00}},
                   {bits(1.0f), bits(0x1p-24f), bits(-INFINITY)}});
  cases.push_back({"cvt.rn.bf16.f32",
                   "h f",
                   {{bits(1.0f)}, {0x3f808000}, {0x3f818000}, {bits(NAN)}},
                   {0x3f80, 0x3f80, 0x3f82, 0x7fff}});
  cases.push_back({"cvt.f32.bf16", "f h", {{0x3f80}}, {bits(1.0f)}});
  cases.push_back(
      {"cvt.rn.f16x2.f32", "r ff", {{bits(1.0f), bits(2.0f)}}, {0x3c004000}});
  cases.push_back({"cvt.rna.tf32.f32",
                   "r f",
                   {{0x3f801000}, {0x3f800fff}},
                   {0x3f802000, 0x3f800000}});
  cases.push_back({"cvt.rn.f32.s32",
                   "f r",
                   {{16777217}, {0xffffffff}},
                   {bits(16777216.f), bits(-1.0f)}});
  cases.push_back(
      {"cvt.rz.f32.u32", "f r", {{0xffffffff}}, {bits(4294967040.f)}});
  cases.push_back({"cvt.rn.f64.u64", "g d", {{~0ull}}, {bits(0x1p64)}});
  cases.push_back({"cvt.rn.f32.u64",
                   "f d",
                   {{0x8000008000000001}},
                   {bits(0x1.000002p63f)}});
  cases.push_back(
      {"cvt.rn.f16.s32", "h r", {{2049}, {70000}}, {0x6800, 0x7c00}});
  run(cases);
}

TEST_CASE("opcodes: cvt between integers") {
  std::vector<Case> cases;
  cases.push_back({"cvt.s32.s8", "r r", {{0x80}, {0x17f}}, {0xffffff80, 0x7f}});
  cases.push_back({"cvt.u32.u8", "r r", {{0x1ff}}, {0xff}});
  cases.push_back({"cvt.s64.s32", "d r", {{0x80000000}}, {0xffffffff80000000}});
  cases.push_back(
      {"cvt.s64.s32", "d d", {{0x1280000000}}, {0xffffffff80000000}});
  cases.push_back({"cvt.u64.u32", "d r", {{0x80000000}}, {0x80000000}});
  cases.push_back({"cvt.u32.u64", "r d", {{0x123456789abcdef0}}, {0x9abcdef0}});
  cases.push_back({"cvt.s16.s8", "h h", {{0x80}}, {0xff80}});
  cases.push_back(
      {"cvt.sat.u8.s32", "r r", {{300}, {0xffffffff}, {17}}, {255, 0, 17}});
  cases.push_back({"cvt.sat.s16.s32",
                   "r r",
                   {{70000}, {0xffff0000}},
                   {0x7fff, 0xffff8000}});
  run(cases);
}

TEST_CASE("opcodes: approximate functions are near") {
  std::vector<Case> cases;
  Lanes lanes;
  for (float x : {0.25f, 0.5f, 1.0f, 1.7f, 2.0f, 3.1f})
    lanes.push_back({bits(x)});
  auto add = [&](const char* name, double (*f)(double), double ulp) {
    cases.push_back(computed(
        name, "f f", lanes,
        [f](auto& v) { return bits(float(f(double(as_float(v[0]))))); }, ulp));
  };
  add("ex2.approx.f32", exp2, 2);
  add("lg2.approx.f32", log2, 2);
  add("sin.approx.f32", sin, 64);
  add("cos.approx.f32", cos, 64);
  add("tanh.approx.f32", tanh, 4096);
  add("rsqrt.approx.f32", [](double x) { return 1 / std::sqrt(x); }, 2);
  add("rcp.approx.f32", [](double x) { return 1 / x; }, 1);
  cases.push_back(computed(
      "div.full.f32", "f ff", {{bits(1.0f), bits(3.0f)}},
      [](auto&) { return bits(1.0f / 3.0f); }, 2));
  run(cases);
}
