// Steps of plans that are made by hand: what sorts, products and updates of a
// GPU become, which copies may be joined with what they copy, and what is said
// of arrays between kernels.
#include <doctest/doctest.h>

#include <algorithm>
#include <cstring>
#include <limits>
#include <memory>
#include <utility>
#include <vector>

#include "jit/plan/gpu_stages.h"
#include "jit/plan/gpu_tasks.h"
#include "jit/plan/join_copies.h"
#include "jit/plan/stored.h"
#include "runtime/kernel_library/kernel_library.h"

using namespace unisono;
using namespace unisono::jit;
using Part = Scatter::Part;

namespace {

std::vector<std::string> names(const std::vector<LaunchStep>& launches) {
  std::vector<std::string> out;
  for (const LaunchStep& launch : launches) out.push_back(launch.name);
  return out;
}

/// The kernel of the library that the first step of a product launches; "":
/// none.
std::string product_name(const DotShape& shape,
                         ir::Precision precision = ir::Precision::usual,
                         std::shared_ptr<const MatrixProduct>* library = {}) {
  Plan plan;
  const PlanSteps steps = product_steps({.shape = shape}, precision, plan);
  if (steps.empty()) return "";
  const auto& launch = std::get<LaunchStep>(steps[0].what);
  if (library) *library = launch.grid->product;
  return launch.name;
}

/// a[m, k] @ b[k, n], row after row.
DotShape rows(DType dtype, int64_t m, int64_t n, int64_t k) {
  return {.dtype = dtype,
          .m = m,
          .n = n,
          .k = k,
          .a_row = k,
          .a_column = 1,
          .b_row = n,
          .b_column = 1};
}

/// `columns` elements of each of so many positions go to an array of `sizes`
/// along the indexed axes: argument 0, from 1, at the indices in 2.
Kernel update(int64_t positions, int64_t columns, std::vector<int64_t> sizes,
              DType dtype, bool add) {
  Nest nest{
      .extents = {positions, columns}, .reduced = {true, false}, .exprs = {}};
  Expr value{.kind = Expr::Kind::load, .dtype = dtype, .argument = 1};
  value.at = {0, {columns, 1}};
  Expr twice{.kind = Expr::Kind::operation,
             .op = ir::Op::add,
             .dtype = dtype,
             .operand_dtype = dtype,
             .at = constant_affine(0, 2),
             .operands = {0, 0}};
  Expr index{.kind = Expr::Kind::load, .dtype = DType::I64, .argument = 2};
  index.at = {0, {1, 0}};
  nest.exprs = {value, twice, index};
  Scatter scatter;
  scatter.add = add;
  scatter.dtype = dtype;
  scatter.at = {0, {0, 1}};
  scatter.value = 1;
  for (const int64_t size : sizes) {
    scatter.indices.push_back(2);
    scatter.indexed.push_back({size, columns, false});
  }
  nest.scatter = scatter;
  Kernel kernel;
  kernel.nests = {nest};
  kernel.arguments = {{0, dtype, true}, {1, dtype, false}, {2, DType::I64}};
  return kernel;
}

/// What the stages of an update do; `launch`: a sort.
std::vector<Part> stages(const Kernel& kernel) {
  Plan plan;
  for (int i = 0; i < 3; ++i) plan.add_buffer(8);
  std::vector<Part> out;
  for (const PlanStep& step : gpu_stages(kernel, plan))
    if (const auto* stage = std::get_if<Kernel>(&step.what))
      if (stage->nests[0].scatter) out.push_back(stage->nests[0].scatter->part);
  return out;
}

PlanSteps list(PlanStep step) {
  PlanSteps out;
  out.push_back(std::move(step));
  return out;
}
PlanStep copy(BufferId from, BufferId to, int64_t bytes = 64) {
  return {CopyStep{from, to, bytes}};
}
PlanStep branch(BufferId flag, PlanSteps one, PlanSteps other) {
  return {IfTask{.flag = flag,
                 .then_steps = std::make_unique<PlanSteps>(std::move(one)),
                 .else_steps = std::make_unique<PlanSteps>(std::move(other))}};
}

/// A nest that stores argument 1 of argument 0.
Kernel map(BufferId from, BufferId to) {
  Kernel kernel;
  Nest nest{.extents = {16}, .reduced = {false}, .exprs = {}};
  Expr load{.kind = Expr::Kind::load, .argument = 0};
  load.at = {0, {1}};
  nest.exprs = {load};
  nest.stores = {{1, {0, {1}}, 0}};
  kernel.nests = {nest};
  kernel.arguments = {{from, DType::F32, false}, {to, DType::F32, true}};
  return kernel;
}
Kernel running_total(BufferId from, BufferId to) {
  Kernel kernel = map(from, to);
  Nest& nest = kernel.nests[0];
  nest.stores.clear();
  nest.reduced = {true};
  nest.scan.emplace();
  nest.scan->argument = 1;
  nest.scan->at = {0, {1}};
  return kernel;
}

/// Why buffer 1 is stored, which `writer` writes and `reader` reads; buffer 0
/// is an input, 2 what follows.
std::string why(PlanStep writer, PlanStep reader) {
  Plan plan;
  for (uint32_t i = 0; i < 3; ++i) {
    plan.add_buffer(int64_t{1} << 30);
    plan.buffers[i].source = i;
  }
  plan.steps.push_back(std::move(writer));
  plan.steps.push_back(std::move(reader));
  const std::vector<StoredArray> found = stored_arrays(plan);
  return found.empty() ? "" : std::string(found[0].why);
}

}  // namespace

