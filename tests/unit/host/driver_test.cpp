// What a session asks of a CUDA driver, and leaves there: exact symbols, newer
// ones only where they are; the host's current context; memory before the first
// launch; two streams.
#include <doctest/doctest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include "runtime/cuda/types.h"
#include "runtime/queue.h"
#include "tests/unit/host/fault_programs.h"
#include "tests/unit/host/simulation.h"

namespace unisono::host::testing {
namespace {

namespace cuda = unisono::cuda;

/// A copy of the simulated driver in which these symbols have other names, as
/// in a driver that does not have them.
std::string driver_without(const std::vector<std::string>& symbols,
                           const char* name) {
  std::ifstream in(SIMCUDA_LIBRARY, std::ios::binary);
  std::string bytes(std::istreambuf_iterator<char>(in), {});
  for (const std::string& symbol : symbols) {
    const std::string whole = '\0' + symbol + '\0';
    size_t found = 0;
    for (size_t at = 0; (at = bytes.find(whole, at)) != bytes.npos; ++at) {
      bytes[at + 3] = '_';
      ++found;
    }
    REQUIRE_MESSAGE(found > 0, symbol);
  }
  std::ofstream(name, std::ios::binary) << bytes;
  return std::filesystem::absolute(name).string();
}

const std::vector<std::string> needed = {
#define CUDA_TEST_FUNCTION(...)
#define CUDA_FUNCTION(name, symbol, ...) #symbol,
#include "runtime/cuda/driver.def"
};
const std::vector<std::string> of_tests = {
#define CUDA_TEST_FUNCTION(name, symbol, ...) #symbol,
#define CUDA_FUNCTION(...)
#include "runtime/cuda/driver.def"
};

/// The host's own use of the driver beside ours.
struct HostContext {
  explicit HostContext(int device) : device(device) {
    REQUIRE(simulated<cuda::Code(unsigned)>("cuInit")(0) == cuda::success);
    retain();
    REQUIRE(simulated<cuda::Code(cuda::Context)>("cuCtxPushCurrent_v2")(
                context) == cuda::success);
  }
  ~HostContext() {
    cuda::Context popped = nullptr;
    simulated<cuda::Code(cuda::Context*)>("cuCtxPopCurrent_v2")(&popped);
    CHECK(popped == context);
    CHECK(now() == nullptr);  // and nothing below it
    end_contexts();
  }
  void retain() {
    REQUIRE(simulated<cuda::Code(cuda::Context*, int)>(
                "cuDevicePrimaryCtxRetain")(&context, device) == cuda::success);
  }
  HostContext(const HostContext&) = delete;
  static cuda::Context now() {
    cuda::Context current = nullptr;
    auto* get = simulated<cuda::Code(cuda::Context*)>("cuCtxGetCurrent");
    if (get(&current) != cuda::success) get(&current);  // planned to fail
    return current;
  }
  bool is_current() const { return now() == context; }
  int device;
  cuda::Context context = nullptr;
};

/// A session's life, and whether the context was the host's after each call.
void live(const FaultProgram& program, const HostContext& host) {
  auto devices = simulated_gpus("devices=4", {0, 1, 2});
  CHECK(host.is_current());
  if (!devices) return;
  Machine machine(std::move(*devices));
  CHECK(host.is_current());
  for (int i = 0; i < 2; ++i) {
    machine.run(program.definitions);
    CHECK(host.is_current());
    machine.run(program.body);
    CHECK(host.is_current());
    machine.run("let a = [1, 2][arange(3000) + 1]\n");
    CHECK(host.is_current());
  }
}

bool allocates(std::string_view call) {
  for (const char* one :
       {"cuMemAlloc_v2", "cuMemAllocAsync", "cuMemAllocFromPoolAsync",
        "cuMemHostAlloc", "cuMemPoolCreate", "cuModuleLoadData",
        "cuModuleLoadDataEx", "cuLinkComplete", "cuModuleGetFunction"})
    if (call == one) return true;
  return false;
}

}  // namespace

TEST_CASE("a driver without what only tests use serves as well") {
  const Folder folder;
  const std::string driver = driver_without(of_tests, "older.so");
  for (const FaultProgram& program : fault_programs) {
    INFO(program.name);
    std::string output[2];
    for (const bool older : {false, true}) {
      auto devices =
          simulated_gpus("devices=3;log=on;peers=" + std::string(program.peers),
                         {}, older ? driver : SIMCUDA_LIBRARY);
      if (!devices) FAIL(devices.error().message);
      Machine machine(std::move(*devices));
      REQUIRE(machine.run(program.definitions).ok);
      const Outcome outcome = machine.run(program.body);
      INFO(outcome.messages);
      CHECK(outcome.ok);
      output[older] = outcome.output;
    }
    CHECK(output[0] == output[1]);
  }
}

TEST_CASE("a driver without what is needed is refused, with both versions") {
  const Folder folder;
  int number = 0;
  for (const std::string& symbol : needed) {
    const std::string driver = driver_without(
        {symbol}, ("old" + std::to_string(number++) + ".so").c_str());
    auto devices = simulated_gpus("devices=1;driver=12.3", {}, driver);
    REQUIRE(!devices);
    const std::string& message = devices.error().message;
    INFO(message);
    CHECK(devices.error().kind == Error::Kind::device_lost);
    CHECK(message.find('\n') == message.npos);
    CHECK(message.find("`" + symbol + "`") != message.npos);
    if (symbol != "cuInit" && symbol != "cuDriverGetVersion") {
      CHECK(message.find("is version 12.3") != message.npos);
      CHECK(message.find("12.0 or newer is needed") != message.npos);
    }
    std::filesystem::remove(driver);
  }
}

TEST_CASE("the host's context is current after every call") {
  const Folder folder;
  int faults = 0;
  for (int device : {1, 3})  // one that sessions use, too; another one
    for (const FaultProgram& program : fault_programs) {
      INFO(program.name);
      REQUIRE(simulated<int(const char*)>("simcuda_configure")(
                  "threads=1;leaks=off;devices=4") == 0);
      HostContext host(device);
      const auto with = [&](const std::string& fault) {
        INFO(fault);
        plan(fault);
        live(program, host);
        faults += !failed_call().empty();
        plan("");
        CHECK(host.is_current());
        end_contexts();  // lost ones
        host.retain();
      };
      const uint64_t before = calls();
      with("");
      const uint64_t count = calls() - before;
      // A step that meets all kinds of calls.
      for (uint64_t k = 1 + device; k < count; k += 23 + k % 7)
        with("fail=*:" + std::to_string(k) + ":out_of_memory");
      // For ever, but for the calls that say what is current.
      for (const char* function :
           {"cuMemAllocFromPoolAsync", "cuLaunchKernel", "cuEventRecord",
            "cuMemcpyDtoHAsync_v2", "cuStreamSynchronize", "cuMemHostAlloc",
            "cuModuleLoadDataEx", "cuMemPoolCreate", "cuStreamCreate"})
        for (const char* code : {":not_supported:sticky", ":illegal_address"})
          with(std::string("fail=") + function + ":2" + code);
    }
  CHECK(faults > 400);
}

TEST_CASE("all is allocated and loaded before the first launch") {
  const Folder folder;
  for (const FaultProgram& program : fault_programs) {
    INFO(program.name);
    auto machine = simulated_machine("devices=3;log=on;peers=" +
                                     std::string(program.peers));
    // Statements that are one program each.
    REQUIRE(machine->run(program.definitions).ok);
    REQUIRE(
        machine->run("let input = reshape(arange(9000, f32), (3, 3000))\n").ok);
    const char* statements[] = {
        "let r = jit(fn(x) => { let y = sort(x * 2.0)\n"
        "  (y @ transpose(y), cumsum(y, axis=1), sum(y)) })(input)\n",
        "let r = pmap(fn(x) => psum(sort(x + 1.0), dev) * 2.0, over=dev)"
        "(input)\n",
        "let r = pmap(fn(x) => { var y = x\n"
        "  while psum(sum(y), dev) < 1e9 {\n"
        "    y = 2.0 * y + ppermute(y, dev, shift=1)\n"
        "  }\n"
        "  all_gather(y, dev) }, over=dev)(input)\n"};
    if (std::string_view(program.definitions).find("axis dev") ==
        std::string_view::npos)
      REQUIRE(machine->run("axis dev = devices()\n").ok);
    for (const char* statement : statements) {
      INFO(statement);
      plan("");
      const Outcome outcome = machine->run(statement);
      INFO(outcome.messages);
      REQUIRE(outcome.ok);
      const std::string log = report("simcuda_log");
      int launches = 0, early = 0;
      for (std::string_view call : lines(log)) {
        if (call == "cuLaunchKernel") ++launches;
        if (!allocates(call)) continue;
        ++early;
        CHECK_MESSAGE(launches == 0, call);
      }
      CHECK(launches > 1);
      CHECK(early > 1);
    }
    break;  // the definitions do not matter
  }
}

namespace {

/// Calls that wait for a GPU, between the first launch and the last.
int waits_between_launches(std::string_view log) {
  int waits = 0, since_launch = 0;
  bool launched = false;
  for (const std::string_view call : lines(log)) {
    if (call == "cuLaunchKernel") {
      waits += launched ? since_launch : 0;
      since_launch = 0;
      launched = true;
    }
    since_launch +=
        call == "cuStreamSynchronize" || call == "cuEventSynchronize";
  }
  return waits;
}

constexpr const char* steps =
    "let step = jit(fn(x, i) => x * 0.5 + x[i])\n"
    "let far = arange(300_000)\n"
    "var x = arange(100_000, f32)\n";

}  // namespace

TEST_CASE("runs of several statements are put one behind the other") {
  const Folder folder;
  auto machine = simulated_machine("devices=1;log=on;schedule=lazy");
  REQUIRE(machine->run(std::string(steps) + "x = step(x, 1)\n").ok);
  const std::string before = report("simcuda_log");
  const std::string ten =
      "x = step(x, 1)\nx = step(x, 2)\nx = step(x, 3)\nx = step(x, 1)\n"
      "x = step(x, 1)\nx = step(x, 2)\nx = step(x, 3)\nx = step(x, 1)\n";
  REQUIRE(machine->run(ten).ok);
  CHECK(waits_between_launches(report("simcuda_log").substr(before.size())) ==
        0);
  // What is printed is computed.
  const Outcome outcome = machine->run("print(x[0] > 0.0)\n");
  CHECK(outcome.output == "true\n");
}

TEST_CASE("a run that fails later is reported as it was, once, and alone") {
  const Folder folder;
  const std::string failing =
      "def at(x, i) = step(x, i)\n"
      "print(\"before\")\n"
      "x = step(x, 1)\n"
      "x = at(x, far[150_000])\n"
      "x = step(x, 2)\n"
      "x = step(x, far[250_000])\n"
      "print(\"after\")\n";
  Machine cpu;
  REQUIRE(cpu.run(steps).ok);
  Outcome wanted = cpu.run(failing);
  CHECK(!wanted.ok);
  for (const char* schedule : {"fifo", "random", "newest", "starve", "lazy"}) {
    INFO(schedule);
    auto machine =
        simulated_machine(std::string("devices=2;seed=7;schedule=") + schedule);
    REQUIRE(machine->run(steps).ok);
    const Outcome outcome = machine->run(failing);
    CHECK(!outcome.ok);
    CHECK(outcome.output == wanted.output);
    CHECK(outcome.messages == wanted.messages);
    // The session goes on, and the next run finds no error of another one.
    REQUIRE(machine->run("x = step(arange(100_000, f32), 1)\n").ok);
    CHECK(machine->run("print(x[1])\n").output == "1.5\n");
  }
}

TEST_CASE("an error of the host comes after those of runs before it") {
  const Folder folder;
  auto machine = simulated_machine("devices=1;schedule=lazy");
  REQUIRE(machine->run(steps).ok);
  const Outcome outcome = machine->run(
      "x = step(x, far[150_000])\n"
      "let y = load(\"nothing.npy\") as f32[3]\n");
  CHECK(!outcome.ok);
  INFO(outcome.messages);
  CHECK(outcome.messages.find("case.uni:1:") != std::string::npos);
  CHECK(outcome.messages.find("nothing.npy") == std::string::npos);
}

TEST_CASE("copies do not wait for kernels") {
  auto devices = simulated_gpus("devices=1;schedule=lazy");
  REQUIRE(devices);
  Device& device = *(*devices)[0];
  const int64_t bytes = 3 << 20;
  std::string from(bytes, 'a'), to(bytes, 'b');
  auto array = device.allocate(bytes);
  auto other = device.allocate(bytes);
  REQUIRE(array);
  REQUIRE(other);
  char word[16];
  REQUIRE(device.copy_to_host(word, other->data(), sizeof word));
  const auto pending = [] {
    return simulated<uint64_t(const char*)>("simcuda_counter")("pending");
  };
  const uint64_t before = pending();
  // Work in the lane of kernels, which a lazy GPU leaves undone.
  REQUIRE(device.queue()->zero(other->data(), bytes, Lane::kernels));
  CHECK(pending() > before);
  REQUIRE(device.copy_from_host(array->data(), from.data(), bytes));
  REQUIRE(device.copy_to_host(to.data(), array->data(), bytes));
  CHECK(to == from);
  CHECK(pending() > 0);
}

}  // namespace unisono::host::testing
