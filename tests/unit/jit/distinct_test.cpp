// Which positions are known to differ, held to the reference evaluator.
#include "jit/transform/distinct.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <random>
#include <set>

#include "jit/derivative/derivative.h"
#include "jit/ir/text.h"
#include "jit/transform/transforms.h"
#include "tests/unit/jit/arrays.h"

using namespace unisono;
using namespace unisono::jit;
using ir::Graph;
using ir::NodeId;
using ir::Op;
using ir::Shape;

namespace {

/// The outputs of the graph, along axes of these sizes.
bool known(const Graph& g, const std::vector<int64_t>& sizes) {
  return positions_differ(g, g.outputs, sizes);
}

/// Whether they do differ, as gather reads them.
bool differ(const Graph& g, const std::vector<HostArray>& inputs,
            const std::vector<int64_t>& sizes) {
  const auto arrays = outputs_of(g, inputs);
  std::vector<std::vector<double>> values;
  for (const HostArray& array : arrays) values.push_back(values_of(array));
  std::set<std::vector<double>> places;
  for (size_t i = 0; i < values[0].size(); ++i) {
    std::vector<double> place;
    for (size_t k = 0; k < values.size(); ++k) {
      const auto size = static_cast<double>(sizes[k]);
      const double at = values[k][i];
      place.push_back(std::clamp(at < 0 ? at + size : at, 0.0, size - 1));
    }
    if (!places.insert(place).second) return false;
  }
  return true;
}

bool known_of(const char* text, const std::vector<int64_t>& sizes) {
  auto g = ir::parse(text);
  if (!g) FAIL(g.error().message);
  const bool found = known(*g, sizes);
  if (found && g->inputs.empty()) CHECK(differ(*g, {}, sizes));
  return found;
}

}  // namespace

TEST_CASE("positions that are known to differ") {
  CHECK(known_of("%0: i32[5] = iota axis=0\nreturn %0\n", {5}));
  CHECK(known_of("%0: i32[1] = iota axis=0\nreturn %0\n", {5}));
  // Slices with steps.
  CHECK(
      known_of("%0: i32[5] = iota axis=0\n%1: i32[5] = constant 3\n"
               "%2: i32[5] = mul %0, %1\n%3: i32[5] = constant 2\n"
               "%4: i32[5] = add %2, %3\nreturn %4\n",
               {15}));
  // Backwards, and from the end.
  CHECK(
      known_of("%0: i32[5] = iota axis=0\n%1: i32[5] = neg %0\n"
               "%2: i32[5] = constant -1\n%3: i32[5] = add %1, %2\n"
               "%4: i64[5] = cast %3\n%5: i64[5] = flip %4 axes=[0]\n"
               "return %5\n",
               {5}));
  CHECK(known_of("%0: i32[4] = constant [3, -1, 0, 2]\nreturn %0\n", {9}));
  // Rows and columns: what a map over rows makes of iota.
  CHECK(known_of(
      "%0: i32[3] = iota axis=0\n%1: i32[3, 2] = broadcast %0 axes=[0]\n"
      "%2: i32[2] = iota axis=0\n%3: i32[3, 2] = broadcast %2 axes=[1]\n"
      "return %1, %3\n",
      {3, 2}));
  CHECK(
      known_of("%0: i32[3, 4] = iota axis=0\n%1: i32[3, 4] = constant 4\n"
               "%2: i32[3, 4] = mul %0, %1\n%3: i32[3, 4] = iota axis=1\n"
               "%4: i32[3, 4] = add %2, %3\n%5: i32[12] = reshape %4\n"
               "return %5\n",
               {12}));
  // Permutations, and what they pick.
  CHECK(known_of("%0: f32[6] = input\n%1: i32[6] = argsort %0\nreturn %1\n",
                 {6}));
  CHECK(
      known_of("%0: f32[6] = input\n%1: i32[6] = argsort %0\n"
               "%2: i32[6] = argsort %1\n"
               "%3: i32[6] = gather %1, %2 axes=[0]\n"
               "%4: i32[3] = slice %3 start=[1] step=[2]\nreturn %4\n",
               {6}));
  CHECK(
      known_of("%0: f32[2, 6] = input\n%1: i32[2, 6] = argsort %0\n"
               "%2: i32[2, 6] = iota axis=0\nreturn %1, %2\n",
               {6, 2}));
}

