#include "host/session/interrupt.h"

#include <csignal>

namespace unisono::host {
namespace {

// A signal handler can reach nothing but a global.
std::atomic<bool> interrupted = false;
static_assert(std::atomic<bool>::is_always_lock_free);

}  // namespace

const std::atomic<bool>* interrupt_flag() { return &interrupted; }

namespace {
void hear(unsigned flags) {
  struct sigaction action = {};
  action.sa_handler = [](int) { interrupted = true; };
  action.sa_flags = static_cast<int>(flags);
  sigemptyset(&action.sa_mask);
  sigaction(SIGINT, &action, nullptr);
}
}  // namespace

void hear_interrupts() { hear(SA_RESETHAND | SA_RESTART); }

void hear_all_interrupts() { hear(SA_RESTART); }

void forget_interrupt() { interrupted = false; }

void end_at_interrupts() {
  struct sigaction now = {};
  sigaction(SIGINT, nullptr, &now);
  // One that the system was told to ignore stays ignored.
  if (now.sa_handler != SIG_IGN) std::signal(SIGINT, SIG_DFL);
}

}  // namespace unisono::host
