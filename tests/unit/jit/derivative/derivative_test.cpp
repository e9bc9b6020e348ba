// Derivatives, for every row of the table of operations that has floats.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <numeric>

#include "jit/ir/kinds.h"
#include "jit/ir/text.h"
#include "jit/scalar/element.h"
#include "tests/unit/jit/derivative/check_derivative.h"

using namespace unisono;
using namespace unisono::jit;
using namespace unisono::jit::testing;
using ir::Graph;
using ir::NodeId;
using ir::Op;
using ir::Shape;
using ir::Type;

namespace {

Type f64(Shape shape) { return {DType::F64, std::move(shape)}; }

/// Checks a graph of these inputs, and notes that an operation has a case.
class Table {
 public:
  std::mt19937 random{7};

  void check(Op op, const DerivativeCase& c, bool second = true) {
    const int number = cases_[op]++;
    const auto wrong = wrong_derivative(c, random, second);
    INFO(ir::name(op));
    CHECK_MESSAGE(!wrong, *wrong);
    // In other types, too; compiled in each type for some of the cases.
    constexpr DType types[] = {DType::F32, DType::F64, DType::F16, DType::BF16};
    for (const DType dtype : types) {
      const bool compiled = types[number % 4] == dtype;
      if (dtype == DType::F64 && !compiled) continue;
      const auto wrong_there = wrong_in_type(c, dtype, random, compiled);
      CHECK_MESSAGE(!wrong_there, *wrong_there);
    }
  }
  /// A graph over f64 inputs of these shapes, with numbers in an interval.
  template <class Make>
  void check(Op op, const std::vector<Shape>& shapes, double low, double high,
             Make make, bool second = true) {
    DerivativeCase c;
    c.inputs.emplace_back();
    std::vector<NodeId> inputs;
    for (const Shape& shape : shapes) {
      inputs.push_back(c.graph.add_input(f64(shape)));
      c.inputs[0].push_back(numbers(shape, low, high, random));
    }
    c.graph.outputs = {make(c.graph, inputs)};
    check(op, c, second);
    check_layout(op, shapes, low, high, make);
  }
  /// The same of operands that are moves of the inputs, each time others.
  template <class Make>
  void check_layout(Op op, const std::vector<Shape>& shapes, double low,
                    double high, Make make) {
    DerivativeCase c;
    c.inputs.emplace_back();
    std::vector<std::function<NodeId()>> operands;
    for (const Shape& shape : shapes)
      operands.push_back(input_as(c, shape, low, high));
    std::vector<NodeId> inputs;
    for (const auto& operand : operands) inputs.push_back(operand());
    c.graph.outputs = {make(c.graph, inputs)};
    check(op, c, false);
  }
  /// The same with members, of whom all have the inputs in `shared` alike.
  template <class Make>
  void check_members(Op op, int64_t members, const std::vector<Shape>& shapes,
                     const std::vector<bool>& shared, Make make,
                     bool smooth = true) {
    DerivativeCase c;
    c.smooth = smooth;
    c.shared = shared;
    c.inputs.resize(static_cast<size_t>(members));
    std::vector<NodeId> inputs;
    for (size_t i = 0; i < shapes.size(); ++i) {
      inputs.push_back(c.graph.add_input(f64(shapes[i])));
      for (auto& member : c.inputs)
        member.push_back(shared[i] && &member != c.inputs.data()
                             ? c.inputs[0][i]
                             : numbers(shapes[i], -2, 2, random));
    }
    c.graph.outputs = make(c.graph, inputs);
    check(op, c);
  }
  bool has(Op op) const { return cases_.contains(op); }

