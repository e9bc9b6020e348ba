// Devices with queues that several processes have (execute/queue_meeting.h),
// here as threads: the numbers, and what becomes of each call that fails.
#include <atomic>
#include <optional>
#include <thread>

#include "runtime/cluster/cluster_device.h"
#include "runtime/cluster/host_mover.h"
#include "runtime/cluster/socket_transport.h"
#include "runtime/execute/queue_meeting.h"
#include "runtime/tuning/tuning.h"
#include "tests/unit/moved.h"
#include "tests/unit/runtime/programs.h"
#include "tests/unit/runtime/queues/machine.h"

namespace unisono::queues {
namespace {

using Kind = CollectiveStep::Kind;
using Floats = std::vector<float>;

/// Elements of what device d has in the beginning.
float given(int d, int64_t i) { return static_cast<float>(10 * d + i % 7 + 1); }

/// A process of several, each of which has as many devices.
struct Process {
  Process(std::shared_ptr<Cluster> of, int each)
      : cluster(std::move(of)), each(each), runtime(devices(), 1) {
    // to = a + b, and the same of what is in the whole result.
    machine->kernels["add"] = [](const KernelCall& call) {
      for (int64_t i = 0; i < call.constant<int64_t>(); ++i)
        call.argument<float>(0)[i] =
            call.argument<float>(1)[i] + call.argument<float>(2)[i];
    };
    machine->kernels["narrow"] = [](const KernelCall& call) {
      for (int64_t i = 0; i < call.constant<int64_t>(); ++i)
        call.argument<_Float16>(0)[i] =
            static_cast<_Float16>(call.argument<float>(1)[i]);
    };
    machine->kernels["widen"] = [](const KernelCall& call) {
      for (int64_t i = 0; i < call.constant<int64_t>(); ++i)
        call.argument<float>(0)[i] =
            static_cast<float>(call.argument<_Float16>(1)[i]);
    };
    machine->kernels["check"] = [this](const KernelCall& call) {
      if (on_check) on_check(call);
    };
  }

  std::vector<std::unique_ptr<Device>> devices() {
    auto gpus = std::make_shared<ClusterGpus>();
    gpus->kind = "late";
    gpus->capabilities.assign(static_cast<size_t>(cluster->processes()) * each,
                              90);
    gpus->mover = make_host_mover(*cluster);
    std::vector<std::shared_ptr<Device>> own;
    for (int i = 0; i < each; ++i)
      own.push_back(
          std::make_shared<LateDevice>(machine, cluster->process() * each + i));
    return make_cluster_devices(cluster, std::move(gpus), own);
  }
  bool is_first() const { return cluster->process() == 0; }

  /// On these devices, or the first ones, in order.
  Result<Blocks> run(const Program& program, std::vector<int> places = {},
                     const RunOptions& options = {}) {
    for (int d = 0; places.size() < static_cast<size_t>(program.devices); ++d)
      places.push_back(d);
    std::vector<Device*> chosen;
    for (const int d : places) chosen.push_back(runtime.devices()[d]);
    Blocks inputs;
    const int64_t fails_at = std::exchange(machine->fails_at, 0);
    for (const SlotId input : program.inputs) {
      const int64_t bytes = program.slots[input].bytes;
      inputs.emplace_back();
      for (Device* device : chosen) {
        auto buffer = device->allocate(bytes);
        REQUIRE(buffer);
        if (is_here(*device))
          for (int64_t i = 0; i < bytes / 4; ++i)
            static_cast<float*>(buffer->data())[i] = given(device->index(), i);
        inputs.back().push_back(std::make_shared<Buffer>(std::move(*buffer)));
      }
    }
    machine->calls = 0;
    machine->fails_at = fails_at;
    return unisono::run(runtime, program, chosen, inputs, options);
  }
  /// What device d has of an output.
  Floats numbers(const Program& program, const Blocks& blocks, size_t output,
                 int d) const {
    const Slot& slot = program.slots[program.outputs[output]];
    Floats out(static_cast<size_t>(slot.bytes / 4));
    auto& queue =
        static_cast<LateQueue&>(*blocks[output][d]->device()->queue());
    queue.finish(Lane::kernels);
    const auto* first = static_cast<const float*>(blocks[output][d]->data());
    std::copy_n(first, out.size(), out.begin());
    return out;
  }

