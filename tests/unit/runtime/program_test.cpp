#include <doctest/doctest.h>

#include <atomic>
#include <stdexcept>
#include <thread>

#include "tests/unit/runtime/programs.h"

namespace unisono {
namespace {

void store_position(void* const* buffers, int64_t, int64_t,
                    const KernelContext* context) {
  *static_cast<int32_t*>(buffers[0]) = context->device_position;
}
void store_zero(void* const* buffers, int64_t, int64_t, const KernelContext*) {
  *static_cast<int32_t*>(buffers[0]) = 0;
}
void add_one(void* const* buffers, int64_t, int64_t, const KernelContext*) {
  ++*static_cast<int32_t*>(buffers[0]);
}
void add_to(void* const* buffers, int64_t, int64_t, const KernelContext*) {
  *static_cast<int32_t*>(buffers[0]) += *static_cast<int32_t*>(buffers[1]);
}
// flag = counter < bound
void less(void* const* buffers, int64_t, int64_t, const KernelContext*) {
  *static_cast<uint8_t*>(buffers[0]) =
      *static_cast<int32_t*>(buffers[1]) < *static_cast<int32_t*>(buffers[2]);
}
void clear(void* const* buffers, int64_t begin, int64_t end,
           const KernelContext*) {
  for (int64_t i = begin; i < end; ++i)
    static_cast<int32_t*>(buffers[0])[i] = 0;
}
// Each of many elements, times itself plus a number.
void advance(void* const* buffers, int64_t begin, int64_t end,
             const KernelContext*) {
  auto* values = static_cast<uint32_t*>(buffers[0]);
  for (int64_t i = begin; i < end; ++i)
    values[i] = values[i] * values[i] + *static_cast<uint32_t*>(buffers[1]) + 1;
}
void is_odd(void* const* buffers, int64_t, int64_t, const KernelContext*) {
  *static_cast<uint8_t*>(buffers[0]) = *static_cast<int32_t*>(buffers[1]) & 1;
}
void square(void* const* buffers, int64_t begin, int64_t end,
            const KernelContext*) {
  for (int64_t i = begin; i < end; ++i)
    static_cast<float*>(buffers[1])[i] =
        static_cast<float*>(buffers[0])[i] * static_cast<float*>(buffers[0])[i];
}
void fail_index(const KernelContext* context, int64_t index, int64_t size) {
  int32_t none = 0;
  if (context->error->code.compare_exchange_strong(
          none, ErrorWord::index_out_of_bounds)) {
    context->error->source = 42;
    context->error->value = index;
    context->error->bound = size;
  }
}
// Fails on devices whose flag is set, with the device's position as index.
void fail_if(void* const* buffers, int64_t, int64_t,
             const KernelContext* context) {
  if (*static_cast<const uint8_t*>(buffers[0]))
    fail_index(context, context->device_position, 5);
}
void fail_from_100(void* const*, int64_t begin, int64_t end,
                   const KernelContext* context) {
  for (int64_t i = begin; i < end; ++i)
    if (i >= 100) return fail_index(context, i, 100);
}
// Runs until it is told to stop.
void spin(void* const*, int64_t, int64_t, const KernelContext* context) {
  while (!context->stop->load() && !context->cancel->load())
    std::this_thread::yield();
}

constexpr int device_counts[] = {1, 2, 3, 4, 5, 7, 8, 16, 64};

TEST_CASE("every device runs the kernel on its own block") {
  for (int devices : device_counts) {
    for (int workers : {1, 2, 4}) {
      Runtime runtime(devices, workers);
      ProgramBuilder b(devices);
      SlotId in = b.input(400), out = b.output(400), where = b.output(4);
      b.program.steps = {launch(square, {in, out}, 100, 10),
                         launch(store_position, {where})};
      auto input = make_blocks<float>(
          runtime.devices(), 100,
          [](int d, int64_t i) { return static_cast<float>(d * 100 + i); });
      Blocks outputs = run_all(runtime, b.program, {input});
      REQUIRE(outputs.size() == 2);
      for (int d = 0; d < devices; ++d) {
        CHECK(outputs[0][d]->device() == runtime.devices()[d]);
        CHECK(*values<int32_t>(outputs[1][d]) == d);
        for (int i = 0; i < 100; ++i) {
          auto x = static_cast<float>(d * 100 + i);
          REQUIRE(values<float>(outputs[0][d])[i] == x * x);
        }
      }
    }
  }
}

TEST_CASE("constants, and inputs that are outputs") {
  Runtime runtime(3, 2);
  ProgramBuilder b(3);
  SlotId in = b.input(4), constant = b.constant<int32_t>({7}),
         out = b.output(4);
  b.program.outputs = {in, out, constant, out};
  b.program.steps = {{CopyStep{constant, out, 4}}, launch(add_to, {out, in})};
  auto input = make_blocks<int32_t>(runtime.devices(), 1,
                                    [](int d, int64_t) { return d; });
  for (int turn = 0; turn < 2; ++turn) {
    Blocks outputs = run_all(runtime, b.program, {input});
    for (int d = 0; d < 3; ++d) {
      CHECK(outputs[0][d] == input[d]);
      CHECK(*values<int32_t>(outputs[1][d]) == 7 + d);
      CHECK(*values<int32_t>(outputs[2][d]) == 7);
      CHECK(outputs[3][d] == outputs[1][d]);
    }
  }
}

/// Sums `rounds` times over the devices what each counted up to its position.
Program nested_loops(int devices, int32_t rounds) {
  ProgramBuilder b(devices);
  SlotId position = b.arena(4), inner = b.arena(4), outer = b.arena(4),
         flag = b.arena(1), total = b.output(4), sum = b.arena(4),
         bound = b.constant<int32_t>({rounds});
  Steps count = {launch(store_zero, {inner}),
                 {LoopStep{steps({launch(less, {flag, inner, position})}),
                           steps({launch(add_one, {inner})}), flag}}};
  Steps body = count;
  body.push_back({CollectiveStep{CollectiveStep::Kind::all_reduce, inner, sum,
                                 DType::I32, 1, ReduceOp::sum, 0}});
  // Odd sums are added twice.
  body.push_back(launch(is_odd, {flag, sum}));
  body.push_back(
      {IfStep{flag, steps({launch(add_to, {total, sum})}), nullptr}});
  body.push_back(launch(add_to, {total, sum}));
  body.push_back(launch(add_one, {outer}));
  b.program.steps = {launch(store_position, {position}),
                     launch(store_zero, {total}),
                     launch(store_zero, {outer}),
                     {LoopStep{steps({launch(less, {flag, outer, bound})}),
                               steps(body), flag}}};
  return std::move(b.program);
}

TEST_CASE("loops with different trip counts around collectives") {
  for (int devices : device_counts) {
    for (int workers : {1, 2, 4}) {
      Runtime runtime(devices, workers);
      Program program = nested_loops(devices, 20);
      int sum = devices * (devices - 1) / 2;
      int expected = 20 * sum * (sum % 2 ? 2 : 1);
      for (int turn = 0; turn < 3; ++turn) {
        Blocks outputs = run_all(runtime, program);
        for (int d = 0; d < devices; ++d)
          REQUIRE(*values<int32_t>(outputs[0][d]) == expected);
      }
    }
  }
}

/// Phases with launches that are worth sharing, in loops of different lengths.
TEST_CASE("launches, loops and collectives that workers share") {
  constexpr int32_t elements = 64, rounds = 12;
  for (int devices : device_counts) {
    ProgramBuilder b(devices);
    SlotId position = b.arena(4), inner = b.arena(4), outer = b.arena(4),
           flag = b.arena(1), data = b.output(4 * elements),
           bound = b.constant<int32_t>({rounds});
    b.program.steps = {
        launch(store_position, {position}),
        launch(store_zero, {outer}),
        launch(clear, {data}, elements, 8),
        {LoopStep{
            steps({launch(less, {flag, outer, bound})}),
            steps({launch(store_zero, {inner}),
                   {LoopStep{steps({launch(less, {flag, inner, position})}),
                             steps({launch(advance, {data, inner}, elements, 4),
                                    launch(add_one, {inner})}),
                             flag}},
                   {CollectiveStep{CollectiveStep::Kind::all_reduce, data, data,
                                   DType::U32, elements, ReduceOp::sum, 0}},
                   launch(advance, {data, position}, elements, 4),
                   launch(add_one, {outer})}),
            flag}}};

    // The same in lockstep, for one element, as all are alike.
    std::vector<uint32_t> expected(static_cast<size_t>(devices), 0);
    for (int round = 0; round < rounds; ++round) {
      uint32_t sum = 0, d = 0;
      for (uint32_t& x : expected) {
        for (uint32_t i = 0; i < d; ++i) x = x * x + i + 1;
        sum += x;
        ++d;
      }
      d = 0;
      for (uint32_t& x : expected) x = sum * sum + d++ + 1;
    }
    for (int workers : {1, 2, 3, 6}) {
      Runtime runtime(devices, workers);
      for (int turn = 0; turn < 5; ++turn) {
        Blocks outputs = run_all(runtime, b.program);
        for (int d = 0; d < devices; ++d)
          for (int i = 0; i < elements; ++i)
            REQUIRE(values<uint32_t>(outputs[0][d])[i] == expected[d]);
      }
    }
  }
}

TEST_CASE("several threads run one program") {
  Runtime runtime(5, 4);
  Program program = nested_loops(5, 50);
  std::vector<std::thread> threads;
  std::atomic<int> right{0};
  for (int t = 0; t < 6; ++t)
    threads.emplace_back([&] {
      for (int turn = 0; turn < 20; ++turn) {
        auto outputs = run(runtime, program, runtime.devices(), {});
        if (outputs && *values<int32_t>((*outputs)[0][4]) == 500) ++right;
      }
    });
  for (std::thread& thread : threads) thread.join();
  CHECK(right == 120);
}

TEST_CASE("the error of the first device that fails is reported") {
  for (int devices : device_counts) {
    for (int workers : {1, 2, 4}) {
      Runtime runtime(devices, workers);
      for (int failing = 0; failing < devices; ++failing) {
        ProgramBuilder b(devices);
        SlotId flag = b.input(1), value = b.arena(4);
        b.program.steps = {
            launch(store_position, {value}),
            {CollectiveStep{CollectiveStep::Kind::all_reduce, value, value,
                            DType::I32, 1, ReduceOp::sum, 0}},
            launch(fail_if, {flag}),
            {CollectiveStep{CollectiveStep::Kind::all_reduce, value, value,
                            DType::I32, 1, ReduceOp::sum, 0}},
        };
        auto flags = make_blocks<uint8_t>(
            runtime.devices(), 1, [&](int d, int64_t) { return d >= failing; });
        auto outputs = run(runtime, b.program, runtime.devices(), {flags});
        REQUIRE(!outputs);
        const Error& error = outputs.error();
        CHECK(error.kind == Error::Kind::index_out_of_bounds);
        CHECK(error.message == "index " + std::to_string(failing) +
                                   " is out of bounds for size 5");
        CHECK(error.device == failing);
        CHECK(error.source == 42);
      }
    }
  }
}

TEST_CASE("an error in a launch that is split is the first unit's") {
  Runtime runtime(1, 4);
  ProgramBuilder b(1);
  b.program.steps = {launch(fail_from_100, {}, 10'000, 7)};
  for (int turn = 0; turn < 200; ++turn) {
    auto outputs = run(runtime, b.program, runtime.devices(), {});
    REQUIRE(!outputs);
    REQUIRE(outputs.error().message ==
            "index 100 is out of bounds for size 100");
  }
}

TEST_CASE("an error cancels kernels of later devices that would never end") {
  Runtime runtime(4, 3);
  ProgramBuilder b(4);
  SlotId first = b.input(1);
  b.program.steps = {{IfStep{first, steps({launch(fail_if, {first}, 1, 1)}),
                             steps({launch(spin, {}, 100, 1)})}}};
  auto flags = make_blocks<uint8_t>(runtime.devices(), 1,
                                    [&](int d, int64_t) { return d == 0; });
  auto outputs = run(runtime, b.program, runtime.devices(), {flags});
  REQUIRE(!outputs);
  CHECK(outputs.error().device == 0);
}

TEST_CASE("the stop flag ends a run") {
  ProgramBuilder b(6);
  SlotId flag = b.constant<uint8_t>({1}), value = b.arena(4);
  SUBCASE("in a kernel") { b.program.steps = {launch(spin, {}, 1, 1)}; }
  SUBCASE("in a loop of steps") {
    b.program.steps = {{LoopStep{steps({}), steps({}), flag}}};
  }
  SUBCASE("in a loop with a collective") {
    b.program.steps = {
        launch(store_zero, {value}),
        {LoopStep{
            steps({}),
            steps({{CollectiveStep{CollectiveStep::Kind::all_reduce, value,
                                   value, DType::I32, 1, ReduceOp::sum, 0}}}),
            flag}}};
  }
  for (int workers : {1, 2, 4}) {
    Runtime runtime(6, workers);
    std::atomic<bool> stop{false};
    std::thread stopper([&] {
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
      stop = true;
    });
    auto outputs =
        run(runtime, b.program, runtime.devices(), Blocks{}, {.stop = &stop});
    stopper.join();
    REQUIRE(!outputs);
    CHECK(outputs.error().kind == Error::Kind::cancelled);
    // The session stays usable.
    Program next = nested_loops(6, 3);
    CHECK(*values<int32_t>(run_all(runtime, next)[0][0]) == 90);
  }
}

TEST_CASE("a collective that some device never reaches is an error") {
  ProgramBuilder b(4);
  SlotId flag = b.input(1), value = b.arena(4);
  Step reduce = {CollectiveStep{CollectiveStep::Kind::all_reduce, value, value,
                                DType::I32, 1, ReduceOp::sum, 9}};
  const char* message = nullptr;
  SUBCASE("it ended") {
    b.program.steps = {launch(store_zero, {value}),
                       {IfStep{flag, steps({reduce}), nullptr}}};
    message = "a collective waits for device 2, which has already ended";
  }
  SUBCASE("it waits in another") {
    b.program.steps = {launch(store_zero, {value}),
                       {IfStep{flag, steps({reduce}), steps({reduce})}}};
    message = "devices 0 and 2 wait in different collectives";
  }
  for (int workers : {1, 2}) {
    Runtime runtime(4, workers);
    auto flags = make_blocks<uint8_t>(runtime.devices(), 1,
                                      [&](int d, int64_t) { return d != 2; });
    auto outputs = run(runtime, b.program, runtime.devices(), {flags});
    REQUIRE(!outputs);
    CHECK(outputs.error().kind == Error::Kind::check_failed);
    CHECK(outputs.error().message == message);
    CHECK(outputs.error().source == 9);
    CHECK(outputs.error().device == 0);
  }
}

TEST_CASE("host calls come in the same order in every run") {
  for (int workers : {1, 2, 4}) {
    Runtime runtime(5, workers);
    ProgramBuilder b(5);
    SlotId position = b.arena(4), i = b.arena(4), flag = b.arena(1);
    std::string seen;
    b.program.host_calls = {[&](int device, const auto& arguments, auto&) {
      int32_t number;
      REQUIRE(arguments[0].size() == 4);
      std::memcpy(&number, arguments[0].data(), 4);
      seen += std::to_string(device) + ":" + std::to_string(number) + " ";
      return Unit{};
    }};
    Step call = {HostCallStep{.arguments = {i}, .bytes = {4}}};
    b.program.steps = {
        launch(store_position, {position}),
        launch(store_zero, {i}),
        {LoopStep{steps({launch(less, {flag, i, position})}),
                  steps({launch(add_one, {i}), call}), flag}},
        {CollectiveStep{CollectiveStep::Kind::all_reduce, i, i, DType::I32, 1,
                        ReduceOp::sum, 0}},
        call,
    };
    for (int turn = 0; turn < 20; ++turn) {
      seen.clear();
      run_all(runtime, b.program);
      REQUIRE(seen ==
              "1:1 2:1 2:2 3:1 3:2 3:3 4:1 4:2 4:3 4:4 "
              "0:10 1:10 2:10 3:10 4:10 ");
    }
  }
}

TEST_CASE("a host call gives results, also to devices for which it is made") {
  for (int workers : {1, 3}) {
    Runtime runtime(4, workers);
    ProgramBuilder b(4);
    const SlotId position = b.arena(4), own = b.output(4), same = b.output(8);
    int calls = 0;
    b.program.host_calls = {[&](int, const auto& arguments, auto& results) {
                              int32_t number;
                              std::memcpy(&number, arguments[0].data(), 4);
                              number = 10 * number + 1;
                              std::memcpy(results[0].data(), &number, 4);
                              return Unit{};
                            },
                            [&](int device, const auto&, auto& results) {
                              ++calls;
                              const int64_t value = 100 + device;
                              std::memcpy(results[0].data(), &value, 8);
                              return Unit{};
                            }};
    b.program.steps = {launch(store_position, {position}),
                       {HostCallStep{.arguments = {position},
                                     .bytes = {4},
                                     .results = {own},
                                     .result_bytes = {4}}},
                       {HostCallStep{.arguments = {},
                                     .bytes = {},
                                     .results = {same},
                                     .result_bytes = {8},
                                     .call = 1,
                                     .callers = {0, 1, 0, 1}}}};
    for (int turn = 0; turn < 10; ++turn) {
      calls = 0;
      const auto outputs = run_all(runtime, b.program);
      CHECK(calls == 2);
      for (int d = 0; d < 4; ++d) {
        CHECK(*values<int32_t>(outputs[0][d]) == 10 * d + 1);
        CHECK(*values<int64_t>(outputs[1][d]) == 100 + d % 2);
      }
    }
  }
}

TEST_CASE("an error of a host call is the run's") {
  Runtime runtime(3, 2);
  ProgramBuilder b(3);
  const SlotId i = b.arena(4);
  b.program.host_calls = {[&](int device, const auto&, auto&) -> Status {
    if (device == 0) return Unit{};
    return Error{.kind = Error::Kind::host_function, .message = "f: no"};
  }};
  b.program.steps = {launch(store_zero, {i}),
                     {HostCallStep{.arguments = {i}, .bytes = {4}}}};
  const auto outputs = run(runtime, b.program, runtime.devices(), {});
  REQUIRE(!outputs);
  CHECK(outputs.error().kind == Error::Kind::host_function);
  CHECK(outputs.error().device == 1);
}

TEST_CASE("a host call's error keeps the device that it names") {
  Runtime runtime(3, 1);
  ProgramBuilder b(3);
  b.program.host_calls = {[&](int, const auto&, auto&) -> Status {
    return Error{
        .kind = Error::Kind::host_function, .message = "f: no", .device = 2};
  }};
  b.program.steps = {{HostCallStep{.arguments = {}, .bytes = {}}}};
  const auto outputs = run(runtime, b.program, runtime.devices(), {});
  REQUIRE(!outputs);
  CHECK(outputs.error().device == 2);
}

TEST_CASE("whose call it is comes no later than those who get its results") {
  Runtime runtime(2, 1);
  ProgramBuilder b(2);
  const SlotId out = b.output(4);
  b.program.host_calls = {[](int, const auto&, auto&) { return Unit{}; }};
  b.program.steps = {{HostCallStep{.arguments = {},
                                   .bytes = {},
                                   .results = {out},
                                   .result_bytes = {4},
                                   .callers = {1, 1}}}};
  CHECK_THROWS_AS((void)run(runtime, b.program, runtime.devices(), {}),
                  std::logic_error);
}

TEST_CASE("what is done once for all is done once, by one thread or several") {
  static std::atomic<int64_t> done;
  const auto fill_and_count = [](void* const* buffers, int64_t begin,
                                 int64_t end, const KernelContext* context) {
    for (int64_t i = begin; i < end; ++i)
      static_cast<int32_t*>(buffers[0])[i] += static_cast<int32_t>(i);
    if (context->device_position == 0) done += end - begin;
  };
  constexpr int64_t elements = 5000;
  for (const int workers : {1, 3}) {
    Runtime runtime(3, workers);
    ProgramBuilder b(3);
    const SlotId out = b.output(elements * 4);
    b.program.slots[out].shared = true;
    Step clear_once = launch(clear, {out}, elements, 10);
    Step fill_once = launch(fill_and_count, {out}, elements, 10);
    clear_once.once = fill_once.once = true;
    LoopStep loop{nullptr, steps({fill_once}), 0};
    loop.turns = 4;
    b.program.steps = {clear_once, {loop}};
    done = 0;
    const Blocks outputs = run_all(runtime, b.program);
    CHECK(done == 4 * elements);
    for (int64_t i = 0; i < elements; ++i)
      REQUIRE(values<int32_t>(outputs[0][2])[i] == 4 * i);
  }
}

TEST_CASE("a host call may run another program") {
  Runtime runtime(2, 2);
  Program inner = nested_loops(2, 10);
  ProgramBuilder b(2);
  SlotId i = b.arena(4);
  int right = 0;
  b.program.host_calls = {[&](int, const auto&, auto&) {
    right += *values<int32_t>(run_all(runtime, inner)[0][1]) == 20;
    return Unit{};
  }};
  b.program.steps = {launch(store_zero, {i}),
                     {HostCallStep{.arguments = {i}, .bytes = {4}}}};
  run_all(runtime, b.program);
  CHECK(right == 2);
}

TEST_CASE("a result that all devices share is there once") {
  constexpr int64_t elements = 2048, bytes = elements * 4;
  using Kind = CollectiveStep::Kind;
  const auto collective = [&](Kind kind, SlotId from, SlotId to,
                              Groups groups = {}) {
    CollectiveStep step;
    step.kind = kind;
    step.from = from;
    step.to = to;
    step.dtype = DType::I32;
    step.elements = elements;
    step.groups = std::move(groups);
    return Step{step};
  };
  Runtime runtime(3, 2);
  ProgramBuilder b(3);
  const SlotId in = b.input(bytes);
  const SlotId sum = b.output(bytes), all = b.output(3 * bytes);
  const SlotId grouped = b.output(bytes), changed = b.output(bytes);
  b.program.slots[sum].shared = b.program.slots[all].shared = true;
  b.program.steps = {
      collective(Kind::all_reduce, in, sum),
      collective(Kind::all_gather, in, all),
      collective(Kind::all_reduce, in, grouped, {{0, 2}, {1}}),
      collective(Kind::all_reduce, in, changed),
      launch(add_one, {changed}),
  };
  const Blocks outputs = run_all(
      runtime, b.program,
      {make_blocks<int32_t>(runtime.devices(), elements, [](int d, int64_t i) {
        return static_cast<int32_t>(i) + 100 * d;
      })});
  for (int d = 0; d < 3; ++d) {
    CHECK((outputs[0][d] == outputs[0][0]) == true);
    CHECK((outputs[1][d] == outputs[1][0]) == true);
    CHECK((outputs[2][d] == outputs[2][0]) == (d == 0));
    CHECK((outputs[3][d] == outputs[3][0]) == (d == 0));
    CHECK(values<int32_t>(outputs[0][d])[7] == 321);
    CHECK(values<int32_t>(outputs[1][d])[elements + 7] == 107);
    CHECK(values<int32_t>(outputs[2][d])[7] == (d == 1 ? 107 : 214));
    CHECK(values<int32_t>(outputs[3][d])[0] == 301);
  }
}

TEST_CASE("memory that does not exist is an error before the first step") {
  Runtime runtime(4, 2, int64_t{64} << 20);
  ProgramBuilder b(4);
  SlotId out = b.output(int64_t{20} << 20);
  (void)out;
  bool called = false;
  b.program.host_calls = {[&](int, const auto&, auto&) {
    called = true;
    return Unit{};
  }};
  b.program.steps = {{HostCallStep{}}};
  auto outputs = run(runtime, b.program, runtime.devices(), {});
  REQUIRE(!outputs);
  CHECK(outputs.error().kind == Error::Kind::out_of_memory);
  CHECK(!called);
  for (Device* device : runtime.devices()) CHECK(device->bytes_in_use() == 0);
}

}  // namespace
}  // namespace unisono
