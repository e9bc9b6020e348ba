// Threaded code against the reference evaluator, to the bit.
#include "jit/bytecode/bytecode.h"

#include <doctest/doctest.h>

#include <atomic>
#include <string>

#include "jit/ir/kinds.h"
#include "jit/ir/table.h"
#include "jit/ir/text.h"
#include "jit/scalar/element.h"
#include "jit/scalar/step.h"
#include "runtime/stop.h"
#include "tests/unit/jit/arrays.h"
#include "tests/unit/jit/op_table/op_table.h"
#include "tests/unit/jit/random_compare.h"

using namespace unisono;
using namespace unisono::jit;
using namespace unisono::jit::testing;

namespace {

std::shared_ptr<const Bytecode> lowered(const ir::Graph& graph,
                                        bool checked = true) {
  auto code =
      Bytecode::lower(std::make_shared<const ir::Graph>(graph), checked);
  REQUIRE(code);
  return code;
}

/// Both give the same bits, or the same error.
void compare(const ir::Graph& graph, const Arrays& inputs,
             const ReferenceOptions& options = {}) {
  const auto wanted = evaluate(graph, inputs, options);
  const auto got = lowered(graph, options.checked)->run(inputs, options);
  REQUIRE(static_cast<bool>(wanted) == static_cast<bool>(got));
  if (!wanted) {
    CHECK(got.error().kind == wanted.error().kind);
    CHECK(got.error().message == wanted.error().message);
    CHECK(got.error().source == wanted.error().source);
    return;
  }
  REQUIRE(got->size() == wanted->size());
  for (size_t i = 0; i < got->size(); ++i)
    CHECK(same_values((*got)[i], (*wanted)[i]));
}

ir::Graph parsed(const char* text) {
  auto graph = ir::parse(text);
  REQUIRE(graph);
  return *graph;
}

}  // namespace

TEST_CASE("threaded code: every row of the table, and its special elements") {
  for (const ir::Row& row : ir::all_rows()) {
    if (row.kind != ir::Kind::map) continue;
    for (DType dtype : all_dtypes) {
      if (row.op == ir::Op::cast) {
        for (DType to : all_dtypes) {
          const bool has_step = cast_step(dtype, to) != nullptr;
          REQUIRE(has_step);
          ir::Graph graph;
          const auto x = graph.add_input({dtype, {}});
          graph.outputs = {graph.add(row.op, {x}, ir::CastAttrs{to}, 7)};
          const auto code = lowered(graph);
          for (uint64_t bits : special_bits(dtype)) {
            HostArray element{{dtype, {}}, {}};
            const auto* bytes = reinterpret_cast<const uint8_t*>(&bits);
            element.bytes.assign(bytes, bytes + byte_size(dtype));
            compare(graph, {element});
          }
        }
        continue;
      }
      const bool admitted = ir::admits(row.op, dtype);
      const bool has_step = element_step(row.op, dtype) != nullptr;
      CHECK(has_step == admitted);
      if (!admitted) continue;
      ir::Graph graph;
      std::vector<ir::NodeId> operands;
      for (int i = 0; i < row.operands; ++i)
        operands.push_back(graph.add_input(
            {row.op == ir::Op::select && i == 0 ? DType::Bool : dtype, {}}));
      graph.outputs = {graph.add(row.op, operands, ir::NoAttrs{}, 7)};
      const auto code = lowered(graph);
      const auto& bits = special_bits(dtype);
      INFO(row.name << " of " << name(dtype));
      for (size_t i = 0; i < bits.size(); ++i)
        for (size_t j = 0; j < (row.operands > 1 ? bits.size() : 1); ++j) {
          Arrays inputs;
          for (int k = 0; k < row.operands; ++k) {
            const ir::Type& type = graph.type(operands[k]);
            const size_t at = k == 0 ? i : k == 1 ? j : (i + j) % bits.size();
            const uint64_t element =
                is_bool(type.dtype) ? i % 2 : bits[at % bits.size()];
            const auto* bytes = reinterpret_cast<const uint8_t*>(&element);
            inputs.push_back({type, {bytes, bytes + byte_size(type.dtype)}});
          }
          for (bool checked : {true, false}) {
            ReferenceOptions options;
            options.checked = checked;
            const auto wanted = evaluate(graph, inputs, options);
            const auto got = code->run(inputs, options);
            REQUIRE(static_cast<bool>(wanted) == static_cast<bool>(got));
            if (wanted) {
              CHECK(same_values((*got)[0], (*wanted)[0]));
              break;  // nothing to be checked
            }
            CHECK(got.error().message == wanted.error().message);
          }
        }
    }
  }
}

