// Products of matrices that are steps of their own, in tiles: which they are,
// and where their operands lie, views among them.
#include <string>
#include <vector>

#include "jit/pipeline.h"
#include "jit/plan/cpu_lowering.h"
#include "jit/plan/fuse.h"
#include "tests/unit/jit/compiled.h"

using namespace unisono;
using namespace unisono::jit;
using namespace unisono::jit::testing;

namespace {

/// Rows, columns, contracted elements and so on; the strides of a and b.
using Place = std::vector<int64_t>;

Place place_of(const DotShape& s) {
  Place out = {s.batch,    s.m,       s.n,       s.k,     s.a_offset,
               s.b_offset, s.a_batch, s.b_batch, s.b_row, s.b_column};
  if (!s.is_view()) {
    out.insert(out.end(), {s.a_row, s.a_column});
    return out;
  }
  for (const auto& axes : {s.a_rows, s.a_columns})
    for (const DotShape::Axis& axis : axes)
      out.insert(out.end(), {axis.extent, axis.stride});
  return out;
}

/// The products that are steps, of a graph that computes as the evaluator does.
std::vector<Place> products(const std::string& text) {
  INFO(text);
  const auto graph = ir::parse(text);
  if (!graph) FAIL(graph.error().message);
  Arrays inputs;
  for (const ir::Type& type : graph->input_types()) {
    std::vector<double> values;
    for (int64_t i = 0; i < type.elements(); ++i)
      values.push_back(0.25 * static_cast<double>((i * 7 + 3) % 23 - 11));
    inputs.push_back(array(type.dtype, type.sizes(), values));
  }
  Bench bench(32);
  CHECK(difference(bench, *graph, inputs) == "");
  const CpuLowering lowering{Machine{.vector_bytes = 32}};
  std::vector<Place> out;
  for (const PlanStep& step : fuse(optimise(*graph), true, lowering).steps)
    if (const auto* dot = std::get_if<DotTask>(&step.what))
      out.push_back(place_of(dot->shape));
  return out;
}

using Places = std::vector<Place>;

/// Windows of three rows of %0, times %1.
std::string windows(const std::string& of, const std::string& weights) {
  std::string text =
      "%0: f32[40, 10] = input\n%1: f32" + weights + " = input\n" + of;
  for (int i = 0; i < 3; ++i)
    text += "%" + std::to_string(3 + 2 * i) +
            ": f32[38, 8] = slice %2 start=[" + std::to_string(i) + ", 1]\n%" +
            std::to_string(4 + 2 * i) + ": f32[1, 38, 8] = reshape %" +
            std::to_string(3 + 2 * i) + "\n";
  return text + "%9: f32[3, 38, 8] = concat %4, %6, %8 axis=0\n";
}

}  // namespace

TEST_CASE("products of matrices are steps of their own") {
  CHECK(products("%0: f32[24, 32] = input\n%1: f32[32, 40] = input\n"
                 "%2: f32[24, 40] = dot %0, %1 contract_a=[1] contract_b=[0]\n"
                 "return %2\n") ==
        Places{{1, 24, 40, 32, 0, 0, 0, 0, 40, 1, 32, 1}});
  // Transposed, and part of an array.
  CHECK(products("%0: f64[32, 24] = input\n%1: f64[42, 35] = input\n"
                 "%2: f64[40, 32] = slice %1 start=[2, 3]\n"
                 "%3: f64[24, 40] = dot %0, %2 contract_a=[0] contract_b=[1]\n"
                 "return %3\n") ==
        Places{{1, 24, 40, 32, 0, 73, 0, 0, 1, 35, 1, 24}});
  // A batch, and two axes that are contracted.
  CHECK(products("%0: f32[5, 24, 8, 4] = input\n%1: f32[5, 8, 4, 40] = input\n"
                 "%2: f32[5, 24, 40] = dot %0, %1 batch_a=[0] batch_b=[0] "
                 "contract_a=[2, 3] contract_b=[1, 2]\nreturn %2\n") ==
        Places{{5, 24, 40, 32, 0, 0, 768, 1280, 40, 1, 32, 1}});
  // The first factor is computed; the result is used.
  CHECK(products("%0: f32[24, 32] = input\n%1: f32[32, 40] = input\n"
                 "%2: f32[24, 32] = tanh %0\n"
                 "%3: f32[24, 40] = dot %2, %1 contract_a=[1] contract_b=[0]\n"
                 "%4: f32[24, 40] = neg %3\nreturn %4\n")
            .size() == 1);
}

