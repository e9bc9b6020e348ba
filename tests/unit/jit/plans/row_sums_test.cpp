// Rows that are reduced, and added in runs, are one pass only where what is
// added of a row is the row's own.
#include <doctest/doctest.h>

#include <functional>

#include "jit/arrange/join_kernels.h"
#include "jit/kernel/row_sums.h"
#include "runtime/tuning/tuning.h"
#include "tests/unit/moved.h"

using namespace unisono;
using namespace unisono::jit;

namespace {

constexpr int64_t columns = 96;
enum : int { x, y, sums };  // arguments

/// y = x / sum(x, axis=1), and the sums of runs of y's rows.
Kernel pass() {
  const int64_t run = orders().reduce_run, runs = 32;
  Nest rows{
      .extents = {run * runs, columns}, .reduced = {false, true}, .exprs = {}};
  rows.exprs.push_back({.kind = Expr::Kind::load, .argument = x});
  rows.exprs.back().at = {0, {columns, 1}};
  rows.exprs.push_back(
      {.kind = Expr::Kind::reduced, .reduction = 0, .phase = 1});
  rows.exprs.push_back({.kind = Expr::Kind::operation,
                        .op = ir::Op::div,
                        .phase = 1,
                        .operands = {0, 1}});
  rows.reductions = {{.operand = 0}};
  rows.stores = {{y, {0, {columns, 1}}, 2}};
  Nest added{.extents = {runs, columns, run},
             .reduced = {false, false, true},
             .exprs = {}};
  added.exprs.push_back({.kind = Expr::Kind::load, .argument = y});
  added.exprs.back().at = {0, {columns * run, 1, columns}};
  added.exprs.push_back(
      {.kind = Expr::Kind::reduced, .reduction = 0, .phase = 1});
  added.reductions = {{.order = CombineOrder::runs, .operand = 0}};
  added.stores = {{sums, {0, {columns, 1, 0}}, 1}};
  for (Nest* nest : {&rows, &added})
    for (Expr& expr : nest->exprs) expr.at.factors.resize(nest->extents.size());
  return {.nests = {rows, added},
          .arguments = {{x, DType::F32, false},
                        {y, DType::F32, true},
                        {sums, DType::F32, true}}};
}

bool is_pass(const std::function<void(Nest& rows, Nest& added)>& change) {
  Kernel kernel = pass();
  change(kernel.nests[0], kernel.nests[1]);
  return rows_and_sums(kernel, Machine()).has_value();
}

}  // namespace

TEST_CASE("a pass over rows") {
  CHECK(is_pass([](Nest&, Nest&) {}));
  // Of some columns, from within the rows on.
  CHECK(is_pass([](Nest&, Nest& added) {
    added.extents[1] = columns - 10;
    added.exprs[0].at.constant = 10;
  }));
  // Of another array, however it lies.
  CHECK(is_pass([](Nest&, Nest& added) {
    added.exprs[0].argument = x;
    added.exprs[0].at.constant = columns;
  }));
}

TEST_CASE("no pass over rows") {
  // Elements of the next row, or of the one before.
  CHECK_FALSE(is_pass(
      [](Nest&, Nest& added) { added.exprs[0].at.constant = columns; }));
  CHECK_FALSE(
      is_pass([](Nest&, Nest& added) { added.exprs[0].at.constant = 1; }));
  CHECK_FALSE(
      is_pass([](Nest&, Nest& added) { added.exprs[0].at.constant = -1; }));
  CHECK_FALSE(
      is_pass([](Nest& rows, Nest&) { rows.stores[0].at.constant = 1; }));
  CHECK_FALSE(
      is_pass([](Nest& rows, Nest&) { rows.stores[0].at.constant = -1; }));
  // Rows that overlap, and rows that go back.
  CHECK_FALSE(is_pass([](Nest& rows, Nest& added) {
    rows.stores[0].at.factors[0] = columns / 2;
    added.exprs[0].at.factors = {columns / 2 * orders().reduce_run, 1,
                                 columns / 2};
  }));
  CHECK_FALSE(is_pass([](Nest& rows, Nest&) {
    rows.stores[0].at = {columns - 1, {columns, -1}};
  }));
  CHECK_FALSE(is_pass([](Nest& rows, Nest& added) {
    const int64_t run = orders().reduce_run;
    rows.stores[0].at = {columns * (run * 32 - 1), {-columns, 1}};
    added.exprs[0].at.factors = {-columns * run, 1, -columns};
  }));
  // Every other row, and runs that are apart.
  CHECK_FALSE(is_pass(
      [](Nest&, Nest& added) { added.exprs[0].at.factors[2] = 2 * columns; }));
  CHECK_FALSE(
      is_pass([](Nest&, Nest& added) { added.exprs[0].at.factors[0] *= 2; }));
  // Other rows than are reduced, and few runs.
  CHECK_FALSE(is_pass([](Nest& rows, Nest&) { ++rows.extents[0]; }));
  CHECK(is_pass([](Nest& rows, Nest& added) {
    rows.extents[0] = tuning().least_rows_runs * orders().reduce_run;
    added.extents[0] = tuning().least_rows_runs;
  }));
  CHECK_FALSE(is_pass([](Nest& rows, Nest& added) {
    rows.extents[0] = (tuning().least_rows_runs - 1) * orders().reduce_run;
    added.extents[0] = tuning().least_rows_runs - 1;
  }));
  // What may fail.
  CHECK_FALSE(
      is_pass([](Nest&, Nest& added) { added.exprs[0].checked = true; }));
  // Rows in another order.
  CHECK_FALSE(is_pass([](Nest&, Nest& added) {
    added.exprs[0].at.factors = {columns, 1, columns * 32};
  }));
  // Sums in the place of rows, or of what makes them.
  CHECK_FALSE(
      is_pass([](Nest&, Nest& added) { added.stores[0].argument = y; }));
  CHECK_FALSE(
      is_pass([](Nest&, Nest& added) { added.stores[0].argument = x; }));
}

