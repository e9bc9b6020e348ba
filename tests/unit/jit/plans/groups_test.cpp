// What a group takes in, what it asks for instead, and what its nest then is;
// and graphs that go these ways, compiled.
#include <algorithm>
#include <memory>
#include <stdexcept>

#include "jit/kernel/group.h"
#include "tests/unit/jit/compiled.h"
#include "tests/unit/jit/parsed.h"

using namespace unisono;
using namespace unisono::jit;
using namespace unisono::jit::testing;
using ir::NodeId;
using Outcome = Group::Outcome;

namespace {

/// A group of nodes of a graph whose inputs are buffers 0, 1 and so on.
struct Nodes {
  ir::Graph graph;
  Machine machine;
  Sources sources;
  Group group;

  explicit Nodes(const std::string& text)
      : graph(parsed(text)), sources(graph, true, machine), group(sources, 0) {
    sources.uses.assign(graph.nodes.size(), 1);
    for (size_t i = 0; i < graph.inputs.size(); ++i)
      sources.buffer[graph.inputs[i]] = static_cast<int>(i);
  }
  Nodes(const Nodes&) = delete;

  Outcome add(NodeId node) { return group.add(node).outcome; }
  /// The node that has to be stored for this one; -1 if it is not that.
  NodeId needed(NodeId node) {
    const Group::Answer answer = group.add(node);
    return answer.outcome == Outcome::needs ? answer.needed : -1;
  }
  /// The nest, of which this member is stored.
  Nest nest_of(NodeId member) {
    group.store(member, 100);
    std::vector<Argument> arguments;
    return group.finish(arguments);
  }
};

/// The nest of this node alone.
Nest nest_of(const std::string& text, NodeId node) {
  Nodes nodes(text);
  REQUIRE(nodes.add(node) == Outcome::added);
  return nodes.nest_of(node);
}

/// What is different from the evaluator; inputs are numbers from -2 to 2.
std::string difference(const std::string& text) {
  const ir::Graph graph = parsed(text);
  Arrays inputs;
  for (const ir::Type& type : graph.input_types()) {
    std::vector<double> values;
    for (int64_t i = 0; i < type.elements(); ++i)
      values.push_back(0.25 * static_cast<double>((i * 7 + 3) % 17 - 8));
    inputs.push_back(array(type.dtype, type.sizes(), values));
  }
  Bench bench;
  return difference(bench, graph, inputs);
}

}  // namespace

TEST_CASE("nodes that no group takes in") {
  Nodes nodes(
      "%0: f32[4] = input\n"
      "%1: f32[4] = sort %0\n"
      "%2: f32[4] = all_reduce %0 axes=[1] sizes=[4]\n"
      "%3: bool = host_call %0 format=[\"\", \"\"] specs=[\"\"]\n"
      "%4: f32[4] = loop %0 carries=1 turns=3 body={\n"
      "  %0: i64 = input\n  %1: f32[4] = input\n"
      "  %2: f32[4] = sin %1\n  return %2\n}\n"
      "%5: f32[4] = project %4\nreturn %1, %2, %5\n");
  for (const NodeId node : {0, 1, 2, 3, 4, 5})
    CHECK(nodes.add(node) == Outcome::declined);
  CHECK(nodes.group.empty());
}

TEST_CASE("what is the first of a group, or not in it") {
  const std::string text =
      "%0: f32[4, 4] = input\n%1: i32[4] = input\n"
      "%2: f32[4, 4] = neg %0\n"
      "%3: f32[4, 4] = dot %0, %0 contract_a=[1] contract_b=[0]\n"
      "%4: f32[4, 4] = cumsum %0 axis=1\n"
      "%5: f32[4, 4] = scatter %0, %0, %1 axes=[0]\n"
      "%6: i32[4, 100] = broadcast %1 axes=[0]\n"
      "%7: i32[4] = sum %6 axes=[1]\n"
      "%8: f32[8, 4] = concat %4, %5 axis=0\n"
      "return %2, %3, %7, %8\n";
  for (const NodeId first : {3, 4, 5}) {
    Nodes after(text);
    CHECK(after.add(2) == Outcome::added);
    CHECK(after.add(first) == Outcome::declined);
    CHECK(after.group.nodes() == std::vector<NodeId>{2});
    CHECK(after.group.is_plain_map());

    Nodes before(text);
    CHECK(before.add(first) == Outcome::added);
    CHECK_FALSE(before.group.is_plain_map());
    CHECK_FALSE(before.group.store_joined(8, {first, first}, 7));
    // Beside a product's sums there is room for what is at their points.
    CHECK(before.add(2) == (first == 3 ? Outcome::added : Outcome::declined));
    CHECK(before.add(7) == Outcome::declined);
  }
  Nodes sum(text);
  CHECK(sum.add(7) == Outcome::added);
  CHECK_FALSE(sum.group.is_plain_map());
  CHECK(sum.add(3) == Outcome::declined);
  CHECK_THROWS_AS((void)sum.group.add_box(0, {4, 4}, 2, {0, 0}, 7),
                  std::logic_error);
}

