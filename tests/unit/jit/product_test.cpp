// Products of matrices on simulated GPUs: every kernel of the library, around
// the edges of its tiles, against the evaluator: bit for bit where the chain is
// promised, else within the bounds of docs/accuracy.md.
#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <random>

#include "jit/transform/transforms.h"
#include "runtime/kernel_library/kernel_library.h"
#include "tests/unit/jit/compiled.h"
#include "tests/unit/jit/gpu/simulated.h"
#include "tests/unit/jit/op_table/op_table.h"

using namespace unisono;
using namespace unisono::jit;
using namespace unisono::jit::testing;
using ir::Graph;
using ir::NodeId;
using ir::Op;
using ir::Precision;
using ir::Shape;
using ir::Type;

namespace {

constexpr int64_t edges[] = {1, 7, 15, 16, 17, 31, 33, 64, 127, 130};

struct Sizes {
  int64_t batch = 1, m = 1, k = 1, n = 1;
};

/// How the operands lie in memory.
enum class Lie : uint8_t { plain, turned_a, turned_b, both_turned, cut };
constexpr int lies = 5;

/// c[b, i, j] of operands that lie so.
Graph product(DType dtype, const Sizes& s, Lie lie, Precision precision) {
  Graph g;
  const bool turn_a = lie == Lie::turned_a || lie == Lie::both_turned;
  const bool turn_b = lie == Lie::turned_b || lie == Lie::both_turned;
  const int64_t border = lie == Lie::cut ? 3 : 0;
  using Pair = std::array<int64_t, 2>;
  const Pair in_a = turn_a ? Pair{s.k, s.m} : Pair{s.m, s.k};
  const Pair in_b = turn_b ? Pair{s.n, s.k} : Pair{s.k, s.n};
  NodeId a = -1, b = -1;
  for (auto [id, size] : {std::pair{&a, in_a}, {&b, in_b}})
    *id = g.add_input({dtype, {s.batch, size[0] + border, size[1] + border}});
  if (border)
    for (auto [id, size] : {std::pair{&a, in_a}, {&b, in_b}})
      *id = g.add(
          Op::slice, {*id},
          ir::SliceAttrs{{0, 1, 3}, {1, 1, 1}, {s.batch, size[0], size[1]}});
  g.outputs = {g.add(
      Op::dot, {a, b},
      ir::DotAttrs{{0}, {0}, {turn_a ? 1 : 2}, {turn_b ? 2 : 1}, precision})};
  return g;
}

Arrays operands(const Graph& g, std::mt19937& random) {
  Arrays out;
  for (NodeId input : g.inputs) {
    const Type& type = g.type(input);
    std::normal_distribution<double> normal;
    std::vector<double> values(static_cast<size_t>(type.elements()));
    for (double& value : values) value = normal(random);
    out.push_back(array(type.dtype, type.sizes(), values));
  }
  return out;
}

/// The entries of the library that the program launches.
std::vector<std::string> entries(const Program& program) {
  std::vector<std::string> out;
  for (const Step& step : program.steps)
    if (const auto* launch = std::get_if<LaunchStep>(&step.what))
      out.push_back(launch->grid->entry);
  return out;
}

/// The library's kernel for a product, "" if it has none.
std::string kernel_of(Bench& bench, const Graph& g) {
  CompileOptions options;
  options.target = code_target(bench.runtime.devices());
  auto program = bench.compiler.compile(g, options);
  REQUIRE(program);
  const auto all = entries(**program);
  REQUIRE(all.size() == 1);
  return all[0].starts_with("dot_") ? all[0] : "";
}

/// What `have` may differ by from the sum of products `sum`, whose magnitudes
/// add up to `magnitudes`: see docs/accuracy.md.
double allowed(DType dtype, Precision precision, int64_t k, double sum,
               double magnitudes) {
  double bound = static_cast<double>(k + 8) * 0x1p-22 * magnitudes;
  if (precision == Precision::tf32) bound += 0x1p-10 * magnitudes;
  const double size = std::abs(sum) + bound;
  if (dtype == DType::F16) bound += std::max(0x1p-11 * size, 0x1p-25);
  if (dtype == DType::BF16) bound += 0x1p-8 * size;
  return bound;
}

/// Compares each element with the exact sum (in f64).
void check_within_bounds(const Graph& g, const Arrays& inputs,
                         const HostArray& have, Precision precision) {
  const DType dtype = have.type.dtype;
  auto in_f64 = [&](bool magnitudes) {
    Graph wide = g;
    Arrays widened;
    for (ir::Node& node : wide.nodes) node.type.dtype = DType::F64;
    for (const HostArray& x : inputs) {
      std::vector<double> values = values_of(x);
      if (magnitudes)
        for (double& value : values) value = std::abs(value);
      widened.push_back(array(DType::F64, x.type.sizes(), values));
    }
    return value_of(wide, widened);
  };
  const std::vector<double> sums = in_f64(false), sizes = in_f64(true),
                            got = values_of(have);
  const auto& dot = g[g.outputs[0]];
  const auto& attrs = ir::attrs<ir::DotAttrs>(dot);
  const int64_t k = g.type(dot.inputs[0]).shape[attrs.contract_a[0]].value();
  int wrong = 0;
  for (size_t i = 0; i < got.size() && wrong < 5; ++i) {
    const double bound = allowed(dtype, precision, k, sums[i], sizes[i]);
    if (std::abs(got[i] - sums[i]) <= bound) continue;
    ++wrong;
    FAIL_CHECK("element ", i, " is ", got[i], ", not ", sums[i], " within ",
               bound);
  }
}

/// Whether the library's kernel did it.
bool try_product(Bench& bench, DType dtype, const Sizes& sizes, Lie lie,
                 Precision precision, const std::string& kernel, bool exact) {
  INFO(unisono::name(dtype), " ", sizes.batch, " times ", sizes.m, " x ",
       sizes.k, " x ", sizes.n, ", layout ", static_cast<int>(lie),
       ", precision ", static_cast<int>(precision));
  const Graph g = product(dtype, sizes, lie, precision);
  const std::string entry = kernel_of(bench, g);
  const bool library = !entry.empty();
  if (library) CHECK(entry.starts_with(kernel));
  std::mt19937 random(static_cast<uint32_t>(sizes.m * 31 + sizes.k));
  const Arrays inputs = operands(g, random);
  if (exact || !library) {
    CHECK(difference(bench, g, inputs) == "");
    return library;
  }
  auto have = bench.run(g, inputs);
  if (!have) FAIL(have.error().message);
  check_within_bounds(g, inputs, (*have)[0], precision);
  return library;
}

struct Case {
  DType dtype;
  Precision precision;
  const char* kernel;
  int exact_below;  // the capability from which on matrix units are used
};
constexpr Case cases[] = {
    {DType::F32, Precision::usual, "dot_f32_", 1000},
    {DType::F32, Precision::tf32, "dot_tf32_", 80},
    {DType::F64, Precision::usual, "dot_f64_", 1000},
    {DType::F16, Precision::usual, "dot_f16_", 0},
    {DType::F16, Precision::exact, "dot_exact_f16_", 1000},
    {DType::BF16, Precision::usual, "dot_bf16_", 80},
    {DType::BF16, Precision::exact, "dot_exact_bf16_", 1000},
};

}  // namespace

