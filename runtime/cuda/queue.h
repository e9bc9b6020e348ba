#pragma once
// A GPU as a Queue: a stream for kernels, one for copies beside them; and its
// memory, a pool of its own, so that what a logical device frees is soon found
// again.
#include <array>
#include <atomic>
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

class StreamQueue final : public Queue {
 public:
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
  Status read(std::span<const Read> what) override;
  void settle() override;
  Status write(void* to, const void* from, int64_t bytes) override;
  bool reaches(const Queue& other) const override;
  Result<void*> borrow_staging(int64_t bytes) override;
  void return_staging(void* memory) override;
  Result<std::unique_ptr<Queue>> capturing() override;
  Status begin_capture() override;
  Result<std::unique_ptr<Captured>> end_capture() override;
  Status replay(const Captured& work) override;

  Gpu& gpu() const { return *gpu_; }
  /// What is called where the GPU is out of memory, before what failed is tried
  /// once more.
  void on_shortage(std::function<void()> make_room) {
    make_room_ = std::move(make_room);
  }
  /// Out of memory if there is none even after room was made.
  Result<DevicePointer> allocate(int64_t bytes);
  void free(DevicePointer pointer);
  /// Gives the pool's unused memory back to the GPU.
  void trim();
  /// Waits until all that was put here is done.
  Status finish();
  /// Rows between the host and here, and from a peer. What is done with the
  /// memory afterwards, by any device, comes after that; the host's is free, or
  /// filled, when they return. No kernel that was put anywhere before may use
  /// the memory, unless it is known to be done.
  Status rows_from_host(void* to, const void* from, const CopyExtent& extent);
  Status rows_to_host(void* to, const void* from, const CopyExtent& extent);
  Status rows_from_peer(void* to, StreamQueue& peer, const void* from,
                        const CopyExtent& extent);
  /// Large products of matrices are the library's from now on, where it is
  /// there and takes them.
  void use_library(std::shared_ptr<cublas::Source> source);
  /// Lets the kernels of another GPU see this one's memory, where it can.
  Status admit(const Gpu& peer);

 private:
  struct Track {
    Stream stream = nullptr;
    Event mark = nullptr;
  };
  struct Staging {
    void* memory = nullptr;
    int64_t bytes = 0;
    bool lent = false;
  };

  /// `home`: the queue that has the device's memory; null: this one.
  StreamQueue(std::shared_ptr<Gpu> gpu, std::string name, StreamQueue* home)
      : gpu_(std::move(gpu)),
        name_(std::move(name)),
        home_(home ? home : this),
        ring_(gpu_, name_) {}
  Status start_tracks();
  Status start_pool();
  void start_words();
  Status usable();
  /// The code of `call`, which is made once more where the GPU was out of
  /// memory.
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
  Stream kernels() const { return track(Lane::kernels).stream; }
  Stream copies() const { return track(Lane::copies).stream; }
  Status wait_for_copies_of(StreamQueue& other, Lane own);
  CopyEnds ends_with(const Queue& peer) const;
  // cublas_queue.cpp: whether the library does a launch's product.
  bool prepare_product(const GridLaunch& launch);
  bool launch_product(const GridLaunch& launch, const Call& call);
  void open_products();
  void close_products();

  const std::shared_ptr<Gpu> gpu_;
  const std::string name_;
  StreamQueue* const home_;
  std::array<Track, 2> tracks_;
  MemoryPool pool_ = nullptr;
  std::function<void()> make_room_;  // null: of a queue that captures
  StagingRing ring_;
  std::vector<const Gpu*> admitted_;  // that see this memory
  std::mutex staging_mutex_;
  std::vector<Staging> stagings_;
  void* words_ = nullptr;  // pinned memory for few bytes; may be null
  std::atomic<bool> words_lent_{false};
  std::shared_ptr<cublas::Source> source_;
  std::once_flag products_opened_;
  std::unique_ptr<cublas::Products> products_;
  DevicePointer workspace_ = 0;
};

}  // namespace unisono::cuda
