// Steps that are made by hand: which of them are done once by all devices,
// which are launched together, and of which it is seen when they are done.
#include <doctest/doctest.h>

#include <memory>
#include <utility>

#include "jit/arrange/do_once.h"
#include "jit/arrange/join_kernels.h"
#include "jit/arrange/seen.h"
#include "jit/ir/routines.h"

using namespace unisono;
using namespace unisono::jit;

namespace {

constexpr int64_t elements = 16;

/// to[i] = from[i] + from[i], for each of `to`.
Kernel map(BufferId from, const std::vector<BufferId>& to,
           DType dtype = DType::F32) {
  Nest nest{.extents = {elements}, .reduced = {false}, .exprs = {}};
  Expr load{.kind = Expr::Kind::load, .dtype = dtype, .argument = 0};
  load.at = {0, {1}};
  Expr sum{.kind = Expr::Kind::operation, .op = ir::Op::add, .dtype = dtype};
  sum.operand_dtype = dtype;
  sum.at = {0, {0}};
  sum.operands = {0, 0};
  nest.exprs = {load, sum};
  Kernel kernel;
  kernel.arguments = {{from, dtype, false}};
  for (const BufferId buffer : to) {
    nest.stores.push_back(
        {static_cast<int>(kernel.arguments.size()), {0, {1}}, 1});
    kernel.arguments.push_back({buffer, dtype, true});
  }
  kernel.nests = {std::move(nest)};
  return kernel;
}
/// to = the sum of all elements.
Kernel sum(BufferId from, BufferId to) {
  Kernel kernel = map(from, {to});
  Nest& nest = kernel.nests[0];
  nest.reduced = {true};
  nest.reductions = {{.operand = 0}};
  nest.exprs[1] = {.kind = Expr::Kind::reduced, .reduction = 0, .phase = 1};
  nest.exprs[1].at = {0, {0}};
  nest.stores[0].at = {0, {0}};
  return kernel;
}
CollectiveStep all_reduce(BufferId from, BufferId to) {
  CollectiveStep step{.from = from, .to = to};
  step.elements = elements;
  return step;
}

PlanSteps list(auto&&... steps) {
  PlanSteps out;
  (out.push_back(PlanStep{std::move(steps)}), ...);
  return out;
}
std::unique_ptr<PlanSteps> own(auto&&... steps) {
  return std::make_unique<PlanSteps>(list(std::move(steps)...));
}

/// Two inputs, of which `same` is the same on all devices, and temporaries.
struct Devices {
  enum : BufferId { same, other, p, q, r, flag };
  Plan plan;

  Devices() {
    for (int i = 0; i < 6; ++i) plan.add_buffer(elements * 4);
    for (int i = 0; i < 2; ++i) {
      plan.buffers[i].home = PlanBuffer::Home::input;
      plan.buffers[i].index = i;
      plan.inputs.push_back(i);
    }
  }
  /// Whether the last step, r = 2 p, is done once behind these.
  bool is_once(PlanSteps steps) {
    plan.steps = std::move(steps);
    plan.steps.push_back({map(p, {r})});
    do_once(plan, {true, false});
    CHECK(plan.buffers[r].shared == plan.steps.back().once);
    return plan.steps.back().once;
  }
};
using D = Devices;

}  // namespace

// ---- done once -------------------------------------------------------------

TEST_CASE("loops and branches that all devices take alike") {
  const auto loop = [](BufferId condition, int64_t turns) {
    return LoopTask{own(map(condition, {D::flag})), own(map(D::same, {D::p})),
                    D::flag, turns};
  };
  CHECK(D().is_once(list(loop(D::same, -1))));
  CHECK_FALSE(D().is_once(list(loop(D::other, -1))));
  // Who knows the number of turns does not ask.
  CHECK(D().is_once(list(loop(D::other, 5))));

  const auto branch = [&](BufferId condition) {
    IfTask task{condition};
    task.then_steps = own(loop(D::same, -1));
    task.else_steps = own(map(D::same, {D::p}));
    return task;
  };
  CHECK(D().is_once(list(branch(D::same))));
  CHECK_FALSE(D().is_once(list(branch(D::other))));
}

TEST_CASE("routines give the same of the same, and functions may not") {
  const auto after = [](BufferId operand, bool is_routine) {
    ir::HostCallAttrs call = ir::routine_call(
        ir::Routine::inv, {ir::Type{DType::F32, ir::Shape{4, 4}}});
    if (!is_routine) call.number = 3;
    Devices devices;
    devices.plan.host_calls = {{ir::Node{ir::Op::host_call, {}, call, {}}}};
    HostCallStep step{.arguments = {operand}, .bytes = {elements * 4}};
    step.results = {D::p};
    step.result_bytes = {elements * 4};
    // Devices meet behind calls of the host where they do so anyway.
    return devices.is_once(list(std::move(step), all_reduce(D::other, D::q)));
  };
  CHECK(after(D::same, true));
  CHECK_FALSE(after(D::other, true));
  CHECK_FALSE(after(D::same, false));
}