TEST_CASE("long lines are sorted by digits, as far as its counters go") {
  const auto first = [](SortTask task) {
    Plan plan;
    return names(sort_steps(task, plan))[0];
  };
  const int64_t most = (int64_t{1} << 32) - (1 << 14);
  const SortTask line{.dtype = DType::U8, .length = most};
  CHECK(first(line) == "radix_clear_32");
  CHECK(first({.dtype = DType::U8, .length = most + 1}) == "sort_tile_8");
  CHECK(first({.dtype = DType::U8, .rows = 16, .length = int64_t{1} << 31}) ==
        "radix_clear_32");
  CHECK(first({.dtype = DType::U8, .rows = 64, .length = int64_t{1} << 31}) ==
        "sort_tile_8");

  // Keys of one byte have one digit: where they lay is all that moves.
  Plan plan;
  plan.add_buffer(1 << 20), plan.add_buffer(4 << 20);
  const SortTask task{.dtype = DType::U8,
                      .length = 1 << 20,
                      .argsort = true,
                      .from = 0,
                      .to = 1};
  CHECK(names(sort_steps(task, plan)) ==
        std::vector<std::string>{"radix_clear_32", "radix_totals_8",
                                 "radix_starts_32", "argsort_first_8"});
  CHECK(plan.buffers.size() == 4);  // counters, and keys
}

TEST_CASE("which kernel of a GPU's library multiplies") {
  // Large squares, and rectangles where they compute little beside it.
  CHECK(product_name(rows(DType::F32, 2048, 2048, 64)) == "dot_wide_f32");
  CHECK(product_name(rows(DType::F32, 2048, 2048 + 4, 64)) == "dot_wide_f32");
  CHECK(product_name(rows(DType::F32, 12800, 128, 64)) == "dot_f32_128");
  CHECK(product_name(rows(DType::F32, 64, 64, 64)) == "dot_f32_64");
  // An operand that lies evenly along neither axis.
  DotShape apart = rows(DType::F32, 64, 64, 64);
  apart.a_column = 2, apart.a_row = 128;
  CHECK(product_name(apart) == "dot_f32_any_64");
  apart = rows(DType::F32, 64, 64, 64);
  apart.b_column = 64, apart.b_row = 1;
  CHECK(product_name(apart) == "dot_f32_64");
  CHECK(product_name(rows(DType::I32, 64, 64, 64)).empty());
  // The library of the machine may take f32 for tf32; f16 it has anyway.
  std::shared_ptr<const MatrixProduct> library;
  CHECK(product_name(rows(DType::F32, 512, 512, 512), ir::Precision::tf32,
                     &library) == "dot_tf32_64");
  REQUIRE(library);
  CHECK(library->tf32);
  CHECK(product_name(rows(DType::F16, 512, 512, 512), ir::Precision::tf32,
                     &library) == "dot_f16_64");
  REQUIRE(library);
  CHECK(!library->tf32);
  product_name(rows(DType::F32, 512, 512, 512), ir::Precision::exact, &library);
  CHECK(!library);
}

