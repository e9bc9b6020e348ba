#pragma once
// A simulation in a C++ program that asks someone else for each step: the
// state goes there and comes back. The step is that of
// examples/embed/simulation.cpp.
#include <array>

namespace bench {

struct Orbit {
  std::array<double, 2> position{1, 0}, speed{0, 1};
};

/// Steps of 1e-4 s, one after the other; each is a call.
using Simulation = Orbit (*)(int steps);

/// A function of C++ behind a pointer.
Orbit simulate_by_pointer(int steps);
/// A typed function, by unisono.hpp.
Orbit simulate_by_unisono(int steps);
/// A function of Lua, by its C interface; null if this is built without it.
Simulation simulate_by_lua();

}  // namespace bench