TEST_CASE("positions that may be equal") {
  CHECK(!known_of("%0: i32[2] = input\nreturn %0\n", {5}));
  CHECK(!known_of("%0: i32[3, 2] = iota axis=0\nreturn %0\n", {3}));
  CHECK(!known_of("%0: i32[3] = constant [1, 2, 1]\nreturn %0\n", {3}));
  // -1 is the last one.
  CHECK(!known_of("%0: i32[2] = constant [-1, 4]\nreturn %0\n", {5}));
  // What is outside is clamped.
  CHECK(!known_of("%0: i32[6] = iota axis=0\nreturn %0\n", {5}));
  CHECK(
      !known_of("%0: i32[5] = iota axis=0\n%1: i32[5] = constant -7\n"
                "%2: i32[5] = add %0, %1\nreturn %2\n",
                {5}));
  // Too small a number wraps.
  CHECK(!known_of("%0: i8[200] = iota axis=0\nreturn %0\n", {1000}));
  CHECK(
      !known_of("%0: i32[200] = iota axis=0\n%1: i8[200] = cast %0\n"
                "return %1\n",
                {1000}));
  // Each line's permutation alone.
  CHECK(
      !known_of("%0: f32[2, 6] = input\n%1: i32[2, 6] = argsort %0\n"
                "return %1\n",
                {6}));
  // 2 i + j of a 3 x 3.
  CHECK(
      !known_of("%0: i32[3, 3] = iota axis=0\n%1: i32[3, 3] = constant 2\n"
                "%2: i32[3, 3] = mul %0, %1\n%3: i32[3, 3] = iota axis=1\n"
                "%4: i32[3, 3] = add %2, %3\nreturn %4\n",
                {9}));
}

TEST_CASE("positions of random graphs that are known to differ do") {
  int found = 0, equal = 0;
  for (uint32_t seed = 0; seed < 4000; ++seed) {
    std::mt19937 random(seed);
    const auto below = [&](int n) { return static_cast<int>(random() % n); };
    Graph g;
    const NodeId floats = g.add_input({DType::F32, {3, 4}});
    std::vector<double> elements;
    for (int i = 0; i < 12; ++i) elements.push_back(below(5));
    const std::vector<HostArray> inputs = {array(DType::F32, {3, 4}, elements)};
    std::vector<NodeId> all = {g.add(Op::argsort, {floats})};
    const auto number = [&](const ir::Type& type, int64_t value) {
      return g.add_constant(type, element_bytes(type.dtype, value));
    };
    const auto any = [&] {
      return all[static_cast<size_t>(below(static_cast<int>(all.size())))];
    };
    const auto reshaped = [&](NodeId x) {
      const int64_t n = g.type(x).elements();
      const Shape shapes[] = {{n}, {1, n}, {n / 2, 2}, {2, n / 2}, {n / 3, 3}};
      const Shape shape = shapes[below(n % 6 == 0 ? 5 : 2)];
      return g.add(Op::reshape, {x}, ir::ShapeAttrs{shape});
    };
    for (int step = 0; step < 7; ++step) {
      const NodeId x = any();
      const ir::Type type = g.type(x);
      switch (below(10)) {
        case 0:
          all.push_back(
              g.add(Op::iota, {},
                    ir::IotaAttrs{type, below(static_cast<int>(type.rank()))}));
          break;
        case 1:
          all.push_back(g.add(Op::add, {x, number(type, below(9) - 4)}));
          break;
        case 2:
          all.push_back(g.add(Op::mul, {x, number(type, below(6) - 2)}));
          break;
        case 3: all.push_back(reshaped(x)); break;
        case 4: {
          std::vector<int> axes;
          for (int i = type.rank(); i-- > 0;) axes.push_back(i);
          all.push_back(g.add(Op::transpose, {x}, ir::AxesAttrs{axes}));
          break;
        }
        case 5:
          all.push_back(
              g.add(Op::flip, {x}, ir::AxesAttrs{{below(type.rank())}}));
          break;
        case 6: {
          ir::SliceAttrs a{Shape(type.shape.size(), 0),
                           Shape(type.shape.size(), 1), type.shape};
          const auto axis = static_cast<size_t>(below(type.rank()));
          a.step[axis] = 2;
          a.size[axis] = (type.shape[axis].value() + 1) / 2;
          all.push_back(g.add(Op::slice, {x}, a));
          break;
        }
        case 7: {
          const NodeId other = any();
          const NodeId line = g.add(Op::reshape, {other},
                                    ir::ShapeAttrs{{g.type(other).elements()}});
          all.push_back(
              g.add(Op::gather, {line, x}, ir::IndexAttrs{{0}, false}));
          break;
        }
        case 8: {
          const NodeId other = any();
          if (g.type(other) == type)
            all.push_back(g.add(below(2) ? Op::add : Op::sub, {x, other}));
          break;
        }
        default: {
          Shape shape = type.shape;
          shape.insert(shape.begin(), 2);
          std::vector<int> axes;
          for (int i = 0; i < type.rank(); ++i) axes.push_back(i + 1);
          if (type.elements() < 30)
            all.push_back(
                g.add(Op::broadcast, {x}, ir::BroadcastAttrs{shape, axes}));
          break;
        }
      }
    }
    const NodeId first = any();
    g.outputs = {first};
    for (const NodeId other : all)
      if (other != first && g.type(other) == g.type(first) && below(2)) {
        g.outputs.push_back(other);
        break;
      }
    std::vector<int64_t> sizes;
    for (size_t i = 0; i < g.outputs.size(); ++i)
      sizes.push_back(3 + below(40));
    if (g.type(first).elements() <= 1) continue;
    const bool said = known(g, sizes), is = differ(g, inputs, sizes);
    INFO("seed " << seed << "\n" << ir::print(g));
    if (said) CHECK(is);
    found += said;
    equal += is && !said;
  }
  // It is no test if little is known; what is not known is by chance.
  CHECK(found > 100);
  MESSAGE(found << " known, " << equal << " not");
}

