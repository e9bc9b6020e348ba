#pragma once
// The queue and the memory of a logical device on a GPU: a stream for kernels,
// one for copies beside them, and a memory pool, from which the device soon
// gets back what it has freed.
#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "runtime/cuda/cublas_products.h"
#include "runtime/cuda/gpu.h"
#include "runtime/cuda/rows.h"
#include "runtime/cuda/staging.h"
#include "runtime/device.h"
#include "runtime/queue.h"

namespace unisono::cuda {

class StreamQueue;

/// Whose work a queue's work comes after. Where another GPU is lost, what waits
/// for it goes on as if it had done its part, and what it should have written
/// is not there. So the host asks whether all of them are well before it
/// believes what it has waited for. Thread-safe.
class Followed {
 public:
  /// A queue, and when it was last followed.
  struct Note {
    const StreamQueue* queue = nullptr;
    uint64_t number = 0;
  };

  void add(const StreamQueue& queue) {
    std::lock_guard lock(mutex_);
    const auto at = std::ranges::find(notes_, &queue, &Note::queue);
    Note& note = at == notes_.end() ? notes_.emplace_back() : *at;
    note = {&queue, ++last_};
  }
  std::vector<Note> notes() const {
    std::lock_guard lock(mutex_);
    return notes_;
  }
  /// What these have put is done, but not what was followed since.
  void forget(const std::vector<Note>& done) {
    std::lock_guard lock(mutex_);
    std::erase_if(notes_, [&](const Note& note) {
      return std::ranges::any_of(done, [&](const Note& other) {
        return other.queue == note.queue && other.number == note.number;
      });
    });
  }

 private:
  mutable std::mutex mutex_;
  std::vector<Note> notes_;
  uint64_t last_ = 0;
};

/// The members of Queue are for programs, all others for the Device that owns
/// the queue. Errors name the device.
class StreamQueue final : public Queue {
 public:
  /// `name` is the device's.
  static Result<std::unique_ptr<StreamQueue>> open(std::shared_ptr<Gpu> gpu,
                                                   std::string name);
  ~StreamQueue() override;

  void stop_when(const std::atomic<bool>* flag) override;
  Status prepare(const GridLaunch& launch) override;
  Status launch(const GridLaunch& launch, const Call& call) override;
  Status copy(void* to, const Queue& peer, const void* from, int64_t bytes,
              Lane lane) override;
  Status copy_to_staging(void* to, const void* from, int64_t bytes) override;
  Status zero(void* to, int64_t bytes, Lane lane) override;
  Status mark(Lane lane) override;
  Status wait_for(const Queue& other, Lane own, Lane others) override;
  Status read(std::span<const Read> what, Lane lane) override;
  Result<std::unique_ptr<Parcel>> send(const void* from,
                                       int64_t bytes) override;
  Result<std::unique_ptr<Moment>> moment(Lane lane) override;
  void settle() override;
  Status write(void* to, const void* from, const CopyExtent& extent,
               Lane lane) override;
  bool reaches(const Queue& other) const override;
  Result<void*> borrow_staging(int64_t bytes) override;
  void return_staging(void* memory) override;
  Result<std::unique_ptr<Queue>> capturing() override;
  Status begin_capture() override;
  Result<std::unique_ptr<Captured>> end_capture() override;
  Status replay(const Captured& work) override;

  Gpu& gpu() const { return *gpu_; }
  /// The device's.
  const std::string& name() const { return name_; }
  Stream stream(Lane lane) const { return track(lane).stream; }
  Stream kernels() const { return stream(Lane::kernels); }
  /// Sets a function that is called before the host waits for what is in the
  /// lane of kernels, and whose error ends the wait: some of it may depend on
  /// other processes. None: nothing does.
  void before_waits(std::function<Status()> look) {
    before_wait_ = std::move(look);
  }
  /// Sets a function that is called where the GPU is out of memory, before the
  /// call that failed is tried once more.
  void on_shortage(std::function<void()> make_room) {
    make_room_ = std::move(make_room);
  }
  /// Memory for work that is put here afterwards; out_of_memory if there is
  /// none even after room was made.
  Result<DevicePointer> allocate(int64_t bytes);
  /// Takes effect after all that was put in the lane of kernels before.
  void free(DevicePointer pointer);
  /// Gives the pool's unused memory back to the GPU.
  void trim();
  /// The same while at least `keep` bytes stay, without waiting.
  void trim_to(int64_t keep);
  /// Bytes of the GPU's memory that the pool has.
  int64_t held_bytes() const;
  /// Threads that may help to copy to pinned memory.
  void use_workers(std::shared_ptr<Pool> pool) {
    ring_.use_workers(std::move(pool));
  }
  /// Waits until all that was put in the lane is done.
  Status finish(Lane lane = Lane::kernels);
  /// Copies of rows from the host, to the host and from a peer. Work that is
  /// put on either device afterwards sees them done; the host's memory may
  /// change again, or is filled, when they return. No kernel that was put
  /// before and may not be done yet may use the memory.
  Status rows_from_host(void* to, const void* from, const CopyExtent& extent);
  Status rows_to_host(void* to, const void* from, const CopyExtent& extent);
  Status rows_from_peer(void* to, StreamQueue& peer, const void* from,
                        const CopyExtent& extent);
  /// Lets cuBLASLt do products of matrices from now on, where the library is
  /// there and takes them.
  void use_library(std::shared_ptr<cublas::Source> source);
  /// Lets kernels on another GPU read and write this queue's memory, if the
  /// system can do that; an error only if a GPU is lost.
  Status admit(const Gpu& peer);

