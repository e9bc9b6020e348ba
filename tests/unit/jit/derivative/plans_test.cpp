// What the gradients of loops and of members are in a plan: how much a turn
// touches, how often members meet, how much is kept.
#include <doctest/doctest.h>

#include <algorithm>
#include <set>

#include "jit/derivative/derivative.h"
#include "jit/ir/kinds.h"
#include "jit/kernel/kernel.h"
#include "jit/plan/fuse.h"
#include "jit/target/generate_cpu.h"
#include "tests/unit/jit/compiled.h"

using namespace unisono;
using namespace unisono::jit;
using namespace unisono::jit::testing;
using ir::NodeId;
using ir::Op;
using ir::Shape;
using ir::Type;

namespace {

/// The optimised graph of values and gradients by all floats.
Graph gradient(const Graph& graph) {
  DerivativeSpec spec;
  for (const ir::Type& type : graph.input_types())
    spec.inputs.push_back(is_floating(type.dtype));
  auto result = vjp(graph, spec);
  REQUIRE(std::holds_alternative<Graph>(result));
  return optimise(std::get<Graph>(result));
}

PlanSteps steps_of(const Graph& graph) {
  CpuGenerator generator({});
  PlanSteps steps;
  on_deep_stacks(1, [&](size_t) {
    steps = fuse(graph, true, generator.lowering()).steps;
  });
  return steps;
}

/// The most elements that a step in a turn of a loop goes over: a copy's, a
/// product's result, the points of a kernel's nest.
int64_t most_in_turn(const PlanSteps& steps, bool in_turn = false) {
  int64_t most = 0;
  const auto see = [&](int64_t elements) { most = std::max(most, elements); };
  for (const PlanStep& step : steps) {
    if (const auto* loop = std::get_if<LoopTask>(&step.what)) {
      see(most_in_turn(*loop->condition, true));
      see(most_in_turn(*loop->body, true));
    } else if (const auto* branch = std::get_if<IfTask>(&step.what)) {
      see(most_in_turn(*branch->then_steps, in_turn));
      see(most_in_turn(*branch->else_steps, in_turn));
    } else if (!in_turn) {
      continue;
    } else if (const auto* copy = std::get_if<CopyStep>(&step.what)) {
      see(copy->bytes / 8);
    } else if (const auto* dot = std::get_if<DotTask>(&step.what)) {
      see(dot->shape.batch * dot->shape.m * dot->shape.n);
    } else if (const auto* kernel = std::get_if<Kernel>(&step.what)) {
      for (const Nest& nest : kernel->nests) see(nest.points());
    }
  }
  return most;
}

int loops_of_steps(const PlanSteps& steps) {
  return static_cast<int>(std::ranges::count_if(steps, [](const auto& step) {
    return std::holds_alternative<LoopTask>(step.what);
  }));
}

/// The bytes of all stacks of a graph's loops.
int64_t stacked_bytes(const Graph& graph) {
  int64_t bytes = 0;
  for (const ir::Node& node : graph.nodes) {
    const auto* a = std::get_if<ir::LoopAttrs>(&node.attrs);
    if (!a || !a->is_counted()) continue;
    for (int i = a->carries; i < ir::result_count(node); ++i)
      bytes += ir::result_type(node, i).bytes();
  }
  return bytes;
}

constexpr int64_t elements = 10'000;
Type f64(Shape shape) { return {DType::F64, std::move(shape)}; }

NodeId project(Graph& g, NodeId control, int index) {
  return g.add(Op::project, {control}, ir::ProjectAttrs{index});
}

/// A counted loop over operands, which are carries, rows and captures.
NodeId counted(Graph& g, int64_t turns, int carries, int rows, Graph body,
               std::vector<NodeId> operands) {
  ir::LoopAttrs a;
  a.turns = turns;
  a.carries = carries;
  a.rows = rows;
  a.body = std::make_shared<const Graph>(std::move(body));
  return g.add(Op::loop, std::move(operands), a);
}

/// The parameters of the body of array_loop.
struct Turn {
  NodeId t, y, s, x, w;
};
struct Next {
  NodeId y, s;
};
/// 1,000 turns over an array y and a number s, which are carries; x, as long as
/// y, and the matrix w are captures. `large`: with a product, so that it does
/// not become one function.
template <class Make>
Graph array_loop(bool large, Make make) {
  Graph body;
  const Turn turn{body.add_input({DType::I64, {}}),
                  body.add_input(f64({elements})), body.add_input(f64({})),
                  body.add_input(f64({elements})),
                  body.add_input(f64({20, 20}))};
  Next next = make(body, turn);
  if (large) {
    const NodeId row =
        body.add(Op::broadcast, {next.s}, ir::BroadcastAttrs{{20}, {}});
    const NodeId product =
        body.add(Op::dot, {row, turn.w}, ir::DotAttrs{{}, {}, {0}, {0}});
    next.s = body.add(Op::sum, {body.add(Op::tanh, {product})},
                      ir::ReduceAttrs{{0}});
  }
  body.outputs = {next.y, next.s};
  Graph g;
  const NodeId y = g.add_input(f64({elements})), s = g.add_input(f64({})),
               x = g.add_input(f64({elements})), w = g.add_input(f64({20, 20}));
  const NodeId loop = counted(g, 1000, 2, 0, std::move(body), {y, s, x, w});
  g.outputs = {project(g, loop, 0), project(g, loop, 1)};
  return g;
}

const ir::IndexAttrs at_first{{0}, true};

NodeId later(Graph& g, NodeId t, int64_t by) {
  return g.add(Op::add, {t, g.add_constant({DType::I64, {}},
                                           element_bytes(DType::I64, by))});
}

void check_turns(const char* what, bool large, const Graph& graph) {
  CAPTURE(what);
  CAPTURE(large);
  const Graph both = gradient(graph);
  const PlanSteps steps = steps_of(both);
  // A large turn's loops are steps; those of a small one may be kernels.
  if (large) {
    CHECK(loops_of_steps(steps) == 2);
    CHECK(most_in_turn(steps) > 0);
  }
  // w has 400 elements.
  CHECK(most_in_turn(steps) <= 400);
}

}  // namespace

