#pragma once
// Finds operations (kernels, copies, fills, stream-ordered allocations) that
// touch the same bytes, at least one of them writing, and that neither
// streams, events nor waits of the host order: a missing event is found in
// every run, whatever order the seed has chosen.
//
// Operations carry vector clocks. A stream is a chain: an operation that knows
// another one of a chain knows all before it. Nodes of a graph are chains of
// their own, until the graph's end, which closes them. What the host has
// waited for, every operation knows that is queued later; threads of the host
// count as one. Of each allocation segments remember the last write, and the
// reads since then that no other read follows. What a kernel touched is known
// from the detector of races inside kernels (races.h), to the byte; accesses
// that are atomic on both sides are none. Of the host's own accesses only those
// are seen that change pinned memory between the call and the copy from it
// (simcuda/driver/copy.cpp); flags by which kernels wait for each other are
// not.
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

/// Up to which operation of each chain all is known; sorted by chain.
using OperationClock = std::vector<std::pair<uint64_t, uint64_t>>;

/// What remains to be known of an operation after it is done.
struct OperationTrace {
  uint64_t chain = 0, number = 0;
  uint64_t closed_chain = 0, closed_number = 0;  // by a graph's end; 0: not
  std::shared_ptr<const OperationClock> host;    // when it was queued
  OperationClock known;                          // beyond that
  uint64_t done = 0;                             // how many were when it was
  std::string what;  // "kernel `add` on device 0, stream 3"
};
using OperationTracePtr = std::shared_ptr<OperationTrace>;

/// Bytes that an operation has touched.
struct MemoryUse {
  enum class Kind : uint8_t { read, write, atomic };
  uint64_t begin = 0, end = 0;
  Kind kind = Kind::read;
};

class OperationRaces {
 public:
  using Report = std::function<void(const std::string&)>;
  explicit OperationRaces(Report report) : report_(std::move(report)) {}

  /// An operation is queued behind `after` (nulls are left out).
  OperationTracePtr queue(uint64_t chain, uint64_t number, std::string what,
                          const std::vector<const OperationTrace*>& after);
  /// `end` comes after all of a graph's nodes.
  void close(const std::vector<OperationTracePtr>& nodes, OperationTrace& end);
  /// The host has waited for it.
  void host_waited(const OperationTrace& trace);
  /// It is done and has touched these bytes; what conflicts, or nothing.
  std::string done(const OperationTracePtr& trace,
                   const std::vector<MemoryUse>& uses,
                   const DeviceMemory& memory);
  uint64_t operations_done() const { return done_; }
  /// Whether an operation that was done later has written some of these bytes,
  /// or a function of the host may have.
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
  uint64_t done_ = 0, host_function_ = 0;  // operations; when the last one was
  std::string found_;                      // by the operation that is done now
};

}  // namespace simcuda
