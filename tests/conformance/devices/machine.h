#pragma once
// The kinds of devices that the suite is for. Each test goes through all that
// there are: CPUs, simulated GPUs, and GPUs where a driver is found.
#include <doctest/doctest.h>

#include <array>
#include <cstdlib>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/cuda/device.h"
#include "runtime/execute/program.h"

namespace unisono::device_test {

enum class Kind : uint8_t { host, sim, cuda };
constexpr std::string_view kind_name(Kind kind) {
  constexpr std::string_view names[] = {"host", "sim", "cuda"};
  return names[static_cast<size_t>(kind)];
}

/// Beside the program, or where it was built.
std::string simulator();

/// GPUs of a kind, none where there are none: the first `count`, or as many
/// logical devices on the first one where there are fewer.
std::vector<std::unique_ptr<Device>> open_gpus(Kind kind, int count);
/// Devices of a kind; null where there are none.
std::unique_ptr<Runtime> open_machine(Kind kind, int count);

/// The kinds there are here, with $UNISONO_TEST_DEVICES (a list of names) as a
/// choice among them.
const std::vector<Kind>& kinds();

/// body(runtime) for devices of each kind.
template <class Body>
void on_each_kind(int count, Body&& body) {
  for (Kind kind : kinds()) {
    INFO("devices: ", std::string(kind_name(kind)));
    const std::unique_ptr<Runtime> machine = open_machine(kind, count);
    REQUIRE(machine);
    REQUIRE(machine->devices().size() == static_cast<size_t>(count));
    body(*machine);
  }
}

inline bool is_gpu(const Runtime& machine) {
  return machine.devices()[0]->kind() == DeviceKind::gpu;
}

}  // namespace unisono::device_test