TEST_CASE("a turn of a gradient touches no whole array") {
  for (const bool large : {false, true}) {
    check_turns("y[t] = v", large, array_loop(large, [](Graph& g, Turn in) {
                  const NodeId v = g.add(Op::sin, {in.s});
                  return Next{g.add(Op::scatter, {in.y, v, in.t}, at_first),
                              g.add(Op::mul, {v, v})};
                }));
    check_turns("x[t]", large, array_loop(large, [](Graph& g, Turn in) {
                  const NodeId v = g.add(Op::gather, {in.x, in.t}, at_first);
                  return Next{in.y,
                              g.add(Op::sin, {g.add(Op::add, {in.s, v})})};
                }));
    check_turns(
        "y[t + 1] = f(y[t], x[t])", large,
        array_loop(large, [](Graph& g, Turn in) {
          const NodeId v = g.add(Op::gather, {in.x, in.t}, at_first),
                       b = g.add(Op::gather, {in.y, in.t}, at_first);
          const NodeId next =
              g.add(Op::mul, {g.add(Op::sin, {b}), g.add(Op::mul, {v, in.s})});
          return Next{
              g.add(Op::scatter, {in.y, next, later(g, in.t, 1)}, at_first),
              g.add(Op::cos, {next})};
        }));
    check_turns("y[t] += v", large, array_loop(large, [](Graph& g, Turn in) {
                  const NodeId v = g.add(Op::exp, {in.s});
                  return Next{g.add(Op::scatter_add, {in.y, v, in.t}, at_first),
                              g.add(Op::tanh, {in.s})};
                }));
  }
}

TEST_CASE("a weight that is read often meets once") {
  // h = tanh(h * w + x) in five turns, then sin(h * w) + w: five reads.
  const auto make = [](int64_t members) {
    Graph body;
    body.add_input({DType::I64, {}});
    for (int i = 0; i < 3; ++i) body.add_input(f64({2}));
    body.outputs = {body.add(
        Op::tanh, {body.add(Op::add, {body.add(Op::mul, {1, 3}), 2})})};
    Graph g;
    const NodeId h = g.add_input(f64({2})), x = g.add_input(f64({2})),
                 w = g.add_input(f64({2}));
    const NodeId loop = counted(g, 5, 1, 0, std::move(body), {h, x, w});
    const NodeId last = project(g, loop, 0);
    const NodeId more = g.add(Op::sin, {g.add(Op::mul, {last, w})});
    g.outputs = {g.add(Op::add, {g.add(Op::mul, {more, w}),
                                 g.add(Op::exp, {g.add(Op::mul, {x, w})})})};
    DerivativeSpec spec{{false, false, true}};
    spec.axes = {{1, members}};
    spec.varies = {{1}, {1}, {}};
    auto backward = vjp(g, spec);
    REQUIRE(std::holds_alternative<Graph>(backward));
    return std::get<Graph>(backward);
  };
  for (const int devices : {3, 4}) {
    const Graph g = make(devices);
    Bench bench(0, devices);
    CompileStats stats;
    std::vector<Arrays> inputs;
    RandomGraph random(2, {});
    for (int d = 0; d < devices; ++d) {
      inputs.push_back(random.random_inputs(g));
      inputs.back()[2] = inputs[0][2];
    }
    const auto got = bench.run_all(g, inputs, {}, &stats);
    REQUIRE_MESSAGE(got, (got ? "" : got.error().message));
    CHECK(stats.collectives == 1);
    const auto expected = evaluate_members(g, 1, inputs);
    REQUIRE(expected);
    for (int d = 0; d < devices; ++d)
      for (size_t i = 0; i < g.outputs.size(); ++i)
        CHECK(same_values((*got)[d][i], (*expected)[d][i]));
  }
}

