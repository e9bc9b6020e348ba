// Runs on devices with queues (execute/queue_executor.h): the numbers, what is
// told of checks that fail, and what becomes of each call that fails.
#include <cmath>
#include <optional>

#include "runtime/execute/queue_executor.h"
#include "runtime/recorder.h"
#include "runtime/tuning/tuning.h"
#include "tests/unit/moved.h"
#include "tests/unit/runtime/programs.h"
#include "tests/unit/runtime/queues/machine.h"

namespace unisono::queues {
namespace {

using Kind = CollectiveStep::Kind;
using Floats = std::vector<float>;

constexpr int64_t elements = 4, size = elements * 4;

/// Elements of what device d has in the beginning.
float given(int d, int64_t i) { return static_cast<float>(10 * d + i + 1); }

/// Devices of one process, on which the same program runs again and again.
class Bench {
 public:
  explicit Bench(Program program)
      : program_(std::move(program)),
        runtime_(late_devices(machine, program_.devices), 1) {
    const int count = program_.devices;
    machine->kernels["reduce"] = [count](const KernelCall& call) {
      for (int64_t i = 0; i < call.constant<int64_t>(); ++i) {
        float sum = 0;
        for (int d = 0; d < count; ++d) sum += call.argument<float>(d)[i];
        for (size_t to = count; to < call.arguments.size(); ++to)
          call.argument<float>(to)[i] = sum;
      }
    };
    // to = 3 a + b, as remainders of 1009: each turn of a loop shows.
    machine->kernels["mix"] = [](const KernelCall& call) {
      for (int64_t i = 0; i < elements; ++i)
        call.argument<float>(0)[i] = std::fmod(
            3 * call.argument<float>(1)[i] + call.argument<float>(2)[i], 1009);
    };
    machine->kernels["less"] = [](const KernelCall& call) {
      *call.argument<bool>(0) = *call.argument<float>(1) < 100;
    };
    machine->kernels["check"] = [this](const KernelCall& call) {
      if (on_check) on_check(call);
    };
  }

  Result<Blocks> run(const RunOptions& options = {}) {
    if (inputs_.empty()) {
      start(0);
      inputs_.emplace_back();
      for (Device* device : runtime_.devices()) {
        auto buffer = device->allocate(size);
        REQUIRE(buffer);
        for (int64_t i = 0; i < elements; ++i)
          static_cast<float*>(buffer->data())[i] = given(device->index(), i);
        inputs_[0].push_back(std::make_shared<Buffer>(std::move(*buffer)));
      }
      const auto& blocks = inputs_;
      inputs_.resize(program_.inputs.size(), blocks[0]);
    }
    start(fails_at);
    auto out =
        unisono::run(runtime_, program_, runtime_.devices(), inputs_, options);
    for (Device* device : runtime_.devices())
      if (Queue* queue = device->queue())
        CHECK(static_cast<LateQueue*>(queue)->stop == nullptr);
    CHECK(machine->staging_lent == 0);
    return out;
  }
  /// All outputs' numbers, by output, then device.
  std::vector<Floats> numbers(const Blocks& blocks) const {
    std::vector<Floats> out;
    for (size_t i = 0; i < blocks.size(); ++i)
      for (size_t d = 0; d < blocks[i].size(); ++d) {
        Floats& each = out.emplace_back(
            static_cast<size_t>(program_.slots[program_.outputs[i]].bytes / 4));
        REQUIRE(runtime_.devices()[d]->copy_to_host(
            each.data(), blocks[i][d]->data(),
            static_cast<int64_t>(each.size()) * 4));
      }
    return out;
  }

  const std::shared_ptr<Machine> machine = make_machine();
  std::function<void(const KernelCall&)> on_check;
  int64_t fails_at = 0;  // of the calls of a run

 private:
  /// Counts calls from now on, of which one fails.
  void start(int64_t k) const {
    machine->calls = 0;
    machine->fails_at = k;
    machine->failed.clear();
  }

