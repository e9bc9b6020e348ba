#include "jit/vmap/vmap.h"
#include "jit/ir/kinds.h"
#include "jit/ir/text.h"
#include "jit/ir/verify.h"
#include "jit/pipeline.h"
#include "jit/transform/transforms.h"
#include "tests/unit/jit/arrays.h"
#include "tests/unit/jit/parsed.h"
#include "tests/unit/jit/random_graph.h"

using namespace unisono;
using namespace unisono::jit;
using namespace unisono::jit::testing;
using ir::Graph;
using Arrays = std::vector<HostArray>;

namespace {

constexpr ir::AxisId axis = 1;

/// Arrays of one type along a new leading axis.
HostArray stacked(const Arrays& members) {
  HostArray out = members[0];
  out.bytes.clear();
  for (const auto& m : members)
    out.bytes.insert(out.bytes.end(), m.bytes.begin(), m.bytes.end());
  out.type.shape.insert(out.type.shape.begin(),
                        static_cast<int64_t>(members.size()));
  return out;
}

HostArray member_of(const HostArray& stack, size_t m) {
  HostArray out = stack;
  out.type.shape.erase(out.type.shape.begin());
  const auto size = static_cast<size_t>(out.type.bytes());
  out.bytes.assign(stack.bytes.begin() + m * size,
                   stack.bytes.begin() + (m + 1) * size);
  return out;
}

/// One member's graph, and what every member is called with.
struct Case {
  Graph graph;
  std::vector<bool> mapped;
  std::vector<Arrays> members;

  /// Arguments of the graph for `size` members from `first` on.
  Arrays arguments(size_t first, size_t size) const {
    Arrays out;
    for (size_t i = 0; i < mapped.size(); ++i) {
      Arrays mine;
      for (size_t m = first; m < first + size; ++m)
        mine.push_back(members[m][i]);
      out.push_back(mapped[i] ? stacked(mine) : mine[0]);
    }
    return out;
  }
};

Case random_case(uint32_t seed, RandomOptions options) {
  RandomGraph random(seed, options);
  Case out{random.make(), {}, {}};
  std::mt19937 choice(seed);
  const Arrays shared = random.random_inputs(out.graph);
  for (size_t i = 0; i < shared.size(); ++i)
    out.mapped.push_back(choice() % 3 != 0);
  for (int64_t m = 0; m < options.members; ++m) {
    Arrays mine = random.random_inputs(out.graph);
    for (size_t i = 0; i < mine.size(); ++i)
      if (!out.mapped[i]) mine[i] = shared[i];
    out.members.push_back(std::move(mine));
  }
  return out;
}

/// What host calls said, with all operands' values.
struct Log {
  std::vector<std::string> calls;
  ReferenceOptions options() {
    ReferenceOptions o;
    o.host_call = [this](const ir::Node& node, int64_t,
                         const std::vector<HostArray>& operands,
                         std::vector<HostArray>& results) -> Status {
      answer(operands, results);
      const auto& attrs = ir::attrs<ir::HostCallAttrs>(node);
      if (attrs.pure) return Unit{};  // made once where it is the same
      std::string call =
          attrs.function.empty() ? attrs.format[0] : attrs.function;
      for (const auto& x : operands)
        for (double v : values_of(x)) call += std::to_string(v) + " ";
      calls.push_back(call);
      return Unit{};
    };
    return o;
  }
};

std::vector<Arrays> expected_results(const Case& c, Log& log) {
  auto out = evaluate_members(c.graph, axis, c.members, log.options());
  if (!out) FAIL(out.error().message << "\n" << ir::print(c.graph));
  return *out;
}

void check_well_formed(const Graph& g, const Graph& member) {
  if (auto good = ir::verify(g); !good)
    FAIL(good.error().message << "\n" << ir::print(member) << ir::print(g));
}

void check_vmap(const Case& c, bool ordered_log = true) {
  Log expected_log, log;
  const auto expected = expected_results(c, expected_log);
  const auto size = c.members.size();
  VmapSpec spec{axis, static_cast<int64_t>(size), c.mapped, 1};
  Graph g = vmap(c.graph, spec);
  check_well_formed(g, c.graph);
  for (int optimised = 0; optimised < 2; ++optimised) {
    log.calls.clear();
    const Arrays got = outputs_of(g, c.arguments(0, size), log.options());
    for (size_t i = 0; i < got.size(); ++i)
      for (size_t m = 0; m < size; ++m)
        if (!same_values(member_of(got[i], m), expected[m][i]))
          FAIL("output " << i << " of member " << m << "\n"
                         << ir::print(c.graph) << ir::print(g));
    if (ordered_log) CHECK(log.calls == expected_log.calls);
    g = optimise(g);
  }
}

/// The same members on `devices` devices, evaluated as the members of the
/// axis of devices.
void check_spmd(const Case& c, int64_t devices) {
  Log log;
  const auto expected = expected_results(c, log);
  const auto size = c.members.size() / static_cast<size_t>(devices);
  const VmapSpec spec{axis, static_cast<int64_t>(size), c.mapped, devices};
  Graph g = vmap(c.graph, spec);
  check_well_formed(g, c.graph);
  g = optimise(g);
  std::vector<Arrays> arguments;
  for (int64_t d = 0; d < devices; ++d)
    arguments.push_back(c.arguments(static_cast<size_t>(d) * size, size));
  auto got = evaluate_members(g, axis, arguments);
  if (!got) FAIL(got.error().message << "\n" << ir::print(g));
  for (size_t m = 0; m < c.members.size(); ++m)
    for (size_t i = 0; i < expected[m].size(); ++i)
      if (!same_values(member_of((*got)[m / size][i], m % size),
                       expected[m][i]))
        FAIL("output " << i << " of member " << m << "\n"
                       << ir::print(c.graph) << ir::print(g));
}

Case mapped_case(const std::string& text, std::vector<Arrays> members) {
  Case out{parsed(text), {}, std::move(members)};
  out.mapped.assign(out.graph.inputs.size(), true);
  return out;
}

}  // namespace

