// What the reference evaluator does where members fail, call the host, or do
// not fit together: several members, some on one device.
#include <atomic>
#include <string>
#include <vector>

#include "jit/ir/text.h"
#include "jit/ir/verify.h"
#include "jit/reference/host_call.h"
#include "runtime/stop.h"
#include "tests/unit/jit/compiled.h"
#include "tests/unit/jit/parsed.h"

using namespace unisono;
using namespace unisono::jit;
using namespace unisono::jit::testing;
using Arrays = std::vector<HostArray>;
using Doubles = std::vector<double>;
using Lines = std::vector<std::string>;

namespace {

std::vector<Arrays> members(const Doubles& numbers) {
  std::vector<Arrays> out;
  for (const double number : numbers)
    out.push_back({scalar_array(DType::I32, number)});
  return out;
}

/// Members on devices of `per_device` members each, and what they called: a
/// call is its text and its operand, fails if the operand is `bad`, and gives
/// ten times the operand.
struct Host {
  int per_device = 1;
  double bad = -1;
  Lines calls = {};

  ReferenceOptions options() {
    ReferenceOptions o;
    o.device_of = [this](int64_t member) {
      return static_cast<int>(member) / per_device;
    };
    o.host_call = [this](const ir::Node& node, int64_t member,
                         const Arrays& operands, Arrays& results) -> Status {
      const auto& a = ir::attrs<ir::HostCallAttrs>(node);
      const double x = values_of(operands.at(0)).at(0);
      calls.push_back((a.function.empty() ? a.format[0] : a.function) +
                      std::to_string(static_cast<int>(x)) + " of " +
                      std::to_string(member));
      if (x == bad)
        return Error{.kind = Error::Kind::host_function, .message = "bad"};
      for (HostArray& result : results)
        result = scalar_array(DType::I32, 10 * x);
      return Unit{};
    };
    return o;
  }
};

/// The kind, place and member of the error.
void check_error(const Result<std::vector<Arrays>>& out, Error::Kind kind,
                 uint32_t source, int64_t member) {
  REQUIRE(!out);
  CHECK(out.error().kind == kind);
  CHECK(out.error().source == source);
  CHECK(out.error().member == member);
}

/// 10 / (x - 2) of the even members, 10 / (x - 3) of the others, whose places
/// are 3 and 4.
const char* const branches = R"(%0: i32 = input
%1: i32 = constant 2
%2: i32 = mod %0, %1
%3: i32 = constant 0
%4: bool = eq %2, %3
%5: i32 = if_else %4, %0 then={
  %0: i32 = input
  %1: i32 = constant 2
  %2: i32 = sub %0, %1
  %3: i32 = constant 10
  %4: i32 = floor_div %3, %2 @3
  return %4
} else={
  %0: i32 = input
  %1: i32 = constant 3
  %2: i32 = sub %0, %1
  %3: i32 = constant 10
  %4: i32 = floor_div %3, %2 @4
  return %4
}
%6: i32 = project %5
return %6
)";

}  // namespace

TEST_CASE("the first of the members that fail counts, in whatever branch") {
  const ir::Graph g = parsed(branches);
  const auto error_of = [&](const Doubles& x, uint32_t source, int64_t member) {
    check_error(evaluate_members(g, 1, members(x)),
                Error::Kind::integer_division, source, member);
  };
  error_of({0, 1, 2, 3}, 3, 2);
  error_of({0, 3, 2, 3}, 4, 1);
  error_of({2, 3, 0, 1}, 3, 0);
  error_of({3, 2, 0, 3}, 4, 0);
  const auto fine = evaluate_members(g, 1, members({0, 1, 4, 5}));
  REQUIRE(fine);
  CHECK(values_of((*fine)[2][0]) == Doubles{5});
}

TEST_CASE("members that fail leave a loop, whose other members go on") {
  // x - turn of six turns is 0 in turn x.
  const ir::Graph g = parsed(R"(%0: i32 = input
%1: i32 = constant 1
%2: i32 = loop %1, %0 carries=1 turns=6 body={
  %0: i64 = input
  %1: i32 = input
  %2: i32 = input
  %3: i32 = cast %0
  %4: i32 = sub %2, %3
  %5: i32 = floor_div %1, %4 @5
  %6: bool = host_call %3 format=["turn ", ""] specs=[""]
  return %5
}
%3: i32 = project %2
%4: i32 = floor_div %1, %3 @6
return %4
)");
  Host host;
  // Member 1 fails in turn 3, then member 0 in turn 4; member 2 never came so
  // far.
  check_error(evaluate_members(g, 1, members({4, 3, 1}), host.options()),
              Error::Kind::integer_division, 5, 0);
  CHECK(host.calls ==
        Lines{"turn 0 of 0", "turn 1 of 0", "turn 2 of 0", "turn 3 of 0"});
  // All are gone after the first turn.
  check_error(evaluate_members(g, 1, members({0, 0})),
              Error::Kind::integer_division, 5, 0);
}

