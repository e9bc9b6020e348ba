#pragma once
// The queue of a device that runs kernels by itself (a GPU). Work is put on the
// queue and done in that order; calls return before it is done, unless they say
// otherwise.
#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <span>

#include "runtime/device.h"
#include "runtime/grid.h"
#include "runtime/result.h"

namespace unisono {

/// The two streams of a queue: kernels (with small copies), and large copies
/// that run beside them. Work in one lane is done in order; only marks order
/// one lane after another.
enum class Lane : uint8_t { kernels, copies };

/// One per device. Thread-safe; several runs may use it at once, and wait for
/// one another's work. Queues, and addresses of their memory, that one call
/// names are of one Runtime. Errors: out_of_memory, compile_failed,
/// device_lost; once a device is gone for good, all its later calls fail.
class Queue {
 public:
  virtual ~Queue() = default;

  /// Kernels that are put here from now on may end early while `*flag` is set,
  /// as nobody wants their results; with null they run to their end. Only the
  /// simulated driver can end kernels. The flag outlives them.
  virtual void stop_when(const std::atomic<bool>* flag) = 0;

  /// Loads the code of `launch` ahead of time, so that launch() is quick.
  virtual Status prepare(const GridLaunch& launch) = 0;

  /// What a kernel is called with (GridLaunch).
  struct Call {
    std::span<void* const> arguments;  // addresses of its arrays
    void* error = nullptr;  // a GridError in the device's memory; null if the
                            // kernel has no checks
    uint64_t number = 0;    // of the launch; not 0
    int32_t position = 0;   // the device's, in the program
    Lane lane = Lane::kernels;
  };
  virtual Status launch(const GridLaunch& launch, const Call& call) = 0;

  /// A copy to this device's memory, from its own or a peer's. The peer's work
  /// is not waited for (wait_for does that).
  virtual Status copy(void* to, const Queue& peer, const void* from,
                      int64_t bytes, Lane lane = Lane::kernels) = 0;
  /// A copy of this device's memory to host memory that was borrowed from a
  /// queue (borrow_staging).
  virtual Status copy_to_staging(void* to, const void* from, int64_t bytes) = 0;
  virtual Status zero(void* to, int64_t bytes, Lane lane = Lane::kernels) = 0;

  /// Marks what has been put in the lane so far; a lane has one mark, its last.
  virtual Status mark(Lane lane = Lane::kernels) = 0;
  /// What is put in lane `own` from now on begins after all that lane `others`
  /// of `other` had at its last mark.
  virtual Status wait_for(const Queue& other, Lane own = Lane::kernels,
                          Lane others = Lane::kernels) = 0;

  struct Read {
    void* to;  // in the host's memory
    const void* from;
    CopyExtent extent;
  };
  /// Waits until all work in the lane is done, and copies bytes to the host.
  virtual Status read(std::span<const Read> what,
                      Lane lane = Lane::kernels) = 0;
  /// Bytes on their way to the host.
  class Parcel {
   public:
    virtual ~Parcel() = default;
    /// Waits until they are there, and with them all that was put in the lane
    /// of kernels before.
    virtual Status wait() = 0;
    /// They, after that.
    virtual const void* bytes() const = 0;
  };
  static constexpr int64_t most_sent = 128;
  /// The bytes, `most_sent` at most, that are at `from` when what has been put
  /// in the lane of kernels so far is done. Does not wait. Null if so many
  /// parcels are under way that there is no place for another; the queue
  /// outlives each.
  virtual Result<std::unique_ptr<Parcel>> send(const void* from,
                                               int64_t bytes) = 0;

  /// When what had been put in a lane was done, for a trace.
  class Moment {
   public:
    virtual ~Moment() = default;
    /// Waits for it.
    virtual Result<std::chrono::steady_clock::time_point> time() = 0;
  };
  /// What has been put in the lane so far. The queue outlives the moment.
  virtual Result<std::unique_ptr<Moment>> moment(Lane lane = Lane::kernels) = 0;

  /// After a failure: waits until no work of this queue can be under way any
  /// more, even where the device is lost, so that its memory may be freed.
  virtual void settle() = 0;
  /// Copies bytes from the host; `from` may change again when this returns. In
  /// the lane of copies it waits until they are there.
  virtual Status write(void* to, const void* from, const CopyExtent& extent,
                       Lane lane = Lane::kernels) = 0;

  /// Whether kernels of this device can read and write the other's memory.
  virtual bool reaches(const Queue& other) const = 0;
  /// At least `bytes` of pinned host memory that every device's kernels can
  /// read. The queue owns it; the borrower returns it when all work that uses
  /// it is done.
  virtual Result<void*> borrow_staging(int64_t bytes) = 0;
  virtual void return_staging(void* memory) = 0;

  /// Captured work: it can be put again and again at little cost, each time
  /// with the same arguments.
  class Captured {
   public:
    virtual ~Captured() = default;
  };
  /// A queue of the same device, for one thread, that captures work instead of
  /// doing it; this queue outlives it. A capture lasts from begin_capture to
  /// end_capture of one such queue. Others join it by waiting for that queue's
  /// mark, and it waits for theirs before the end. They cannot read.
  virtual Result<std::unique_ptr<Queue>> capturing() = 0;
  virtual Status begin_capture() = 0;
  virtual Result<std::unique_ptr<Captured>> end_capture() = 0;
  /// Puts captured work here, in the lane of kernels.
  virtual Status replay(const Captured& work) = 0;
};

}  // namespace unisono
