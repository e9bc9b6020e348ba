// Runs that are stopped, lose a device or wait for one that never comes; after
// each, the machine computes as before.
#include <atomic>
#include <chrono>
#include <random>
#include <thread>

#include "runtime/recorder.h"
#include "tests/unit/runtime/programs.h"

namespace unisono {
namespace {

using std::chrono::milliseconds;

void add_one(void* const* buffers, int64_t, int64_t, const KernelContext*) {
  ++*static_cast<int32_t*>(buffers[0]);
}
void less_than_limit(void* const* buffers, int64_t, int64_t,
                     const KernelContext*) {
  *static_cast<uint8_t*>(buffers[2]) =
      *static_cast<int32_t*>(buffers[0]) < *static_cast<int32_t*>(buffers[1]);
}
void start(void* const* buffers, int64_t, int64_t,
           const KernelContext* context) {
  *static_cast<int32_t*>(buffers[0]) = 0;
  *static_cast<int32_t*>(buffers[1]) = context->device_position + 1;
}
/// Device 2's loop has no end.
void stuck_on_two(void* const*, int64_t, int64_t,
                  const KernelContext* context) {
  while (context->device_position == 2 && !context->stop->load() &&
         !context->cancel->load())
    std::this_thread::yield();
}

/// turns times: total = the sum of all devices' own; the result is
/// devices * (devices + 1) / 2 after the first, and grows from there.
Program summing(int devices, int turns) {
  ProgramBuilder b(devices);
  SlotId turn = b.arena(4), own = b.output(4), flag = b.arena(1);
  SlotId limit = b.constant<int32_t>({turns});
  b.program.steps = {
      launch(start, {turn, own}),
      {LoopStep{steps({launch(less_than_limit, {turn, limit, flag})}),
                steps({{CollectiveStep{CollectiveStep::Kind::all_reduce, own,
                                       own, DType::I32, 1, ReduceOp::max, 7}},
                       launch(add_one, {own}),
                       launch(add_one, {turn})}),
                flag}},
  };
  return std::move(b.program);
}

void check_computes(Runtime& runtime, const Program& program, int devices,
                    int turns) {
  Blocks out = run_all(runtime, program);
  for (const auto& block : out[0])
    REQUIRE(*values<int32_t>(block) == devices + turns);
}

}  // namespace

TEST_CASE("200 runs that are stopped or lose a device, each with one after") {
  std::mt19937 random(1);
  int failed = 0;
  for (int workers : {1, 2, 4}) {
    constexpr int devices = 5, turns = 40;
    Runtime runtime(devices, workers);
    const Program program = summing(devices, turns);
    for (int i = 0; i < 70; ++i) {
      const int moment = static_cast<int>(random() % 1200);
      const int lost = static_cast<int>(random() % devices);
      const bool stops = random() % 2;
      std::atomic<int> asked{0};
      std::atomic<bool> stop{false};
      const std::function<bool(int)> lose = [&](int device) {
        if (++asked <= moment) return false;
        if (stops) stop = true;
        return !stops && device == lost;
      };
      auto outputs = run(runtime, program, runtime.devices(), Blocks{},
                         {.stop = &stop, .lose_device = &lose});
      if (!outputs) {
        ++failed;
        const Error& error = outputs.error();
        CHECK(error.kind ==
              (stops ? Error::Kind::cancelled : Error::Kind::device_lost));
        if (!stops) CHECK(error.device == lost);
      }
      check_computes(runtime, program, devices, turns);
    }
  }
  CHECK(failed > 150);
}

TEST_CASE("a stop from another thread, at any time") {
  std::mt19937 random(2);
  Runtime runtime(6, 3);
  const Program endless = summing(6, INT32_MAX);
  const Program program = summing(6, 10);
  for (int i = 0; i < 50; ++i) {
    std::atomic<bool> stop{false};
    std::thread stopper([&, wait = random() % 500] {
      std::this_thread::sleep_for(std::chrono::microseconds(wait));
      stop = true;
    });
    auto outputs =
        run(runtime, endless, runtime.devices(), Blocks{}, {.stop = &stop});
    stopper.join();
    REQUIRE(!outputs);
    CHECK(outputs.error().kind == Error::Kind::cancelled);
    check_computes(runtime, program, 6, 10);
  }
}

TEST_CASE("a device that never arrives is named by the watchdog") {
  for (int workers : {1, 2, 4}) {
    Runtime runtime(4, workers);
    ProgramBuilder b(4);
    SlotId value = b.arena(4), other = b.arena(4);
    b.program.steps = {
        launch(start, {value, other}),
        launch(stuck_on_two, {}),
        {CollectiveStep{CollectiveStep::Kind::all_reduce, value, value,
                        DType::I32, 1, ReduceOp::sum, 9}}};
    const Program program = summing(4, 5);
    for (int i = 0; i < 5; ++i) {
      auto outputs = run(runtime, b.program, runtime.devices(), Blocks{},
                         {.watchdog = milliseconds(120)});
      REQUIRE(!outputs);
      CHECK(outputs.error().kind == Error::Kind::stalled);
      CHECK(outputs.error().source == 9);
      CHECK(outputs.error().missing == std::vector<int>{2});
      check_computes(runtime, program, 4, 5);
    }
  }
}

TEST_CASE("the watchdog leaves alone who waits for no other") {
  Runtime runtime(3, 1);
  ProgramBuilder b(3);
  SlotId value = b.output(4), other = b.arena(4);
  // One thread leads device after device: 30 ms each, before they meet.
  b.program.steps = {
      launch(start, {value, other}),
      launch(
          [](void* const*, int64_t, int64_t, const KernelContext*) {
            std::this_thread::sleep_for(milliseconds(30));
          },
          {}),
      {CollectiveStep{CollectiveStep::Kind::all_reduce, value, value,
                      DType::I32, 1, ReduceOp::sum, 9}}};
  auto outputs = run(runtime, b.program, runtime.devices(), Blocks{},
                     {.watchdog = milliseconds(60)});
  CHECK(outputs);
}

TEST_CASE("a recorder is told what devices did, and nothing else changes") {
  Runtime runtime(3, 2);
  const Program program = summing(3, 4);
  Recorder recorder(true);
  auto outputs = run(runtime, program, runtime.devices(), Blocks{},
                     {.recorder = &recorder});
  REQUIRE(outputs);
  CHECK(*values<int32_t>((*outputs)[0][0]) == 7);
  using Kind = Recorder::Kind;
  for (int device = 0; device < 3; ++device) {
    CHECK(recorder.total(Kind::kernel, device).count == 1 + 5 + 8);
    CHECK(recorder.total(Kind::collective, device).count == 4);
    CHECK(recorder.total(Kind::collective, device).bytes == 16);
    CHECK(recorder.total(Kind::wait, device).count == 4);
  }
  for (const Recorder::Event& event : recorder.events())
    CHECK(event.end >= event.start);
}

TEST_CASE("a recorder is told the name of each kind of collective") {
  using Kind = CollectiveStep::Kind;
  Runtime runtime(2, 1);
  ProgramBuilder b(2);
  const SlotId x = b.input(8);
  for (const Kind kind :
       {Kind::all_reduce, Kind::all_gather, Kind::reduce_scatter,
        Kind::all_to_all, Kind::permute}) {
    CollectiveStep step;
    step.kind = kind;
    step.from = x;
    step.to = b.output(8);
    step.dtype = DType::I32;
    step.elements = 1;
    b.program.steps.push_back({step});
  }
  Recorder recorder(true);
  const Blocks inputs = {make_blocks<int32_t>(
      runtime.devices(), 2, [](int d, int64_t i) { return 10 * d + i; })};
  REQUIRE(run(runtime, b.program, runtime.devices(), inputs,
              {.recorder = &recorder}));
  std::vector<std::string> names;
  for (const Recorder::Event& event : recorder.events())
    if (event.kind == Recorder::Kind::collective && event.device == 1)
      names.push_back(event.name);
  CHECK(names == std::vector<std::string>{"all_reduce", "all_gather",
                                          "reduce_scatter", "all_to_all",
                                          "permute"});
}

TEST_CASE("copies between devices are counted by pair") {
  Runtime runtime(4);
  const auto& devices = runtime.devices();
  std::vector<float> elements(64);
  auto array =
      array_from_host(*devices[0], DType::F32, {16, 4}, elements.data());
  REQUIRE(array);
  Recorder recorder(false);
  CopyCounter counter{.recorder = &recorder};
  auto rows = reshard(*array, Sharding{0, devices}, &counter);
  REQUIRE(rows);
  // Back on one device, only what is not there moves.
  auto again = reshard(*rows, Sharding{0, devices}, &counter);
  REQUIRE(again);
  auto part = copy_part(*rows, {8, 0}, {1, 4}, *devices[0], &counter);
  REQUIRE(part);
  CHECK(part->shape() == std::vector<int64_t>{1, 4});
  auto copies = recorder.copies();
  CHECK(copies[{0, 1}].bytes == 64);
  CHECK(copies[{0, 3}].bytes == 64);
  CHECK(copies[{2, 0}].bytes == 16);
  CHECK(copies[{2, 0}].count == 1);
  CHECK(copies.size() == 5);
}

}  // namespace unisono