 private:
  struct Track {
    Stream stream = nullptr;
    Event mark = nullptr;
  };
  /// A place of pinned memory for one parcel.
  struct Berth {
    char* memory = nullptr;
    Event sent = nullptr;  // made when it is first wanted
    bool taken = false;
  };
  class SentParcel;
  /// A moment that the host has known, too: others are told from it.
  struct Epoch {
    Event event = nullptr;
    std::chrono::steady_clock::time_point time;
  };
  class EventMoment;
  struct Staging {
    void* memory = nullptr;
    int64_t bytes = 0;
    bool lent = false;
  };

  /// `home` is the queue that owns the device's memory; null: this one.
  StreamQueue(std::shared_ptr<Gpu> gpu, std::string name, StreamQueue* home)
      : gpu_(std::move(gpu)),
        name_(std::move(name)),
        home_(home ? home : this),
        ring_(gpu_, name_) {}
  Status start_tracks();
  Status start_pool();
  void start_words();
  Status usable() const;
  /// Fails if the GPU is lost, though nobody has been told of it yet.
  Status well() const;
  /// The same of all that was followed when the host began to wait; what it has
  /// waited for is as it should be then.
  Status are_well(const std::vector<Followed::Note>& followed);
  void follow(const StreamQueue& other);
  /// Returns call(), which is called again after room was made if the GPU was
  /// out of memory.
  template <class Call>
  Code with_room(Call&& call) {
    const Code code = call();
    if (code != out_of_memory || !make_room_) return code;
    make_room_();
    return call();
  }
  Track& track(Lane lane) { return tracks_[static_cast<size_t>(lane)]; }
  const Track& track(Lane lane) const {
    return tracks_[static_cast<size_t>(lane)];
  }
  Status before_wait() const { return before_wait_ ? before_wait_() : Unit{}; }
  /// Of rows to the host in a lane, which may still be under way.
  Status put_read(void* to, const void* from, const CopyExtent& extent,
                  Lane lane);
  Stream copies() const { return track(Lane::copies).stream; }
  /// What is put in `own` from now on begins after the marks of `other`.
  Status wait_for_marks_of(StreamQueue& other, Lane own);
  // queue_events.cpp
  void close_events();
  Result<Event> take_event();
  Result<std::shared_ptr<Epoch>> current_epoch();
  CopyEnds ends_with(const Queue& peer) const;
  // cublas_queue.cpp. Whether the library does the product of a launch:
  bool prepare_product(const GridLaunch& launch);
  bool launch_product(const GridLaunch& launch, const Call& call);
  void open_products();
  void close_products();

  const std::shared_ptr<Gpu> gpu_;
  const std::string name_;
  StreamQueue* const home_;
  std::array<Track, 2> tracks_;
  MemoryPool pool_ = nullptr;
  std::function<void()> make_room_;  // null in queues that capture
  std::function<Status()> before_wait_;
  StagingRing ring_;
  std::vector<const Gpu*> admitted_;  // their kernels see this memory
  Followed followed_;                 // queues on other GPUs
  std::mutex staging_mutex_;
  std::vector<Staging> stagings_;
  void* words_ = nullptr;  // pinned memory for few bytes; may be null
  std::mutex events_mutex_;
  std::vector<Berth> berths_;  // behind the words
  std::vector<Event> idle_;    // with times, of moments that are gone
  std::shared_ptr<Epoch> epoch_;
  std::atomic<bool> words_lent_{false};
  /// Few bytes were put beside kernels since much was read last.
  std::atomic<bool> few_put_{false};
  std::shared_ptr<cublas::Source> source_;
  std::once_flag products_opened_;
  std::unique_ptr<cublas::Products> products_;
  DevicePointer workspace_ = 0;
};

}  // namespace unisono::cuda
