// How many turns a loop with a condition has, where constants tell.
#include "jit/loops/known_turns.h"

#include <cstdint>
#include <stdexcept>
#include <string>

#include "jit/ir/text.h"
#include "jit/ir/verify.h"
#include "tests/unit/jit/arrays.h"
#include "tests/unit/jit/parsed.h"

using namespace unisono;
using namespace unisono::jit;
using namespace unisono::jit::testing;

namespace {

/// A loop from `start` while it is less (`lt`) or greater (`gt`) than `stop`,
/// by `step`. `stop` is a node of the condition, which knows the carry %0 and
/// another one, %1, that stays 100.
std::optional<KnownTurns> turns(const std::string& type,
                                const std::string& start,
                                const std::string& test,
                                const std::string& stop,
                                const std::string& step) {
  const std::string carries =
      "  %0: " + type + " = input\n  %1: " + type + " = input\n  %2: " + type;
  const ir::Graph graph = parsed(
      "%0: " + type + " = constant " + start + "\n%1: " + type +
      " = constant 100\n%2: " + type +
      " = loop %0, %1 carries=2 condition={\n" + carries + " = constant " +
      (stop == "carry" ? "0" : stop) + "\n  %3: bool = " + test + " %0, " +
      (stop == "carry" ? "%1" : "%2") + "\n  return %3\n} body={\n" + carries +
      " = constant " + step + "\n  %3: " + type +
      " = add %0, %2\n  return %3, %1\n}\n%3: " + type +
      " = project %2\nreturn %3\n");
  return known_turns(graph, graph[2]);
}

/// The number of turns, the least and the largest number in the body.
void check(const std::optional<KnownTurns>& known, int64_t count, int64_t first,
           int64_t last) {
  REQUIRE(known);
  CHECK(known->count == count);
  CHECK(known->counter == 0);
  CHECK(known->first == first);
  CHECK(known->last == last);
}

}  // namespace

TEST_CASE("turns of loops that count up or down") {
  check(turns("i32", "0", "lt", "10", "3"), 4, 0, 9);
  check(turns("i32", "9", "lt", "10", "3"), 1, 9, 9);
  check(turns("i32", "10", "lt", "10", "3"), 0, 10, 10);
  check(turns("i64", "10", "gt", "-1", "-5"), 3, 0, 10);
  check(turns("i8", "-5", "gt", "-5", "-1"), 0, -5, -5);
  check(turns("i8", "0", "lt", "120", "60"), 2, 0, 60);
}

TEST_CASE("turns that constants do not tell") {
  // Never an end, or only after a wrap.
  CHECK_FALSE(turns("i32", "0", "lt", "10", "0"));
  CHECK_FALSE(turns("i32", "0", "lt", "10", "-1"));
  CHECK_FALSE(turns("i32", "0", "gt", "-10", "1"));
  CHECK_FALSE(turns("i8", "0", "lt", "127", "100"));
  CHECK_FALSE(turns("i8", "0", "gt", "-128", "-100"));
  CHECK_FALSE(
      turns("i64", "9223372036854775800", "lt", "9223372036854775807", "10"));
  // More turns than an i64 counts.
  CHECK_FALSE(
      turns("i64", "-9223372036854775808", "lt", "9223372036854775807", "1"));
  // The end changes from turn to turn, for all that is known.
  CHECK_FALSE(turns("i32", "0", "lt", "carry", "1"));
  CHECK_FALSE(turns("u8", "0", "lt", "10", "1"));
  CHECK_FALSE(turns("f32", "0", "lt", "10", "1"));
}

TEST_CASE("a counted loop has no condition that would tell") {
  const ir::Graph graph = parsed(
      "%0: f32 = input\n%1: f32 = loop %0 carries=1 turns=3 body={\n"
      "  %0: i64 = input\n  %1: f32 = input\n  return %1\n}\n"
      "%2: f32 = project %1\nreturn %2\n");
  CHECK_THROWS_AS((void)known_turns(graph, graph[1]), std::logic_error);
}

TEST_CASE("ranges of results, unless they wrap") {
  using Range = IntegerRange;
  const auto range = [](ir::Op op, DType dtype, Range x, Range y) {
    const Range both[] = {x, y};
    return range_of_result(op, dtype, both);
  };
  CHECK(range(ir::Op::add, DType::I8, {-3, 4}, {10, 20}) == Range{7, 24});
  CHECK(range(ir::Op::sub, DType::I8, {-3, 4}, {10, 20}) == Range{-23, -6});
  CHECK(range(ir::Op::mul, DType::I8, {-3, 4}, {-10, 20}) == Range{-60, 80});
  CHECK(range(ir::Op::cast, DType::U8, {0, 255}, {0, 0}) == Range{0, 255});
  CHECK_FALSE(range(ir::Op::cast, DType::U8, {-1, 5}, {0, 0}));
  CHECK_FALSE(range(ir::Op::add, DType::I8, {0, 100}, {0, 28}));
  CHECK_FALSE(range(ir::Op::sub, DType::U32, {0, 5}, {0, 1}));
  CHECK_FALSE(range(ir::Op::maximum, DType::I32, {0, 5}, {0, 1}));
  CHECK_FALSE(range(ir::Op::add, DType::F32, {0, 5}, {0, 1}));
  // A u64 beyond what an i64 holds.
  CHECK_FALSE(range(ir::Op::add, DType::U64, {0, INT64_MAX}, {0, 1}));
  CHECK(range(ir::Op::add, DType::U64, {0, INT64_MAX - 1}, {0, 1}) ==
        Range{0, INT64_MAX});
}
