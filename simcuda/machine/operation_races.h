#pragma once
// Finds operations (kernels, copies, fills, stream-ordered allocations) that
// touch the same bytes, at least one of them writing, and that neither
// streams, events nor waits of the host order: a missing event is found in
// every run, whatever order the seed has chosen.
//
// Operations carry vector clocks. A stream is a chain: an operation that knows
// another one of a chain knows all before that one. Nodes of a graph are chains
// of their own, until the graph's end, which closes them. An operation knows
// all that the host has waited for before it was queued; threads of the host
// count as one. For each allocation, segments remember the last write, and the
// reads since then that no other read follows. The bytes that a kernel touched
// are known from the detector of races inside kernels (races.h); two atomic
// accesses are no race. Of the host's own accesses only those are seen that
// change pinned memory between the call and the copy from it
// (simcuda/driver/copy.cpp). Flags by which kernels wait for each other are not
// seen as an order.
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "simcuda/machine/device_memory.h"

namespace simcuda {

/// (chain, number): the last operation of each chain that is known, with all
/// before it; sorted by chain.
using OperationClock = std::vector<std::pair<uint64_t, uint64_t>>;

/// What is kept of an operation, also after it is done.
struct OperationTrace {
  uint64_t chain = 0, number = 0;
  uint64_t closed_chain = 0, closed_number = 0;  // the graph's end; 0: none
  std::shared_ptr<const OperationClock> host;    // the host's, when queued
  OperationClock known;                          // beyond the host's
  uint64_t done = 0;                             // its number among those done
  std::string what;  // "kernel `add` on device 0, stream 3"
};
using OperationTracePtr = std::shared_ptr<OperationTrace>;

/// Bytes that an operation has touched.
struct MemoryUse {
  enum class Kind : uint8_t { read, write, atomic };
  uint64_t begin = 0, end = 0;
  Kind kind = Kind::read;
};

/// Not thread-safe: the simulator's lock guards it.
class OperationRaces {
 public:
  using Report = std::function<void(const std::string&)>;
  explicit OperationRaces(Report report) : report_(std::move(report)) {}

  /// Notes that an operation is queued behind those in `after`, of which nulls
  /// are skipped.
  OperationTracePtr queue(uint64_t chain, uint64_t number, std::string what,
                          const std::vector<const OperationTrace*>& after);
  /// Notes that `end` comes after all of a graph's nodes.
  void close(const std::vector<OperationTracePtr>& nodes, OperationTrace& end);
  /// Notes that the host has waited for an operation.
  void host_waited(const OperationTrace& trace);
  /// Notes that an operation is done and has touched these bytes. Returns the
  /// text about a conflict, or an empty one.
  std::string done(const OperationTracePtr& trace,
                   const std::vector<MemoryUse>& uses,
                   const DeviceMemory& memory);
  uint64_t operations_done() const { return done_; }
  /// Whether some of these bytes were written by an operation that was done
  /// after so many, or may have been by a function of the host.
  bool written_since(uint64_t operations_done, uint64_t begin, uint64_t end,
                     const DeviceMemory& memory);

 private:
  /// Bytes with one history.
  struct Segment {
    uint64_t end = 0;
    OperationTracePtr write;
    bool write_atomic = false;
    std::vector<OperationTracePtr> reads;  // since then; or atomic writes
  };
  struct History {
    std::weak_ptr<Allocation> allocation;
    std::map<uint64_t, Segment> segments;  // by begin
  };
  using Place = std::map<uint64_t, Segment>::iterator;

  History& history_of(const std::shared_ptr<Allocation>& allocation);
  static Place cut(History& history, uint64_t at);
  void touch(const OperationTracePtr& trace, const MemoryUse& use,
             const Allocation& allocation, History& history);
  void conflict(const OperationTrace& before, const OperationTrace& now,
                bool writes_before, bool writes_now, uint64_t address,
                const Allocation& allocation);

  Report report_;
  std::shared_ptr<const OperationClock> host_ =
      std::make_shared<OperationClock>();
  std::map<uint64_t, History> histories_;  // by number of the allocation
  std::set<std::pair<std::string, std::string>> told_;
  uint64_t done_ = 0, host_function_ = 0;  // operations; those up to the host's
                                           // last function
  std::string found_;                      // by the operation that is done now
};

}  // namespace simcuda
