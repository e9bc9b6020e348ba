// Whatever array there is no memory for, evaluation ends with that error.
#include <new>
#include <string>
#include <vector>

#include "jit/ir/text.h"
#include "jit/ir/verify.h"
#include "tests/unit/jit/arrays.h"
#include "tests/unit/jit/parsed.h"

using namespace unisono;
using namespace unisono::jit;
using namespace unisono::jit::testing;
using Arrays = std::vector<HostArray>;

namespace {
/// How many arrays of elements this thread gets before it does not get one.
thread_local int arrays_before = -1;
}  // namespace

// The evaluator's arrays (jit/reference/value.h) are what asks in this way.
// NOLINTNEXTLINE(misc-new-delete-overloads)
void* operator new[](size_t bytes, const std::nothrow_t&) noexcept {
  if (arrays_before == 0) {
    arrays_before = -1;
    return nullptr;
  }
  if (arrays_before > 0) --arrays_before;
  try {
    return ::operator new[](bytes);
  } catch (const std::bad_alloc&) {
    return nullptr;
  }
}

namespace {

/// Evaluates for so many members, which takes `arrays` arrays; each time there
/// is no memory for another one of them.
void check_short_of(const std::string& text, int arrays, int members = 1) {
  INFO(text);
  const ir::Graph g = parsed(text);
  std::vector<Arrays> inputs(static_cast<size_t>(members));
  for (Arrays& mine : inputs)
    for (const ir::Type& type : g.input_types())
      mine.push_back(
          {type, std::vector<uint8_t>(static_cast<size_t>(type.bytes()))});
  ReferenceOptions options;
  options.host_call = [](const ir::Node&, int64_t, const Arrays&,
                         Arrays&) -> Status { return Unit{}; };
  for (int count = 0; count <= arrays; ++count) {
    CAPTURE(count);
    arrays_before = count;
    const auto out = members > 1 ? evaluate_members(g, 1, inputs, options)
                                 : [&]() -> Result<std::vector<Arrays>> {
      auto one = evaluate(g, inputs[0], options);
      if (!one) return one.error();
      return std::vector<Arrays>{*std::move(one)};
    }();
    arrays_before = -1;
    CHECK(bool(out) == (count == arrays));
    if (out) continue;
    CHECK(out.error().kind == Error::Kind::out_of_memory);
    CHECK(out.error().message.find(" needs ") != std::string::npos);
    CHECK(out.error().source > 0);
  }
}

}  // namespace

TEST_CASE("no memory for the result of a node, or for an operand of it") {
  // Maps, sources, moves and lines.
  check_short_of("%0: f32[9] = input\n%1: f32[9] = exp %0 @1\nreturn %1\n", 1);
  check_short_of("%0: i64[9] = iota axis=0 @1\nreturn %0\n", 1);
  check_short_of(
      "%0: f32[9] = input\n%1: f32[9] = flip %0 axes=[0] @1\nreturn %1\n", 1);
  check_short_of(
      "%0: f32[9] = input\n%1: f32[9] = cumsum %0 axis=0 @1\nreturn %1\n", 1);
  // A constant's elements are held once until all are needed.
  const std::string ones = "%0: f32[9] = constant 1\n";
  check_short_of(ones + "%1: f32[9] = sort %0 @1\nreturn %1\n", 2);
  check_short_of(ones +
                     "%1: f32[9, 9] = dot %0, %0 contract_a=[] contract_b=[] "
                     "@1\nreturn %1\n",
                 3);
  check_short_of(ones + "%1: f32[18] = concat %0, %0 axis=0 @1\nreturn %1\n",
                 3);
  check_short_of(
      "%0: f32[9] = input\n%1: i32[9] = constant 2\n"
      "%2: f32[9] = gather %0, %1 axes=[0] @1\nreturn %2\n",
      2);
  check_short_of(ones +
                     "%1: i32[9] = constant 2\n"
                     "%2: f32[9] = gather %0, %1 axes=[0] @1\nreturn %2\n",
                 1);
  check_short_of(ones +
                     "%1: i32[9] = constant 2\n"
                     "%2: f32[9] = scatter %0, %0, %1 axes=[0] @1\nreturn %2\n",
                 4);
}

TEST_CASE("no memory for the rows and stacks of a loop") {
  check_short_of(R"(%0: f32[9] = input
%1: f32[3, 9] = input
%2: f32[9] = loop %0, %1 carries=1 turns=3 rows=1 body={
  %0: i64 = input
  %1: f32[9] = input
  %2: f32[9] = input
  return %2, %1
} @1
%3: f32[3, 9] = project %2 index=1
return %3
)",
                 4);
}

TEST_CASE("no memory for what members give each other, or get") {
  const std::string x = "%0: f32[3, 9] = input\n";
  const std::string over = " axes=[1] sizes=[3]";
  check_short_of(
      x + "%1: f32[3, 9] = all_reduce %0" + over + " @1\nreturn %1\n", 1, 3);
  check_short_of(
      x + "%1: f32[3, 3, 9] = all_gather %0" + over + " @1\nreturn %1\n", 1, 3);
  check_short_of(
      x + "%1: f32[9] = reduce_scatter %0" + over + " @1\nreturn %1\n", 3, 3);
  check_short_of(
      x + "%1: f32[3, 9] = all_to_all %0" + over + " @1\nreturn %1\n", 3, 3);
  check_short_of(x + "%1: f32[3, 9] = permute %0" + over +
                     " pairs=[(0, 1)] @1\nreturn %1\n",
                 1, 3);
  check_short_of(x + "%1: f32[9] = own_part %0" + over + " @1\nreturn %1\n", 3,
                 3);
  check_short_of("%0: f32[9] = constant 1\n%1: f32[9] = all_reduce %0" + over +
                     " @1\nreturn %1\n",
                 4, 3);
  check_short_of(
      "%0: i32 = input\n%1: f32[9] = host_call %0 function=\"f\" "
      "results=[f32[9]] @1\n%2: f32[9] = project %1\nreturn %2\n",
      3, 3);
}

TEST_CASE("stacks and meetings that no memory can hold") {
  const auto error_of = [](const std::string& text, int members) {
    const auto out =
        evaluate_members(parsed(text), 1,
                         std::vector<Arrays>(static_cast<size_t>(members),
                                             {scalar_array(DType::F32, 1)}));
    REQUIRE(!out);
    CHECK(out.error().kind == Error::Kind::out_of_memory);
    CHECK(out.error().source == 4);
    return out.error().message;
  };
  CHECK(error_of(R"(%0: f32 = input
%1: f32 = loop %0 carries=1 turns=8 body={
  %0: i64 = input
  %1: f32 = input
  %2: f32[1073741824] = broadcast %1
  return %1, %2
} @4
%2: f32 = project %1
return %2
)",
                 1) == "f32[8, 1073741824] needs 34359738368 bytes");
  CHECK(error_of(R"(%0: f32 = input
%1: f32[2147483648] = broadcast %0
%2: f32[3, 2147483648] = all_gather %1 axes=[1] sizes=[3] @4
return %2
)",
                 3) == "f32[3, 2147483648] needs 25769803776 bytes");
}
