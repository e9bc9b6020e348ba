#pragma once
// Runs a program on blocks that the caller holds (program.h has the rest).
#include <span>

#include "runtime/execute/program.h"

namespace unisono {

/// The blocks of one array, by device.
using DeviceBlocks = std::vector<std::shared_ptr<Buffer>>;

/// `run` of program.h, for callers whose inputs lie apart: *inputs[i] are the
/// blocks of input i, which the caller holds until the run is over.
Result<std::vector<DeviceBlocks>> run(
    Runtime& runtime, const Program& program,
    const std::vector<Device*>& devices,
    std::span<const DeviceBlocks* const> inputs, const RunOptions& options);

}  // namespace unisono
