// What the evaluator is not for is our bug: it ends with an exception that
// names the place, and never with numbers.
#include <stdexcept>
#include <string>
#include <vector>

#include "jit/ir/kinds.h"
#include "jit/ir/text.h"
#include "jit/reference/collective.h"
#include "jit/reference/kernels.h"
#include "jit/reference/nodes.h"
#include "jit/reference/product.h"
#include "jit/reference/straight.h"
#include "runtime/tuning/tuning.h"
#include "tests/unit/jit/arrays.h"

using namespace unisono;
using namespace unisono::jit;
using reference::Operand;
using reference::Value;

namespace {

ir::Graph parsed(const std::string& text) {
  auto graph = ir::parse(text);
  if (!graph) FAIL(graph.error().message);
  return *std::move(graph);
}

/// Whether f() throws what UNISONO_CHECK does.
template <class F>
bool is_ours(F&& f) {
  try {
    f();
  } catch (const std::logic_error&) {
    return true;
  }
  return false;
}

/// Graphs whose last node is what no loop over elements does.
const std::string without_loops[] = {
    R"(%0: bool = input
%1: bool = if_else %0 then={
return
} else={
return
}
return %0
)",
    "%0: f32 = input\n%1: f32 = all_reduce %0 axes=[1] sizes=[2]\nreturn %0\n",
    "%0: f32 = input\n%1: bool = host_call format=[\"a\"]\nreturn %0\n"};

}  // namespace

TEST_CASE("control, meetings and calls have no loop and no straight graph") {
  for (const std::string& text : without_loops) {
    CAPTURE(text);
    const ir::Graph graph = parsed(text);
    const ir::Node& node = graph.nodes.back();
    CHECK_FALSE(reference::evaluates(ir::kind(node.op)));
    CHECK_FALSE(reference::is_straight(graph));
    CHECK(is_ours([&] { (void)reference::run_node(node, {}, true); }));
    CHECK(is_ours([&] { (void)reference::estimate(graph); }));
  }
}

TEST_CASE("who does not meet, and what combines nothing") {
  const ir::Graph graph = parsed(R"(%0: f32[2] = input
%1: f32 = own_part %0 axes=[1] sizes=[2]
%2: i32 = axis_index axes=[1] sizes=[2]
%3: f32[2] = permute %0 axes=[1] sizes=[2] pairs=[(0, 1)]
%4: f32[2] = neg %0
return %0
)");
  const float elements[] = {1, 2};
  const auto* bytes = reinterpret_cast<const uint8_t*>(elements);
  const Value x = Value::view(bytes, sizeof elements);
  for (const int id : {1, 2})
    CHECK(is_ours(
        [&] { (void)reference::meet(graph[id], graph.type(0), {x, x}); }));
  const auto moved = reference::meet(graph[3], graph.type(0), {x, x});
  CHECK(std::memcmp(moved[1].data(), elements, sizeof elements) == 0);
  const float zeros[] = {0, 0};
  CHECK(std::memcmp(moved[0].data(), zeros, sizeof zeros) == 0);
  ir::Node sum = graph[4];
  sum.attrs = ir::ReduceAttrs{{0}};
  float out[2];
  CHECK(is_ours([&] {
    reference::reduce(sum, {graph.type(0), bytes},
                      reinterpret_cast<uint8_t*>(out));
  }));
}

TEST_CASE("operands that are not the graph's") {
  const ir::Graph graph =
      parsed("%0: f32[2] = input\n%1: f32[2] = neg %0\nreturn %1\n");
  const HostArray good = array(DType::F32, {2}, {1, 2});
  const HostArray longer = array(DType::F32, {3}, {1, 2, 3});
  HostArray torn = good;
  torn.bytes.pop_back();
  CHECK(value_of(graph, {good}) == std::vector<double>{-1, -2});
  for (const std::vector<HostArray>& bad :
       {std::vector<HostArray>{}, {good, good}, {longer}, {torn}}) {
    CHECK(is_ours([&] { (void)evaluate(graph, bad); }));
  }
  CHECK(is_ours([&] {
    (void)evaluate_members(graph, {{1, 2}, {2, 2}}, {{good}, {good}});
  }));
  CHECK(is_ours([&] { (void)reference::evaluate_straight(graph, {}, true); }));
  // A node with an operand too many, with one of a type that it does not
  // take, and a source that is none.
  Value value = Value::view(good.bytes.data(), 8);
  const Operand x{&good.type, &value, false};
  const std::vector<Operand> four(4, x);
  CHECK(is_ours([&] { (void)reference::run_node(graph[1], four, true); }));
  const ir::Graph bits =
      parsed("%0: i32[2] = input\n%1: i32[2] = bit_and %0, %0\nreturn %1\n");
  CHECK(is_ours([&] { (void)reference::run_node(bits[1], {{x, x}}, true); }));
  CHECK(is_ours([&] { (void)reference::run_node(graph[0], {}, true); }));
}

TEST_CASE("a product that has no single chain, or no floats") {
  const float a[] = {2}, b[] = {3};
  float out[] = {0};
  reference::multiply(DType::F32, a, b, 1, 1, 1, out);
  CHECK(out[0] == 6);
  CHECK(is_ours(
      [&] { (void)reference::multiply(DType::I32, a, b, 1, 1, 1, out); }));
  CHECK(is_ours([&] {
    (void)reference::multiply(DType::F32, a, b, 1, orders().dot_chain + 1, 1,
                              out);
  }));
}

TEST_CASE("a reshape is a copy of the bytes") {
  const ir::Graph graph =
      parsed("%0: i16[2, 3] = input\n%1: i16[3, 2] = reshape %0\nreturn %1\n");
  const HostArray x = array(DType::I16, {2, 3}, {1, 2, 3, 4, 5, 6});
  std::vector<uint8_t> out(x.bytes.size());
  const reference::View views[] = {{x.type, x.bytes.data()}};
  reference::move(graph[1], views, out.data());
  CHECK(out == x.bytes);
}

TEST_CASE("parts of an array that has one column") {
  // A part of one element that does not lie beside others of its kind.
  const ir::Graph graph = parsed(R"(%0: i32[3, 1] = input
%1: i32[2] = input
%2: i32[2, 1] = gather %0, %1 axes=[0]
%3: i32[3, 1] = scatter %0, %2, %1 axes=[0]
return %2, %3
)");
  const auto out = outputs_of(graph, {array(DType::I32, {3, 1}, {7, 8, 9}),
                                      array(DType::I32, {2}, {2, -3})});
  CHECK(values_of(out[0]) == std::vector<double>{9, 7});
  CHECK(values_of(out[1]) == std::vector<double>{7, 8, 9});
}
