#pragma once
// Signals are the business of the program that we are part of: threads that are
// made while one of these lives get none from outside. Those that a thread
// causes itself come as they do where the thread was made.
#include <pthread.h>

#include <csignal>

namespace unisono {

class SignalsBlocked {
 public:
  SignalsBlocked() {
    sigset_t others;
    sigfillset(&others);
    for (const int own : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGABRT,
                          SIGSYS, SIGPIPE, SIGXFSZ})
      sigdelset(&others, own);
    pthread_sigmask(SIG_BLOCK, &others, &before_);
  }
  ~SignalsBlocked() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  SignalsBlocked(const SignalsBlocked&) = delete;
  SignalsBlocked& operator=(const SignalsBlocked&) = delete;

 private:
  sigset_t before_;
};

}  // namespace unisono
