// Elements on GPUs: numbers that are quick, constants that fold, checks that
// always fail, and the lines that code says it computes.
#include <fmt/format.h>

#include <string>

#include "runtime/tuning/tuning.h"
#include "tests/unit/jit/compiled.h"
#include "tests/unit/jit/gpu/simulated.h"
#include "tests/unit/jit/parsed.h"
#include "tests/unit/moved.h"

using namespace unisono;
using namespace unisono::jit;
using namespace unisono::jit::testing;

namespace {

/// Small arrays go the way of large ones.
void small_is_large(Tuning& own) { own.gpu_least_wide_map = 1; }

/// Numbers of both signs, of all sizes from 2^-100 to 2^100.
HostArray wide(int64_t n, int from) {
  std::vector<double> values;
  for (int64_t i = 0; i < n; ++i)
    values.push_back(
        std::ldexp(static_cast<double>(i % 2 ? -1 - i % 7 : 1 + i % 5),
                   static_cast<int>((i + from) * 37 % 201) - 100));
  return array(DType::F32, {n}, values);
}
/// Numbers between 1/4 and 2.
HostArray usual(int64_t n, int from) {
  std::vector<double> values;
  for (int64_t i = 0; i < n; ++i)
    values.push_back(0.25 + static_cast<double>((i + from) * 37 % 112) / 64);
  return array(DType::F32, {n}, values);
}

}  // namespace

TEST_CASE("quick numbers of a GPU are those that there are") {
  const Moved small(small_is_large);
  Bench bench(simulated_gpus(1));
  const ir::Graph graph = parsed(R"(%0: f32[5000] = input
%1: f32[5000] = input
%2: f32[5000] = exp %0
%3: f32[5000] = exp %1
%4: f32[5000] = add %2, %3
%5: f32[5000] = mul %0, %1
%6: f32[5000] = sqrt %0
%7: f32[5000] = log %1
%8: f32[5000] = div %6, %7
return %4, %5, %8
)");
  // All are usual; some exponents are not; nearly none is.
  CHECK(difference(bench, graph, {usual(5000, 0), usual(5000, 50)}) == "");
  Arrays some = {usual(5000, 0), usual(5000, 50)};
  auto* numbers = reinterpret_cast<float*>(some[1].bytes.data());
  numbers[777] = 90, numbers[1234] = -100, numbers[4999] = 1e-40f;
  CHECK(difference(bench, graph, some) == "");
  CHECK(difference(bench, graph, {wide(5000, 0), wide(5000, 100)}) == "");
  // A function by a table, which the block has in its shared memory, of all
  // numbers in two ways.
  const ir::Graph table = parsed(R"(%0: f32[5000] = input
%1: f32[5000] = input
%2: f32[5000] = erf %0
%3: f32[5000] = erf %1
%4: f32[5000] = mul %3, %1
%5: bf16[5000] = cast %0
%6: bf16[5000] = erf %5
return %2, %4, %6
)");
  CHECK(difference(bench, table, {usual(5000, 0), usual(5000, 50)}) == "");
  CHECK(difference(bench, table, some) == "");
  CHECK(difference(bench, table, {wide(5000, 0), wide(5000, 100)}) == "");
  // Exponentials alone.
  const ir::Graph powers = parsed(R"(%0: f32[5000] = input
%1: f32[5000] = input
%2: f32[5000] = exp %0
%3: f32[5000] = exp %1
%4: f32[5000] = mul %2, %3
return %4
)");
  CHECK(difference(bench, powers, {usual(5000, 0), usual(5000, 50)}) == "");
  CHECK(difference(bench, powers, some) == "");
  CHECK(difference(bench, powers, {wide(5000, 0), wide(5000, 100)}) == "");
}

TEST_CASE("sums times a power of 2 on a GPU, whatever the constants") {
  const Moved small(small_is_large);
  Bench bench(simulated_gpus(1));
  for (const std::string scale :
       {"0.5", "-0.5", "3", "1e-12", "17592186044416"})
    for (const std::string term : {"1", "-3", "1e-15", "1e15"})
      for (const std::string sum : {"add %4, %1", "sub %1, %4", "sub %4, %1"}) {
        const ir::Graph graph = parsed(
            fmt::format("%0: f32[300] = input\n%1: f32[300] = sin %0\n"
                        "%2: f32 = constant {}\n%3: f32[300] = broadcast %2\n"
                        "%4: f32[300] = constant {}\n%5: f32[300] = {}\n"
                        "%6: f32[300] = mul %5, %3\n%7: f32[300] = mul %3, %5\n"
                        "return %6, %7\n",
                        scale, term, sum));
        INFO(ir::print(graph));
        CHECK(difference(bench, graph, {usual(300, 3)}) == "");
      }
}

