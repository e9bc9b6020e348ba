// Elements written one by one in compiled code, in place; and rows and elements
// that are sorted and chosen.
#include <fmt/format.h>

#include <string>

#include "bench/peers.h"
#include "bench/workload.h"

namespace bench {

using unisono::lang::Value;

namespace {

constexpr int turns = 1'000'000;

/// The call copies the array once, and so does the peer.
constexpr const char* program = R"(
let x = sin(arange(1_048_576, f32) * 12.9898)
let square = reshape(sin(arange(16_777_216, f32) * 12.9898), (4096, 4096))
let flat = reshape(square, (16_777_216,))
let rows = arange(4096) * 7919 % 4096
let f_if = jit(fn(x) => {
  var y = x
  for t in range(1_000_000) {
    let i = t * 7919 & 1_048_575
    if y[i] > 0.0 { y[i] = y[i] * 0.5 }
  }
  y
})
let f_swap = jit(fn(x) => {
  var y = x
  for t in range(1_000_000) {
    let i = t * 7919 & 1_048_575
    let j = i + 1 & 1_048_575
    (y[i], y[j]) = (y[j], y[i])
  }
  y
})
let few = sin(arange(1_000, f32) * 12.9898)
let f_bubble = jit(fn(x) => {
  var y = x
  for i in range(1_000) {
    for j in range(999) {
      if y[j] > y[j + 1] { (y[j], y[j + 1]) = (y[j + 1], y[j]) }
    }
  }
  y
})
let left = arange(1_000) * 7919 % 13
let right = arange(1_000) * 104_729 % 11
let f_common = jit(fn(a, b) => {
  var t = zeros(f32[1_001, 1_001])
  for i in range(1_000) {
    for j in range(1_000) {
      if a[i] == b[j] { t[i + 1, j + 1] = t[i, j] + 1.0 }
      else { t[i + 1, j + 1] = maximum(t[i, j + 1], t[i + 1, j]) }
    }
  }
  t
})
def mark(row, i) {
  var y = row
  y[i] = -1.0
  y
}
let f_mark = jit(vmap(mark))
let f_sort = jit(fn(x) => sort(x))
def f_select(x) = x[x > 0.0]
)";

}  // namespace

void updates(Table& table) {
  const std::string group = "8 updates";
  if (!table.wanted(group,
                    "write swap bubble table vmap sort of 4096 rows x[x > 0]"))
    return;
  Script s(program, 1);
  const size_t n = size_t{1} << 20, side = 4096;
  const Aligned<float> x = copy_of(s, "x"), square = copy_of(s, "square");
  Aligned<float> out(side * side);
  Aligned<int32_t> rows(side);
  for (size_t i = 0; i < side; ++i)
    rows.get()[i] = static_cast<int32_t>(i * 7919 % side);
  const auto row = [&](const std::string& name, const char* function,
                       const std::vector<Value>& arguments,
                       const std::function<void()>& peer, Team team,
                       double target) {
    const Value f = s[function];
    peer();
    expect_same(name, s.floats(s.call(f, arguments)), out.get(), 0);
    add_pair(
        table, s, group, name, [&] { s.call(f, arguments); },
        {peer, team, "peer: C++"}, target);
  };
  row(
      "write under `if`, 10^6 turns", "f_if", {s["x"]},
      [&] { peers::halve_some(x.get(), out.get(), n, turns); },
      Team::one_thread, 0);
  row(
      "swap of two elements, 10^6 turns", "f_swap", {s["x"]},
      [&] { peers::swap_some(x.get(), out.get(), n, turns); }, Team::one_thread,
      0);
  const Aligned<float> few = copy_of(s, "few");
  row(
      "bubble sort of 1000", "f_bubble", {s["few"]},
      [&] { peers::bubble_sort(few.get(), out.get(), few.size); },
      Team::one_thread, 0.33);
  row(
      "table under `if`, 1000 x 1000", "f_common", {s["left"], s["right"]},
      [&] { peers::common_table(out.get(), 1000); }, Team::one_thread, 0.33);
  row(
      "vmap of a write, 4096 rows", "f_mark", {s["square"], s["rows"]},
      [&] {
        peers::mark_rows(square.get(), rows.get(), out.get(), side, side);
      },
      Team::openmp, 0.5);
  row(
      "sort of 4096 rows", "f_sort", {s["square"]},
      [&] { peers::sort_rows(square.get(), out.get(), side, side); },
      Team::openmp, 0);
  row(
      "x[x > 0], 2^24", "f_select", {s["flat"]},
      [&] { peers::select_positive(square.get(), out.get(), side * side); },
      Team::openmp, 0.5);
}

}  // namespace bench
