// Integer and bit instructions on edges and random values.
#include <algorithm>
#include <random>

#include "tests/unit/simcuda/opcodes.h"

using namespace opcode_test;

namespace {

using Lanes = std::vector<std::vector<uint64_t>>;

Lanes values(int operands, uint64_t seed, int bits) {
  std::mt19937_64 random(seed);
  const uint64_t mask = bits == 64 ? ~0ull : (1ull << bits) - 1;
  const uint64_t top = 1ull << (bits - 1);
  const uint64_t edges[] = {0, 1, 2, mask, top, top - 1, top + 1, 7};
  Lanes lanes(96);
  for (auto& lane : lanes)
    for (int k = 0; k < operands; ++k)
      lane.push_back(random() % 3 == 0 ? edges[random() % 8] : random() & mask);
  return lanes;
}

/// F on signed or unsigned values of the size.
template <class T, class F>
Case two(std::string name, F f) {
  const char letter = sizeof(T) == 2 ? 'h' : sizeof(T) == 4 ? 'r' : 'd';
  std::string pattern = {letter, ' ', letter, letter};
  using U = std::make_unsigned_t<T>;
  return computed(name, pattern, values(2, name.size() * 7 + 1, 8 * sizeof(T)),
                  [=](const std::vector<uint64_t>& v) -> uint64_t {
                    return U(f(T(v[0]), T(v[1])));
                  });
}

template <class T>
void arithmetic(std::vector<Case>& cases, const std::string& type) {
  using U = std::make_unsigned_t<T>;
  constexpr int bits = 8 * sizeof(T);
  cases.push_back(two<T>("add." + type, [](T a, T b) { return U(a) + U(b); }));
  cases.push_back(two<T>("sub." + type, [](T a, T b) { return U(a) - U(b); }));
  cases.push_back(two<T>("mul.lo." + type,
                         [](T a, T b) { return uint64_t(a) * uint64_t(b); }));
  cases.push_back(two<T>("mul.hi." + type, [](T a, T b) {
    using Wide =
        std::conditional_t<std::is_signed_v<T>, __int128, unsigned __int128>;
    return (Wide(a) * Wide(b)) >> bits;
  }));
  cases.push_back(
      two<T>("min." + type, [](T a, T b) { return std::min(a, b); }));
  cases.push_back(
      two<T>("max." + type, [](T a, T b) { return std::max(a, b); }));
  cases.push_back(two<T>("div." + type, [](T a, T b) -> T {
    if (b == 0) return T(~T{0});
    return T(__int128(a) / __int128(b));
  }));
  cases.push_back(two<T>("rem." + type, [](T a, T b) -> T {
    if (b == 0) return a;
    return T(__int128(a) % __int128(b));
  }));
}

}  // namespace

TEST_CASE("opcodes: integer arithmetic wraps, division is defined") {
  std::vector<Case> cases;
  arithmetic<int16_t>(cases, "s16");
  arithmetic<uint16_t>(cases, "u16");
  arithmetic<int32_t>(cases, "s32");
  arithmetic<uint32_t>(cases, "u32");
  arithmetic<int64_t>(cases, "s64");
  arithmetic<uint64_t>(cases, "u64");
  run(cases);
}