 private:
  /// Adds an input, of which a move has the shape; that is made later, behind
  /// all inputs.
  std::function<NodeId()> input_as(DerivativeCase& c, const Shape& shape,
                                   double low, double high) {
    const size_t rank = shape.size();
    std::vector<int> axes(rank);
    std::iota(axes.begin(), axes.end(), 0);
    Shape from = shape;
    Op move = Op::reshape;
    ir::Attrs attrs = ir::ShapeAttrs{shape};
    switch (layout_++ % 5) {
      case 0:
        std::ranges::reverse(from);
        std::ranges::reverse(axes);
        move = Op::transpose;
        attrs = ir::AxesAttrs{axes};
        break;
      case 1:
        move = Op::flip;
        attrs = ir::AxesAttrs{axes};
        break;
      case 2: {  // every second one, but for the first
        for (ir::Dim& size : from) size = 2 * size.value() + 1;
        move = Op::slice;
        attrs = ir::SliceAttrs{Shape(rank, 1), Shape(rank, 2), shape};
        break;
      }
      case 3:
        if (rank > 0) from[rank - 1] = 1;
        move = Op::broadcast;
        attrs = ir::BroadcastAttrs{shape, axes};
        break;
      default: from = {f64(shape).elements()}; break;
    }
    const NodeId input = c.graph.add_input(f64(from));
    c.inputs[0].push_back(numbers(from, low, high, random));
    return [&graph = c.graph, input, move, attrs] {
      return graph.add(move, {input}, attrs);
    };
  }

  std::map<Op, int> cases_;
  int layout_ = 0;
};

const std::vector<Shape> shapes = {{},     {7},       {1},         {0},
                                   {2, 5}, {2, 3, 4}, {2, 1, 3, 2}};

void check_maps(Table& table) {
  for (const ir::Row& row : ir::all_rows()) {
    if (row.kind != ir::Kind::map || !ir::admits(row.op, DType::F64)) continue;
    if (row.op == Op::select || row.op == Op::cast || row.op == Op::fma)
      continue;
    auto [low, high] = row.domain;
    // Where second differences are still exact, and away from kinks.
    low = std::max(low, -3.0);
    high = std::min(high, 4.0);
    if (low >= high) high = low + 3;
    const double inset = (high - low) * 0.04;
    for (const Shape& shape : shapes) {
      const std::vector<Shape> operands(static_cast<size_t>(row.operands),
                                        shape);
      if (row.op == Op::polygamma || row.op == Op::stop_gradient) continue;
      table.check(row.op, operands, low + inset, high - inset,
                  [&](Graph& g, const std::vector<NodeId>& x) {
                    const NodeId r = g.add(row.op, x);
                    if (g.type(r).dtype == DType::F64) return r;
                    return g.add(Op::select, {r, x[0], g.add(Op::neg, {x[0]})});
                  });
    }
  }
}

}  // namespace

TEST_CASE("derivatives: maps") {
  Table table;
  check_maps(table);
  for (const Shape& shape : shapes) {
    table.check(Op::fma, {shape, shape, shape}, -2, 2,
                [](Graph& g, const auto& x) { return g.add(Op::fma, x); });
    table.check(Op::select, {shape, shape}, -2, 2, [](Graph& g, const auto& x) {
      const NodeId c = g.add(Op::lt, {x[0], x[1]});
      return g.add(Op::select, {c, x[0], g.add(Op::mul, x)});
    });
    table.check(Op::cast, {shape}, -2, 2, [](Graph& g, const auto& x) {
      return g.add(Op::cast, x, ir::CastAttrs{DType::F64});
    });
  }
  // By its second operand: the first is the number of a derivative.
  for (const Shape& shape : shapes)
    for (const double order : {0.0, 1.0, 2.0, 5.0})
      table.check(
          Op::polygamma, {shape}, 0.3, 4, [order](Graph& g, const auto& x) {
            const NodeId n =
                g.add_constant(g.type(x[0]), element_bytes(DType::F64, order));
            return g.add(Op::polygamma, {n, x[0]});
          });
  for (const ir::Row& row : ir::all_rows())
    if (row.kind == ir::Kind::map && ir::admits(row.op, DType::F64) &&
        row.op != Op::stop_gradient)
      CHECK_MESSAGE(table.has(row.op), row.name);
}

