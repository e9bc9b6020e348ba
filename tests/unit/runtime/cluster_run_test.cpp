// Runs of programs on devices of several processes, which are threads here.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstring>
#include <memory>
#include <thread>

#include "runtime/cluster/cluster_device.h"
#include "runtime/execute/collective.h"
#include "runtime/recorder.h"
#include "runtime/tuning/tuning.h"
#include "tests/unit/moved.h"
#include "tests/unit/runtime/cluster_group.h"
#include "tests/unit/runtime/programs.h"

namespace unisono {
namespace {

using Kind = CollectiveStep::Kind;

/// The devices of all, as one process has them.
struct Machine {
  explicit Machine(Cluster& cluster, int workers = 1)
      // The caller keeps the cluster.
      : runtime(make_cluster_devices(
                    std::shared_ptr<Cluster>(&cluster, [](Cluster*) {})),
                workers) {}
  const std::vector<Device*>& devices() { return runtime.devices(); }
  Runtime runtime;
};

/// An input's blocks, with bytes that fill(d, data) writes where device d is
/// this process's.
template <class Fill>
DeviceBlocks own_blocks(const std::vector<Device*>& devices, int64_t bytes,
                        Fill&& fill) {
  DeviceBlocks blocks;
  for (size_t d = 0; d < devices.size(); ++d) {
    Result<Buffer> buffer = devices[d]->allocate(bytes);
    if (is_here(*devices[d])) fill(static_cast<int>(d), buffer->data());
    blocks.push_back(std::make_shared<Buffer>(std::move(*buffer)));
  }
  return blocks;
}

void add_one(void* const* buffers, int64_t, int64_t, const KernelContext*) {
  ++*static_cast<int32_t*>(buffers[0]);
}
void add_to(void* const* buffers, int64_t, int64_t, const KernelContext*) {
  *static_cast<int32_t*>(buffers[0]) += *static_cast<int32_t*>(buffers[1]);
}
void fail(void* const*, int64_t, int64_t, const KernelContext* context) {
  context->error->value = 7;
  context->error->bound = 5;
  context->error->code = ErrorWord::index_out_of_bounds;
}
/// Of each process the first of two devices.
void stuck_on_even(void* const*, int64_t, int64_t,
                   const KernelContext* context) {
  while (context->device_position % 2 == 0 && !context->cancel->load())
    std::this_thread::yield();
}

Step collective(Kind kind, SlotId from, SlotId to, int64_t elements = 1,
                uint32_t source = 9) {
  CollectiveStep step;
  step.kind = kind;
  step.from = from;
  step.to = to;
  step.dtype = DType::I32;
  step.elements = elements;
  step.source = source;
  return {step};
}
/// Until then the collective between the slots may be under way.
Step end_of(SlotId from, SlotId to) { return {CopyStep{from, to, 0}}; }

/// A program with collectives of all kinds, each from an input of random
/// elements to an output.
struct AllKinds {
  AllKinds(int processes, int each)
      : devices(processes * each), builder(devices) {
    const int n = devices;
    Groups halves(2), mixed(1), alone;
    for (int d = 0; d < n; ++d) {
      halves[d * 2 / n].push_back(d);
      if (d % each == 0) alone.emplace_back();
      alone.back().push_back(d);
    }
    for (int i = 0; i < n; ++i) mixed[0].push_back(i * 3 % n);
    if (n % 3 == 0) mixed[0] = {0, 2, 1, 4, 3, 5};
    Groups strided(2);
    for (int d = n; d-- > 0;) strided[d % 2].push_back(d);
    std::vector<Groups> groupings = {{}, mixed, alone};
    if (n % 2 == 0) groupings.insert(groupings.end(), {halves, strided});
    // Some of one process, others of two.
    if (n == 6) groupings.push_back({{0, 1}, {2, 4}, {5, 3}});
    for (const Groups& groups : groupings)
      for (const int64_t elements : {5, 300})
        for (const Kind kind : {Kind::all_reduce, Kind::all_gather,
                                Kind::reduce_scatter, Kind::all_to_all})
          add(kind, groups, elements);
    // Groups of several sizes, which take more rounds and fewer.
    Groups uneven(2);
    for (int d = 0; d < n; ++d)
      uneven[each > 1 && d < 4 && d % 2 ? 1 : 0].push_back(d);
    if (uneven[1].empty()) uneven.pop_back();
    for (const int64_t elements : {1, 300})
      add(Kind::all_reduce, uneven, elements);
    std::vector<std::pair<int, int>> pairs;
    for (int d = 0; d + 1 < n; ++d) pairs.emplace_back(d, (d * 2 + 1) % n);
    std::vector<int> taken;
    std::erase_if(pairs, [&](const auto& pair) {
      if (std::ranges::find(taken, pair.second) != taken.end()) return true;
      taken.push_back(pair.second);
      return false;
    });
    add(Kind::permute, {}, 7, pairs);
    add(Kind::permute, {}, 7, {{0, n - 1}, {n - 1, n - 1 > 1 ? 1 : 0}});
    builder.program.steps = std::move(all);
  }

