#pragma once
// The work of a device that does it by itself, in the order in which it is put:
// calls return before it is done, unless they say so.
#include <atomic>
#include <cstdint>
#include <memory>
#include <span>

#include "runtime/grid.h"
#include "runtime/result.h"

namespace unisono {

/// A device does two things at once: kernels, and copies beside them. What is
/// put in one lane is done in order.
enum class Lane : uint8_t { kernels, copies };

/// One per device. Thread-safe; several runs may use it at once, and wait for
/// one another's work. An error is `device_lost` when the device is gone for
/// good: what is put from then on fails likewise.
class Queue {
 public:
  virtual ~Queue() = default;

  /// While the flag is set nobody wants the results of what is put here from
  /// now on: kernels may end early, where that is possible (a GPU of silicon
  /// cannot be told). Null: they are wanted.
  virtual void stop_when(const std::atomic<bool>* flag) = 0;

  /// Loads the code of a launch, so that nothing is left to do when it is
  /// launched.
  virtual Status prepare(const GridLaunch& launch) = 0;

  /// What a kernel is called with, as GridLaunch tells.
  struct Call {
    std::span<void* const> arguments;
    void* error = nullptr;  // a GridError in the device's memory; null if the
                            // kernel has no checks
    uint64_t number = 0;    // of the launch; not 0
    int32_t position = 0;
  };
  virtual Status launch(const GridLaunch& launch, const Call& call) = 0;

  /// A copy to this device's memory, from its own or a peer's. The peer's work
  /// is not waited for (wait_for does that).
  virtual Status copy(void* to, const Queue& peer, const void* from,
                      int64_t bytes, Lane lane = Lane::kernels) = 0;
  /// A copy to memory of the host that came from `staging`.
  virtual Status copy_to_staging(void* to, const void* from, int64_t bytes) = 0;
  virtual Status zero(void* to, int64_t bytes, Lane lane = Lane::kernels) = 0;

  /// Marks what has been put in the lane so far.
  virtual Status mark(Lane lane = Lane::kernels) = 0;
  /// What is put in lane `own` from now on begins after all that the other had
  /// in `others` at that lane's last mark.
  virtual Status wait_for(const Queue& other, Lane own = Lane::kernels,
                          Lane others = Lane::kernels) = 0;

  /// Waits until all kernels are done, and gives bytes to the host.
  struct Read {
    void* to;
    const void* from;
    int64_t bytes;
  };
  virtual Status read(std::span<const Read> what) = 0;
  /// After a failure: waits until nothing is under way here that could be, even
  /// where the device is lost, so that memory may go.
  virtual void settle() = 0;
  /// Bytes from the host, which are free again when this returns.
  virtual Status write(void* to, const void* from, int64_t bytes) = 0;

  /// Whether kernels of this device read and write the other's memory.
  virtual bool reaches(const Queue& other) const = 0;
  /// At least `bytes` of host memory that every device's kernels can read, for
  /// one run: given back when all that uses it is done.
  virtual Result<void*> borrow_staging(int64_t bytes) = 0;
  virtual void return_staging(void* memory) = 0;

  /// Work that is put again and again at little cost, with the same arguments.
  class Captured {
   public:
    virtual ~Captured() = default;
  };
  /// A queue of the same device, for one thread, whose work is not done but
  /// captured: between begin_capture and end_capture of one such queue, from it
  /// and from others that wait for its mark and for whose marks it waits in the
  /// end. Nothing may be read there.
  virtual Result<std::unique_ptr<Queue>> capturing() = 0;
  virtual Status begin_capture() = 0;
  virtual Result<std::unique_ptr<Captured>> end_capture() = 0;
  /// Puts captured work here, in the lane of kernels.
  virtual Status replay(const Captured& work) = 0;
};

}  // namespace unisono