TEST_CASE("calls of the host come device after device, up to an error") {
  const ir::Graph g = parsed(R"(%0: i32 = input
%1: bool = host_call %0 format=["a ", ""] specs=[""] @1
%2: i32 = constant 2
%3: i32 = sub %0, %2
%4: i32 = floor_div %2, %3 @2
%5: bool = host_call %0 format=["b ", ""] specs=[""] @3
return %4
)");
  Host host;
  REQUIRE(evaluate_members(g, 1, members({0, 1}), host.options()));
  CHECK(host.calls == Lines{"a 0 of 0", "b 0 of 0", "a 1 of 1", "b 1 of 1"});
  host = {};
  check_error(evaluate_members(g, 1, members({0, 2, 1}), host.options()),
              Error::Kind::integer_division, 2, 1);
  CHECK(host.calls == Lines{"a 0 of 0", "b 0 of 0", "a 2 of 1"});
  // Of two on a device the second one's error ends the device.
  host = {.per_device = 2};
  check_error(evaluate_members(g, 1, members({0, 2, 1, 1}), host.options()),
              Error::Kind::integer_division, 2, 1);
  CHECK(host.calls == Lines{"a 0 of 0", "a 2 of 1"});
  // A call that waited fails when its turn comes.
  host = {.bad = 1};
  check_error(evaluate_members(g, 1, members({0, 1, 3}), host.options()),
              Error::Kind::host_function, 1, 1);
  CHECK(host.calls == Lines{"a 0 of 0", "b 0 of 0", "a 1 of 1"});
  // The error of a call of the first device comes at once.
  host = {.bad = 0};
  check_error(evaluate_members(g, 1, members({0, 1}), host.options()),
              Error::Kind::host_function, 1, 0);
  CHECK(host.calls == Lines{"a 0 of 0"});
}

TEST_CASE("calls with results come when all of their device has come") {
  const std::string text = R"(%0: i32 = input
%1: bool = host_call %0 format=["a ", ""] specs=[""] @1
%2: i32 = constant 5
%3: i32 = sub %0, %2
%4: i32 = floor_div %2, %3 @2
%5: i32 = host_call %0 function="f" results=[i32] @3
%6: i32 = project %5
%7: i32 = add %6, %0
return %7
)";
  const ir::Graph g = parsed(text);
  Host host;
  auto out = evaluate_members(g, 1, members({1, 2}), host.options());
  REQUIRE(out);
  CHECK(values_of((*out)[1][0]) == Doubles{22});
  CHECK(host.calls == Lines{"a 1 of 0", "f1 of 0", "a 2 of 1", "f2 of 1"});
  // What waited fails before the call is made.
  host = {.bad = 2};
  check_error(evaluate_members(g, 1, members({1, 2}), host.options()),
              Error::Kind::host_function, 1, 1);
  CHECK(host.calls == Lines{"a 1 of 0", "f1 of 0", "a 2 of 1"});
  // The device of two members has ended: neither of them calls.
  host = {.per_device = 2};
  check_error(evaluate_members(g, 1, members({1, 5, 2, 2}), host.options()),
              Error::Kind::integer_division, 2, 1);
  CHECK(host.calls == Lines{"a 1 of 0", "a 5 of 1"});
  // Who calls what is pure is seen by nobody.
  std::string pure = text;
  pure.insert(pure.find(" @3"), " pure=true");
  host = {.per_device = 2};
  check_error(
      evaluate_members(parsed(pure), 1, members({1, 5}), host.options()),
      Error::Kind::integer_division, 2, 1);
  CHECK(host.calls == Lines{"a 1 of 0", "a 5 of 1", "f1 of 0"});
  host = {};
  out = evaluate_members(parsed(pure), 1, members({1, 2}), host.options());
  REQUIRE(out);
  CHECK(values_of((*out)[1][0]) == Doubles{22});
  CHECK(host.calls == Lines{"a 1 of 0", "f1 of 0", "f2 of 1", "a 2 of 1"});
}