TEST_CASE("threaded code: random graphs") {
  for (uint32_t seed : seeds(400)) {
    const RandomOptions options = {.nodes = seed % 3 == 0 ? 60 : 25,
                                   .control_depth = 2,
                                   .host_calls = false,
                                   .most_rank = seed % 2 == 0 ? 1 : 3};
    RandomGraph random(seed, options);
    const ir::Graph graph = random.make();
    const Arrays inputs = random.random_inputs(graph);
    INFO("seed " << seed << "\n" << ir::print(graph));
    compare(graph, inputs);
  }
}

TEST_CASE("threaded code: host calls happen in order, with their operands") {
  for (uint32_t seed : seeds(100)) {
    RandomGraph random(seed, {.nodes = 20, .host_calls = true, .most_rank = 1});
    const ir::Graph graph = random.make();
    const Arrays inputs = random.random_inputs(graph);
    std::string calls;
    ReferenceOptions options;
    options.host_call = [&](const ir::Node& node, int64_t,
                            const Arrays& operands, Arrays& results) -> Status {
      answer(operands, results);
      calls += ir::attrs<ir::HostCallAttrs>(node).function + ":";
      for (const HostArray& operand : operands) {
        calls += operand.type.to_string();
        calls.append(operand.bytes.begin(), operand.bytes.end());
      }
      return Unit{};
    };
    const auto wanted = evaluate(graph, inputs, options);
    REQUIRE(wanted);
    const std::string expected = std::exchange(calls, "");
    const auto got = lowered(graph)->run(inputs, options);
    INFO("seed " << seed << "\n" << ir::print(graph));
    REQUIRE(got);
    CHECK(calls == expected);
    for (size_t i = 0; i < wanted->size(); ++i)
      CHECK(same_values((*got)[i], (*wanted)[i]));
  }
}

namespace {
/// Writes x[i] = i for so many i in a loop, under a condition if `branch`.
ir::Graph writes(int64_t size, int32_t turns, bool branch) {
  ir::Graph graph;
  const ir::Type count{DType::I32, {}}, type{DType::F32, {size}};
  const auto x = graph.add_input(type);
  const auto zero =
      graph.add_constant(count, element_bytes(DType::I32, int64_t{0}));
  auto condition = std::make_shared<ir::Graph>(),
       body = std::make_shared<ir::Graph>();
  for (auto& part : {condition, body}) {
    part->add_input(count);
    part->add_input(type);
  }
  condition->outputs = {condition->add(
      ir::Op::lt, {0, condition->add_constant(
                          count, element_bytes(DType::I32, int64_t{turns}))})};
  const auto write = [&](ir::Graph& g, ir::NodeId i, ir::NodeId array) {
    const auto value = g.add(ir::Op::cast, {i}, ir::CastAttrs{DType::F32});
    return g.add(ir::Op::scatter, {array, value, i}, ir::IndexAttrs{{0}}, 5);
  };
  ir::NodeId next = 1;
  if (branch) {
    auto one = std::make_shared<ir::Graph>(),
         other = std::make_shared<ir::Graph>();
    for (auto& part : {one, other}) {
      part->add_input(count);
      part->add_input(type);
    }
    one->outputs = {write(*one, 0, 1)};
    other->outputs = {1};
    const auto two =
        body->add_constant(count, element_bytes(DType::I32, int64_t{2}));
    const auto none =
        body->add_constant(count, element_bytes(DType::I32, int64_t{0}));
    const auto even =
        body->add(ir::Op::eq, {body->add(ir::Op::mod, {0, two}), none});
    const auto node =
        body->add(ir::Op::if_else, {even, 0, 1}, ir::IfAttrs{one, other});
    next = body->add(ir::Op::project, {node}, ir::ProjectAttrs{0});
  } else {
    next = write(*body, 0, 1);
  }
  const auto step =
      body->add_constant(count, element_bytes(DType::I32, int64_t{1}));
  body->outputs = {body->add(ir::Op::add, {0, step}), next};
  const auto loop =
      graph.add(ir::Op::loop, {zero, x}, ir::LoopAttrs{condition, body, 2});
  graph.outputs = {graph.add(ir::Op::project, {loop}, ir::ProjectAttrs{1})};
  return graph;
}
}  // namespace

