#include "jit/pipeline.h"
#include "jit/transform/transforms.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <random>

#include "jit/ir/kinds.h"
#include "jit/ir/text.h"
#include "jit/ir/verify.h"
#include "jit/transform/fold_arrays.h"
#include "tests/unit/jit/arrays.h"
#include "tests/unit/jit/random_graph.h"

using namespace unisono;
using namespace unisono::jit;
using ir::Graph;
using ir::Op;

namespace {

Graph parsed(const char* text) {
  auto g = ir::parse(text);
  if (!g) FAIL(g.error().message);
  return *std::move(g);
}

/// The passes' result for a graph in printed form.
std::string optimised(const char* text) {
  return ir::print(optimise(parsed(text)));
}

std::vector<std::string> host_output(const Graph& g,
                                     const std::vector<HostArray>& inputs,
                                     std::vector<HostArray>* outputs) {
  std::vector<std::string> calls;
  ReferenceOptions options;
  options.host_call = [&](const ir::Node& node, int64_t member,
                          const std::vector<HostArray>& operands,
                          std::vector<HostArray>& results) -> Status {
    CHECK(member == -1);
    answer(operands, results);
    const auto& attrs = ir::attrs<ir::HostCallAttrs>(node);
    if (attrs.pure) return Unit{};
    std::string call =
        attrs.function.empty() ? attrs.format[0] : attrs.function;
    for (const auto& x : operands)
      for (double v : values_of(x)) call += std::to_string(v) + " ";
    calls.push_back(call);
    return Unit{};
  };
  *outputs = outputs_of(g, inputs, options);
  return calls;
}

void check_preserves(Graph (*pass)(const Graph&), uint32_t seed) {
  CAPTURE(seed);
  RandomGraph random(seed, {25, 2, false, 1, true});
  const Graph g = random.make();
  const Graph h = pass(g);
  if (auto good = ir::verify(h); !good)
    FAIL(good.error().message << "\n" << ir::print(g) << ir::print(h));
  REQUIRE(h.input_types() == g.input_types());
  REQUIRE(h.output_types() == g.output_types());
  const auto inputs = random.random_inputs(g);
  std::vector<HostArray> before, after;
  const auto said_before = host_output(g, inputs, &before);
  const auto said_after = host_output(h, inputs, &after);
  CHECK(said_before == said_after);
  for (size_t i = 0; i < before.size(); ++i)
    if (!same_values(before[i], after[i]))
      FAIL("output " << i << "\n" << ir::print(g) << ir::print(h));
}

}  // namespace

TEST_CASE("passes keep every bit of random graphs") {
  for (uint32_t seed = 0; seed < 1500; ++seed) {
    check_preserves(simplify, seed);
    check_preserves(cse_dce, seed);
    check_preserves(fold_arrays, seed);
    check_preserves(narrow_products, seed);
    check_preserves(pull_gathers, seed);
    check_preserves([](const Graph& g) { return optimise(g); }, seed);
  }
}

TEST_CASE("identities that keep every bit") {
  const auto returns_input = [](const char* middle) {
    const std::string text = std::string("%0: f32[4, 3] = input\n") + middle;
    const std::string out = optimised(text.c_str());
    CHECK(out == "%0: f32[4, 3] = input\nreturn %0\n");
  };
  returns_input(
      "%1: f32 = constant 1\n%2: f32[4, 3] = broadcast %1\n"
      "%3: f32[4, 3] = mul %0, %2\nreturn %3\n");
  returns_input(
      "%1: f32[4, 3] = constant -0\n%2: f32[4, 3] = add %1, %0\nreturn %2\n");
  returns_input(
      "%1: f32[3, 4] = transpose %0 axes=[1, 0]\n"
      "%2: f32[4, 3] = transpose %1 axes=[1, 0]\nreturn %2\n");
  returns_input(
      "%1: f32[12] = reshape %0\n%2: f32[2, 6] = reshape %1\n"
      "%3: f32[4, 3] = reshape %2\nreturn %3\n");
  returns_input(
      "%1: f32[4, 3] = flip %0 axes=[0]\n"
      "%2: f32[4, 3] = flip %1 axes=[0]\nreturn %2\n");
  returns_input(
      "%1: f32[4, 3] = slice %0\n%2: f32[4, 3] = concat %1\n"
      "%3: f32[4, 3] = cast %2\n%4: f32[4, 3] = neg %3\n"
      "%5: f32[4, 3] = neg %4\nreturn %5\n");
  returns_input(
      "%1: bool[4, 3] = constant false\n%2: f32[4, 3] = neg %0\n"
      "%3: f32[4, 3] = select %1, %2, %0\nreturn %3\n");
}

