#include "runtime/cuda/queue.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "runtime/check.h"
#include "runtime/cuda/rows.h"
#include "runtime/tuning/tuning.h"

namespace unisono::cuda {
namespace {

constexpr int64_t bytes_of_words = 4096;
constexpr size_t most_parcels = 64;

}  // namespace

Result<std::unique_ptr<StreamQueue>> StreamQueue::open(std::shared_ptr<Gpu> gpu,
                                                       std::string name) {
  std::unique_ptr<StreamQueue> queue(
      new StreamQueue(std::move(gpu), std::move(name), nullptr));
  Status started = queue->start_tracks();
  if (started) started = queue->start_pool();
  if (!started) return started.error();
  queue->start_words();
  return queue;
}

Status StreamQueue::start_tracks() {
  const Driver& cuda = gpu_->driver();
  const std::string doing = "opening " + name_;
  CurrentContext current(*gpu_);
  Status done = Unit{};
  for (Track& track : tracks_) {
    if (done)
      done = gpu_->check(cuda.stream_create(&track.stream, stream_non_blocking),
                         doing);
    if (done)
      done = gpu_->check(cuda.event_create(&track.mark, event_disable_timing),
                         doing);
  }
  return done;
}

Status StreamQueue::start_pool() {
  const Driver& cuda = gpu_->driver();
  const std::string doing = "opening " + name_;
  CurrentContext current(*gpu_);
  MemoryPoolProperties properties{};
  properties.allocType = AllocationType::pinned;
  properties.location = {MemoryLocationType::device, gpu_->device()};
  Status done = gpu_->check(cuda.mem_pool_create(&pool_, &properties), doing);
  uint64_t keep = ~uint64_t{0};
  if (done)
    done =
        gpu_->check(cuda.mem_pool_set_attribute(
                        pool_, MemoryPoolAttribute::release_threshold, &keep),
                    doing);
  return done;
}

/// Here, as a run must not wait for it later. They can be done without.
void StreamQueue::start_words() {
  CurrentContext current(*gpu_);
  const Code code = gpu_->driver().mem_host_alloc(
      &words_, bytes_of_words + most_parcels * most_sent, host_alloc_portable);
  if (code != success) words_ = nullptr;
  for (size_t i = 0; words_ && i < most_parcels; ++i)
    berths_.push_back(
        {static_cast<char*>(words_) + bytes_of_words + i * most_sent});
  (void)gpu_->check(code, "opening " + name_);
}

StreamQueue::~StreamQueue() {
  const Driver& cuda = gpu_->driver();
  CurrentContext current(*gpu_);
  (void)before_wait();
  for (const Track& track : tracks_)
    if (track.stream) cuda.stream_synchronize(track.stream);
  close_products();
  close_events();
  for (const Staging& staging : stagings_) cuda.mem_free_host(staging.memory);
  if (words_) cuda.mem_free_host(words_);
  for (const Track& track : tracks_) {
    if (track.mark) cuda.event_destroy(track.mark);
    if (track.stream) cuda.stream_destroy(track.stream);
  }
  if (pool_) cuda.mem_pool_destroy(pool_);
}

Status StreamQueue::usable() const {
  if (gpu_->lost()) return gpu_->lost_error();
  return Unit{};
}

Status StreamQueue::well() const {
  TRY(usable());
  CurrentContext current(*gpu_);
  const Code code = gpu_->driver().event_query(track(Lane::kernels).mark);
  return is_sticky(code) ? gpu_->check(code, "waiting for " + name_) : Unit{};
}

Status StreamQueue::are_well(const std::vector<Followed::Note>& followed) {
  for (const auto& [queue, number] : followed) TRY(queue->well());
  followed_.forget(followed);
  return Unit{};
}

void StreamQueue::follow(const StreamQueue& other) {
  for (const auto& [queue, number] : other.followed_.notes())
    if (queue->gpu_ != gpu_) followed_.add(*queue);
  if (other.gpu_ != gpu_) followed_.add(*other.home_);
}

// ---- memory ----------------------------------------------------------------

// Much memory is allocated in the order of copies, so that it can be filled
// while kernels are at work.
Result<DevicePointer> StreamQueue::allocate(int64_t bytes) {
  TRY(usable());
  const Driver& cuda = gpu_->driver();
  const bool much = bytes >= tuning().gpu_least_staged_copy;
  Stream stream = much ? copies() : kernels();
  CurrentContext current(*gpu_);
  DevicePointer pointer = 0;
  const Code code = with_room([&] {
    return cuda.mem_alloc_from_pool_async(
        &pointer, static_cast<size_t>(std::max<int64_t>(bytes, 1)), pool_,
        stream);
  });
  if (code == success && !much) return pointer;
  if (code == success) {
    Status done = mark(Lane::copies);
    if (done) done = wait_for(*this, Lane::kernels, Lane::copies);
    if (done) return pointer;
    cuda.mem_free_async(pointer, stream);
    return done.error();
  }
  Error error = gpu_->check(code, "allocating on " + name_).error();
  if (code != out_of_memory) return error;
  size_t free = 0, total = 0;
  cuda.mem_get_info(&free, &total);
  error.message =
      fmt::format("out of memory on {}: {} bytes asked for, {} of {} free",
                  name_, bytes, free, total);
  return error;
}

void StreamQueue::free(DevicePointer pointer) {
  CurrentContext current(*gpu_);
  (void)gpu_->check(gpu_->driver().mem_free_async(pointer, kernels()),
                    "freeing memory of " + name_);
}

/// What was freed can be given back once the streams have come past that.
void StreamQueue::trim() {
  if (gpu_->lost()) return;
  settle();
  gpu_->unload_unused();
  CurrentContext current(*gpu_);
  gpu_->driver().mem_pool_trim_to(pool_, 0);
}

void StreamQueue::trim_to(int64_t keep) {
  if (gpu_->lost()) return;
  CurrentContext current(*gpu_);
  gpu_->driver().mem_pool_trim_to(pool_, static_cast<size_t>(keep));
}

int64_t StreamQueue::held_bytes() const {
  uint64_t bytes = 0;
  CurrentContext current(*gpu_);
  const Code code = gpu_->driver().mem_pool_get_attribute(
      pool_, MemoryPoolAttribute::reserved_mem_current, &bytes);
  return code == success ? static_cast<int64_t>(bytes) : 0;
}

// A system that does not do it, for want of links or for reasons of its own, is
// no failure: copies go another way then.
Status StreamQueue::admit(const Gpu& peer) {
  if (&peer == gpu_.get()) return Unit{};
  const Driver& cuda = gpu_->driver();
  int can = 0;
  const std::string doing =
      fmt::format("letting {} see the memory of {}", peer.name(), name_);
  Code code = cuda.device_can_access_peer(&can, peer.device(), gpu_->device());
  if (code == success && !can) return Unit{};
  CurrentContext current(peer);
  if (code == success) code = cuda.ctx_enable_peer_access(gpu_->context(), 0);
  if (code == success || code == peer_access_already_enabled) {
    const MemoryAccessDescription access{
        {MemoryLocationType::device, peer.device()}, MemoryAccess::read_write};
    code = cuda.mem_pool_set_access(pool_, &access, 1);
  }
  if (is_sticky(code)) return gpu_->check(code, doing);
  if (code == success) admitted_.push_back(&peer);
  return Unit{};
}

bool StreamQueue::reaches(const Queue& other) const {
  const auto& peer = static_cast<const StreamQueue&>(other);
  const auto& admitted = peer.home_->admitted_;
  return peer.gpu_ == gpu_ || std::find(admitted.begin(), admitted.end(),
                                        gpu_.get()) != admitted.end();
}

CopyEnds StreamQueue::ends_with(const Queue& peer) const {
  return {.to = gpu_->context(),
          .from = static_cast<const StreamQueue&>(peer).gpu_->context(),
          .seen = reaches(peer)};
}

Result<void*> StreamQueue::borrow_staging(int64_t bytes) {
  std::lock_guard lock(staging_mutex_);
  for (Staging& staging : stagings_)
    if (!staging.lent && staging.bytes >= bytes) {
      staging.lent = true;
      return staging.memory;
    }
  CurrentContext current(*gpu_);
  // A larger one takes the place of those that are too small.
  std::erase_if(stagings_, [&](const Staging& staging) {
    if (!staging.lent) gpu_->driver().mem_free_host(staging.memory);
    return !staging.lent;
  });
  Staging made{.bytes = bytes, .lent = true};
  TRY(gpu_->check(
      gpu_->driver().mem_host_alloc(
          &made.memory, static_cast<size_t>(bytes),
          host_alloc_portable | host_alloc_device_map),
      fmt::format("allocating {} bytes of host memory for {}", bytes, name_)));
  stagings_.push_back(made);
  return made.memory;
}

void StreamQueue::return_staging(void* memory) {
  std::lock_guard lock(staging_mutex_);
  for (Staging& staging : stagings_)
    if (staging.memory == memory) staging.lent = false;
}

// ---- launches --------------------------------------------------------------

void StreamQueue::stop_when(const std::atomic<bool>* flag) {
  gpu_->driver().end_early(kernels(), flag);
}

Status StreamQueue::prepare(const GridLaunch& launch) {
  if (prepare_product(launch)) return Unit{};
  auto kernel = gpu_->kernel(launch.code, launch.entry);
  // Pools may have all of the memory that the code needs.
  if (!kernel && kernel.error().kind == Error::Kind::out_of_memory &&
      make_room_) {
    make_room_();
    kernel = gpu_->kernel(launch.code, launch.entry);
  }
  if (!kernel) return kernel.error();
  return Unit{};
}

Status StreamQueue::launch(const GridLaunch& launch, const Call& call) {
  if (launch_product(launch, call)) return Unit{};
  const Gpu::Kernel kernel = TRY(gpu_->kernel(launch.code, launch.entry));
  std::vector<void*> parameters;
  parameters.reserve(call.arguments.size() + 4);
  auto add = [&](const auto& value) {
    parameters.push_back(const_cast<void*>(static_cast<const void*>(&value)));
  };
  for (void* const& argument : call.arguments) add(argument);
  if (launch.reports) {
    add(call.error);
    add(call.number);
    add(call.position);
  }
  if (!launch.constants.empty()) add(launch.constants[0]);
  CurrentContext current(*gpu_);
  const Code code = with_room([&] {
    return gpu_->driver().launch_kernel(
        kernel.function, static_cast<unsigned>(launch.blocks), 1, 1,
        static_cast<unsigned>(launch.threads), 1, 1, kernel.shared_bytes,
        stream(call.lane), parameters.data(), nullptr);
  });
  if (code == success) return Unit{};
  return gpu_->check(code, "launching a kernel on " + name_);
}

// ---- copies and order ------------------------------------------------------

Status StreamQueue::copy(void* to, const Queue& peer, const void* from,
                         int64_t bytes, Lane lane) {
  TRY(usable());
  CurrentContext current(*gpu_);
  return gpu_->check(copy_rows_between(gpu_->driver(), ends_with(peer), to,
                                       from, bytes, track(lane).stream),
                     "copying to " + name_);
}

Status StreamQueue::copy_to_staging(void* to, const void* from, int64_t bytes) {
  TRY(usable());
  CurrentContext current(*gpu_);
  return gpu_->check(
      copy_rows_to_host(gpu_->driver(), to, from, bytes, kernels()),
      "copying from " + name_);
}

Status StreamQueue::zero(void* to, int64_t bytes, Lane lane) {
  TRY(usable());
  CurrentContext current(*gpu_);
  return gpu_->check(
      gpu_->driver().memset_d8_async(address(to), 0, static_cast<size_t>(bytes),
                                     track(lane).stream),
      "clearing memory of " + name_);
}

Status StreamQueue::mark(Lane lane) {
  TRY(usable());
  CurrentContext current(*gpu_);
  const Track& on = track(lane);
  return gpu_->check(gpu_->driver().event_record(on.mark, on.stream),
                     "marking work of " + name_);
}

Status StreamQueue::wait_for(const Queue& other, Lane own, Lane others) {
  TRY(usable());
  const auto& peer = static_cast<const StreamQueue&>(other);
  follow(peer);
  CurrentContext current(*gpu_);
  return gpu_->check(
      gpu_->driver().stream_wait_event(track(own).stream,
                                       peer.track(others).mark, 0),
      fmt::format("ordering work of {} and {}", peer.name_, name_));
}

Status StreamQueue::finish(Lane lane) {
  TRY(usable());
  TRY(before_wait());
  const auto followed = followed_.notes();
  CurrentContext current(*gpu_);
  TRY(gpu_->check(gpu_->driver().stream_synchronize(track(lane).stream),
                  "waiting for " + name_));
  return are_well(followed);
}

void StreamQueue::settle() {
  CurrentContext current(*gpu_);
  (void)before_wait();
  for (const Track& track : tracks_)
    gpu_->driver().stream_synchronize(track.stream);
}

// Few bytes go through pinned memory: to other memory of the host each copy is
// waited for by itself.
Status StreamQueue::read(std::span<const Read> what, Lane lane) {
  TRY(usable());
  int64_t bytes = 0;
  bool rows = false;
  for (const auto& [to, from, extent] : what) {
    bytes += extent.bytes;
    rows = rows || extent.rows > 1;
  }
  char* pinned = nullptr;
  if (words_ && !rows && bytes <= bytes_of_words && !words_lent_.exchange(true))
    pinned = static_cast<char*>(words_);
  Status done = Unit{};
  int64_t at = 0;
  for (const auto& [to, from, extent] : what) {
    if (!done) break;
    done = put_read(pinned ? pinned + at : to, from, extent, lane);
    at += extent.bytes;
  }
  Status finished = finish(lane);
  if (done) done = finished;
  if (!pinned) return done;
  for (const auto& [to, from, extent] : what) {
    if (done) std::memcpy(to, pinned, static_cast<size_t>(extent.bytes));
    pinned += extent.bytes;
  }
  words_lent_ = false;
  return done;
}

Status StreamQueue::put_read(void* to, const void* from,
                             const CopyExtent& extent, Lane lane) {
  CurrentContext current(*gpu_);
  if (lane == Lane::copies &&
      extent.bytes * extent.rows >= tuning().gpu_least_staged_copy &&
      ring_.open())
    return ring_.download(copies(), static_cast<char*>(to),
                          static_cast<const char*>(from), extent);
  return gpu_->check(
      copy_rows_to_host(gpu_->driver(), to, from, extent, track(lane).stream),
      "copying from " + name_);
}

Status StreamQueue::write(void* to, const void* from, const CopyExtent& extent,
                          Lane lane) {
  if (lane == Lane::kernels) return rows_from_host(to, from, extent);
  const int64_t bytes = extent.bytes * extent.rows;
  if (bytes == 0) return Unit{};
  TRY(usable());
  CurrentContext current(*gpu_);
  Status done = bytes >= tuning().gpu_least_staged_copy && ring_.open()
                    ? ring_.upload(copies(), static_cast<char*>(to),
                                   static_cast<const char*>(from), extent)
                    : gpu_->check(copy_rows_from_host(gpu_->driver(), to, from,
                                                      extent, copies()),
                                  "copying to " + name_);
  Status finished = finish(lane);
  return done ? finished : done;
}

// ---- captured work ----------------------------------------------------------

namespace {

class CapturedGraph final : public Queue::Captured {
 public:
  CapturedGraph(std::shared_ptr<Gpu> gpu, GraphExec exec)
      : gpu_(std::move(gpu)), exec_(exec) {}
  ~CapturedGraph() override {
    CurrentContext current(*gpu_);
    gpu_->driver().graph_exec_destroy(exec_);
  }
  GraphExec exec() const { return exec_; }