TEST_CASE("derivatives: none, and none known") {
  const auto graph = [](Op op) {
    Graph g;
    g.add_input(f64({2}));
    g.outputs = {g.add(op, {0})};
    return g;
  };
  std::mt19937 random(2);
  const auto stopped = vjp(graph(Op::stop_gradient), {{true}});
  const auto out =
      evaluate(std::get<Graph>(stopped),
               {numbers({2}, 1, 2, random), numbers({2}, 1, 2, random)});
  REQUIRE(out);
  CHECK((*out)[1].bytes == numbers({2}, 0, 0, random).bytes);
  for (const auto mode : {jvp, vjp}) {
    Graph order;
    order.add_input(f64({2}));
    order.outputs = {order.add(Op::polygamma, {0, 0})};
    const auto none = mode(order, {{true}});
    REQUIRE(std::holds_alternative<NoDerivative>(none));
    CHECK(std::get<NoDerivative>(none).why == NoDerivative::Why::no_factor);
    CHECK(std::get<NoDerivative>(none).op == Op::polygamma);
  }
}

TEST_CASE("derivatives: reductions and scans") {
  Table table;
  for (const ir::Row& row : ir::all_rows()) {
    if (!ir::admits(row.op, DType::F64)) continue;
    for (const Shape& shape : shapes) {
      const int rank = static_cast<int>(shape.size());
      if (row.kind == ir::Kind::reduce) {
        for (int bits = 0; bits < 1 << rank; ++bits) {
          ir::ReduceAttrs attrs;
          for (int i = 0; i < rank; ++i)
            if (bits >> i & 1) attrs.axes.push_back(i);
          table.check(row.op, {shape}, -2, 2, [&](Graph& g, const auto& x) {
            return g.add(row.op, x, attrs);
          });
        }
      }
      if (row.kind == ir::Kind::scan)
        for (int axis = 0; axis < rank; ++axis)
          for (const bool reverse : {false, true})
            table.check(row.op, {shape}, -2, 2, [&](Graph& g, const auto& x) {
              return g.add(row.op, x, ir::ScanAttrs{axis, reverse});
            });
      if (row.op == Op::sort && rank > 0)
        table.check(row.op, {shape}, -2, 2, [&](Graph& g, const auto& x) {
          return g.add(Op::mul, {g.add(Op::sort, x), g.add(Op::sort, x)});
        });
    }
  }
  // Zeros among the factors.
  DerivativeCase zeros;
  const NodeId x = zeros.graph.add_input(f64({4}));
  zeros.graph.outputs = {zeros.graph.add(Op::prod, {x}, ir::ReduceAttrs{{0}}),
                         zeros.graph.add(Op::cumprod, {x}, ir::ScanAttrs{})};
  zeros.inputs = {{numbers({4}, 0, 0, table.random)}};
  table.check(Op::prod, zeros);
}

TEST_CASE("derivatives: moves") {
  Table table;
  const auto check = [&](Op op, const std::vector<Shape>& in, ir::Attrs attrs) {
    table.check(op, in, -2, 2,
                [&](Graph& g, const auto& x) { return g.add(op, x, attrs); });
  };
  check(Op::reshape, {{2, 6}}, ir::ShapeAttrs{{3, 4}});
  check(Op::transpose, {{2, 3, 4}}, ir::AxesAttrs{{2, 0, 1}});
  check(Op::flip, {{2, 3}}, ir::AxesAttrs{{0, 1}});
  check(Op::broadcast, {{}}, ir::BroadcastAttrs{{2, 3}, {}});
  check(Op::broadcast, {{3}}, ir::BroadcastAttrs{{2, 3}, {1}});
  check(Op::broadcast, {{2, 1, 3}},
        ir::BroadcastAttrs{{2, 4, 3, 2}, {0, 1, 2}});
  check(Op::broadcast, {{1}}, ir::BroadcastAttrs{{1, 5}, {0}});
  check(Op::slice, {{7}}, ir::SliceAttrs{{1}, {1}, {4}});
  check(Op::slice, {{7}}, ir::SliceAttrs{{0}, {2}, {4}});
  check(Op::slice, {{8, 5}}, ir::SliceAttrs{{1, 4}, {3, 1}, {2, 1}});
  check(Op::slice, {{8, 5}}, ir::SliceAttrs{{1, 4}, {3, 1}, {0, 1}});
  check(Op::pad, {{3}, {}}, ir::PadAttrs{{1}, {2}});
  check(Op::pad, {{2, 3}, {}}, ir::PadAttrs{{0, 1}, {0, 0}});
  check(Op::concat, {{2, 3}, {2, 1}, {2, 2}}, ir::AxisAttrs{1});
  for (const ir::Row& row : ir::all_rows())
    if (row.kind == ir::Kind::move) CHECK_MESSAGE(table.has(row.op), row.name);
}