TEST_CASE("opcodes: wide products, mad, abs, neg, sad") {
  std::vector<Case> cases;
  cases.push_back(
      computed("mul.wide.s32", "d rr", values(2, 3, 32), [](auto& v) {
        return uint64_t(int64_t(int32_t(v[0])) * int32_t(v[1]));
      }));
  cases.push_back(computed("mul.wide.u16", "r hh", values(2, 4, 16),
                           [](auto& v) { return v[0] * v[1]; }));
  cases.push_back(
      computed("mul.wide.s16", "r hh", values(2, 5, 16), [](auto& v) {
        return uint64_t(uint32_t(int16_t(v[0]) * int16_t(v[1])));
      }));
  cases.push_back(
      computed("mad.lo.s32", "r rrr", values(3, 6, 32),
               [](auto& v) { return uint64_t(uint32_t(v[0] * v[1] + v[2])); }));
  cases.push_back(computed("mad.wide.u32", "d rrd", values(3, 7, 32),
                           [](auto& v) { return v[0] * v[1] + v[2]; }));
  cases.push_back(
      computed("mad.hi.s32", "r rrr", values(3, 8, 32), [](auto& v) {
        int64_t p = int64_t(int32_t(v[0])) * int32_t(v[1]);
        return uint64_t(uint32_t((p >> 32) + v[2]));
      }));
  cases.push_back(computed("abs.s32", "r r", values(1, 9, 32), [](auto& v) {
    int32_t x = int32_t(v[0]);
    return uint64_t(x < 0 ? 0u - uint32_t(x) : uint32_t(x));
  }));
  cases.push_back(computed("neg.s64", "d d", values(1, 10, 64),
                           [](auto& v) { return 0 - v[0]; }));
  cases.push_back(computed("sad.s32", "r rrr", values(3, 11, 32), [](auto& v) {
    int64_t d = int64_t(int32_t(v[0])) - int32_t(v[1]);
    return uint64_t(uint32_t(v[2] + uint64_t(d < 0 ? -d : d)));
  }));
  cases.push_back(
      computed("add.sat.s32", "r rr", values(2, 12, 32), [](auto& v) {
        int64_t x = int64_t(int32_t(v[0])) + int32_t(v[1]);
        x = std::clamp<int64_t>(x, INT32_MIN, INT32_MAX);
        return uint64_t(uint32_t(x));
      }));
  // 128 bits in two steps.
  cases.push_back(computed(
      "{ .reg .b64 %t; add.cc.u64 %t, {1}, {2}; addc.u64 {0}, {3}, 0; }",
      "d ddd", values(3, 13, 64),
      [](auto& v) { return v[2] + (v[0] + v[1] < v[0] ? 1 : 0); }));
  cases.push_back(computed(
      "{ .reg .b64 %t; sub.cc.u64 %t, {1}, {2}; subc.u64 {0}, {3}, 0; }",
      "d ddd", values(3, 14, 64),
      [](auto& v) { return v[2] - (v[0] < v[1] ? 1 : 0); }));
  run(cases);
}

