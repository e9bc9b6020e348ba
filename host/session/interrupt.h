#pragma once
// Ctrl-C.
#include <atomic>

namespace unisono::host {

/// The flag that Ctrl-C sets after hear_interrupts; never null.
const std::atomic<bool>* interrupt_flag();

/// From now on Ctrl-C sets the flag, and a second Ctrl-C ends the process.
void hear_interrupts();

/// From now on every Ctrl-C sets the flag: for a session, which goes on.
void hear_all_interrupts();
/// The flag is not set any more.
void forget_interrupt();

/// From now on each Ctrl-C ends the process: there is nothing left to stop.
void end_at_interrupts();

}  // namespace unisono::host