TEST_CASE("products on GPUs around the edges of tiles") {
  for (int capability : {75, 80, 90}) {
    Bench bench(
        simulated_gpus(1, "cc=" + std::to_string(capability / 10) + "." +
                              std::to_string(capability % 10) +
                              ";seed=" + std::to_string(capability - 74)));
    int turn = capability;
    for (const Case& c : cases) {
      // Each size as m, k and n; all layouts.
      int by_library = 0;
      for (size_t i = 0; i < std::size(edges); ++i) {
        ++turn;
        const int64_t e = edges[i], other = edges[(i * 3 + turn) % 10];
        const Sizes large[] = {
            {1, e, 130, 127}, {1, 127, e, 130}, {1, 130, 127, e}};
        for (const Sizes& sizes :
             {large[turn % 3], Sizes{1 + turn % 3, other, e, 33}})
          by_library +=
              try_product(bench, c.dtype, sizes, static_cast<Lie>(turn % lies),
                          c.precision, c.kernel, capability < c.exact_below);
      }
      CHECK(by_library >= 7);
      for (int lie = 0; lie < lies; ++lie)
        try_product(bench, c.dtype, {2, 64, 64 + 16 * (lie % 2), 72},
                    static_cast<Lie>(lie), c.precision, c.kernel,
                    capability < c.exact_below);
    }
  }
}

TEST_CASE("large squares of products on GPUs") {
  Bench bench(simulated_gpus(1, "cc=8.0"));
  for (const Case& c : cases)
    for (Lie lie : {Lie::plain, Lie::turned_b, Lie::turned_a}) {
      if (lie == Lie::turned_a && c.dtype != DType::F16) continue;
      const Sizes sizes{24, 136, lie == Lie::plain ? 40 : 48, 144};
      const Graph g = product(c.dtype, sizes, lie, c.precision);
      const bool has_large =
          c.dtype != DType::F64 && c.precision != Precision::exact;
      CHECK(kernel_of(bench, g) ==
            c.kernel + std::string(has_large ? "128" : "64"));
      try_product(bench, c.dtype, sizes, lie, c.precision, c.kernel,
                  80 < c.exact_below);
    }
}

