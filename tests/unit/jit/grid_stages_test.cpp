// What GPUs do in several kernels: long lines of scans, scatters to few
// columns. Compared with the evaluator, bit for bit.
#include <random>

#include "tests/unit/jit/compiled.h"
#include "tests/unit/jit/op_table.h"
#include "tests/unit/jit/simulated.h"

using namespace unisono;
using namespace unisono::jit;
using namespace unisono::jit::testing;
using ir::Graph;
using ir::NodeId;
using ir::Op;
using ir::Shape;
using ir::Type;

namespace {

/// Launches of the graph's program.
int launches(Bench& bench, const Graph& g) {
  CompileOptions options;
  options.capabilities = capabilities(bench.runtime.devices());
  auto program = bench.compiler.compile(g, options);
  REQUIRE(program);
  int count = 0;
  for (const Step& step : (*program)->steps)
    count += std::holds_alternative<LaunchStep>(step.what);
  return count;
}

Arrays filled_inputs(const Graph& g, Fill fill, uint32_t seed) {
  std::mt19937 random(seed);
  Arrays out;
  for (NodeId input : g.inputs)
    out.push_back(filled(g.type(input), fill, random));
  return out;
}

}  // namespace

TEST_CASE("scans along long lines on a GPU") {
  Bench bench(simulated_gpus(1));
  uint32_t seed = 0;
  for (DType dtype :
       {DType::F32, DType::F16, DType::I64, DType::U8, DType::F64})
    for (const Shape& shape :
         {Shape{16384}, Shape{20001}, Shape{3, 12289}, Shape{2, 2, 13000}})
      for (Op op : {Op::cumsum, Op::cummax}) {
        if (!ir::admits(op, dtype)) continue;
        Graph g;
        const Type type{dtype, shape};
        const NodeId x = g.add_input(type);
        const NodeId y = g.add(Op::add, {x, x});
        g.outputs = {
            g.add(op, {y}, ir::ScanAttrs{type.rank() - 1, ++seed % 3 == 0})};
        INFO(type.to_string() << " seed " << seed);
        CHECK(launches(bench, g) == 3);
        CHECK(difference(bench, g, filled_inputs(g, Fill::numbers, seed)) ==
              "");
      }
  // More totals than are folded at once.
  Graph g;
  const NodeId x = g.add_input({DType::F32, Shape{4096 * 1030 + 5}});
  g.outputs = {g.add(Op::cumsum, {x}, ir::ScanAttrs{0, false})};
  CHECK(launches(bench, g) == 3);
  CHECK(difference(bench, g, filled_inputs(g, Fill::numbers, 1)) == "");
}

namespace {

struct Update {
  DType dtype;
  Shape array;
  std::vector<int> axes;  // that are indexed
  Shape positions;
  int64_t distinct;  // targets that are met
};

/// scatter or scatter_add of one array into another, where positions repeat.
Graph scatter(Op op, const Update& u, bool checked = true) {
  Graph g;
  Shape part = u.positions;
  for (int i = 0; i < static_cast<int>(u.array.size()); ++i)
    if (std::find(u.axes.begin(), u.axes.end(), i) == u.axes.end())
      part.push_back(u.array[static_cast<size_t>(i)]);
  std::vector<NodeId> inputs = {g.add_input({u.dtype, u.array}),
                                g.add_input({u.dtype, part})};
  for (size_t i = 0; i < u.axes.size(); ++i)
    inputs.push_back(g.add_input({DType::I32, u.positions}));
  g.outputs = {g.add(op, inputs, ir::IndexAttrs{u.axes, checked}, 5)};
  return g;
}

Arrays scatter_inputs(const Graph& g, const Update& u, uint32_t seed) {
  Arrays out = filled_inputs(g, Fill::numbers, seed);
  std::mt19937 random(seed);
  for (size_t i = 0; i < u.axes.size(); ++i) {
    HostArray& x = out[2 + i];
    std::vector<double> values = values_of(x);
    const int64_t size = u.array[static_cast<size_t>(u.axes[i])].value();
    for (double& value : values) {
      const int64_t at = static_cast<int64_t>(random()) % u.distinct % size;
      value = static_cast<double>(random() % 2 ? at : at - size);
    }
    x = array(DType::I32, x.type.sizes(), values);
  }
  return out;
}

}  // namespace

TEST_CASE("scatters to few columns on a GPU") {
  Bench bench(simulated_gpus(1));
  const Update updates[] = {
      {DType::F32, {1000}, {0}, {3000}, 50},
      {DType::F32, {50}, {0}, {5000}, 3},  // long sums
      {DType::F32, {100'000}, {0}, {500}, 100'000},
      {DType::F16, {300}, {0}, {2000}, 300},
      {DType::BF16, {7, 33}, {0}, {40, 9}, 7},
      {DType::F64, {64, 5}, {0}, {700}, 64},
      {DType::F32, {9, 20, 11}, {0, 2}, {25, 31}, 11},
      {DType::F32, {9, 20, 11}, {2, 1}, {900}, 20},
      {DType::I32, {1000}, {0}, {4000}, 60},
      {DType::I64, {30, 12}, {1}, {600}, 12},
      {DType::U32, {5, 6}, {0, 1}, {999}, 6},
      {DType::I8, {90}, {0}, {2500}, 90},
      {DType::U16, {90, 3}, {0}, {2500}, 90},
  };
  uint32_t seed = 0;
  for (const Update& u : updates)
    for (Op op : {Op::scatter, Op::scatter_add})
      for (bool checked : {true, false}) {
        const Graph g = scatter(op, u, checked);
        INFO(ir::print(g));
        const bool at_once = op == Op::scatter_add &&
                             (u.dtype == DType::I32 || u.dtype == DType::I64 ||
                              u.dtype == DType::U32);
        CHECK((launches(bench, g) > 1) == !at_once);
        CHECK(difference(bench, g, scatter_inputs(g, u, ++seed), checked) ==
              "");
      }
}

TEST_CASE("the first bad index of a scatter on a GPU is the one reported") {
  Bench bench(simulated_gpus(1, "seed=3"));
  const Update u{DType::F32, {100}, {0}, {4000}, 100};
  for (Op op : {Op::scatter, Op::scatter_add}) {
    const Graph g = scatter(op, u);
    Arrays inputs = scatter_inputs(g, u, 1);
    std::vector<double> indices = values_of(inputs[2]);
    for (size_t i = 1234; i < indices.size(); i += 7)
      indices[i] = static_cast<double>(200 + i);
    inputs[2] = array(DType::I32, inputs[2].type.sizes(), indices);
    auto failed = bench.run(g, inputs);
    REQUIRE(!failed);
    CHECK(failed.error().kind == Error::Kind::index_out_of_bounds);
    CHECK(failed.error().message.find("1434") != std::string::npos);
    CHECK(failed.error().source == 5);
  }
}