  const std::shared_ptr<Cluster> cluster;
  const int each;
  const std::shared_ptr<Machine> machine = make_machine();
  std::function<void(const KernelCall&)> on_check;
  Runtime runtime;
};

/// What came of a process: its exit status, and what it tells if it is the one
/// that does.
using Ends = std::vector<Cluster::End>;

/// body(process) is what each process does, and gives what went wrong.
Ends run_all(int processes, int each, const char* faults,
             const std::function<std::optional<Error>(Process&)>& body) {
  SocketPairs pairs(processes);
  Ends ends(static_cast<size_t>(processes));
  std::vector<std::thread> threads;
  for (int p = 0; p < processes; ++p) {
    auto sockets = pairs.next();
    REQUIRE(sockets);
    threads.emplace_back([&, p, sockets = std::move(*sockets)]() mutable {
      auto transport = open_socket_transport(p, std::move(sockets));
      if (!transport) return;
      ClusterOptions options;
      options.kind = "late";
      options.devices = each;
      options.output = [](std::string_view) {};
      if (auto read = Faults::parse(faults)) options.faults = *read;
      auto cluster = Cluster::open(std::move(*transport), std::move(options));
      if (!cluster) return;
      std::optional<Error> error;
      {
        Process process(*cluster, each);
        error = body(process);
      }
      ends[p] = (*cluster)->finish(error ? 1 : 0, error ? error->message : "");
    });
  }
  for (std::thread& thread : threads) thread.join();
  return ends;
}

Step launch(const char* entry, std::vector<SlotId> arguments, int64_t count,
            std::vector<GridCheck> checks = {}) {
  auto launched = grid(entry, count);
  launched->checks = std::move(checks);
  return {LaunchStep{.name = entry,
                     .arguments = std::move(arguments),
                     .grid = std::move(launched),
                     .flops = 1}};
}

CollectiveStep collective(Kind kind, SlotId from, SlotId to, int64_t count,
                          DType dtype = DType::F32) {
  return {
      .kind = kind, .from = from, .to = to, .dtype = dtype, .elements = count};
}

constexpr GridCheck index_check{
    .code = ErrorWord::index_out_of_bounds, .source = 42, .bound = 5};

/// All kinds, of `n` elements each, one after the other; some are under way
/// while kernels go on. The outputs: the sum of all x, x of all, the parts of
/// all for a device, the x of the one after, in f32 and by way of f16.
Program all_kinds(int devices, int64_t n) {
  ProgramBuilder b(devices);
  const int64_t size = n * 4;
  const SlotId parts = b.input(devices * size), x = b.input(size);
  const SlotId sum = b.output(size), all = b.output(devices * size),
               swapped = b.output(devices * size), shifted = b.output(size),
               small_sum = b.output(size);
  const SlotId narrow = b.arena(n * 2), narrow_sum = b.arena(n * 2);
  CollectiveStep shift = collective(Kind::permute, x, shifted, n);
  for (int d = 1; d < devices; ++d) shift.pairs.emplace_back(d, d - 1);
  b.program.steps = {
      {collective(Kind::all_reduce, x, sum, n)},
      {collective(Kind::all_gather, x, all, n)},
      launch("narrow", {narrow, x}, n),
      {CopyStep{x, all, 0}},
      {collective(Kind::all_reduce, narrow, narrow_sum, n, DType::F16)},
      launch("widen", {small_sum, narrow_sum}, n),
      {collective(Kind::all_to_all, parts, swapped, n)},
      {shift},
      launch("check", {x}, n, {index_check})};
  return std::move(b.program);
}
std::vector<Floats> after_all_kinds(int devices, int64_t n, int d) {
  std::vector<Floats> out(5);
  for (int64_t i = 0; i < n; ++i) {
    float sum = 0;
    for (int from = 0; from < devices; ++from) sum += given(from, i);
    out[0].push_back(sum);
    out[4].push_back(sum);
    out[3].push_back(d + 1 < devices ? given(d + 1, i) : 0);
  }
  for (int from = 0; from < devices; ++from)
    for (int64_t i = 0; i < n; ++i) {
      out[1].push_back(given(from, i));
      out[2].push_back(given(from, d * n + i));
    }
  return out;
}

/// Meetings of the even and the odd devices, or of the lower and the upper
/// half, some of which another process has alone.
Program in_groups(int devices, int64_t n) {
  ProgramBuilder b(devices);
  const int half = devices / 2;
  const SlotId x = b.input(half * n * 4), all = b.output(half * n * 4),
               swapped = b.output(half * n * 4);
  Groups halves(2), every_other(2);
  for (int d = 0; d < devices; ++d) {
    halves[d / half].push_back(d);
    every_other[d % 2].push_back(d);
  }
  CollectiveStep gather = collective(Kind::all_gather, x, all, n);
  gather.groups = halves;
  CollectiveStep swap = collective(Kind::all_to_all, x, swapped, n);
  swap.groups = every_other;
  b.program.steps = {{gather}, {swap}};
  return std::move(b.program);
}
std::vector<Floats> after_groups(int devices, int64_t n, int d) {
  const int half = devices / 2;
  std::vector<Floats> out(2);
  for (int j = 0; j < half; ++j)
    for (int64_t i = 0; i < n; ++i) {
      out[0].push_back(given(d / half * half + j, i));
      out[1].push_back(given(d % 2 + 2 * j, d / 2 * n + i));
    }
  return out;
}

/// Sums whose first memory is enough for the second, but for the last piece.
Program two_sums(int devices, int64_t = 0) {
  ProgramBuilder b(devices);
  const SlotId x = b.input(24), sum = b.output(16), small_sum = b.output(24),
               narrow = b.arena(12), narrow_sum = b.arena(12);
  b.program.steps = {
      {collective(Kind::all_reduce, x, sum, 4)},
      launch("narrow", {narrow, x}, 6),
      {collective(Kind::all_reduce, narrow, narrow_sum, 6, DType::F16)},
      launch("widen", {small_sum, narrow_sum}, 6)};
  return std::move(b.program);
}
std::vector<Floats> after_two_sums(int devices, int64_t = 0, int = 0) {
  std::vector<Floats> out(2);
  for (int64_t i = 0; i < 6; ++i) {
    float sum = 0;
    for (int d = 0; d < devices; ++d) sum += given(d, i);
    if (i < 4) out[0].push_back(sum);
    out[1].push_back(sum);
  }
  return out;
}

/// Whether a process's own devices have these numbers.
std::optional<Error> compare(
    const Process& process, const Program& program, const Blocks& blocks,
    const std::function<std::vector<Floats>(int)>& expected) {
  for (int d = 0; d < program.devices; ++d) {
    if (!is_here(*blocks[0][d]->device())) continue;
    const std::vector<Floats> want = expected(d);
    for (size_t output = 0; output < want.size(); ++output)
      if (process.numbers(program, blocks, output, d) != want[output])
        return Error{.message = fmt::format("output {} of device {} is wrong",
                                            output, d)};
  }
  return std::nullopt;
}

void check_ends(const Ends& ends, const std::string& message) {
  const int status = message.empty() ? 0 : 1;
  for (const Cluster::End& end : ends) CHECK(end.status == status);
  REQUIRE(ends[0].messages);
  CHECK(*ends[0].messages == message);
}

/// Where processes differ in what they do.
struct Division {
  int processes, each;
  int64_t elements;
  bool reach = true;
  bool cut = false;  // reductions are
  const char* faults = "";
  Program (*program)(int devices, int64_t elements) = all_kinds;
  std::vector<Floats> (*expected)(int devices, int64_t elements,
                                  int device) = after_all_kinds;
};
const Division divisions[] = {
    {2, 1, 5},
    {2, 2, 5, true, false, "eager"},
    {2, 3, 5, false},
    {2, 4, 5},
    {3, 2, 200, true, true},         // several ranges
    {2, 2, 5, true, true, "eager"},  // some of them are empty
    {2, 2, 0, true, true},
    {3, 1, 0, true, false, "", two_sums, after_two_sums},
    {2, 2, 3, true, false, "", in_groups, after_groups},
};

std::optional<Error> run_division(Process& process, const Division& division) {
  const int devices = division.processes * division.each;
  const Program program = division.program(devices, division.elements);
  const auto done = process.run(program);
  if (!done) return done.error();
  return compare(process, program, *done, [&](int d) {
    return division.expected(devices, division.elements, d);
  });
}

TEST_CASE("queues of several processes meet, and each of their calls fails") {
  for (const Division& division : divisions) {
    CAPTURE(division.processes);
    CAPTURE(division.each);
    CAPTURE(division.elements);
    const Moved moved([&](Tuning& to) {
      if (division.cut) to.gpu_least_cut_reduction = 0;
    });
    const auto run = [&](int failing, int64_t k, std::string& failed) {
      std::atomic<int64_t> calls{0};
      const Ends ends = run_all(
          division.processes, division.each, division.faults,
          [&](Process& process) -> std::optional<Error> {
            process.machine->reaches = [&](int, int) { return division.reach; };
            const bool fails = process.cluster->process() == failing;
            if (fails) process.machine->fails_at = k;
            auto error = run_division(process, division);
            if (fails) failed = process.machine->failed;
            if (process.is_first()) calls = process.machine->calls;
            return error;
          });
      check_ends(ends, failed.empty() ? "" : "a call fails: " + failed);
      return calls.load();
    };
    std::string failed;
    const int64_t calls = run(-1, 0, failed);
    CHECK(calls > 10);
    for (int64_t k = 1; k <= calls; ++k)
      for (const int failing : {0, 1}) {
        CAPTURE(k);
        CAPTURE(failing);
        failed.clear();
        run(failing, k, failed);
        CAPTURE(failed);
      }
  }
}

TEST_CASE("a process without room for parcels meets at once") {
  const Division division{2, 2, 5, true, false, "eager"};
  const Ends ends = run_all(2, 2, "eager", [&](Process& process) {
    process.machine->most_parcels = 0;
    return run_division(process, division);
  });
  check_ends(ends, "");
}

/// A check, a meeting, and both once more.
Program checks_and_meetings() {
  ProgramBuilder b(2);
  const SlotId x = b.input(16), y = b.output(16);
  for (int i = 0; i < 2; ++i) {
    b.program.steps.push_back(launch("check", {x}, 4, {index_check}));
    b.program.steps.push_back({collective(Kind::all_gather, x, y, 2)});
  }
  return std::move(b.program);
}

TEST_CASE("what a device has found before the first meeting comes first") {
  const std::string index = "index 7 is out of bounds for size 5",
                    lost = "a call fails: read";
  struct {
    const char* name;
    int failing_check, failing_read;  // from which one on
    const char* fails_too = "";
    int most_parcels = 100;
    bool stops = false;
    std::string message;
  } const cases[] = {
      {"nothing fails", 3, 9, "", 100, false, ""},
      {"found when it is over", 1, 9, "", 100, false, index},
      {"found although it cannot meet", 1, 1, "", 100, false, index},
      {"it meets first", 2, 2, "", 100, false, lost},
      {"the word cannot be sent", 1, 1, "send", 100, false, lost},
      {"nor be waited for", 1, 1, "wait", 100, false, lost},
      {"there is no room for it", 1, 1, "", 0, false, lost},
      {"the kernel may have been stopped", 1, 1, "", 100, true, lost},
  };
  for (const auto& each : cases) {
    CAPTURE(std::string(each.name));
    std::atomic<bool> stop{false};
    const Ends ends =
        run_all(2, 1, "", [&](Process& process) -> std::optional<Error> {
          const Program program = checks_and_meetings();
          int checks = 0, reads = 0;
          Machine& machine = *process.machine;
          machine.most_parcels = each.most_parcels;
          if (process.is_first()) {
            process.on_check = [&](const KernelCall& call) {
              if (++checks == each.failing_check) fail_check(call, 0, 7);
            };
            machine.fails = [&](const std::string& call) {
              if (call != "read") return call == each.fails_too;
              if (++reads < each.failing_read) return false;
              stop = each.stops;
              return true;
            };
          }
          const auto done = process.run(program, {}, {.stop = &stop});
          if (!done) return done.error();
          return std::nullopt;
        });
    check_ends(ends, each.message);
  }
}

/// 40 turns of a loop without meetings, then one.
Program turns_alone(int devices) {
  ProgramBuilder b(devices);
  const SlotId x = b.input(16), y = b.arena(16), t = b.arena(16),
               all = b.output(16 * devices);
  b.program.steps = {
      {CopyStep{x, y, 16}},
      {LoopStep{
          .condition = nullptr,
          .body = steps({launch("add", {t, y, x}, 4), {CopyStep{t, y, 16}}}),
          .turns = 40}},
      {collective(Kind::all_gather, y, all, 4)},
      launch("add", {t, x, x}, 4),
      {CopyStep{y, all, 0}},
  };
  return std::move(b.program);
}
std::vector<Floats> after_turns_alone(int devices) {
  Floats all;
  for (int d = 0; d < devices; ++d)
    for (int64_t i = 0; i < 4; ++i) all.push_back(41 * given(d, i));
  return {all};
}

TEST_CASE("runs of one process's devices, and loops that do not meet") {
  const Moved moved([](Tuning& to) { to.gpu_much_work_at_once = 1; });
  // Two devices are the first process's alone.
  for (const int devices : {2, 4}) {
    CAPTURE(devices);
    const Ends ends =
        run_all(2, 2, "eager", [&](Process& process) -> std::optional<Error> {
          const Program program = turns_alone(devices);
          std::unique_ptr<RunUnderWay> left;
          const auto done = process.run(program, {}, {.under_way = &left});
          if (!done) return done.error();
          // Who has told the others of its end is not at work.
          const bool alone = devices == 2 && process.is_first();
          if ((left != nullptr) != alone)
            return Error{.message = "left under way, or not"};
          if (left)
            if (auto error = left->wait()) return error;
          if (process.machine->put > 40)
            return Error{.message = "turns are put one by one"};
          return compare(process, program, *done,
                         [&](int) { return after_turns_alone(devices); });
        });
    check_ends(ends, "");
  }
}

TEST_CASE("meetings use the memory of those before, where it is the device's") {
  for (const int each : {1, 2}) {
    CAPTURE(each);
    const int processes = each == 1 ? 3 : 2, devices = processes * each;
    const Ends ends = run_all(
        processes, each, "", [&](Process& process) -> std::optional<Error> {
          const Program program = two_sums(devices);
          std::vector<int> places;
          for (int d = 0; d < devices; ++d) places.push_back(d);
          for (int turn = 0; turn < 3; ++turn) {
            if (turn == 2 && each == 2) {
              std::swap(places[0], places[1]);
              std::swap(places[2], places[3]);
            }
            const int64_t before = process.machine->calls;
            const auto done = process.run(program, places);
            if (!done) return done.error();
            if (turn == 1 && process.machine->calls >= before)
              return Error{.message = "memory is not used again"};
            if (auto wrong = compare(process, program, *done, [&](int) {
                  return after_two_sums(devices);
                }))
              return wrong;
          }
          return std::nullopt;
        });
    check_ends(ends, "");
  }
}

TEST_CASE("meetings that cannot be are our bugs") {
  run_all(2, 1, "", [&](Process& process) -> std::optional<Error> {
    if (!process.is_first()) return std::nullopt;
    const Program program = two_sums(2);
    const FlatProgram flat = flatten(program);
    const RunState run(program, flat);
    for (int d = 0; d < 2; ++d)
      run.devices[d].device = process.runtime.devices()[d];
    ClusterMeeting meeting(run, *process.cluster);
    const auto throws = [&](CollectiveStep step, std::vector<Buffer> buffers,
                            const char* what, bool here = true) {
      std::vector<Queue*> queues(2);
      if (here) queues[0] = run.devices[0].device->queue();
      std::vector<QueueMeeting::Memory> memory(2);
      memory[0].buffers = std::move(buffers);
      const auto meet = [&] {
        QueueMeeting meets(run, meeting, queues, memory);
        (void)meets.meet(step, meeting.teams(step), 0);
      };
      CHECK_THROWS_WITH_AS(meet(), doctest::Contains(what), std::logic_error);
    };
    const CollectiveStep sum = collective(Kind::all_reduce, 0, 1, 4);
    throws(sum, {}, "mover_", false);
    throws(sum, {}, "memory.used < memory.buffers.size()");
    std::vector<Buffer> small;
    small.push_back(*run.devices[0].device->allocate(15));
    throws(sum, std::move(small), "buffer.bytes() >= bytes");
    CollectiveStep groups = sum;
    groups.groups = {{0}, {1}};
    throws(groups, {}, "step.groups.empty()");
    throws(collective(Kind::reduce_scatter, 0, 1, 2), {},
           "a collective on queues");
    return std::nullopt;
  });
}

}  // namespace
}  // namespace unisono::queues
