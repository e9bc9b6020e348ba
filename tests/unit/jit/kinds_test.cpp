#include "jit/ir/kinds.h"
#include "jit/ir/routines.h"
#include "jit/scalar/element.h"

#include <cmath>

#include "jit/ir/text.h"
#include "jit/ir/verify.h"
#include "tests/unit/jit/arrays.h"

using namespace unisono;
using namespace unisono::jit;
using ir::Attrs;
using ir::Dim;
using ir::Graph;
using ir::Op;
using ir::Type;
using Types = std::vector<Type>;

namespace {

const Dim n = Dim::symbol(1, "n"), d = Dim::symbol(2, "d");

Type f32(ir::Shape shape) { return {DType::F32, std::move(shape)}; }
Type i32(ir::Shape shape) { return {DType::I32, std::move(shape)}; }
Type boolean(ir::Shape shape) { return {DType::Bool, std::move(shape)}; }

/// The type as text, or the message.
std::string infer(Op op, const Types& operands, const Attrs& attrs = {}) {
  auto type = ir::infer_type(op, operands, attrs);
  return type ? type->to_string() : type.error().message;
}

ir::ReduceAttrs over(std::vector<int> axes) {
  return {std::move(axes), ir::ReduceOrder::elements};
}

}  // namespace

TEST_CASE("types of map operations") {
  CHECK(infer(Op::add, {f32({n, 3}), f32({n, 3})}) == "f32[n, 3]");
  CHECK(infer(Op::lt, {f32({n}), f32({n})}) == "bool[n]");
  CHECK(infer(Op::is_nan, {f32({n})}) == "bool[n]");
  CHECK(infer(Op::cast, {f32({n})}, ir::CastAttrs{DType::I8}) == "i8[n]");
  CHECK(infer(Op::select, {boolean({2}), f32({2}), f32({2})}) == "f32[2]");
  CHECK(infer(Op::select, {boolean({}), boolean({}), boolean({})}) == "bool");
  CHECK(infer(Op::fma, {f32({}), f32({}), f32({})}) == "f32");
  CHECK(infer(Op::add, {f32({2}), f32({3})}) ==
        "`add`: operands are f32[2] and f32[3]: the shapes differ");
  CHECK(infer(Op::add, {f32({n}), f32({d})}) ==
        "`add`: operands are f32[n] and f32[d]: the shapes differ");
  CHECK(infer(Op::add, {f32({2}), i32({2})}) ==
        "`add`: element types f32 and i32 differ");
  CHECK(infer(Op::add, {boolean({}), boolean({})}) == "`add`: not for bool");
  CHECK(infer(Op::sqrt, {i32({})}) == "`sqrt`: not for i32");
  CHECK(infer(Op::fma, {i32({}), i32({}), i32({})}) == "`fma`: not for i32");
  CHECK(infer(Op::shift_left, {f32({}), f32({})}) ==
        "`shift_left`: not for f32");
  CHECK(infer(Op::select, {f32({}), f32({}), f32({})}) ==
        "`select`: the condition is f32, not bool");
  CHECK(infer(Op::neg, {}) == "`neg`: 0 operands");
  CHECK(infer(Op::neg, {f32({})}, over({})) == "`neg`: wrong attributes");
}

TEST_CASE("types of reductions and scans") {
  CHECK(infer(Op::sum, {f32({n, 3})}, over({0})) == "f32[3]");
  CHECK(infer(Op::any, {boolean({n, 3})}, over({0, 1})) == "bool");
  CHECK(infer(Op::argmax, {f32({n, 3})}, over({1})) == "i32[n]");
  CHECK(infer(Op::cumsum, {f32({n})}, ir::ScanAttrs{0}) == "f32[n]");
  CHECK(infer(Op::sort, {f32({n})}) == "f32[n]");
  CHECK(infer(Op::argsort, {f32({n})}) == "i32[n]");
  CHECK(infer(Op::sum, {f32({2})}, over({1})) ==
        "`sum`: axes [1] do not fit f32[2]");
  CHECK(infer(Op::sum, {f32({2, 2})}, over({1, 0})) ==
        "`sum`: axes [1, 0] do not fit f32[2, 2]");
  CHECK(infer(Op::sum, {f32({2, 2})}, over({0, 0})) ==
        "`sum`: axes [0, 0] do not fit f32[2, 2]");
  CHECK(infer(Op::sum, {boolean({2})}, over({0})) == "`sum`: not for bool");
  CHECK(infer(Op::any, {f32({2})}, over({0})) == "`any`: not for f32");
  CHECK(infer(Op::argmin, {f32({0})}, over({0})) ==
        "`argmin`: f32[0] has no elements");
  CHECK(infer(Op::argmin, {f32({2, 2})}, over({0, 1})) ==
        "`argmin`: exactly one axis is needed");
  CHECK(infer(Op::argmax, {f32({int64_t{1} << 31})}, over({0})) ==
        "`argmax`: axis 0 of f32[2147483648] is too long for i32 positions");
  CHECK(infer(Op::cumsum, {f32({2})}, ir::ScanAttrs{-1}) ==
        "`cumsum`: f32[2] has no axis -1");
  CHECK(infer(Op::sort, {f32({})}) == "`sort`: f32 has no axis");
}

