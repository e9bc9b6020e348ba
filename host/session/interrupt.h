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

/// Sets the flag, as nobody reads standard output any more (`| head -1`); and
/// whether somebody did. For who ignores SIGPIPE.
void stop_unread();
bool is_unread();

/// While one lives, Ctrl-C also wakes the calling thread, which writes to a
/// terminal and hears no signals otherwise: on Linux, Ctrl-C drops what waits
/// in a pseudo-terminal, and no one wakes who waited for room in it. For one
/// thread at a time; after hear_interrupts or hear_all_interrupts.
class WokenByInterrupts {
 public:
  WokenByInterrupts();
  ~WokenByInterrupts();
  WokenByInterrupts(const WokenByInterrupts&) = delete;
  WokenByInterrupts& operator=(const WokenByInterrupts&) = delete;
};

/// From now on each Ctrl-C ends the process: there is nothing left to stop.
void end_at_interrupts();

}  // namespace unisono::host
