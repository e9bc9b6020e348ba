#include <fmt/format.h>

#include <cmath>
#include <string>

#include "bench/peers.h"
#include "bench/workload.h"

namespace bench {

using unisono::lang::Value;

void elementwise(Table& table) {
  const std::string group = "1 elementwise";
  const size_t n = size_t{1} << 24;
  if (table.wanted(group, "chain")) {
    Script s(
        "let n = 16_777_216\n"
        "let x = sin(arange(n, f32))\n"
        "let y = cos(arange(n, f32))\n"
        "def c1(x, y) = x + y\n"
        "def c4(x, y) = maximum((x + y) * 0.9, -1.0) - y\n"
        "def four(t, y) = maximum((t + y) * 0.9, -1.0) - y\n"
        "def c16(x, y) = four(four(four(four(x, y), y), y), y)\n"
        "let f1 = jit(c1)\nlet f4 = jit(c4)\nlet f16 = jit(c16)\n",
        1);
    const Aligned<float> x = copy_of(s, "x"), y = copy_of(s, "y");
    Aligned<float> out(n);
    for (const int operations : {1, 4, 16}) {
      const Value f = s[fmt::format("f{}", operations)];
      const std::vector<Value> arguments = {s["x"], s["y"]};
      peers::chain(operations, x.get(), y.get(), out.get(), n);
      expect_same("chain", s.floats(s.call(f, arguments)), out.get(), 1e-5);
      add_pair(
          table, s, group, fmt::format("chain of {}, 2^24", operations),
          [&] { s.call(f, arguments); },
          {[&] { peers::chain(operations, x.get(), y.get(), out.get(), n); }},
          0.8);
    }
  }
  if (table.wanted("2 Black-Scholes", "call and put")) {
    Script s(
        "let n = 16_777_216\n"
        "let s = linspace(50.0, 150.0, n)\n"
        "let k = 100.0 + 50.0 * sin(arange(n, f32))\n"
        "let t = 1.1 + cos(arange(n, f32))\n"
        "def cdf(x) {\n"
        "  let a = abs(x)\n"
        "  let k = 1.0 / (1.0 + 0.2316419 * a)\n"
        "  let w = exp(-0.5 * a * a) * 0.39894228\n"
        "  let p = ((((1.330274429 * k - 1.821255978) * k + 1.781477937) * k "
        "- 0.356563782) * k + 0.319381530)\n"
        "  let c = 1.0 - w * p * k\n"
        "  where(x < 0.0, 1.0 - c, c)\n"
        "}\n"
        "def price(s, k, t) {\n"
        "  let root = sqrt(t) * 0.3\n"
        "  let d1 = (log(s / k) + 0.065 * t) / root\n"
        "  let e = k * exp(-0.02 * t)\n"
        "  let c = s * cdf(d1) - e * cdf(d1 - root)\n"
        "  (c, c - s + e)\n"
        "}\n"
        "let f = jit(price)\n",
        1);
    const Aligned<float> spot = copy_of(s, "s"), strike = copy_of(s, "k"),
                         time = copy_of(s, "t");
    Aligned<float> call(n), put(n);
    const std::vector<Value> arguments = {s["s"], s["k"], s["t"]};
    const Value f = s["f"];
    peers::black_scholes(spot.get(), strike.get(), time.get(), call.get(),
                         put.get(), n);
    expect_same("call", s.floats(s.call(f, arguments).tuple()->items[0]),
                call.get(), 1e-3);
    add_pair(
        table, s, "2 Black-Scholes", "call and put, 2^24",
        [&] { s.call(f, arguments); },
        {[&] {
           peers::black_scholes(spot.get(), strike.get(), time.get(),
                                call.get(), put.get(), n);
         },
         Team::openmp, "peer: -ffast-math, libmvec"},
        0.8);
  }
}

}  // namespace bench
