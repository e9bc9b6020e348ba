// Elements of operands, and the layouts in which operations meet them.
#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "jit/scalar/element.h"
#include "tests/unit/jit/op_table/op_table.h"

namespace unisono::jit::testing {

using ir::Dim;
using ir::Graph;
using ir::NodeId;
using ir::Op;
using ir::Shape;
using ir::Type;

// ---- elements --------------------------------------------------------------

namespace {

uint64_t to_bits(const std::vector<uint8_t>& element) {
  uint64_t bits = 0;
  std::memcpy(&bits, element.data(), element.size());
  return bits;
}

/// Mantissa bits of a float type.
int mantissa_bits(DType dtype) {
  return dtype == DType::F64   ? 52
         : dtype == DType::F32 ? 23
         : dtype == DType::F16 ? 10
                               : 7;
}

std::vector<uint64_t> special_floats(DType dtype) {
  const int mantissa = mantissa_bits(dtype);
  const int width = static_cast<int>(byte_size(dtype)) * 8;
  const uint64_t sign = uint64_t{1} << (width - 1);
  const uint64_t one = uint64_t{1} << mantissa;
  const uint64_t infinity = sign - one;
  // Zero, subnormals, the smallest and largest normal number, NaN.
  std::vector<uint64_t> bits = {0,
                                1,
                                one - 1,
                                one,
                                one + 1,
                                infinity - 1,
                                infinity,
                                infinity | one >> 1,
                                infinity | one >> 1 | 5};
  // Units and halves; ties of integers; ties of rounding to f16 and bf16, and
  // the numbers beyond their largest; edges of integer types; where
  // elementary functions change their formulas or overflow.
  const double ulp = std::ldexp(1.0, -mantissa);
  for (double v :
       {1.0,         1 + ulp,    1 - ulp / 2, 0.5,          1.5,
        2.0,         2.5,        3.0,         7.0,          0.1,
        0x1p-24,     0x1.8p-24,  0x1p-25,     0x1.8p-25,    1 + 0x1p-11,
        1 + 0x3p-11, 1 + 0x1p-8, 1 + 0x3p-8,  65519.0,      65520.0,
        0x1.ffp127,  127.5,      128.0,       255.5,        256.0,
        32767.5,     65535.5,    0x1p31,      0x1p31 - 0.5, 0x1p32,
        0x1p53,      0x1p63,     0x1p64,      10.06,        88.72,
        88.73,       103.98,     709.78,      745.2,        3.14159265358979,
        1e5,         1e10,       0.92,        0.35,         22.0})
    bits.push_back(to_bits(jit::element_bytes(dtype, v)));
  for (size_t i = 0, n = bits.size(); i < n; ++i)
    bits.push_back(bits[i] | sign);
  return bits;
}

std::vector<uint64_t> special_integers(DType dtype) {
  const int width = static_cast<int>(byte_size(dtype)) * 8;
  const uint64_t all = width == 64 ? ~uint64_t{0} : (uint64_t{1} << width) - 1;
  const uint64_t top = uint64_t{1} << (width - 1);
  std::vector<uint64_t> bits;
  // Edges, small numbers of both signs, widths, ties of rounding to floats.
  for (uint64_t v : {uint64_t{0},
                     uint64_t{1},
                     uint64_t{2},
                     uint64_t{3},
                     uint64_t{7},
                     uint64_t{10},
                     all,
                     all - 1,
                     all - 2,
                     all - 6,
                     top,
                     top - 1,
                     top + 1,
                     top - 2,
                     static_cast<uint64_t>(width),
                     static_cast<uint64_t>(width) - 1,
                     static_cast<uint64_t>(width) + 1,
                     ~static_cast<uint64_t>(width),
                     uint64_t{100},
                     uint64_t{0x101},
                     uint64_t{0x103},
                     uint64_t{2049},
                     uint64_t{2051},
                     uint64_t{65519},
                     uint64_t{65520},
                     (uint64_t{1} << 24) + 1,
                     (uint64_t{1} << 24) + 3,
                     (uint64_t{1} << 53) + 1,
                     (uint64_t{1} << 53) + 3,
                     (uint64_t{1} << 62) + (uint64_t{1} << 38),
                     (uint64_t{1} << 62) + (uint64_t{1} << 38) + 1})
    bits.push_back(v & all);
  std::sort(bits.begin(), bits.end());
  bits.erase(std::unique(bits.begin(), bits.end()), bits.end());
  return bits;
}

}  // namespace

const std::vector<uint64_t>& special_bits(DType dtype) {
  static const std::vector<std::vector<uint64_t>> all = [] {
    std::vector<std::vector<uint64_t>> out;
    for (DType d : all_dtypes)
      out.push_back(is_bool(d)       ? std::vector<uint64_t>{0, 1}
                    : is_floating(d) ? special_floats(d)
                                     : special_integers(d));
    return out;
  }();
  return all[static_cast<size_t>(dtype)];
}

namespace {

/// An element that is ordinary; about one float in 500 is not.
uint64_t number(DType dtype, std::mt19937& random) {
  if (!is_floating(dtype)) return random() % 2 ? random() : random() % 100;
  double v = static_cast<double>(random() % 20011) / 1000 - 10;
  if (random() % 1009 == 0) v = NAN;
  if (random() % 1009 == 0) v = random() % 2 ? HUGE_VAL : -HUGE_VAL;
  if (random() % 101 == 0) v = random() % 2 ? -0.0 : 0.0;
  return to_bits(jit::element_bytes(dtype, v));
}

/// Number `i` of the array.
uint64_t element(DType dtype, Fill fill, uint64_t i, std::mt19937& random) {
  const std::vector<uint64_t>& special = special_bits(dtype);
  const uint64_t n = special.size();
  switch (fill) {
    case Fill::special:
      if (random() % 4) return special[random() % n];
      return uint64_t{random()} << 32 | random();
    case Fill::pairs_x:
      if (i < n * n) return special[i % n];
      return element(dtype, Fill::special, i, random);
    case Fill::pairs_y:
      if (i < n * n) return special[i / n];
      return element(dtype, Fill::special, i, random);
    case Fill::numbers: return number(dtype, random);
    case Fill::coarse:
      return to_bits(
          jit::element_bytes(dtype, static_cast<int64_t>(random() % 7)));
    case Fill::zeros:
      return to_bits(jit::element_bytes(dtype, random() % 2 ? -0.0 : 0.0));
    case Fill::divisors: {
      const uint64_t bits = element(dtype, Fill::special, i, random);
      return bits << (64 - 8 * byte_size(dtype)) == 0 ? 3 : bits;
    }
    case Fill::exponents: return random() % 13;
  }
  __builtin_unreachable();
}

}  // namespace

HostArray filled(const Type& type, Fill fill, std::mt19937& random) {
  HostArray out{type, {}};
  const auto size = static_cast<size_t>(byte_size(type.dtype));
  const auto n = static_cast<uint64_t>(type.elements());
  out.bytes.resize(n * size);
  // A large array draws most of its numbers from those that it begins with:
  // to make one takes twenty times as long.
  const uint64_t made = fill == Fill::numbers ? 4099 : n;
  const auto* begin = out.bytes.data();
  for (uint64_t i = 0; i < n; ++i) {
    uint64_t bits = 0;
    if (i < made)
      bits = element(type.dtype, fill, i, random);
    else
      std::memcpy(&bits, begin + (random() % made) * size, size);
    if (is_bool(type.dtype)) bits &= 1;
    std::memcpy(&out.bytes[i * size], &bits, size);
  }
  return out;
}

// ---- layouts ---------------------------------------------------------------

std::string_view name(Layout layout) {
  constexpr std::string_view names[] = {
      "dense",     "transposed", "flipped", "strided",  "reversed",
      "broadcast", "splat",      "literal", "reshaped", "joined",
      "padded",    "gathered",   "chosen"};
  static_assert(std::size(names) == layout_count);
  return names[static_cast<int>(layout)];
}

namespace {

std::vector<int> all_axes(int rank) {
  std::vector<int> axes(static_cast<size_t>(rank));
  std::iota(axes.begin(), axes.end(), 0);
  return axes;
}

/// One operand on its way into a graph: the inputs that it needs come first,
/// then the moves that make it of them.
struct Arranged {
  Operand operand;
  std::vector<NodeId> inputs;
  std::vector<int> axes;      // transposed, flipped, broadcast
  ir::SliceAttrs slice = {};  // strided, reversed
  ir::PadAttrs pad = {};
  int64_t cut = 0;  // joined

