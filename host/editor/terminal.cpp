#include "host/editor/terminal.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdint>
#include <cstdlib>

namespace unisono::host {
namespace {

// A signal handler can reach nothing but globals.
std::atomic<int> terminal = -1;  // its descriptor, while there is one
int wakes = -1;                  // an eventfd: something happened to it
termios own_mode, present_mode;

void wake() {
  const uint64_t one = 1;
  [[maybe_unused]] const ssize_t written = ::write(wakes, &one, sizeof one);
}

void on_resize(int) {
  const int error = errno;
  wake();
  errno = error;
}

/// Ctrl-Z, or `kill -TSTP`: who is in front now gets the terminal as it was.
void on_stop(int) {
  const int error = errno;
  const int here = terminal;
  if (here >= 0) tcsetattr(here, TCSADRAIN, &own_mode);
  raise(SIGSTOP);
  errno = error;
}

void on_continue(int) {
  const int error = errno;
  const int here = terminal;
  if (here >= 0 && tcgetpgrp(here) == getpgrp())
    tcsetattr(here, TCSADRAIN, &present_mode);
  wake();
  errno = error;
}

/// Ends the process as the signal would have done.
void on_end(int signal) {
  const int here = terminal;
  if (here >= 0) tcsetattr(here, TCSADRAIN, &own_mode);
  std::signal(signal, SIG_DFL);
  raise(signal);
}

struct Handler {
  int signal;
  void (*function)(int);
};
constexpr Handler handlers[] = {{SIGWINCH, on_resize},  {SIGTSTP, on_stop},
                                {SIGCONT, on_continue}, {SIGTERM, on_end},
                                {SIGHUP, on_end},       {SIGQUIT, on_end}};

}  // namespace

Terminal::Terminal(int input, int output) : input_(input), output_(output) {
  tcgetattr(input_, &own_mode);
  present_mode = own_mode;
  wakes = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
  terminal = input_;
  for (const Handler& handler : handlers) {
    struct sigaction before = {};
    sigaction(handler.signal, nullptr, &before);
    if (before.sa_handler == SIG_IGN) continue;  // as `nohup` wants it
    struct sigaction action = {};
    action.sa_handler = handler.function;
    action.sa_flags = SA_RESTART;
    sigemptyset(&action.sa_mask);
    sigaction(handler.signal, &action, nullptr);
  }
}

Terminal::~Terminal() {
  set(Mode::own);
  for (const Handler& handler : handlers) std::signal(handler.signal, SIG_DFL);
  terminal = -1;
  close(wakes);
}

void Terminal::set(Mode mode) {
  termios wanted = own_mode;
  if (mode != Mode::own) {
    wanted.c_lflag &= ~static_cast<tcflag_t>(ICANON | ECHO);
    wanted.c_cc[VMIN] = 1;
    wanted.c_cc[VTIME] = 0;
  }
  if (mode == Mode::editing) {
    wanted.c_lflag &= ~static_cast<tcflag_t>(ISIG | IEXTEN);
    wanted.c_iflag &= ~static_cast<tcflag_t>(IXON | ICRNL | INLCR | IGNCR);
    wanted.c_iflag &= ~static_cast<tcflag_t>(ISTRIP);
  }
  present_mode = wanted;
  tcsetattr(input_, TCSADRAIN, &wanted);
}

void Terminal::suspend() { raise(SIGTSTP); }

TerminalSize terminal_size(int descriptor) {
  winsize size = {};
  TerminalSize out;
  if (ioctl(descriptor, TIOCGWINSZ, &size) != 0) return out;
  if (size.ws_col >= 2) out.columns = size.ws_col;
  if (size.ws_row >= 1) out.rows = size.ws_row;
  return out;
}

void Terminal::write(std::string_view text) {
  while (!text.empty() && !closed_) {
    const ssize_t written = ::write(output_, text.data(), text.size());
    if (written > 0) {
      text.remove_prefix(static_cast<size_t>(written));
    } else if (errno == EAGAIN) {
      pollfd full = {output_, POLLOUT, 0};
      poll(&full, 1, -1);
    } else if (errno != EINTR) {
      closed_ = true;
    }
  }
}

Terminal::Event Terminal::wait(int milliseconds) {
  pollfd sources[] = {{input_, POLLIN, 0}, {wakes, POLLIN, 0}};
  const int ready = poll(sources, 2, milliseconds);
  if (ready < 0) return errno == EINTR ? Event::nothing : Event::ended;
  if (sources[1].revents) {
    uint64_t count = 0;
    [[maybe_unused]] const ssize_t taken = ::read(wakes, &count, sizeof count);
    return Event::resized;
  }
  if (sources[0].revents & POLLIN) return Event::bytes;
  return sources[0].revents ? Event::ended : Event::nothing;
}

bool Terminal::read(std::string& to) {
  std::array<char, 1 << 16> bytes;
  ssize_t count = 0;
  do {
    count = ::read(input_, bytes.data(), bytes.size());
  } while (count < 0 && errno == EINTR);
  if (count <= 0) return count < 0 && errno == EAGAIN;
  to.append(bytes.data(), static_cast<size_t>(count));
  return true;
}

bool Terminal::can_edit(const char* name) {
  const std::string_view given = name ? name : "";
  return !given.empty() && given != "dumb" && given != "unknown" &&
         given != "emacs" && given != "cons25";
}

}  // namespace unisono::host
