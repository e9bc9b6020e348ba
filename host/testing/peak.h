#pragma once
// What the machine can do at best, measured by programs of our own.
#include <optional>

#include "host/session/session.h"

namespace unisono::host {

/// Of all devices together, each second.
struct Peak {
  double bytes = 0;  // read and written by `x + 0.5 * y` over large arrays
  /// Operations on f32, an fma being two: the better one of chains of fma and
  /// of a product of matrices.
  double flops = 0;
};

/// Measures it on the session's devices, in about a second. Nothing if that was
/// stopped, or the devices have no memory for it: the session's diagnostics say
/// why. The session is good for nothing else afterwards.
std::optional<Peak> measure_peak(Session& session);

}  // namespace unisono::host
