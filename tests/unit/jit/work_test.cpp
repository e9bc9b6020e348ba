// What kernels are said to do: operations on floats, and bytes.
#include <doctest/doctest.h>

#include <string>

#include "jit/compile.h"
#include "jit/ir/text.h"

using namespace unisono;
using namespace unisono::jit;

namespace {

struct Counted {
  double flops;
  int64_t bytes;
  bool operator==(const Counted&) const = default;
};
std::ostream& operator<<(std::ostream& out, const Counted& c) {
  return out << c.flops << " flops, " << c.bytes << " bytes";
}

void add(Counted& sum, const Steps& steps) {
  for (const Step& step : steps)
    if (const auto* launch = std::get_if<LaunchStep>(&step.what)) {
      sum.flops += launch->flops;
      sum.bytes += launch->bytes;
    }
}

/// Of all launches of the printed graph's program.
Counted counted(const std::string& text) {
  auto graph = ir::parse(text);
  if (!graph) FAIL(graph.error().message);
  Compiler compiler;
  const auto program = compiler.compile(*graph, {}, nullptr);
  if (!program) FAIL(program.error().message);
  Counted sum{0, 0};
  add(sum, (*program)->steps);
  return sum;
}

}  // namespace

TEST_CASE("work of map operations") {
  CHECK(counted(R"(%0: f32[1000] = input
%1: f32[1000] = input
%2: f32[1000] = mul %0, %1
%3: f32[1000] = add %2, %0
return %3
)") == Counted{2000, 12000});
  // An fma is two, integers are none.
  CHECK(counted(R"(%0: f64[1000] = input
%1: f64[1000] = fma %0, %0, %0
return %1
)") == Counted{2000, 16000});
  CHECK(counted(R"(%0: i32[1000] = input
%1: i32[1000] = add %0, %0
return %1
)") == Counted{0, 8000});
}

TEST_CASE("work of what is broadcast counts once") {
  CHECK(counted(R"(%0: f32[10] = input
%1: f32[20, 10] = input
%2: f32[10] = exp %0
%3: f32[20, 10] = broadcast %2 axes=[1]
%4: f32[20, 10] = mul %1, %3
return %4
)") == Counted{210, 1640});
}

TEST_CASE("work of reductions and parts") {
  CHECK(counted(R"(%0: f32[30, 1000] = input
%1: f32[30] = sum %0 axes=[1]
return %1
)") == Counted{30000, 120120});
  // Of 1,000 elements every second one is read.
  CHECK(counted(R"(%0: f32[1000] = input
%1: f32[500] = slice %0 start=[0] step=[2]
%2: f32[500] = exp %1
return %2
)") == Counted{500, 4000});
}

TEST_CASE("work of a product, packed or not") {
  CHECK(counted(R"(%0: f32[256, 128] = input
%1: f32[128, 512] = input
%2: f32[256, 512] = dot %0, %1 contract_a=[1] contract_b=[0]
return %2
)") == Counted{2.0 * 256 * 128 * 512, 4 * (256 * 128 + 128 * 512 + 256 * 512)});
}
