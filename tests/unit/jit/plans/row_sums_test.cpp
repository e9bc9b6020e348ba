// Rows that are reduced, and added in runs, are one pass only where what is
// added of a row is the row's own.
#include <doctest/doctest.h>

#include <functional>

#include "jit/kernel/row_sums.h"
#include "runtime/tuning/tuning.h"

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
