#pragma once
// Programs with hand-written kernels, for the tests of the runtime.
#include <doctest/doctest.h>

#include <cstring>
#include <vector>

#include "runtime/execute/program.h"
#include "runtime/pool.h"

namespace unisono {

using Blocks = std::vector<DeviceBlocks>;

/// Builds a Program slot by slot.
struct ProgramBuilder {
  explicit ProgramBuilder(int devices) { program.devices = devices; }

  SlotId add(Slot slot) {
    program.slots.push_back(slot);
    return static_cast<SlotId>(program.slots.size()) - 1;
  }
  SlotId arena(int64_t bytes) {
    int64_t offset = program.arena_bytes;
    program.arena_bytes += (bytes + 63) / 64 * 64;
    return add({.home = Slot::Home::arena, .bytes = bytes, .offset = offset});
  }
  SlotId input(int64_t bytes) {
    int index = static_cast<int>(program.inputs.size());
    program.inputs.push_back(
        add({.home = Slot::Home::input, .bytes = bytes, .index = index}));
    return program.inputs.back();
  }
  SlotId output(int64_t bytes) {
    int index = static_cast<int>(program.outputs.size());
    program.outputs.push_back(
        add({.home = Slot::Home::output, .bytes = bytes, .index = index}));
    return program.outputs.back();
  }
  template <class T>
  SlotId constant(std::vector<T> values) {
    int index = static_cast<int>(program.constants.size());
    int64_t bytes = static_cast<int64_t>(values.size() * sizeof(T));
    auto* data = reinterpret_cast<const uint8_t*>(values.data());
    program.constants.emplace_back(data, data + bytes);
    return add({.home = Slot::Home::constant, .bytes = bytes, .index = index});
  }

  Program program;
};

inline Step launch(KernelFunction function, std::vector<SlotId> arguments,
                   int64_t units = 1, int64_t grain = 1000) {
  return {LaunchStep{function, "test", std::move(arguments), units, grain}};
}

inline std::shared_ptr<const Steps> steps(Steps list) {
  return std::make_shared<const Steps>(std::move(list));
}

/// One block for each device, with the values that value(device, i) gives.
template <class T, class Value>
DeviceBlocks make_blocks(const std::vector<Device*>& devices, int64_t elements,
                         Value&& value) {
  DeviceBlocks blocks;
  for (size_t d = 0; d < devices.size(); ++d) {
    Result<Buffer> buffer =
        devices[d]->allocate(elements * static_cast<int64_t>(sizeof(T)));
    REQUIRE(buffer);
    for (int64_t i = 0; i < elements; ++i)
      static_cast<T*>(buffer->data())[i] = value(static_cast<int>(d), i);
    blocks.push_back(std::make_shared<Buffer>(std::move(*buffer)));
  }
  return blocks;
}

template <class T>
const T* values(const std::shared_ptr<Buffer>& block) {
  return static_cast<const T*>(block->data());
}

/// Runs on all devices of a runtime, and wants it to succeed.
inline Blocks run_all(Runtime& runtime, const Program& program,
                      const Blocks& inputs = {}) {
  auto outputs = run(runtime, program, runtime.devices(), inputs);
  REQUIRE_MESSAGE(outputs, (outputs ? "" : outputs.error().message));
  return std::move(*outputs);
}

}  // namespace unisono