TEST_CASE("a pass over rows that stay in the cache") {
  const Kernel kernel = pass();
  const auto rows_with = [&](int64_t most_sums,
                             int64_t most_cached) -> int64_t {
    const Moved moved([&](Tuning& some) {
      some.most_rows_sums = most_sums;
      some.most_rows_cached = most_cached;
    });
    const auto both = rows_and_sums(kernel, Machine());
    return both ? both->sums_plan.rows_at_once : 0;
  };
  // Of a row of x, and of y.
  constexpr int64_t row = columns * 4 * 2, sum = columns * 4;
  CHECK(rows_with(sum, 8 * row) == 8);
  CHECK(rows_with(sum, 8 * row - 1) == 4);
  CHECK(rows_with(sum, 2 * row) == 2);
  CHECK(rows_with(sum, 1) == 1);
  CHECK(rows_with(sum - 1, 8 * row) == 0);
}

TEST_CASE("what adds rows, and does nothing else") {
  const Nest sums = pass().nests[1];
  CHECK(can_add_rows(sums));
  CHECK(rows_at_once(sums) == tuning().most_rows_at_once);
  const auto with = [&](const std::function<void(Nest&)>& change) {
    Nest nest = sums;
    change(nest);
    CHECK(rows_at_once(nest) == 0);
    return can_add_rows(nest);
  };
  const Affine at{0, {columns, 1, 0}};
  CHECK_FALSE(with([&](Nest& nest) { nest.scan = {.argument = y, .at = at}; }));
  CHECK_FALSE(with([&](Nest& nest) {
    nest.scatter = {.argument = y, .at = at, .indices = {}, .indexed = {}};
  }));
  CHECK_FALSE(
      with([](Nest& nest) { nest.turns = {.count = 3, .carries = {}}; }));
  CHECK_FALSE(with([](Nest& nest) { nest.reductions.clear(); }));
  CHECK_FALSE(with([](Nest& nest) { nest.reduced = {true, true, true}; }));
  // Positions of the largest, and columns that lie apart.
  CHECK_FALSE(with(
      [](Nest& nest) { nest.reductions[0].kind = Reduction::Kind::argmax; }));
  CHECK_FALSE(with([](Nest& nest) { nest.exprs[0].at.factors[1] = 2; }));
  CHECK_FALSE(with([](Nest& nest) { nest.stores[0].at.factors[1] = -1; }));
}

TEST_CASE("a pass over rows is done once, or by all devices") {
  const Kernel both = pass();
  for (const bool once : {false, true})
    for (const bool late : {false, true}) {
      PlanSteps steps;
      for (const Nest& nest : both.nests) {
        steps.push_back({Kernel{.nests = {nest}, .arguments = both.arguments}});
        drop_arguments(std::get<Kernel>(steps.back().what));
      }
      steps[0].once = once;
      steps[1].once = late;
      join_row_sums(steps, Machine());
      REQUIRE(steps.size() == (once == late ? 1 : 2));
      CHECK(std::get<Kernel>(steps[0].what).nests.size() == 3 - steps.size());
      CHECK(steps[0].once == once);
    }
}
