// Ctrl-C while a terminal is full: Linux drops what waits in it and wakes no
// one who waited for room.
#include <doctest/doctest.h>
#include <fcntl.h>
#include <poll.h>
#include <termios.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <string>
#include <thread>

#include "host/session/interrupt.h"
#include "runtime/signals.h"

using namespace unisono::host;

namespace {

/// Whether `condition` came true at last.
template <class Condition>
bool comes(const Condition& condition) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::minutes(5);
  while (!condition()) {
    if (std::chrono::steady_clock::now() > end) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return true;
}

}  // namespace

TEST_CASE("an interrupt wakes who waits for room in a terminal") {
  struct sigaction before = {};
  sigaction(SIGINT, nullptr, &before);
  hear_all_interrupts();
  const int master = posix_openpt(O_RDWR | O_NOCTTY | O_NONBLOCK);
  REQUIRE(master >= 0);
  REQUIRE(grantpt(master) == 0);
  REQUIRE(unlockpt(master) == 0);
  const int terminal = open(ptsname(master), O_RDWR | O_NOCTTY);
  REQUIRE(terminal >= 0);

  std::atomic<int> lines = 0;
  std::atomic<bool> ends = false;
  std::thread writer;
  {
    const unisono::SignalsBlocked blocked;
    writer = std::thread([&] {
      const std::string line(1000, 'x');
      while (!ends) {
        const WokenByInterrupts woken;
        if (write(terminal, line.data(), line.size()) < 0) return;
        ++lines;
      }
    });
  }
  auto full = [&] {
    const int seen = lines;
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    return seen > 0 && seen == lines;
  };
  CHECK(comes(full));
  const int until_full = lines;
  tcflush(terminal, TCOFLUSH);  // as the terminal itself does at Ctrl-C
  raise(SIGINT);
  CHECK(*interrupt_flag());
  CHECK(comes([&] { return lines > until_full; }));

  // It ends when somebody reads.
  ends = true;
  std::atomic<bool> ended = false;
  std::thread reader([&] {
    std::string text(4096, ' ');
    while (!ended) {
      pollfd source = {master, POLLIN, 0};
      poll(&source, 1, 10);
      [[maybe_unused]] const ssize_t got =
          read(master, text.data(), text.size());
    }
  });
  writer.join();
  ended = true;
  reader.join();
  close(terminal);
  close(master);
  forget_interrupt();
  sigaction(SIGINT, &before, nullptr);
}
