#include "jit/reference/reference.h"
#include "jit/scalar/element.h"

#include <cmath>
#include <limits>

#include "jit/ir/kinds.h"
#include "tests/unit/jit/arrays.h"

using namespace unisono;
using namespace unisono::jit;
using ir::Graph;
using ir::Op;
using Doubles = std::vector<double>;

namespace {

constexpr double NaN = std::numeric_limits<double>::quiet_NaN();

/// A graph of one operation on inputs of these types.
Graph one(Op op, const std::vector<HostArray>& inputs,
          ir::Attrs attrs = ir::NoAttrs{}) {
  Graph g;
  std::vector<ir::NodeId> ids;
  for (const auto& x : inputs) ids.push_back(g.add_input(x.type));
  g.outputs = {g.add(op, ids, std::move(attrs), 7)};
  return g;
}

Doubles run(Op op, const std::vector<HostArray>& inputs,
            ir::Attrs attrs = ir::NoAttrs{}) {
  return value_of(one(op, inputs, std::move(attrs)), inputs);
}

Error error_of(Op op, const std::vector<HostArray>& inputs,
               ir::Attrs attrs = ir::NoAttrs{}) {
  auto out = evaluate(one(op, inputs, std::move(attrs)), inputs);
  REQUIRE(!out);
  return out.error();
}

HostArray f32(const std::vector<int64_t>& sizes, const Doubles& v) {
  return array(DType::F32, sizes, v);
}
HostArray i32(const std::vector<int64_t>& sizes, const Doubles& v) {
  return array(DType::I32, sizes, v);
}

ir::ReduceAttrs over(std::vector<int> axes,
                     ir::ReduceOrder order = ir::ReduceOrder::elements) {
  return {std::move(axes), order};
}

}  // namespace

TEST_CASE("moves") {
  const auto x = f32({2, 3}, {0, 1, 2, 3, 4, 5});
  CHECK(run(Op::transpose, {x}, ir::AxesAttrs{{1, 0}}) ==
        Doubles{0, 3, 1, 4, 2, 5});
  CHECK(run(Op::flip, {x}, ir::AxesAttrs{{1}}) == Doubles{2, 1, 0, 5, 4, 3});
  CHECK(run(Op::flip, {x}, ir::AxesAttrs{{0, 1}}) == Doubles{5, 4, 3, 2, 1, 0});
  CHECK(run(Op::slice, {x}, ir::SliceAttrs{{0, 1}, {1, 1}, {2, 2}}) ==
        Doubles{1, 2, 4, 5});
  CHECK(run(Op::slice, {x}, ir::SliceAttrs{{1, 0}, {1, 2}, {1, 2}}) ==
        Doubles{3, 5});
  CHECK(run(Op::reshape, {x}, ir::ShapeAttrs{{3, 2}}) ==
        Doubles{0, 1, 2, 3, 4, 5});
  CHECK(run(Op::pad, {x, f32({}, {9})}, ir::PadAttrs{{1, 0}, {0, 2}}) ==
        Doubles{9, 9, 9, 9, 9, 0, 1, 2, 9, 9, 3, 4, 5, 9, 9});
  CHECK(run(Op::concat, {x, f32({2, 1}, {7, 8}), x}, ir::AxisAttrs{1}) ==
        Doubles{0, 1, 2, 7, 0, 1, 2, 3, 4, 5, 8, 3, 4, 5});
  CHECK(run(Op::concat, {x, f32({0, 3}, {})}, ir::AxisAttrs{0}) ==
        Doubles{0, 1, 2, 3, 4, 5});
  CHECK(run(Op::broadcast, {f32({3}, {1, 2, 3})},
            ir::BroadcastAttrs{{2, 3}, {1}}) == Doubles{1, 2, 3, 1, 2, 3});
  CHECK(run(Op::broadcast, {f32({2, 1}, {1, 2})},
            ir::BroadcastAttrs{{2, 2, 2}, {0, 2}}) ==
        Doubles{1, 1, 1, 1, 2, 2, 2, 2});
  CHECK(run(Op::broadcast, {f32({}, {4})}, ir::BroadcastAttrs{{3}, {}}) ==
        Doubles{4, 4, 4});
  const auto cube =
      array(DType::I16, {2, 2, 3}, {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11});
  CHECK(run(Op::transpose, {cube}, ir::AxesAttrs{{2, 0, 1}}) ==
        Doubles{0, 3, 6, 9, 1, 4, 7, 10, 2, 5, 8, 11});
  CHECK(run(Op::iota, {}, ir::IotaAttrs{{DType::F32, {2, 3}}, 1}) ==
        Doubles{0, 1, 2, 0, 1, 2});
  CHECK(run(Op::iota, {}, ir::IotaAttrs{{DType::I64, {2, 3}}, 0}) ==
        Doubles{0, 0, 0, 1, 1, 1});
}

