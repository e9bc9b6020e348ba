#pragma once
#include <atomic>

namespace unisono::host {

/// From now on Ctrl-C sets the flag, and a second Ctrl-C ends the process.
const std::atomic<bool>* stop_on_interrupt();

}  // namespace unisono::host