  void add(Kind kind, const Groups& groups, int64_t elements,
           std::vector<std::pair<int, int>> pairs = {}) {
    static constexpr std::array types = {DType::F32, DType::I32, DType::BF16,
                                         DType::F64, DType::F16, DType::Bool};
    static constexpr std::array ops = {ReduceOp::sum, ReduceOp::max,
                                       ReduceOp::sum, ReduceOp::min};
    CollectiveStep step;
    step.kind = kind;
    step.dtype = types[all.size() % types.size()];
    step.op = ops[all.size() % ops.size()];
    if (is_bool(step.dtype)) step.op = ReduceOp::max;
    step.elements = elements;
    step.groups = groups;
    step.pairs = std::move(pairs);
    const int64_t own = step.bytes();
    const auto team =
        static_cast<int64_t>(groups.empty() ? devices : groups[0].size());
    const CollectiveBytes bytes = bytes_of(step, team);
    CHECK(bytes.to >= own);
    step.from = builder.input(bytes.from);
    step.to = builder.output(bytes.to);
    types_of_inputs.push_back(step.dtype);
    all.push_back({step});
  }

  /// Of input i on device d; no NaN.
  void fill(size_t i, int d, void* data) const {
    const DType dtype = types_of_inputs[i];
    const int64_t count =
        builder.program.slots[builder.program.inputs[i]].bytes /
        byte_size(dtype);
    uint64_t state = 88172645463325252u + static_cast<uint64_t>(d) * 7919 + i;
    with_dtype(dtype, [&]<DType D>() {
      using S = typename StorageOf<D>::type;
      for (int64_t k = 0; k < count; ++k) {
        state = state * 6364136223846793005u + 1442695040888963407u;
        const auto bits = static_cast<int32_t>(state >> 33) % 20'000;
        S& to = static_cast<S*>(data)[k];
        if constexpr (D == DType::Bool)
          to = static_cast<S>(bits % 2);
        else
          to = static_cast<S>(static_cast<float>(bits) * 0.37f);
      }
    });
  }

  Result<Blocks> run(Runtime& runtime) const {
    Blocks inputs;
    for (size_t i = 0; i < builder.program.inputs.size(); ++i)
      inputs.push_back(
          own_blocks(runtime.devices(),
                     builder.program.slots[builder.program.inputs[i]].bytes,
                     [&](int d, void* data) { fill(i, d, data); }));
    return unisono::run(runtime, builder.program, runtime.devices(), inputs);
  }