TEST_CASE("threaded code: elements are written in place") {
  for (bool branch : {false, true}) {
    constexpr int64_t size = 1000;
    const ir::Graph graph = writes(size, 900, branch);
    const auto code = lowered(graph);
    const HostArray x = array(DType::F32, {size}, std::vector<double>(size, 3));
    compare(graph, {x});
    // The input is the caller's: copied once.
    const auto outcome = code->run_values(
        {reference::Value::view(x.bytes.data(), x.type.bytes())}, {});
    REQUIRE(outcome);
    CHECK(outcome->bytes_copied == x.type.bytes());
    // Or it is given away.
    auto own = reference::Value::allocate(x.type.bytes());
    std::copy(x.bytes.begin(), x.bytes.end(), own.mutable_data());
    std::vector<reference::Value> given;
    given.push_back(std::move(own));
    const auto again = code->run_values(std::move(given), {});
    REQUIRE(again);
    CHECK(again->bytes_copied == 0);
  }
}

TEST_CASE("threaded code: an index outside, and a divisor of 0") {
  const HostArray x = array(DType::F32, {3}, {1, 2, 3});
  for (double i : {-4., -3., -1., 0., 2., 3., 1e6}) {
    compare(parsed("%0: f32[3] = input\n%1: i32 = input\n"
                   "%2: f32 = gather %0, %1 axes=[0] @9\nreturn %2\n"),
            {x, scalar_array(DType::I32, i)});
    compare(parsed("%0: f32[3] = input\n%1: i64 = input\n"
                   "%2: f32 = input\n"
                   "%3: f32[3] = scatter %0, %2, %1 axes=[0] @9\n"
                   "return %3, %0\n"),
            {x, scalar_array(DType::I64, i), scalar_array(DType::F32, 8)});
  }
  const HostArray y = array(DType::I16, {2, 3}, {1, 2, 3, 4, 5, 6});
  for (double i : {-3., -2., 0., 1., 2.})
    for (double j : {-4., -3., 2., 3.})
      compare(parsed("%0: i16[2, 3] = input\n%1: i32 = input\n"
                     "%2: i32 = input\n"
                     "%3: i16 = gather %0, %1, %2 axes=[0, 1] @9\n"
                     "%4: i16 = gather %0, %2, %1 axes=[1, 0] @9\n"
                     "return %3, %4\n"),
              {y, scalar_array(DType::I32, i), scalar_array(DType::I32, j)});
  for (DType dtype : {DType::I32, DType::U8, DType::I64})
    for (double divisor : {0., 3.}) {
      ir::Graph graph;
      const auto a = graph.add_input({dtype, {}});
      const auto b = graph.add_input({dtype, {}});
      graph.outputs = {graph.add(ir::Op::mod, {a, b}, ir::NoAttrs{}, 4)};
      compare(graph, {scalar_array(dtype, 7), scalar_array(dtype, divisor)});
      ReferenceOptions unchecked;
      unchecked.checked = false;
      compare(graph, {scalar_array(dtype, 7), scalar_array(dtype, divisor)},
              unchecked);
    }
}

