// Arrays that a loop uses row by row become rows and stacks: what the loop is
// then, and when it stays as it is. That it gives the same is for programs
// (tests/programs/language/loop_rows.uni).
#include "jit/loops/carried_rows.h"

#include "jit/ir/text.h"
#include "jit/ir/verify.h"
#include "tests/unit/jit/arrays.h"

using namespace unisono;
using namespace unisono::jit;

namespace {

/// The loop over x, f32[6], of `turns` turns, that carries y, f32[6]: the body
/// takes the turn's number %0, y %1 and x %2.
ir::LoopAttrs loop(const std::string& body, int64_t turns = 6) {
  auto graph = ir::parse(
      "%0: i64 = input\n%1: f32[6] = input\n%2: f32[6] = input\n" + body);
  if (!graph) FAIL(graph.error().message);
  if (auto good = ir::verify(*graph); !good) FAIL(good.error().message);
  ir::LoopAttrs out;
  out.body = std::make_shared<const ir::Graph>(std::move(*graph));
  out.carries = 1;
  out.turns = turns;
  return out;
}

const std::string write_row = R"(
%3: f32 = gather %2, %0 axes=[0]
%4: f32[6] = scatter %1, %3, %0 axes=[0]
return %4
)";

}  // namespace

TEST_CASE("an array that is written row by row is a stack") {
  const auto rows = rows_of_carry(loop(write_row), 0);
  REQUIRE(rows);
  CHECK(rows->loop.carries == 0);
  CHECK(rows->loop.rows == 0);
  CHECK_FALSE(rows->reads);
  CHECK(rows->first == 0);
  CHECK_FALSE(rows->descends);
  CHECK(bool(ir::verify(*rows->loop.body)));
  CHECK(rows->loop.body->output_types() ==
        std::vector<ir::Type>{{DType::F32, {}}});
}

TEST_CASE("one that is read, too, is a row") {
  const auto rows = rows_of_carry(loop(R"(
%3: i32 = cast %0
%4: i32 = constant 5
%5: i32 = sub %4, %3
%6: f32 = gather %1, %5 axes=[0]
%7: f32 = gather %2, %0 axes=[0]
%8: f32 = add %6, %7
%9: f32[6] = scatter %1, %8, %5 axes=[0]
return %9
)",
                                       3),
                                  0);
  REQUIRE(rows);
  CHECK(rows->loop.rows == 1);
  CHECK(rows->reads);
  CHECK(rows->first == 5);
  CHECK(rows->descends);
  CHECK(bool(ir::verify(*rows->loop.body)));
}

TEST_CASE("who uses more than the turn's row stays a carry") {
  // All of it; another row; a row that is not the turn's; rows beyond it.
  CHECK_FALSE(rows_of_carry(loop(R"(
%3: f32 = sum %1 axes=[0]
%4: f32[6] = scatter %1, %3, %0 axes=[0]
return %4
)"),
                            0));
  CHECK_FALSE(rows_of_carry(loop(R"(
%3: i64 = constant 1
%4: i64 = add %0, %3
%5: f32 = gather %1, %4 axes=[0]
%6: f32[6] = scatter %1, %5, %0 axes=[0]
return %6
)",
                                 5),
                            0));
  CHECK_FALSE(rows_of_carry(loop(R"(
%3: i64 = mul %0, %0
%4: f32 = gather %2, %0 axes=[0]
%5: f32[6] = scatter %1, %4, %3 axes=[0]
return %5
)",
                                 2),
                            0));
  CHECK_FALSE(rows_of_carry(loop(write_row, 7), 0));
  CHECK_FALSE(rows_of_carry(loop(write_row, 0), 0));
  ir::LoopAttrs more = loop(R"(
%3: f32[6] = mul %1, %2
return %3
)");
  CHECK_FALSE(rows_of_carry(more, 0));
}
