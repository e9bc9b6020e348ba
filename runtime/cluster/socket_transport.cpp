#include "runtime/cluster/socket_transport.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <thread>
#include <utility>

namespace unisono {
namespace {

using Clock = std::chrono::steady_clock;

Error refused(const char* what) {
  return {.kind = Error::Kind::io,
          .message = fmt::format("{}: {}", what, std::strerror(errno))};
}

std::string socket_path(const std::string& folder, int process) {
  return fmt::format("{}/{}", folder, process);
}

sockaddr_un address_of(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::strncpy(address.sun_path, path.c_str(), sizeof address.sun_path - 1);
  return address;
}

class SocketTransport final : public Transport {
 public:
  SocketTransport(int process, std::vector<int> sockets)
      : process_(process),
        own_processor_(sockets.size() <= std::thread::hardware_concurrency()),
        sockets_(std::move(sockets)) {}
  ~SocketTransport() override { close_all(); }

  int process() const override { return process_; }
  int processes() const override { return static_cast<int>(sockets_.size()); }
  std::string name() const override { return "sockets"; }

  int64_t try_send(int to, Part, const void* data, int64_t bytes) override {
    return result(send(sockets_[to], data, static_cast<size_t>(bytes),
                       MSG_NOSIGNAL | MSG_DONTWAIT));
  }
  int64_t try_receive(int from, Part, void* data, int64_t bytes) override {
    if (bytes == 0) return 0;
    return result(
        recv(sockets_[from], data, static_cast<size_t>(bytes), MSG_DONTWAIT),
        true);
  }
  void forget() override {}
  /// Going to sleep and being woken takes longer than an answer that comes at
  /// once, so who has a processor asks again first.
  bool wait(std::span<const int> sending, std::span<const int> receiving,
            std::chrono::milliseconds most) override {
    constexpr int asks = 100;  // of some 0.3 µs
    if (std::exchange(moved_, false)) asked_ = 0;
    if (own_processor_ && ++asked_ < asks) return false;
    polls_.clear();
    for (const int p : receiving) polls_.push_back({sockets_[p], POLLIN, 0});
    for (const int p : sending) polls_.push_back({sockets_[p], POLLOUT, 0});
    poll(polls_.data(), polls_.size(), static_cast<int>(most.count()));
    return true;
  }
  void close(bool) override { close_all(); }

 private:
  int64_t result(ssize_t done, bool receiving = false) {
    moved_ = moved_ || done > 0;
    if (done > 0) return done;
    if (done == 0) return receiving ? gone : 0;
    return errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR ||
                   errno == ENOBUFS
               ? 0
               : gone;
  }
  void close_all() {
    for (int& socket : sockets_)
      if (socket >= 0) ::close(std::exchange(socket, -1));
  }

  int process_;
  /// Each of the processes, all on this machine, may have one.
  const bool own_processor_;
  bool moved_ = false;
  int asked_ = 0;
  std::vector<int> sockets_;  // by process; -1: the own
  std::vector<pollfd> polls_;
};

/// The number of the process that has called, which it says first.
Result<int> caller_of(int socket, int processes) {
  int32_t process = -1;
  if (recv(socket, &process, sizeof process, MSG_WAITALL) != sizeof process ||
      process < 0 || process >= processes)
    return Error{.message = "a process that is none of these has called"};
  return process;
}

/// All that is open is closed again after an error.
struct Sockets {
  std::vector<int> open;
  ~Sockets() {
    for (const int socket : open)
      if (socket >= 0) close(socket);
  }
};

}  // namespace

Result<SocketFolder> SocketFolder::make(int processes) {
  SocketFolder out;
  const char* given = std::getenv("TMPDIR");
  std::string path = given && *given ? given : "/tmp";
  // A socket's path is short.
  if (path.size() > 60) path = "/tmp";
  path += "/unisono-XXXXXX";
  if (!mkdtemp(path.data())) return refused("cannot make a folder in /tmp");
  out.path_ = std::move(path);
  for (int p = 0; p < processes; ++p) {
    const int made = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (made < 0) return refused("cannot make a socket");
    out.listeners_.push_back(made);
    const sockaddr_un address = address_of(socket_path(out.path_, p));
    if (bind(made, reinterpret_cast<const sockaddr*>(&address),
             sizeof address) != 0 ||
        listen(made, processes) != 0)
      return refused("cannot listen on a socket");
  }
  return out;
}

SocketFolder::SocketFolder(SocketFolder&& other) noexcept
    : path_(std::exchange(other.path_, {})),
      listeners_(std::exchange(other.listeners_, {})) {}

SocketFolder::~SocketFolder() {
  if (path_.empty()) return;
  for (size_t p = 0; p < listeners_.size(); ++p)
    unlink(socket_path(path_, static_cast<int>(p)).c_str());
  close_listeners();
  rmdir(path_.c_str());
}

void SocketFolder::close_listeners() {
  for (int& listener : listeners_)
    if (listener >= 0) close(std::exchange(listener, -1));
}

Result<std::unique_ptr<Transport>> open_socket_transport(
    const std::string& folder, int listener, int process, int processes,
    std::chrono::milliseconds limit) {
  Sockets sockets{std::vector<int>(static_cast<size_t>(processes), -1)};
  Sockets own{{listener}};
  const auto nobody = [](int late) {
    return Error{.kind = Error::Kind::device_lost,
                 .message = fmt::format("process {} is not there", late)};
  };
  for (int p = 0; p < process; ++p) {
    const int to = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (to < 0) return refused("cannot make a socket");
    sockets.open[p] = to;
    const sockaddr_un address = address_of(socket_path(folder, p));
    const int32_t number = process;
    if (connect(to, reinterpret_cast<const sockaddr*>(&address),
                sizeof address) != 0 ||
        send(to, &number, sizeof number, MSG_NOSIGNAL) != sizeof number)
      return nobody(p);
  }
  const Clock::time_point start = Clock::now();
  for (int left = processes - 1 - process; left > 0; --left) {
    for (;;) {
      const auto waited = Clock::now() - start;
      pollfd ready{listener, POLLIN, 0};
      if (poll(&ready, 1, 100) > 0) break;
      if (limit.count() == 0 || waited < limit) continue;
      const auto missing =
          std::find(sockets.open.begin() + process + 1, sockets.open.end(), -1);
      return nobody(static_cast<int>(missing - sockets.open.begin()));
    }
    const int from = accept4(listener, nullptr, nullptr, SOCK_CLOEXEC);
    if (from < 0) return refused("cannot accept a process's call");
    auto caller = caller_of(from, processes);
    if (!caller || sockets.open[*caller] >= 0) {
      close(from);
      ++left;
      continue;
    }
    sockets.open[*caller] = from;
  }
  return std::unique_ptr<Transport>(std::make_unique<SocketTransport>(
      process, std::exchange(sockets.open, {})));
}

}  // namespace unisono