TEST_CASE("derivatives: positions") {
  Table table;
  const auto check = [&](Op op, const Shape& x, const Shape& updates,
                         const std::vector<int>& axes, const Shape& at,
                         const std::vector<std::vector<int64_t>>& indices) {
    DerivativeCase c;
    c.inputs.emplace_back();
    const auto input = [&](const Shape& shape) {
      c.inputs[0].push_back(numbers(shape, -2, 2, table.random));
      return c.graph.add_input(f64(shape));
    };
    std::vector<NodeId> operands = {input(x)};
    if (op != Op::gather) operands.push_back(input(updates));
    for (const auto& index : indices) {
      operands.push_back(c.graph.add_input({DType::I32, at}));
      c.inputs[0].push_back(integers(DType::I32, at, index));
    }
    c.graph.outputs = {c.graph.add(op, operands, ir::IndexAttrs{axes, true})};
    table.check(op, c);
  };
  for (const Op op : {Op::gather, Op::scatter, Op::scatter_add}) {
    check(op, {5}, {3}, {0}, {3}, {{4, -4, 1}});
    check(op, {5}, {3}, {0}, {3}, {{2, 2, -3}});  // one place three times
    check(op, {5}, {}, {0}, {}, {{3}});
    check(op, {4, 3}, {2, 2, 3}, {0}, {2, 2}, {{0, 3, 3, -1}});
    check(op, {4, 3}, {2, 4}, {1}, {2}, {{2, 2}});
    check(op, {4, 3, 2}, {3, 3}, {0, 2}, {3}, {{0, 3, 0}, {1, 0, 1}});
  }
}

TEST_CASE("derivatives: positions that differ") {
  Table table;
  const ir::IndexAttrs first{{0}, false};
  const auto every_second = [](Graph& g, int64_t count) {
    const Type type{DType::I32, {count}};
    const NodeId two =
        g.add_constant(type, element_bytes(DType::I32, int64_t{2}));
    return g.add(Op::mul, {g.add(Op::iota, {}, ir::IotaAttrs{type, 0}), two});
  };
  for (const Op op : {Op::scatter, Op::scatter_add}) {
    table.check(op, {{9, 2}, {4, 2}}, -2, 2, [&](Graph& g, const auto& x) {
      return g.add(op, {x[0], x[1], every_second(g, 4)}, first);
    });
    table.check(op, {{6}, {6}}, -2, 2, [&](Graph& g, const auto& x) {
      const NodeId order = g.add(Op::argsort, {x[0]});
      return g.add(op, {x[0], g.add(Op::mul, {x[1], x[0]}), order}, first);
    });
    // To nothing that moves.
    table.check(op, {{4}}, -2, 2, [&](Graph& g, const auto& x) {
      const NodeId base =
          g.add_constant(f64({9}), element_bytes(DType::F64, 3.0));
      return g.add(op, {base, x[0], every_second(g, 4)}, first);
    });
  }
}

