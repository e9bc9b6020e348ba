// Checked errors of every operation that can raise one: compiled code and the
// evaluator say the same, wherever the element at fault stands.
#include "jit/scalar/element.h"
#include "tests/unit/jit/gpu/simulated.h"
#include "tests/unit/jit/op_table/op_table.h"

using namespace unisono;
using namespace unisono::jit;
using namespace unisono::jit::testing;
using ir::Graph;
using ir::NodeId;
using ir::Op;
using ir::Shape;
using ir::Type;

namespace {

constexpr int machine_count = 5;  // widths of vectors, and a GPU

/// Machines that stay after errors.
class Machines {
 public:
  Machines() {
    for (int vector_bytes : {64, 0, 32, 16})
      benches_.push_back(std::make_unique<Bench>(vector_bytes));
    benches_.push_back(std::make_unique<Bench>(simulated_gpus(1)));
  }

  /// Both fail, with the same words.
  void check_same_error(const Graph& graph, const Arrays& inputs,
                        Error::Kind kind) {
    auto want = evaluate(graph, inputs);
    REQUIRE(!want);
    CHECK(want.error().kind == kind);
    Bench& bench = *benches_[next_++ % machine_count];
    auto have = bench.run(graph, inputs);
    INFO(ir::print(graph));
    REQUIRE(!have);
    CHECK(have.error().kind == want.error().kind);
    CHECK(have.error().source == want.error().source);
    CHECK(have.error().message == want.error().message);
    // Unchecked there is a result, and the machine goes on.
    CHECK(difference(bench, graph, inputs, false) == "");
  }

 private:
  std::vector<std::unique_ptr<Bench>> benches_;
  size_t next_ = 0;
};

void set(HostArray& array, int64_t at, int64_t value) {
  const auto element = jit::element_bytes(array.type.dtype, value);
  std::memcpy(&array.bytes[static_cast<size_t>(at) * element.size()],
              element.data(), element.size());
}

/// Whether the row raises for a second operand of 0, of -1.
bool raises(Op op, DType dtype, int64_t operand) {
  if (op == Op::floor_div || op == Op::mod)
    return is_integer(dtype) && operand == 0;
  return op == Op::pow && is_signed(dtype) && operand < 0;
}

}  // namespace

TEST_CASE("errors of elements are the evaluator's") {
  Machines machines;
  int turn = 0;
  for (DType dtype : all_dtypes)
    for (Op op : all_ops)
      for (int64_t bad : {0, -1}) {
        if (ir::kind(op) != ir::Kind::map || !raises(op, dtype, bad)) continue;
        for (int rank = 0; rank <= most_rank; ++rank) {
          Trial trial(static_cast<uint32_t>(++turn));
          Shape shape = shape_of(rank, turn, 5000);
          for (ir::Dim& d : shape)
            if (d == ir::Dim(0)) d = 67;
          const Type type{dtype, shape};
          // The last input is as it stands there.
          const auto x =
              trial.operands({{type, static_cast<Layout>(turn % layout_count)},
                              {type, Layout::dense, Fill::exponents}});
          HostArray& second = trial.inputs.back();
          for (int64_t i = 0; i < type.elements(); ++i)
            if (op != Op::pow) set(second, i, 1 + trial.below(9));
          trial.add(op, dtype, rank, x);
          REQUIRE(evaluate(trial.graph, trial.inputs));
          const int64_t last = type.elements() - 1;
          for (int64_t at : {int64_t{0}, last, last / 2}) {
            Arrays inputs = trial.inputs;
            set(inputs.back(), at, bad);
            machines.check_same_error(trial.graph, inputs,
                                      op == Op::pow
                                          ? Error::Kind::check_failed
                                          : Error::Kind::integer_division);
          }
        }
      }
}

TEST_CASE("errors of indices are the evaluator's") {
  Machines machines;
  int turn = 0;
  for (Op op : all_ops) {
    if (ir::kind(op) != ir::Kind::index) continue;
    for (int rank = 1; rank <= most_rank; ++rank)
      for (int64_t size : {0, 1, 5, 70})
        for (int axis = 0; axis < rank; ++axis) {
          Trial trial(static_cast<uint32_t>(++turn));
          const DType index = turn / 2 % 2 ? DType::I32 : DType::I64;
          Type type{turn % 2 ? DType::F32 : DType::I8, {}};
          for (int i = 0; i < rank; ++i)
            type.shape.push_back(i == axis ? size : 3);
          const Shape positions = shape_of(turn % 3, turn | 1, 100);
          const Type at{index, positions};
          if (at.elements() == 0) continue;
          Type part{type.dtype, positions};
          for (int i = 0; i < rank; ++i)
            if (i != axis) part.shape.push_back(type.shape[i]);
          const auto x =
              trial.operands({{type, static_cast<Layout>(turn % layout_count)},
                              {part, Layout::dense},
                              {at, Layout::dense}});
          HostArray& indices = trial.inputs.back();
          for (int64_t i = 0; i < at.elements(); ++i)
            set(indices, i, size ? trial.below(2 * size) - size : 0);
          std::vector<NodeId> operands = {x[0], x[2]};
          if (op != Op::gather) operands.insert(operands.begin() + 1, x[1]);
          trial.add(op, type.dtype, rank, operands, ir::IndexAttrs{{axis}});
          if (size) REQUIRE(evaluate(trial.graph, trial.inputs));
          int64_t most = INT64_MAX, least = INT64_MIN;
          if (index == DType::I32) most = INT32_MAX, least = INT32_MIN;
          for (int64_t bad : {size, -size - 1, most, least}) {
            Arrays inputs = trial.inputs;
            // All of them are at fault where there are no elements.
            for (int64_t i = 0; i < at.elements() && !size; ++i)
              set(inputs.back(), i, bad);
            set(inputs.back(), trial.below(at.elements()), bad);
            machines.check_same_error(trial.graph, inputs,
                                      Error::Kind::index_out_of_bounds);
          }
        }
  }
}

