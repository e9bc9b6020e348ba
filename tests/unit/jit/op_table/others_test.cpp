// Products of matrices, control, collectives and host calls, for all that
// ops.def says of them.
#include <algorithm>

#include "jit/scalar/element.h"
#include "tests/unit/jit/op_table/op_table.h"

using namespace unisono;
using namespace unisono::jit;
using namespace unisono::jit::testing;
using ir::Dim;
using ir::Graph;
using ir::NodeId;
using ir::Op;
using ir::Shape;
using ir::Type;

namespace {

Layout layout_number(int i) { return static_cast<Layout>(i % layout_count); }

/// Two operands and the attributes that multiply them. Matrix units sum in
/// another order than the evaluator (product_test.cpp).
struct Product {
  Type a, b;
  ir::DotAttrs attrs;
};

/// A product whose left operand has this rank. Batch, contracted and free axes
/// come in any order.
Product random_product(Trial& trial, DType dtype, int rank) {
  constexpr int64_t sizes[] = {1, 2, 3, 7, 17, 48, 1, 5, 0, 33};
  Product p{{dtype, {}}, {dtype, {}}, {}};
  int64_t most = 40000;
  const auto size = [&] {
    int64_t n = sizes[trial.below(std::size(sizes))];
    if (n > most) n = 1;
    most /= std::max<int64_t>(n, 1);
    return n;
  };
  for (int i = 0; i < rank; ++i) {
    const int what = trial.below(3);
    p.a.shape.push_back(size());
    if (what == 0) p.attrs.batch_a.push_back(i);
    if (what == 1) p.attrs.contract_a.push_back(i);
  }
  std::shuffle(p.attrs.batch_a.begin(), p.attrs.batch_a.end(), trial.random);
  // The right operand: the shared axes, some free ones, in any order.
  struct Axis {
    int64_t size;
    int batch, contract;
  };
  std::vector<Axis> axes;
  for (size_t i = 0; i < p.attrs.batch_a.size(); ++i)
    axes.push_back(
        {p.a.shape[p.attrs.batch_a[i]].value(), static_cast<int>(i), -1});
  for (size_t i = 0; i < p.attrs.contract_a.size(); ++i)
    axes.push_back(
        {p.a.shape[p.attrs.contract_a[i]].value(), -1, static_cast<int>(i)});
  for (int free = trial.below(3); free > 0 && axes.size() < most_rank; --free)
    axes.push_back({size(), -1, -1});
  std::shuffle(axes.begin(), axes.end(), trial.random);
  p.attrs.batch_b.resize(p.attrs.batch_a.size());
  p.attrs.contract_b.resize(p.attrs.contract_a.size());
  for (size_t i = 0; i < axes.size(); ++i) {
    p.b.shape.push_back(axes[i].size);
    if (axes[i].batch >= 0)
      p.attrs.batch_b[axes[i].batch] = static_cast<int>(i);
    if (axes[i].contract >= 0)
      p.attrs.contract_b[axes[i].contract] = static_cast<int>(i);
  }
  return p;
}

void try_product(OpTable& table, Product p, int turn) {
  Trial trial(static_cast<uint32_t>(turn));
  if (p.a.dtype == DType::F16 || p.a.dtype == DType::BF16)
    p.attrs.precision = ir::Precision::exact;
  const Fill fill = turn % 7 ? Fill::numbers : Fill::special;
  const auto x = trial.operands(
      {{p.a, layout_number(turn), fill}, {p.b, layout_number(turn / 3), fill}});
  trial.add(Op::dot, p.a.dtype, p.a.rank(), x, p.attrs);
  table.compare(trial);
}

}  // namespace

TEST_CASE("table of operations: products") {
  OpTable table;
  int turn = 0;
  for (DType dtype : all_dtypes) {
    if (!ir::admits(Op::dot, dtype)) continue;
    for (int rank = 0; rank <= most_rank; ++rank)
      for (int again = 0; again < 9; ++again) {
        Trial choices(static_cast<uint32_t>(++turn));
        try_product(table, random_product(choices, dtype, rank), turn);
      }
    // Around the blocks of packed products.
    for (const auto& [m, k, n] :
         {std::tuple<int64_t, int64_t, int64_t>{97, 257, 65},
          {64, 256, 64},
          {1, 300, 50},
          {63, 1, 65},
          {9, 0, 5}}) {
      const Product plain{{dtype, {m, k}}, {dtype, {k, n}}, {{}, {}, {1}, {0}}};
      const Product turned{
          {dtype, {2, k, m}}, {dtype, {n, 2, k}}, {{0}, {1}, {1}, {2}}};
      for (const Product& p : {plain, turned})
        try_product(table, p, ++turn * layout_count);  // dense
    }
  }
  for (Op op : all_ops)
    if (ir::kind(op) == ir::Kind::dot) table.check_covered(op, 0);
}

