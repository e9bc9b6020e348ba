// Runs on memory of the caller's, and runs that a device's memory fails.
#include <array>
#include <memory>
#include <stdexcept>

#include "runtime/grid.h"
#include "runtime/recorder.h"
#include "tests/unit/runtime/programs.h"

namespace unisono {
namespace {

void square(void* const* buffers, int64_t begin, int64_t end,
            const KernelContext*) {
  for (int64_t i = begin; i < end; ++i)
    static_cast<float*>(buffers[1])[i] =
        static_cast<float*>(buffers[0])[i] * static_cast<float*>(buffers[0])[i];
}
void add_one(void* const* buffers, int64_t, int64_t, const KernelContext*) {
  ++*static_cast<int32_t*>(buffers[0]);
}
/// The last of many arguments gets the sum of the others.
constexpr int many = 300;
void add_up(void* const* buffers, int64_t, int64_t, const KernelContext*) {
  int32_t sum = 0;
  for (int i = 0; i < many; ++i) sum += *static_cast<int32_t*>(buffers[i]);
  *static_cast<int32_t*>(buffers[many]) = sum;
}
void fail(void* const*, int64_t, int64_t, const KernelContext* context) {
  context->error->source = 42;
  context->error->code = ErrorWord::integer_division_by_zero;
}

/// A CPU device of which one function fails.
class Failing final : public Device {
 public:
  enum class Of : uint8_t { nothing, allocate, to_device, to_host };
  explicit Failing(Device& real, Of of = Of::nothing) : real_(real), of_(of) {}
  const std::string& name() const override { return real_.name(); }
  int index() const override { return real_.index(); }
  Result<Buffer> allocate(int64_t bytes) override {
    if (of_ == Of::allocate)
      return Error{.kind = Error::Kind::out_of_memory, .message = "no memory"};
    return real_.allocate(bytes);
  }
  void free(void* data, int64_t bytes) override { real_.free(data, bytes); }
  Status copy_from_host(void* to, const void* from,
                        const CopyExtent& extent) override {
    if (of_ == Of::to_device) return lost();
    return real_.copy_from_host(to, from, extent);
  }
  Status copy_to_host(void* to, const void* from,
                      const CopyExtent& extent) override {
    if (of_ == Of::to_host) return lost();
    return real_.copy_to_host(to, from, extent);
  }
  Status copy_from_peer(void* to, const Device& peer, const void* from,
                        const CopyExtent& extent) override {
    return real_.copy_from_peer(to, peer, from, extent);
  }
  DeviceKind kind() const override { return shown_kind; }
  Queue* queue() override { return shown_queue; }
  int64_t bytes_in_use() const override { return real_.bytes_in_use(); }
  int64_t peak_bytes() const override { return real_.peak_bytes(); }

  DeviceKind shown_kind = DeviceKind::cpu;
  Queue* shown_queue = nullptr;