TEST_CASE("derivatives: products of matrices") {
  Table table;
  const auto check = [&](const Shape& a, const Shape& b, ir::DotAttrs attrs) {
    table.check(Op::dot, {a, b}, -2, 2, [&](Graph& g, const auto& x) {
      return g.add(Op::dot, x, attrs);
    });
  };
  check({3}, {3}, {{}, {}, {0}, {0}});
  check({2, 3}, {3, 4}, {{}, {}, {1}, {0}});
  check({2, 3}, {3}, {{}, {}, {1}, {0}});
  check({3, 2}, {4, 3}, {{}, {}, {0}, {1}});
  check({5, 2, 3}, {3, 5, 4}, {{0}, {1}, {2}, {0}});
  check({2, 3, 4, 5}, {4, 2, 6, 3}, {{0}, {1}, {2, 1}, {0, 3}});
  check({2, 3, 4}, {3, 2, 4}, {{1, 0}, {0, 1}, {2}, {2}});
  check({2}, {3}, {{}, {}, {}, {}});
}

namespace {

NodeId number(Graph& g, DType dtype, int64_t value) {
  return g.add_constant({dtype, {}}, element_bytes(dtype, value));
}

NodeId result(Graph& g, NodeId control, int index) {
  return g.add(Op::project, {control}, ir::ProjectAttrs{index});
}

std::shared_ptr<const Graph> shared(Graph g) {
  return std::make_shared<const Graph>(std::move(g));
}

/// h = tanh(h * w + x[t]), y[t] = h * h, over 6 rows; reads and writes at
/// positions besides: z carries an array, of which each turn reads element
/// t - 1 and sets element t.
Graph recurrence(bool backwards) {
  Graph body;
  const NodeId t = body.add_input({DType::I64, {}});
  const NodeId h = body.add_input(f64({3}));
  const NodeId z = body.add_input(f64({7}));
  const NodeId x = body.add_input(f64({3}));
  const NodeId w = body.add_input(f64({3}));
  const NodeId table = body.add_input(f64({6, 3}));
  const ir::IndexAttrs row{{0}, false};
  const NodeId read = body.add(Op::gather, {table, t}, row);
  const NodeId next =
      body.add(Op::tanh, {body.add(Op::add, {body.add(Op::mul, {h, w}),
                                             body.add(Op::mul, {x, read})})});
  const NodeId one = number(body, DType::I64, 1);
  const NodeId before =
      body.add(Op::gather, {z, body.add(Op::sub, {t, one})}, row);
  const NodeId sum = body.add(Op::sum, {next}, ir::ReduceAttrs{{0}});
  const NodeId changed =
      body.add(Op::scatter, {z, body.add(Op::mul, {sum, before}), t}, row);
  body.outputs = {next, changed, body.add(Op::mul, {next, next}),
                  body.add(Op::mul, {w, x})};
  ir::LoopAttrs a;
  a.turns = 6;
  a.backwards = backwards;
  a.carries = 2;
  a.rows = 1;
  a.body = shared(std::move(body));
  Graph g;
  const NodeId h0 = g.add_input(f64({3})), z0 = g.add_input(f64({7})),
               xs = g.add_input(f64({6, 3})), ws = g.add_input(f64({3})),
               rows = g.add_input(f64({6, 3}));
  const NodeId loop = g.add(Op::loop, {h0, z0, xs, ws, rows}, a);
  for (int i = 0; i < 4; ++i) g.outputs.push_back(result(g, loop, i));
  return g;
}

/// while h[0] < limit and n < 9: h = h * w + sin(h). At most so many turns.
Graph growth(int64_t most) {
  const auto parameters = [](Graph& g) {
    g.add_input(f64({2}));          // h
    g.add_input({DType::I32, {}});  // n
    g.add_input(f64({2}));          // w
    g.add_input({DType::F64, {}});  // limit
  };
  Graph condition;
  parameters(condition);
  const NodeId first =
      condition.add(Op::gather, {0, number(condition, DType::I32, 0)},
                    ir::IndexAttrs{{0}, false});
  condition.outputs = {condition.add(
      Op::bit_and,
      {condition.add(Op::lt, {first, 3}),
       condition.add(Op::lt, {1, number(condition, DType::I32, 9)})})};
  Graph body;
  parameters(body);
  body.outputs = {
      body.add(Op::add, {body.add(Op::mul, {0, 2}), body.add(Op::sin, {0})}),
      body.add(Op::add, {1, number(body, DType::I32, 1)})};
  ir::LoopAttrs a;
  a.condition = shared(std::move(condition));
  a.body = shared(std::move(body));
  a.carries = 2;
  a.most = most;
  Graph g;
  const NodeId h = g.add_input(f64({2})), w = g.add_input(f64({2}));
  const NodeId limit =
      g.add_constant({DType::F64, {}}, element_bytes(DType::F64, 40.0));
  const NodeId loop =
      g.add(Op::loop, {h, number(g, DType::I32, 0), w, limit}, a);
  g.outputs = {result(g, loop, 0)};
  return g;
}

DerivativeCase with_numbers(Graph g, double low, double high,
                            std::mt19937& random) {
  DerivativeCase c;
  c.inputs.emplace_back();
  for (const Type& type : g.input_types())
    c.inputs[0].push_back(numbers(type.shape, low, high, random));
  c.graph = std::move(g);
  return c;
}

}  // namespace