TEST_CASE("vmap of random graphs is the loop over members") {
  for (uint32_t seed = 0; seed < 600; ++seed) {
    CAPTURE(seed);
    const int64_t members = 1 + seed % 4;
    const Case c = random_case(seed, {18, 2, false, members, false});
    check_vmap(c);
    // Without communication every member is a run of its own.
    Log log;
    const auto together = expected_results(c, log);
    for (size_t m = 0; m < c.members.size(); ++m) {
      const Arrays alone = outputs_of(c.graph, c.members[m]);
      for (size_t i = 0; i < alone.size(); ++i)
        REQUIRE(same_values(alone[i], together[m][i]));
    }
  }
}

TEST_CASE("vmap keeps the order of host calls") {
  for (uint32_t seed = 0; seed < 300; ++seed) {
    CAPTURE(seed);
    const int64_t members = 1 + seed % 3;
    check_vmap(random_case(seed + 5000, {18, 2, false, members, true}));
  }
}

TEST_CASE("vmap of random graphs with collectives") {
  for (const int64_t members : {1, 2, 3, 4, 5, 7, 8, 16, 64})
    for (uint32_t seed = 0; seed < 60; ++seed) {
      CAPTURE(members);
      CAPTURE(seed);
      check_vmap(random_case(seed + 100 * static_cast<uint32_t>(members),
                             {14, 2, true, members, false}));
    }
}