TEST_CASE("the sign comes out of odd functions, which are odd to the bit") {
  const std::string out = optimised(
      "%0: f32[7] = input\n%1: f32[7] = constant 0.7\n"
      "%2: f32[7] = mul %0, %1\n%3: f32[7] = erf %2\n"
      "%4: f32[7] = neg %0\n%5: f32[7] = mul %4, %1\n"
      "%6: f32[7] = erf %5\n%7: f32[7] = sub %3, %6\nreturn %7\n");
  CAPTURE(out);
  CHECK(out.find("erf") == out.rfind("erf"));
  constexpr int64_t count = 1 << 16;
  for (const char* function : {"sin", "tan", "asin", "atan", "sinh", "tanh",
                               "asinh", "atanh", "erf", "erf_inv"})
    for (const DType dtype : {DType::F16, DType::F32, DType::F64}) {
      const std::string type =
          fmt::format("{}[{}]", unisono::name(dtype), count);
      CAPTURE(function);
      CAPTURE(type);
      // The function itself: the reference evaluator knows no rules.
      const Graph g = parsed(fmt::format("%0: {0} = input\n%1: {0} = neg %0\n"
                                         "%2: {0} = {1} %1\n%3: {0} = {1} %0\n"
                                         "%4: {0} = neg %3\nreturn %2, %4\n",
                                         type, function)
                                 .c_str());
      HostArray x{{dtype, ir::Shape{count}}, {}};
      for (int64_t i = 0; i < count; ++i)  // all exponents, and all of f16
        for (int64_t b = 0; b < byte_size(dtype); ++b)
          x.bytes.push_back(static_cast<uint8_t>(
              (b + byte_size(dtype)) % 2 ? i >> 8 : i * (b / 2 * 18 + 1)));
      const auto both = outputs_of(g, {x});
      CHECK(same_values(both[0], both[1]));
    }
}

TEST_CASE("a choice between an array and writes to it is a write") {
  const std::string head =
      "%0: f32[4, 9] = input\n%1: i32[4] = input\n%2: f32[4] = input\n"
      "%3: bool[4] = input\n%4: i32[4] = iota axis=0\n"
      "%5: f32[4, 9] = scatter %0, %2, %4, %1 axes=[0, 1] @7\n"
      "%6: bool[4, 9] = broadcast %3 axes=[0]\n";
  for (const char* choice : {"%7: f32[4, 9] = select %6, %5, %0\n",
                             "%7: f32[4, 9] = select %6, %0, %5\n"}) {
    const std::string out = optimised((head + choice + "return %7\n").c_str());
    CAPTURE(out);
    // One write, checked where it was, of what is there or what is new.
    CHECK(out.find("scatter %0, ") != out.npos);
    CHECK(out.find("axes=[0, 1] @7") != out.npos);
    CHECK(out.find("scatter") == out.rfind("scatter"));
    CHECK(out.find("select") < out.find("scatter"));
    CHECK(out.find("bool[4, 9]") == out.npos);
  }
  // A condition of its own for each element stays.
  const std::string other = optimised(
      "%0: f32[9] = input\n%1: i32 = input\n%2: f32 = input\n"
      "%3: bool[9] = input\n%4: f32[9] = scatter %0, %2, %1 axes=[0]\n"
      "%5: f32[9] = select %3, %4, %0\nreturn %5\n");
  CHECK(other.find("select %3, %4, %0") != other.npos);
}