TEST_CASE("types of moves") {
  const Type x = f32({n, 3});
  CHECK(infer(Op::reshape, {x}, ir::ShapeAttrs{{3 * n}}) == "f32[3*n]");
  CHECK(infer(Op::reshape, {x}, ir::ShapeAttrs{{n}}) ==
        "`reshape`: f32[n, 3] and f32[n] have different numbers of elements");
  CHECK(infer(Op::reshape, {f32({0, 4})}, ir::ShapeAttrs{{7, 0}}) ==
        "f32[7, 0]");
  CHECK(infer(Op::transpose, {x}, ir::AxesAttrs{{1, 0}}) == "f32[3, n]");
  CHECK(infer(Op::transpose, {x}, ir::AxesAttrs{{1, 1}}) ==
        "`transpose`: axes [1, 1] are no permutation of those of f32[n, 3]");
  CHECK(infer(Op::broadcast, {f32({1, n})},
              ir::BroadcastAttrs{{4, d, n}, {1, 2}}) == "f32[4, d, n]");
  CHECK(infer(Op::broadcast, {f32({n})}, ir::BroadcastAttrs{{d}, {0}}) ==
        "`broadcast`: axis 0 of f32[n] does not stretch to axis 0 of f32[d]");
  CHECK(infer(Op::broadcast, {f32({n})}, ir::BroadcastAttrs{{n}, {}}) ==
        "`broadcast`: axes [] do not place f32[n] in f32[n]");
  CHECK(infer(Op::slice, {x}, ir::SliceAttrs{{1, 0}, {1, 2}, {n - 1, 2}}) ==
        "f32[n - 1, 2]");
  CHECK(infer(Op::slice, {f32({5})}, ir::SliceAttrs{{5}, {1}, {0}}) ==
        "f32[0]");
  CHECK(infer(Op::slice, {f32({5})}, ir::SliceAttrs{{1}, {2}, {3}}) ==
        "`slice`: axis 0 is read up to 6 in f32[5]");
  CHECK(infer(Op::slice, {f32({5})}, ir::SliceAttrs{{6}, {1}, {0}}) ==
        "`slice`: axis 0 is read up to 6 in f32[5]");
  CHECK(infer(Op::slice, {f32({5})}, ir::SliceAttrs{{-1}, {1}, {2}}) ==
        "`slice`: start 0 is negative");
  CHECK(infer(Op::slice, {f32({5})}, ir::SliceAttrs{{0}, {0}, {2}}) ==
        "`slice`: step 0 is not positive");
  CHECK(infer(Op::slice, {f32({5})},
              ir::SliceAttrs{{1}, {INT64_MAX}, {INT64_MAX}})
            .starts_with("`slice`: axis 0 is read up to"));
  CHECK(infer(Op::pad, {x, f32({})}, ir::PadAttrs{{1, 0}, {0, d}}) ==
        "f32[n + 1, d + 3]");
  CHECK(infer(Op::pad, {x, f32({1})}, ir::PadAttrs{{1, 0}, {0, 0}}) ==
        "`pad`: the value is f32[1], not f32");
  CHECK(infer(Op::pad, {x, f32({})}, ir::PadAttrs{{-1, 0}, {0, 0}}) ==
        "`pad`: low or high of axis 0 is negative");
  CHECK(infer(Op::flip, {x}, ir::AxesAttrs{{0, 1}}) == "f32[n, 3]");
  CHECK(infer(Op::concat, {x, x, f32({d, 3})}, ir::AxisAttrs{0}) ==
        "f32[2*n + d, 3]");
  CHECK(infer(Op::concat, {x, f32({n, 2})}, ir::AxisAttrs{0}) ==
        "`concat`: f32[n, 3] and f32[n, 2] do not join along axis 0");
  CHECK(infer(Op::concat, {}, ir::AxisAttrs{0}) == "`concat`: 0 operands");
}

