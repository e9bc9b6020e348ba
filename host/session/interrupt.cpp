#include "host/session/interrupt.h"

#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>

namespace unisono::host {
namespace {

// A signal handler can reach nothing but a global.
std::atomic<bool> interrupted = false;
std::atomic<bool> unread = false;
static_assert(std::atomic<bool>::is_always_lock_free);

// The thread that writes, as the kernel numbers it: a number can be sent to
// when its thread has ended. 0: none.
std::atomic<pid_t> writer = 0;
static_assert(std::atomic<pid_t>::is_always_lock_free);

// Nobody else sends it, and by default nothing comes of it.
constexpr int wake_signal = SIGURG;

void on_interrupt(int) {
  const int before = errno;
  interrupted = true;
  if (const pid_t thread = writer)
    syscall(SYS_tgkill, getpid(), thread, wake_signal);
  errno = before;
}

void hear_wakes() {
  struct sigaction wake = {};
  wake.sa_handler = [](int) {};  // that a write is begun again is all
  wake.sa_flags = SA_RESTART;
  sigemptyset(&wake.sa_mask);
  sigaction(wake_signal, &wake, nullptr);
}

}  // namespace

const std::atomic<bool>* interrupt_flag() { return &interrupted; }

namespace {
void hear(unsigned flags) {
  hear_wakes();
  struct sigaction action = {};
  action.sa_handler = on_interrupt;
  action.sa_flags = static_cast<int>(flags);
  sigemptyset(&action.sa_mask);
  sigaction(SIGINT, &action, nullptr);
}
}  // namespace

void hear_interrupts() { hear(SA_RESETHAND | SA_RESTART); }

void hear_all_interrupts() { hear(SA_RESTART); }

void forget_interrupt() { interrupted = false; }

void stop_unread() { interrupted = unread = true; }
bool is_unread() { return unread; }

WokenByInterrupts::WokenByInterrupts() {
  static thread_local const pid_t self = [] {
    sigset_t wake;
    sigemptyset(&wake);
    sigaddset(&wake, wake_signal);
    pthread_sigmask(SIG_UNBLOCK, &wake, nullptr);
    return gettid();
  }();
  writer = self;
}

WokenByInterrupts::~WokenByInterrupts() { writer = 0; }

void end_at_interrupts() {
  struct sigaction now = {};
  sigaction(SIGINT, nullptr, &now);
  // One that the system was told to ignore stays ignored.
  if (now.sa_handler != SIG_IGN) std::signal(SIGINT, SIG_DFL);
}

}  // namespace unisono::host
