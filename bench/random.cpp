#include "bench/peers.h"
#include "bench/workload.h"

namespace bench {

using unisono::lang::Value;

void random_numbers(Table& table) {
  const std::string group = "13 random";
  const size_t n = 100'000'000;
  if (!table.wanted(group, "uniform normal")) return;
  Script s(
      "let k = key(42)\n"
      "let uniforms = jit(fn(k) => uniform(k, f32[100_000_000]))\n"
      "let normals = jit(fn(k) => normal(k, f32[100_000_000]))\n",
      1);
  Aligned<float> out(n);
  const std::vector<Value> key = {s["k"]};
  const auto row = [&](const char* name, const Value& f, auto peer,
                       double target) {
    peer(0, 42, out.get(), n);
    expect_same(name, s.floats(s.call(f, key)), out.get(), 1e-5);
    add_pair(
        table, s, group, std::string(name) + ", 10^8", [&] { s.call(f, key); },
        {[&] { peer(0, 42, out.get(), n); }}, target);
  };
  row("uniform", s["uniforms"], peers::uniform, 0.9);
  row("normal", s["normals"], peers::normal, 0.8);
}

}  // namespace bench