 private:
  static Error lost() {
    return {.kind = Error::Kind::device_lost, .message = "it is lost"};
  }
  Device& real_;
  const Of of_;
};

/// Memory that begins `offset` bytes behind a cache line.
struct Place {
  explicit Place(size_t offset) : data(bytes.data() + offset) {}
  alignas(64) std::array<char, 512> bytes = {};
  void* data;
  float number(int i) const { return static_cast<float*>(data)[i]; }
};

TEST_CASE("results come to the caller's places, however these lie") {
  Runtime runtime(1, 1);
  ProgramBuilder b(1);
  const SlotId in = b.input(400), constant = b.constant<int32_t>({7});
  const SlotId between = b.arena(400), out = b.output(400),
               other = b.output(400);
  b.program.steps = {launch(square, {in, between}, 100),
                     launch(square, {between, out}, 100),
                     {CopyStep{between, other, 400}}};
  // One slot twice, what was given, what never changes, and more than usual.
  b.program.outputs = {out, other, out, in, constant};
  std::vector<int32_t> numbers(20, -1);
  for (size_t i = 0; i < numbers.size(); ++i) {
    const SlotId slot = b.output(4);
    b.program.slots[slot].index = static_cast<int>(i) + 2;
    b.program.steps.push_back({CopyStep{constant, slot, 4}});
    for (size_t k = 0; k <= i; ++k)
      b.program.steps.push_back(launch(add_one, {slot}));
  }
  std::array<float, 100> input;
  for (int i = 0; i < 100; ++i) input[i] = static_cast<float>(i);
  for (const bool recorded : {false, true}) {
    Place first(4), second(0), again(64), given(8);
    int32_t seven = 0;
    std::vector<void*> places = {first.data, second.data, again.data,
                                 given.data, &seven};
    for (int32_t& number : numbers) places.push_back(&number);
    const void* const inputs[] = {input.data()};
    Recorder recorder(false);
    RunOptions options;
    if (recorded) options.recorder = &recorder;
    REQUIRE(run_in_place(runtime, b.program, *runtime.devices()[0], inputs,
                         places.data(), options));
    for (int i = 0; i < 100; ++i) {
      const auto x = static_cast<float>(i);
      REQUIRE(first.number(i) == x * x * x * x);
      REQUIRE(again.number(i) == x * x * x * x);
      REQUIRE(second.number(i) == x * x);
      REQUIRE(given.number(i) == x);
    }
    CHECK(seven == 7);
    for (int32_t i = 0; i < 20; ++i) CHECK(numbers[i] == 8 + i);
    CHECK(recorder.total(Recorder::Kind::kernel, 0).count ==
          (recorded ? 2 + 20 * 21 / 2 : 0));
  }
}

TEST_CASE("a run in place fails, or throws, as its steps do") {
  Runtime runtime(1, 1);
  ProgramBuilder b(1);
  bool throws = false;
  b.program.host_calls = {[&](int, const auto&, auto&) -> Status {
    if (throws) throw std::runtime_error("thrown");
    return Error{.kind = Error::Kind::host_function, .message = "f: no"};
  }};
  b.program.steps = {{HostCallStep{.arguments = {}, .bytes = {}}}};
  const auto run_it = [&] {
    return run_in_place(runtime, b.program, *runtime.devices()[0], nullptr,
                        nullptr);
  };
  const Status done = run_it();
  REQUIRE(!done);
  CHECK(done.error().message == "f: no");
  CHECK(done.error().device == 0);
  throws = true;
  CHECK_THROWS_AS((void)run_it(), std::runtime_error);
  Program of_two = b.program, overwriting = b.program;
  of_two.devices = 2;
  overwriting.overwritten = {0};
  for (const Program& program : {of_two, overwriting})
    CHECK_THROWS_AS((void)run_in_place(runtime, program, *runtime.devices()[0],
                                       nullptr, nullptr),
                    std::logic_error);
}

TEST_CASE(
    "memory that a run in place lacks is told of with its largest array") {
  Runtime runtime(1, 1, int64_t{16} << 20);
  ProgramBuilder b(1);
  (void)b.arena(int64_t{64} << 20);
  b.program.in_arena = {"f32[16777216]", 17};
  const Status done =
      run_in_place(runtime, b.program, *runtime.devices()[0], nullptr, nullptr);
  REQUIRE(!done);
  CHECK(done.error().kind == Error::Kind::out_of_memory);
  CHECK(done.error().source == 17);
  CHECK(done.error().message.ends_with(
      "; the largest array in it is f32[16777216]"));
  // What all devices share is the first one's.
  ProgramBuilder shared(1);
  shared.program.shared_arena_bytes = int64_t{64} << 20;
  shared.program.in_arena = {"f32[16777216]", 18};
  const auto outputs =
      run(runtime, shared.program, runtime.devices(), Blocks{});
  REQUIRE(!outputs);
  CHECK(outputs.error().source == 18);
  CHECK(outputs.error().message.ends_with(
      "; the largest array in it is f32[16777216]"));
}

TEST_CASE("whatever a device refuses is the run's error") {
  using Of = Failing::Of;
  Runtime runtime(1, 1);
  Place place(4);
  void* const places[] = {place.data};
  for (const Of of : {Of::nothing, Of::allocate, Of::to_device, Of::to_host}) {
    CAPTURE(static_cast<int>(of));
    Failing device(*runtime.devices()[0], of);
    ProgramBuilder constants(1), results(1);
    const SlotId seven = constants.constant<float>({7});
    constants.program.outputs = {seven};
    const SlotId from = results.input(400), to = results.output(400);
    results.program.steps = {launch(square, {from, to}, 100)};
    const auto expect = [&](const auto& done, bool fails) {
      CHECK(static_cast<bool>(done) == !fails);
      if (!fails || done) return;
      CHECK(done.error().message ==
            (of == Of::allocate ? "no memory" : "it is lost"));
    };
    // What never changes comes there first, and results leave the device.
    expect(run(runtime, constants.program, {&device}, Blocks{}),
           of == Of::allocate || of == Of::to_device);
    expect(run_in_place(runtime, constants.program, device, nullptr, places),
           of != Of::nothing);
    const std::array<float, 100> input = {3};
    const void* const inputs[] = {input.data()};
    expect(run_in_place(runtime, results.program, device, inputs, places),
           of == Of::allocate || of == Of::to_host);
    if (of == Of::nothing) CHECK(place.number(0) == 9);
  }
}

TEST_CASE("steps that one thread goes through, and those that it does not") {
  Runtime runtime(1, 2);
  const auto run_one = [&](const Program& program, const Blocks& inputs,
                           const RunOptions& options = {}) {
    return run(runtime, program, runtime.devices(), inputs, options);
  };
  // More arguments than usual.
  ProgramBuilder b(1);
  std::vector<SlotId> arguments;
  Blocks inputs;
  for (int i = 0; i < many; ++i) {
    arguments.push_back(b.input(4));
    inputs.push_back(make_blocks<int32_t>(runtime.devices(), 1,
                                          [&](int, int64_t) { return i; }));
  }
  arguments.push_back(b.output(4));
  b.program.steps = {launch(add_up, arguments)};
  auto outputs = run_one(b.program, inputs);
  REQUIRE(outputs);
  CHECK(*values<int32_t>((*outputs)[0][0]) == many * (many - 1) / 2);
  // Nothing to do is not done, and so cannot fail.
  ProgramBuilder none(1);
  none.program.steps = {launch(fail, {}, 0)};
  CHECK(run_one(none.program, {}));
  none.program.steps = {launch(fail, {}, 1)};
  outputs = run_one(none.program, {});
  REQUIRE(!outputs);
  CHECK(outputs.error().message == "integer division by zero");
  CHECK(outputs.error().source == 42);
  // A device that is lost is lost before the step.
  const std::function<bool(int)> lose = [](int) { return true; };
  outputs = run_one(none.program, {}, {.lose_device = &lose});
  REQUIRE(!outputs);
  CHECK(outputs.error().kind == Error::Kind::device_lost);
  // A kernel of a GPU is none of threads.
  ProgramBuilder gpu(1);
  LaunchStep grid;
  grid.grid = std::make_shared<const GridLaunch>();
  gpu.program.steps = {{grid}};
  CHECK_THROWS_AS((void)run_one(gpu.program, {}), std::logic_error);
}

TEST_CASE("calls that do not fit their program are our own mistake") {
  Runtime runtime(2, 1);
  const auto& devices = runtime.devices();
  ProgramBuilder b(2);
  (void)b.input(4);
  const auto blocks =
      make_blocks<int32_t>(devices, 1, [](int, int64_t) { return 1; });
  const auto small =
      make_blocks<uint8_t>(devices, 1, [](int, int64_t) { return 1; });
  CHECK(run(runtime, b.program, devices, {blocks}));
  const auto mistaken = [&](const Program& program,
                            const std::vector<Device*>& on,
                            const Blocks& inputs) {
    CHECK_THROWS_AS((void)run(runtime, program, on, inputs), std::logic_error);
  };
  Program of_none = b.program;
  of_none.devices = 0;
  mistaken(of_none, {}, {DeviceBlocks{}});
  mistaken(b.program, {devices[0]}, {blocks});
  mistaken(b.program, devices, Blocks{});
  mistaken(b.program, devices, {{blocks[0]}});
  mistaken(b.program, devices, {small});
  // A result has memory of its own.
  ProgramBuilder out(2);
  out.program.outputs = {out.arena(4)};
  mistaken(out.program, devices, Blocks{});
  // Devices that work by themselves, among those that do not.
  Failing other(*devices[1]);
  ProgramBuilder two(2);
  two.program.steps = {launch(add_one, {two.output(4)})};
  CHECK(run(runtime, two.program, {devices[0], &other}, Blocks{}));
  int stands_for_a_queue = 0;
  other.shown_queue = reinterpret_cast<Queue*>(&stands_for_a_queue);
  mistaken(two.program, {devices[0], &other}, Blocks{});
  other.shown_kind = DeviceKind::gpu;
  CHECK_THROWS_AS((void)code_target({devices[0], &other}), std::logic_error);
  // Devices that there are not.
  CHECK_THROWS_AS(Runtime(0, 1), std::logic_error);
  CHECK_THROWS_AS(Runtime(65, 1), std::logic_error);
  CHECK_THROWS_AS(Runtime(std::vector<std::unique_ptr<Device>>(), 1),
                  std::logic_error);
  Runtime most(64, 1);
  std::vector<Device*> more = most.devices();
  more.push_back(more[0]);
  CHECK_THROWS_AS((void)run(most, ProgramBuilder(65).program, more, Blocks{}),
                  std::logic_error);
}

TEST_CASE("what a check says by its code") {
  CHECK(checked_error(ErrorWord::negative_exponent, -2, 0).message ==
        "an integer cannot be raised to the negative power -2");
  CHECK(checked_error(ErrorWord::none, 0, 0).message == "check 0 failed");
}

}  // namespace
}  // namespace unisono