TEST_CASE("members spread over devices give the same bits") {
  const std::pair<int64_t, int64_t> spreads[] = {
      {2, 1}, {3, 1}, {4, 1}, {7, 1}, {64, 1}, {2, 2}, {2, 3}, {3, 2},
      {4, 2}, {3, 5}, {2, 6}, {5, 4}, {2, 7},  {8, 8}, {3, 8}, {4, 12}};
  for (const auto& [devices, each] : spreads)
    for (uint32_t seed = 0; seed < 40; ++seed) {
      CAPTURE(devices);
      CAPTURE(each);
      CAPTURE(seed);
      const int64_t members = devices * each;
      check_spmd(random_case(seed + 77 * static_cast<uint32_t>(members),
                             {14, 2, true, members, false}),
                 devices);
    }
}

TEST_CASE("psum of a value that all members share counts it once each") {
  const std::string text =
      "%0: f32 = input\n%1: f32 = all_reduce %0 axes=[1] sizes=[5]\nreturn "
      "%1\n";
  Case c = mapped_case(text,
                       std::vector<Arrays>(5, {scalar_array(DType::F32, 1.5)}));
  c.mapped = {false};
  check_vmap(c);
  const Graph g = vmap(c.graph, {axis, 5, {false}, 1});
  CHECK(value_of(g, {scalar_array(DType::F32, 1.5)}) ==
        std::vector<double>(5, 7.5));
}

TEST_CASE("16-bit sums are rounded once however members are spread") {
  std::vector<Arrays> members;
  for (int m = 0; m < 12; ++m)
    members.push_back({scalar_array(DType::F16, m == 0 ? 2048 : 1)});
  const Case c = mapped_case(
      "%0: f16 = input\n%1: f16 = all_reduce %0 axes=[1] sizes=[12]\nreturn "
      "%1\n",
      members);
  Log log;
  CHECK(values_of(expected_results(c, log)[0][0])[0] == 2060);
  check_vmap(c);
  for (int64_t devices : {2, 3, 4, 6, 12}) check_spmd(c, devices);
}

TEST_CASE("checked operations of members that take no part") {
  const char* text = R"(%0: i32 = input
%1: i32 = input
%2: i32 = constant 0
%3: bool = ne %1, %2
%4: i32 = if_else %3, %0, %1 then={
  %0: i32 = input
  %1: i32 = input
  %2: i32 = floor_div %0, %1 @4
  return %2
} else={
  %0: i32 = input
  %1: i32 = input
  return %0
}
%5: i32 = project %4
return %5
)";
  const auto member = [](double x, double y) -> Arrays {
    return {scalar_array(DType::I32, x), scalar_array(DType::I32, y)};
  };
  check_vmap(mapped_case(text, {member(7, 2), member(9, 0), member(-7, 2)}));
  // The same division outside the branch fails.
  Graph g = vmap(parsed("%0: i32 = input\n%1: i32 = input\n"
                        "%2: i32 = floor_div %0, %1 @4\nreturn %2\n"),
                 {axis, 2, {true, true}, 1});
  auto out = evaluate(
      g, {array(DType::I32, {2}, {1, 2}), array(DType::I32, {2}, {1, 0})});
  REQUIRE(!out);
  CHECK(out.error().kind == Error::Kind::integer_division);
  CHECK(out.error().source == 4);
}