TEST_CASE("threaded code: carries that change places") {
  compare(parsed("%0: i32 = input\n%1: i64 = input\n%2: i64 = input\n"
                 "%3: i32[4] = input\n%4: i32[4] = input\n"
                 "%5: i32 = loop %0, %1, %2, %3, %4 carries=5 condition={\n"
                 "  %0: i32 = input\n  %1: i64 = input\n"
                 "  %2: i64 = input\n  %3: i32[4] = input\n"
                 "  %4: i32[4] = input\n"
                 "  %5: i32 = constant 0\n"
                 "  %6: bool = gt %0, %5\n  return %6\n} body={\n"
                 "  %0: i32 = input\n  %1: i64 = input\n"
                 "  %2: i64 = input\n  %3: i32[4] = input\n"
                 "  %4: i32[4] = input\n"
                 "  %5: i32 = constant 1\n"
                 "  %6: i32 = sub %0, %5\n"
                 "  %7: i64 = add %1, %2\n"
                 "  return %6, %2, %7, %4, %3\n}\n"
                 "%6: i64 = project %5 index=1\n"
                 "%7: i64 = project %5 index=2\n"
                 "%8: i32[4] = project %5 index=3\n"
                 "%9: i32[4] = project %5 index=4\n"
                 "return %6, %7, %8, %9\n"),
          {scalar_array(DType::I32, 7), scalar_array(DType::I64, 0),
           scalar_array(DType::I64, 1), array(DType::I32, {4}, {1, 2, 3, 4}),
           array(DType::I32, {4}, {5, 6, 7, 8})});
}

TEST_CASE("threaded code: it stops, and its turns are counted") {
  const ir::Graph graph = writes(10, 10, false);
  const HostArray x = array(DType::F32, {10}, std::vector<double>(10, 3));
  const auto values = [&] {
    return std::vector{reference::Value::view(x.bytes.data(), x.type.bytes())};
  };
  for (int64_t most : {1, 4, 10, 100}) {
    Bytecode::Turns turns{most};
    const auto outcome = lowered(graph)->run_values(values(), {}, &turns);
    REQUIRE(outcome);
    CHECK(turns.taken == std::min<int64_t>(most, 10));
    // What the loop with so many turns gives.
    const auto wanted =
        evaluate(writes(10, static_cast<int32_t>(turns.taken), false), {x});
    CHECK(std::equal((*wanted)[0].bytes.begin(), (*wanted)[0].bytes.end(),
                     outcome->values[0].data()));
  }
  Bytecode::Turns turns;
  CHECK(!lowered(writes(10, 12, false))->run_values(values(), {}, &turns));
  CHECK(turns.taken == 10);  // the eleventh is outside
  ReferenceOptions options;
  int polls = 0;
  options.stop = [&] { return ++polls > 0; };
  const auto stopped =
      lowered(writes(10, 2'000'000'000, false))->run({x}, options);
  REQUIRE(!stopped);
  // x[10] is outside before anybody asks.
  CHECK(stopped.error().kind == Error::Kind::index_out_of_bounds);
  const auto endless = parsed(
      "%0: i32 = input\n%1: i32 = loop %0 carries=1 condition={\n"
      "  %0: i32 = input\n  %1: bool = eq %0, %0\n  return %1\n} body={\n"
      "  %0: i32 = input\n  return %0\n}\nreturn %1\n");
  const auto ended =
      lowered(endless)->run({scalar_array(DType::I32, 1)}, options);
  REQUIRE(!ended);
  CHECK(ended.error().kind == Error::Kind::cancelled);
}

TEST_CASE("threaded code: no collectives, no unknown sizes") {
  ir::Graph graph;
  const auto x = graph.add_input({DType::F32, {}});
  graph.outputs = {graph.add(ir::Op::all_reduce, {x}, ir::CollectiveAttrs{})};
  CHECK(!Bytecode::lower(std::make_shared<const ir::Graph>(graph)));
}