namespace {

/// A gather or a scatter at random positions that are, most often, a box of an
/// array: each counted axis goes on along one axis of the positions or none.
Graph random_box(std::mt19937& random, Op op) {
  const auto draw = [&](int64_t low, int64_t high) {
    return std::uniform_int_distribution<int64_t>(low, high)(random);
  };
  Graph g;
  ir::Shape shape, positions;
  for (int64_t i = draw(1, 3); i > 0; --i) shape.emplace_back(draw(1, 6));
  std::vector<int> axes(shape.size());
  std::iota(axes.begin(), axes.end(), 0);
  std::ranges::shuffle(axes, random);
  axes.resize(static_cast<size_t>(draw(1, static_cast<int64_t>(axes.size()))));
  std::vector<int> along;
  for (const int axis : axes) {
    const int64_t size = shape[static_cast<size_t>(axis)].value();
    const bool varies = draw(0, 3) > 0;
    along.push_back(varies ? static_cast<int>(positions.size()) : -1);
    if (varies) positions.emplace_back(draw(1, size));
  }
  if (draw(0, 3) == 0) positions.emplace_back(1);
  ir::Shape part = positions;
  for (int axis = 0; axis < static_cast<int>(shape.size()); ++axis)
    if (std::ranges::find(axes, axis) == axes.end())
      part.push_back(shape[static_cast<size_t>(axis)]);
  const bool is_same = op == Op::scatter && draw(0, 3) == 0;
  const ir::NodeId given = is_same ? -1 : g.add_input({DType::F32, shape});
  const ir::NodeId updates =
      op == Op::scatter ? g.add_input({DType::F32, part}) : -1;
  const ir::NodeId base =
      is_same ? g.add_constant({DType::F32, shape},
                               jit::element_bytes(DType::F32, 2.0))
              : given;
  std::vector<ir::NodeId> indices;
  for (size_t i = 0; i < axes.size(); ++i) {
    const int64_t size = shape[static_cast<size_t>(axes[i])].value();
    const int p = along[i];
    const int64_t count = p < 0 ? 1 : positions[static_cast<size_t>(p)].value();
    const int64_t step = count > 1 ? draw(1, (size - 1) / (count - 1)) : 1;
    const int64_t start =
        draw(draw(0, 9) == 0 ? -1 : 0, size - 1 - step * (count - 1));
    const auto number = [&](int64_t value) {
      return g.add_constant(
          {DType::I32, positions},
          jit::element_bytes(DType::I32, static_cast<double>(value)));
    };
    ir::NodeId index = number(start);
    if (p >= 0) {
      const ir::NodeId place =
          g.add(Op::iota, {}, ir::IotaAttrs{{DType::I32, positions}, p});
      index = g.add(Op::add, {g.add(Op::mul, {place, number(step)}), index});
    }
    indices.push_back(index);
  }
  std::vector<ir::NodeId> operands = {base};
  if (op == Op::scatter) operands.push_back(updates);
  operands.insert(operands.end(), indices.begin(), indices.end());
  g.outputs = {g.add(op, operands, ir::IndexAttrs{axes, false})};
  return g;
}

}  // namespace

TEST_CASE(
    "boxes that are read are slices, large ones that are written joined") {
  std::mt19937 random(5);
  RandomGraph values(5, {25, 2, false, 1, true});
  int rewritten = 0;
  for (int turn = 0; turn < 2000; ++turn) {
    const Op op = turn % 2 ? Op::scatter : Op::gather;
    const Graph g = random_box(random, op);
    const Graph h = optimise(g);
    rewritten += std::ranges::none_of(
        h.nodes, [&](const ir::Node& node) { return node.op == op; });
    const auto inputs = values.random_inputs(g);
    const auto before = outputs_of(g, inputs), after = outputs_of(h, inputs);
    if (!same_values(before[0], after[0])) FAIL(ir::print(g) << ir::print(h));
  }
  CHECK(rewritten > 1200);
}

TEST_CASE("x + 0.0 stays, for -0.0 + 0.0 is 0.0") {
  const char* text =
      "%0: f32 = input\n%1: f32 = constant 0\n%2: f32 = add %0, %1\n"
      "return %2\n";
  CHECK(optimised(text) == text);
}

