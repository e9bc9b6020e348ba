#include <fmt/format.h>

#include <cmath>
#include <string>

#include "bench/peers.h"
#include "bench/workload.h"

namespace bench {

using unisono::lang::Value;

void reductions(Table& table) {
  const std::string group = "3 reductions";
  if (!table.wanted(group, "sum mean max argmax any")) return;
  const size_t n = size_t{1} << 26;
  Script s(
      "let n = 67_108_864\n"
      "let x = sin(arange(n, f32) * 0.37)\n"
      "let f_sum = jit(fn(x) => sum(x))\n"
      "let f_mean = jit(fn(x) => (mean(x), var(x)))\n"
      "let f_max = jit(fn(x) => max(x))\n"
      "let f_argmax = jit(fn(x) => argmax(x))\n"
      "let f_any = jit(fn(x) => any(x > 2.0))\n",
      1);
  const Aligned<float> x = copy_of(s, "x");
  const std::vector<Value> arguments = {s["x"]};
  float mean = 0, variance = 0;
  volatile float kept = 0;
  auto row = [&](const std::string& name, const Value& f, auto peer) {
    add_pair(
        table, s, group, name + ", 2^26", [&] { s.call(f, arguments); }, {peer},
        0.8);
  };
  expect_close("sum", s.floats(s.call(s["f_sum"], arguments))[0],
               peers::sum(x.get(), n), 1e-2);
  peers::mean_variance(x.get(), n, &mean, &variance);
  expect_close("variance",
               s.floats(s.call(s["f_mean"], arguments).tuple()->items[1])[0],
               variance, 1e-4);
  row("sum", s["f_sum"], [&] { kept = peers::sum(x.get(), n); });
  row("mean and variance", s["f_mean"],
      [&] { peers::mean_variance(x.get(), n, &mean, &variance); });
  row("max", s["f_max"], [&] { kept = peers::max(x.get(), n); });
  row("argmax", s["f_argmax"],
      [&] { kept = static_cast<float>(peers::argmax(x.get(), n)); });
  row("any(x > 2)", s["f_any"],
      [&] { kept = peers::max(x.get(), n) > 2 ? 1.0F : 0.0F; });
  (void)kept;
}

}  // namespace bench