TEST_CASE("map operations, repeated elements included") {
  CHECK(run(Op::add, {f32({3}, {1, 2, 3}), f32({3}, {10, 20, 30})}) ==
        Doubles{11, 22, 33});
  CHECK(run(Op::cast, {f32({4}, {1.9, -1.9, 1e10, NaN})},
            ir::CastAttrs{DType::I32}) == Doubles{1, -1, 2147483647, 0});
  CHECK(run(Op::select, {array(DType::Bool, {2}, {1, 0}), f32({2}, {1, 2}),
                         f32({2}, {3, 4})}) == Doubles{1, 4});
  CHECK(run(Op::lt, {i32({2}, {1, 5}), i32({2}, {2, 5})}) == Doubles{1, 0});
  Graph g;
  const auto x = g.add_input({DType::F32, {4}});
  const auto two =
      g.add_constant({DType::F32, {4}}, jit::element_bytes(DType::F32, 2.0));
  const auto four = g.add(Op::mul, {two, two});
  g.outputs = {g.add(Op::add, {x, four}), four};
  const auto out = outputs_of(g, {f32({4}, {1, 2, 3, 4})});
  CHECK(values_of(out[0]) == Doubles{5, 6, 7, 8});
  CHECK(values_of(out[1]) == Doubles{4, 4, 4, 4});
}

TEST_CASE("reductions over any axes") {
  const auto x = f32({2, 3}, {0, 1, 2, 3, 4, 5});
  CHECK(run(Op::sum, {x}, over({1})) == Doubles{3, 12});
  CHECK(run(Op::sum, {x}, over({0})) == Doubles{3, 5, 7});
  CHECK(run(Op::sum, {x}, over({0, 1})) == Doubles{15});
  CHECK(run(Op::sum, {x}, over({})) == values_of(x));
  CHECK(run(Op::prod, {x}, over({1})) == Doubles{0, 60});
  CHECK(run(Op::max, {x}, over({0})) == Doubles{3, 4, 5});
  CHECK(run(Op::argmax, {f32({5}, {1, 7, 7, 0, 7})}, over({0})) == Doubles{1});
  CHECK(run(Op::argmax, {f32({5}, {1, NaN, 9, NaN, 7})}, over({0})) ==
        Doubles{1});
  CHECK(run(Op::argmin, {f32({4}, {NaN, 1, 0, NaN})}, over({0})) == Doubles{0});
  CHECK(std::isnan(run(Op::max, {f32({3}, {1, NaN, 3})}, over({0}))[0]));
  CHECK(run(Op::sum, {f32({0, 2}, {})}, over({0})) == Doubles{0, 0});
  CHECK(run(Op::prod, {i32({2, 0}, {})}, over({1})) == Doubles{1, 1});
  CHECK(run(Op::any, {array(DType::Bool, {2, 2}, {0, 1, 0, 0})}, over({1})) ==
        Doubles{1, 0});
  CHECK(std::signbit(run(Op::sum, {f32({2}, {-0.0, -0.0})}, over({0}))[0]));
  CHECK(run(Op::sum, {array(DType::I8, {2}, {100, 100})}, over({0})) ==
        Doubles{-56});
  // 2048 + 1 + 1 is not an f16 on the way, but the sum is one.
  CHECK(run(Op::sum, {array(DType::F16, {3}, {2048, 1, 1})}, over({0})) ==
        Doubles{2050});
}

