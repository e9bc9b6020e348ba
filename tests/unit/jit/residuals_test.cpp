// What a loop keeps of each turn for its derivative in reverse.
#include "jit/derivative/residuals.h"

#include <doctest/doctest.h>

#include "jit/ir/graph.h"
#include "jit/scalar/element.h"

using namespace unisono;
using namespace unisono::ir;
using jit::residuals;

namespace {

const Type vector{DType::F32, {8}}, matrix{DType::F32, {8, 8}},
    scalar{DType::F32, {}}, number{DType::I64, {}};

NodeId one(Graph& g) {
  return g.add_constant(vector, jit::element_bytes(DType::F32, 1.0));
}

}  // namespace

TEST_CASE("of h = tanh(h @ w + x), h is kept") {
  Graph g;
  const NodeId before = g.add_input(vector), x = g.add_input(vector),
               w = g.add_input(matrix);
  const NodeId dot = g.add(Op::dot, {before, w}, DotAttrs{{}, {}, {0}, {0}});
  const NodeId sum = g.add(Op::add, {dot, x});
  const NodeId h = g.add(Op::tanh, {sum});
  // The factor of tanh is (1 - h) (1 + h).
  const NodeId less = g.add(Op::sub, {one(g), h});
  const NodeId more = g.add(Op::add, {one(g), h});
  const NodeId factor = g.add(Op::mul, {less, more});
  const std::vector<bool> free = {false, true, true};
  CHECK(residuals(g, free, {factor}, {h}) == std::vector{h});
  CHECK(residuals(g, free, {factor, w, x}, {h}) == std::vector{h});
  // The derivative by w needs what was multiplied with it, too.
  CHECK(residuals(g, free, {before, factor}, {h}) == std::vector{before, h});
  // If a turn's carry were there anyway, so were a product's operands alone.
  CHECK(residuals(g, {true, true, true}, {before, factor}, {h}) ==
        std::vector{h});
}

TEST_CASE("what is there anyway, and constants, are not kept") {
  Graph g;
  const NodeId x = g.add_input(vector), c = g.add_input(vector);
  const NodeId y = g.add(Op::mul, {x, one(g)});
  CHECK(residuals(g, {true, false}, {x, y, one(g)}).empty());
  CHECK(residuals(g, {false, false}, {x, y}) == std::vector{x});
  CHECK(residuals(g, {true, false}, {c}) == std::vector{c});
}

TEST_CASE("of a recurrence over an array, the element that is read is kept") {
  Graph g;
  const NodeId k = g.add_input(number), y = g.add_input({DType::F32, {1000}});
  const NodeId last = g.add(Op::gather, {y, k}, IndexAttrs{{0}, true});
  const NodeId next = g.add(Op::sin, {last});
  const NodeId all = g.add(Op::scatter, {y, next, k}, IndexAttrs{{0}, true});
  const NodeId factor = g.add(Op::cos, {last});
  CHECK(residuals(g, {true, false}, {factor}, {all}) == std::vector{last});
  // A captured array's element is read again.
  CHECK(residuals(g, {true, true}, {factor}, {all}).empty());
}

TEST_CASE("much work is not done twice to save little memory") {
  Graph g;
  const NodeId x = g.add_input(vector);
  std::vector<NodeId> chain = {x};
  for (int i = 0; i < 20; ++i) chain.push_back(g.add(Op::sin, {chain.back()}));
  const NodeId last = chain.back();
  CHECK(residuals(g, {false}, {last}, {last}) == std::vector{last});
  CHECK(residuals(g, {true}, {last}, {last}) == std::vector{last});
  // Of two in a row, one is computed from the other: 30 operations for 4 bytes.
  CHECK(residuals(g, {false}, {chain[3], chain[4]}, {last}) ==
        std::vector{chain[3]});
  // Of a long chain, as many are kept as make the rest cheap enough.
  const auto kept = residuals(g, {true}, chain, {last});
  CHECK(kept.empty());  // each one is the next one's beginning
}

TEST_CASE("small values stand for large ones") {
  Graph g;
  const NodeId a = g.add_input(scalar), x = g.add_input(vector);
  const NodeId s = g.add(Op::sin, {a});
  const NodeId wide = g.add(Op::broadcast, {s}, BroadcastAttrs{{8}, {}});
  const NodeId y = g.add(Op::mul, {wide, x});
  CHECK(residuals(g, {false, true}, {y}, {y}) == std::vector{s});
  // A sum is as small, and is not computed again.
  const NodeId sum = g.add(Op::sum, {y}, ReduceAttrs{{0}});
  const NodeId z = g.add(Op::exp, {sum});
  CHECK(residuals(g, {false, true}, {z}, {z}) == std::vector{z});
  CHECK(residuals(g, {false, true}, {z, sum}, {z}) == std::vector{sum});
}
