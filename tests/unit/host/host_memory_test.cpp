// What becomes of a session, on CPU devices and on simulated GPUs, when the
// host has no memory: large blocks that our own code asks for, call by call,
// once and for ever, and pinned memory. Here is the `operator new` of this
// program.
#include <doctest/doctest.h>

#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <new>

#include "tests/unit/host/fault_programs.h"
#include "tests/unit/host/simulation.h"

#if !defined(__has_feature)
#define __has_feature(feature) 0
#endif
// The sanitizers have put themselves in the same place.
#if defined(__linux__) && !__has_feature(address_sanitizer) && \
    !__has_feature(thread_sanitizer)

// The linker's names. NOLINTNEXTLINE(bugprone-reserved-identifier)
extern "C" const char __executable_start, etext;

namespace {

/// What is less is not what a machine runs out of.
constexpr size_t large = 4096;

std::atomic<int> counted{0};
std::atomic<int> fails_from{0}, fails_to{0};

/// Of our code: libraries, and the simulation among them, are not at fault.
bool is_ours(const void* caller) {
  return caller >= &__executable_start && caller < &etext;
}

}  // namespace

__attribute__((noinline)) void* operator new(size_t bytes) {
  if (bytes >= large && fails_from.load() > 0 &&
      is_ours(__builtin_return_address(0))) {
    const int now = ++counted;
    if (now >= fails_from.load() && now <= fails_to.load())
      throw std::bad_alloc();
  }
  if (void* memory = std::malloc(bytes ? bytes : 1)) return memory;
  throw std::bad_alloc();
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, size_t) noexcept { std::free(memory); }

namespace unisono::host::testing {
namespace {

void fail_blocks(int from, int to) {
  fails_from = 0;
  counted = 0;
  fails_to = to;
  fails_from = from;
}

/// More of the host's memory than the programs for sweeps need.
constexpr FaultProgram large_programs[] = {
    {"large arrays", "all", "let f = jit(fn(x) => sort(x * 2.0))\n",
     "let y = f(arange(60000, f32))\nprint(y[59999], sum(y[:5]))\n"
     "let z = y[::2] + y[1::2]\nprint(z[7])\n"},
    {"prints", "all",
     "axis dev = devices()\n"
     "let f = pmap(fn(x) => { print(\"{sum(x)} {x[7]}\")\n"
     "  print(x)\n  psum(x, dev) }, over=dev)\n",
     "print(f(reshape(arange(6000, f32), (3, 2000)))[0, 3])\n"},
};

std::unique_ptr<Machine> machine_of(const FaultProgram& program, bool gpus) {
  if (!gpus) return std::make_unique<Machine>();
  return simulated_machine("devices=3;memory=1G;peers=" +
                           std::string(program.peers));
}

/// A session of which blocks `from` ... `to` are refused; how many there were.
int run_with(const FaultProgram& program, bool gpus,
             const std::string& expected, int from, int to) {
  INFO(program.name, gpus ? " on GPUs" : " on CPUs", ": blocks ", from, " to ",
       to, " are refused");
  auto machine = machine_of(program, gpus);
  machine->before_messages = [] { fails_from = 0; };
  fail_blocks(from, to);
  Outcome outcome = machine->run(program.definitions);
  const bool defined = outcome.ok;
  if (defined) outcome = machine->run(program.body);
  const int blocks = counted;
  fail_blocks(0, 0);
  INFO(outcome.messages);
  if (outcome.ok) {
    CHECK(outcome.output == expected);
  } else {
    CHECK(outcome.messages.find("error[U0") != std::string::npos);
    CHECK((outcome.code == lang::Code::out_of_memory ||
           outcome.messages.find("out of memory") != std::string::npos));
    CHECK(outcome.has_place());
  }
  if (!defined) CHECK(machine->run(program.definitions).ok);
  const Outcome again = machine->run(program.body);
  INFO(again.messages);
  CHECK(again.ok);
  CHECK(again.output == expected);
  machine.reset();
  if (gpus) {
    CHECK(report("simcuda_leaks") == "");
    CHECK(report("simcuda_findings") == "");
    end_contexts();
  }
  return blocks;
}

int sweep(const FaultProgram& program, bool gpus) {
  int cases = 0;
  auto machine = machine_of(program, gpus);
  REQUIRE(machine->run(program.definitions).ok);
  const Outcome outcome = machine->run(program.body);
  INFO(outcome.messages);
  REQUIRE(outcome.ok);
  machine.reset();
  const int blocks = run_with(program, gpus, outcome.output, 1 << 30, 0);
  const int step = std::max(1, blocks / 8);
  for (int k = 1; k <= blocks; k += step)
    for (int to : {k, 1 << 30}) {
      run_with(program, gpus, outcome.output, k, to);
      ++cases;
    }
  return cases;
}

TEST_CASE("each large block of the host's memory is refused") {
  const Folder folder;
  int cases = 0;
  for (bool gpus : {false, true}) {
    for (const FaultProgram& program : fault_programs)
      cases += sweep(program, gpus);
    for (const FaultProgram& program : large_programs)
      cases += sweep(program, gpus);
  }
  MESSAGE(cases << " cases");
  CHECK(cases > 100);
}

TEST_CASE("pinned memory is refused") {
  const Folder folder;
  const FaultProgram large = {
      "large copies", "none",
      "axis dev = devices()\n"
      "let f = pmap(fn(x) => psum(x, dev), over=dev)\n",
      "let x = f(reshape(arange(1800000, f32), (3, 600000)))\n"
      "save(\"pinned.npy\", x)\n"
      "print(load(\"pinned.npy\")[1, 7])\n"};
  int refused = 0;
  for (const FaultProgram* program : {&large, &fault_programs[5]}) {
    INFO(program->name);
    std::string expected;
    for (int k = 0; k < 12; ++k)
      for (const char* sticky : {"", ":sticky"}) {
        auto machine = machine_of(*program, true);
        const bool whole = k > 0;
        const std::string fault =
            whole ? "fail=cuMemHostAlloc:" + std::to_string(k) +
                        ":out_of_memory" + sticky
                  : "";
        INFO(fault);
        plan(fault);
        Outcome outcome = machine->run(program->definitions);
        if (outcome.ok) outcome = machine->run(program->body);
        INFO(outcome.messages);
        if (!whole) expected = outcome.output;
        refused += !failed_call().empty();
        plan("");
        if (outcome.ok) {
          CHECK(outcome.output == expected);
        } else {
          CHECK(outcome.code == lang::Code::out_of_memory);
          CHECK(outcome.has_place());
          CHECK(outcome.messages.find("bytes of host memory for sim:") !=
                std::string::npos);
        }
        const Outcome again = machine->run(program->body);
        INFO(again.messages);
        CHECK(again.ok);
        CHECK(again.output == expected);
        machine.reset();
        CHECK(report("simcuda_leaks") == "");
      }
    CHECK(!expected.empty());
  }
  CHECK(refused > 8);
}

}  // namespace
}  // namespace unisono::host::testing

#endif
