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

TEST_CASE("rows that are added to, and rows that are counted otherwise") {
  // y[i] += x[i]
  auto rows = rows_of_carry(loop(R"(
%3: f32 = gather %2, %0 axes=[0]
%4: f32[6] = scatter_add %1, %3, %0 axes=[0]
return %4
)"),
                            0);
  REQUIRE(rows);
  CHECK(rows->reads);
  CHECK(rows->first == 0);
  // In turn 2 the row is x[2] more.
  const auto adds =
      outputs_of(*rows->loop.body,
                 {scalar_array(DType::I64, 2), scalar_array(DType::F32, 9),
                  array(DType::F32, {6}, {1, 2, 3, 4, 5, 6})});
  std::vector<double> sums;
  for (const HostArray& sum : adds) sums.push_back(values_of(sum)[0]);
  CHECK(sums == std::vector<double>{12});
  // 5 + i * -1 and 5 + -1 * i descend.
  for (const std::string& product : {"mul %0, %3", "mul %3, %0"}) {
    rows = rows_of_carry(loop("%3: i64 = constant -1\n%4: i64 = " + product +
                              R"(
%5: i64 = constant 5
%6: i64 = add %5, %4
%7: f32 = gather %2, %0 axes=[0]
%8: f32[6] = scatter %1, %7, %6 axes=[0]
return %8
)"),
                         0);
    REQUIRE(rows);
    CHECK(rows->first == 5);
    CHECK(rows->descends);
  }
}

TEST_CASE("places that are no row of the turn's leave the array a carry") {
  const auto stays = [](const std::string& places, int64_t turns = 3) {
    return !rows_of_carry(loop(places + R"(
%8: f32 = gather %2, %0 axes=[0]
%9: f32[6] = scatter %1, %8, %7 axes=[0]
return %9
)",
                               turns),
                          0);
  };
  const std::string number = "%3: i32 = cast %0\n";
  CHECK_FALSE(stays(number + "%4: i32 = constant 3\n%5: i32 = constant 0\n"
                             "%6: i32 = constant 1\n%7: i32 = add %3, %4\n"));
  // One of them is before the first row.
  CHECK(stays(number + "%4: i32 = constant -2\n%5: i32 = constant 0\n"
                       "%6: i32 = constant 1\n%7: i32 = add %3, %4\n"));
  // i32 that leave their type on the way, at either end: their sums wrap.
  CHECK(stays(number +
              "%4: i32 = constant 2147483646\n%5: i32 = add %3, %4\n"
              "%6: i32 = constant 2147483646\n%7: i32 = sub %5, %6\n"));
  CHECK(stays(number +
              "%4: i32 = constant -2147483647\n%5: i32 = sub %4, %3\n"
              "%6: i32 = constant -2147483647\n%7: i32 = sub %5, %6\n"));
  CHECK_FALSE(stays(number +
                    "%4: i32 = constant 2147483645\n%5: i32 = add %3, %4\n"
                    "%6: i32 = constant 2147483645\n%7: i32 = sub %5, %6\n"));
  // A product with what is read from an array.
  CHECK(stays(
      "%3: f32 = gather %2, %0 axes=[0]\n%4: i64 = cast %3\n"
      "%5: i64 = constant 0\n%6: i64 = mul %4, %0\n%7: i64 = mul %0, %4\n"));
  // Several places at once.
  CHECK_FALSE(rows_of_carry(loop(R"(
%3: i64[2] = constant 1
%4: f32[2] = gather %1, %3 axes=[0]
%5: f32 = sum %4 axes=[0]
%6: f32[6] = scatter %1, %5, %0 axes=[0]
return %6
)"),
                            0));
  ir::LoopAttrs backwards = loop(write_row);
  backwards.backwards = true;
  CHECK_FALSE(rows_of_carry(backwards, 0));
}

TEST_CASE("an array that is its own place stays a carry") {
  auto graph = ir::parse(R"(%0: i64 = input
%1: i64[6] = input
%2: i64 = gather %1, %0 axes=[0]
%3: i64[6] = gather %1, %1 axes=[0]
%4: i64[6] = scatter %3, %2, %0 axes=[0]
return %4
)");
  REQUIRE(graph);
  ir::LoopAttrs own;
  own.body = std::make_shared<const ir::Graph>(std::move(*graph));
  own.carries = 1;
  own.turns = 6;
  CHECK_FALSE(rows_of_carry(own, 0));
}
