// Kernels that are made by hand: how their nests are cut and scheduled, which
// of their arrays may lie in one place, and that what callers promise is
// looked at.
#include <doctest/doctest.h>

#include <algorithm>
#include <functional>
#include <stdexcept>
#include <utility>

#include "jit/ir/text.h"
#include "jit/kernel/choice.h"
#include "jit/kernel/grid_schedule.h"
#include "jit/kernel/schedule.h"
#include "jit/kernel/strided.h"
#include "runtime/tuning/tuning.h"

using namespace unisono;
using namespace unisono::jit;

namespace {

using Extents = std::vector<int64_t>;

Expr load(int argument, Affine at, int phase = 0) {
  Expr expr{.kind = Expr::Kind::load, .argument = argument, .phase = phase};
  expr.at = std::move(at);
  return expr;
}
/// In a nest with so many axes.
Expr operation(std::vector<ExprId> operands, size_t axes, int phase = 0) {
  Expr expr{.kind = Expr::Kind::operation, .op = ir::Op::add, .phase = phase};
  expr.operands = std::move(operands);
  expr.at = constant_affine(0, axes);
  return expr;
}
Expr reduced(size_t axes, int phase = 1) {
  Expr expr{.kind = Expr::Kind::reduced, .reduction = 0, .phase = phase};
  expr.at = constant_affine(0, axes);
  return expr;
}

/// Of arrays of f32 whose last one is written.
Kernel kernel_of(Nest nest, int arguments) {
  Kernel kernel;
  for (int i = 0; i < arguments; ++i)
    kernel.arguments.push_back({i, DType::F32, i + 1 == arguments});
  kernel.nests = {std::move(nest)};
  return kernel;
}

Affine rows_of(const Extents& extents) { return {0, dense_strides(extents)}; }

}  // namespace

// ---- cuts ------------------------------------------------------------------

TEST_CASE("a choice is cut where its operand changes") {
  for (const int64_t factor : {0, 1, -1, 2, -3, 7})
    for (const int64_t constant : {-9, -1, 0, 4, 30})
      for (const size_t axis : {0, 1}) {
        Expr choice{.kind = Expr::Kind::choice};
        choice.bounds = {0, 3, 4, 11};
        choice.at = constant_affine(constant, 3);
        choice.at.factors[axis] = factor;
        choice.at.factors[2] = 5;  // an axis that is not crossed
        Extents extents = {13, 6, 1}, wanted;
        const auto outcome = [&](int64_t i) {
          return std::ranges::count_if(choice.bounds, [&](int64_t bound) {
            return bound <= constant + factor * i;
          });
        };
        for (int64_t i = 1; i < extents[axis]; ++i)
          if (outcome(i) != outcome(i - 1)) wanted.push_back(i);
        CAPTURE(factor);
        CAPTURE(constant);
        const AxisCuts cuts = cuts_of(choice, extents);
        CHECK(cuts.at == wanted);
        if (factor) CHECK(cuts.axis == axis);
      }
}

TEST_CASE("promises to kernels that are broken") {
  Expr choice{.kind = Expr::Kind::choice};
  choice.bounds = {3};
  choice.at = {0, {1, 1}};
  CHECK_THROWS_AS((void)cuts_of(choice, {4, 4}), std::logic_error);
  CHECK_THROWS_AS((void)(constant_affine(0, 2) + constant_affine(0, 1)),
                  std::logic_error);
  CHECK_THROWS_AS((void)linearise({constant_affine(0, 1)}, {4, 4}, 1),
                  std::logic_error);
  // A reduction in two stages has no later loop over its points.
  Nest nest{.extents = {1 << 20}, .reduced = {true}, .exprs = {}};
  nest.exprs = {load(0, {0, {1}}), reduced(1), operation({0, 1}, 1, 1)};
  nest.reductions = {{.operand = 0}};
  nest.stores = {{1, {0, {1}}, 2}};
  Kernel kernel = kernel_of(std::move(nest), 2);
  CHECK_THROWS_AS(
      (void)split_stages(kernel, Machine(), [](DType, int64_t) { return 7; }),
      std::logic_error);
}

TEST_CASE("concats and pads are no views of an array in memory") {
  const auto graph = ir::parse(
      "%0: f32[4] = input\n%1: f32 = input\n"
      "%2: f32[8] = concat %0, %0 axis=0\n"
      "%3: f32[8] = pad %0, %1 low=[2] high=[2]\n"
      "%4: f32[2] = slice %0 start=[1] step=[2]\nreturn %2, %3, %4\n");
  REQUIRE(graph);
  CHECK_FALSE(moved((*graph)[2], dense({4}), {4}));
  CHECK_FALSE(moved((*graph)[3], dense({4}), {4}));
  const auto slice = moved((*graph)[4], dense({4}), {4});
  REQUIRE(slice);
  CHECK(slice->start == 1);
  CHECK(slice->strides == Extents{2});
}