TEST_CASE("stacks hold little more than the minimum cut") {
  constexpr int64_t turns = 1000, n = 64;
  // `least`: floats that have to be kept of each turn.
  const auto check = [](const char* what, const Graph& graph, int64_t least,
                        int64_t of_values) {
    CAPTURE(what);
    const Graph both = gradient(graph);
    const int64_t bytes = turns * least * 8;
    CHECK(stacked_bytes(both) - of_values >= bytes);
    CHECK(stacked_bytes(both) - of_values <= bytes * 12 / 10);
    Compiler compiler;
    auto program = compiler.compile(both, {});
    REQUIRE_MESSAGE(program, (program ? "" : program.error().message));
    // And nothing of that size besides, but for operands and results.
    CHECK((*program)->arena_bytes <= bytes * 12 / 10 + 16 * n * n * 8);
  };
  {  // h = tanh(h * w + x[t]): h.
    Graph body;
    body.add_input({DType::I64, {}});
    for (int i = 0; i < 3; ++i) body.add_input(f64({n}));
    body.outputs = {body.add(
        Op::tanh, {body.add(Op::add, {body.add(Op::mul, {1, 3}), 2})})};
    Graph g;
    const NodeId h = g.add_input(f64({n})), x = g.add_input(f64({turns, n})),
                 w = g.add_input(f64({n}));
    g.outputs = {
        project(g, counted(g, turns, 1, 1, std::move(body), {h, x, w}), 0)};
    check("recurrence", g, n, turns * n * 8);  // the gradient of x is a stack
  }
  {  // Lorenz: x, y, z.
    Graph body;
    body.add_input({DType::I64, {}});
    for (int i = 0; i < 4; ++i) body.add_input(f64({}));
    const auto mul = [&](NodeId a, NodeId b) {
      return body.add(Op::mul, {a, b});
    };
    const auto add = [&](NodeId a, NodeId b) {
      return body.add(Op::add, {a, b});
    };
    const auto sub = [&](NodeId a, NodeId b) {
      return body.add(Op::sub, {a, b});
    };
    const NodeId x = 1, y = 2, z = 3, k = 4;
    body.outputs = {add(x, mul(k, sub(y, x))),
                    add(y, mul(k, sub(mul(x, sub(k, z)), y))),
                    add(z, mul(k, sub(mul(x, y), z)))};
    Graph g;
    std::vector<NodeId> in;
    for (int i = 0; i < 4; ++i) in.push_back(g.add_input(f64({})));
    const NodeId loop = counted(g, turns, 3, 0, std::move(body), in);
    for (int i = 0; i < 3; ++i) g.outputs.push_back(project(g, loop, i));
    check("lorenz", g, 3, 0);
  }
  {  // h = tanh(h @ w): h before the turn, which also gives h of the last one,
     // and the cotangent of the product.
    Graph body;
    body.add_input({DType::I64, {}});
    body.add_input(f64({n}));
    body.add_input(f64({n, n}));
    body.outputs = {body.add(
        Op::tanh, {body.add(Op::dot, {1, 2}, ir::DotAttrs{{}, {}, {0}, {0}})})};
    Graph g;
    const NodeId h = g.add_input(f64({n})), w = g.add_input(f64({n, n}));
    g.outputs = {
        project(g, counted(g, turns, 1, 0, std::move(body), {h, w}), 0)};
    check("h @ w", g, 3 * n, 0);
  }
}

