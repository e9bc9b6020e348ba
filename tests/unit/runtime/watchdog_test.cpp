// What the watchdog takes for a device that never comes, and what it does not;
// and devices that are stopped or fail while others are on their way.
#include <atomic>
#include <chrono>
#include <functional>
#include <stdexcept>
#include <thread>

#include "runtime/execute/watchdog.h"
#include "tests/unit/runtime/programs.h"

namespace unisono {
namespace {

using std::chrono::milliseconds;

/// Its launches are worth sharing, so each device has a thread of its own.
Step shared_launch(KernelFunction function) {
  return launch(function, {}, 100, 1);
}
Step meeting(SlotId slot, uint32_t source) {
  CollectiveStep step;
  step.from = step.to = slot;
  step.dtype = DType::I32;
  step.elements = 1;
  step.source = source;
  return {step};
}
bool is_cancelled(const KernelContext* context) {
  return context->stop->load() || context->cancel->load();
}
void fail(const KernelContext* context) {
  context->error->source = 42;
  context->error->code = ErrorWord::integer_division_by_zero;
}

/// The first of its units does not end, or takes a while.
template <int device>
void stuck(void* const*, int64_t begin, int64_t, const KernelContext* context) {
  while (begin == 0 && context->device_position == device &&
         !is_cancelled(context))
    std::this_thread::yield();
}
template <int device, int ms>
void sleep(void* const*, int64_t begin, int64_t, const KernelContext* context) {
  if (begin == 0 && context->device_position == device)
    std::this_thread::sleep_for(milliseconds(ms));
}

/// Three devices, each with a thread.
struct Machine {
  Runtime runtime{3, 3};
  ProgramBuilder b{3};
  SlotId value = b.output(4);
  Result<Blocks> run(Steps steps, const RunOptions& options) {
    b.program.cache = {};
    b.program.steps = std::move(steps);
    return unisono::run(runtime, b.program, runtime.devices(), Blocks{},
                        options);
  }
};

}  // namespace

TEST_CASE("what is not a device's turn is waited for with the meeting behind") {
  Machine machine;
  machine.b.program.host_calls = {
      [](int, const auto&, auto&) -> Status { return Unit{}; }};
  const Step call = {HostCallStep{.arguments = {}, .bytes = {}}};
  const auto expect = [&](Steps steps, uint32_t source) {
    CAPTURE(source);
    const auto outputs =
        machine.run(std::move(steps), {.watchdog = milliseconds(60)});
    REQUIRE(!outputs);
    CHECK(outputs.error().kind == Error::Kind::stalled);
    CHECK(outputs.error().source == source);
    CHECK(outputs.error().missing == std::vector<int>{0});
  };
  Step once = launch(sleep<0, 0>, {});
  once.once = true;
  std::get<LaunchStep>(once.what).sources = {12};
  const Step first = meeting(machine.value, 10);
  expect({first, shared_launch(stuck<0>), call, meeting(machine.value, 11)},
         11);
  expect({first, shared_launch(stuck<0>), call, once}, 12);
  // Where they meet no more they wait as long as it takes.
  CHECK(machine.run({first, shared_launch(sleep<0, 150>), call},
                    {.watchdog = milliseconds(30)}));
}

TEST_CASE("the watchdog's time is that of one phase") {
  Machine machine;
  Steps steps;
  for (int phase = 0; phase < 6; ++phase) {
    steps.push_back(shared_launch(sleep<2, 80>));
    steps.push_back(meeting(machine.value, 10));
  }
  CHECK(machine.run(std::move(steps), {.watchdog = milliseconds(400)}));
}

TEST_CASE("the watchdog wakes up after a while without a run") {
  Machine machine;
  for (int turn = 0; turn < 3; ++turn) {
    const auto outputs =
        machine.run({shared_launch(stuck<1>), meeting(machine.value, 10)},
                    {.watchdog = milliseconds(8)});
    REQUIRE(!outputs);
    CHECK(outputs.error().kind == Error::Kind::stalled);
    CHECK(outputs.error().missing == std::vector<int>{1});
    std::this_thread::sleep_for(milliseconds(40));
  }
}

TEST_CASE("a device that was given up may fail as it ends") {
  Machine machine;
  const auto outputs =
      machine.run({shared_launch([](void* const* buffers, int64_t begin,
                                    int64_t end, const KernelContext* context) {
                     stuck<2>(buffers, begin, end, context);
                     if (context->device_position == 2) fail(context);
                   }),
                   meeting(machine.value, 10)},
                  {.watchdog = milliseconds(40)});
  REQUIRE(!outputs);
  CHECK(outputs.error().kind == Error::Kind::stalled);
  CHECK(outputs.error().source == 10);
}

TEST_CASE("who fails need not wait for ever for devices before it") {
  Machine machine;
  const auto outputs =
      machine.run({shared_launch([](void* const* buffers, int64_t begin,
                                    int64_t end, const KernelContext* context) {
                     stuck<0>(buffers, begin, end, context);
                     if (context->device_position == 1) fail(context);
                   }),
                   meeting(machine.value, 10)},
                  {.watchdog = milliseconds(40)});
  REQUIRE(!outputs);
  CHECK(outputs.error().kind == Error::Kind::integer_division);
  CHECK(outputs.error().device == 1);
}

TEST_CASE("after a stop nobody is taken to be late") {
  Machine machine;
  std::atomic<bool> stop{false};
  std::thread stopper([&] {
    std::this_thread::sleep_for(milliseconds(20));
    stop = true;
  });
  const auto outputs =
      machine.run({shared_launch([](void* const*, int64_t, int64_t,
                                    const KernelContext* context) {
                     while (!context->stop->load()) std::this_thread::yield();
                     // One goes on for longer than others would wait.
                     if (context->device_position == 0)
                       std::this_thread::sleep_for(milliseconds(100));
                   }),
                   meeting(machine.value, 10)},
                  {.stop = &stop, .watchdog = milliseconds(60)});
  stopper.join();
  REQUIRE(!outputs);
  CHECK(outputs.error().kind == Error::Kind::cancelled);
}

TEST_CASE("after an error and a stop nobody is taken to be late either") {
  Machine machine;
  std::atomic<bool> stop{false};
  std::thread stopper([&] {
    std::this_thread::sleep_for(milliseconds(20));
    stop = true;
  });
  const auto outputs =
      machine.run({shared_launch([](void* const* buffers, int64_t begin,
                                    int64_t end, const KernelContext* context) {
                     if (context->device_position == 2) return fail(context);
                     while (!context->stop->load()) std::this_thread::yield();
                     sleep<0, 100>(buffers, begin, end, context);
                   }),
                   meeting(machine.value, 10)},
                  {.stop = &stop, .watchdog = milliseconds(60)});
  stopper.join();
  REQUIRE(!outputs);
  CHECK(outputs.error().kind == Error::Kind::integer_division);
  CHECK(outputs.error().device == 2);
}

TEST_CASE("a stop ends a run in which a device is about to meet the others") {
  Runtime runtime(2, 2);
  ProgramBuilder b(2);
  const SlotId value = b.output(4);
  b.program.steps = {shared_launch(sleep<0, 0>), shared_launch(sleep<0, 0>),
                     meeting(value, 10)};
  std::atomic<bool> stop{false}, stands_there{false};
  std::array<int, 2> asked = {};
  // Device 1 has been told to go on when device 0 sees the stop.
  const std::function<bool(int)> watch = [&](int device) {
    ++asked[device];
    if (device == 0 && asked[0] == 2) {
      while (!stands_there) std::this_thread::yield();
      stop = true;
    }
    if (device == 1 && asked[1] == 3) {
      stands_there = true;
      while (!stop) std::this_thread::yield();
      std::this_thread::sleep_for(milliseconds(30));
    }
    return false;
  };
  const auto outputs = run(runtime, b.program, runtime.devices(), Blocks{},
                           {.stop = &stop, .lose_device = &watch});
  REQUIRE(!outputs);
  CHECK(outputs.error().kind == Error::Kind::cancelled);
  CHECK(asked == std::array{2, 3});
}

TEST_CASE("who waits for its turn is woken when the one before has come by") {
  Machine machine;
  std::vector<int> seen;
  machine.b.program.host_calls = {[&](int device, const auto&, auto&) {
    seen.push_back(device);
    return Unit{};
  }};
  CHECK(machine.run({shared_launch(sleep<0, 30>),
                     {HostCallStep{.arguments = {}, .bytes = {}}},
                     shared_launch(sleep<1, 30>),
                     meeting(machine.value, 10)},
                    {}));
  CHECK(seen == std::vector{0, 1, 2});
}

}  // namespace unisono