// ---- CPUs ------------------------------------------------------------------

namespace {

/// A vector times a matrix of f32: rows x columns, summed over rows.
Schedule product(int64_t rows, int64_t columns, const Machine& machine,
                 DType dtype = DType::F32) {
  Nest nest{.extents = {columns, rows}, .reduced = {false, true}, .exprs = {}};
  nest.exprs = {load(0, {0, {0, 1}}), load(1, {0, {1, columns}}), reduced(2)};
  for (Expr& expr : nest.exprs) expr.dtype = dtype;
  nest.reductions = {{.kind = Reduction::Kind::dot,
                      .dtype = dtype,
                      .order = CombineOrder::chain,
                      .operand = 0,
                      .second = 1}};
  nest.stores = {{2, {0, {1, 0}}, 2}};
  Kernel kernel = kernel_of(nest, 3);
  for (Argument& argument : kernel.arguments) argument.dtype = dtype;
  return schedule(nest, kernel, machine);
}

/// The rows of a scan of f32, stored so.
bool scan_streams(const Affine& at) {
  Nest nest{.extents = {64, 1600}, .reduced = {false, true}, .exprs = {}};
  nest.exprs = {load(0, rows_of(nest.extents))};
  nest.scan = {.operand = 0, .argument = 1, .at = at};
  const Machine machine{.vector_bytes = 64, .last_level_cache = 1 << 16};
  return schedule(nest, kernel_of(nest, 2), machine).streaming;
}

}  // namespace

TEST_CASE("columns of products that are shared by threads") {
  const Machine machine{.vector_bytes = 32, .masked_bytes = true};
  // Two units at least, and four if each has two kilobytes.
  for (const auto& [columns, block] : {std::pair<int64_t, int64_t>{100, 104},
                                       {300, 256},
                                       {600, 512},
                                       {1000, 512},
                                       {1800, 512},
                                       {2500, 512},
                                       {5000, 1024},
                                       {9000, 2048}}) {
    CAPTURE(columns);
    const Schedule plan = product(4096, columns, machine);
    CHECK(plan.rows_at_once == tuning().wide_unit_rows);
    CHECK(plan.block == block);
    CHECK(plan.units == (columns + block - 1) / block);
  }
  // Too little work for a second thread.
  CHECK(product(16, 2000, machine).units == 1);
  // Registers hold all of a short row.
  CHECK(product(4096, 64, machine).lanes == 64);
  CHECK(product(4096, 64, machine).rows_at_once == 0);
  // A vector of one element.
  const Schedule single = product(4096, 300, {.vector_bytes = 8}, DType::F64);
  CHECK(single.lanes == 1);
  CHECK(single.rows_at_once == 0);
  CHECK(single.units == 300);
}

TEST_CASE("scans bypass the cache where their groups are aligned") {
  CHECK(scan_streams({0, {1600, 1}}));
  CHECK(scan_streams({16, {1600, 1}}));
  CHECK_FALSE(scan_streams({1, {1600, 1}}));
  CHECK_FALSE(scan_streams({0, {1601, 1}}));
  CHECK_FALSE(scan_streams({0, {1600, 2}}));
}

TEST_CASE("squares are whole") {
  const Machine machine{.vector_bytes = 32};
  const auto transposed = [](int64_t rows, int64_t columns) {
    Nest nest{
        .extents = {rows, columns}, .reduced = {false, false}, .exprs = {}};
    nest.exprs = {load(0, {0, {1, rows}})};
    nest.stores = {{1, rows_of(nest.extents), 0}};
    return nest;
  };
  const auto form = [&](const Nest& nest) {
    return schedule(nest, kernel_of(nest, 2), machine).form;
  };
  CHECK(form(transposed(64, 40)) == Form::tiles);
  CHECK(form(transposed(64, 41)) == Form::map);
  CHECK(form(transposed(67, 40)) == Form::map);
  // So edges are cut off.
  const Nest nest = transposed(67, 41);
  const std::vector<Nest> parts = cut_tiles(nest, kernel_of(nest, 2), machine);
  REQUIRE(parts.size() == 3);
  CHECK(parts[0].extents == Extents{64, 40});
  CHECK(parts[1].extents == Extents{3, 41});
  CHECK(parts[1].stores[0].at.constant == 64 * 41);
  CHECK(parts[2].extents == Extents{64, 1});
  CHECK(parts[2].exprs[0].at.constant == 40 * 67);
  CHECK(form(parts[0]) == Form::tiles);
}