  const Shape& shape() const { return operand.type.shape; }
  int rank() const { return operand.type.rank(); }
};

/// The types of what the operand is made of.
std::vector<Type> sources(Arranged& a, std::mt19937& random) {
  Type source = a.operand.type;
  const auto below = [&](int64_t n) {
    return static_cast<int64_t>(random() % static_cast<uint64_t>(n));
  };
  switch (a.operand.layout) {
    case Layout::splat:
    case Layout::literal: return {};
    case Layout::dense:
    case Layout::gathered: return {source};
    case Layout::chosen: return {{DType::Bool, source.shape}, source, source};
    case Layout::reshaped: {
      const int64_t n = source.elements();
      source.shape = {Dim(n)};
      if (a.rank() == 1) source.shape = n % 2 ? Shape{1, n} : Shape{2, n / 2};
      return {source};
    }
    case Layout::transposed:
      a.axes = all_axes(a.rank());
      std::rotate(a.axes.begin(), a.axes.begin() + (a.rank() > 1),
                  a.axes.end());
      if (below(2)) std::reverse(a.axes.begin(), a.axes.end());
      for (int i = 0; i < a.rank(); ++i) source.shape[a.axes[i]] = a.shape()[i];
      return {source};
    case Layout::flipped:
      for (int i = 0; i < a.rank(); ++i)
        if (below(2) || i + 1 == a.rank()) a.axes.push_back(i);
      return {source};
    case Layout::strided:
    case Layout::reversed:
      for (Dim& d : source.shape) {
        const int64_t start = below(3), step = 1 + below(3), size = d.value();
        a.slice.start.push_back(start);
        a.slice.step.push_back(step);
        a.slice.size.push_back(size);
        d = start + size * step + below(2);
      }
      return {source};
    case Layout::broadcast: {
      source.shape.clear();
      for (int i = 0; i < a.rank(); ++i) {
        const int64_t what = below(3);
        if (what == 0) continue;
        a.axes.push_back(i);
        source.shape.push_back(what == 1 ? Dim(1) : a.shape()[i]);
      }
      return {source};
    }
    case Layout::joined: {
      if (a.rank() == 0) return {source};
      const int64_t n = source.shape[0].value();
      a.cut = below(n + 1);
      Type rest = source;
      source.shape[0] = a.cut;
      rest.shape[0] = n - a.cut;
      return {source, rest};
    }
    case Layout::padded:
      for (Dim& d : source.shape) {
        const int64_t n = d.value(), low = below(std::min<int64_t>(n, 2) + 1),
                      high = below(std::min<int64_t>(n - low, 3) + 1);
        a.pad.low.push_back(low);
        a.pad.high.push_back(high);
        d = n - low - high;
      }
      return {source, {source.dtype, {}}};
  }
  __builtin_unreachable();
}

NodeId constant(Graph& graph, const Type& type, Fill fill,
                std::mt19937& random) {
  return graph.add_constant(type, filled(type, fill, random).bytes);
}

/// Along axis 0, every other element and the reverse of the rest.
NodeId gathered(Graph& graph, const Arranged& a) {
  if (a.rank() == 0) return a.inputs[0];
  const int64_t n = a.shape()[0].value();
  std::vector<uint8_t> indices;
  for (int64_t i = 0; i < n; ++i)
    for (uint8_t b : jit::element_bytes(DType::I64, i % 2 ? i : -1 - i))
      indices.push_back(b);
  if (n == 1) indices = jit::element_bytes(DType::I64, int64_t{0});
  const NodeId at = graph.add_constant({DType::I64, {n}}, indices);
  return graph.add(Op::gather, {a.inputs[0], at}, ir::IndexAttrs{{0}});
}

NodeId arrange(Graph& graph, const Arranged& a, std::mt19937& random) {
  const Operand& operand = a.operand;
  switch (operand.layout) {
    case Layout::dense: return a.inputs[0];
    case Layout::splat: {
      const HostArray one =
          filled({operand.type.dtype, {}}, operand.fill, random);
      return graph.add_constant(operand.type, one.bytes);
    }
    case Layout::literal:
      return constant(graph, operand.type, operand.fill, random);
    case Layout::transposed:
      return graph.add(Op::transpose, a.inputs, ir::AxesAttrs{a.axes});
    case Layout::flipped:
      return graph.add(Op::flip, a.inputs, ir::AxesAttrs{a.axes});
    case Layout::strided: return graph.add(Op::slice, a.inputs, a.slice);
    case Layout::reversed:
      return graph.add(Op::flip, {graph.add(Op::slice, a.inputs, a.slice)},
                       ir::AxesAttrs{all_axes(a.rank())});
    case Layout::broadcast:
      return graph.add(Op::broadcast, a.inputs,
                       ir::BroadcastAttrs{a.shape(), a.axes});
    case Layout::reshaped:
      return graph.add(Op::reshape, a.inputs, ir::ShapeAttrs{a.shape()});
    case Layout::joined:
      if (a.rank() == 0) return a.inputs[0];
      return graph.add(Op::concat, {a.inputs[1], a.inputs[0]},
                       ir::AxisAttrs{0});
    case Layout::padded: return graph.add(Op::pad, a.inputs, a.pad);
    case Layout::gathered: return gathered(graph, a);
    case Layout::chosen: return graph.add(Op::select, a.inputs);
  }
  __builtin_unreachable();
}

}  // namespace

std::vector<NodeId> Trial::operands(const std::vector<Operand>& operands) {
  std::vector<Arranged> all;
  for (const Operand& operand : operands) {
    Arranged& a = all.emplace_back(
        Arranged{.operand = operand, .inputs = {}, .axes = {}});
    for (const Type& type : sources(a, random)) {
      a.inputs.push_back(graph.add_input(type));
      inputs.push_back(filled(type, operand.fill, random));
    }
    name += std::string(name.empty() ? "" : ", ") + operand.type.to_string() +
            " " + std::string(testing::name(operand.layout));
  }
  std::vector<NodeId> out;
  for (const Arranged& a : all) out.push_back(arrange(graph, a, random));
  return out;
}

}  // namespace unisono::jit::testing