namespace {

/// The documented orders, written again without templates.
float lanes_order(const std::vector<float>& x) {
  std::vector<float> chunks;
  for (size_t begin = 0; begin < x.size(); begin += 4096) {
    const size_t n = std::min<size_t>(4096, x.size() - begin);
    std::vector<float> lane(x.begin() + begin,
                            x.begin() + begin + std::min<size_t>(64, n));
    for (size_t i = 64; i < n; ++i) lane[i % 64] += x[begin + i];
    for (size_t half = 32; half > 0; half /= 2)
      for (size_t i = 0; i < half && i + half < lane.size(); ++i)
        lane[i] += lane[i + half];
    chunks.push_back(lane[0]);
  }
  while (chunks.size() > 1) {
    std::vector<float> next;
    for (size_t i = 0; i < chunks.size(); i += 2)
      next.push_back(i + 1 < chunks.size() ? chunks[i] + chunks[i + 1]
                                           : chunks[i]);
    chunks = next;
  }
  return chunks[0];
}

float runs_order(const std::vector<float>& x, size_t run) {
  std::vector<float> runs;
  for (size_t begin = 0; begin < x.size(); begin += run) {
    float total = x[begin];
    for (size_t i = begin + 1; i < std::min(begin + run, x.size()); ++i)
      total += x[i];
    runs.push_back(total);
  }
  while (runs.size() > 1) {
    std::vector<float> next;
    for (size_t i = 0; i < runs.size(); i += 2)
      next.push_back(i + 1 < runs.size() ? runs[i] + runs[i + 1] : runs[i]);
    runs = next;
  }
  return runs[0];
}

std::vector<float> noise(size_t n) {
  std::vector<float> out(n);
  uint32_t state = 12345;
  for (float& v : out) {
    state = state * 1664525 + 1013904223;
    v = (static_cast<float>(state >> 8) - 8388608.0f) * 1e-3f;
  }
  return out;
}

}  // namespace

TEST_CASE("the documented orders of float sums, bit for bit") {
  for (size_t n : {1, 2, 3, 33, 63, 64, 65, 100, 4095, 4096, 4097, 20000}) {
    CAPTURE(n);
    const auto x = noise(n);
    const Doubles values(x.begin(), x.end());
    const auto size = static_cast<int64_t>(n);
    CHECK(run(Op::sum, {f32({size}, values)}, over({0}))[0] == lanes_order(x));
    CHECK(run(Op::sum, {f32({size, 1}, values)}, over({0}))[0] ==
          runs_order(x, 64));
    CHECK(run(Op::sum, {f32({size}, values)},
              over({0}, ir::ReduceOrder::members))[0] == runs_order(x, 1));
  }
}

TEST_CASE("scans") {
  CHECK(run(Op::cumsum, {i32({5}, {1, 2, 3, 4, 5})}, ir::ScanAttrs{0}) ==
        Doubles{1, 3, 6, 10, 15});
  CHECK(run(Op::cumsum, {i32({3}, {1, 2, 3})}, ir::ScanAttrs{0, true}) ==
        Doubles{6, 5, 3});
  CHECK(run(Op::cumprod, {i32({2, 2}, {1, 2, 3, 4})}, ir::ScanAttrs{0}) ==
        Doubles{1, 2, 3, 8});
  const auto maxima =
      run(Op::cummax, {f32({4}, {2, 1, NaN, 5})}, ir::ScanAttrs{0});
  CHECK(maxima[1] == 2);
  CHECK(std::isnan(maxima[2]));
  CHECK(std::isnan(maxima[3]));
  // Any length against a plain sum of integers.
  for (int64_t n : {0, 1, 15, 16, 17, 4095, 4096, 4097, 9000}) {
    Doubles x, sums;
    double total = 0;
    for (int64_t i = 0; i < n; ++i) {
      x.push_back(static_cast<double>(i * i % 31 - 15));
      sums.push_back(total += x.back());
    }
    CHECK(run(Op::cumsum, {i32({n}, x)}, ir::ScanAttrs{0}) == sums);
    CHECK(run(Op::cumsum, {i32({n, 1}, x)}, ir::ScanAttrs{0}) == sums);
  }
}