TEST_CASE("types of sources") {
  CHECK(infer(Op::iota, {}, ir::IotaAttrs{i32({n}), 0}) == "i32[n]");
  CHECK(infer(Op::iota, {}, ir::IotaAttrs{i32({}), 0}) ==
        "`iota`: i32 has no axis 0");
  CHECK(infer(Op::constant, {},
              ir::ConstantAttrs{f32({3}), std::vector<uint8_t>(12)}) ==
        "f32[3]");
  CHECK(infer(Op::constant, {},
              ir::ConstantAttrs{f32({n}), std::vector<uint8_t>(4)}) ==
        "f32[n]");
  CHECK(infer(Op::constant, {}, ir::ConstantAttrs{f32({n}), {}}) == "f32[n]");
  CHECK(infer(Op::constant, {},
              ir::ConstantAttrs{f32({3}), std::vector<uint8_t>(5)}) ==
        "`constant`: 5 bytes are no elements of f32[3]");
  CHECK(infer(Op::constant, {}, ir::ConstantAttrs{boolean({}), {2}}) ==
        "`constant`: a bool is neither 0 nor 1");
  const int64_t large = int64_t{1} << 40;
  CHECK(infer(Op::iota, {}, ir::IotaAttrs{i32({large, large}), 0}) ==
        "`iota`: i32[1099511627776, 1099511627776] has too many elements");
  CHECK(infer(Op::iota, {}, ir::IotaAttrs{i32({Dim(INT64_MAX) + 1}), 0}) ==
        "`iota`: a size of the result is too large");
  CHECK(infer(Op::iota, {}, ir::IotaAttrs{i32({-1}), 0}) ==
        "`iota`: a size of the result is negative");
}

TEST_CASE("types of gather and scatter") {
  const Type x = f32({n, 3, d});
  const Type rows = i32({4, 5});
  CHECK(infer(Op::gather, {x, rows}, ir::IndexAttrs{{1}}) == "f32[4, 5, n, d]");
  CHECK(infer(Op::gather, {x, rows, rows}, ir::IndexAttrs{{2, 0}}) ==
        "f32[4, 5, 3]");
  CHECK(infer(Op::scatter, {x, f32({4, 5, n, d}), rows}, ir::IndexAttrs{{1}}) ==
        "f32[n, 3, d]");
  CHECK(infer(Op::scatter, {x, f32({4, n, d}), rows}, ir::IndexAttrs{{1}}) ==
        "`scatter`: updates are f32[4, n, d], not f32[4, 5, n, d]");
  CHECK(infer(Op::gather, {x, f32({4})}, ir::IndexAttrs{{1}}) ==
        "`gather`: an index array is f32[4], not i32 or i64");
  CHECK(infer(Op::gather, {x, rows}, ir::IndexAttrs{{3}}) ==
        "`gather`: axes [3] do not fit f32[n, 3, d]");
  CHECK(infer(Op::gather, {x, rows, i32({4})}, ir::IndexAttrs{{0, 1}}) ==
        "`gather`: index arrays are i32[4, 5] and i32[4]: the shapes differ");
  CHECK(infer(Op::gather, {x}, ir::IndexAttrs{{}}) ==
        "`gather`: 1 operands for 0 axes");
}