TEST_CASE("opcodes: bits") {
  std::vector<Case> cases;
  auto logic = [&](const char* name, auto f) {
    cases.push_back(
        computed(std::string(name) + ".b32", "r rr", values(2, 20, 32),
                 [=](auto& v) { return uint64_t(uint32_t(f(v[0], v[1]))); }));
    cases.push_back(computed(std::string(name) + ".b64", "d dd",
                             values(2, 21, 64),
                             [=](auto& v) { return f(v[0], v[1]); }));
  };
  logic("and", [](uint64_t a, uint64_t b) { return a & b; });
  logic("or", [](uint64_t a, uint64_t b) { return a | b; });
  logic("xor", [](uint64_t a, uint64_t b) { return a ^ b; });
  cases.push_back(computed("not.b16", "h h", values(1, 22, 16),
                           [](auto& v) { return ~v[0] & 0xffff; }));
  cases.push_back(computed("not.pred", "p p", {{0}, {1}},
                           [](auto& v) { return uint64_t(!v[0]); }));
  cases.push_back(computed("xor.pred", "p pp", {{0, 0}, {0, 1}, {1, 0}, {1, 1}},
                           [](auto& v) { return v[0] ^ v[1]; }));
  cases.push_back(computed("cnot.b32", "r r", {{0}, {1}, {99}},
                           [](auto& v) { return uint64_t(v[0] == 0); }));
  // Shift counts saturate.
  Lanes shifts;
  for (uint64_t n : {0, 1, 15, 16, 31, 32, 33, 63, 64, 65, 255}) {
    shifts.push_back({0x8123456789abcdef, n});
    shifts.push_back({0x7123456789abcdef, n});
  }
  auto low = [&](int bits) {
    Lanes lanes = shifts;
    for (auto& lane : lanes)
      lane[0] = bits == 64 ? lane[0] : lane[0] >> (64 - bits);
    return lanes;
  };
  cases.push_back(computed("shl.b32", "r rr", low(32), [](auto& v) {
    return v[1] > 31 ? 0 : uint64_t(uint32_t(v[0] << v[1]));
  }));
  cases.push_back(computed("shl.b64", "d dr", low(64), [](auto& v) {
    return v[1] > 63 ? 0 : v[0] << v[1];
  }));
  cases.push_back(computed("shr.u32", "r rr", low(32), [](auto& v) {
    return v[1] > 31 ? 0 : v[0] >> v[1];
  }));
  cases.push_back(computed("shr.s32", "r rr", low(32), [](auto& v) {
    return uint64_t(uint32_t(int32_t(v[0]) >> std::min<uint64_t>(v[1], 31)));
  }));
  cases.push_back(computed("shr.s16", "h hr", low(16), [](auto& v) {
    return uint64_t(uint16_t(int16_t(v[0]) >> std::min<uint64_t>(v[1], 15)));
  }));
  cases.push_back(computed("shr.s64", "d dr", low(64), [](auto& v) {
    return uint64_t(int64_t(v[0]) >> std::min<uint64_t>(v[1], 63));
  }));
  auto funnel = values(3, 23, 32);
  cases.push_back(computed("shf.l.wrap.b32", "r rrr", funnel, [](auto& v) {
    return uint64_t(uint32_t((v[1] << 32 | v[0]) << (v[2] & 31) >> 32));
  }));
  cases.push_back(computed("shf.r.clamp.b32", "r rrr", funnel, [](auto& v) {
    return uint64_t(
        uint32_t((v[1] << 32 | v[0]) >> std::min<uint64_t>(v[2], 32)));
  }));
  cases.push_back(computed("popc.b64", "r d", values(1, 24, 64), [](auto& v) {
    return uint64_t(std::popcount(v[0]));
  }));
  cases.push_back(computed("clz.b32", "r r", values(1, 25, 32), [](auto& v) {
    return uint64_t(std::countl_zero(uint32_t(v[0])));
  }));
  cases.push_back({"bfind.u32",
                   "r r",
                   {{0}, {1}, {0x80000000}, {0x00f0}},
                   {0xffffffff, 0, 31, 7}});
  cases.push_back({"bfind.s32",
                   "r r",
                   {{0xffffffff}, {0xfffffff0}, {0x70}},
                   {0xffffffff, 3, 6}});
  cases.push_back({"brev.b32",
                   "r r",
                   {{1}, {0x80000001}, {0xf0000000}},
                   {0x80000000, 0x80000001, 0xf}});
  cases.push_back({"bfe.u32",
                   "r rrr",
                   {{0x12345678, 8, 8},
                    {0x12345678, 28, 8},
                    {~0u, 3, 0},
                    {0x80000000, 31, 1}},
                   {0x56, 0x1, 0, 1}});
  cases.push_back(
      {"bfe.s32",
       "r rrr",
       {{0x0000f000, 12, 4}, {0x00007000, 12, 4}, {0x80000000, 28, 16}},
       {0xffffffff, 7, 0xfffffff8}});
  cases.push_back({"bfi.b32",
                   "r rrrr",
                   {{0xff, 0x12345678, 8, 8}, {1, 0, 31, 4}, {5, 7, 3, 0}},
                   {0x1234ff78, 0x80000000, 7}});
  cases.push_back({"prmt.b32",
                   "r rrr",
                   {{0x33221100, 0x77665544, 0x7531}, {0x800000ff, 0, 0xbb80}},
                   {0x77553311, 0xffffffff}});
  cases.push_back(computed(
      "lop3.b32 {0}, {1}, {2}, {3}, 0xe8;", "r rrr", values(3, 26, 32),
      [](auto& v) { return (v[0] & v[1]) | (v[0] & v[2]) | (v[1] & v[2]); }));
  cases.push_back({"dp4a.s32.s32",
                   "r rrr",
                   {{0x01ff02fe, 0x01010101, 10}},
                   {10 + 1 - 1 + 2 - 2}});
  run(cases);
}

