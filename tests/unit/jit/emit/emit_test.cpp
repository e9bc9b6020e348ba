// Code for vectors of the least size, for numbers that need 64 bits, and names
// of functions that code calls.
#include <string>

#include "jit/emit/rare_symbol.h"
#include "runtime/tuning/tuning.h"
#include "tests/unit/jit/compiled.h"
#include "tests/unit/jit/parsed.h"
#include "tests/unit/moved.h"

using namespace unisono;
using namespace unisono::jit;
using namespace unisono::jit::testing;

namespace {

/// Of quarters, so that sums of products are exact.
Arrays quarters(const ir::Graph& graph) {
  Arrays out;
  for (const ir::Type& type : graph.input_types()) {
    std::vector<double> values;
    for (int64_t i = 0; i < type.elements(); ++i)
      values.push_back(0.25 * static_cast<double>((i * 7 + 3) % 23 - 11));
    out.push_back(array(type.dtype, type.sizes(), values));
  }
  return out;
}

void check_product(Bench& bench, const std::string& dtype, int m, int k, int n,
                   bool b_is_transposed = false) {
  const std::string a = std::to_string(m) + ", " + std::to_string(k),
                    b = b_is_transposed
                            ? std::to_string(n) + ", " + std::to_string(k)
                            : std::to_string(k) + ", " + std::to_string(n);
  const ir::Graph graph =
      parsed("%0: " + dtype + "[" + a + "] = input\n%1: " + dtype + "[" + b +
             "] = input\n%2: " + dtype + "[" + std::to_string(m) + ", " +
             std::to_string(n) + "] = dot %0, %1 contract_a=[1] contract_b=[" +
             (b_is_transposed ? "1" : "0") + "]\nreturn %2\n");
  INFO(ir::print(graph));
  CHECK(difference(bench, graph, quarters(graph)) == "");
}

std::vector<double> numbers(const std::string& text) {
  Bench bench;
  const auto out = bench.run(parsed(text), {});
  if (!out) FAIL(out.error().message);
  return values_of((*out)[0]);
}

}  // namespace

TEST_CASE("products in tiles of the least vectors") {
  const Moved small([](Tuning& own) {
    own.least_packed_side = own.least_packed_side_of_large = 64;
  });
  for (const int bytes : {16, 32}) {
    Bench bench(bytes);
    check_product(bench, "f32", 130, 263, 133);
    check_product(bench, "f64", 67, 131, 69);
    check_product(bench, "f32", 130, 131, 133, true);
  }
}

TEST_CASE("products of rows that lie far from each other") {
  Bench bench(32);
  {
    const Moved near([](Tuning& own) { own.far_block_bytes = 64; });
    // Few rows take the block from where it is, many have it packed.
    check_product(bench, "f32", 7, 40, 70);
    check_product(bench, "f32", 12, 40, 70);
    check_product(bench, "f32", 13, 40, 70);
    check_product(bench, "f32", 50, 40, 70);
  }
  check_product(bench, "f32", 50, 40, 70);
}

TEST_CASE("numbers of places beyond 32 bits") {
  CHECK(numbers("%0: i64[3000000000] = iota axis=0\n"
                "%1: i64[5] = slice %0 start=[2500000000]\nreturn %1\n") ==
        std::vector<double>{2500000000, 2500000001, 2500000002, 2500000003,
                            2500000004});
  CHECK(numbers("%0: f64[3000000000] = iota axis=0\n"
                "%1: f64[3] = slice %0 start=[2147483646]\nreturn %1\n") ==
        std::vector<double>{2147483646, 2147483647, 2147483648});
  // In front of the first one there is the padding.
  CHECK(numbers("%0: i64[10] = iota axis=0\n%1: i64 = constant 7\n"
                "%2: i64[13] = pad %0, %1 low=[3] high=[0]\n"
                "%3: i64[5] = slice %2 start=[1]\nreturn %3\n") ==
        std::vector<double>{7, 7, 0, 1, 2});
  CHECK(numbers("%0: i64[3000000000] = iota axis=0\n"
                "%1: i64[3000000000] = flip %0 axes=[0]\n"
                "%2: i64[2] = slice %1 start=[1]\nreturn %2\n") ==
        std::vector<double>{2999999998, 2999999997});
}

TEST_CASE("functions by their names in code") {
  const auto* function = reinterpret_cast<const void*>(&ir::print);
  const std::string name = symbol_of(function);
  CHECK(function_of(name) == function);
  CHECK(function_of("memcpy") == nullptr);
  const std::string prefix =
      name.substr(0, name.find_last_not_of("0123456789") + 1);
  CHECK(function_of(prefix) == nullptr);
  CHECK(function_of(prefix + "x") == nullptr);
  CHECK(function_of(prefix + "99999999999999999999999") == nullptr);
  CHECK(function_of(name + "x") == nullptr);
}
