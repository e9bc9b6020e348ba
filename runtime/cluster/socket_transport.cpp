#include "runtime/cluster/socket_transport.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <thread>
#include <utility>

namespace unisono {
namespace {

class SocketTransport final : public Transport {
 public:
  SocketTransport(int process, Sockets sockets)
      : process_(process),
        own_processor_(sockets.size() <= std::thread::hardware_concurrency()),
        sockets_(std::move(sockets)) {}

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
  void close(bool) override { sockets_.close_all(); }

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
  int process_;
  /// Each of the processes, all on this machine, may have one.
  const bool own_processor_;
  bool moved_ = false;
  int asked_ = 0;
  Sockets sockets_;
  std::vector<pollfd> polls_;
};

}  // namespace

Sockets& Sockets::operator=(Sockets&& other) noexcept {
  close_all();
  ends_ = std::exchange(other.ends_, {});
  return *this;
}

void Sockets::close_all() {
  for (int& end : ends_)
    if (end >= 0) close(std::exchange(end, -1));
}

SocketPairs::SocketPairs(int processes) {
  for (int p = 0; p < processes; ++p)
    waiting_.emplace_back(std::vector<int>(static_cast<size_t>(processes), -1));
}

Result<Sockets> SocketPairs::next() {
  const int own = next_++;
  Sockets out = std::move(waiting_[own]);
  for (int p = next_; p < static_cast<int>(waiting_.size()); ++p) {
    std::array<int, 2> pair{};
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair.data()) != 0)
      return Error{.kind = Error::Kind::io,
                   .message = fmt::format("cannot make a socket: {}",
                                          std::strerror(errno))};
    out[p] = pair[0];
    waiting_[p][own] = pair[1];
  }
  return out;
}

Result<std::unique_ptr<Transport>> open_socket_transport(int process,
                                                         Sockets sockets) {
  for (int p = 0; p < static_cast<int>(sockets.size()); ++p)
    if (p != process && fcntl(sockets[p], F_SETFD, FD_CLOEXEC) != 0)
      return Error{.kind = Error::Kind::device_lost,
                   .message = fmt::format("process {} is not there", p)};
  return std::unique_ptr<Transport>(
      std::make_unique<SocketTransport>(process, std::move(sockets)));
}

}  // namespace unisono
