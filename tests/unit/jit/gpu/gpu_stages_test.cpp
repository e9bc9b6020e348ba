// What GPUs do in several kernels: long lines of scans, scatters to few
// columns. Compared with the evaluator, bit for bit.
#include <functional>
#include <random>

#include "jit/scalar/element.h"
#include "tests/unit/jit/compiled.h"
#include "tests/unit/jit/gpu/simulated.h"
#include "tests/unit/jit/op_table/op_table.h"
#include "tests/unit/moved.h"

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
  options.target = code_target(bench.runtime.devices());
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
        CHECK(launches(bench, g) == 2);
        CHECK(difference(bench, g, filled_inputs(g, Fill::numbers, seed)) ==
              "");
      }
  // Blocks of the tree of eleven sizes.
  Graph g;
  const NodeId x = g.add_input({DType::F32, Shape{4096 * 1030 + 5}});
  g.outputs = {g.add(Op::cumsum, {x}, ir::ScanAttrs{0, false})};
  CHECK(launches(bench, g) == 2);
  CHECK(difference(bench, g, filled_inputs(g, Fill::numbers, 1)) == "");
}

TEST_CASE("scans along other axes of few columns on a GPU") {
  Bench bench(simulated_gpus(1));
  uint32_t seed = 0;
  for (DType dtype : {DType::F32, DType::BF16, DType::I64, DType::U8})
    for (const Shape& shape :
         {Shape{255, 3}, Shape{256, 3}, Shape{1024, 2}, Shape{5001, 3},
          Shape{2, 1025, 2, 3}, Shape{300, 33}})
      for (Op op : {Op::cumsum, Op::cumprod, Op::cummax, Op::cummin}) {
        if (!ir::admits(op, dtype)) continue;
        Graph g;
        const Type type{dtype, shape};
        const NodeId x = g.add_input(type);
        const NodeId y = g.add(Op::add, {x, x});
        g.outputs = {
            g.add(op, {y},
                  ir::ScanAttrs{shape.size() == 4 ? 1 : 0, ++seed % 3 == 0})};
        INFO(type.to_string() << " seed " << seed);
        CHECK(launches(bench, g) == 3);
        CHECK(difference(bench, g, filled_inputs(g, Fill::numbers, seed)) ==
              "");
      }
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

TEST_CASE("a scatter of one position on a GPU, in several kernels") {
  const Moved moved(
      [](Tuning& some) { some.gpu_least_scattered_positions = 1; });
  Bench bench(simulated_gpus(1));
  for (DType dtype : {DType::F64, DType::BF16, DType::I32})
    for (const Shape& columns : {Shape{}, Shape{2}})
      for (Op op : {Op::scatter, Op::scatter_add}) {
        Update u{dtype, {3}, {0}, {1}, 3};
        u.array.insert(u.array.end(), columns.begin(), columns.end());
        const Graph g = scatter(op, u);
        INFO(ir::print(g));
        CHECK(difference(bench, g, scatter_inputs(g, u, 3)) == "");
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

namespace {

/// A loop of `turns` over (counter, carries...), whose body `make` fills: it
/// gets the graph, the inputs (counter, carries, captures), and gives the
/// carries' next values.
Graph loop_of(const std::vector<Type>& carries,
              const std::vector<Type>& captures, int32_t turns,
              const std::function<std::vector<NodeId>(
                  Graph&, const std::vector<NodeId>&)>& make) {
  Graph g;
  const Type count{DType::I32, {}};
  auto condition = std::make_shared<Graph>(), body = std::make_shared<Graph>();
  std::vector<NodeId> operands, inside;
  auto add_all = [&](const Type& type) {
    condition->add_input(type);
    inside.push_back(body->add_input(type));
  };
  add_all(count);
  for (const auto* list : {&carries, &captures})
    for (const Type& type : *list) {
      add_all(type);
      operands.push_back(g.add_input(type));
    }
  auto number = [&](Graph& in, int64_t value) {
    return in.add_constant(count, jit::element_bytes(DType::I32, value));
  };
  operands.insert(operands.begin(), number(g, 0));
  condition->outputs = {condition->add(Op::lt, {0, number(*condition, turns)})};
  std::vector<NodeId> next = make(*body, inside);
  next.insert(next.begin(), body->add(Op::add, {inside[0], number(*body, 1)}));
  body->outputs = next;
  const NodeId loop = g.add(
      Op::loop, operands,
      ir::LoopAttrs{condition, body, static_cast<int>(carries.size()) + 1}, 4);
  for (size_t i = 0; i <= carries.size(); ++i)
    g.outputs.push_back(
        g.add(Op::project, {loop}, ir::ProjectAttrs{static_cast<int>(i)}));
  return g;
}

bool has_loop_step(Bench& bench, const Graph& g) {
  CompileOptions options;
  options.target = code_target(bench.runtime.devices());
  auto program = bench.compiler.compile(g, options);
  REQUIRE(program);
  for (const Step& step : (*program)->steps)
    if (std::holds_alternative<LoopStep>(step.what)) return true;
  return false;
}

}  // namespace

TEST_CASE("loops in which points depend on themselves are one kernel") {
  Bench bench(simulated_gpus(1));
  using Nodes = std::vector<NodeId>;
  auto spread = [](Graph& g, NodeId scalar, const Type& type, DType from) {
    NodeId x = scalar;
    if (from != type.dtype) x = g.add(Op::cast, {x}, ir::CastAttrs{type.dtype});
    return g.add(Op::broadcast, {x}, ir::BroadcastAttrs{type.shape, {}});
  };
  for (DType dtype : {DType::F32, DType::F16, DType::I16, DType::F64})
    for (const Shape& shape : {Shape{}, Shape{1000}, Shape{7, 33}})
      for (int turns : {1, 2, 9}) {
        const Type type{dtype, shape};
        // Two carries that need each other, a captured array, the counter.
        const Graph g = loop_of(
            {type, type}, {type}, turns, [&](Graph& b, const Nodes& in) {
              const NodeId i = spread(b, in[0], type, DType::I32);
              const NodeId x = b.add(Op::add, {in[2], i});
              const NodeId y =
                  b.add(Op::sub, {b.add(Op::mul, {in[1], in[3]}), x});
              return Nodes{x, y};
            });
        INFO(ir::print(g));
        CHECK(!has_loop_step(bench, g));
        CHECK(difference(bench, g, filled_inputs(g, Fill::coarse, 3)) == "");
      }
  // Arrays of several shapes and a scalar that all use.
  const Type a{DType::F32, {300}}, c{DType::F32, {4, 9}}, s{DType::F32, {}};
  const Graph several =
      loop_of({a, c, s}, {}, 5, [&](Graph& b, const Nodes& in) {
        const NodeId half = b.add(Op::mul, {in[3], in[3]});
        return Nodes{b.add(Op::add, {in[1], spread(b, in[3], a, DType::F32)}),
                     b.add(Op::mul, {in[2], spread(b, half, c, DType::F32)}),
                     half};
      });
  CHECK(!has_loop_step(bench, several));
  CHECK(difference(bench, several, filled_inputs(several, Fill::numbers, 4)) ==
        "");
}

TEST_CASE("a loop that reads one row after another is one kernel") {
  Bench bench(simulated_gpus(1));
  using Nodes = std::vector<NodeId>;
  const Type state{DType::F32, {500}}, rows{DType::F32, {12, 500}};
  // Up to the last row, and one more, which is an error.
  for (int turns : {12, 13}) {
    const Graph g =
        loop_of({state}, {rows}, turns, [&](Graph& b, const Nodes& in) {
          const NodeId row =
              b.add(Op::gather, {in[2], in[0]}, ir::IndexAttrs{{0}, true}, 8);
          return Nodes{b.add(Op::sub, {row, in[1]})};
        });
    CHECK(has_loop_step(bench, g) == (turns == 13));
    CHECK(difference(bench, g, filled_inputs(g, Fill::numbers, 7)) == "");
  }
}

TEST_CASE("loops in which points depend on others are not one kernel") {
  Bench bench(simulated_gpus(1));
  using Nodes = std::vector<NodeId>;
  const Type a{DType::F32, {300}};
  const auto flipped = [](Graph& b, const Nodes& in) {
    return Nodes{
        b.add(Op::add, {in[1], b.add(Op::flip, {in[1]}, ir::AxesAttrs{{0}})})};
  };
  const auto first = [&](Graph& b, const Nodes& in) {
    const NodeId one =
        b.add(Op::slice, {in[1]}, ir::SliceAttrs{{0}, {1}, Shape{1}});
    const NodeId scalar = b.add(Op::reshape, {one}, ir::ShapeAttrs{{}});
    return Nodes{b.add(Op::add, {in[1], b.add(Op::broadcast, {scalar},
                                              ir::BroadcastAttrs{{300}, {}})})};
  };
  const auto total = [](Graph& b, const Nodes& in) {
    const NodeId sum = b.add(Op::sum, {in[1]}, ir::ReduceAttrs{{0}});
    return Nodes{b.add(Op::add, {in[1], b.add(Op::broadcast, {sum},
                                              ir::BroadcastAttrs{{300}, {}})})};
  };
  for (const std::function<Nodes(Graph&, const Nodes&)>& make :
       {std::function<Nodes(Graph&, const Nodes&)>(flipped),
        {first},
        {total}}) {
    const Graph g = loop_of({a}, {}, 4, make);
    CHECK(has_loop_step(bench, g));
    CHECK(difference(bench, g, filled_inputs(g, Fill::numbers, 5)) == "");
  }
  // Carries that change places.
  const Graph swapped = loop_of({a, a}, {}, 3, [](Graph& b, const Nodes& in) {
    return Nodes{b.add(Op::add, {in[2], in[2]}), in[1]};
  });
  CHECK(difference(bench, swapped, filled_inputs(swapped, Fill::numbers, 6)) ==
        "");
  // So many turns that nobody could stop the kernel.
  const Graph endless =
      loop_of({{DType::I32, {}}}, {}, 1 << 17, [](Graph& b, const Nodes& in) {
        return Nodes{b.add(Op::add, {in[1], in[0]})};
      });
  CHECK(has_loop_step(bench, endless));
}

TEST_CASE("rows that a GPU gathers are read 16 bytes at once") {
  Bench bench(simulated_gpus(1));
  for (DType dtype : {DType::F32, DType::F16, DType::I8, DType::F64}) {
    // Rows that lie aligned, and some that do not.
    for (int64_t width : {64, 36, 35}) {
      Graph g;
      const NodeId x = g.add_input({dtype, Shape{50, 3, width}});
      const NodeId at = g.add_input({DType::I32, Shape{400}});
      const NodeId rows =
          g.add(Op::gather, {x, at}, ir::IndexAttrs{{0}, true}, 3);
      g.outputs = {g.add(Op::add, {rows, rows})};
      Arrays inputs = filled_inputs(g, Fill::numbers, 2);
      std::vector<double> indices = values_of(inputs[1]);
      for (size_t i = 0; i < indices.size(); ++i)
        indices[i] = static_cast<double>(i * 7 % 100) - 50;
      inputs[1] = array(DType::I32, {400}, indices);
      CHECK(difference(bench, g, inputs) == "");
      CompileOptions options;
      options.target = {DeviceKind::gpu, {80}};
      auto program = bench.compiler.compile(g, options);
      REQUIRE(program);
      const std::string& ptx = std::get<LaunchStep>((*program)->steps[0].what)
                                   .grid->code->images[0]
                                   .ptx;
      const bool wide = ptx.find("ld.global.v") != std::string::npos;
      const int64_t lanes = 16 / byte_size(dtype);
      CHECK(wide == (3 * width % lanes == 0));
      // The first bad row is the one reported.
      indices[100] = 77, indices[300] = 60;
      inputs[1] = array(DType::I32, {400}, indices);
      auto failed = bench.run(g, inputs);
      REQUIRE(!failed);
      CHECK(failed.error().message.find("77") != std::string::npos);
    }
  }
}