TEST_CASE("chunks of a column that a thread of a GPU takes") {
  // Columns of `rows` elements, in runs that are doubled while that leaves
  // enough of them, and while a column, or its last axis, has as many.
  const auto chunks = [](const Extents& reduced_axes, int64_t enough) {
    Extents extents = {4};
    extents.insert(extents.end(), reduced_axes.begin(), reduced_axes.end());
    Nest nest{.extents = extents,
              .reduced = std::vector<bool>(extents.size(), true),
              .exprs = {}};
    nest.reduced[0] = false;
    Affine at = rows_of(extents);
    nest.exprs = {load(0, at), reduced(extents.size())};
    nest.reductions = {{.order = CombineOrder::runs, .operand = 0}};
    Affine to = constant_affine(0, extents.size());
    to.factors[0] = 1;
    nest.stores = {{1, to, 1}};
    Kernel kernel = kernel_of(std::move(nest), 2);
    Machine machine;
    machine.runs = {1000, 2, 0};
    machine.enough_runs = enough;
    const auto second =
        split_stages(kernel, machine, [](DType, int64_t) { return 7; });
    REQUIRE(second);
    CHECK(second->nests[0].extents[0] == 4);
    return second->nests[0].extents[1];
  };
  const int64_t run = orders().reduce_run;
  CHECK(chunks({3 * run}, 0) == 3);
  CHECK(chunks({3 * run}, 1) == 2);  // two, and one
  CHECK(chunks({5 * run}, 1) == 2);  // four, and one
  CHECK(chunks({5 * run}, 10) == 3);
  CHECK(chunks({256 * run}, 1) == 256 / tuning().most_runs_a_thread);
  CHECK(chunks({7, 12 * run}, 1) == 7 * 3);  // 12 are no multiple of 8
}

// ---- places ----------------------------------------------------------------

namespace {

/// x is reduced; y is stored on the way, and read again for z.
enum : int { x, y, z };
bool shares(const std::function<void(Nest&)>& change) {
  const Affine at{0, {1}};
  Nest nest{.extents = {100}, .reduced = {true}, .exprs = {}};
  nest.exprs = {load(x, at), operation({0, 0}, 1), reduced(1), load(y, at, 1),
                operation({3, 2}, 1, 1)};
  nest.reductions = {{.operand = 1}};
  nest.stores = {{y, at, 1}, {z, at, 4}};
  change(nest);
  return may_share(kernel_of(std::move(nest), 3), y, z);
}

}  // namespace

TEST_CASE("what is stored where something lay that was read before") {
  CHECK(shares([](Nest&) {}));
  // It is not stored, or at other places, or not later.
  CHECK_FALSE(shares([](Nest& nest) { nest.stores.pop_back(); }));
  CHECK_FALSE(shares([](Nest& nest) { nest.stores[0].argument = x; }));
  CHECK_FALSE(shares([](Nest& nest) { nest.stores[1].at = {99, {-1}}; }));
  CHECK_FALSE(shares([](Nest& nest) { nest.exprs[4].phase = 0; }));
  // The first is read at other places, or by a loop after that; the second is
  // read.
  CHECK_FALSE(shares([](Nest& nest) { nest.exprs[3].at = {99, {-1}}; }));
  CHECK_FALSE(
      shares([](Nest& nest) { nest.exprs.push_back(load(y, {0, {1}}, 2)); }));
  CHECK_FALSE(shares([](Nest& nest) { nest.exprs[3].argument = z; }));
  // A later loop computes it from what it loads once more.
  CHECK_FALSE(shares([](Nest& nest) {
    nest.reductions.push_back({.operand = 4, .phase = 2});
  }));
  CHECK_FALSE(shares([](Nest& nest) {
    nest.exprs.push_back(operation({3, 2}, 1, 2));
    nest.stores.push_back({x, {0, {1}}, 5});
  }));
}

// ---- turns -----------------------------------------------------------------

TEST_CASE("what the end of an inner loop varies with") {
  // Turns inside a nest's own: the inner carry begins with `first`, and adds
  // `next`; the nest's carry becomes what that ends as.
  const auto varies = [](Affine first, Affine next) {
    Nest nest{.extents = {5, 6}, .reduced = {false, false}, .exprs = {}};
    Expr outer = operation({}, 2), inner = outer, turns = outer, ended = outer;
    outer.kind = inner.kind = Expr::Kind::carried;
    outer.carry = inner.carry = ended.carry = 0;
    turns.kind = Expr::Kind::turns;
    ended.kind = Expr::Kind::turned;
    inner.loop = turns.loop = ended.loop = 0;
    nest.exprs = {load(0, std::move(first)),
                  load(0, std::move(next)),
                  outer,
                  inner,
                  operation({3, 1}, 2),
                  turns,
                  ended};
    nest.turns = {.count = 3, .carries = {{1, 6}}};
    nest.inner = {{.count = 4, .carries = {{0, 4}}}};
    nest.stores = {{1, {0, {6, 1}}, 2}};
    return std::pair<bool, bool>(varying_expressions(nest, 0)[6],
                                 varying_expressions(nest, 1)[6]);
  };
  const Affine fixed{0, {0, 0}}, down{0, {1, 0}}, along{0, {0, 1}};
  CHECK(varies(fixed, fixed) == std::pair(false, false));
  CHECK(varies(down, fixed) == std::pair(true, false));
  CHECK(varies(fixed, down) == std::pair(true, false));
  CHECK(varies(along, down) == std::pair(true, true));
}