TEST_CASE("types of dot") {
  const Type a = f32({7, n, 3}), b = f32({7, 3, d});
  CHECK(infer(Op::dot, {a, b}, ir::DotAttrs{{0}, {0}, {2}, {1}}) ==
        "f32[7, n, d]");
  CHECK(infer(Op::dot, {a, b}, ir::DotAttrs{}) == "f32[7, n, 3, 7, 3, d]");
  CHECK(infer(Op::dot, {a, b}, ir::DotAttrs{{}, {}, {1}, {2}}) ==
        "`dot`: axis 1 of f32[7, n, 3] and axis 2 of f32[7, 3, d] have "
        "different sizes");
  CHECK(infer(Op::dot, {a, b}, ir::DotAttrs{{0}, {}, {2}, {1}}) ==
        "`dot`: the axes do not fit f32[7, n, 3] and f32[7, 3, d]");
  CHECK(infer(Op::dot, {a, b}, ir::DotAttrs{{2}, {1}, {2}, {1}}) ==
        "`dot`: the axes do not fit f32[7, n, 3] and f32[7, 3, d]");
}

TEST_CASE("types of collectives and host calls") {
  ir::CollectiveAttrs a;
  a.sizes = {n};
  CHECK(infer(Op::all_reduce, {f32({3})}, a) == "f32[3]");
  CHECK(infer(Op::all_gather, {f32({3})}, a) == "f32[n, 3]");
  CHECK(infer(Op::axis_index, {}, a) == "i32");
  CHECK(infer(Op::all_reduce, {boolean({})}, a) ==
        "`all_reduce`: bool has no sum");
  a.sizes = {3};
  a.pairs = {{0, 1}, {1, 2}};
  CHECK(infer(Op::permute, {f32({3})}, a) == "f32[3]");
  a.pairs = {{0, 3}};
  CHECK(infer(Op::permute, {f32({})}, a) ==
        "`permute`: the pair (0, 3) is not within 3 members");
  a.pairs = {{0, 1}, {2, 1}};
  CHECK(infer(Op::permute, {f32({})}, a) ==
        "`permute`: two pairs share a destination");
  CHECK(infer(Op::host_call, {f32({})}, ir::HostCallAttrs{{"a"}, {}}) ==
        "`host_call`: 1 pieces of text and 0 formats for 1 operands");
}

TEST_CASE("types of routines") {
  using ir::Routine;
  const auto infer_call = [](Routine routine, std::vector<Type> operands,
                             std::vector<Type> results) {
    return infer(Op::host_call, std::move(operands),
                 ir::routine_call(routine, std::move(results)));
  };
  const Type wide = f32({5, 2, 3});
  CHECK(infer_call(Routine::inv, {f32({4, 4})}, {f32({4, 4})}) == "f32[4, 4]");
  CHECK(infer_call(Routine::svd, {wide},
                   {f32({5, 2, 2}), f32({5, 2}), f32({5, 2, 3})}) ==
        "f32[5, 2, 2]");
  CHECK(infer_call(Routine::inv, {wide}, {wide}) ==
        "`host_call`: the matrix is not square");
  CHECK(infer_call(Routine::inv, {f32({4})}, {f32({4})}) ==
        "`host_call`: an operand is no matrix");
  CHECK(infer_call(Routine::inv, {f32({4, 4})}, {f32({4})}) ==
        "`host_call`: the results of `inv` have other types");
  CHECK(infer_call(Routine::solve, {f32({2, 2}), f32({3, 1})}, {f32({3, 1})}) ==
        "`host_call`: the right side has another number of rows");
  CHECK(infer_call(Routine::solve, {f32({7, 2, 2}), f32({2, 1})},
                   {f32({2, 1})}) ==
        "`host_call`: the axes before the matrices differ");
  ir::HostCallAttrs call = ir::routine_call(Routine::inv, {f32({4, 4})});
  call.members = 3;
  CHECK(infer(Op::host_call, {f32({4, 4})}, call) ==
        "`host_call`: a routine has a batch, no members, and is pure");
  call.function = "invert";
  CHECK(infer(Op::host_call, {f32({4, 4})}, call) ==
        "`host_call`: no routine `invert`");
}