TEST_CASE("constants fold to scalars, errors wait for the run") {
  CHECK(optimised("%0: f32[8] = constant 3\n%1: f32[8] = mul %0, %0\n"
                  "%2: f32[8] = neg %1\nreturn %2\n") ==
        "%0: f32[8] = constant -9\nreturn %0\n");
  const char* text =
      "%0: i32 = constant 1\n%1: i32 = constant 0\n"
      "%2: i32 = floor_div %0, %1 @5\nreturn %0\n";
  CHECK(optimised(text) == text);
}

TEST_CASE("dear arrays that no input has a part in are constants") {
  const auto ops = [](const std::string& text) {
    std::vector<Op> out;
    for (const ir::Node& node : optimise(parsed(text.c_str())).nodes)
      out.push_back(node.op);
    return out;
  };
  using Ops = std::vector<Op>;
  CHECK(ops("%0: f64[4] = input\n%1: f64[4] = iota axis=0\n"
            "%2: f64[4] = exp %1\n%3: f64[4] = add %2, %1\n"
            "%4: f64[4] = mul %0, %3\nreturn %4\n") ==
        Ops{Op::input, Op::constant, Op::mul});
  // What is cheap is computed where it is read, and moves are no work.
  CHECK(ops("%0: f64[4] = input\n%1: f64[4] = iota axis=0\n"
            "%2: f64[4] = add %1, %1\n%3: f64[4] = mul %0, %2\n"
            "return %3\n") == Ops{Op::input, Op::iota, Op::add, Op::mul});
  CHECK(ops("%0: f64[9, 4] = input\n%1: f64[4] = iota axis=0\n"
            "%2: f64[4] = exp %1\n%3: f64[9, 4] = broadcast %2 axes=[1]\n"
            "%4: f64[9, 4] = mul %0, %3\nreturn %4\n") ==
        Ops{Op::input, Op::constant, Op::broadcast, Op::mul});
  // A large product of small tables stays one.
  CHECK(ops("%0: f32[900, 400] = input\n%1: f32[400] = iota axis=0\n"
            "%2: f32[400] = exp %1\n%3: f32[900, 400] = broadcast %2 axes=[1]\n"
            "%4: f32[900] = iota axis=0\n%5: f32[900] = sin %4\n"
            "%6: f32[900, 400] = broadcast %5 axes=[0]\n"
            "%7: f32[900, 400] = mul %3, %6\n"
            "%8: f32[900, 400] = add %0, %7\nreturn %8\n") ==
        Ops{Op::input, Op::constant, Op::broadcast, Op::constant, Op::broadcast,
            Op::mul, Op::add});
  // So does what is large itself, what can fail, and what a program only gives.
  CHECK(ops("%0: f32[360000] = input\n%1: f32[360000] = iota axis=0\n"
            "%2: f32[360000] = exp %1\n%3: f32[360000] = mul %0, %2\n"
            "return %3\n") == Ops{Op::input, Op::iota, Op::exp, Op::mul});
  CHECK(ops("%0: i32[4] = input\n%1: i32[4] = iota axis=0\n"
            "%2: i32[4] = floor_div %1, %1\n%3: i32[4] = add %0, %2\n"
            "return %3\n") == Ops{Op::input, Op::iota, Op::floor_div, Op::add});
  CHECK(ops("%0: f64[4] = iota axis=0\n%1: f64[4] = exp %0\nreturn %1\n") ==
        Ops{Op::iota, Op::exp});
  // In a loop each turn reads it.
  const Graph loop = optimise(parsed(
      "%0: f64[4] = input\n%1: f64[4] = loop %0 carries=1 turns=3 body={\n"
      "  %0: i64 = input\n  %1: f64[4] = input\n  %2: f64[4] = iota axis=0\n"
      "  %3: f64[4] = cos %2\n  %4: f64[4] = mul %1, %3\n"
      "  return %4\n}\n%2: f64[4] = project %1\nreturn %2\n"));
  const auto& body = *std::get<ir::LoopAttrs>(loop.nodes[1].attrs).body;
  CHECK(body.nodes[2].op == Op::constant);
  CHECK(body.nodes.size() == 4);
}

