// What devices with queues do together (execute/queue_collective.h): the
// numbers, however they get there, and what becomes of each call that fails.
#include "runtime/execute/queue_collective.h"

#include <optional>

#include "runtime/tuning/tuning.h"
#include "tests/unit/runtime/queues/machine.h"

namespace unisono::queues {
namespace {

using Kind = CollectiveStep::Kind;
using Floats = std::vector<float>;

/// How an all_reduce comes about.
struct How {
  const char* name;
  bool reach = true;  // devices reach each other's memory
  int64_t part = 2;   // elements that a kernel combines
  bool in_pieces = false;
};
constexpr How hows[] = {{"one", true, 5},
                        {"parts"},
                        {"pieces", true, 2, true},
                        {"staged", false},
                        {"staged pieces", false, 2, true}};

constexpr int64_t elements = 5;

/// Element i of what device d has for device `taker`.
float given(int d, int64_t i, int taker = 0) {
  return static_cast<float>(100 * d + 10 * taker + i);
}

/// Devices that meet once.
struct Meeting {
  Meeting(int count, const How& how, const CollectiveStep& step,
          int64_t fails_at = 0)
      : count(count), step(step) {
    Tuning tuning = before;
    if (how.in_pieces)
      tuning.gpu_most_parts_bytes = tuning.gpu_most_staged_bytes = 0;
    set_tuning(tuning);
    machine->kernels["reduce"] = [count](const KernelCall& call) {
      for (int64_t i = 0; i < call.constant<int64_t>(); ++i) {
        const float sum = member_tree(
            0, count, [&](int64_t d) { return call.argument<float>(d)[i]; },
            std::plus<>());
        for (size_t to = count; to < call.arguments.size(); ++to)
          call.argument<float>(to)[i] = sum;
      }
    };
    machine->reaches = [&](int, int) { return how.reach; };
    for (int d = 0; d < count; ++d) {
      queues.push_back(devices[d]->queue());
      from.push_back(allocate(d, 64 * count));
      to.push_back(allocate(d, 64 * count));
      for (int taker = 0; taker < count; ++taker)
        for (int64_t i = 0; i < step.elements; ++i)
          from[d][taker * step.elements + i] = given(d, i, taker);
    }
    machine->calls = 0;
    machine->fails_at = fails_at;
  }
  ~Meeting() { set_tuning(before); }

  float* allocate(int d, int64_t bytes) {
    buffers.push_back(*devices[d]->allocate(bytes));
    return static_cast<float*>(buffers.back().data());
  }
  Status prepare() {
    FlatProgram flat;
    flat.instructions.push_back(
        {.kind = Instruction::Kind::collective, .step = &step});
    flat.instructions.push_back({});
    staged = TRY(prepare_collectives(queues, flat));
    staging.resize(static_cast<size_t>(count));
    for (int d = 0; d < count; ++d)
      if (*staged > 0) staging[d] = TRY(queues[d]->borrow_staging(*staged));
    return Unit{};
  }
  Status meet() {
    const std::vector<const void*> sources(from.begin(), from.end());
    const std::vector<void*> targets(to.begin(), to.end());
    return unisono::meet(queues, step, {sources, targets}, staging);
  }
  /// The first numbers of a result, as a kernel after the meeting sees them.
  Floats result(int d, int64_t size) {
    for (Queue* other : queues)
      REQUIRE(queues[d]->wait_for(*other, Lane::kernels, Lane::copies));
    Floats out(static_cast<size_t>(size));
    const Queue::Read read{out.data(), to[d], size * 4};
    REQUIRE(queues[d]->read({&read, 1}));
    return out;
  }

