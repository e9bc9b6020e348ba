#pragma once
// Processes of one machine, over its sockets: for `unisono launch`, and for
// tests. Each process has a socket on which it is called, in a folder that
// nobody else of the machine may enter; of each two the later one calls.
#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "runtime/cluster/transport.h"
#include "runtime/result.h"

namespace unisono {

/// Sockets of `processes` processes to be started, each of which inherits one.
class SocketFolder {
 public:
  static Result<SocketFolder> make(int processes);
  SocketFolder(SocketFolder&& other) noexcept;
  SocketFolder& operator=(SocketFolder&&) = delete;
  /// Removes the folder.
  ~SocketFolder();

  const std::string& path() const { return path_; }
  /// The socket on which a process is called; closed on exec.
  int listener(int process) const { return listeners_[process]; }
  /// Closes all: after the processes were started, which have their own.
  void close_listeners();

 private:
  SocketFolder() = default;
  std::string path_;
  std::vector<int> listeners_;
};

/// Process `process` of those that `folder` is for; takes over its `listener`.
/// Returns when all have called each other; `limit` (0: for ever) is for that.
Result<std::unique_ptr<Transport>> open_socket_transport(
    const std::string& folder, int listener, int process, int processes,
    std::chrono::milliseconds limit);

}  // namespace unisono
