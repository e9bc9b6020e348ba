#pragma once
// What moves bytes between the memories of GPUs of different processes. Who
// combines and copies within a process is execute/queue_meeting.h.
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "runtime/queue.h"
#include "runtime/result.h"

namespace unisono {

/// Bytes of one device's memory that come to another's.
struct Transfer {
  /// One of the two ends: the device's process, its place in the list of all
  /// devices, and for a device of this process its queue and an address.
  struct End {
    int process = 0;
    int device = 0;
    Queue* queue = nullptr;
    void* data = nullptr;  // not written to where it is the source
  };
  End from, to;
  int64_t bytes = 0;
};

/// For one thread at a time.
class Mover {
 public:
  /// Where its transfers stand in the queues.
  static constexpr Lane lane = Lane::copies;
  virtual ~Mover() = default;
  /// "host memory", "NCCL 2.21.5"
  virtual std::string name() const = 0;
  /// Whether `move` returns when all has been moved, so that it is worth a
  /// thread of its own.
  virtual bool waits() const = 0;
  /// An exchange of the cluster with `others`, each once: the transfers that
  /// this process takes part in, between devices of two processes, which both
  /// name them in one order. Each begins after what its queues' lanes have by
  /// then, and what is put there afterwards sees it done. All of the cluster's
  /// errors; the queues', too.
  virtual Status move(std::span<const Transfer> transfers,
                      std::span<const int> others, uint64_t fingerprint) = 0;
};

}  // namespace unisono
