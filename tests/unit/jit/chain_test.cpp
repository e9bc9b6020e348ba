// Products in every form: nests with vectors along either kept axis, squares
// that are transposed in registers, wide columns, tiles of operands as they lie
// and packed ones, and chains that are joined. All have the evaluator's bits.
#include <cmath>
#include <random>
#include <tuple>
#include <utility>

#include "jit/ir/kinds.h"
#include "jit/kernel/packed_dot.h"
#include "tests/unit/jit/compiled.h"
#include "tests/unit/jit/gpu/simulated.h"

using namespace unisono;
using namespace unisono::jit;
using namespace unisono::jit::testing;
using ir::Graph;
using ir::NodeId;
using ir::Op;

namespace {

struct Sizes {
  int64_t batch, m, k, n;
};

/// c[b, i, j]; an operand that is turned has k first, or last.
Graph product(DType dtype, const Sizes& s, bool turn_a, bool turn_b) {
  Graph g;
  const NodeId a = g.add_input({dtype, turn_a ? ir::Shape{s.batch, s.k, s.m}
                                              : ir::Shape{s.batch, s.m, s.k}});
  const NodeId b = g.add_input({dtype, turn_b ? ir::Shape{s.batch, s.n, s.k}
                                              : ir::Shape{s.batch, s.k, s.n}});
  g.outputs = {g.add(
      Op::dot, {a, b},
      ir::DotAttrs{
          {0}, {0}, {turn_a ? 1 : 2}, {turn_b ? 2 : 1}, ir::Precision::exact})};
  return g;
}

HostArray numbers(const ir::Type& type, std::mt19937& random) {
  std::normal_distribution<double> normal;
  std::vector<double> values(static_cast<size_t>(type.elements()));
  for (double& value : values)
    value = is_floating(type.dtype) ? normal(random)
                                    : std::floor(100 * normal(random));
  return array(type.dtype, type.sizes(), values);
}

/// With operands as they are, and turned, where that is another order.
void compare(Bench& bench, DType dtype, const Sizes& s) {
  std::mt19937 random(7);
  for (const bool turn_a : {false, true})
    for (const bool turn_b : {false, true}) {
      if ((turn_a && s.m == 1) || (turn_b && s.n == 1)) continue;
      const Graph g = product(dtype, s, turn_a, turn_b);
      INFO(name(dtype) << " " << s.batch << " of " << s.m << " x " << s.k
                       << " x " << s.n << (turn_a ? ", a turned" : "")
                       << (turn_b ? ", b turned" : ""));
      CHECK(difference(bench, g,
                       {numbers(g.type(g.inputs[0]), random),
                        numbers(g.type(g.inputs[1]), random)}) == "");
    }
}

DotForm form(const Sizes& s) {
  return dot_form({.batch = s.batch, .m = s.m, .n = s.n, .k = s.k});
}

}  // namespace

TEST_CASE("products of matrices and vectors") {
  for (const int vector_bytes : {64, 32}) {
    Bench bench(vector_bytes);
    for (const Sizes& s :
         {Sizes{1, 100, 33, 1}, Sizes{1, 1, 50, 700}, Sizes{1, 37, 4096, 1},
          Sizes{1, 2, 20, 2100}, Sizes{1, 1, 13000, 1}, Sizes{40, 1, 150, 1},
          Sizes{1, 3, 4200, 64}, Sizes{1, 1100, 70, 3}}) {
      CHECK(form(s) == DotForm::nest);
      compare(bench, DType::F32, s);
    }
  }
  Bench bench(16);
  for (const DType dtype : {DType::F32, DType::F64, DType::F16, DType::BF16,
                            DType::I8, DType::I64}) {
    compare(bench, dtype, {1, 100, 70, 1});
    compare(bench, dtype, {1, 1, 5000, 80});
  }
}

TEST_CASE("products in tiles") {
  for (const int vector_bytes : {64, 32, 16}) {
    Bench bench(vector_bytes);
    for (const Sizes& s :
         {Sizes{1, 16, 16, 16}, Sizes{1, 257, 5, 49}, Sizes{2, 33, 330, 100},
          Sizes{1, 13, 4200, 17}, Sizes{35, 8, 30, 31}}) {
      CHECK(form(s) == DotForm::direct);
      if (vector_bytes == 32 || s.k == 330) compare(bench, DType::F32, s);
    }
    compare(bench, DType::F64, {1, 200, 70, 5});
  }
  Bench bench;
  const Sizes large = {1, 515, 20, 525};
  CHECK(form(large) == DotForm::packed);
  compare(bench, DType::F32, large);
}

TEST_CASE("packed products of several chains") {
  Bench bench;
  std::mt19937 random(1);
  const Graph g = product(DType::F32, {1, 512, 4100, 512}, false, false);
  CHECK(difference(bench, g,
                   {numbers(g.type(g.inputs[0]), random),
                    numbers(g.type(g.inputs[1]), random)}) == "");
}