TEST_CASE("a member takes part only if all branches around it are taken") {
  const char* text = R"(%0: i32 = input
%1: i32 = input
%2: bool = input
%3: i32 = constant 0
%4: bool = ne %1, %3
%5: i32 = if_else %4, %0, %1, %2 then={
  %0: i32 = input
  %1: i32 = input
  %2: bool = input
  %3: i32 = if_else %2, %0, %1 then={
    %0: i32 = input
    %1: i32 = input
    %2: i32 = floor_div %0, %1
    %3: i32 = loop %2, %1 carries=1 condition={
      %0: i32 = input
      %1: i32 = input
      %2: i32 = constant 100
      %3: i32 = floor_div %2, %1
      %4: bool = lt %0, %3
      return %4
    } body={
      %0: i32 = input
      %1: i32 = input
      %2: i32 = pow %1, %1
      %3: i32 = add %0, %2
      return %3
    }
    %4: i32 = project %3
    return %4
  } else={
    %0: i32 = input
    %1: i32 = input
    return %0
  }
  %4: i32 = project %3
  return %4
} else={
  %0: i32 = input
  %1: i32 = input
  %2: bool = input
  return %1
}
%6: i32 = project %5
return %6
)";
  std::vector<Arrays> members;
  for (int y = -2; y < 4; ++y)
    for (int takes = 0; takes < 2; ++takes)
      if (y >= 0 || !takes)
        members.push_back({scalar_array(DType::I32, 3 * y + 1),
                           scalar_array(DType::I32, y),
                           scalar_array(DType::Bool, takes)});
  check_vmap(mapped_case(text, members));
  // All share the divisor 0, and nobody divides.
  Case c = mapped_case(
      text, {{scalar_array(DType::I32, 1), scalar_array(DType::I32, 0),
              scalar_array(DType::Bool, 1)},
             {scalar_array(DType::I32, 2), scalar_array(DType::I32, 0),
              scalar_array(DType::Bool, 0)}});
  for (const bool first : {false, true}) {
    c.mapped = {first, false, true};
    if (!first) c.members[1][0] = c.members[0][0];
    check_vmap(c);
  }
}

TEST_CASE("indices of members that take no part, an empty axis too") {
  const auto text = [](int size) {
    const std::string n = std::to_string(size);
    return "%0: f32[" + n + R"(] = input
%1: i32 = input
%2: bool = input
%3: f32 = constant 5
%4: f32 = if_else %2, %0, %1, %3 then={
  %0: f32[)" +
           n + R"(] = input
  %1: i32 = input
  %2: f32 = input
  %3: f32 = gather %0, %1 axes=[0] @8
  return %3
} else={
  %0: f32[)" +
           n + R"(] = input
  %1: i32 = input
  %2: f32 = input
  return %2
}
%5: f32 = project %4
return %5
)";
  };
  const auto member = [](int size, double index, bool takes) -> Arrays {
    std::vector<double> x;
    for (int i = 0; i < size; ++i) x.push_back(i + 10);
    return {array(DType::F32, {size}, x), scalar_array(DType::I32, index),
            scalar_array(DType::Bool, takes)};
  };
  check_vmap(mapped_case(
      text(3), {member(3, 2, true), member(3, 9, false), member(3, -1, true)}));
  check_vmap(mapped_case(text(0), {member(0, 0, false), member(0, 4, false)}));
  for (int shared = 0; shared < 2; ++shared) {
    const Case bad =
        mapped_case(text(0), {member(0, 0, false), member(0, 0, true)});
    Graph g = vmap(bad.graph, {axis, 2, {shared == 0, true, true}, 1});
    Arrays arguments = bad.arguments(0, 2);
    if (shared) arguments[0] = bad.members[0][0];
    auto out = evaluate(g, arguments);
    REQUIRE(!out);
    CHECK(out.error().kind == Error::Kind::index_out_of_bounds);
  }
}

TEST_CASE("a loop that nobody enters ends") {
  // Inside the branch the loop counts down from a value that all share; when
  // no member takes the branch, it must not run (it would not end).
  const char* text = R"(%0: bool = input
%1: i32 = input
%2: i32 = if_else %0, %1 then={
  %0: i32 = input
  %1: i32 = loop %0 carries=1 condition={
    %0: i32 = input
    %1: i32 = constant 0
    %2: bool = ne %0, %1
    return %2
  } body={
    %0: i32 = input
    %1: i32 = constant 2
    %2: i32 = sub %0, %1
    return %2
  }
  %2: i32 = project %1
  return %2
} else={
  %0: i32 = input
  return %0
}
%3: i32 = project %2
return %3
)";
  const auto member = [](bool enters, double start) -> Arrays {
    return {scalar_array(DType::Bool, enters), scalar_array(DType::I32, start)};
  };
  Case c = mapped_case(text, {member(false, 3), member(false, 3)});
  c.mapped = {true, false};
  check_vmap(c);
  c = mapped_case(text, {member(true, 4), member(true, 4)});
  c.mapped = {true, false};
  check_vmap(c);
  check_vmap(mapped_case(text, {member(true, 4), member(false, 3)}));
}

