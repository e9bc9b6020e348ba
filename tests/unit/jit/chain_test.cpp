// Products in every form: nests with vectors along either kept axis, squares
// that are transposed in registers, wide columns, tiles of operands as they lie
// and packed ones, and chains that are joined. All have the evaluator's bits.
#include <cmath>
#include <random>

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