TEST_CASE("opcodes: comparisons and choices of integers") {
  std::vector<Case> cases;
  auto lanes = values(2, 30, 32);
  for (auto [name, f] : std::initializer_list<
           std::pair<const char*, bool (*)(int32_t, int32_t)>>{
           {"setp.eq.s32", [](int32_t a, int32_t b) { return a == b; }},
           {"setp.ne.s32", [](int32_t a, int32_t b) { return a != b; }},
           {"setp.lt.s32", [](int32_t a, int32_t b) { return a < b; }},
           {"setp.le.s32", [](int32_t a, int32_t b) { return a <= b; }},
           {"setp.gt.s32", [](int32_t a, int32_t b) { return a > b; }},
           {"setp.ge.s32", [](int32_t a, int32_t b) { return a >= b; }}}) {
    cases.push_back(computed(name, "p rr", lanes, [f = f](auto& v) {
      return uint64_t(f(int32_t(v[0]), int32_t(v[1])));
    }));
  }
  cases.push_back(computed("setp.lo.u32", "p rr", lanes,
                           [](auto& v) { return uint64_t(v[0] < v[1]); }));
  cases.push_back(computed("setp.lt.and.s32 {0}, {1}, {2}, {3};", "p rrp",
                           {{1, 2, 1}, {1, 2, 0}, {2, 1, 1}}, [](auto& v) {
                             return uint64_t(v[0] < v[1] && v[2]);
                           }));
  cases.push_back(computed("{ .reg .pred %t; setp.lt.s32 %t|{0}, {1}, {2}; }",
                           "p rr", {{1, 2}, {2, 1}},
                           [](auto& v) { return uint64_t(!(v[0] < v[1])); }));
  cases.push_back(computed("selp.b64", "d ddp", {{1, 2, 0}, {1, 2, 1}},
                           [](auto& v) { return v[2] ? v[0] : v[1]; }));
  cases.push_back(computed(
      "slct.s32.s32", "r rrr", {{1, 2, 0}, {1, 2, 0xffffffff}, {1, 2, 5}},
      [](auto& v) { return int32_t(v[2]) >= 0 ? v[0] : v[1]; }));
  cases.push_back(
      computed("set.lt.u32.s32", "r rr", {{1, 2}, {2, 1}},
               [](auto& v) { return v[0] < v[1] ? 0xffffffffull : 0; }));
  cases.push_back(
      {"mov.b64 {0}, {{1}, {2}};", "d rr", {{1, 2}}, {2ull << 32 | 1}});
  cases.push_back({"{ .reg .b32 %t; mov.b64 {%t, {0}}, {1}; }",
                   "r d",
                   {{0x123456789abcdef0}},
                   {0x12345678}});
  run(cases);
}

TEST_CASE("opcodes: cp.async of fewer bytes fills up with zeros") {
  // Operands: 16 bytes to copy, and how many of them. What is read of the place
  // in shared memory held ones before.
  auto copy = [](const std::string& kind, const std::string& from,
                 const std::string& bytes, int read) {
    return "{ .reg .b32 %at; .shared .align 16 .b8 place[2048];"
           "mov.u32 %at, place; mad.lo.u32 %at, %r1, 16, %at;"
           "st.shared.v2.b64 [%at], {-1, -1};"
           "cp.async." +
           kind + ".shared.global [%at], [" + from + "], " + bytes +
           ", {3}; cp.async.commit_group; cp.async.wait_group 0;"
           "ld.shared.b64 {0}, [%at+" +
           std::to_string(read) + "]; }";
  };
  auto first = [](uint64_t value, uint64_t bytes) {
    return bytes >= 8 ? value : value & ((uint64_t{1} << 8 * bytes) - 1);
  };
  constexpr uint64_t low = 0x8877665544332211, high = 0xffeeddccbbaa9988;
  std::vector<std::vector<uint64_t>> lanes;
  for (uint64_t bytes = 0; bytes <= 16; ++bytes)
    lanes.push_back({low, high, bytes});
  std::vector<Case> cases;
  for (const char* kind : {"cg", "ca"}) {
    cases.push_back(computed(copy(kind, "%rd6", "16", 0), "d ddr", lanes,
                             [&](auto& v) { return first(v[0], v[2]); }));
    cases.push_back(computed(
        copy(kind, "%rd6", "16", 8), "d ddr", lanes,
        [&](auto& v) { return v[2] > 8 ? first(v[1], v[2] - 8) : 0; }));
  }
  constexpr uint64_t ones = ~uint64_t{0};
  lanes.resize(5);
  cases.push_back(computed(
      copy("ca", "%rd6+4", "4", 0), "d ddr", lanes,
      [&](auto& v) { return first(v[0] >> 32, v[2]) | (ones << 32); }));
  lanes.resize(9, {});
  for (uint64_t bytes = 5; bytes <= 8; ++bytes)
    lanes[bytes] = {low, high, bytes};
  cases.push_back(computed(copy("ca", "%rd6+8", "8", 0), "d ddr", lanes,
                           [&](auto& v) { return first(v[1], v[2]); }));
  // No byte: the address may be any.
  cases.push_back({copy("cg", "0", "16", 0), "d ddr", {{low, high, 0}}, {0}});
  run(cases);
}