TEST_CASE("where members meet, earlier calls are made and errors end them") {
  const ir::Graph g = parsed(R"(%0: i32 = input
%1: i32 = constant 2
%2: i32 = sub %0, %1
%3: i32 = floor_div %1, %2 @2
%4: bool = host_call %0 format=["a ", ""] specs=[""] @3
%5: i32[3] = broadcast %3
%6: i32 = own_part %5 axes=[1] sizes=[3]
%7: i32 = all_reduce %0 axes=[1] sizes=[3] @4
%8: bool = host_call %7 format=["b ", ""] specs=[""] @5
return %7, %6
)");
  Host host;
  const auto out = evaluate_members(g, 1, members({0, 1, 4}), host.options());
  REQUIRE(out);
  CHECK(values_of((*out)[2][0]) == Doubles{5});
  CHECK(values_of((*out)[2][1]) == Doubles{1});
  CHECK(host.calls == Lines{"a 0 of 0", "a 1 of 1", "a 4 of 2", "b 5 of 0",
                            "b 5 of 1", "b 5 of 2"});
  host = {.bad = 4};
  check_error(evaluate_members(g, 1, members({0, 1, 4}), host.options()),
              Error::Kind::host_function, 3, 2);
  CHECK(host.calls == Lines{"a 0 of 0", "a 1 of 1", "a 4 of 2"});
  // A part of its own is no meeting: who failed does not matter there.
  host = {};
  check_error(evaluate_members(g, 1, members({0, 2, 4}), host.options()),
              Error::Kind::integer_division, 2, 1);
  CHECK(host.calls == Lines{"a 0 of 0"});
  const auto two = evaluate_members(g, 1, members({0, 1}));
  check_error(two, Error::Kind::check_failed, 0, 0);
  CHECK(two.error().message == "`own_part` over 3 members, but there are 2");
}

TEST_CASE("who stops evaluation") {
  const ir::Graph g = parsed(R"(%0: i32 = input
%1: i32 = constant 2
%2: i32 = add %0, %1 @2
%3: i32 = mul %2, %1 @3
return %3
)");
  int polls = 0;
  ReferenceOptions options;
  options.stop = [&] { return ++polls == 3; };
  check_error(evaluate_members(g, 1, members({1}), options),
              Error::Kind::cancelled, 3, -1);
  // A call of the host that was stopped is no member's error.
  const ir::Graph call = parsed(R"(%0: i32 = input
%1: i32 = host_call %0 function="f" results=[i32] @3
%2: i32 = project %1
return %2
)");
  options = {};
  options.host_call = [](const ir::Node&, int64_t, const Arrays&,
                         Arrays&) -> Status { return stopped_error(); };
  check_error(evaluate_members(call, 1, members({1, 2}), options),
              Error::Kind::cancelled, 3, -1);
  // Nobody is called: results are zeros.
  const auto zeros = evaluate_members(call, 1, members({1, 2}));
  REQUIRE(zeros);
  CHECK(values_of((*zeros)[1][0]) == Doubles{0});
}

TEST_CASE("a call for the members of a device names the one that fails") {
  const std::string text = R"(%0: i32[3] = input
%1: i32[3] = host_call %0 function="f" results=[i32] members=3 mapped=[0] @3)";
  const Arrays x = {array(DType::I32, {3}, {4, 7, 9})};
  Host host{.bad = 7};
  const std::string rest = "\n%2: i32[3] = project %1\nreturn %2\n";
  auto out = evaluate(parsed(text + rest), x, host.options());
  REQUIRE(!out);
  CHECK(out.error().member == -1);
  out = evaluate(parsed(text + " by member" + rest), x, host.options());
  REQUIRE(!out);
  CHECK(out.error().member == 1);
  CHECK(out.error().source == 3);
  host.bad = -1;
  CHECK(values_of(outputs_of(parsed(text + rest), x, host.options())[0]) ==
        Doubles{40, 70, 90});
  // Ctrl-C between two members.
  std::atomic<bool> stopped = false;
  const StopScope scope(&stopped);
  ReferenceOptions options;
  options.host_call = [&](const ir::Node&, int64_t, const Arrays&,
                          Arrays&) -> Status {
    stopped = true;
    return Unit{};
  };
  out = evaluate(parsed(text + rest), x, options);
  REQUIRE(!out);
  CHECK(out.error().kind == Error::Kind::cancelled);
}

TEST_CASE("control nodes are read whole and by several projections") {
  const ir::Graph g = parsed(R"(%0: i32 = input
%1: i32 = loop %0 carries=1 turns=3 body={
  %0: i64 = input
  %1: i32 = input
  %2: i32 = add %1, %1
  return %2, %0
}
%2: i32 = project %1
%3: i32 = add %2, %1
%4: i32 = project %1
%5: i64[3] = project %1 index=1
return %3, %4, %5, %1, %1
)");
  const Arrays inputs = {scalar_array(DType::I32, 5)};
  testing::Bench bench;
  CHECK(difference(bench, g, inputs) == "");
  const auto out = outputs_of(g, inputs);
  CHECK(values_of(out[0]) == Doubles{80});
  CHECK(values_of(out[1]) == Doubles{40});
  CHECK(values_of(out[2]) == Doubles{0, 1, 2});
  CHECK(values_of(out[3]) == Doubles{40});
  CHECK(values_of(out[4]) == Doubles{40});
  // Nothing is read of what has no results.
  const ir::Graph nothing = parsed(
      "%0: bool = input\n%1: bool = if_else %0 then={\nreturn\n} else={\n"
      "return\n}\nreturn %1\n");
  CHECK(value_of(nothing, {scalar_array(DType::Bool, 1)}) == Doubles{0});
}