namespace {

/// x if c, else y; both turned into one another's place.
NodeId add_branch(Trial& trial, NodeId c, NodeId x, NodeId y) {
  const Type type = trial.graph.type(x);
  std::shared_ptr<Graph> branches[2];
  for (auto& branch : branches) {
    branch = std::make_shared<Graph>();
    const NodeId a = branch->add_input(type), b = branch->add_input(type);
    const NodeId larger = branch->add(Op::maximum, {a, b});
    const bool first = &branch == &branches[0];
    branch->outputs = {first ? a : larger, first ? larger : b};
  }
  return trial.graph.add(Op::if_else, {c, x, y},
                         ir::IfAttrs{branches[0], branches[1]}, 3);
}

/// Carries (i, x, y) for `turns` turns: (i + 1, y, maximum(x, z)).
NodeId add_loop(Trial& trial, NodeId turns, NodeId x, NodeId y, NodeId z) {
  const Type type = trial.graph.type(x), count{DType::I32, {}};
  auto condition = std::make_shared<Graph>(), body = std::make_shared<Graph>();
  for (auto& part : {condition, body})
    for (const Type& t : {count, type, type, count, type}) part->add_input(t);
  condition->outputs = {condition->add(Op::lt, {0, 3})};
  const NodeId one =
      body->add_constant(count, jit::element_bytes(DType::I32, int64_t{1}));
  body->outputs = {body->add(Op::add, {0, one}), 2,
                   body->add(Op::maximum, {1, 4})};
  const NodeId zero = trial.graph.add_constant(
      count, jit::element_bytes(DType::I32, int64_t{0}));
  return trial.graph.add(Op::loop, {zero, x, y, turns, z},
                         ir::LoopAttrs{condition, body, 3}, 4);
}

}  // namespace

TEST_CASE("table of operations: control") {
  OpTable table;
  int turn = 0;
  for (DType dtype : all_dtypes)
    for (int rank = 0; rank <= most_rank; ++rank)
      for (int again = 0; again < 2; ++again) {
        Trial trial(static_cast<uint32_t>(++turn));
        const Type type{dtype, shape_of(rank, turn, 300)};
        const auto x =
            trial.operands({{type, layout_number(turn)},
                            {type, layout_number(turn + 5)},
                            {type, layout_number(turn * 2)},
                            {{DType::Bool, {}}, layout_number(turn)},
                            {{DType::I32, {}}, Layout::dense, Fill::coarse}});
        const NodeId branch = add_branch(trial, x[3], x[0], x[1]);
        const NodeId loop = add_loop(trial, x[4], x[0], x[1], x[2]);
        for (int i = 0; i < 2; ++i)
          trial.output(
              Op::if_else, dtype, rank,
              trial.graph.add(Op::project, {branch}, ir::ProjectAttrs{i}),
              false);
        for (int i = 0; i < 2; ++i)
          trial.output(
              Op::loop, dtype, rank,
              trial.graph.add(Op::project, {loop}, ir::ProjectAttrs{i + 1}),
              false);
        trial.output(Op::project, dtype, rank,
                     trial.graph.add(Op::project, {loop}, ir::ProjectAttrs{0}),
                     true);
        table.compare(trial);
      }
  // Calls end with the derivative around them (derivative_test.cpp): nothing
  // that is compiled has one.
  for (Op op : all_ops)
    if (ir::kind(op) == ir::Kind::control && op != Op::call)
      table.check_covered(op, 0);
}

namespace {

/// Each collective of x over axis 1 of `members`.
void add_collective(Trial& trial, Op op, NodeId x, int64_t members) {
  const Type type = trial.graph.type(x);
  ir::CollectiveAttrs a;
  a.axes = {1};
  a.sizes = {members};
  const auto add = [&](std::vector<NodeId> inputs, bool exact) {
    trial.output(op, type.dtype, type.rank(),
                 trial.graph.add(op, std::move(inputs), a, 9), exact);
  };
  if (op == Op::axis_index) return add({}, true);
  if (op == Op::all_gather) return add({x}, true);
  if (op == Op::all_reduce)
    for (auto reduce :
         {ir::ReduceOp::sum, ir::ReduceOp::max, ir::ReduceOp::min}) {
      if (reduce == ir::ReduceOp::sum && is_bool(type.dtype)) continue;
      a.reduce = reduce;
      add({x}, false);
    }
  // These work along an axis of the members.
  if (op == Op::own_part || op == Op::reduce_scatter || op == Op::all_to_all) {
    const bool sums = op == Op::reduce_scatter;
    a.reduce = is_bool(type.dtype) ? ir::ReduceOp::max : ir::ReduceOp::sum;
    const NodeId all = trial.graph.add(Op::all_gather, {x}, a);
    return add({all}, !sums);
  }
  if (op == Op::permute)
    for (int64_t shift = 0; shift < members; ++shift) {
      a.pairs.clear();
      for (int64_t m = 0; m < members; ++m)
        if (shift == 1 || trial.below(4))
          a.pairs.push_back(
              {static_cast<int>(m), static_cast<int>((m + shift) % members)});
      add({x}, true);
    }
}

}  // namespace