TEST_CASE("no members at all") {
  const Graph g = parsed(
      "%0: f32[3] = input\n%1: f32[3] = all_reduce %0 axes=[1] sizes=[0]\n"
      "%2: f32[3] = add %0, %1\nreturn %2\n");
  for (int64_t devices : {1, 3}) {
    const Graph h = vmap(g, {axis, 0, {true}, devices});
    REQUIRE(ir::verify(h));
    CHECK(value_of(h, {array(DType::F32, {0, 3}, {})}).empty());
  }
}

TEST_CASE("collectives over another axis are for each member") {
  const Graph g = parsed(
      "%0: f32[2] = input\n%1: f32[3, 2] = all_gather %0 axes=[2] sizes=[3]\n"
      "%2: f32[2] = all_reduce %0 axes=[2] sizes=[3]\n"
      "%3: f32[2] = permute %0 axes=[2] sizes=[3] pairs=[(0, 1), (1, 2)]\n"
      "%4: i32 = axis_index axes=[2] sizes=[3]\nreturn %1, %2, %3, %4\n");
  const Graph h = vmap(g, {axis, 4, {true}, 1});
  REQUIRE(ir::verify(h));
  // Outer members o of axis 2, inner members i of axis 1.
  std::vector<Arrays> outer;
  std::vector<std::vector<Arrays>> inner(4);
  for (int o = 0; o < 3; ++o) {
    Arrays mine;
    for (int i = 0; i < 4; ++i) {
      mine.push_back(array(DType::F32, {2}, {o + 10.0 * i, o * i - 1.0}));
      inner[i].push_back({mine.back()});
    }
    outer.push_back({stacked(mine)});
  }
  const auto got = evaluate_members(h, 2, outer);
  REQUIRE(got);
  for (int i = 0; i < 4; ++i) {
    const auto expected = evaluate_members(g, 2, inner[i]);
    REQUIRE(expected);
    for (int o = 0; o < 3; ++o)
      for (int k = 0; k < 4; ++k)
        CHECK(same_bits(member_of((*got)[o][k], i), (*expected)[o][k]));
  }
}

TEST_CASE("a collective that not all members reach is an error") {
  const Graph g = parsed(R"(%0: bool = input
%1: f32 = input
%2: f32 = if_else %0, %1 then={
  %0: f32 = input
  %1: f32 = all_reduce %0 axes=[1] sizes=[2] @6
  return %1
} else={
  %0: f32 = input
  return %0
}
%3: f32 = project %2
return %3
)");
  const auto member = [](bool takes) -> Arrays {
    return {scalar_array(DType::Bool, takes), scalar_array(DType::F32, 1)};
  };
  CHECK(evaluate_members(g, axis, {member(true), member(true)}));
  const auto out = evaluate_members(g, axis, {member(true), member(false)});
  REQUIRE(!out);
  CHECK(out.error().kind == Error::Kind::check_failed);
  CHECK(out.error().source == 6);
  CHECK(!evaluate(g, member(true)));
}

TEST_CASE("errors of members name the member") {
  const Graph g =
      parsed("%0: i32 = input\n%1: i32 = mod %0, %0 @9\nreturn %1\n");
  const auto out = evaluate_members(
      g, axis, {{scalar_array(DType::I32, 1)}, {scalar_array(DType::I32, 0)}});
  REQUIRE(!out);
  CHECK(out.error().member == 1);
  CHECK(out.error().source == 9);
}