TEST_CASE("what writes into arrays of its device stays with it") {
  Devices devices;
  CHECK(devices.is_once(list(map(D::same, {D::q, D::p}))));
  CHECK(devices.plan.steps[0].once);
  CHECK(devices.plan.buffers[D::q].shared);
  // Of two results one has something else before.
  Devices others;
  CHECK(
      others.is_once(list(map(D::other, {D::q}), map(D::same, {D::q, D::p}))));
  CHECK_FALSE(others.plan.steps[1].once);
  CHECK_FALSE(others.plan.buffers[D::q].shared);
  CHECK_FALSE(others.plan.buffers[D::p].shared);
}

TEST_CASE("what a meeting overwrites is not written behind it") {
  const auto turn = [](BufferId to) {
    Devices devices;
    const BufferId flag = devices.plan.add_buffer(elements * 4);
    devices.is_once(list(
        LoopTask{own(map(D::same, {flag})),
                 own(map(D::same, {to}), all_reduce(D::other, D::p)), flag}));
    const auto& loop = std::get<LoopTask>(devices.plan.steps[0].what);
    return std::holds_alternative<CollectiveStep>((*loop.body)[0].what);
  };
  CHECK(turn(D::q));
  CHECK_FALSE(turn(D::p));
}

// ---- seen ------------------------------------------------------------------

TEST_CASE("of which steps it is seen when they are done") {
  const auto checked = [] {
    Kernel kernel = map(D::p, {D::q});
    kernel.nests[0].exprs[1].checked = true;
    return kernel;
  };
  const auto scatter = [](bool is_checked) {
    Kernel kernel = map(D::p, {D::q});
    kernel.nests[0].stores.clear();
    kernel.nests[0].scatter = {.argument = 1,
                               .at = {0, {1}},
                               .value = 1,
                               .indices = {},
                               .indexed = {},
                               .checked = is_checked};
    return kernel;
  };
  const auto plain = [] { return map(D::p, {D::q}); };
  const auto seen = [](auto&& what) {
    const PlanStep step{std::move(what)};
    return is_seen(step);
  };
  CHECK_FALSE(seen(plain()));
  CHECK(seen(checked()));
  CHECK_FALSE(seen(scatter(false)));
  CHECK(seen(scatter(true)));
  CHECK_FALSE(seen(CopyStep{D::p, D::q, 64}));
  CHECK(seen(HostCallStep{}));
  CHECK_FALSE(seen(LoopTask{own(plain()), own(plain()), D::flag}));
  CHECK(seen(LoopTask{own(checked()), own(plain()), D::flag}));
  CHECK(seen(LoopTask{own(plain()), own(HostCallStep{}), D::flag}));
  CHECK_FALSE(seen(IfTask{D::flag, own(plain()), own(plain())}));
  CHECK(seen(IfTask{D::flag, own(scatter(true)), own(plain())}));
  CHECK(seen(IfTask{D::flag, own(plain()),
                    own(LoopTask{own(), own(checked()), D::flag})}));
}

// ---- joined ----------------------------------------------------------------

TEST_CASE("kernels that read an array as several types") {
  const auto arguments = [](DType one, DType other) {
    PlanSteps steps = list(LoopTask{
        own(), own(map(D::p, {D::q}, one), map(D::p, {D::r}, other)), D::flag});
    join_kernels(steps, false);
    const PlanSteps& body = *std::get<LoopTask>(steps[0].what).body;
    REQUIRE(body.size() == 1);
    const Kernel& kernel = std::get<Kernel>(body[0].what);
    REQUIRE(kernel.nests.size() == 2);
    for (const Nest& nest : kernel.nests) {
      const Argument& read = kernel.arguments[nest.exprs[0].argument];
      CHECK(read.buffer == D::p);
      CHECK(read.dtype == nest.exprs[0].dtype);
      const Argument& written = kernel.arguments[nest.stores[0].argument];
      CHECK(written.buffer == (&nest == &kernel.nests[0] ? D::q : D::r));
    }
    return kernel.arguments.size();
  };
  CHECK(arguments(DType::F32, DType::F32) == 3);
  CHECK(arguments(DType::F32, DType::I32) == 4);
}

TEST_CASE("reductions that all devices do, and one that is done once") {
  for (const bool one : {false, true})
    for (const bool other : {false, true}) {
      PlanSteps steps = list(sum(D::same, D::p), sum(D::same, D::q));
      steps[0].once = one;
      steps[1].once = other;
      join_reductions(steps);
      CHECK(steps.size() == (one == other ? 1 : 2));
      CHECK(steps[0].once == one);
      CHECK(steps.back().once == other);
    }
}