TEST_CASE("table of operations: collectives over three devices and more") {
  OpTable table;
  int turn = 0;
  for (int members : {3, 4, 5, 8})
    for (DType dtype : all_dtypes) {
      // All ranks in one program: its collectives meet one after another.
      Trial trial(static_cast<uint32_t>(++turn));
      std::vector<Operand> operands;
      for (int rank = 0; rank <= most_rank; ++rank)
        operands.push_back({{dtype, shape_of(rank, turn + rank * 3, 600)},
                            layout_number(turn + rank),
                            Fill::numbers});
      const auto x = trial.operands(operands);
      std::vector<Arrays> inputs(members);
      for (Arrays& own : inputs)
        for (const HostArray& input : trial.inputs)
          own.push_back(filled(input.type, Fill::numbers, trial.random));
      for (Op op : all_ops)
        if (ir::kind(op) == ir::Kind::collective)
          for (NodeId id : x) add_collective(trial, op, id, members);
      table.compare_members(trial, inputs);
    }
  for (Op op : all_ops)
    if (ir::kind(op) == ir::Kind::collective) table.check_covered(op, 0);
}

TEST_CASE("table of operations: host calls") {
  Bench bench;
  int turn = 0;
  for (DType dtype : all_dtypes) {
    Trial trial(static_cast<uint32_t>(++turn));
    std::vector<Operand> operands;
    for (int rank = 0; rank <= most_rank; ++rank)
      operands.push_back({{dtype, shape_of(rank, turn + rank, 300)},
                          layout_number(turn + rank * 4)});
    const auto x = trial.operands(operands);
    for (NodeId id : x)
      for (int twice : {1, 2})
        trial.graph.add(
            Op::host_call, std::vector<NodeId>(static_cast<size_t>(twice), id),
            ir::HostCallAttrs{
                std::vector<std::string>(static_cast<size_t>(twice) + 1, "x"),
                std::vector<std::string>(static_cast<size_t>(twice))});
    Arrays expected, got;
    const auto append = [](Arrays& all, const Arrays& operands) {
      all.insert(all.end(), operands.begin(), operands.end());
    };
    ReferenceOptions reference;
    reference.host_call = [&](const ir::Node&, int64_t, const Arrays& x,
                              Arrays&) {
      append(expected, x);
      return Unit{};
    };
    CompileOptions options;
    options.host_call = [&](const ir::Node&, int64_t, const Arrays& x,
                            Arrays&) {
      append(got, x);
      return Unit{};
    };
    REQUIRE(evaluate(trial.graph, trial.inputs, reference));
    REQUIRE(bench.run_all(trial.graph, {trial.inputs}, options));
    REQUIRE(expected.size() == 3 * x.size());
    REQUIRE(got.size() == expected.size());
    for (size_t i = 0; i < got.size(); ++i) {
      INFO(got[i].type.to_string());
      CHECK(same_bits(expected[i], got[i]));
    }
  }
}

TEST_CASE("table of operations: no row is without a test") {
  for (Op op : all_ops) {
    INFO(ir::name(op));
    bool tested = false;
    switch (ir::kind(op)) {
      case ir::Kind::map:        // map_test.cpp
      case ir::Kind::reduce:     // lines_test.cpp
      case ir::Kind::argreduce:  //
      case ir::Kind::scan:       //
      case ir::Kind::sort:       //
      case ir::Kind::move:       // moves_test.cpp
      case ir::Kind::source:     //
      case ir::Kind::index:      //
      case ir::Kind::dot:        // here
      case ir::Kind::control:    //
      case ir::Kind::collective:
        // These ask check_covered for all rows of the kind.
        tested = true;
        break;
      case ir::Kind::host: tested = op == Op::host_call; break;
    }
    CHECK(tested);
  }
}