TEST_CASE("the documented order of a float scan, bit for bit") {
  const size_t n = 4 * 4096 + 709;
  const auto x = noise(n);
  std::vector<float> expected(n), chunks;
  float blocks = 0, groups = 0;  // totals of what is before, in order
  for (size_t begin = 0; begin < n; begin += 16) {
    float lane[16];
    const size_t used = std::min<size_t>(16, n - begin);
    for (size_t i = 0; i < used; ++i) lane[i] = x[begin + i];
    for (size_t step : {1, 2, 4, 8}) {
      float before[16];
      std::copy(lane, lane + used, before);
      for (size_t i = step; i < used; ++i)
        lane[i] = before[i - step] + before[i];
    }
    const float carry = chunks.empty() ? 0 : runs_order(chunks, 1);
    for (size_t i = 0; i < used; ++i) {
      if (begin % 256) lane[i] = groups + lane[i];
      float base = carry;
      if (begin % 4096 >= 256) base = begin < 4096 ? blocks : carry + blocks;
      expected[begin + i] = begin < 256 ? lane[i] : base + lane[i];
    }
    groups = lane[used - 1];
    const size_t end = begin + 16;
    if (end % 256 == 0) blocks = end % 4096 == 256 ? groups : blocks + groups;
    if (end % 4096 == 0) chunks.push_back(blocks);
  }
  const auto got = run(Op::cumsum, {f32({n}, Doubles(x.begin(), x.end()))},
                       ir::ScanAttrs{0});
  for (size_t i = 0; i < n; ++i) REQUIRE(got[i] == expected[i]);
}

TEST_CASE("gather and scatter") {
  const auto x = f32({3, 2}, {0, 1, 2, 3, 4, 5});
  const auto rows = i32({2}, {2, -3});
  CHECK(run(Op::gather, {x, rows}, ir::IndexAttrs{{0}}) == Doubles{4, 5, 0, 1});
  CHECK(run(Op::gather, {x, i32({2}, {1, 0})}, ir::IndexAttrs{{1}}) ==
        Doubles{1, 3, 5, 0, 2, 4});
  CHECK(run(Op::gather, {x, rows, i32({2}, {1, 0})}, ir::IndexAttrs{{0, 1}}) ==
        Doubles{5, 0});
  CHECK(run(Op::scatter, {x, f32({2, 2}, {7, 8, 9, 10}), rows},
            ir::IndexAttrs{{0}}) == Doubles{9, 10, 2, 3, 7, 8});
  CHECK(run(Op::scatter,
            {x, f32({2, 3}, {6, 7, 8, 9, 10, 11}), i32({2}, {1, 1})},
            ir::IndexAttrs{{1}}) == Doubles{0, 9, 2, 10, 4, 11});
  CHECK(run(Op::scatter_add,
            {f32({3}, {0, 0, 0}), f32({4}, {1, 2, 3, 4}),
             array(DType::I64, {4}, {0, 2, 0, -1})},
            ir::IndexAttrs{{0}}) == Doubles{4, 0, 6});
  const Error e =
      error_of(Op::gather, {x, i32({2}, {0, 3})}, ir::IndexAttrs{{0}});
  CHECK(e.kind == Error::Kind::index_out_of_bounds);
  CHECK(e.message == "index 3 is out of bounds for size 3");
  CHECK(e.source == 7);
  CHECK(run(Op::gather, {x, i32({2}, {5, -9})}, ir::IndexAttrs{{0}, false}) ==
        Doubles{4, 5, 0, 1});
}

