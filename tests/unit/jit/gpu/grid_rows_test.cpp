// Rows that a GPU's threads share: softmax and what looks like it, quotients by
// what a whole row has, rows that lie otherwise in memory than one would wish.
#include <string>

#include "tests/unit/jit/compiled.h"
#include "tests/unit/jit/gpu/simulated.h"

using namespace unisono;
using namespace unisono::jit;
using namespace unisono::jit::testing;

namespace {

/// Numbers between -2 and 2 that are no integers, no two beside each other
/// alike.
Arrays inputs_of(const ir::Graph& graph) {
  Arrays out;
  for (const ir::Type& type : graph.input_types()) {
    std::vector<double> values;
    for (int64_t i = 0; i < type.elements(); ++i)
      values.push_back(is_integer(type.dtype)
                           ? static_cast<double>(i * 37 % 5 + 1)
                           : static_cast<double>(i * 37 % 255 - 127) / 64);
    out.push_back(array(type.dtype, type.sizes(), values));
  }
  return out;
}

/// A graph of x, `dtype`[rows, n], and y, likewise. `R` is the type of a row's
/// value for each row, `X` that of x, `S` stands for what makes an R an X.
void check_rows(Bench& bench, std::string body, const std::string& dtype,
                int rows, int n) {
  const auto put = [&](const std::string& name, const std::string& text) {
    for (size_t at; (at = body.find(name)) != std::string::npos;)
      body.replace(at, name.size(), text);
  };
  body = "%0: X = input\n%1: X = input\n" + body;
  put("X", dtype + "[" + std::to_string(rows) + ", " + std::to_string(n) + "]");
  put("R", dtype + "[" + std::to_string(rows) + "]");
  INFO(body);
  auto graph = ir::parse(body);
  if (!graph) FAIL(graph.error().message);
  if (auto good = ir::verify(*graph); !good) FAIL(good.error().message);
  CHECK(difference(bench, *graph, inputs_of(*graph)) == "");
}

/// exp(x - r), where r is what the line computes of each row.
std::string below(const std::string& line) {
  return "%2: R = " + line + "\n%3: X = broadcast %2 axes=[0]\n" +
         "%4: X = sub %0, %3\n%5: X = exp %4\n%6: R = sum %5 axes=[1]\n"
         "%7: X = broadcast %6 axes=[0]\n%8: X = div %5, %7\nreturn %8\n";
}

}  // namespace

TEST_CASE("exponentials of what is below zero, and of what only looks so") {
  Bench bench(simulated_gpus(1));
  for (const int n : {256, 2048, 2051}) {
    CAPTURE(n);
    check_rows(bench, below("max %0 axes=[1]"), "f32", 3, n);
    // Of another array, the least one, and a sum.
    check_rows(bench, below("max %1 axes=[1]"), "f32", 3, n);
    check_rows(bench, below("min %0 axes=[1]"), "f32", 3, n);
    check_rows(bench, below("sum %0 axes=[1]"), "f32", 3, n);
  }
  check_rows(bench, below("max %0 axes=[1]"), "bf16", 3, 2048);
  check_rows(bench, below("max %1 axes=[1]"), "bf16", 3, 2048);
  check_rows(bench, below("max %0 axes=[1]"), "f16", 3, 2048);
  check_rows(bench, below("max %0 axes=[1]"), "f64", 3, 2048);
}

TEST_CASE("quotients by what the whole row has") {
  Bench bench(simulated_gpus(1));
  for (const std::string dtype : {"f32", "bf16", "f64"}) {
    CAPTURE(dtype);
    // Two divisors, a quotient of a quotient, and quotients in a sum.
    check_rows(bench, R"(%2: R = sum %0 axes=[1]
%3: X = broadcast %2 axes=[0]
%4: R = max %1 axes=[1]
%5: X = broadcast %4 axes=[0]
%6: X = div %0, %3
%7: X = div %1, %5
%8: X = add %6, %7
%9: X = tanh %8
%10: R = sum %9 axes=[1]
%11: X = broadcast %10 axes=[0]
%12: X = div %9, %11
%13: X = div %12, %3
return %8, %13
)",
               dtype, 2, 2048);
    // A divisor that is an element's own.
    check_rows(bench, R"(%2: R = sum %0 axes=[1]
%3: X = broadcast %2 axes=[0]
%4: X = abs %1
%5: X = exp %4
%6: X = div %3, %5
%7: R = max %6 axes=[1]
%8: X = broadcast %7 axes=[0]
%9: X = sub %6, %8
return %9
)",
               dtype, 2, 2048);
  }
}

TEST_CASE("rows of integers, of several types, and without a sum") {
  Bench bench(simulated_gpus(1));
  for (const std::string how : {"sum", "max", "min", "prod"}) {
    CAPTURE(how);
    check_rows(bench,
               "%2: X = mul %0, %1\n%3: R = " + how +
                   " %2 axes=[1]\n%4: X = broadcast %3 axes=[0]\n"
                   "%5: X = sub %2, %4\n%6: R = max %5 axes=[1]\n"
                   "%7: X = broadcast %6 axes=[0]\n%8: X = sub %5, %7\n"
                   "return %8\n",
               "i32", 3, 2048);
  }
}