namespace {

/// Windows on x, [2, height, width, channels], `taps` by `taps` of them, and
/// their product with w, [taps, taps, channels, results]; of y, [2, height',
/// width', results], if `back`, which is multiplied instead of w.
Graph of_windows(DType dtype, int64_t size, int64_t channels, int64_t taps,
                 int64_t step, int64_t gap, int64_t results, bool back) {
  Graph g;
  NodeId x = g.add_input({dtype, {2, size, size + 1, channels}});
  ir::Shape other = {taps, taps, channels, results};
  for (int64_t k = 0; k < 2; ++k) {
    const int axis = static_cast<int>(2 * k + 1);  // the first adds one
    const ir::Shape own = g.type(x).shape;
    const int64_t places =
        (own[axis].value() - (taps - 1) * gap - 1) / step + 1;
    ir::SliceAttrs part{ir::Shape(own.size(), 0), ir::Shape(own.size(), 1),
                        own};
    part.step[axis] = step;
    part.size[axis] = places;
    ir::Shape apart = part.size;
    apart.insert(apart.begin() + axis + 1, 1);
    std::vector<NodeId> parts;
    for (int64_t tap = 0; tap < taps; ++tap) {
      part.start[axis] = tap * gap;
      parts.push_back(g.add(Op::reshape, {g.add(Op::slice, {x}, part)},
                            ir::ShapeAttrs{apart}));
    }
    x = g.add(Op::concat, parts, ir::AxisAttrs{axis + 1});
  }
  const ir::Shape windows = g.type(x).shape;
  if (back) other = {windows[0], windows[1], windows[3], results};
  Graph out;
  // Inputs come first.
  out.add_input(g.type(0));
  const NodeId w = out.add_input({dtype, other});
  std::vector<NodeId> placed = {0};
  for (size_t i = 1; i < g.nodes.size(); ++i) {
    ir::Node node = g.nodes[i];
    for (NodeId& operand : node.inputs)
      operand = placed[static_cast<size_t>(operand)];
    placed.push_back(out.append(std::move(node)));
  }
  const std::vector<int> pixels = {0, 1, 3}, inside = {2, 4, 5},
                         first = {0, 1, 2};
  out.outputs = {out.add(
      Op::dot, {placed.back(), w},
      ir::DotAttrs{
          {}, {}, back ? pixels : inside, first, ir::Precision::exact})};
  return out;
}

}  // namespace

TEST_CASE("products of windows read them where they are") {
  for (const int vector_bytes : {64, 32, 16}) {
    Bench bench(vector_bytes);
    for (const bool back : {false, true})
      for (const auto& [channels, results] :
           {std::pair{8, 24}, {5, 4}, {16, 64}, {1, 70}})
        for (const auto& [taps, step, gap] :
             {std::tuple{3, 1, 1}, {2, 2, 1}, {3, 2, 3}}) {
          if (vector_bytes == 16 && step == 2) continue;
          for (const DType dtype : {DType::F32, DType::F64}) {
            const Graph g =
                of_windows(dtype, 15, channels, taps, step, gap, results, back);
            INFO(name(dtype) << " " << channels << " to " << results << ", "
                             << taps << " by " << step << ", " << gap);
            std::mt19937 random(5);
            const Arrays inputs = {numbers(g.type(0), random),
                                   numbers(g.type(1), random)};
            CHECK(difference(bench, g, inputs) == "");
            CompileStats stats;
            REQUIRE(bench.run(g, inputs, true, &stats));
            // Else a nest, of windows that are stored.
            if (!back || taps * taps * channels >= 8) CHECK(stats.kernels == 1);
          }
        }
  }
  // Several chains, whose ends lie within rows of pixels.
  Bench bench, gpu(simulated_gpus(1, "cc=8.0"));
  std::mt19937 random(5);
  const Graph longer = of_windows(DType::F32, 50, 6, 3, 1, 1, 20, true);
  CHECK(difference(bench, longer,
                   {numbers(longer.type(0), random),
                    numbers(longer.type(1), random)}) == "");
  // Small, of halves and of integers: nests, of windows that are stored.
  for (const DType dtype : {DType::F16, DType::I32, DType::F32}) {
    const Graph g = of_windows(dtype, 5, 3, 2, 1, 1, 3, false);
    const Arrays inputs = {numbers(g.type(0), random),
                           numbers(g.type(1), random)};
    for (Bench* each : {&bench, &gpu})
      CHECK(difference(*each, g, inputs) == "");
  }
  // On a GPU the windows of a large product are stored, too.
  const Graph g = of_windows(DType::F32, 15, 16, 3, 1, 1, 32, false);
  CHECK(difference(gpu, g,
                   {numbers(g.type(0), random), numbers(g.type(1), random)}) ==
        "");
}

TEST_CASE("long products on GPUs") {
  Bench bench(simulated_gpus(1, "cc=8.0"));
  std::mt19937 random(3);
  const auto plain = [&](DType dtype, const Sizes& s) {
    const Graph g = product(dtype, s, false, true);
    CHECK(difference(bench, g,
                     {numbers(g.type(g.inputs[0]), random),
                      numbers(g.type(g.inputs[1]), random)}) == "");
  };
  // A nest; all whole chains at once and a rest; chain after chain of a batch.
  plain(DType::F32, {1, 1, 9000, 1});
  plain(DType::F32, {1, 17, 8200, 16});
  plain(DType::F64, {2, 16, 4100, 16});
  plain(DType::F16, {1, 16, 4100, 16});
}