namespace {

/// x // (y + i) in each turn i of three; y is the last operand.
Graph dividing_loop() {
  const Type type{DType::I32, {65}}, count{DType::I32, {}};
  Graph graph;
  const NodeId x = graph.add_input(type), y = graph.add_input(type);
  auto condition = std::make_shared<Graph>(), body = std::make_shared<Graph>();
  for (auto& part : {condition, body})
    for (const Type& t : {count, type, type}) part->add_input(t);
  const auto number = [](Graph& g, const Type& t, int64_t value) {
    return g.add_constant(t, jit::element_bytes(DType::I32, value));
  };
  condition->outputs = {
      condition->add(Op::lt, {0, number(*condition, count, 3)})};
  const NodeId turn =
      body->add(Op::broadcast, {0}, ir::BroadcastAttrs{type.shape, {}});
  const NodeId divisor = body->add(Op::add, {2, turn});
  body->outputs = {body->add(Op::add, {0, number(*body, count, 1)}),
                   body->add(Op::floor_div, {1, divisor}, ir::NoAttrs{}, 21)};
  const NodeId loop = graph.add(Op::loop, {number(graph, count, 0), x, y},
                                ir::LoopAttrs{condition, body, 2});
  graph.outputs = {graph.add(Op::project, {loop}, ir::ProjectAttrs{1})};
  return graph;
}

/// x // y if c.
Graph dividing_branch() {
  const Type type{DType::I32, {65}};
  Graph graph;
  const NodeId x = graph.add_input(type), y = graph.add_input(type),
               c = graph.add_input({DType::Bool, {}});
  std::shared_ptr<Graph> branches[2];
  for (auto& branch : branches) {
    branch = std::make_shared<Graph>();
    const NodeId a = branch->add_input(type), b = branch->add_input(type);
    const bool divides = &branch == &branches[0];
    branch->outputs = {
        branch->add(divides ? Op::floor_div : Op::add, {a, b}, {}, 22)};
  }
  const NodeId chosen =
      graph.add(Op::if_else, {c, x, y}, ir::IfAttrs{branches[0], branches[1]});
  graph.outputs = {graph.add(Op::project, {chosen}, ir::ProjectAttrs{0})};
  return graph;
}

}  // namespace

TEST_CASE("errors within control are the evaluator's") {
  Machines machines;
  std::mt19937 random(1);
  const Type type{DType::I32, {65}};
  HostArray x = filled(type, Fill::special, random);
  HostArray y = filled(type, Fill::exponents, random);
  for (int64_t i = 0; i < 65; ++i) set(y, i, 5);
  Bench bench;
  const Graph loop = dividing_loop(), branch = dividing_branch();
  CHECK(difference(bench, loop, {x, y}) == "");
  for (int64_t turn = 0; turn < 3; ++turn)
    for (int64_t at : {0, 31, 64}) {
      HostArray bad = y;
      set(bad, at, -turn);
      machines.check_same_error(loop, {x, bad}, Error::Kind::integer_division);
    }
  HostArray zero = y;
  set(zero, 64, 0);
  HostArray condition{{DType::Bool, {}}, {1}};
  machines.check_same_error(branch, {x, zero, condition},
                            Error::Kind::integer_division);
  condition.bytes = {0};
  // A branch not taken raises nothing.
  CHECK(difference(bench, branch, {x, zero, condition}) == "");
  CHECK(bench.run(branch, {x, zero, condition}));
}

TEST_CASE("errors of members name the first device at fault") {
  const Type type{DType::I64, {300}};
  Graph graph;
  const NodeId x = graph.add_input(type), y = graph.add_input(type);
  ir::CollectiveAttrs over;
  over.axes = {1};
  over.sizes = {5};
  const NodeId sum = graph.add(Op::all_reduce, {x}, over);
  graph.outputs = {graph.add(Op::mod, {sum, y}, ir::NoAttrs{}, 23)};
  std::mt19937 random(2);
  std::vector<Arrays> inputs(5);
  for (Arrays& own : inputs) {
    own = {filled(type, Fill::special, random),
           filled(type, Fill::divisors, random)};
  }
  Bench bench(0, 5);
  CHECK(bench.run_all(graph, inputs));
  for (const auto& [first, second] : {std::pair{0, 4}, {3, 4}, {2, 2}}) {
    auto bad = inputs;
    set(bad[first][1], 299, 0);
    set(bad[second][1], 0, 0);
    auto want = evaluate_members(graph, 1, bad);
    auto have = bench.run_all(graph, bad);
    REQUIRE(!want);
    REQUIRE(!have);
    CHECK(have.error().kind == want.error().kind);
    CHECK(have.error().message == want.error().message);
    CHECK(have.error().source == want.error().source);
    CHECK(want.error().member == first);
    CHECK(have.error().device == first);
  }
  CHECK(bench.run_all(graph, inputs));
}
