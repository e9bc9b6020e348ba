// mma.sync and ldmatrix: matrices spread over the lanes of a warp. Products of
// floats with an f32 accumulator are added as matrix units are known to do it
// (Fasi, Higham, Mikaitis, Pranesh: Numerical behavior of NVIDIA tensor cores,
// 2021): a few exact products and the accumulator at once, aligned to the
// largest, bits beyond a 25th cut off. How many at once, and how many bits,
// differs between GPUs, so bits may differ from silicon. Others are added in
// the order of k, each sum rounded (f16: to f32, and at the end).
#include <algorithm>
#include <charconv>
#include <cmath>

#include "simcuda/machine/access.h"
#include "simcuda/opcodes/decode.h"
#include "simcuda/opcodes/families.h"
#include "simcuda/opcodes/float.h"

namespace simcuda {
namespace {

using unisono::cuda::illegal_instruction;

enum class Element : uint8_t { f16, bf16, tf32, f64, s8, u8 };

/// What a lane's registers hold: register r, part p of it.
struct Place {
  int row, column;
};

struct Shape {
  int m, n, k;
};

/// Elements in one 32-bit register.
int per_register(Element e) {
  switch (e) {
    case Element::f16:
    case Element::bf16: return 2;
    case Element::s8:
    case Element::u8: return 4;
    case Element::tf32:
    case Element::f64: return 1;
  }
  return 1;
}

/// A is m × k: registers go first down by 8 rows, then on by 4 registers.
Place place_of_a(int lane, int r, int part, int per, int m) {
  int group = lane >> 2, t = lane & 3;
  int rows = m / 8;
  return {group + 8 * (r % rows), (t + 4 * (r / rows)) * per + part};
}
/// B is k × n, n = 8.
Place place_of_b(int lane, int r, int part, int per) {
  return {((lane & 3) + 4 * r) * per + part, lane >> 2};
}
/// C and D are m × n: two neighbours in a lane.
Place place_of_c(int lane, int e) {
  return {(lane >> 2) + 8 * (e / 2), 2 * (lane & 3) + (e & 1)};
}

double element(Element type, uint64_t bits, int part) {
  switch (type) {
    case Element::f16:
      return static_cast<double>(static_cast<float>(
          std::bit_cast<Half>(static_cast<uint16_t>(bits >> (16 * part)))));
    case Element::bf16:
      return static_cast<double>(static_cast<float>(
          std::bit_cast<Brain>(static_cast<uint16_t>(bits >> (16 * part)))));
    case Element::tf32:
      return static_cast<double>(
          std::bit_cast<float>(static_cast<uint32_t>(bits) & ~0x1fffu));
    case Element::f64: return std::bit_cast<double>(bits);
    case Element::s8: return static_cast<int8_t>(bits >> (8 * part));
    case Element::u8: return static_cast<uint8_t>(bits >> (8 * part));
  }
  return 0;
}

/// i.mode: the elements of A; i.mode2: of B; i.offset: m, k and the type of
/// the accumulator; slots: D, A, B, C.
struct Mma {
  Shape shape;
  Element a, b;
  Type accumulator;
  int d_count, a_count, b_count;
};
int64_t pack_mma(const Mma& x) {
  return x.shape.m | x.shape.k << 8 |
         int{static_cast<uint8_t>(x.accumulator)} << 16;
}
Mma unpack_mma(const Instruction& i) {
  Mma x;
  x.shape = {static_cast<int>(i.offset & 0xff), 8,
             static_cast<int>(i.offset >> 8 & 0xff)};
  x.accumulator = static_cast<Type>(i.offset >> 16 & 0xff);
  x.a = static_cast<Element>(i.mode);
  x.b = static_cast<Element>(i.mode2);
  int per = per_register(x.a);
  x.a_count = x.shape.m * x.shape.k / warp_size / per;
  x.b_count = 8 * x.shape.k / warp_size / per;
  x.d_count = x.shape.m * 8 / warp_size;
  if (x.accumulator == Type::f16) x.d_count /= 2;
  return x;
}

Flow multiply(Warp& warp, const Instruction& i) {
  const Mma x = unpack_mma(i);
  if (!warp.gather(~0u)) return Flow::moved;
  if (warp.mask != ~0u) {
    return warp.fail(illegal_instruction, i,
                     "`mma` needs all 32 lanes of its warp");
  }
  double a[16][32], b[32][8];
  double c[16][8];
  const Slot* slots = &warp.kernel->slots[i.list];
  const Slot* slots_a = slots + x.d_count;
  const Slot* slots_b = slots_a + x.a_count;
  const Slot* slots_c = slots_b + x.b_count;
  const bool wide = x.a == Element::f64;
  auto bits = [&](Slot slot, int lane) -> uint64_t {
    return wide ? warp.row<uint64_t>(slot)[lane]
                : warp.row<uint32_t>(slot)[lane];
  };
  const int per = per_register(x.a);
  for (int lane = 0; lane < warp_size; ++lane) {
    for (int r = 0; r < x.a_count; ++r) {
      for (int part = 0; part < per; ++part) {
        Place p = place_of_a(lane, r, part, per, x.shape.m);
        a[p.row][p.column] = element(x.a, bits(slots_a[r], lane), part);
      }
    }
    for (int r = 0; r < x.b_count; ++r) {
      for (int part = 0; part < per; ++part) {
        Place p = place_of_b(lane, r, part, per);
        b[p.row][p.column] = element(x.b, bits(slots_b[r], lane), part);
      }
    }
  }
  const bool packed = x.accumulator == Type::f16;
  const int per_lane = x.shape.m * 8 / warp_size;
  auto c_value = [&](int lane, int e) -> double {
    uint64_t raw = bits(slots_c[packed ? e / 2 : e], lane);
    switch (x.accumulator) {
      case Type::f16: return element(Element::f16, raw, e & 1);
      case Type::f64: return std::bit_cast<double>(raw);
      case Type::s32: return static_cast<int32_t>(raw);
      default:
        return static_cast<double>(
            std::bit_cast<float>(static_cast<uint32_t>(raw)));
    }
  };
  for (int lane = 0; lane < warp_size; ++lane) {
    for (int e = 0; e < per_lane; ++e) {
      Place p = place_of_c(lane, e);
      double sum = c_value(lane, e);
      if (x.accumulator == Type::f32) {
        const int at_once = x.a == Element::tf32 ? 4 : 8;
        for (int k = 0; k < x.shape.k; k += at_once) {
          double products[8];
          for (int j = 0; j < at_once; ++j)
            products[j] = a[p.row][k + j] * b[k + j][p.column];
          sum = add_aligned(static_cast<float>(sum), products, at_once);
        }
        c[p.row][p.column] = sum;
        continue;
      }
      for (int k = 0; k < x.shape.k; ++k) {
        double left = a[p.row][k], right = b[k][p.column];
        if (x.accumulator == Type::f64) {
          sum = std::fma(left, right, sum);
        } else if (x.accumulator == Type::s32) {
          sum = static_cast<int32_t>(static_cast<uint32_t>(
              static_cast<int64_t>(sum) +
              static_cast<int64_t>(left) * static_cast<int64_t>(right)));
        } else {
          sum = std::fma(static_cast<float>(left), static_cast<float>(right),
                         static_cast<float>(sum));
        }
      }
      c[p.row][p.column] = sum;
    }
  }
  for (int lane = 0; lane < warp_size; ++lane) {
    for (int e = 0; e < per_lane; e += packed ? 2 : 1) {
      Place p = place_of_c(lane, e);
      double sum = c[p.row][p.column];
      Slot slot = slots[packed ? e / 2 : e];
      if (wide) {
        warp.row<uint64_t>(slot)[lane] = std::bit_cast<uint64_t>(sum);
        continue;
      }
      uint32_t& out = warp.row<uint32_t>(slot)[lane];
      if (packed) {
        auto half = [](double v) {
          return uint32_t{
              std::bit_cast<uint16_t>(canonical(static_cast<Half>(v)))};
        };
        out = half(c[p.row][p.column + 1]) << 16 | half(sum);
      } else if (x.accumulator == Type::s32) {
        out = static_cast<uint32_t>(static_cast<int32_t>(sum));
      } else {
        out = std::bit_cast<uint32_t>(canonical(static_cast<float>(sum)));
      }
    }
  }
  return Flow::next;
}

bool element_named(Type type, Element& element) {
  switch (type) {
    case Type::f16: element = Element::f16; return true;
    case Type::bf16: element = Element::bf16; return true;
    case Type::tf32: element = Element::tf32; return true;
    case Type::f64: element = Element::f64; return true;
    case Type::s8: element = Element::s8; return true;
    case Type::u8: element = Element::u8; return true;
    default: return false;
  }
}

bool known_shape(const Mma& x) {
  const auto [m, n, k] = x.shape;
  if (n != 8) return false;
  switch (x.a) {
    case Element::f16: return m == 16 && (k == 8 || k == 16);
    case Element::bf16:
      return m == 16 && (k == 8 || k == 16) && x.accumulator == Type::f32;
    case Element::tf32:
      return m == 16 && (k == 4 || k == 8) && x.accumulator == Type::f32;
    case Element::f64: return m == 8 && k == 4 && x.accumulator == Type::f64;
    case Element::s8:
    case Element::u8:
      return m == 16 && (k == 16 || k == 32) && x.accumulator == Type::s32;
  }
  return false;
}

/// The matrices of ldmatrix: i.elements of 8 × 8 halves; i.mode: transposed.
Flow load_matrix(Warp& warp, const Instruction& i) {
  if (!warp.gather(~0u)) return Flow::moved;
  if (warp.mask != ~0u) {
    return warp.fail(illegal_instruction, i,
                     "`ldmatrix` needs all 32 lanes of its warp");
  }
  // Eight lanes give the rows of one matrix; the rest's addresses are not
  // looked at.
  const uint32_t before = warp.mask;
  const uint32_t used = i.elements == 4 ? ~0u : (1u << (8 * i.elements)) - 1;
  LaneAddresses lanes;
  warp.set_mask(used);
  Flow flow = resolve(warp, i, 16, Access::read, lanes);
  warp.set_mask(before);
  if (flow != Flow::next) return flow;
  for (uint32_t matrix = 0; matrix < i.elements; ++matrix) {
    auto at = [&](int row, int column) {
      uint16_t value;
      __builtin_memcpy(&value,
                       lanes.at[matrix * 8 + uint32_t(row)] + 2 * column, 2);
      return uint32_t{value};
    };
    auto* d = warp.row<uint32_t>(warp.kernel->slots[i.list + matrix]);
    for (int lane = 0; lane < warp_size; ++lane) {
      int row = lane / 4, column = 2 * (lane % 4);
      d[lane] = i.mode ? at(column, row) | at(column + 1, row) << 16
                       : at(row, column) | at(row, column + 1) << 16;
    }
  }
  return Flow::next;
}

}  // namespace

float add_aligned(float c, const double* products, int count) {
  constexpr uint64_t exponent_bits = uint64_t{0x7ff} << 52;
  uint64_t largest = 0;
  double plain = c;
  for (int k = 0; k < count; ++k) plain += products[k];
  auto look = [&](double term) {
    largest = std::max(largest, std::bit_cast<uint64_t>(term) & exponent_bits);
  };
  look(c);
  for (int k = 0; k < count; ++k) look(products[k]);
  if (largest == 0 || largest == exponent_bits)
    return static_cast<float>(plain);  // zeros, or not finite
  // The unit of the 25th bit, and one over it.
  const double unit = std::bit_cast<double>(largest) * 0x1p-24;
  const double scale = 1 / unit;
  int64_t sum = static_cast<int64_t>(c * scale);
  for (int k = 0; k < count; ++k)
    sum += static_cast<int64_t>(products[k] * scale);
  const double exact = static_cast<double>(sum) * unit;
  const float rounded = static_cast<float>(exact);
  return std::abs(static_cast<double>(rounded)) > std::abs(exact)
             ? std::nextafter(rounded, 0.0f)
             : rounded;
}

bool decode_mma(Decoding& d) {
  d.out.meets = true;
  if (!d.op.has("sync") || d.op.has("sp") || !d.op.has("row") ||
      !d.op.has("col") || d.count() != 4 || d.op.types.size() != 4 ||
      d.op.has("satfinite")) {
    return d.unsupported();
  }
  Mma x;
  for (std::string_view suffix : d.op.suffixes) {
    size_t n = suffix.find('n'), k = suffix.find('k');
    if (suffix[0] != 'm' || n == std::string_view::npos ||
        k == std::string_view::npos) {
      continue;
    }
    const char* end = suffix.data() + suffix.size();
    std::from_chars(suffix.data() + 1, end, x.shape.m);
    std::from_chars(suffix.data() + n + 1, end, x.shape.n);
    std::from_chars(suffix.data() + k + 1, end, x.shape.k);
  }
  x.accumulator = d.op.type(0);
  if (!element_named(d.op.type(1), x.a) || !element_named(d.op.type(2), x.b) ||
      x.accumulator != d.op.type(3) || !known_shape(x) ||
      (x.a != x.b && type_bytes(d.op.type(1)) != 1) ||
      (x.accumulator != Type::f16 && x.accumulator != Type::f32 &&
       x.accumulator != Type::f64 && x.accumulator != Type::s32)) {
    return d.unsupported();
  }
  const bool old = x.a == Element::f16 && x.shape.k == 8;
  if (!d.needs(old ? 75 : 80)) return false;
  d.out.mode = static_cast<uint8_t>(x.a);
  d.out.mode2 = static_cast<uint8_t>(x.b);
  d.out.offset = pack_mma(x);
  x = unpack_mma(d.out);
  const size_t counts[] = {size_t(x.d_count), size_t(x.a_count),
                           size_t(x.b_count), size_t(x.d_count)};
  const Type accumulator =
      x.accumulator == Type::f16 ? Type::b32 : x.accumulator;
  const Type operand = x.a == Element::f64 ? Type::f64 : Type::b32;
  std::vector<Slot> slots;
  for (size_t o = 0; o < 4; ++o) {
    const Operand& vector = d.operand(o);
    const bool single = vector.kind != Operand::Kind::vector;
    if ((single ? 1 : vector.parts.size()) != counts[o])
      return d.fail("an operand of `mma` has another number of registers");
    const Type type = o == 1 || o == 2 ? operand : accumulator;
    for (size_t r = 0; r < counts[o]; ++r) {
      const Operand& part = single ? vector : vector.parts[r];
      slots.push_back(o == 0 ? d.write(part, type, false)
                             : d.read(part, type, false));
    }
  }
  d.add_slots(d.out, slots, counts[0]);
  return d.handler(multiply);
}

bool decode_ldmatrix(Decoding& d) {
  d.out.meets = true;
  if (!d.op.has("m8n8") || !d.op.has("b16") || d.count() != 2)
    return d.unsupported();
  if (!d.needs(75)) return false;
  int many = d.op.which({"x1", "x2", "x4"});
  if (many < 0) return d.unsupported();
  d.out.elements = static_cast<uint8_t>(1 << many);
  d.out.mode = d.op.has("trans");
  const bool shared = d.op.has("shared") || d.op.has("shared::cta");
  d.out.space = shared ? Space::shared : Space::generic;
  const Operand& vector = d.operand(0);
  if (vector.kind != Operand::Kind::vector ||
      vector.parts.size() != d.out.elements) {
    return d.fail("`ldmatrix` has another number of registers");
  }
  std::vector<Slot> slots;
  for (const Operand& part : vector.parts)
    slots.push_back(d.write(part, Type::b32, false));
  d.add_slots(d.out, slots, slots.size());
  return d.address(d.operand(1), d.out.space) && d.handler(load_matrix);
}

}  // namespace simcuda