 private:
  const std::shared_ptr<Gpu> gpu_;
  GraphExec exec_;
};

}  // namespace

Result<std::unique_ptr<Queue>> StreamQueue::capturing() {
  TRY(usable());
  std::unique_ptr<StreamQueue> queue(new StreamQueue(gpu_, name_, home_));
  TRY(queue->start_tracks());
  return std::unique_ptr<Queue>(std::move(queue));
}

// Relaxed: other threads go on to use the driver as they like.
Status StreamQueue::begin_capture() {
  TRY(usable());
  CurrentContext current(*gpu_);
  return gpu_->check(
      gpu_->driver().stream_begin_capture(kernels(), CaptureMode::relaxed),
      "capturing work of " + name_);
}

Result<std::unique_ptr<Queue::Captured>> StreamQueue::end_capture() {
  const Driver& cuda = gpu_->driver();
  const std::string doing = "capturing work of " + name_;
  CurrentContext current(*gpu_);
  Graph graph = nullptr;
  Status done = gpu_->check(cuda.stream_end_capture(kernels(), &graph), doing);
  GraphExec exec = nullptr;
  if (done) done = gpu_->check(cuda.graph_instantiate(&exec, graph, 0), doing);
  if (graph) cuda.graph_destroy(graph);
  if (!done) return done.error();
  return std::unique_ptr<Captured>(std::make_unique<CapturedGraph>(gpu_, exec));
}

Status StreamQueue::replay(const Captured& work) {
  TRY(usable());
  CurrentContext current(*gpu_);
  return gpu_->check(
      gpu_->driver().graph_launch(
          static_cast<const CapturedGraph&>(work).exec(), kernels()),
      "launching kernels on " + name_);
}

// ---- copies of arrays ------------------------------------------------------
//
// Few bytes go with the kernels, many beside them; their memory was then
// allocated there (allocate). What comes from the host is staged, and the GPU's
// copy not waited for: the lane is marked, and whoever uses the memory in
// another lane waits for that mark: the device's own kernels at once, other
// copies before they begin. A copy from a peer comes after what was put there
// before; one to the host after what was marked, as the host has waited for
// kernels, and after few bytes that may be on their way with these.

Status StreamQueue::wait_for_marks_of(StreamQueue& other, Lane own) {
  for (Lane lane : {Lane::kernels, Lane::copies}) {
    if (&other == this && lane == own) continue;
    TRY(wait_for(other, own, lane));
  }
  return Unit{};
}

Status StreamQueue::rows_from_host(void* to, const void* from,
                                   const CopyExtent& extent) {
  const int64_t bytes = extent.bytes * extent.rows;
  if (bytes == 0) return Unit{};
  TRY(usable());
  TRY(before_wait());
  CurrentContext current(*gpu_);
  if (bytes >= tuning().gpu_least_staged_copy && ring_.open()) {
    Status done = ring_.upload(copies(), static_cast<char*>(to),
                               static_cast<const char*>(from), extent);
    if (done) done = mark(Lane::copies);
    if (done) done = wait_for(*this, Lane::kernels, Lane::copies);
    if (!done) settle();
    return done;
  }
  if (ring_.takes(extent) && ring_.open()) {
    Status done = ring_.upload_few(kernels(), static_cast<char*>(to),
                                   static_cast<const char*>(from), extent);
    if (!done) settle();
    few_put_ = true;
    return done;
  }
  Status done = gpu_->check(
      copy_rows_from_host(gpu_->driver(), to, from, extent, kernels()),
      "copying to " + name_);
  return done ? finish() : done;
}

Status StreamQueue::rows_to_host(void* to, const void* from,
                                 const CopyExtent& extent) {
  const int64_t bytes = extent.bytes * extent.rows;
  if (bytes == 0) return Unit{};
  TRY(usable());
  TRY(before_wait());
  CurrentContext current(*gpu_);
  if (bytes >= tuning().gpu_least_staged_copy && ring_.open()) {
    Status done =
        few_put_.exchange(false) ? mark(Lane::kernels) : Status(Unit{});
    if (done) done = wait_for_marks_of(*this, Lane::copies);
    const auto followed = followed_.notes();
    if (done)
      done = ring_.download(copies(), static_cast<char*>(to),
                            static_cast<const char*>(from), extent);
    return done ? are_well(followed) : done;
  }
  Status done = gpu_->check(
      copy_rows_to_host(gpu_->driver(), to, from, extent, kernels()),
      "copying from " + name_);
  return done ? finish() : done;
}

Status StreamQueue::rows_from_peer(void* to, StreamQueue& peer,
                                   const void* from, const CopyExtent& extent) {
  const int64_t bytes = extent.bytes * extent.rows;
  if (bytes == 0) return Unit{};
  TRY(usable());
  TRY(peer.usable());
  const Lane lane =
      bytes >= tuning().gpu_least_staged_copy ? Lane::copies : Lane::kernels;
  CurrentContext current(*gpu_);
  Status done = peer.mark(Lane::kernels);  // a run may be under way there
  if (done) done = peer.mark(Lane::copies);
  if (done) done = wait_for_marks_of(peer, lane);
  if (done)
    done = gpu_->check(copy_rows_between(gpu_->driver(), ends_with(peer), to,
                                         from, extent, track(lane).stream),
                       "copying to " + name_);
  if (done) done = mark(lane);
  // What comes next may free the memory on either side, or overwrite it.
  for (Lane next : {Lane::kernels, Lane::copies}) {
    if (done && next != lane) done = wait_for(*this, next, lane);
    if (done && &peer != this) done = peer.wait_for(*this, next, lane);
  }
  if (!done) settle();
  return done;
}

}  // namespace unisono::cuda