TEST_CASE("a loop that nobody reads goes if it surely ends") {
  /// Of a carry i from %0 on, with a bound from %1.
  const auto stays = [](const std::string& condition, const std::string& next) {
    const std::string inputs = "  %0: i64 = input\n  %1: i64 = input\n";
    const std::string text =
        "%0: i64 = input\n%1: i64 = input\n"
        "%2: i64 = loop %0, %1 carries=1 condition={\n" +
        inputs + condition + "} body={\n" + inputs + next + "}\nreturn %1\n";
    return optimised(text.c_str()).find("loop") != std::string::npos;
  };
  const std::string below = "  %2: bool = lt %0, %1\n  return %2\n";
  const std::string above = "  %2: bool = lt %1, %0\n  return %2\n";
  const auto adds = [](const char* step) {
    return "  %2: i64 = constant " + std::string(step) +
           "\n  %3: i64 = add %0, %2\n  return %3\n";
  };
  CHECK_FALSE(stays(below, adds("1")));
  CHECK_FALSE(stays(above, adds("-1")));
  CHECK_FALSE(
      stays("  %2: bool = lt %0, %1\n  %3: bool = ne %0, %1\n"
            "  %4: bool = bit_and %3, %2\n  return %4\n",
            adds("1")));
  CHECK(stays(below, adds("-1")));
  CHECK(stays(below, adds("2")));  // past the largest number
  CHECK(stays(below, "  return %0\n"));
  CHECK(stays(below, "  %2: i64 = add %0, %1\n  return %2\n"));
  CHECK(stays("  %2: bool = ne %0, %1\n  return %2\n", adds("1")));
  CHECK(stays("  %2: bool = constant true\n  return %2\n", adds("1")));
}

TEST_CASE("a constant condition takes its branch") {
  CHECK(optimised("%0: f32 = input\n%1: bool = constant true\n"
                  "%2: f32 = if_else %1, %0 then={\n"
                  "  %0: f32 = input\n  %1: f32 = neg %0\n  return %1\n"
                  "} else={\n  %0: f32 = input\n  return %0\n}\n"
                  "%3: f32 = project %2\nreturn %3\n") ==
        "%0: f32 = input\n%1: f32 = neg %0\nreturn %1\n");
}

TEST_CASE("constants move into subgraphs, unread captures go") {
  CHECK(optimised("%0: f32 = input\n%1: bool = input\n%2: f32 = constant 1\n"
                  "%3: f32 = if_else %1, %0, %2, %0 then={\n"
                  "  %0: f32 = input\n  %1: f32 = input\n  %2: f32 = input\n"
                  "  %3: f32 = mul %0, %1\n  return %3\n} else={\n"
                  "  %0: f32 = input\n  %1: f32 = input\n  %2: f32 = input\n"
                  "  return %1\n}\n%4: f32 = project %3\nreturn %4\n") ==
        "%0: f32 = input\n%1: bool = input\n"
        "%2: f32 = if_else %1, %0 then={\n"
        "  %0: f32 = input\n  return %0\n} else={\n"
        "  %0: f32 = input\n  %1: f32 = constant 1\n  return %1\n}\n"
        "%3: f32 = project %2\nreturn %3\n");
}

TEST_CASE("equal nodes are one, effects and checks stay") {
  CHECK(optimised("%0: i32 = input\n%1: i32 = input\n"
                  "%2: i32 = floor_div %0, %1 @3\n"
                  "%3: i32 = floor_div %0, %1 @4\n"
                  "%4: i32 = add %0, %1\n"
                  "%5: i32 = add %0, %1\n"
                  "%6: bool = host_call format=[\"a\"]\n"
                  "%7: bool = host_call format=[\"a\"]\n"
                  "%8: i32 = mul %4, %5\n%9: i32 = neg %8\nreturn %8\n") ==
        "%0: i32 = input\n%1: i32 = input\n"
        "%2: i32 = floor_div %0, %1 @3\n"
        "%3: i32 = add %0, %1\n"
        "%4: bool = host_call format=[\"a\"]\n"
        "%5: bool = host_call format=[\"a\"]\n"
        "%6: i32 = mul %3, %3\nreturn %6\n");
}

