#pragma once
// Processes of one machine, over its sockets: for `unisono launch`, and for
// tests. Each two processes have a pair of sockets, made before they are
// started: each inherits its ends, and nobody else has them. So the others see
// a process go whenever that is, nobody can call, and nothing has a name.
#include <memory>
#include <vector>

#include "runtime/cluster/transport.h"
#include "runtime/result.h"

namespace unisono {

/// The sockets of one process, by the process at the other end, -1 for itself.
/// What is here is closed with it.
class Sockets {
 public:
  explicit Sockets(std::vector<int> ends) : ends_(std::move(ends)) {}
  Sockets(Sockets&&) noexcept = default;
  Sockets& operator=(Sockets&& other) noexcept;
  ~Sockets() { close_all(); }

  size_t size() const { return ends_.size(); }
  int& operator[](int process) { return ends_[process]; }
  const std::vector<int>& ends() const { return ends_; }
  void close_all();

 private:
  std::vector<int> ends_;
};

/// Makes the sockets of processes that are started one after the other.
class SocketPairs {
 public:
  explicit SocketPairs(int processes);
  /// Those of the next process, closed on exec. The caller, who starts it,
  /// closes them before it starts another one.
  Result<Sockets> next();

 private:
  int next_ = 0;
  std::vector<Sockets> waiting_;  // with the ends made so far
};

/// What process `process` talks over.
Result<std::unique_ptr<Transport>> open_socket_transport(int process,
                                                         Sockets sockets);

}  // namespace unisono