TEST_CASE("reductions of one element are that element") {
  const std::string input = "%0: f16[5, 1] = input\n";
  const auto only = [](const Nest& nest) {
    REQUIRE(nest.exprs.size() == 1);
    CHECK(nest.extents == std::vector<int64_t>{5});
    CHECK(nest.reductions.empty());
    CHECK_FALSE(nest.scan);
    return nest.exprs[0];
  };
  for (const std::string what :
       {"%1: f16[5] = sum %0 axes=[1]\n", "%1: f16[5, 1] = cumsum %0 axis=1\n",
        "%1: f16[5, 1] = sum %0 axes=[]\n"}) {
    const Expr expr = only(nest_of(input + what + "return %1\n", 1));
    CHECK(expr.kind == Expr::Kind::load);
    CHECK(expr.dtype == DType::F16);
    CHECK(expr.at == Affine{0, {1}});
  }
  const Expr place =
      only(nest_of(input + "%1: i32[5] = argmax %0 axes=[1]\nreturn %1\n", 1));
  CHECK(place.kind == Expr::Kind::constant);
  CHECK(place.dtype == DType::I32);
  CHECK(place.bits == 0);
}

TEST_CASE("what has to be stored before it is read") {
  // Constants of several elements, which are in memory anyway.
  Nodes constant(
      "%0: f32[2] = input\n"
      "%1: f32[2] = constant [1, 2]\n%2: f32[2] = add %0, %1\nreturn %2\n");
  CHECK(constant.needed(2) == 1);
  // Parts of a choice that no nest can compute on the way, or that may fail.
  const auto part = [](const std::string& what) {
    Nodes nodes(
        "%0: i32[20] = input\n%1: i32[20] = input\n%2: i32[20] = " + what +
        "\n%3: i32[40] = concat %0, %2 axis=0\n"
        "%4: i32[40] = neg %3\nreturn %4\n");
    return nodes.needed(4);
  };
  CHECK(part("cumsum %1 axis=0") == 2);
  CHECK(part("floor_div %0, %1 @5") == 2);
  CHECK(part("bit_xor %0, %1") == -1);
  // What is added around an array.
  Nodes padded(
      "%0: f32[40] = input\n%1: f32 = sum %0 axes=[0]\n%2: f32 = neg %1\n"
      "%3: f32[42] = pad %0, %2 low=[1] high=[1]\n"
      "%4: f32[42] = sin %3\nreturn %4\n");
  CHECK(padded.needed(4) == 1);
  // Parts that are computed, and read at two places of one nest.
  Nodes twice(
      "%0: f32[20, 2] = input\n%1: f32[20, 2] = mul %0, %0\n"
      "%2: f32[20, 2] = add %0, %0\n%3: f32[40, 2] = concat %1, %2 axis=0\n"
      "%4: f32[40] = max %3 axes=[1]\n%5: f32[40] = neg %4\nreturn %5\n");
  CHECK(twice.needed(5) == 3);
}

TEST_CASE("dear values that a later loop would compute again") {
  const std::string text =
      "%0: f32[8, 100] = input\n%1: f32[8, 100] = exp %0\n"
      "%2: f32[8] = sum %1 axes=[1]\n"
      "%3: f32[8, 100] = broadcast %2 axes=[0]\n"
      "%4: f32[8, 100] = div %1, %3\nreturn %4\n";
  // They are no member: nobody can store them.
  Nodes pulled(text);
  CHECK(pulled.add(2) == Outcome::added);
  CHECK(pulled.add(4) == Outcome::declined);
  // They are: they are stored, and loaded again.
  Nodes member(text);
  CHECK(member.add(1) == Outcome::added);
  CHECK(member.add(2) == Outcome::added);
  member.sources.step[1] = member.sources.step[2] = 0;
  const Group::Answer answer = member.group.add(4);
  CHECK(answer.outcome == Outcome::keep);
  CHECK(answer.needed == 1);
  member.group.store(1, 50);
  member.sources.buffer[1] = 50;
  CHECK(member.add(4) == Outcome::added);
  const Nest nest = member.nest_of(4);
  CHECK(std::ranges::count_if(nest.exprs, [](const Expr& expr) {
          return expr.kind == Expr::Kind::load && expr.phase == 1;
        }) == 1);
  CHECK(std::ranges::count(nest.exprs, ir::Op::exp, &Expr::op) == 1);
}