TEST_CASE("products that are nests like others") {
  const auto product = [](const std::string& dtype, int m, int k, int n) {
    const auto type = [&](int rows, int columns) {
      return dtype + "[" + std::to_string(rows) + ", " +
             std::to_string(columns) + "]";
    };
    return products("%0: " + type(m, k) + " = input\n%1: " + type(k, n) +
                    " = input\n%2: " + type(m, n) +
                    " = dot %0, %1 contract_a=[1] contract_b=[0]\n"
                    "return %2\n");
  };
  CHECK(product("i32", 24, 32, 40).empty());
  CHECK(product("f32", 7, 100, 40).empty());
  CHECK(product("f32", 8, 100, 40).size() == 1);
  CHECK(product("f32", 100, 100, 3).empty());
  CHECK(product("f32", 100, 100, 4).size() == 1);
  CHECK(product("f32", 100, 3, 100).empty());
  CHECK(product("f32", 100, 4, 100).size() == 1);
  CHECK(product("f32", 16, 16, 15).empty());
  CHECK(product("f32", 16, 16, 16).size() == 1);
}

TEST_CASE("products of windows read them where they lie") {
  const std::string array = "%2: f32[40, 10] = reshape %0\n";
  const std::string computed = "%2: f32[40, 10] = tanh %0\n";
  const std::string product =
      "%10: f32[38, 20] = dot %9, %1 contract_a=[0, 2] contract_b=[0, 1]\n"
      "return %10\n";
  const Place form = {1, 38, 20, 24, 1, 0, 0, 0, 20, 1, 38, 10, 3, 10, 8, 1};
  for (const std::string& of : {array, computed})
    CHECK(products(windows(of, "[3, 8, 20]") + product) == Places{form});
  // The other factor is computed, or lies unevenly.
  CHECK(products(windows(array, "[3, 8, 20]") +
                 "%10: f32[3, 8, 20] = exp %1\n"
                 "%11: f32[38, 20] = dot %9, %10 contract_a=[0, 2] "
                 "contract_b=[0, 1]\nreturn %11\n") == Places{form});
  CHECK(products(windows(array, "[4, 9, 20]") +
                 "%10: f32[3, 8, 20] = slice %1 start=[1, 0, 0]\n"
                 "%11: f32[38, 20] = dot %9, %10 contract_a=[0, 2] "
                 "contract_b=[0, 1]\nreturn %11\n") == Places{form});
  // Windows that are stored anyway, windows of few columns, and those of no
  // columns at all.
  CHECK(products(windows(array, "[3, 8, 20]") +
                 "%10: f32[3, 8, 38] = transpose %9 axes=[0, 2, 1]\n"
                 "%11: f32[3, 8, 38] = cumsum %10 axis=2\n"
                 "%12: f32[38, 20] = dot %9, %1 contract_a=[0, 2] "
                 "contract_b=[0, 1]\nreturn %12, %11, %9\n")
            .size() == 1);
  CHECK(products(windows(array, "[3, 8, 3]") +
                 "%10: f32[38, 3] = dot %9, %1 contract_a=[0, 2] "
                 "contract_b=[0, 1]\nreturn %10\n")
            .empty());
  CHECK(products(windows(array, "[3, 8, 0]") +
                 "%10: f32[38, 0] = dot %9, %1 contract_a=[0, 2] "
                 "contract_b=[0, 1]\nreturn %10\n")
            .empty());
}