TEST_CASE("routines are joined, and go where nobody reads them") {
  const std::string inverse =
      "f32[2, 2] = host_call %0 function=\"inv\" number=-1 "
      "results=[f32[2, 2]] pure=true\n";
  const std::string input = "%0: f32[2, 2] = input\n";
  CHECK(optimised((input + "%1: " + inverse +
                   "%2: f32[2, 2] = project %1\n"
                   "%3: " +
                   inverse +
                   "%4: f32[2, 2] = project %3\n"
                   "%5: f32[2] = host_call %0 function=\"eigvalsh\" "
                   "number=-1 results=[f32[2]] pure=true\n"
                   "%6: f32[2, 2] = add %2, %4\nreturn %6\n")
                      .c_str()) ==
        input + "%1: " + inverse +
            "%2: f32[2, 2] = project %1\n%3: f32[2, 2] = add %2, %2\n"
            "return %3\n");
}

TEST_CASE("of products what slices read is computed") {
  const char* const product =
      "%0: f32[3, 64, 20] = input\n%1: f32[20, 3, 48] = input\n"
      "%2: f32[3, 64, 48] = dot %0, %1 batch_a=[0] batch_b=[1] "
      "contract_a=[2] contract_b=[0]\n";
  const auto narrowed = [&](const std::string& slices) {
    const Graph graph = parsed((product + slices).c_str());
    const Graph out = narrow_products(graph);
    REQUIRE(ir::verify(out));
    RandomGraph random(5, {});
    const auto inputs = random.random_inputs(graph);
    const auto before = outputs_of(graph, inputs),
               after = outputs_of(out, inputs);
    for (size_t i = 0; i < before.size(); ++i)
      CHECK(same_values(before[i], after[i]));
    for (const ir::Node& node : out.nodes)
      if (node.op == Op::dot) return node.type.to_string();
    return std::string();
  };
  // One slice, which is then the product; two, of which the product is all that
  // they cover; one with a step; one of nothing.
  const std::string one =
      "%3: f32[2, 64, 16] = slice %2 start=[1, 0, 32] size=[2, 64, 16]\n";
  CHECK(narrowed(one + "return %3\n") == "f32[2, 64, 16]");
  CHECK(narrowed(one + "%4: f32[1, 5, 8] = slice %2 start=[2, 7, 16] "
                       "size=[1, 5, 8]\nreturn %3, %4\n") == "f32[2, 64, 32]");
  CHECK(narrowed("%3: f32[3, 10, 48] = slice %2 start=[0, 4, 0] "
                 "step=[1, 3, 1] size=[3, 10, 48]\nreturn %3\n") ==
        "f32[3, 28, 48]");
  const std::string whole = "f32[3, 64, 48]";
  CHECK(narrowed("%3: f32[3, 0, 48] = slice %2 start=[0, 4, 0] "
                 "size=[3, 0, 48]\nreturn %3\n") == whole);
  // All but a few; also read otherwise; a result.
  CHECK(narrowed("%3: f32[3, 60, 48] = slice %2 start=[0, 4, 0] "
                 "size=[3, 60, 48]\nreturn %3\n") == whole);
  CHECK(narrowed(one + "%4: f32[3, 64, 48] = neg %2\nreturn %3, %4\n") ==
        whole);
  CHECK(narrowed(one + "return %3, %2\n") == whole);
}

TEST_CASE("collectives over one member are none") {
  CHECK(optimised("%0: f32[2] = input\n"
                  "%1: f32[2] = all_reduce %0\n"
                  "%2: i32 = axis_index\n%3: f32[1, 2] = all_gather %1\n"
                  "return %1, %2, %3\n") ==
        "%0: f32[2] = input\n%1: i32 = constant 0\n"
        "%2: f32[1, 2] = reshape %0\nreturn %0, %1, %2\n");
}

TEST_CASE("inlining") {
  Graph g = parsed("%0: f32 = input\n%1: f32 = neg %0\nreturn %1\n");
  const Graph callee = parsed(
      "%0: f32 = input\n%1: f32 = input\n%2: f32 = sub %0, %1\n"
      "return %2, %0\n");
  g.outputs = inline_graph(g, callee, {1, 0});
  REQUIRE(ir::verify(g));
  const auto out = outputs_of(g, {scalar_array(DType::F32, 3)});
  CHECK(values_of(out[0]) == std::vector<double>{-6});
  CHECK(values_of(out[1]) == std::vector<double>{-3});
}
