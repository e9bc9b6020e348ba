// One of several devices is lost at any operation, while others wait for what
// it should have written: nobody sees memory that was never written, in what
// was printed before the error, in results, or in kernels.
#include <doctest/doctest.h>

#include <memory>
#include <string>
#include <string_view>

#include "tests/unit/host/simulation.h"

namespace unisono::host::testing {
namespace {

/// On any number of devices.
constexpr std::string_view programs[] = {
    // What members print, which the host reads while they run.
    "@pmap(over=dev)\n"
    "def f(x) {\n"
    "  let s = psum(x, dev)\n"
    "  print(axis_index(dev), sum(s))\n"
    "  all_gather(s, dev) * x\n"
    "}\n"
    "print(sum(f(reshape(arange(d * 40, f32), (d, 40)))))\n",
    // Flags of loops.
    "@pmap(over=dev)\n"
    "def f(x) {\n"
    "  var y = x\n"
    "  var n = 0\n"
    "  while psum(sum(y), dev) > 1.0 {\n"
    "    y = ppermute(y, dev, shift=1) * 0.5\n"
    "    n += 1\n"
    "  }\n"
    "  while sum(y) > 1e-3 { y = y * 0.25 }\n"
    "  (y, n)\n"
    "}\n"
    "let (y, n) = f(1.0 + reshape(arange(d * 20, f32), (d, 20)))\n"
    "print(y[d - 1, 3], n, sum(y))\n",
    // Loops that are put again and again.
    "@pmap(over=dev)\n"
    "def f(x) {\n"
    "  var y = x\n"
    "  for i in range(30) { y = psum(sin(y), dev) * 0.25 + y }\n"
    "  y\n"
    "}\n"
    "print(sum(f(reshape(arange(d * 5000, f32), (d, 5000)))))\n",
    // What is gathered on one device, and split otherwise.
    "let f = pmap(fn(x) => x * 2.0, over=dev)\n"
    "let g = pmap(fn(x) => x + 1.0, in_axes=split(1), out_axes=split(1), "
    "over=dev)\n"
    "let a = f(reshape(arange(d * d * 20, f32), (d, d * 20)))\n"
    "print(sum(a), a[d - 1, 3])\n"
    "let b = g(a) + f(a)\n"
    "print(b[d - 1, 5], sum(b[0]))\n",
    // Runs that are left under way.
    "let f = pmap(fn(x) => sum(all_gather(x, dev), axis=0) + x, over=dev)\n"
    "let g = pmap(fn(x) => cumsum(ppermute(x, dev, shift=1)), over=dev)\n"
    "var y = f(reshape(arange(d * 5000, f32), (d, 5000)))\n"
    "for _ in range(3) { y = g(f(y)) * 0.01 }\n"
    "print(y[0, 9], y[d - 1, 3], argmax(y[1]))\n",
};

struct Sweep {
  Sweep(std::string_view program, int devices, std::string_view peers)
      : program(program), devices(devices), peers(peers) {}

  std::unique_ptr<Machine> machine(int seed) const {
    auto made = simulated_machine("devices=" + std::to_string(devices) +
                                  ";peers=" + std::string(peers) +
                                  ";seed=" + std::to_string(seed));
    REQUIRE(made->run("axis dev = devices()\nlet d = device_count()\n").ok);
    return made;
  }
  /// Loses `device` at its operation k; whether it came so far.
  bool lose(int device, int k) const {
    auto session = machine(k % 8);
    const std::string fault = "fault=" + std::to_string(device) + ":" +
                              std::to_string(k) + ":illegal_address";
    INFO(devices, " devices, peers=", peers, ", ", fault, ":\n", program);
    const std::string expected = machine_output;
    plan(fault);
    const Outcome outcome = session->run(std::string(program));
    plan("");
    INFO(outcome.output, outcome.messages);
    CHECK(expected.starts_with(outcome.output));
    if (outcome.ok) CHECK(outcome.output == expected);
    if (!outcome.ok) CHECK(outcome.code == lang::Code::device_lost);
    session.reset();
    const std::string findings = report("simcuda_findings");
    const bool struck = findings.find("planned fault") != findings.npos;
    CHECK((struck || outcome.ok));
    // The host may copy what is not there, before it sees that.
    for (std::string_view line : lines(findings))
      CHECK_MESSAGE((line.starts_with("a copy to the host reads") ||
                     line.find(": error ") != line.npos),
                    line);
    end_contexts();
    return struck;
  }

  const std::string_view program;
  const int devices;
  const std::string_view peers;
  std::string machine_output = [this] {
    const Outcome outcome = machine(0)->run(std::string(program));
    REQUIRE(outcome.ok);
    return outcome.output;
  }();
};

}  // namespace

TEST_CASE("nobody sees what a lost device did not write") {
  const char* const topologies[] = {"all", "none", "ring"};
  int cases = 0;
  for (const std::string_view program : programs)
    for (const int devices : {2, 3, 4}) {
      const Sweep sweep(program, devices, topologies[devices % 3]);
      for (int device = 0; device < devices; ++device)
        for (int k = 1 + device % 2; sweep.lose(device, k); k += 1 + k / 3)
          ++cases;
    }
  MESSAGE(cases << " cases");
}

}  // namespace unisono::host::testing
