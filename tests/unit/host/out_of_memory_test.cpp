// GPUs whose memory does not suffice: what nobody needs any more goes, and what
// failed is tried once more; else an error says for what there was no memory,
// and the session's variables are what they were.
#include <doctest/doctest.h>

#include <string>

#include "tests/unit/host/simulation.h"

namespace unisono::host::testing {
namespace {

constexpr const char* array = "f32[1024, 1024]";  // of 4 MiB

bool holds(const std::string& text, std::string_view part) {
  return text.find(part) != text.npos;
}

void must(Machine& machine, const std::string& text,
          const std::string& output = "") {
  INFO(text);
  const Outcome outcome = machine.run(text);
  INFO(outcome.messages);
  REQUIRE(outcome.ok);
  CHECK(outcome.output == output);
}

/// An error, which says all that it should; and nothing has changed.
void must_lack(Machine& machine, const std::string& text,
               const std::string& what, const std::string& bytes,
               const std::string& place) {
  INFO(text);
  const Outcome outcome = machine.run(text);
  INFO(outcome.messages);
  REQUIRE(!outcome.ok);
  CHECK(outcome.code == lang::Code::out_of_memory);
  CHECK(holds(outcome.messages,
              "out of memory on sim:0: " + bytes + " bytes asked for, "));
  CHECK(holds(outcome.messages, " free; "));
  CHECK(holds(outcome.messages, what));
  CHECK(holds(outcome.messages, "--> case.uni:" + place));
}

}  // namespace

TEST_CASE("no memory on a GPU: what programs captured goes with its name") {
  auto machine = simulated_machine("devices=1;memory=11M");
  must(*machine, "var w = zeros(" + std::string(array) + ") + 1.0\n");
  must(*machine, "let f = jit(fn(x) => x * sum(w))\nprint(f(1.0))\n",
       "1048576.0\n");
  // Two at a time fit, the one that `f` has seen and two more do not.
  must(*machine, "w = w + 1.0\n");
  must(*machine, "w = w + 1.0\n");
  must(*machine, "print(f(1.0))\n", "3145728.0\n");
}

TEST_CASE("no memory on a GPU: the places where an array is true") {
  auto machine = simulated_machine("devices=1;memory=2M");
  must(*machine, "let mask = arange(500_000) >= 0\n");
  must_lack(*machine, "let places = nonzero(mask)[0]\n",
            "it is for i32[500000]", "2000000", "1:22");
  must(*machine, "print(len(nonzero(mask[:7])[0]))\n", "7\n");
}

TEST_CASE("no memory on a GPU: copies of what was captured go with it") {
  auto machine = simulated_machine("devices=2;memory=11M");
  must(*machine, "var w = zeros(" + std::string(array) + ") + 1.0\n");
  must(*machine, "let f = pmap(fn(x) => x * sum(w))\nprint(f(ones(f32[2])))\n",
       "[1048576. 1048576.]\n");
  must(*machine, "w = w + 1.0\n");
  must(*machine, "let g = pmap(fn(i) => zeros(" + std::string(array) +
                     ") + i, out_axes=0)\nlet z = g(arange(2, f32))\n");
  must(*machine, "print(z[1, 0, 0], w[0, 0])\n", "1.0 2.0\n");
}

TEST_CASE("no memory on a GPU: the memory of another device there is given") {
  auto machine = simulated_machine("devices=1;memory=21M", {0, 0});
  // Each device has eight MiB for a while, then one has sixteen.
  must(*machine,
       "let big = pmap(fn(i) => zeros(f32[2, 1024, 1024]) + i, out_axes=0)\n"
       "def one() { let z = big(arange(2, f32))\n  z[1, 0, 0, 0] }\n"
       "print(one())\n",
       "1.0\n");
  must(*machine,
       "let x = zeros(f32[4, 1024, 1024]) + 1.0\n"
       "print(x[3, 0, 0])\n",
       "1.0\n");
}

TEST_CASE("no memory on a GPU: code, launches and arrays are tried again") {
  for (const char* function :
       {"cuModuleLoadDataEx", "cuLaunchKernel", "cuMemAllocFromPoolAsync"}) {
    auto machine = simulated_machine("devices=1");
    must(*machine,
         "let f = jit(fn(x) => sum(sqrt(x) + 1.0))\n"
         "let x = ones(f32[5000])\n");
    plan(std::string("fail=") + function + ":1:out_of_memory");
    must(*machine, "print(f(x))\n", "10000.0\n");
    CHECK(failed_call() == function);
    plan("");
  }
}

TEST_CASE("no memory on a GPU: captured work goes, and comes again") {
  auto machine = simulated_machine("devices=1;memory=24M");
  const std::string loop =
      "def f(x) {\n"
      "  var y = x\n"
      "  for i in range(2100) { y = sort(y) }\n"
      "  y\n"
      "}\n"
      "let g = jit(f)\n"
      "let x = ones(f32[40])\n";
  must(*machine, loop);
  for (int i = 0; i < 3; ++i) must(*machine, "print(g(x)[0])\n", "1.0\n");
  CHECK(calls("cuGraphLaunch") > 0);
  const uint64_t ended = calls("cuGraphExecDestroy");
  CHECK(!machine->run("let y = zeros(f32[8, 1024, 1024]) + 1.0\n").ok);
  CHECK(calls("cuGraphExecDestroy") > ended);
  must(*machine, "print(g(x)[0])\n", "1.0\n");
}

TEST_CASE("no memory on a GPU: an error says for what, and nothing changes") {
  auto machine = simulated_machine("devices=1;memory=18M");
  must(*machine, "var a = zeros(" + std::string(array) +
                     ") + 1.0\nvar b = a * 2.0\nvar n = 7\n");
  must_lack(*machine,
            "n = 8\nlet q = concat((a, a, a))\n"
            "n = 9\n",
            "f32[", "12582912", "2:");
  // A program's output, its working memory, data of the host.
  must_lack(*machine, "let c = jit(fn(x) => concat((x, x, x)))(a)\n",
            "it is for f32[3072, 1024]", "12582912", "1:");
  must_lack(*machine, "let c = sum(sort(concat((a, a, a)), axis=1))\n",
            "f32[3072, 1024]", "25165824", "1:");
  must(*machine, "print(a[3, 3], b[3, 3], n)\n", "1.0 2.0 8\n");
  must(*machine, "b = b + a\nprint(b[3, 3], sum(a))\n", "3.0 1048576.0\n");
}

TEST_CASE("no memory on a GPU: what was to be given away is still there") {
  auto machine = simulated_machine("devices=1;memory=14M");
  must(*machine,
       "let make = pmap(fn(i) => zeros(f32[1024, 1024]) + i, out_axes=0)\n"
       "let more = pmap(fn(x) => (concat((x, x, x)), x * 2.0), donate=(0,))\n"
       "let step = pmap(fn(x) => x * 2.0, donate=(0,))\n"
       "var x = make(ones(f32[1]))\n");
  must_lack(*machine, "let (a, b) = more(x)\n", "f32[", "12582912", "2:");
  must(*machine, "print(x[0, 3, 3], shape(x), sharding(x))\n",
       "1.0 (1, 1024, 1024) on sim:0\n");
  must(*machine, "x = step(x)\nprint(x[0, 3, 3])\n", "2.0\n");
}

}  // namespace unisono::host::testing
