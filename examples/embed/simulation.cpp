// A simulation that calls a compiled step a million times.
#include <array>
#include <chrono>
#include <cmath>
#include <cstdio>

#include <unisono.hpp>

struct State {
  std::array<double, 2> position{1, 0}, speed{0, 1};
};
UNISONO_RECORD(State, position, speed)

namespace {

constexpr const char* program = R"(
type State = (position: f64[2], speed: f64[2])
## A step of leapfrog around a mass at the origin.
def step(s: State, dt: f64) -> State {
  let half = s.speed - 0.5 * dt * pull(s.position)
  let position = s.position + dt * half
  (position = position, speed = half - 0.5 * dt * pull(position))
}
def pull(x: f64[2]) -> f64[2] { x / sum(x * x) ** 1.5 }
)";

}  // namespace

int main() {
  unisono::Engine engine;
  unisono::Session session = engine.session();
  if (auto done = session.eval(program, "orbit.uni"); !done) {
    std::printf("%s", done.error().text().data());
    return 1;
  }
  const auto step =
      session.function("step").value().typed<State(State, double)>();
  if (!step) {
    std::printf("%s", step.error().text().data());
    return 1;
  }
  constexpr int steps = 1'000'000;
  State state;
  const auto begin = std::chrono::steady_clock::now();
  for (int i = 0; i < steps; ++i) state = (*step)(state, 1e-4).value();
  const std::chrono::duration<double> time =
      std::chrono::steady_clock::now() - begin;
  const auto [x, y] = state.position;
  const auto [vx, vy] = state.speed;
  std::printf("radius %.6f, speed %.6f\n", std::sqrt(x * x + y * y),
              std::sqrt(vx * vx + vy * vy));
  std::fprintf(stderr, "%.0f ns a step\n", time.count() / steps * 1e9);
  return 0;
}