TEST_CASE("a check that always fails, on a GPU") {
  Bench bench(simulated_gpus(1));
  CHECK(difference(bench,
                   parsed("%0: f32[4, 3] = input\n%1: i32[2] = constant 7\n"
                          "%2: f32[2, 3] = gather %0, %1 axes=[0] @3\n"
                          "return %2\n"),
                   {array(DType::F32, {4, 3},
                          {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11})}) == "");
}

TEST_CASE("rows that a GPU gathers at once, and elements that it cannot") {
  const Moved small(small_is_large);
  Bench bench(simulated_gpus(1));
  std::vector<double> values(64 * 64), places(64);
  for (size_t i = 0; i < values.size(); ++i) values[i] = 0.5 * (i % 101);
  for (size_t i = 0; i < places.size(); ++i) places[i] = (i * 37) % 64;
  const HostArray table = array(DType::F32, {64, 64}, values),
                  rows = array(DType::I32, {64}, places);
  CHECK(difference(bench,
                   parsed("%0: f32[64, 64] = input\n%1: i32[64] = input\n"
                          "%2: f32[64, 64] = gather %0, %1 axes=[0]\n"
                          "%3: i32[64] = iota axis=0\n"
                          "%4: f32[64] = gather %0, %1, %3 axes=[0, 1]\n"
                          "return %2, %4\n"),
                   {table, rows}) == "");
  // Of an array without rows they are zeros.
  CHECK(difference(bench,
                   parsed("%0: f32[0, 64] = input\n%1: i32[64] = input\n"
                          "%2: f32[64, 64] = gather %0, %1 axes=[0] "
                          "checked=false\nreturn %2\n"),
                   {array(DType::F32, {0, 64}, {}), rows}) == "");
}

TEST_CASE("running results of bools, a warp for each row") {
  Bench bench(simulated_gpus(1));
  for (const int n : {40, 300}) {
    std::vector<double> values;
    for (int i = 0; i < 50 * n; ++i) values.push_back(i % n > i / n);
    const ir::Graph graph = parsed(fmt::format(
        "%0: bool[50, {0}] = input\n%1: bool[50, {0}] = cummax %0 axis=1\n"
        "%2: bool[50, {0}] = cummin %0 axis=1 reverse=true\nreturn %1, %2\n",
        n));
    CHECK(difference(bench, graph, {array(DType::Bool, {50, n}, values)}) ==
          "");
  }
}

TEST_CASE("code of a GPU says which lines of which files it computes") {
  Compiler compiler({.lines = [](uint32_t place) -> SourceLine {
    if (place == 1) return {"/there/main.uni", 11, 3};
    if (place == 2) return {"/there/other.uni", 22, 5};
    return {};
  }});
  Bench bench(simulated_gpus(1));
  CompileOptions options;
  options.target = code_target(bench.runtime.devices());
  // The first place that is known is the kernel's.
  const auto program = compiler.compile(
      parsed("%0: f32[100] = input\n%1: f32[100] = sin %0 @3\n"
             "%2: f32[100] = exp %1 @1\n%3: f32[100] = tanh %2 @2\n"
             "%4: f32[100] = sqrt %3 @3\nreturn %4\n"),
      options);
  REQUIRE(program);
  const auto& launch = std::get<LaunchStep>((*program)->steps[0].what);
  const std::string& ptx = launch.grid->code->images.at(0).ptx;
  CHECK(ptx.find("main.uni") != std::string::npos);
  CHECK(ptx.find("other.uni") != std::string::npos);
  CHECK(ptx.find("11 3") != std::string::npos);
  CHECK(ptx.find("22 5") != std::string::npos);
  // All kernels are one text, in which they have one unit.
  std::string text;
  CompileObserver observer;
  observer.dump = [&](const CodeText& code) { text += code.llvm; };
  compiler.observe(observer);
  REQUIRE(compiler.compile(
      parsed("%0: f32[5000] = input\n%1: f32[5000] = sin %0 @1\n"
             "%2: f32[5000] = cumsum %1 axis=0\n%3: f32[5000] = exp %2 @2\n"
             "%4: f32[5000] = cumsum %3 axis=0\nreturn %4\n"),
      options));
  const auto count = [&](const std::string& word) {
    int found = 0;
    for (size_t at = 0; (at = text.find(word, at)) != text.npos; ++at) ++found;
    return found;
  };
  CHECK(count("distinct !DISubprogram(") >= 2);
  CHECK(count("distinct !DICompileUnit(") == 1);
}
