#include <fmt/format.h>

#include <cmath>
#include <string>

#include "bench/peers.h"
#include "bench/workload.h"

namespace bench {

using unisono::lang::Value;

void primitives(Table& table) {
  const std::string group = "8 primitives";
  if (!table.wanted(group, "cumsum sort argsort transpose gather")) return;
  const size_t n = size_t{1} << 24, m = size_t{1} << 22, side = 4096;
  Script s(
      "let x = sin(arange(16_777_216, f32)) + 1.0\n"
      "let y = sin(arange(4_194_304, f32) * 12.9898)\n"
      "let square = reshape(x, (4096, 4096))\n"
      "let index = arange(16_777_216) * 7919 % 16_777_216\n"
      "let rows = arange(4096) * 7919 % 4096\n"
      "let f_cumsum = jit(fn(x) => cumsum(x))\n"
      "let f_sort = jit(fn(x) => sort(x))\n"
      "let f_argsort = jit(fn(x) => argsort(x))\n"
      "let f_transpose = jit(fn(x) => transpose(x))\n"
      "let f_gather = jit(fn(x, i) => x[i])\n",
      1);
  const Aligned<float> x = copy_of(s, "x"), y = copy_of(s, "y");
  Aligned<float> out(n);
  Aligned<int32_t> index(n), order(m), rows(side);
  for (size_t i = 0; i < n; ++i) {
    const int32_t wrapped =
        static_cast<int32_t>(static_cast<uint32_t>(i) * 7919u);
    const int32_t size = static_cast<int32_t>(n);
    index.get()[i] = (wrapped % size + size) % size;
  }
  for (size_t i = 0; i < side; ++i)
    rows.get()[i] = static_cast<int32_t>(i * 7919 % side);
  peers::cumsum(x.get(), out.get(), n);
  expect_same("cumsum", s.floats(s.call(s["f_cumsum"], {s["x"]})), out.get(),
              1e-2);
  add_pair(
      table, s, group, "cumsum 2^24", [&] { s.call(s["f_cumsum"], {s["x"]}); },
      {[&] { peers::cumsum(x.get(), out.get(), n); }}, 0.5);
  peers::sort(y.get(), out.get(), m);
  expect_same("sort", s.floats(s.call(s["f_sort"], {s["y"]})), out.get(), 0);
  add_pair(
      table, s, group, "sort 2^22", [&] { s.call(s["f_sort"], {s["y"]}); },
      {[&] { peers::sort(y.get(), out.get(), m); }}, 0.5);
  add_pair(table, s, group, "argsort 2^22",
           [&] { s.call(s["f_argsort"], {s["y"]}); },
           {[&] { peers::argsort(y.get(), order.get(), m); }});
  peers::transpose(x.get(), out.get(), side);
  expect_same("transpose", s.floats(s.call(s["f_transpose"], {s["square"]})),
              out.get(), 0);
  add_pair(
      table, s, group, "transpose 4096^2",
      [&] { s.call(s["f_transpose"], {s["square"]}); },
      {[&] { peers::transpose(x.get(), out.get(), side); }}, 0.5);
  peers::gather(x.get(), index.get(), out.get(), n);
  expect_same("gather", s.floats(s.call(s["f_gather"], {s["x"], s["index"]})),
              out.get(), 0);
  add_pair(table, s, group, "gather 2^24 elements",
           [&] { s.call(s["f_gather"], {s["x"], s["index"]}); },
           {[&] { peers::gather(x.get(), index.get(), out.get(), n); }});
  add_pair(table, s, group, "gather 4096 rows",
           [&] { s.call(s["f_gather"], {s["square"], s["rows"]}); }, {[&] {
             peers::gather_rows(x.get(), rows.get(), out.get(), side, side);
           }});
}

}  // namespace bench
