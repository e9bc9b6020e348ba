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
  // What is less than the largest number of another array of another type, and
  // of one that was rounded before.
  check_rows(bench, R"(%2: f32[3, 2048] = cast %1
%3: f32[3, 2048] = sin %2
%4: f32[3] = max %3 axes=[1]
%5: R = cast %4
%6: X = broadcast %5 axes=[0]
%7: X = sub %0, %6
%8: X = exp %7
%9: R = sum %8 axes=[1]
return %8, %9
)",
             "bf16", 3, 2048);
  check_rows(bench, R"(%2: f64[3, 2048] = cast %0
%3: f64[3] = max %2 axes=[1]
%4: R = cast %3
%5: X = broadcast %4 axes=[0]
%6: X = sub %0, %5
%7: X = exp %6
%8: R = sum %7 axes=[1]
return %7, %8
)",
             "f32", 3, 2048);
  check_rows(bench,
             below("dot %0, %1 batch_a=[0] batch_b=[0] contract_a=[1] "
                   "contract_b=[1]"),
             "f32", 3, 2048);
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

TEST_CASE("rows that lie otherwise, and rows of several types") {
  Bench bench(simulated_gpus(1));
  // Results that lie across, and operands that begin beside a wide access.
  check_rows(bench, R"(%2: R = sum %0 axes=[1]
%3: X = broadcast %2 axes=[0]
%4: X = div %0, %3
%5: f32[2048, 3] = transpose %4 axes=[1, 0]
return %5
)",
             "f32", 3, 2048);
  check_rows(bench, R"(%2: f32[3, 2044] = slice %0 start=[0, 1]
%3: f32[3] = max %2 axes=[1]
%4: f32[3, 2044] = broadcast %3 axes=[0]
%5: f32[3, 2044] = sub %2, %4
%6: f32[3, 2044] = exp %5
%7: f32[3] = sum %6 axes=[1]
%8: f32[3, 2044] = broadcast %7 axes=[0]
%9: f32[3, 2044] = div %6, %8
return %9
)",
             "f32", 3, 2048);
  // Elements of 4 and of 8 bytes beside each other.
  check_rows(bench, R"(%2: R = max %0 axes=[1]
%3: X = broadcast %2 axes=[0]
%4: X = sub %0, %3
%5: X = exp %4
%6: f64[3, 2048] = cast %5
%7: f64[3, 2048] = exp %6
%8: f64[3] = sum %7 axes=[1]
%9: f64[3, 2048] = broadcast %8 axes=[0]
%10: f64[3, 2048] = div %7, %9
%11: f64[3] = max %10 axes=[1]
%12: f64[3, 2048] = broadcast %11 axes=[0]
%13: f64[3, 2048] = sub %10, %12
return %13, %5
)",
             "f32", 3, 2048);
  // One row after another, each of which is needed for a while.
  check_rows(bench, R"(%2: X = exp %0
%3: X = sin %1
%4: R = sum %2 axes=[1]
%5: R = sum %3 axes=[1]
%6: X = broadcast %4 axes=[0]
%7: X = broadcast %5 axes=[0]
%8: X = mul %2, %7
%9: X = tanh %8
%10: R = sum %9 axes=[1]
%11: X = broadcast %10 axes=[0]
%12: X = mul %9, %11
%13: X = add %12, %3
%14: X = cos %13
%15: R = sum %14 axes=[1]
%16: X = broadcast %15 axes=[0]
%17: X = add %14, %16
%18: X = add %17, %6
%19: R = max %18 axes=[1]
%20: X = broadcast %19 axes=[0]
%21: X = sub %18, %20
return %21, %13
)",
             "f32", 2, 2048);
  // Two axes are a row's.
  check_rows(bench, R"(%2: f32[3, 16, 128] = reshape %0
%3: f32[3, 16, 128] = reshape %1
%4: f32[3, 16] = sum %3 axes=[2]
%5: f32[3, 16, 128] = broadcast %4 axes=[0, 1]
%6: f32[3, 16, 128] = add %2, %5
%7: f32[3] = max %6 axes=[1, 2]
%8: f32[3, 16, 128] = broadcast %7 axes=[0]
%9: f32[3, 16, 128] = sub %6, %8
%10: f32[3, 16, 128] = exp %9
%11: f32[3] = sum %10 axes=[1, 2]
%12: f32[3, 16, 128] = broadcast %11 axes=[0]
%13: f32[3, 16, 128] = div %10, %12
return %13
)",
             "f32", 3, 2048);
  // Which place of a row is the largest one's.
  check_rows(bench, R"(%2: X = sin %0
%3: i32[3] = argmax %2 axes=[1]
%4: f32[3] = cast %3
%5: X = broadcast %4 axes=[0]
%6: X = add %2, %5
%7: R = max %6 axes=[1]
%8: X = broadcast %7 axes=[0]
%9: X = sub %6, %8
return %9
)",
             "f32", 3, 2048);
  // Products of integers, that are kept, and of rows of a table.
  check_rows(bench, R"(%2: i32[3, 2048] = cast %0
%3: i32[3] = prod %2 axes=[1]
%4: i32[3, 2048] = broadcast %3 axes=[0]
%5: i32[3, 2048] = sub %2, %4
%6: i32[3] = sum %5 axes=[1]
%7: i32[3, 2048] = broadcast %6 axes=[0]
%8: i32[3, 2048] = sub %5, %7
return %8
)",
             "f32", 3, 2048);
}
