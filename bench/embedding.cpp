// What a call costs that a C++ program makes, a million times, of a function of
// Unisono's, beside calls of C++ and of Lua.
#include "bench/simulation_steps.h"
#include "bench/workload.h"

namespace bench {
namespace {

constexpr int steps = 1'000'000;

void add_simulation(Table& table, const std::string& name, Simulation peer,
                    double target_seconds) {
  if (!table.wanted("embedding", name)) return;
  Orbit ours = simulate_by_unisono(steps), theirs = peer(steps);
  for (size_t i = 0; i < 2; ++i) {
    expect_close(name, ours.position[i], theirs.position[i], 1e-9);
    expect_close(name, ours.speed[i], theirs.speed[i], 1e-9);
  }
  const Paired times =
      time_pair([&] { ours = simulate_by_unisono(steps); },
                [&] { theirs = peer(steps); }, Team::one_thread);
  table.add({.group = "embedding",
             .name = name,
             .ours = times.ours / steps,
             .peer = times.peer / steps,
             .ratio = times.ratio,
             .best_ratio = times.best_ratio,
             .target = target_seconds,
             .at_most = true,
             .note = "a call, of 10^6"});
}

}  // namespace

void embedding(Table& table) {
  add_simulation(table, "step of a simulation, beside a function pointer",
                 &simulate_by_pointer, 0.5e-6);
  if (const Simulation lua = simulate_by_lua())
    add_simulation(table, "step of a simulation, beside Lua", lua, 0);
}

}  // namespace bench
