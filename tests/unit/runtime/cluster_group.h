#pragma once
// Processes of a cluster, here as threads of one process, over sockets.
#include <doctest/doctest.h>

#include <chrono>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "runtime/cluster/cluster.h"
#include "runtime/cluster/socket_transport.h"

namespace unisono {

/// What came of one process.
struct Outcome {
  std::optional<Error> opened;  // why not
  Cluster::End end;
};

struct Group {
  int processes = 3;
  std::string faults = {};
  std::chrono::milliseconds limit{60'000};
  int devices = 2;  // of each
  std::string printed = {};
  std::vector<Outcome> outcomes = {};

  /// body(cluster) is what a process does; it gives its exit status and its
  /// messages, or nothing if it just goes away.
  using End = std::optional<std::pair<int, std::string>>;
  void run(const std::function<End(Cluster&)>& body) {
    SocketPairs pairs(processes);
    outcomes.resize(static_cast<size_t>(processes));
    std::mutex mutex;
    std::vector<std::thread> threads;
    for (int p = 0; p < processes; ++p) {
      auto sockets = pairs.next();
      REQUIRE(sockets);
      threads.emplace_back([&, p, sockets = std::move(*sockets)]() mutable {
        Outcome& outcome = outcomes[p];
        auto transport = open_socket_transport(p, std::move(sockets));
        if (!transport) {
          outcome.opened = transport.error();
          return;
        }
        ClusterOptions options;
        options.limit = limit;
        options.devices = devices;
        options.output = [&](std::string_view text) {
          const std::lock_guard lock(mutex);
          printed += text;
        };
        if (auto read = Faults::parse(faults)) options.faults = *read;
        auto cluster = Cluster::open(std::move(*transport), std::move(options));
        if (!cluster) {
          outcome.opened = cluster.error();
          return;
        }
        if (const auto end = body(**cluster))
          outcome.end = (*cluster)->finish(end->first, end->second);
      });
    }
    for (std::thread& thread : threads) thread.join();
  }
  /// All have this status, and the first has these messages.
  void check(int status, std::string_view messages, int first = 0) const {
    for (int p = first; p < processes; ++p) {
      CAPTURE(p);
      CHECK_FALSE(outcomes[p].opened);
      CHECK(outcomes[p].end.status == status);
      CHECK(outcomes[p].end.messages.has_value() == (p == first));
    }
    if (outcomes[first].end.messages)
      CHECK(*outcomes[first].end.messages == messages);
  }
};

inline Group::End ok(const Status& status) {
  if (status) return std::pair(0, std::string());
  return std::pair(1, status.error().message + "\n");
}

}  // namespace unisono
