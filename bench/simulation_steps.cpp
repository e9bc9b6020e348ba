// It sees unisono.hpp and nothing of what the other files of the bench include:
// both have an `unisono::Session`.
#include "bench/simulation_steps.h"

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <memory>

#include "embed/unisono.hpp"

#ifdef BENCH_LUA
#include <lua.hpp>
#endif

UNISONO_RECORD(bench::Orbit, position, speed)

namespace bench {
namespace {

constexpr double step_seconds = 1e-4;

std::array<double, 2> pull(std::array<double, 2> x) {
  const double cube = std::pow(x[0] * x[0] + x[1] * x[1], 1.5);
  return {x[0] / cube, x[1] / cube};
}

Orbit step(const Orbit& s, double dt) {
  const auto [ax, ay] = pull(s.position);
  const double hx = s.speed[0] - 0.5 * dt * ax, hy = s.speed[1] - 0.5 * dt * ay;
  const std::array<double, 2> moved = {s.position[0] + dt * hx,
                                       s.position[1] + dt * hy};
  const auto [bx, by] = pull(moved);
  return {moved, {hx - 0.5 * dt * bx, hy - 0.5 * dt * by}};
}

constexpr const char* unisono_program = R"(
type State = (position: f64[2], speed: f64[2])
def pull(x: f64[2]) -> f64[2] { x / sum(x * x) ** 1.5 }
def step(s: State, dt: f64) -> State {
  let half = s.speed - 0.5 * dt * pull(s.position)
  let position = s.position + dt * half
  (position = position, speed = half - 0.5 * dt * pull(position))
}
)";

}  // namespace

Orbit simulate_by_pointer(int steps) {
  // What it points to is not known when this is compiled.
  static Orbit (*volatile pointer)(const Orbit&, double) = &step;
  Orbit s;
  for (int i = 0; i < steps; ++i) s = pointer(s, step_seconds);
  return s;
}

Orbit simulate_by_unisono(int steps) {
  static unisono::Engine engine;
  static unisono::Session session = engine.session();
  static const auto step = [] {
    session.eval(unisono_program).value();
    return session.function("step").value().typed<Orbit(Orbit, double)>();
  }();
  Orbit s;
  for (int i = 0; i < steps; ++i) s = step.value()(s, step_seconds).value();
  return s;
}

#ifdef BENCH_LUA
namespace {

constexpr const char* lua_program = R"(
local function pull(x, y)
  local cube = (x * x + y * y) ^ 1.5
  return x / cube, y / cube
end
function step(x, y, vx, vy, dt)
  local ax, ay = pull(x, y)
  local hx, hy = vx - 0.5 * dt * ax, vy - 0.5 * dt * ay
  x, y = x + dt * hx, y + dt * hy
  local bx, by = pull(x, y)
  return x, y, hx - 0.5 * dt * bx, hy - 0.5 * dt * by
end
)";

void expect_lua(lua_State* lua, int status) {
  if (status == LUA_OK) return;
  std::fprintf(stderr, "bench: %s\n", lua_tostring(lua, -1));
  std::exit(1);
}

Orbit run_lua(int steps) {
  static const std::unique_ptr<lua_State, void (*)(lua_State*)> state = [] {
    lua_State* made = luaL_newstate();
    luaL_openlibs(made);
    expect_lua(made, luaL_dostring(made, lua_program));
    return std::unique_ptr<lua_State, void (*)(lua_State*)>(made, &lua_close);
  }();
  lua_State* lua = state.get();
  lua_getglobal(lua, "step");
  Orbit s;
  for (int i = 0; i < steps; ++i) {
    lua_pushvalue(lua, 1);
    for (const double number :
         {s.position[0], s.position[1], s.speed[0], s.speed[1], step_seconds})
      lua_pushnumber(lua, number);
    expect_lua(lua, lua_pcall(lua, 5, 4, 0));
    s = {{lua_tonumber(lua, -4), lua_tonumber(lua, -3)},
         {lua_tonumber(lua, -2), lua_tonumber(lua, -1)}};
    lua_pop(lua, 4);
  }
  lua_settop(lua, 0);
  return s;
}

}  // namespace

Simulation simulate_by_lua() { return &run_lua; }
#else
Simulation simulate_by_lua() { return nullptr; }
#endif

}  // namespace bench
