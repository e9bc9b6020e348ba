#pragma once
// Runs an executable on arrays that the caller holds: none is copied.
#include <span>
#include <vector>

#include "lang/maps/executable.h"

namespace unisono::lang {

/// `run` of executable.h, of an executable to which nothing is given away: it
/// only reads its inputs, which the caller holds until the run is over.
Result<std::vector<unisono::Array>> run(
    Walk& walk, const Executable& executable,
    std::span<const unisono::Array* const> inputs);

}  // namespace unisono::lang