TEST_CASE("parts of a concat that have no elements") {
  Nodes nodes(
      "%0: f32[30] = input\n%1: f32[0] = input\n%2: f32[40] = input\n"
      "%3: f32[70] = concat %0, %1, %2 axis=0\n%4: f32[70] = neg %3\n"
      "return %4\n");
  CHECK(nodes.add(4) == Outcome::added);
  const Nest nest = nodes.nest_of(4);
  const auto choice =
      std::ranges::find(nest.exprs, Expr::Kind::choice, &Expr::kind);
  REQUIRE(choice != nest.exprs.end());
  CHECK(choice->bounds == std::vector<int64_t>{30});
  CHECK(choice->operands.size() == 2);
}

TEST_CASE("concats and pads of what is computed, compiled") {
  // The same points under another shape, in which they are no rows.
  CHECK(difference("%0: f32[6, 4] = input\n%1: f32[6, 4] = sin %0\n"
                   "%2: f32[6, 4] = cos %0\n%3: f32[4, 6] = reshape %1\n"
                   "%4: f32[4, 6] = reshape %2\n"
                   "%5: f32[4, 12] = concat %3, %4 axis=1\nreturn %5\n") == "");
  // Windows of a row, each one element behind the one before.
  std::string windows = "%0: f32[40] = input\n%1: f32[3, 38] = input\n";
  for (int i = 0; i < 3; ++i)
    windows += "%" + std::to_string(2 + 2 * i) +
               ": f32[38] = slice %0 start=[" + std::to_string(i) + "]\n%" +
               std::to_string(3 + 2 * i) + ": f32[1, 38] = reshape %" +
               std::to_string(2 + 2 * i) + "\n";
  CHECK(difference(windows + "%8: f32[3, 38] = concat %3, %5, %7 axis=0\n"
                             "%9: f32[3, 38] = mul %8, %1\nreturn %9\n") == "");
  CHECK(difference("%0: f32[40] = input\n%1: f32 = sum %0 axes=[0]\n"
                   "%2: f32 = neg %1\n"
                   "%3: f32[42] = pad %0, %2 low=[1] high=[1]\n"
                   "%4: f32[42] = sin %3\nreturn %4\n") == "");
  CHECK(difference("%0: f32[20, 2] = input\n%1: f32[20, 2] = mul %0, %0\n"
                   "%2: f32[20, 2] = add %0, %0\n"
                   "%3: f32[40, 2] = concat %1, %2 axis=0\n"
                   "%4: f32[40] = max %3 axes=[1]\n%5: f32[40] = neg %4\n"
                   "return %5\n") == "");
  CHECK(difference("%0: f32[8, 100] = input\n%1: f32[8, 100] = exp %0\n"
                   "%2: f32[8] = sum %1 axes=[1]\n"
                   "%3: f32[8, 100] = broadcast %2 axes=[0]\n"
                   "%4: f32[8, 100] = flip %1 axes=[1]\n"
                   "%5: f32[8, 100] = div %4, %3\nreturn %5\n") == "");
}

TEST_CASE("errors name the member whatever nest computes it") {
  const auto failed = [](const std::string& text, int64_t wrong) {
    // The member of which the divisor with this number is 0.
    const ir::Graph graph = parsed(text);
    Arrays inputs;
    for (const ir::Type& type : graph.input_types()) {
      std::vector<double> values(static_cast<size_t>(type.elements()), 3);
      if (inputs.size() == 1) values[static_cast<size_t>(wrong)] = 0;
      inputs.push_back(array(type.dtype, type.sizes(), values));
    }
    Bench bench;
    const auto got = bench.run(graph, inputs);
    REQUIRE_FALSE(got);
    CHECK(got.error().source == 5);
    return got.error().member;
  };
  // An axis of its nest is cut for what comes later.
  const std::string cut =
      "%0: i32[4, 6] = input\n%1: i32[4, 6] = input\n%2: i32[4, 2, 3] = input\n"
      "%3: i32[4, 6] = floor_div %0, %1 @5 by member\n"
      "%4: i32[4, 2, 3] = reshape %3\n%5: i32[4, 2, 3] = add %4, %2\n"
      "return %5\n";
  for (const int64_t wrong : {0, 5, 6, 17, 23})
    CHECK(failed(cut, wrong) == wrong / 6);
  // It is behind a sum that is cut into chunks.
  const std::string summed =
      "%0: i32[4] = input\n%1: i32[4] = input\n%2: i32[4, 40000] = input\n"
      "%3: i32[4, 40000] = broadcast %0 axes=[0]\n"
      "%4: i32[4, 40000] = mul %2, %3\n%5: i32[4] = sum %4 axes=[1]\n"
      "%6: i32[4] = floor_div %0, %1 @5 by member\nreturn %5, %6\n";
  for (const int64_t wrong : {0, 3}) CHECK(failed(summed, wrong) == wrong);
}
