// Programs as lists of instructions, and those that cannot be.
#include "runtime/execute/flat_program.h"

#include <functional>
#include <stdexcept>
#include <string>

#include "tests/unit/runtime/programs.h"

namespace unisono {
namespace {

using Kind = CollectiveStep::Kind;

void nothing(void* const*, int64_t, int64_t, const KernelContext*) {}

Step collective(Kind kind, SlotId from, SlotId to, int64_t elements = 1) {
  CollectiveStep step;
  step.kind = kind;
  step.from = from;
  step.to = to;
  step.dtype = DType::I32;
  step.elements = elements;
  step.source = 9;
  return {step};
}

Step host_call(std::vector<SlotId> arguments) {
  HostCallStep call;
  call.bytes.assign(arguments.size(), 4);
  call.arguments = std::move(arguments);
  return {call};
}

std::vector<Instruction::Kind> kinds(const FlatProgram& flat) {
  std::vector<Instruction::Kind> out;
  for (const Instruction& each : flat.instructions) out.push_back(each.kind);
  return out;
}

/// Every kind of instruction, and each reads a slot of its own.
struct EveryKind {
  EveryKind() {
    Step known = launch(nothing, {a});
    std::get<LaunchStep>(known.what).sources = {5, 6};
    LoopStep loop{nullptr, steps({launch(nothing, {e})}), 0};
    loop.turns = 2;
    b.program.host_calls = {
        [](int, const auto&, auto&) -> Status { return Unit{}; }};
    b.program.steps = {
        known,
        {CopyStep{copied, to, 4}},
        collective(Kind::all_reduce, c, to),
        {CopyStep{c, to, 0}},
        host_call({d}),
        {loop},
        {IfStep{flag, steps({launch(nothing, {f})}), nullptr}},
    };
  }
  ProgramBuilder b{3};
  SlotId a = b.arena(4), copied = b.arena(4), c = b.arena(4), d = b.arena(4),
         e = b.arena(4), f = b.arena(4), flag = b.arena(1), to = b.arena(4),
         unused = b.arena(4);
};

TEST_CASE("which instruction reads a slot first, and where it comes from") {
  using K = Instruction::Kind;
  const EveryKind every;
  const FlatProgram flat = flatten(every.b.program);
  REQUIRE(kinds(flat) == std::vector{K::launch, K::copy, K::collective,
                                     K::collective_end, K::host_call, K::repeat,
                                     K::next_turn, K::launch, K::jump,
                                     K::jump_if_false, K::launch, K::end});
  const auto first = [&](SlotId slot) {
    std::vector<bool> slots(every.b.program.slots.size());
    slots[slot] = true;
    return first_reader(flat, slots);
  };
  CHECK(first(every.a) == 0);
  CHECK(first(every.copied) == 1);
  CHECK(first(every.c) == 2);
  CHECK(first(every.d) == 4);
  CHECK(first(every.e) == 7);
  CHECK(first(every.flag) == 9);
  CHECK(first(every.f) == 10);
  CHECK(first(every.unused) == 12);
  CHECK(first(every.to) == 12);  // which is written alone
  std::vector<uint32_t> sources;
  for (const Instruction& each : flat.instructions)
    sources.push_back(source_of(each));
  CHECK(sources == std::vector<uint32_t>{5, 0, 9, 9, 0, 0, 0, 0, 0, 0, 0, 0});
}

TEST_CASE("a copy of no bytes ends the collective before it, if it is there") {
  using K = Instruction::Kind;
  ProgramBuilder b(2);
  const SlotId x = b.arena(4), y = b.arena(4), z = b.arena(64);
  b.program.host_calls = {
      [](int, const auto&, auto&) -> Status { return Unit{}; }};
  const Step sum = collective(Kind::all_reduce, x, y);
  const Step other = collective(Kind::all_reduce, x, z);
  const Step end = {CopyStep{x, y, 0}}, end_of_other = {CopyStep{x, z, 0}};
  const auto flat = [&](Steps list) {
    b.program.steps = std::move(list);
    return flatten(b.program);
  };
  CHECK(kinds(flat({end})) == std::vector{K::copy, K::end});
  CHECK(kinds(flat({other, end})) ==
        std::vector{K::collective, K::copy, K::end});
  // Calls of the host come in order, and so do those who go round a loop.
  CHECK(kinds(flat({sum, host_call({x}), end})) ==
        std::vector{K::collective, K::host_call, K::copy, K::end});
  CHECK(kinds(flat({sum, {IfStep{x, steps({end}), nullptr}}})) ==
        std::vector{K::collective, K::jump_if_false, K::copy, K::end});
  Step work = launch(nothing, {z});
  std::get<LaunchStep>(work.what).flops = 1000;
  std::get<LaunchStep>(work.what).bytes = 300;
  const FlatProgram both =
      flat({sum, work, other, {CopyStep{z, z, 40}}, end_of_other, end});
  REQUIRE(kinds(both) == std::vector{K::collective, K::launch, K::collective,
                                     K::copy, K::collective_end,
                                     K::collective_end, K::end});
  CHECK(both.instructions[0].meanwhile == 1340);
  CHECK(both.instructions[2].meanwhile == 40);
  CHECK(both.instructions[4].step == both.instructions[2].step);
  CHECK(both.instructions[5].step == both.instructions[0].step);
}

TEST_CASE("devices meet in a loop in which something is done once for all") {
  ProgramBuilder b(2);
  const SlotId x = b.arena(4);
  Step once = launch(nothing, {x});
  for (const bool is_once : {false, true}) {
    once.once = is_once;
    LoopStep loop{nullptr, steps({once}), 0};
    loop.turns = 2;
    b.program.steps = {{loop}};
    const FlatProgram flat = flatten(b.program);
    REQUIRE(flat.loops.size() == 1);
    CHECK(flat.loops[0].meets == is_once);
    CHECK(flat.meets == is_once);
    CHECK(flat.loops[0].work == 1);
  }
}

TEST_CASE("a program that cannot be is our own mistake") {
  const auto expect = [](const std::string& condition,
                         const std::function<void(Steps&)>& spoil) {
    ProgramBuilder b(3);
    const SlotId x = b.input(8), y = b.output(8), all = b.output(24);
    b.program.host_calls = {
        [](int, const auto&, auto&) -> Status { return Unit{}; }};
    HostCallStep call;
    call.arguments = {x};
    call.bytes = call.result_bytes = {8};
    call.results = {y};
    Step permute = collective(Kind::permute, x, y, 2);
    std::get<CollectiveStep>(permute.what).pairs = {{0, 1}, {1, 2}};
    b.program.steps = {launch(nothing, {x}),
                       {CopyStep{x, y, 8}},
                       collective(Kind::all_gather, x, all, 2),
                       permute,
                       {call}};
    (void)flatten(b.program);
    spoil(b.program.steps);
    std::string what;
    try {
      (void)flatten(b.program);
    } catch (const std::logic_error& error) {
      what = error.what();
    }
    CHECK(what.substr(0, condition.size()) == condition);
  };
  const auto with = [](int step, auto&& change) {
    return [=](Steps& steps) { change(steps[step].what); };
  };
  const auto launches = [&](auto&& change) {
    return with(0, [=](auto& what) { change(std::get<LaunchStep>(what)); });
  };
  const auto copies = [&](auto&& change) {
    return with(1, [=](auto& what) { change(std::get<CopyStep>(what)); });
  };
  const auto gathers = [&](auto&& change) {
    return with(2, [=](auto& what) { change(std::get<CollectiveStep>(what)); });
  };
  const auto permutes = [&](auto&& change) {
    return with(3, [=](auto& what) { change(std::get<CollectiveStep>(what)); });
  };
  const auto calls = [&](auto&& change) {
    return with(4, [=](auto& what) { change(std::get<HostCallStep>(what)); });
  };
  expect("launch.function || launch.grid",
         launches([](auto& step) { step.function = nullptr; }));
  expect("slot >= 0", launches([](auto& step) { step.arguments = {-1}; }));
  expect("slot >= 0", copies([](auto& step) { step.to = 99; }));
  expect("program_.slots[slot].bytes >= bytes",
         copies([](auto& step) { step.bytes = 9; }));
  expect("call.arguments.size() == call.bytes.size()",
         calls([](auto& step) { step.bytes.push_back(8); }));
  expect("static_cast<size_t>(call.call) < program_.host_calls.size()",
         calls([](auto& step) { step.call = 1; }));
  expect("call.results.size() == call.result_bytes.size()",
         calls([](auto& step) { step.results.clear(); }));
  expect("call.callers.empty()", calls([](auto& step) { step.callers = {0}; }));
  expect("group.size() == step.groups[0].size()",
         gathers([](auto& step) { step.groups = {{0, 1}, {2}}; }));
  expect("device >= 0", gathers([](auto& step) { step.groups = {{0, 1, 3}}; }));
  expect("device >= 0",
         gathers([](auto& step) { step.groups = {{0, -1, 2}}; }));
  expect("!seen[device]",
         gathers([](auto& step) { step.groups = {{0, 1, 1}}; }));
  expect("count == program_.devices",
         gathers([](auto& step) { step.groups = {{0, 1}}; }));
  expect("source >= 0", permutes([](auto& step) { step.pairs = {{-1, 0}}; }));
  expect("source >= 0", permutes([](auto& step) { step.pairs = {{3, 0}}; }));
  expect("destination >= 0",
         permutes([](auto& step) { step.pairs = {{0, -1}}; }));
  expect("destination >= 0",
         permutes([](auto& step) { step.pairs = {{0, 3}}; }));
  expect("!reached[destination]",
         permutes([](auto& step) { step.pairs = {{0, 1}, {2, 1}}; }));
  expect("instruction.kind == Kind::launch",
         [](Steps& steps) { steps[4].once = true; });
}

}  // namespace
}  // namespace unisono