TEST_CASE("derivatives: loops") {
  Table table;
  for (const bool backwards : {false, true})
    table.check(Op::loop,
                with_numbers(recurrence(backwards), -1, 1, table.random));
  table.check(Op::loop, with_numbers(growth(16), 1, 1.5, table.random));
  // Without a limit there is no reverse.
  const Graph endless = growth(-1);
  const auto none = vjp(endless, {{true, true}});
  REQUIRE(std::holds_alternative<NoDerivative>(none));
  CHECK(std::get<NoDerivative>(none).why == NoDerivative::Why::reverse_while);
  CHECK(std::holds_alternative<Graph>(jvp(endless, {{true, true}})));
}

namespace {

/// if c: (sin(x) * y, x[1] * 2), else: (x, a loop over y), the latter with a
/// product, whose operand is kept.
Graph branches(bool truth) {
  Graph yes;
  yes.add_input(f64({3}));
  yes.add_input(f64({3, 3}));
  const ir::IndexAttrs row{{0}, false};
  const NodeId sines = yes.add(Op::sin, {0});
  yes.outputs = {yes.add(Op::dot, {sines, yes.add(Op::exp, {1})},
                         ir::DotAttrs{{}, {}, {0}, {0}}),
                 yes.add(Op::gather, {0, number(yes, DType::I32, 1)}, row)};
  Graph no;
  no.add_input(f64({3}));
  no.add_input(f64({3, 3}));
  Graph body;
  body.add_input({DType::I64, {}});
  body.add_input(f64({3}));
  body.add_input(f64({3}));
  body.outputs = {body.add(Op::cos, {body.add(Op::mul, {1, 2})})};
  ir::LoopAttrs a;
  a.turns = 3;
  a.carries = 1;
  a.rows = 1;
  a.body = shared(std::move(body));
  const NodeId loop = no.add(Op::loop, {0, 1}, a);
  no.outputs = {result(no, loop, 0),
                no.add(Op::gather, {0, number(no, DType::I32, 2)}, row)};
  Graph g;
  const NodeId x = g.add_input(f64({3})), y = g.add_input(f64({3, 3}));
  const NodeId low = g.add(
      Op::lt,
      {g.add(Op::sum, {x}, ir::ReduceAttrs{{0}}),
       g.add_constant({DType::F64, {}},
                      element_bytes(DType::F64, truth ? 100.0 : -100.0))});
  const NodeId both =
      g.add(Op::if_else, {low, x, y},
            ir::IfAttrs{shared(std::move(yes)), shared(std::move(no))});
  g.outputs = {result(g, both, 0), result(g, both, 1)};
  return g;
}

}  // namespace

TEST_CASE("derivatives: branches") {
  Table table;
  for (const bool truth : {false, true})
    table.check(Op::if_else,
                with_numbers(branches(truth), -1, 1, table.random));
}