  const Program program_;
  Runtime runtime_;
  Blocks inputs_;
};

Step launch(const char* entry, std::vector<SlotId> arguments,
            std::vector<GridCheck> checks = {}) {
  auto launched = grid(entry);
  launched->checks = std::move(checks);
  return {LaunchStep{.name = entry,
                     .arguments = std::move(arguments),
                     .grid = std::move(launched)}};
}

Step collective(Kind kind, SlotId from, SlotId to, int64_t count = elements,
                DType dtype = DType::F32) {
  CollectiveStep step{
      .kind = kind, .from = from, .to = to, .dtype = dtype, .elements = count};
  step.kernels = {2, grid("reduce", 2), grid("reduce", 2), grid("reduce", 4)};
  return {step};
}

/// From each device to the next one, the last one's to the first.
Step shift(int devices, SlotId from, SlotId to, int64_t count = elements,
           DType dtype = DType::F32) {
  Step step = collective(Kind::permute, from, to, count, dtype);
  for (int d = 0; d < devices; ++d)
    std::get<CollectiveStep>(step.what).pairs.emplace_back(d,
                                                           (d + 1) % devices);
  return step;
}

constexpr GridCheck index_check{
    .code = ErrorWord::index_out_of_bounds, .source = 42, .bound = 5};

/// 40 turns: y = 3 y + x.
Program turns(int devices) {
  ProgramBuilder b(devices);
  const SlotId x = b.input(size), y = b.output(size), t = b.arena(size);
  const SlotId same = b.add(b.program.slots[t]);  // at the same place
  b.program.steps = {
      {CopyStep{x, y, size}},
      {LoopStep{.condition = nullptr,
                .body = steps({launch("mix", {t, y, x}),
                               {CopyStep{t, y, size}},
                               {CopyStep{t, y, 0}},  // of nothing
                               {CopyStep{t, same, size}},
                               launch("check", {y}, {index_check})}),
                .turns = 40}}};
  return std::move(b.program);
}
std::vector<Floats> after_turns(int devices) {
  std::vector<Floats> out;
  for (int d = 0; d < devices; ++d)
    for (int64_t i = 0; i < elements; ++i) {
      int y = static_cast<int>(given(d, i)), x = y;
      for (int turn = 0; turn < 40; ++turn) y = (3 * y + x) % 1009;
      if (i == 0) out.emplace_back();
      out.back().push_back(static_cast<float>(y));
    }
  return out;
}

/// 40 turns: y = 3 (sum of y) + n, where n is y of the device before, and y is
/// at first x of that.
Program meeting_turns() {
  ProgramBuilder b(3);
  const SlotId x = b.input(size), y = b.output(size), n = b.output(size),
               s = b.arena(size);
  b.program.steps = {
      shift(3, x, n),
      {CopyStep{n, y, size}},
      shift(3, y, n),
      {LoopStep{.condition = nullptr,
                .body = steps({collective(Kind::all_reduce, y, s),
                               launch("mix", {y, s, n}), shift(3, y, n)}),
                .turns = 40}}};
  return std::move(b.program);
}
std::vector<Floats> after_meeting_turns() {
  std::vector<Floats> out(6, Floats(elements));
  for (int64_t i = 0; i < elements; ++i) {
    int y[3], n[3];
    for (int d = 0; d < 3; ++d) {
      y[d] = static_cast<int>(given((d + 2) % 3, i));
      n[d] = static_cast<int>(given((d + 1) % 3, i));
    }
    for (int turn = 0; turn < 40; ++turn) {
      const int sum = y[0] + y[1] + y[2];
      for (int d = 0; d < 3; ++d) y[d] = (3 * sum + n[d]) % 1009;
      for (int d = 0; d < 3; ++d) n[d] = y[(d + 2) % 3];
    }
    for (int d = 0; d < 3; ++d) {
      out[d][i] = static_cast<float>(y[d]);
      out[3 + d][i] = static_cast<float>(n[d]);
    }
  }
  return out;
}

/// What the host asks for and gives, each time for memory that copies of a
/// meeting are under way for. The outputs: 3 x + what the host gave last, what
/// it gave all devices first, and a count.
Program with_host() {
  ProgramBuilder b(3);
  const SlotId x = b.input(size), a = b.arena(size), r = b.arena(size),
               nothing = b.arena(0), c = b.arena(size), here = b.arena(1),
               flag = b.arena(1), one = b.constant(Floats(elements, 1));
  const SlotId y = b.output(size), all = b.output(3 * size),
               count = b.output(size);
  for (const float number : {0.0F, 1.0F})
    b.program.host_calls.emplace_back(
        [number](int position, const auto& arguments, auto& results) -> Status {
          CHECK(arguments[0].empty());
          float first = 0;
          std::memcpy(&first, arguments[1].data(), 4);
          CHECK(first == given((position + 2) % 3, 0));  // of the one before
          const Floats out(elements, first * 2 + number);
          std::memcpy(results[0].data(), out.data(), size);
          CHECK(results[1].empty());
          return Unit{};
        });
  HostCallStep call{.arguments = {nothing, a},
                    .bytes = {0, size},
                    .results = {r, nothing},
                    .result_bytes = {size, 0}};
  HostCallStep second = call;
  second.call = 1;
  b.program.steps = {shift(3, x, a),
                     {call},
                     collective(Kind::all_gather, r, all),
                     {second},  // what it gives comes after that has been read
                     launch("mix", {y, x, r}),
                     {CopyStep{one, c, size}},
                     {LoopStep{.condition = steps({
                                   launch("less", {here, c}),
                                   shift(3, here, flag, 1, DType::Bool),
                               }),
                               .body = steps({launch("mix", {count, c, one}),
                                              {CopyStep{count, c, size}}}),
                               .flag = flag}}};
  return std::move(b.program);
}
std::vector<Floats> after_host() {
  std::vector<Floats> y(3), all(3);
  for (int d = 0; d < 3; ++d)
    for (int from = 0; from < 3; ++from)
      for (int64_t i = 0; i < elements; ++i) {
        if (from == 0)
          y[d].push_back(3 * given(d, i) + 2 * given((d + 2) % 3, 0) + 1);
        all[d].push_back(2 * given((from + 2) % 3, 0));
      }
  std::vector<Floats> out = y;
  out.insert(out.end(), all.begin(), all.end());
  out.resize(9, Floats(elements, 121));  // 1, 4, 13, 40, 121
  return out;
}

struct Case {
  const char* name;
  Program (*program)();
  std::vector<Floats> (*expected)();
};
const Case cases[] = {
    {"turns", [] { return turns(2); }, [] { return after_turns(2); }},
    {"meeting turns", meeting_turns, after_meeting_turns},
    {"with the host", with_host, after_host},
};

/// Without what was captured turns are done one by one; and where a word for
/// errors that was read could not be made clean there is another one.
bool is_made_up_for(const Machine& machine) {
  return machine.failed.starts_with("captur") || machine.failed == clears;
}

TEST_CASE("each call of a queue fails in a run, and the next run is whole") {
  const Moved moved([](Tuning& to) { to.gpu_much_work_at_once = 1; });
  // Staging takes memory, too.
  for (const bool reach : {true, false})
    for (const Case& each : cases) {
      CAPTURE(std::string(each.name));
      CAPTURE(reach);
      const std::vector<Floats> expected = each.expected();
      int64_t calls = 1;
      for (int64_t k = 0; k <= calls; ++k) {
        CAPTURE(k);
        Bench bench(each.program());
        bench.machine->reaches = [reach](int, int) { return reach; };
        const auto whole = [&](const Result<Blocks>& done) {
          REQUIRE(done);
          CHECK(bench.numbers(*done) == expected);
        };
        if (k == 0) {
          whole(bench.run());
          calls = bench.machine->calls;
          continue;
        }
        bench.fails_at = k;
        const auto done = bench.run();
        const std::string failed = bench.machine->failed;
        CAPTURE(failed);
        if (is_made_up_for(*bench.machine)) {
          whole(done);
        } else {
          REQUIRE_FALSE(done);
          CHECK(done.error().message == "a call fails: " + failed);
        }
        bench.fails_at = 0;
        whole(bench.run());
      }
      CHECK(calls > 50);
    }
}

TEST_CASE("turns are put together, unless somebody looks at each") {
  const Moved moved([](Tuning& to) { to.gpu_much_work_at_once = 1; });
  Bench bench(turns(2));
  int checks = 0;
  bench.on_check = [&](const KernelCall&) { ++checks; };
  const auto put = [&](const RunOptions& options) {
    checks = 0;
    const int64_t before = bench.machine->put;
    const auto done = bench.run(options);
    REQUIRE(done);
    CHECK(bench.numbers(*done) == after_turns(2));
    CHECK(checks == 80);
    return bench.machine->put - before;
  };
  CHECK(put({}) < 20);
  Recorder recorder(true);
  // Of each device a copy, and in each turn two launches and a copy.
  CHECK(put({.recorder = &recorder}) >= 2 * (1 + 40 * 3));
  for (const int device : {0, 1}) {
    CHECK(recorder.total(Recorder::Kind::kernel, device).count == 80);
    CHECK(recorder.total(Recorder::Kind::copy, device).bytes == 41 * size);
  }

  // Who stops the run stops it between two stretches of 10 turns.
  std::atomic<bool> stop{false};
  checks = 0;
  bench.on_check = [&](const KernelCall&) {
    if (++checks == 3) stop = true;
  };
  const auto stopped = bench.run({.stop = &stop});
  REQUIRE_FALSE(stopped);
  CHECK(stopped.error().kind == Error::Kind::cancelled);
  CHECK(checks == 10);

  // The 17th turn of the second device is the first to fail.
  int turn = 0;
  bench.on_check = [&](const KernelCall& call) {
    if (call.position == 1 && ++turn >= 17) fail_check(call, 0, turn, 3);
  };
  const auto failed = bench.run();
  REQUIRE_FALSE(failed);
  CHECK(failed.error().message == "index 17 is out of bounds for size 5");
  CHECK(failed.error().device == 1);
  CHECK(failed.error().member == 3);
  CHECK(failed.error().source == 42);
  bench.on_check = [&](const KernelCall&) { ++checks; };
  put({});
}

/// A check; then the host is asked, by a flag or by a call.
Program asks(bool by_call, int& calls) {
  ProgramBuilder b(2);
  const SlotId x = b.input(size), y = b.output(size),
               yes = b.constant(std::vector<uint8_t>{1});
  b.program.steps = {{CopyStep{x, y, size}},
                     launch("check", {x}, {index_check, index_check})};
  if (by_call) {
    b.program.host_calls.emplace_back(
        [&calls](int, const auto&, auto&) -> Status {
          ++calls;
          return Unit{};
        });
    b.program.steps.push_back({HostCallStep{.arguments = {x}, .bytes = {4}}});
  } else {
    b.program.steps.push_back(
        {IfStep{yes, steps({launch("mix", {y, x, x})}), nullptr}});
  }
  return std::move(b.program);
}

TEST_CASE("a check that failed is found where the host asks") {
  for (const bool by_call : {false, true})
    for (int64_t k = 0; k < 60; ++k) {
      CAPTURE(by_call);
      CAPTURE(k);
      int calls = 0;
      Bench bench(asks(by_call, calls));
      const auto fail = [](const KernelCall& call) {
        if (call.position == 1) fail_check(call, 1, 7);
      };
      bench.on_check = fail;
      bench.fails_at = k;
      auto done = bench.run();
      REQUIRE_FALSE(done);
      // A check that has failed comes before other failures.
      if (done.error().kind == Error::Kind::index_out_of_bounds)
        CHECK(done.error().message == "index 7 is out of bounds for size 5");
      else
        CHECK(done.error().message == "a call fails: " + bench.machine->failed);
      if (k == 0) {
        CHECK(done.error().device == 1);
        CHECK(calls == (by_call ? 1 : 0));  // the first device's
      }
      bench.fails_at = 0;
      bench.on_check = nullptr;
      done = bench.run();
      REQUIRE(done);
      const float first = by_call ? given(1, 2) : 4 * given(1, 2);
      CHECK(bench.numbers(*done)[1][2] == first);
    }
}

/// A run whose last copies are under way when it is left.
Program leaves(bool checks) {
  ProgramBuilder b(3);
  const SlotId x = b.input(size), next = b.output(size),
               all = b.output(3 * size);
  b.program.steps = {
      launch("check", {x},
             checks ? std::vector{index_check} : std::vector<GridCheck>()),
      shift(3, x, next), collective(Kind::all_gather, x, all)};
  return std::move(b.program);
}

TEST_CASE("each call fails in a run that is left under way") {
  std::vector<Floats> expected(6);
  for (int d = 0; d < 3; ++d)
    for (int from = 0; from < 3; ++from)
      for (int64_t i = 0; i < elements; ++i) {
        if (from == 0) expected[d].push_back(given((d + 2) % 3, i));
        expected[3 + d].push_back(given(from, i));
      }
  const auto run = [&](Bench& bench,
                       bool leave = true) -> std::optional<Error> {
    std::unique_ptr<RunUnderWay> left;
    const auto done = bench.run({.under_way = leave ? &left : nullptr});
    if (!done) return done.error();
    if (left)
      if (auto error = left->wait()) return error;
    CHECK(bench.numbers(*done) == expected);
    return std::nullopt;
  };
  for (const bool checks : {false, true}) {
    for (int64_t k = 0; k < 240; ++k) {
      CAPTURE(checks);
      CAPTURE(k);
      Bench bench(leaves(checks));
      bench.fails_at = k % 120;
      const auto error = run(bench, k < 120);
      const std::string failed = bench.machine->failed;
      CAPTURE(failed);
      // What cannot be left is waited for.
      if (error)
        CHECK(error->message == "a call fails: " + failed);
      else if (!failed.empty())
        CHECK((failed == "send" || failed == "wait_for" || failed == clears));
      bench.fails_at = 0;
      CHECK_FALSE(run(bench));
    }
    Bench full(leaves(checks));
    full.machine->most_parcels = 0;
    CHECK_FALSE(run(full));
  }
  Bench bad(leaves(true));
  bad.on_check = [](const KernelCall& call) {
    if (call.position == 2) fail_check(call, 0, -1);
  };
  const auto error = run(bad);
  REQUIRE(error);
  CHECK(error->message == "index -1 is out of bounds for size 5");
  CHECK(error->device == 2);
  bad.on_check = nullptr;
  CHECK_FALSE(run(bad));
}

TEST_CASE("words for errors that no launch can have written are our bugs") {
  int calls = 0;
  const auto throws = [&](const std::function<void(const KernelCall&)>& bad,
                          const char* what) {
    Bench bench(asks(false, calls));
    bench.on_check = bad;
    CHECK_THROWS_WITH_AS((void)bench.run(), doctest::Contains(what),
                         std::logic_error);
  };
  throws([](const KernelCall& call) { fail_check(call, 2, 7); },
         "number < launch.checks.size()");
  throws([](const KernelCall& call) { call.error->launch = call.number | 99; },
         "place < flat.instructions.size()");
  throws([](const KernelCall& call) { call.error->launch = call.number & ~1; },
         "kind == Kind::launch");
}

TEST_CASE("programs and devices that are not for queues are our bugs") {
  ProgramBuilder b(1);
  const SlotId x = b.input(size);
  b.program.steps = {unisono::launch(
      [](void* const*, int64_t, int64_t, const KernelContext*) {}, {x})};
  Bench of_threads(std::move(b.program));
  CHECK_THROWS_WITH_AS((void)of_threads.run(), doctest::Contains("grid"),
                       std::logic_error);
  Bench without(turns(1));
  without.machine->has_queues = false;
  CHECK_THROWS_WITH_AS((void)without.run(), doctest::Contains("queue"),
                       std::logic_error);
  FlatProgram flat;
  flat.instructions.resize(1 << 20);
  const Program program;
  const RunState run(program, flat);
  CHECK_THROWS_WITH_AS(QueueExecutor{run}, doctest::Contains("place_bits"),
                       std::logic_error);
}

}  // namespace
}  // namespace unisono::queues