TEST_CASE("the gradient by a loop's weights is one product for all turns") {
  // h = tanh(h @ w + x[t] @ u + v), h of `members` rows.
  const auto make = [](int64_t members) {
    constexpr int64_t turns = 200, n = 48, m = 32;
    Graph body;
    body.add_input({DType::I64, {}});
    const NodeId h = body.add_input(f64({members, n})),
                 x = body.add_input(f64({members, m})),
                 w = body.add_input(f64({n, n})),
                 u = body.add_input(f64({m, n})), v = body.add_input(f64({n}));
    const ir::DotAttrs rows{{}, {}, {1}, {0}};
    const NodeId sum = body.add(Op::add, {body.add(Op::dot, {h, w}, rows),
                                          body.add(Op::dot, {x, u}, rows)});
    const NodeId shift =
        body.add(Op::broadcast, {v}, ir::BroadcastAttrs{{members, n}, {1}});
    body.outputs = {body.add(Op::tanh, {body.add(Op::add, {sum, shift})})};
    Graph g;
    std::vector<NodeId> in;
    for (const Shape& shape : {Shape{members, n}, Shape{turns, members, m},
                               Shape{n, n}, Shape{m, n}, Shape{n}})
      in.push_back(g.add_input(f64(shape)));
    g.outputs = {
        project(g, counted(g, turns, 1, 1, std::move(body), std::move(in)), 0)};
    return g;
  };
  const auto dots = [](const Graph& g) {
    return std::ranges::count_if(
        g.nodes, [](const ir::Node& node) { return node.op == Op::dot; });
  };
  for (const int64_t members : {1, 3}) {
    const Graph both = gradient(make(members));
    CHECK(dots(both) == 2);  // by w and by u
    // And no turn computes anything as large as the weights.
    for (const ir::Node& node : both.nodes)
      if (const auto* loop = std::get_if<ir::LoopAttrs>(&node.attrs))
        for (const ir::Node& inside : loop->body->nodes)
          if (inside.op != Op::input)
            CHECK(inside.type.elements() <= members * 48);
    Bench bench;
    RandomGraph random(3, {});
    CHECK(difference(bench, both, random.random_inputs(both)) == "");
  }
  // To keep what 64 members are multiplied by takes more than the sums.
  CHECK(dots(gradient(make(64))) == 0);
}

TEST_CASE("parts beside one another come back as a concat, in one nest") {
  // A butterfly of two halves, and its gradient: another one.
  const auto graph = ir::parse(R"(%0: f64[20, 12] = input
%1: f64[10, 12] = slice %0 start=[0, 0] step=[1, 1]
%2: f64[10, 12] = slice %0 start=[10, 0] step=[1, 1]
%3: f64[10, 12] = add %1, %2
%4: f64[10, 12] = sub %1, %2
%5: f64[10, 1, 12] = reshape %3
%6: f64[10, 1, 12] = reshape %4
%7: f64[10, 2, 12] = concat %5, %6 axis=1
return %7
)");
  if (!graph) FAIL(graph.error().message);
  const auto nests = [](const Graph& g) {
    const PlanSteps steps = steps_of(g);
    REQUIRE(steps.size() == 1);
    return std::get<Kernel>(steps[0].what).nests;
  };
  const std::vector<Nest> forward = nests(optimise(*graph));
  REQUIRE(forward.size() == 1);
  CHECK(forward[0].points() == 120);
  CHECK(forward[0].stores.size() == 2);
  const Graph back = gradient(*graph);
  for (const ir::Node& node : back.nodes) CHECK(node.op != Op::pad);
}

TEST_CASE("parts that overlap, or lie apart, are padded or filled") {
  const auto derived = [](const char* text) {
    auto graph = ir::parse(text);
    if (!graph) FAIL(graph.error().message);
    Bench bench;
    const Graph back = gradient(*graph);
    RandomGraph random(5, {});
    CHECK(difference(bench, back, random.random_inputs(back)) == "");
    std::multiset<Op> ops;
    for (const ir::Node& node : back.nodes) ops.insert(node.op);
    return ops;
  };
  const auto apart = derived(R"(%0: f64[9] = input
%1: f64[3] = slice %0 start=[5] step=[1]
%2: f64[3] = slice %0 start=[1] step=[1]
%3: f64[3] = mul %1, %2
return %3
)");
  CHECK(apart.count(Op::concat) == 1);
  CHECK(apart.count(Op::pad) == 0);
  const auto overlap = derived(R"(%0: f64[9] = input
%1: f64[3] = slice %0 start=[3] step=[1]
%2: f64[3] = slice %0 start=[1] step=[1]
%3: f64[3] = mul %1, %2
return %3
)");
  CHECK(overlap.count(Op::concat) == 0);
  CHECK(overlap.count(Op::pad) == 2);
  // Along two axes, and beside a use of the whole.
  const auto mixed = derived(R"(%0: f64[4, 4] = input
%1: f64[2, 4] = slice %0 start=[2, 0] step=[1, 1]
%2: f64[4, 2] = slice %0 start=[0, 1] step=[1, 1]
%3: f64[4, 2] = transpose %1 axes=[1, 0]
%4: f64[4, 2] = mul %2, %3
%5: f64[4, 4] = mul %0, %0
return %4, %5
)");
  CHECK(mixed.count(Op::pad) == 2);
}