TEST_CASE("types of control") {
  const auto same = std::make_shared<Graph>();
  same->outputs = {same->add_input(f32({2}))};
  const auto negated = std::make_shared<Graph>(*same);
  negated->outputs = {negated->add(Op::neg, {0})};
  const auto scalar = std::make_shared<Graph>();
  scalar->outputs = {scalar->add_input(f32({}))};
  const auto truth = std::make_shared<Graph>();
  truth->add_input(f32({2}));
  truth->outputs = {truth->add_constant(boolean({}), {1})};
  CHECK(infer(Op::if_else, {boolean({}), f32({2})},
              ir::IfAttrs{same, negated}) == "f32[2]");
  CHECK(infer(Op::if_else, {boolean({}), f32({2})}, ir::IfAttrs{same, truth}) ==
        "`if_else`: the branches give different types");
  CHECK(infer(Op::if_else, {boolean({}), f32({})}, ir::IfAttrs{same, same}) ==
        "`if_else`: the captures are not what the branches take");
  CHECK(infer(Op::if_else, {boolean({1}), f32({2})}, ir::IfAttrs{same, same}) ==
        "`if_else`: the condition is not one bool");
  CHECK(infer(Op::if_else, {boolean({})}, ir::IfAttrs{}) ==
        "`if_else`: a branch is missing");
  CHECK(infer(Op::loop, {f32({2})}, ir::LoopAttrs{truth, negated, 1}) ==
        "f32[2]");
  CHECK(infer(Op::loop, {f32({2})}, ir::LoopAttrs{same, negated, 1}) ==
        "`loop`: the condition does not give one bool");
  CHECK(infer(Op::loop, {f32({2})}, ir::LoopAttrs{truth, truth, 1}) ==
        "`loop`: the body's results are not the carries");
  CHECK(infer(Op::loop, {f32({2})}, ir::LoopAttrs{truth, negated, 2}) ==
        "`loop`: 2 carries and 0 rows among 1 operands");
}

TEST_CASE("types of counted loops") {
  const Type number{DType::I64, {}};
  const auto body = std::make_shared<Graph>();
  for (const Type& type : {number, f32({}), f32({2}), boolean({})})
    body->add_input(type);
  body->outputs = {1, 2, 0};
  ir::LoopAttrs loop{nullptr, body, 1, 5, true, 1};
  const std::vector<Type> operands = {f32({}), f32({5, 2}), boolean({})};
  CHECK(infer(Op::loop, operands, loop) == "f32");
  Graph g;
  for (const Type& type : operands) g.add_input(type);
  const ir::Node& node = g[g.add(Op::loop, {0, 1, 2}, loop)];
  CHECK(ir::result_count(node) == 3);
  CHECK(ir::result_type(node, 1).to_string() == "f32[5, 2]");
  CHECK(ir::result_type(node, 2).to_string() == "i64[5]");
  loop.turns = 4;
  CHECK(infer(Op::loop, operands, loop) == "`loop`: f32[5, 2] has not 4 rows");
  loop.turns = 5, loop.rows = 0;
  CHECK(infer(Op::loop, operands, loop) ==
        "`loop`: the operands are not what the body takes");
  loop.rows = 3;
  CHECK(infer(Op::loop, operands, loop) ==
        "`loop`: 1 carries and 3 rows among 3 operands");
  loop.rows = 1, loop.carries = 2;
  CHECK(infer(Op::loop, operands, loop) == "`loop`: bool has not 5 rows");
  loop = {body, body, 1, 5, false, 1};
  CHECK(infer(Op::loop, operands, loop) ==
        "`loop`: a counted loop has no condition");
  loop = {body, body, 1, -1, true, 1};
  CHECK(infer(Op::loop, operands, loop) ==
        "`loop`: only a counted loop has rows and a direction");
}

TEST_CASE("rows of the table") {
  CHECK(ir::combine_op(Op::cummax) == Op::maximum);
  CHECK(ir::combine_op(Op::any) == Op::bit_or);
  CHECK(ir::identity_element(Op::prod, DType::F16) ==
        jit::element_bytes(DType::F16, 1.0));
  CHECK(ir::identity_element(Op::max, DType::F64) ==
        jit::element_bytes(DType::F64, -HUGE_VAL));
  CHECK(ir::identity_element(Op::min, DType::U8) == std::vector<uint8_t>{255});
  CHECK(ir::identity_element(Op::all, DType::Bool) == std::vector<uint8_t>{1});
  CHECK(ir::row(Op::asin).domain == std::pair(-1.0, 1.0));
  CHECK(ir::row(Op::dot).help.starts_with("batched"));
  CHECK(ir::op_from_name("scatter_add") == Op::scatter_add);
  CHECK(!ir::op_from_name("scatter_sub"));
  CHECK(ir::admits(Op::select, DType::Bool));
  CHECK(!ir::admits(Op::scatter_add, DType::Bool));
  CHECK(jit::element_bytes(DType::I8, 300.0) == std::vector<uint8_t>{127});
  CHECK(jit::element_bytes(DType::U8, int64_t{257}) == std::vector<uint8_t>{1});
}

