#include "runtime/cuda_queue.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>

#include "runtime/check.h"

namespace unisono::cuda {
namespace {

DevicePointer address(const void* pointer) {
  return reinterpret_cast<DevicePointer>(pointer);
}

/// Longer rows than this are copied one by one: drivers bound pitches.
constexpr int64_t most_pitch = int64_t{1} << 30;

}  // namespace

Result<std::unique_ptr<StreamQueue>> StreamQueue::open(std::shared_ptr<Gpu> gpu,
                                                       std::string name) {
  std::unique_ptr<StreamQueue> queue(
      new StreamQueue(std::move(gpu), std::move(name)));
  if (Status started = queue->start(); !started) return started.error();
  return queue;
}

Status StreamQueue::start() {
  const Driver& cuda = gpu_->driver();
  const std::string doing = "opening " + name_;
  CurrentContext current(*gpu_);
  Status done =
      gpu_->check(cuda.stream_create(&stream_, stream_non_blocking), doing);
  if (done)
    done = gpu_->check(cuda.event_create(&mark_, event_disable_timing), doing);
  MemoryPoolProperties properties{};
  properties.allocType = AllocationType::pinned;
  properties.location = {MemoryLocationType::device, gpu_->device()};
  if (done)
    done = gpu_->check(cuda.mem_pool_create(&pool_, &properties), doing);
  uint64_t keep = ~uint64_t{0};
  if (done)
    done =
        gpu_->check(cuda.mem_pool_set_attribute(
                        pool_, MemoryPoolAttribute::release_threshold, &keep),
                    doing);
  return done;
}

StreamQueue::~StreamQueue() {
  const Driver& cuda = gpu_->driver();
  CurrentContext current(*gpu_);
  if (stream_) cuda.stream_synchronize(stream_);
  for (void* staging : stagings_) cuda.mem_free_host(staging);
  if (mark_) cuda.event_destroy(mark_);
  if (stream_) cuda.stream_destroy(stream_);
  if (pool_) cuda.mem_pool_destroy(pool_);
}

Status StreamQueue::usable() {
  if (gpu_->lost()) return gpu_->lost_error();
  return Unit{};
}

// ---- memory ----------------------------------------------------------------

Result<DevicePointer> StreamQueue::allocate(int64_t bytes) {
  if (Status ok = usable(); !ok) return ok.error();
  const Driver& cuda = gpu_->driver();
  CurrentContext current(*gpu_);
  DevicePointer pointer = 0;
  auto attempt = [&] {
    return cuda.mem_alloc_from_pool_async(
        &pointer, static_cast<size_t>(std::max<int64_t>(bytes, 1)), pool_,
        stream_);
  };
  Code code = attempt();
  if (code == out_of_memory) {
    // What was freed is given back once the stream has come past that.
    cuda.stream_synchronize(stream_);
    cuda.mem_pool_trim_to(pool_, 0);
    code = attempt();
  }
  if (code == success) return pointer;
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
  if (gpu_->lost()) return;  // gone with the GPU
  CurrentContext current(*gpu_);
  (void)gpu_->check(gpu_->driver().mem_free_async(pointer, stream_),
                    "freeing memory of " + name_);
}

void StreamQueue::trim() {
  if (gpu_->lost()) return;
  CurrentContext current(*gpu_);
  gpu_->driver().stream_synchronize(stream_);
  gpu_->driver().mem_pool_trim_to(pool_, 0);
}

Status StreamQueue::admit(const Gpu& peer) {
  if (&peer == gpu_.get()) return Unit{};
  const Driver& cuda = gpu_->driver();
  int can = 0;
  const std::string doing =
      fmt::format("letting {} see the memory of {}", peer.name(), name_);
  Status done = gpu_->check(
      cuda.device_can_access_peer(&can, peer.device(), gpu_->device()), doing);
  if (!done || !can) return done;
  CurrentContext current(peer);
  const Code enabled = cuda.ctx_enable_peer_access(gpu_->context(), 0);
  if (enabled != success && enabled != peer_access_already_enabled)
    return Unit{};  // the system has no more links: copies are staged
  const MemoryAccessDescription access{
      {MemoryLocationType::device, peer.device()}, MemoryAccess::read_write};
  done = gpu_->check(cuda.mem_pool_set_access(pool_, &access, 1), doing);
  if (done) admitted_.push_back(&peer);
  return done;
}

bool StreamQueue::reaches(const Queue& other) const {
  const auto& peer = static_cast<const StreamQueue&>(other);
  return peer.gpu_ == gpu_ ||
         std::find(peer.admitted_.begin(), peer.admitted_.end(), gpu_.get()) !=
             peer.admitted_.end();
}

Result<void*> StreamQueue::staging(int64_t bytes) {
  std::lock_guard lock(staging_mutex_);
  if (bytes <= staging_bytes_) return stagings_.back();
  CurrentContext current(*gpu_);
  void* place = nullptr;
  Status done = gpu_->check(
      gpu_->driver().mem_host_alloc(
          &place, static_cast<size_t>(bytes),
          host_alloc_portable | host_alloc_device_map),
      fmt::format("allocating {} bytes of host memory for {}", bytes, name_));
  if (!done) return done.error();
  stagings_.push_back(place);  // others may still use the smaller ones
  staging_bytes_ = bytes;
  return place;
}

// ---- launches --------------------------------------------------------------

Status StreamQueue::prepare(const GridLaunch& launch) {
  auto function = gpu_->function(launch.code, launch.entry);
  if (!function) return function.error();
  return Unit{};
}

Status StreamQueue::launch(const GridLaunch& launch, const Call& call) {
  auto function = gpu_->function(launch.code, launch.entry);
  if (!function) return function.error();
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
  return gpu_->check(gpu_->driver().launch_kernel(
                         *function, static_cast<unsigned>(launch.blocks), 1, 1,
                         static_cast<unsigned>(launch.threads), 1, 1, 0,
                         stream_, parameters.data(), nullptr),
                     fmt::format("launching a kernel on {}", name_));
}

// ---- copies and order ------------------------------------------------------

Status StreamQueue::copy(void* to, const Queue& peer, const void* from,
                         int64_t bytes) {
  if (Status ok = usable(); !ok) return ok;
  const Driver& cuda = gpu_->driver();
  const Gpu& source = *static_cast<const StreamQueue&>(peer).gpu_;
  CurrentContext current(*gpu_);
  const auto size = static_cast<size_t>(bytes);
  const Code code =
      &source == gpu_.get()
          ? cuda.memcpy_dtod_async(address(to), address(from), size, stream_)
          : cuda.memcpy_peer_async(address(to), gpu_->context(), address(from),
                                   source.context(), size, stream_);
  return gpu_->check(code, "copying to " + name_);
}

Status StreamQueue::copy_to_staging(void* to, const void* from, int64_t bytes) {
  if (Status ok = usable(); !ok) return ok;
  CurrentContext current(*gpu_);
  return gpu_->check(
      gpu_->driver().memcpy_dtoh_async(to, address(from),
                                       static_cast<size_t>(bytes), stream_),
      "copying from " + name_);
}

Status StreamQueue::zero(void* to, int64_t bytes) {
  if (Status ok = usable(); !ok) return ok;
  CurrentContext current(*gpu_);
  return gpu_->check(gpu_->driver().memset_d8_async(
                         address(to), 0, static_cast<size_t>(bytes), stream_),
                     "clearing memory of " + name_);
}

Status StreamQueue::mark() {
  if (Status ok = usable(); !ok) return ok;
  CurrentContext current(*gpu_);
  return gpu_->check(gpu_->driver().event_record(mark_, stream_),
                     "marking work of " + name_);
}

Status StreamQueue::wait_for(const Queue& other) {
  if (Status ok = usable(); !ok) return ok;
  const auto& peer = static_cast<const StreamQueue&>(other);
  CurrentContext current(*gpu_);
  return gpu_->check(
      gpu_->driver().stream_wait_event(stream_, peer.mark_, 0),
      fmt::format("ordering work of {} and {}", peer.name_, name_));
}

Status StreamQueue::finish() {
  if (Status ok = usable(); !ok) return ok;
  CurrentContext current(*gpu_);
  return gpu_->check(gpu_->driver().stream_synchronize(stream_),
                     "waiting for " + name_);
}

Status StreamQueue::read(std::span<const Read> what) {
  if (Status ok = usable(); !ok) return ok;
  {
    CurrentContext current(*gpu_);
    for (const Read& read : what) {
      Status done = gpu_->check(gpu_->driver().memcpy_dtoh_async(
                                    read.to, address(read.from),
                                    static_cast<size_t>(read.bytes), stream_),
                                "copying from " + name_);
      if (!done) return done;
    }
  }
  return finish();
}

Status StreamQueue::write(void* to, const void* from, int64_t bytes) {
  return rows_from_host(to, from, bytes);
}

namespace {

/// `extent` as one copy of the driver; without the ends.
Copy2D rows_of(const CopyExtent& extent) {
  Copy2D copy{};
  copy.WidthInBytes = static_cast<size_t>(extent.bytes);
  copy.Height = static_cast<size_t>(extent.rows);
  copy.srcPitch = static_cast<size_t>(extent.from_step);
  copy.dstPitch = static_cast<size_t>(extent.to_step);
  return copy;
}

bool copies_at_once(const CopyExtent& extent) {
  return extent.to_step >= extent.bytes && extent.from_step >= extent.bytes &&
         extent.to_step <= most_pitch && extent.from_step <= most_pitch;
}

/// Calls copy(to, from, bytes) for each row while that succeeds.
template <class F>
Code each_row(char* to, const char* from, const CopyExtent& extent, F&& copy) {
  Code code = success;
  for (int64_t row = 0; row < extent.rows && code == success; ++row)
    code = copy(to + row * extent.to_step, from + row * extent.from_step,
                static_cast<size_t>(extent.bytes));
  return code;
}

}  // namespace

Status StreamQueue::rows_from_host(void* to, const void* from,
                                   const CopyExtent& extent) {
  if (extent.bytes == 0 || extent.rows == 0) return Unit{};
  if (Status ok = usable(); !ok) return ok;
  const Driver& cuda = gpu_->driver();
  Code code;
  {
    CurrentContext current(*gpu_);
    if (extent.rows > 1 && copies_at_once(extent)) {
      Copy2D copy = rows_of(extent);
      copy.srcMemoryType = MemoryType::host;
      copy.srcHost = from;
      copy.dstMemoryType = MemoryType::device;
      copy.dstDevice = address(to);
      code = cuda.memcpy_2d_async(&copy, stream_);
    } else {
      code = each_row(static_cast<char*>(to), static_cast<const char*>(from),
                      extent, [&](char* t, const char* f, size_t bytes) {
                        return cuda.memcpy_htod_async(address(t), f, bytes,
                                                      stream_);
                      });
    }
  }
  if (Status done = gpu_->check(code, "copying to " + name_); !done)
    return done;
  return finish();
}

Status StreamQueue::rows_to_host(void* to, const void* from,
                                 const CopyExtent& extent) {
  if (extent.bytes == 0 || extent.rows == 0) return Unit{};
  if (Status ok = usable(); !ok) return ok;
  const Driver& cuda = gpu_->driver();
  Code code;
  {
    CurrentContext current(*gpu_);
    if (extent.rows > 1 && copies_at_once(extent)) {
      Copy2D copy = rows_of(extent);
      copy.srcMemoryType = MemoryType::device;
      copy.srcDevice = address(from);
      copy.dstMemoryType = MemoryType::host;
      copy.dstHost = to;
      code = cuda.memcpy_2d_async(&copy, stream_);
    } else {
      code = each_row(static_cast<char*>(to), static_cast<const char*>(from),
                      extent, [&](char* t, const char* f, size_t bytes) {
                        return cuda.memcpy_dtoh_async(t, address(f), bytes,
                                                      stream_);
                      });
    }
  }
  if (Status done = gpu_->check(code, "copying from " + name_); !done)
    return done;
  return finish();
}

Status StreamQueue::rows_from_peer(void* to, const StreamQueue& peer,
                                   const void* from, const CopyExtent& extent) {
  if (extent.bytes == 0 || extent.rows == 0) return Unit{};
  if (Status ok = usable(); !ok) return ok;
  const Driver& cuda = gpu_->driver();
  Code code;
  {
    CurrentContext current(*gpu_);
    const bool own = peer.gpu_ == gpu_;
    if (extent.rows > 1 && own && copies_at_once(extent)) {
      Copy2D copy = rows_of(extent);
      copy.srcMemoryType = copy.dstMemoryType = MemoryType::device;
      copy.srcDevice = address(from);
      copy.dstDevice = address(to);
      code = cuda.memcpy_2d_async(&copy, stream_);
    } else if (extent.rows > 1 && copies_at_once(extent)) {
      Copy3DPeer copy{};
      copy.srcMemoryType = copy.dstMemoryType = MemoryType::device;
      copy.srcDevice = address(from);
      copy.dstDevice = address(to);
      copy.srcContext = peer.gpu_->context();
      copy.dstContext = gpu_->context();
      copy.srcPitch = static_cast<size_t>(extent.from_step);
      copy.dstPitch = static_cast<size_t>(extent.to_step);
      copy.srcHeight = copy.dstHeight = copy.Height =
          static_cast<size_t>(extent.rows);
      copy.WidthInBytes = static_cast<size_t>(extent.bytes);
      copy.Depth = 1;
      code = cuda.memcpy_3d_peer_async(&copy, stream_);
    } else {
      code =
          each_row(static_cast<char*>(to), static_cast<const char*>(from),
                   extent, [&](char* t, const char* f, size_t bytes) {
                     return own ? cuda.memcpy_dtod_async(address(t), address(f),
                                                         bytes, stream_)
                                : cuda.memcpy_peer_async(
                                      address(t), gpu_->context(), address(f),
                                      peer.gpu_->context(), bytes, stream_);
                   });
    }
  }
  if (Status done = gpu_->check(code, "copying to " + name_); !done)
    return done;
  return finish();
}

}  // namespace unisono::cuda