  const int devices;
  ProgramBuilder builder;
  Steps all;
  std::vector<DType> types_of_inputs;
};

std::vector<Tuning> ways_of_meeting() {
  Tuning direct;  // what is for one goes there, and all combine
  direct.few_processes = 64;
  direct.least_cut_reduction = 1 << 30;
  Tuning rounds = direct;
  rounds.few_processes = 0;
  Tuning cut = direct;  // each combines a part
  cut.least_cut_reduction = 1;
  Tuning windows = cut;  // as it comes
  windows.cluster_window_bytes = 64;
  windows.few_processes = 0;
  return {Tuning(), direct, rounds, cut, windows};
}

/// A process's end, if a run gave what it should.
Group::End ended(const Result<Blocks>& outputs) {
  if (outputs) return ok(Unit{});
  return ok(outputs.error());
}

}  // namespace

TEST_CASE("collectives of processes have the bits of those of one") {
  for (const auto& [processes, each] :
       {std::pair(2, 2), std::pair(3, 2), std::pair(4, 2), std::pair(5, 1)}) {
    CAPTURE(processes);
    CAPTURE(each);
    const AllKinds kinds(processes, each);
    Runtime one(kinds.devices, 1);
    const Result<Blocks> expected = kinds.run(one);
    REQUIRE(expected);
    for (const Tuning& tuning : ways_of_meeting()) {
      const Moved moved([&](Tuning& own) { own = tuning; });
      Group group{
          .processes = processes, .faults = "reorder 3", .devices = each};
      group.run([&](Cluster& cluster) -> Group::End {
        Machine machine(cluster);
        const AllKinds own(cluster.processes(), cluster.devices_each());
        const Result<Blocks> outputs = own.run(machine.runtime);
        if (!outputs) return ok(outputs.error());
        for (size_t i = 0; i < outputs->size(); ++i)
          for (int d = 0; d < own.devices; ++d) {
            const Buffer& got = *(*outputs)[i][d];
            if (is_here(*machine.devices()[d]) &&
                std::memcmp(got.data(), (*expected)[i][d]->data(),
                            static_cast<size_t>(got.bytes())) != 0)
              return std::pair(1, fmt::format("output {} on {}\n", i, d));
          }
        return ok(Unit{});
      });
      group.check(0, "");
    }
  }
}

TEST_CASE("a program may be run in another cluster, and on devices in turn") {
  ProgramBuilder b(4);
  const SlotId in = b.input(4), out = b.output(16);
  b.program.steps = {collective(Kind::all_gather, in, out)};
  const std::vector<Program> programs(2, b.program);
  for (int turn = 0; turn < 2; ++turn) {
    Group group{.processes = 2};
    group.run([&](Cluster& cluster) -> Group::End {
      Machine machine(cluster);
      const Program& program = programs[cluster.process()];
      std::vector<Device*> devices = machine.devices();
      for (const auto& order : {std::array{0, 1, 2, 3}, std::array{3, 0, 2, 1},
                                std::array{3, 0, 2, 1}}) {
        for (size_t d = 0; d < 4; ++d) devices[d] = machine.devices()[order[d]];
        const Blocks inputs = {own_blocks(devices, 4, [&](int d, void* data) {
          *static_cast<int32_t*>(data) = 10 * turn + order[d];
        })};
        const auto outputs = run(machine.runtime, program, devices, inputs);
        if (!outputs) return ok(outputs.error());
        for (size_t d = 0; d < 4; ++d)
          for (size_t i = 0; i < 4; ++i)
            if (is_here(*devices[d]) &&
                values<int32_t>((*outputs)[0][d])[i] != 10 * turn + order[i])
              return std::pair(1, std::string("wrong numbers\n"));
      }
      return ok(Unit{});
    });
    group.check(0, "");
  }
}

namespace {

/// Two sums and a gathering are under way, one within the other, while
/// kernels run; `failing`: one of them fails.
Program under_way(bool failing = false) {
  ProgramBuilder b(6);
  const SlotId x = b.input(4), y = b.input(4), sum = b.output(4),
               all = b.output(24), count = b.output(4), other = b.output(4);
  b.program.steps = {
      {CopyStep{x, count, 4}},
      collective(Kind::all_reduce, x, sum),
      launch(failing ? fail : add_one, {count}),
      collective(Kind::all_gather, y, all),
      launch(add_one, {count}),
      end_of(x, sum),
      launch(add_to, {count, sum}),
      end_of(y, all),
      collective(Kind::all_reduce, count, other),
      launch(add_one, {other}),
  };
  return std::move(b.program);
}

Blocks numbers(const std::vector<Device*>& devices) {
  const auto from = [&](int first) {
    return own_blocks(devices, 4, [&](int d, void* data) {
      *static_cast<int32_t*>(data) = first + d;
    });
  };
  return {from(1), from(100)};
}

}  // namespace

TEST_CASE("collectives are under way while devices compute") {
  for (const bool recorded : {false, true}) {
    Group group{.faults = "eager; reorder 2"};
    group.run([&](Cluster& cluster) -> Group::End {
      Machine machine(cluster, 2);
      const Program program = under_way();
      Recorder recorder(true);
      RunOptions options;
      if (recorded) options.recorder = &recorder;
      const auto outputs = run(machine.runtime, program, machine.devices(),
                               numbers(machine.devices()), options);
      if (!outputs) return ok(outputs.error());
      for (int d = 2 * cluster.process(); d < 2 * cluster.process() + 2; ++d) {
        // 1 + ... + 6 = 21, and each has its x, two more, and that.
        bool good = *values<int32_t>((*outputs)[0][d]) == 21 &&
                    *values<int32_t>((*outputs)[2][d]) == 1 + d + 2 + 21 &&
                    *values<int32_t>((*outputs)[3][d]) == 21 + 6 * 23 + 1;
        for (int i = 0; i < 6; ++i)
          good = good && values<int32_t>((*outputs)[1][d])[i] == 100 + i;
        if (!good) return std::pair(1, std::string("wrong numbers\n"));
        if (recorded &&
            (recorder.total(Recorder::Kind::collective, d).count != 3 ||
             recorder.total(Recorder::Kind::wait, d).count != 3))
          return std::pair(1, std::string("not recorded\n"));
      }
      return ok(Unit{});
    });
    group.check(0, "");
  }
}

TEST_CASE("a run that fails ends what is under way, and says its own error") {
  Group group{.faults = "eager"};
  group.run([&](Cluster& cluster) -> Group::End {
    Machine machine(cluster);
    return ended(run(machine.runtime, under_way(true), machine.devices(),
                     numbers(machine.devices())));
  });
  group.check(1, "index 7 is out of bounds for size 5\n");
}

TEST_CASE("who meets a process that is gone is told so, wherever it waits") {
  const auto expect_gone = [](const Program& program, const Tuning& tuning,
                              bool eager = false, bool recorded = false) {
    const Moved moved([&](Tuning& own) { own = tuning; });
    Group group{.faults = eager ? "eager" : ""};
    const auto begin = std::chrono::steady_clock::now();
    group.run([&](Cluster& cluster) -> Group::End {
      Machine machine(cluster);
      if (cluster.process() == 2) return std::nullopt;
      // Cached runs are the program's: each process has its own.
      const Program own = program;  // NOLINT(performance-*)
      Blocks inputs;
      for (const SlotId slot : own.inputs)
        inputs.push_back(own_blocks(
            machine.devices(), own.slots[slot].bytes, [&](int, void* data) {
              std::memset(data, 0, static_cast<size_t>(own.slots[slot].bytes));
            }));
      Recorder recorder(false);
      RunOptions options;
      if (recorded) options.recorder = &recorder;
      return ended(
          run(machine.runtime, own, machine.devices(), inputs, options));
    });
    // At once, and not when they have waited for as long as they may.
    CHECK(std::chrono::steady_clock::now() - begin < group.limit);
    REQUIRE(group.outcomes[0].end.messages);
    CHECK(group.outcomes[0].end.messages->ends_with(
        "process 2 is gone: it was killed, or its host is down\n"));
    CHECK(group.outcomes[0].end.status == 1);
    CHECK(group.outcomes[1].end.status == 1);
  };
  const std::vector<Tuning> ways = ways_of_meeting();
  for (const Kind kind :
       {Kind::all_reduce, Kind::all_gather, Kind::reduce_scatter,
        Kind::all_to_all, Kind::permute}) {
    ProgramBuilder b(6);
    const SlotId from = b.input(6 * 400), to = b.output(6 * 400);
    b.program.steps = {collective(kind, from, to, 100)};
    expect_gone(b.program, ways[1]);
    expect_gone(b.program, ways[2]);
    expect_gone(b.program, ways[4], false, true);
  }
  // Under way: at its end, before another one, and when the run has failed.
  expect_gone(under_way(), Tuning(), true);
  expect_gone(under_way(), Tuning(), true, true);
  expect_gone(under_way(true), Tuning(), true);
  Program before = under_way();
  std::erase_if(before.steps, [](const Step& step) {
    const auto* copy = std::get_if<CopyStep>(&step.what);
    return copy && copy->bytes == 0 && copy->from == 1;
  });
  expect_gone(before, Tuning(), true);
}

TEST_CASE("what arrives during a run is waited for where it is read") {
  for (const int way : {0, 1, 2, 3}) {
    const bool fails = way % 2, read_first = way / 2;
    CAPTURE(way);
    Group group{.processes = 2};
    group.run([&](Cluster& cluster) -> Group::End {
      Machine machine(cluster);
      ProgramBuilder b(4);
      const SlotId x = b.input(4), y = b.input(4), sum = b.output(4);
      b.program.steps = {{CopyStep{y, sum, 4}}};
      if (read_first) b.program.steps.push_back(launch(add_to, {sum, x}));
      b.program.steps.push_back(collective(Kind::all_reduce, sum, sum));
      if (!read_first) b.program.steps.push_back(launch(add_to, {sum, x}));
      const Blocks inputs = numbers(machine.devices());
      std::vector<const void*> places;
      const int own = 2 * cluster.process();
      for (int d = own; d < own + 2; ++d)
        places.push_back(inputs[0][d]->data());
      int number = 1000 * (cluster.process() + 1), other = -1;
      const int to = 1 - cluster.process();
      cluster.begin_aside(
          [&]() -> Status {
            std::this_thread::sleep_for(std::chrono::milliseconds(20));
            const Message sent{to, {{&number, sizeof number}}},
                got{to, {{&other, sizeof other}}};
            TRY(cluster.exchange({&sent, 1}, {&got, 1}, 0));
            if (fails)
              return Error{.kind = Error::Kind::io, .message = "it is lost"};
            for (int d = own; d < own + 2; ++d)
              *static_cast<int32_t*>(inputs[0][d]->data()) = other + d;
            return Unit{};
          },
          places, [&] { machine.runtime.pool().notify(); });
      const auto outputs =
          run(machine.runtime, b.program, machine.devices(), inputs);
      if (!outputs) return ok(outputs.error());
      const auto got = [&](int d) { return 1000 * (2 - d / 2) + d; };
      const int all = 100 + 101 + 102 + 103;
      for (int d = own; d < own + 2; ++d)
        if (*values<int32_t>((*outputs)[0][d]) !=
            all + (read_first ? got(0) + got(1) + got(2) + got(3) : got(d)))
          return std::pair(1, std::string("wrong numbers\n"));
      return ok(Unit{});
    });
    if (fails)
      group.check(1, "it is lost\n");
    else
      group.check(0, "");
  }
}

TEST_CASE("calls with results are made in each process, others in one") {
  Group group{.processes = 2};
  group.run([&](Cluster& cluster) -> Group::End {
    Machine machine(cluster);
    ProgramBuilder b(4);
    const SlotId out = b.output(4);
    std::array<int, 2> calls = {};
    b.program.host_calls = {[&](int, const auto&, auto& results) {
                              const int32_t number = 42;
                              std::memcpy(results[0].data(), &number, 4);
                              ++calls[0];
                              return Unit{};
                            },
                            [&](int, const auto&, auto&) {
                              ++calls[1];
                              return Unit{};
                            }};
    b.program.steps = {
        {HostCallStep{.arguments = {},
                      .bytes = {},
                      .results = {out},
                      .result_bytes = {4},
                      .callers = {0, 0, 0, 3}}},
        {HostCallStep{
            .arguments = {}, .bytes = {}, .call = 1, .callers = {0, 0, 0, 3}}}};
    const auto outputs =
        run(machine.runtime, b.program, machine.devices(), Blocks{});
    if (!outputs) return ok(outputs.error());
    const bool first = cluster.process() == 0;
    for (int d = first ? 0 : 2; d < (first ? 2 : 4); ++d)
      if (*values<int32_t>((*outputs)[0][d]) != 42)
        return std::pair(1, std::string("wrong numbers\n"));
    if (calls != (first ? std::array{1, 1} : std::array{2, 1}))
      return std::pair(1, fmt::format("{} calls\n", fmt::join(calls, ", ")));
    return ok(Unit{});
  });
  group.check(0, "");
}

TEST_CASE("the watchdog names who does not come to the end of what is begun") {
  Group group{.processes = 2, .faults = "eager"};
  std::array<Error, 2> errors;
  group.run([&](Cluster& cluster) -> Group::End {
    Machine machine(cluster);
    ProgramBuilder b(4);
    const SlotId x = b.input(4), sum = b.output(4);
    b.program.steps = {collective(Kind::all_reduce, x, sum, 1, 11),
                       launch(stuck_on_even, {}), end_of(x, sum)};
    b.program.inputs = {x};
    const auto outputs = run(machine.runtime, b.program, machine.devices(),
                             {numbers(machine.devices())[0]},
                             {.watchdog = std::chrono::milliseconds(80)});
    if (!outputs) errors[cluster.process()] = outputs.error();
    return ended(outputs);
  });
  for (int p = 0; p < 2; ++p) {
    CHECK(errors[p].kind == Error::Kind::stalled);
    CHECK(errors[p].source == 11);
    CHECK(errors[p].missing == std::vector<int>{2 * p});
  }
}

TEST_CASE("a sum of bools is our own mistake in several processes, too") {
  for (const Kind kind : {Kind::all_reduce, Kind::reduce_scatter}) {
    Group group{.processes = 2};
    std::array<bool, 2> thrown = {};
    group.run([&](Cluster& cluster) -> Group::End {
      Machine machine(cluster);
      ProgramBuilder b(4);
      const SlotId x = b.input(4), y = b.output(4);
      Step step = collective(kind, x, y);
      std::get<CollectiveStep>(step.what).dtype = DType::Bool;
      b.program.steps = {step};
      try {
        (void)run(machine.runtime, b.program, machine.devices(),
                  {numbers(machine.devices())[0]});
      } catch (const std::logic_error&) {
        thrown[cluster.process()] = true;
      }
      return ok(Unit{});
    });
    CHECK(thrown == std::array{true, true});
  }
}

TEST_CASE("a process has at most 64 devices of a run") {
  Group group{.processes = 2, .devices = 65};
  group.run([&](Cluster& cluster) -> Group::End {
    Machine machine(cluster);
    ProgramBuilder b(130);
    bool thrown = false;
    try {
      (void)run(machine.runtime, b.program, machine.devices(), Blocks{});
    } catch (const std::logic_error&) {
      thrown = true;
    }
    return std::pair(thrown ? 0 : 1, std::string());
  });
  group.check(0, "");
}

}  // namespace unisono