TEST_CASE("code for one kind of GPU is for no other") {
  struct Choice {
    int device, capability;
    bool exact;
    unsigned shared_bytes;
  };
  constexpr Choice choices[] = {{75, 75, false, 0},
                                {86, 80, false, 73728},
                                {90, 90, true, 197632},
                                {100, 80, false, 73728}};
  for (const Choice& choice : choices) {
    const GridCode::Image* image =
        kernel_library("dot_wide_bf16")->image_for(choice.device);
    REQUIRE(image);
    CHECK(image->capability == choice.capability);
    CHECK(image->exact == choice.exact);
    CHECK(image->shared_bytes == choice.shared_bytes);
    const bool has_groups = image->ptx.find("wgmma") != std::string::npos;
    CHECK(has_groups == choice.exact);
  }
}

TEST_CASE("rectangles of products on GPUs") {
  struct Wide {
    int capability;
    DType dtype;
    Lie lie;
    int64_t k;
  };
  // At the edges of 128 rows and 256 columns, 16, 32 and 64 deep; a ring of
  // stages that is gone round, and one that is not filled.
  constexpr Wide all[] = {
      {75, DType::F32, Lie::plain, 40},
      {75, DType::F16, Lie::turned_b, 24},
      {75, DType::BF16, Lie::plain, 24},
      {80, DType::F32, Lie::plain, 72},
      {80, DType::F32, Lie::turned_a, 33},
      {80, DType::F32, Lie::turned_b, 17},
      {80, DType::F32, Lie::both_turned, 48},
      {80, DType::F16, Lie::plain, 136},
      {80, DType::BF16, Lie::both_turned, 40},
      {90, DType::BF16, Lie::plain, 264},
      {90, DType::BF16, Lie::turned_a, 72},
      {90, DType::BF16, Lie::turned_b, 72},
      {90, DType::F16, Lie::both_turned, 40},
  };
  for (const Wide& wide : all) {
    Bench bench(simulated_gpus(1, "cc=" + std::to_string(wide.capability / 10) +
                                      "." +
                                      std::to_string(wide.capability % 10)));
    const std::string kernel =
        "dot_wide_" + std::string(unisono::name(wide.dtype));
    const Sizes sizes{24, 136, wide.k, 392};
    CHECK(kernel_of(bench, product(wide.dtype, sizes, wide.lie,
                                   Precision::usual)) == kernel);
    const bool exact = wide.dtype == DType::F32 ||
                       (wide.dtype == DType::BF16 && wide.capability < 80);
    try_product(bench, wide.dtype, sizes, wide.lie, Precision::usual, kernel,
                exact);
  }
}

TEST_CASE("products on GPUs of infinities, NaN and subnormals") {
  Bench bench(simulated_gpus(1, "cc=8.0"));
  std::mt19937 random(1);
  for (const Case& c : cases) {
    INFO(c.kernel);
    const Graph g = product(c.dtype, {1, 48, 40, 64}, Lie::plain, c.precision);
    REQUIRE(kernel_of(bench, g).starts_with(c.kernel));
    Arrays inputs = operands(g, random);
    constexpr double special[] = {INFINITY, -INFINITY, NAN, 1e-40, -6e-8, -0.0};
    for (HostArray& x : inputs) {
      std::vector<double> values = values_of(x);
      for (double& value : values)
        if (random() % 50 == 0) value = special[random() % std::size(special)];
      x = array(x.type.dtype, x.type.sizes(), values);
    }
    if (80 < c.exact_below) {
      CHECK(difference(bench, g, inputs) == "");
      continue;
    }
    auto have = bench.run(g, inputs);
    REQUIRE(have);
    const std::vector<double> got = values_of((*have)[0]),
                              want = value_of(g, inputs);
    int finite = 0;
    for (size_t i = 0; i < got.size(); ++i) {
      if (std::isnan(want[i])) CHECK(std::isnan(got[i]));
      if (std::isinf(want[i])) CHECK(got[i] == want[i]);
      if (!std::isfinite(want[i])) continue;
      ++finite;
      CHECK(std::abs(got[i] - want[i]) < 0.1);
    }
    CHECK(finite > 100);
  }
}