// ---- GPUs ------------------------------------------------------------------

namespace {

/// The schedule of a map of f32 of these extents that loads argument 0 so.
GridSchedule grid_of(const Extents& extents, std::vector<Affine> loads,
                     int operations = 0, DType dtype = DType::F32) {
  Nest nest{.extents = extents,
            .reduced = std::vector<bool>(extents.size()),
            .exprs = {}};
  for (Affine& at : loads) nest.exprs.push_back(load(0, std::move(at)));
  for (int i = 0; i < operations; ++i)
    nest.exprs.push_back(operation({0, 0}, extents.size()));
  for (Expr& expr : nest.exprs) expr.dtype = dtype;
  nest.stores = {
      {1, rows_of(extents), static_cast<ExprId>(nest.exprs.size()) - 1}};
  Kernel kernel = kernel_of(nest, 2);
  for (Argument& argument : kernel.arguments) argument.dtype = dtype;
  return grid_schedule(nest, kernel);
}

}  // namespace

TEST_CASE("rows of a map that a thread of a GPU does at once") {
  constexpr int64_t n = 4096;
  const auto rows = [&](int64_t down, std::vector<Affine> loads) {
    const GridSchedule grid = grid_of({down, n}, std::move(loads));
    CHECK(grid.plan.block == 4);
    CHECK(grid.plan.units * grid.plan.rows * 4 == down * n);
    return grid.plan.rows;
  };
  const Affine here{n, {n, 1}}, above{0, {n, 1}};
  const int64_t most = tuning().gpu_most_map_rows;
  CHECK(rows(n, {here, above}) == most);
  CHECK(rows(n, {here}) == 1);
  // Rows that do not fill units.
  CHECK(rows(n + 1, {here, above}) == 1);
  // A row that is the same for all, and rows that are far away.
  CHECK(rows(n, {here, {0, {0, 1}}}) == 1);
  CHECK(rows(n, {here, {n + n * most / 2, {n, 1}}}) == most);
  CHECK(rows(n, {here, {n + n * (most / 2 + 1), {n, 1}}}) == 1);
}

TEST_CASE("units of a map that a thread of a GPU does one after another") {
  const int many = static_cast<int>(tuning().gpu_many_map_operations);
  const int64_t most = tuning().gpu_most_map_turns;
  const auto turns = [&](int64_t n, int operations) {
    return grid_of({n}, {{0, {1}}}, operations).turns;
  };
  CHECK(turns(1 << 26, many) == most);
  CHECK(turns(1 << 26, many - 1) == 1);
  CHECK(turns((1 << 26) + 4, many) == 1);
  // Numbers of units have 32 bits.
  CHECK(turns((int64_t{1} << 33) - 4096 * 16, many) == most);
  CHECK(turns(int64_t{1} << 33, many) == 1);
}

TEST_CASE("squares of a GPU are large where they fit") {
  const auto size = [](int64_t rows, int64_t columns, int loads,
                       int operations = 0, DType dtype = DType::F32) {
    std::vector<Affine> all(static_cast<size_t>(loads), {0, {1, rows}});
    const GridSchedule grid =
        grid_of({rows, columns}, std::move(all), operations, dtype);
    CHECK(grid.plan.form == Form::tiles);
    const int64_t side = grid.plan.block;
    CHECK(grid.blocks ==
          (rows + side - 1) / side * ((columns + side - 1) / side));
    return side;
  };
  CHECK(size(4096, 4096, 1) == large_grid_tile);
  CHECK(size(1024, 1024, 1) == grid_tile);  // few points
  CHECK(size(63, 1 << 18, 1) == grid_tile);
  CHECK(size(64, 1 << 18, 1) == large_grid_tile);
  CHECK(size(1 << 18, 63, 1) == grid_tile);
  CHECK(size(1 << 18, 64, 1) == large_grid_tile);
  // 64 x 65 elements of 4 bytes, and 16 for their place, in 48 KiB.
  CHECK(size(4096, 4096, 2) == large_grid_tile);
  CHECK(size(4096, 4096, 3) == grid_tile);
  CHECK(size(4096, 4096, 2, 0, DType::F64) == grid_tile);
  const int most = static_cast<int>(tuning().gpu_most_large_tile_exprs);
  CHECK(size(4096, 4096, 1, most - 1) == large_grid_tile);
  CHECK(size(4096, 4096, 1, most) == grid_tile);
}
