#include "jit/ir/text.h"
#include "jit/scalar/element.h"

#include "jit/ir/verify.h"
#include "tests/unit/jit/arrays.h"
#include "tests/unit/jit/random_graph.h"

using namespace unisono;
using namespace unisono::jit;
using ir::Graph;
using ir::Op;

TEST_CASE("the printed form") {
  Graph g;
  const auto x = g.add_input({DType::F32, {4, 3}});
  const auto k =
      g.add_constant({DType::F32, {}}, jit::element_bytes(DType::F32, 2.5));
  const auto b = g.add(Op::broadcast, {k}, ir::BroadcastAttrs{{4, 3}, {}});
  const auto y = g.add(Op::mul, {x, b}, ir::NoAttrs{}, 12);
  const auto s = g.add(Op::sum, {y}, ir::ReduceAttrs{{1}, {}});
  g.add(Op::host_call, {s}, ir::HostCallAttrs{{"s \"", "\n"}, {".2f"}});
  const auto c = g.add_constant({DType::Bool, {}}, {1});
  auto then_graph = std::make_shared<Graph>();
  then_graph->outputs = {then_graph->add_input({DType::F32, {4}})};
  auto else_graph = std::make_shared<Graph>(*then_graph);
  else_graph->outputs = {else_graph->add(Op::neg, {0})};
  const auto f =
      g.add(Op::if_else, {c, s}, ir::IfAttrs{then_graph, else_graph});
  const auto p = g.add(Op::project, {f}, ir::ProjectAttrs{0});
  g.outputs = {p, x};
  const std::string text = R"(%0: f32[4, 3] = input
%1: f32 = constant 2.5
%2: f32[4, 3] = broadcast %1
%3: f32[4, 3] = mul %0, %2 @12
%4: f32[4] = sum %3 axes=[1]
%5: bool = host_call %4 format=["s \"", "\x0a"] specs=[".2f"]
%6: bool = constant true
%7: f32[4] = if_else %6, %4 then={
  %0: f32[4] = input
  return %0
} else={
  %0: f32[4] = input
  %1: f32[4] = neg %0
  return %1
}
%8: f32[4] = project %7
return %8, %0
)";
  CHECK(ir::print(g) == text);
  auto back = ir::parse(text);
  REQUIRE(back);
  CHECK(ir::print(*back) == text);
}

TEST_CASE("random graphs survive printing and parsing") {
  for (uint32_t seed = 0; seed < 300; ++seed) {
    CAPTURE(seed);
    RandomGraph random(seed, {20, 2, true, 3, true});
    const Graph g = random.make();
    auto good = ir::verify(g);
    if (!good) FAIL(good.error().message);
    const std::string text = ir::print(g);
    auto back = ir::parse(text);
    if (!back) FAIL(back.error().message << "\n" << text);
    REQUIRE(ir::print(*back) == text);
  }
}

TEST_CASE("constants keep every bit") {
  const auto round_trip = [](DType dtype, std::vector<uint8_t> bytes) {
    Graph g;
    g.outputs = {g.add_constant(
        {dtype, {static_cast<int64_t>(bytes.size()) / byte_size(dtype)}},
        bytes)};
    auto back = ir::parse(ir::print(g));
    REQUIRE(back);
    CHECK(std::get<ir::ConstantAttrs>(back->nodes[0].attrs).bytes == bytes);
  };
  std::vector<uint8_t> all;
  for (int b = 0; b < 0x10000; ++b) {
    all.push_back(static_cast<uint8_t>(b));
    all.push_back(static_cast<uint8_t>(b >> 8));
  }
  round_trip(DType::F16, all);
  round_trip(DType::BF16, all);
  round_trip(DType::I16, all);
  std::mt19937 random(1);
  for (uint8_t& b : all) b = static_cast<uint8_t>(random());
  for (DType d : {DType::F32, DType::F64, DType::I64, DType::U64, DType::U8})
    round_trip(d, all);
  round_trip(DType::Bool, {0, 1, 1});
  round_trip(DType::F32, {});
}

TEST_CASE("wrong text is an error with its line") {
  const std::pair<const char*, const char*> cases[] = {
      {"", "line 1: expected `return`"},
      {"%0: f32 = input\n", "line 2: expected `return`"},
      {"%1: f32 = input\nreturn %1\n", "line 1: expected %0"},
      {"%0: f33 = input\nreturn\n", "line 1: expected an element type"},
      {"%0: f32 = inputs\nreturn\n", "line 1: unknown operation"},
      {"%0: f32 = input\n%1: f32 = neg %1\nreturn\n",
       "line 2: %1 is not defined before"},
      {"%0: f32 = input\n%1: f64 = neg %0\nreturn\n",
       "line 2: %1: is f64, but its operation gives f32"},
      {"%0: f32 = constant x\nreturn\n", "line 1: expected a number that fits"},
      {"%0: i8 = constant 300\nreturn\n",
       "line 1: expected a number that fits"},
      {"%0: f32[99999999999999999999] = input\nreturn\n",
       "line 1: expected a number that fits"},
      {"%0: f32[-1] = input\nreturn\n",
       "line 1: %0: a size is negative or too large"},
      {"%0: f32[2] = input\n%1: f32 = sum %0 axes=[1]\nreturn\n",
       "line 2: %1: `sum`: axes [1] do not fit f32[2]"},
      {"%0: f32 = input\nreturn %1\n", "line 2: %1 is not defined before"},
      {"%0: f32 = input\nreturn %0\nreturn\n", "line 3: text after `return`"},
      {"%0: f32 = input\n%1: f32 = project %0\nreturn\n",
       "line 2: %1: `project` of what has one result"},
      {"%0: bool = input\n%1: f32 = if_else %0\nreturn\n",
       "line 2: %1: no then graph"},
      {"%0: f32 = neg\nreturn\n", "line 1: %0: `neg`: 0 operands"},
      {"%0: f32 = input colour=2\nreturn\n",
       "line 1: unknown attribute `colour`"},
      {"%0: f32[n // 0] = input\nreturn\n", "line 1: a size is divided by 0"},
  };
  for (const auto& [text, message] : cases) {
    auto g = ir::parse(text);
    REQUIRE(!g);
    CHECK(g.error().message == message);
  }
}

TEST_CASE("mangled text never crashes the parser") {
  std::mt19937 random(7);
  for (uint32_t seed = 0; seed < 40; ++seed) {
    RandomGraph graphs(seed, {12, 2, true, 3, true});
    const std::string text = ir::print(graphs.make());
    for (int turn = 0; turn < 200; ++turn) {
      std::string bad = text;
      for (int i = 1 + random() % 3; i > 0; --i) {
        const size_t at = random() % bad.size();
        switch (random() % 4) {
          case 0: bad[at] = " %0123456789[]{}=,-n\n\""[random() % 21]; break;
          case 1: bad.erase(at, 1 + random() % 8); break;
          case 2:
            bad.insert(at, bad.substr(random() % bad.size(), random() % 12));
            break;
          default: bad.resize(at);
        }
        if (bad.empty()) bad = " ";
      }
      auto g = ir::parse(bad);
      if (g) CHECK(ir::verify(*g));
    }
  }
  std::string deep = "%0: f32[";
  deep += std::string(100000, '(');
  CHECK(!ir::parse(deep));
  std::string nested = "%0: bool = constant true\n";
  for (int i = 0; i < 10000; ++i)
    nested += "%1: f32 = if_else %0 then={\n%0: bool = constant true\n";
  CHECK(!ir::parse(nested));
}
