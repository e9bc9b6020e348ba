#include "host/interrupt.h"

#include <csignal>

namespace unisono::host {
namespace {

// A signal handler can reach nothing but a global.
std::atomic<bool> interrupted = false;
static_assert(std::atomic<bool>::is_always_lock_free);

}  // namespace

const std::atomic<bool>* stop_on_interrupt() {
  struct sigaction action = {};
  action.sa_handler = [](int) { interrupted = true; };
  action.sa_flags = static_cast<int>(SA_RESETHAND | SA_RESTART);
  sigemptyset(&action.sa_mask);
  sigaction(SIGINT, &action, nullptr);
  return &interrupted;
}

}  // namespace unisono::host