TEST_CASE("updates of few columns are stages, as far as i32 counts") {
  using Parts = std::vector<Part>;
  const int64_t most = std::numeric_limits<int32_t>::max();
  const Parts winners = {Part::winners, Part::chosen},
              sorted = {Part::targets, Part::sorted}, atomic = {Part::atomic};
  CHECK(stages(update(1000, 2, {500}, DType::F32, false)) == winners);
  CHECK(stages(update(1000, 2, {500}, DType::F32, true)) == sorted);
  for (const DType dtype : {DType::I32, DType::U32, DType::I64, DType::U64})
    CHECK(stages(update(1000, 2, {500}, dtype, true)) == atomic);
  CHECK(stages(update(1000, 2, {500}, DType::I16, true)) == sorted);
  // Positions and targets.
  CHECK(stages(update(most - 1, 1, {500}, DType::I32, true)) == atomic);
  CHECK(stages(update(most, 1, {500}, DType::I32, true)).empty());
  CHECK(stages(update(1000, 1, {most - 1}, DType::I32, true)) == atomic);
  CHECK(stages(update(1000, 1, {most}, DType::I32, true)).empty());
  CHECK(stages(update(1000, 1, {1 << 16, 1 << 15}, DType::I32, true)).empty());
  CHECK(stages(update(1000, 1, {most, most, 4}, DType::I32, true)).empty());
  CHECK(stages(update(1000, 1, {0}, DType::I32, true)).empty());
}

TEST_CASE("a result may lie where what it is made of did") {
  // Buffer 0 becomes 1: it may be read until that, and by nobody then.
  PlanSteps steps = list(copy(0, 1));
  CHECK(!may_replace(steps, 0, 1));  // nothing is made
  steps = list({map(0, 1), {}});
  CHECK(may_replace(steps, 0, 1));
  steps.push_back({map(0, 2), {}});
  CHECK(!may_replace(steps, 0, 1));
  // The flag of a branch is read before its steps, and after those before it.
  steps = list(branch(0, list({map(2, 1), {}}), list({map(3, 1), {}})));
  CHECK(may_replace(steps, 0, 1));
  PlanSteps late = list({map(2, 1), {}});
  late.push_back(branch(0, list(copy(2, 3)), list(copy(3, 2))));
  CHECK(!may_replace(late, 0, 1));
  late[1] = branch(4, list(copy(2, 3)), list(copy(3, 2)));
  CHECK(may_replace(late, 0, 1));
  late[1] = branch(4, list(copy(2, 3)), list(copy(0, 2)));
  CHECK(!may_replace(late, 0, 1));
}

TEST_CASE("a copy of all of an array is joined with it, one of a part is not") {
  for (const int64_t bytes : {64, 32}) {
    Plan plan;
    plan.add_buffer(64), plan.add_buffer(64), plan.add_buffer(bytes);
    PlanSteps steps = list({map(0, 1), {}});
    steps.push_back(copy(1, 2, bytes));
    join_copies(plan, 1, {2}, steps);
    CHECK(steps.size() == (bytes == 64 ? 1 : 2));
    const auto& kernel = std::get<Kernel>(steps[0].what);
    CHECK(kernel.arguments[1].buffer == (bytes == 64 ? 2 : 1));
  }
}

TEST_CASE("why an array between two kernels is stored") {
  const auto has = [](const std::string& text, const char* part) {
    return text.find(part) != std::string::npos;
  };
  CHECK(has(why({map(0, 1), {}}, {map(1, 2), {}}), "in another order"));
  CHECK(has(why({running_total(0, 1), {}}, {map(1, 2), {}}), "running total"));
  Kernel into = update(16, 1, {16}, DType::F32, false);
  into.arguments[0].buffer = 1;
  into.arguments[1].buffer = into.arguments[2].buffer = 0;
  CHECK(has(why({into, {}}, {map(1, 2), {}}), "x[i] = v"));
  into.arguments[0].buffer = 2;
  into.arguments[1].buffer = 1;
  CHECK(has(why({map(0, 1), {}}, {into, {}}), "x[i] = v"));
  // Nothing to be said of copies, and of what nobody computes with.
  CHECK(why(copy(0, 1), {map(1, 2), {}}).empty());
  CHECK(why({map(0, 1), {}}, copy(1, 2)).empty());
  Kernel idle = map(0, 2);
  idle.arguments.push_back({1, DType::F32, false});
  CHECK(why({map(0, 1), {}}, {std::move(idle), {}}).empty());
}