TEST_CASE("what must stay though nobody reads it") {
  const auto stays = [](const std::string& text) {
    auto g =
        ir::parse("%0: i32 = input\n%1: i32[4] = input\n" + text + "return\n");
    if (!g) FAIL(g.error().message);
    return ir::must_stay(*g, g->nodes.back());
  };
  CHECK(stays("%2: i32 = floor_div %0, %0\n"));
  CHECK(!stays("%2: i32 = constant 2\n%3: i32 = floor_div %0, %2\n"));
  CHECK(stays("%2: i32 = constant 0\n%3: i32 = mod %0, %2\n"));
  CHECK(!stays("%2: i32 = add %0, %0\n"));
  CHECK(stays("%2: i32 = pow %0, %0\n"));
  CHECK(!stays("%2: i32 = constant 3\n%3: i32 = pow %0, %2\n"));
  CHECK(stays("%2: i32 = gather %1, %0 axes=[0]\n"));
  CHECK(!stays("%2: i32 = gather %1, %0 axes=[0] checked=false\n"));
  CHECK(!stays("%2: i32 = constant -4\n%3: i32 = gather %1, %2 axes=[0]\n"));
  CHECK(stays("%2: i32 = constant 4\n%3: i32 = gather %1, %2 axes=[0]\n"));
  CHECK(stays("%2: bool = host_call format=[\"a\"]\n"));
  CHECK(
      stays("%2: bool = constant true\n%3: bool = if_else %2 then={\n"
            "%0: bool = host_call format=[\"a\"]\nreturn\n} else={\n"
            "return\n}\n"));
  CHECK(
      !stays("%2: bool = constant true\n%3: bool = if_else %2 then={\n"
             "return\n} else={\nreturn\n}\n"));
}

TEST_CASE("verify names what is broken") {
  Graph good;
  good.add_input(f32({2}));
  good.add(Op::neg, {0});
  good.outputs = {1};
  REQUIRE(ir::verify(good));
  const auto message = [&](auto change) {
    Graph g = good;
    change(g);
    auto status = ir::verify(g);
    REQUIRE(!status);
    return status.error().message;
  };
  CHECK(message([](Graph& g) { g[1].inputs = {1}; }) ==
        "%1: operand %1 does not come before it");
  CHECK(message([](Graph& g) { g[1].inputs = {-1}; }) ==
        "%1: operand %-1 does not come before it");
  CHECK(message([](Graph& g) { g[1].type.shape = {3}; }) ==
        "%1: is f32[3], but its operation gives f32[2]");
  CHECK(message([](Graph& g) { g.outputs = {2}; }) ==
        "%2: an output that is no node");
  CHECK(message([](Graph& g) { g.inputs = {}; }) ==
        "%0: inputs come first and are listed in order");
  CHECK(message([](Graph& g) { g.inputs = {0, 1}; }) ==
        "%1: is listed as an input and is none");
  CHECK(message([](Graph& g) { g[0].attrs = ir::NoAttrs{}; }) ==
        "%0: an input's index is its id, and it has no operands");
  CHECK(message([](Graph& g) { g[1].attrs = ir::AxisAttrs{}; }) ==
        "%1: `neg`: wrong attributes");
  CHECK(message([](Graph& g) {
          g[1].op = Op::project;
          g[1].attrs = ir::ProjectAttrs{0};
        }) == "%1: `project` of what has one result");
  CHECK(message([&](Graph& g) {
          auto broken = std::make_shared<Graph>(good);
          broken->outputs = {5};
          const auto c = g.add_constant(boolean({}), {1});
          g.nodes.push_back({Op::if_else,
                             {c, 0},
                             ir::IfAttrs{std::make_shared<Graph>(good), broken},
                             f32({2}),
                             0});
        }) == "%3: in the else graph: %5: an output that is no node");
}