namespace {

int count(const Graph& graph, Op op) {
  int out = 0;
  for (const ir::Node& node : graph.nodes) out += node.op == op;
  return out;
}

/// The gradient of x with u at positions `make` of 9.
template <class Make>
Graph gradient_of_update(int64_t updates, Make make) {
  Graph g;
  const NodeId x = g.add_input({DType::F32, {9}}),
               u = g.add_input({DType::F32, {updates}}),
               keys = g.add_input({DType::F32, {9}});
  const NodeId at = make(g, keys);
  g.outputs = {g.add(Op::scatter, {x, u, at}, ir::IndexAttrs{{0}, true})};
  const auto back = vjp(g, {{true, true, false}});
  REQUIRE(std::holds_alternative<Graph>(back));
  return cse_dce(simplify(std::get<Graph>(back)));
}

}  // namespace

TEST_CASE("the gradient of an update asks who won only where two may") {
  const auto steps = [](Graph& g, NodeId) {
    const ir::Type type{DType::I32, {4}};
    const NodeId two =
        g.add_constant(type, element_bytes(DType::I32, int64_t{2}));
    return g.add(Op::mul, {g.add(Op::iota, {}, ir::IotaAttrs{type, 0}), two});
  };
  CHECK(count(gradient_of_update(4, steps), Op::eq) == 0);
  const auto order = [](Graph& g, NodeId keys) {
    return g.add(Op::argsort, {keys});
  };
  CHECK(count(gradient_of_update(9, order), Op::eq) == 0);
  const auto unknown = [](Graph& g, NodeId keys) {
    return g.add(Op::cast, {keys}, ir::CastAttrs{DType::I32});
  };
  CHECK(count(gradient_of_update(9, unknown), Op::eq) == 1);
}

TEST_CASE("to add to zeros at different positions is to set") {
  const auto simplified = [](const char* text) {
    return simplify(*ir::parse(text));
  };
  const Graph set = simplified(
      "%0: f32[6] = input\n%1: f32[6] = input\n%2: i32[6] = argsort %0\n"
      "%3: f32[6] = constant 0\n"
      "%4: f32[6] = scatter_add %3, %1, %2 axes=[0] checked=false\nreturn "
      "%4\n");
  CHECK(count(set, Op::scatter_add) == 0);
  CHECK(count(set, Op::scatter) == 1);
  // 0 + -0.0 is 0.0.
  const std::vector<HostArray> inputs = {
      array(DType::F32, {6}, {3, 1, 2, 9, 7, 8}),
      array(DType::F32, {6}, {-0.0, 1, -2, 3, -0.0, 5})};
  const Graph summed = *ir::parse(
      "%0: f32[6] = input\n%1: f32[6] = input\n%2: i32[6] = argsort %0\n"
      "%3: f32[6] = constant 0\n"
      "%4: f32[6] = scatter_add %3, %1, %2 axes=[0] checked=false\nreturn "
      "%4\n");
  CHECK(same_bits(outputs_of(set, inputs)[0], outputs_of(summed, inputs)[0]));
  const Graph unknown = simplified(
      "%0: i32[6] = input\n%1: f32[6] = input\n%2: f32[6] = constant 0\n"
      "%3: f32[6] = scatter_add %2, %1, %0 axes=[0] checked=false\nreturn "
      "%3\n");
  CHECK(count(unknown, Op::scatter_add) == 1);
}