  const int count;
  const CollectiveStep step;
  std::shared_ptr<Machine> machine = make_machine();
  std::vector<std::unique_ptr<Device>> devices = late_devices(machine, count);
  std::vector<Buffer> buffers;
  std::vector<Queue*> queues;
  std::vector<float*> from, to;
  std::optional<int64_t> staged;
  std::vector<void*> staging;
  Tuning before = tuning();
};

CollectiveStep step_of(Kind kind, int count, const How& how = hows[0]) {
  CollectiveStep step{.kind = kind, .dtype = DType::F32, .elements = elements};
  if (kind == Kind::permute)  // the first gets nothing
    for (int d = 1; d < count; ++d) step.pairs.emplace_back(d == 1 ? 1 : 0, d);
  step.kernels = {how.part, grid("reduce", how.part),
                  grid("reduce", (elements - 1) % how.part + 1),
                  grid("reduce", elements)};
  return step;
}

/// What device d has in the end.
Floats expected(Kind kind, int count, int d) {
  Floats out;
  for (int64_t i = 0; i < elements; ++i) {
    if (kind == Kind::all_reduce)  // the sum of 100 d + i
      out.push_back(static_cast<float>(50 * count * (count - 1) + count * i));
    if (kind == Kind::permute)
      out.push_back(d == 0 ? 0 : given(d == 1 ? 1 : 0, i));
  }
  if (kind == Kind::all_gather || kind == Kind::all_to_all)
    for (int from = 0; from < count; ++from)
      for (int64_t i = 0; i < elements; ++i)
        out.push_back(given(from, i, kind == Kind::all_gather ? 0 : d));
  return out;
}

/// The numbers; then a meeting for each call, which fails.
void check(Kind kind, int count, const How& how) {
  CAPTURE(std::string(name(kind)));
  CAPTURE(count);
  CAPTURE(std::string(how.name));
  const CollectiveStep step = step_of(kind, count, how);
  Meeting good(count, how, step);
  REQUIRE(good.prepare());
  const int64_t prepared = good.machine->calls;
  REQUIRE(good.meet());
  const int64_t calls = good.machine->calls;
  CHECK(calls > prepared);
  for (int d = 0; d < count; ++d) {
    const Floats want = expected(kind, count, d);
    CHECK(good.result(d, static_cast<int64_t>(want.size())) == want);
  }
  for (int64_t k = 1; k <= calls; ++k) {
    Meeting bad(count, how, step, k);
    CAPTURE(k);
    Status done = bad.prepare();
    CHECK(static_cast<bool>(done) == (k > prepared));
    if (done) done = bad.meet();
    REQUIRE_FALSE(done);
    CHECK(done.error().message == "a call fails: " + bad.machine->failed);
    CHECK(bad.machine->calls == k);  // nothing is asked for any more
  }
}

TEST_CASE("meetings of queues, and each of their calls fails") {
  // Of six devices one waits for all, and all for it.
  for (const int count : {2, 3, 6}) {
    for (const How& how : hows) check(Kind::all_reduce, count, how);
    for (const Kind kind : {Kind::all_gather, Kind::all_to_all, Kind::permute})
      check(kind, count, hows[0]);
  }
}

TEST_CASE("queues need not meet for nothing") {
  for (const Kind kind :
       {Kind::all_reduce, Kind::all_gather, Kind::all_to_all, Kind::permute}) {
    CAPTURE(std::string(name(kind)));
    CollectiveStep step = step_of(kind, 3);
    step.elements = 0;
    step.kernels = {};
    Meeting meeting(3, hows[0], step);
    REQUIRE(meeting.prepare());
    CHECK(meeting.staged == 0);
    CHECK(meeting.meet());
    CHECK(meeting.machine->calls == 0);
  }
}

TEST_CASE("what the compiler makes others is no meeting of queues") {
  CollectiveStep scatter = step_of(Kind::reduce_scatter, 3);
  CHECK_THROWS_WITH_AS((void)Meeting(3, hows[0], scatter).meet(),
                       doctest::Contains("a collective on queues"),
                       std::logic_error);
  CollectiveStep groups = step_of(Kind::all_reduce, 3);
  groups.groups = {{0, 1}, {2}};
  CHECK_THROWS_WITH_AS((void)Meeting(3, hows[0], groups).meet(),
                       doctest::Contains("step.groups.empty()"),
                       std::logic_error);
  CollectiveStep bare = step_of(Kind::all_reduce, 3);
  bare.kernels = {};
  bare.kernels.part = 2;
  CHECK_THROWS_WITH_AS((void)Meeting(3, hows[0], bare).prepare(),
                       doctest::Contains("kernels.full"), std::logic_error);
}

}  // namespace
}  // namespace unisono::queues