TEST_CASE("derivatives: a branch that is not taken") {
  // where(x > 0, log(x), 0) at 0.
  Graph g;
  const NodeId x = g.add_input(f64({2}));
  const NodeId zero = g.add_constant(f64({2}), element_bytes(DType::F64, 0.0));
  g.outputs = {
      g.add(Op::select, {g.add(Op::gt, {x, zero}), g.add(Op::log, {x}), zero})};
  const auto gradient = vjp(g, {{true}});
  std::mt19937 random(1);
  const auto out =
      evaluate(std::get<Graph>(gradient),
               {numbers({2}, 0, 0, random), numbers({2}, 1, 1, random)});
  REQUIRE(out);
  CHECK((*out)[1].bytes == numbers({2}, 0, 0, random).bytes);
}

TEST_CASE("derivatives: a loop that is computed again") {
  // checkpoint(sum(tanh(x @ w)))
  Graph body;
  body.add_input({DType::I64, {}});
  body.add_input(f64({2, 3}));
  body.add_input(f64({3, 4}));
  const NodeId product =
      body.add(Op::dot, {1, 2}, ir::DotAttrs{{}, {}, {1}, {0}});
  body.outputs = {body.add(Op::tanh, {product})};
  ir::LoopAttrs a;
  a.turns = 1;
  a.recomputed = true;
  a.body = shared(std::move(body));
  Graph g;
  g.add_input(f64({2, 3}));
  g.add_input(f64({3, 4}));
  const NodeId loop = g.add(Op::loop, {0, 1}, a);
  g.outputs = {
      g.add(Op::reshape, {result(g, loop, 0)}, ir::ShapeAttrs{{2, 4}})};
  Table table;
  table.check(Op::loop, with_numbers(g, -1, 1, table.random));
}

TEST_CASE("derivatives: rules") {
  // sin with cos as its derivative, times 3: what the rule says, not the graph.
  for (const auto kind : {ir::CallAttrs::Rule::jvp, ir::CallAttrs::Rule::vjp}) {
    Graph sine, rule;
    sine.add_input(f64({2}));
    sine.outputs = {sine.add(Op::sin, {0})};
    rule.add_input(f64({2}));
    rule.add_input(f64({2}));
    rule.outputs = {rule.add(Op::sin, {0}),
                    rule.add(Op::mul, {1, rule.add(Op::cos, {0})})};
    Graph g;
    g.add_input(f64({2}));
    const NodeId call = g.add(
        Op::call, {0},
        ir::CallAttrs{shared(std::move(sine)), shared(std::move(rule)), kind});
    const NodeId r = result(g, call, 0);
    g.outputs = {g.add(Op::mul, {r, r})};
    std::mt19937 random(3);
    const auto backward = vjp(g, {{true}});
    REQUIRE(std::holds_alternative<Graph>(backward));
    const HostArray x = numbers({2}, 0.5, 1, random);
    const auto out =
        evaluate(std::get<Graph>(backward), {x, numbers({2}, 1, 1, random)});
    REQUIRE(out);
    double have[2], at[2];
    std::memcpy(have, (*out)[1].bytes.data(), 16);
    std::memcpy(at, x.bytes.data(), 16);
    for (int i = 0; i < 2; ++i)
      CHECK(have[i] == doctest::Approx(2 * std::sin(at[i]) * std::cos(at[i])));
    const auto forward = jvp(g, {{true}});
    CHECK(std::holds_alternative<Graph>(forward) ==
          (kind == ir::CallAttrs::Rule::jvp));
  }
}