TEST_CASE("dot") {
  const auto a = f32({2, 3}, {1, 2, 3, 4, 5, 6});
  const auto b = f32({3, 2}, {1, 0, 0, 1, 1, 1});
  CHECK(run(Op::dot, {a, b}, ir::DotAttrs{{}, {}, {1}, {0}}) ==
        Doubles{4, 5, 10, 11});
  CHECK(run(Op::dot, {a, a}, ir::DotAttrs{{}, {}, {0, 1}, {0, 1}}) ==
        Doubles{91});
  CHECK(run(Op::dot, {a, a}, ir::DotAttrs{{0}, {0}, {1}, {1}}) ==
        Doubles{14, 77});
  CHECK(run(Op::dot, {f32({2}, {1, 2}), f32({2}, {3, 4})}, ir::DotAttrs{}) ==
        Doubles{3, 4, 6, 8});
  CHECK(run(Op::dot,
            {array(DType::U8, {2}, {200, 200}), array(DType::U8, {2}, {2, 1})},
            ir::DotAttrs{{}, {}, {0}, {0}}) == Doubles{88});
  CHECK(run(Op::dot, {f32({0}, {}), f32({0}, {})},
            ir::DotAttrs{{}, {}, {0}, {0}}) == Doubles{0});
  // One fma chain: the product is not rounded before it is added.
  const float big = 1 + 0x1p-12f;
  const float chain = std::fma(big, big, std::fma(-1.0f, 1.0f, 0.0f));
  CHECK(run(Op::dot, {f32({2}, {-1, big}), f32({2}, {1, big})},
            ir::DotAttrs{{}, {}, {0}, {0}})[0] == chain);
}

TEST_CASE("sorting is stable, NaN last") {
  const auto x = f32({6}, {3, NaN, -0.0, 0.0, -1, NaN});
  CHECK(run(Op::argsort, {x}) == Doubles{4, 2, 3, 0, 1, 5});
  const auto sorted = run(Op::sort, {x});
  CHECK(sorted[0] == -1);
  CHECK(std::signbit(sorted[1]));
  CHECK(!std::signbit(sorted[2]));
  CHECK(std::isnan(sorted[5]));
  CHECK(run(Op::sort, {i32({2, 3}, {3, 1, 2, 0, -5, 4})}) ==
        Doubles{1, 2, 3, -5, 0, 4});
  CHECK(run(Op::sort, {f32({2, 0}, {})}).empty());
}

TEST_CASE("checked errors carry the source") {
  const Error e = error_of(Op::floor_div, {i32({2}, {1, 2}), i32({2}, {1, 0})});
  CHECK(e.kind == Error::Kind::integer_division);
  CHECK(e.source == 7);
  CHECK(e.member == -1);
  CHECK(error_of(Op::mod, {i32({}, {1}), i32({}, {0})}).kind ==
        Error::Kind::integer_division);
  const Error power = error_of(Op::pow, {i32({}, {2}), i32({}, {-1})});
  CHECK(power.kind == Error::Kind::check_failed);
  ReferenceOptions unchecked;
  unchecked.checked = false;
  const std::vector<HostArray> inputs = {i32({2}, {1, 7}), i32({2}, {0, 2})};
  CHECK(values_of(outputs_of(one(Op::floor_div, inputs), inputs,
                             unchecked)[0]) == Doubles{0, 3});
  // Nothing is divided where there are no elements.
  Graph g;
  const auto zero = g.add_constant({DType::I32, {0}},
                                   jit::element_bytes(DType::I32, int64_t{0}));
  g.outputs = {g.add(Op::floor_div, {zero, zero})};
  CHECK(value_of(g, {}).empty());
}

TEST_CASE("values that no memory can hold") {
  const int64_t million = 1000000;
  Graph g;
  g.outputs = {g.add_constant({DType::F32, {million, million}},
                              jit::element_bytes(DType::F32, 0.0), 3)};
  const auto out = evaluate(g, {});
  REQUIRE(!out);
  CHECK(out.error().kind == Error::Kind::out_of_memory);
  CHECK(out.error().message ==
        "f32[1000000, 1000000] needs 4000000000000 bytes");
  CHECK(out.error().source == 3);
}