TEST_CASE("derivatives: collectives") {
  Table table;
  for (const int64_t members : {3, 4, 6}) {
    ir::CollectiveAttrs a;
    a.axes = {1};
    a.sizes = {members};
    const auto check = [&](Op op, const Shape& x, ir::CollectiveAttrs attrs) {
      for (const bool shared_input : {false, true})
        table.check_members(
            op, members, {x, x}, {shared_input, true},
            [&](Graph& g, const auto& in) -> std::vector<NodeId> {
              const NodeId squares = g.add(Op::mul, {in[0], in[1]});
              const NodeId r = g.add(op, {squares}, attrs);
              return {g.add(Op::mul, {r, r}), g.add(Op::mul, {in[0], in[1]})};
            });
    };
    check(Op::all_reduce, {2}, a);
    ir::CollectiveAttrs most = a;
    most.reduce = ir::ReduceOp::max;
    check(Op::all_reduce, {2}, most);
    check(Op::all_gather, {2}, a);
    ir::CollectiveAttrs tiled = a;
    tiled.tiled = true;
    check(Op::all_gather, {2, 3}, tiled);
    check(Op::reduce_scatter, {members, 2}, a);
    check(Op::all_to_all, {members, 2}, a);
    check(Op::own_part, {members, 2}, a);
    ir::CollectiveAttrs block = a;
    block.tiled = true;
    block.dim = 1;
    check(Op::own_part, {2, 2 * members}, block);
    ir::CollectiveAttrs ring = a;
    for (int i = 0; i < members; ++i)
      ring.pairs.emplace_back(i, static_cast<int>((i + 1) % members));
    check(Op::permute, {2}, ring);
    ir::CollectiveAttrs partial = a;  // one source twice, one never
    partial.pairs = {{0, 1}, {0, 2}, {1, 0}};
    check(Op::permute, {2}, partial);
    ir::CollectiveAttrs all = a;
    for (int i = 0; i < members; ++i) all.pairs.emplace_back(1, i);
    check(Op::permute, {2}, all);
    if (members != 6) continue;
    ir::CollectiveAttrs groups = a;
    groups.groups = {{0, 2, 4}, {5, 3, 1}};
    check(Op::all_reduce, {2}, groups);
    check(Op::all_gather, {2}, groups);
    check(Op::reduce_scatter, {3, 2}, groups);
    check(Op::all_to_all, {3, 2}, groups);
    ir::CollectiveAttrs tiled_groups = groups;
    tiled_groups.tiled = true;
    tiled_groups.dim = 1;
    check(Op::all_gather, {2, 3}, tiled_groups);
  }
  for (const ir::Row& row : ir::all_rows())
    if (row.kind == ir::Kind::collective && row.op != Op::axis_index)
      CHECK_MESSAGE(table.has(row.op), row.name);
}

TEST_CASE("derivatives: a shared weight in a loop of members") {
  // h = tanh(h * w + x) five times, where w is the same for all members.
  Table table;
  const auto make = [](Graph& g, const auto& in) -> std::vector<NodeId> {
    Graph body;
    body.add_input({DType::I64, {}});
    for (int i = 0; i < 3; ++i) body.add_input(f64({2}));
    body.outputs = {body.add(
        Op::tanh, {body.add(Op::add, {body.add(Op::mul, {1, 3}), 2})})};
    ir::LoopAttrs a;
    a.turns = 5;
    a.carries = 1;
    a.body = shared(std::move(body));
    const NodeId loop = g.add(Op::loop, {in[0], in[1], in[2]}, a);
    return {result(g, loop, 0)};
  };
  table.check_members(Op::loop, 3, {{2}, {2}, {2}}, {false, false, true}, make);
  table.check_members(Op::loop, 4, {{2}, {2}, {2}}, {true, false, true}, make);
  // Its gradient has one all_reduce, outside the loop.
  Graph g;
  const NodeId h = g.add_input(f64({2})), x = g.add_input(f64({2})),
               w = g.add_input(f64({2}));
  g.outputs = make(g, std::vector<NodeId>{h, x, w});
  DerivativeSpec spec{{false, false, true}};
  spec.axes = {{1, 3}};
  spec.varies = {{1}, {1}, {}};
  const auto backward = vjp(g, spec);
  int sums = 0;
  for (const ir::Node& node : std::get<Graph>(backward).nodes)
    sums += node.op == Op::all_reduce;
  CHECK(sums == 1);
}
