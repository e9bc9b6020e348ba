#include "runtime/cuda/device.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <map>
#include <numeric>

#include "runtime/check.h"
#include "runtime/cuda/nccl_library.h"
#include "runtime/cuda/queue.h"
#include "runtime/files/file_device.h"
#include "runtime/tuning/tuning.h"

namespace unisono {
namespace {

using cuda::Driver;
using cuda::Gpu;
using cuda::StreamQueue;

/// A logical device: a stream and a pool of memory on a GPU.
class CudaDevice final : public Device {
 public:
  /// `limit`: the most bytes in use; 0: as many as there are.
  CudaDevice(int index, std::string name, std::unique_ptr<StreamQueue> queue,
             int64_t limit)
      : name_(std::move(name)),
        index_(index),
        limit_(limit),
        queue_(std::move(queue)) {
    queue_->on_shortage([this] { make_room(); });
  }

  const std::string& name() const override { return name_; }
  int index() const override { return index_; }
  Queue* queue() override { return queue_.get(); }
  DeviceKind kind() const override { return DeviceKind::gpu; }
  int capability() const override { return queue_->gpu().capability(); }
  StreamQueue& stream() { return *queue_; }
  /// Devices that hold memory of the same GPU.
  void share_with(std::vector<CudaDevice*> others) {
    sharing_ = std::move(others);
  }

  Result<Buffer> allocate(int64_t bytes) override {
    int64_t now = TRY(reserve(bytes));
    auto pointer = queue_->allocate(bytes);
    if (!pointer) {
      in_use_ -= bytes;
      return pointer.error();
    }
    raise(peak_, now);
    raise(recent_peak_, now);
    void* const data = reinterpret_cast<void*>(*pointer);  // NOLINT: an address
    return Buffer(this, data, bytes);
  }
  void free(void* data, int64_t bytes) override {
    queue_->free(reinterpret_cast<cuda::DevicePointer>(data));
    in_use_ -= bytes;
  }

  Status copy_from_host(void* to, const void* from,
                        const CopyExtent& extent) override {
    return queue_->rows_from_host(to, from, extent);
  }
  Status copy_to_host(void* to, const void* from,
                      const CopyExtent& extent) override {
    return queue_->rows_to_host(to, from, extent);
  }
  Status copy_from_peer(void* to, const Device& peer, const void* from,
                        const CopyExtent& extent) override {
    if (peer.index() == FileDevice::no_index)
      return read_rows(to, const_cast<Device&>(peer), from, extent);
    CHECK(peer.kind() == kind());  // as all devices of a machine
    // Its queue, not its memory, is changed.
    auto& other = const_cast<Device&>(peer);
    return queue_->rows_from_peer(to, static_cast<CudaDevice&>(other).stream(),
                                  from, extent);
  }

  int64_t bytes_in_use() const override { return in_use_; }
  int64_t peak_bytes() const override { return peak_; }
  int64_t bytes_held() const override {
    return std::max(queue_->held_bytes(), bytes_in_use());
  }
  int64_t memory_limit() const override { return limit_; }
  void give_back_unused() override {
    queue_->trim_to(
        std::max(recent_peak_.exchange(in_use_), tuning().gpu_kept_bytes));
  }
  void use_workers(std::shared_ptr<Pool> pool) override {
    queue_->use_workers(std::move(pool));
  }

 private:
  /// From a file, in pieces: the GPU copies one while the next is read.
  Status read_rows(void* to, Device& file, const void* from,
                   const CopyExtent& extent) {
    const int64_t most = tuning().gpu_file_piece_bytes;
    const int64_t width = std::clamp<int64_t>(extent.bytes, 1, most);
    const int64_t together = std::clamp<int64_t>(most / width, 1, extent.rows);
    std::vector<char> piece(static_cast<size_t>(width * together));
    for (int64_t row = 0; row < extent.rows; row += together) {
      const int64_t rows = std::min(together, extent.rows - row);
      for (int64_t begin = 0; begin < extent.bytes; begin += width) {
        const int64_t bytes = std::min(width, extent.bytes - begin);
        TRY(file.copy_to_host(
            piece.data(),
            static_cast<const char*>(from) + row * extent.from_step + begin,
            CopyExtent(bytes, rows, bytes, extent.from_step)));
        TRY(queue_->rows_from_host(
            static_cast<char*>(to) + row * extent.to_step + begin, piece.data(),
            CopyExtent(bytes, rows, extent.to_step, bytes)));
      }
    }
    return Unit{};
  }

  static void raise(std::atomic<int64_t>& most, int64_t now) {
    int64_t before = most.load();
    while (before < now && !most.compare_exchange_weak(before, now)) {
    }
  }

  /// Counts bytes as in use, and gives how many are; an error if that is more
  /// than the limit even after all was freed that can be done without.
  Result<int64_t> reserve(int64_t bytes) {
    const int64_t now = in_use_.fetch_add(bytes) + bytes;
    if (limit_ == 0 || now <= limit_) return now;
    relieve();
    if (in_use_ <= limit_) return in_use_.load();
    const int64_t before = in_use_.fetch_sub(bytes) - bytes;
    return Error{
        .kind = Error::Kind::out_of_memory,
        .message = fmt::format("out of memory on {}: {} bytes asked for, {} in "
                               "use, and {} may be (--memory-limit)",
                               name_, bytes, before, limit_)};
  }

  /// Gives the GPU all memory back that its devices can do without.
  void make_room() {
    relieve();
    queue_->trim();
    for (CudaDevice* other : sharing_) other->queue_->trim();
  }

  const std::string name_;
  const int index_;
  const int64_t limit_;
  std::unique_ptr<StreamQueue> queue_;
  std::vector<CudaDevice*> sharing_;
  std::atomic<int64_t> in_use_{0}, peak_{0};
  std::atomic<int64_t> recent_peak_{0};  // since unused memory was given back
};

Result<int> gpu_count(const Driver& driver) {
  int count = 0;
  const cuda::Code code = driver.device_get_count(&count);
  if (code != cuda::success) return driver.error(code, "counting the GPUs");
  return count;
}

/// Which GPUs the devices are on.
Result<std::vector<int>> choose(const Driver& driver,
                                const CudaOptions& options) {
  int count = TRY(gpu_count(driver));
  std::vector<int> gpus = options.gpus;
  if (gpus.empty()) {
    gpus.resize(std::min(count, 64));
    std::iota(gpus.begin(), gpus.end(), 0);
  }
  for (int gpu : gpus)
    if (gpu >= count)
      return Error{
          .kind = Error::Kind::device_lost,
          .message = fmt::format(
              "there is no {}:{}: the driver {} (version {}) has {} {}",
              options.kind, gpu, driver.path(),
              cuda::version_text(driver.version()), count,
              count == 1 ? "GPU" : "GPUs")};
  if (gpus.empty())
    return Error{.kind = Error::Kind::device_lost,
                 .message = fmt::format("the CUDA driver {} found no GPU",
                                        driver.path())};
  return gpus;
}

/// Of each of `devices` logical devices on one GPU.
int64_t limit_of(const CudaOptions& options, const Gpu& gpu, int64_t devices) {
  if (options.memory_limit > 0 || options.memory_share <= 0)
    return options.memory_limit;
  size_t bytes = 0;
  gpu.driver().device_total_mem(&bytes, gpu.device());
  const double share = options.memory_share * static_cast<double>(bytes) /
                       static_cast<double>(devices);
  return std::max<int64_t>(static_cast<int64_t>(share), 1);
}

/// Tells devices of one another: those that share a GPU, and those that can
/// see each other's memory.
Status introduce(const std::vector<CudaDevice*>& devices) {
  for (CudaDevice* device : devices) {
    std::vector<CudaDevice*> sharing;
    std::vector<const Gpu*> known;
    for (CudaDevice* other : devices) {
      const Gpu& peer = other->stream().gpu();
      if (&peer == &device->stream().gpu()) {
        if (other != device) sharing.push_back(other);
      } else if (std::find(known.begin(), known.end(), &peer) == known.end()) {
        known.push_back(&peer);
        TRY(device->stream().admit(peer));
      }
    }
    device->share_with(std::move(sharing));
  }
  return Unit{};
}

}  // namespace

Result<std::vector<std::unique_ptr<Device>>> open_cuda_devices(
    const CudaOptions& options) {
  auto driver = TRY(Driver::open(options.driver, options.configuration));
  std::vector<int> chosen = TRY(choose(*driver, options));
  std::map<int, std::shared_ptr<Gpu>> gpus;
  std::map<int, int> copies;
  std::vector<std::unique_ptr<Device>> devices;
  std::vector<CudaDevice*> all;
  std::shared_ptr<cublas::Source> source;
  if (options.cublas &&
      !(driver->simulated() && options.cublas_library.empty()))
    source = std::make_shared<cublas::Source>(options.cublas_library,
                                              driver->version());
  for (int number : chosen) {
    const std::string gpu_name = fmt::format("{}:{}", options.kind, number);
    std::shared_ptr<Gpu>& gpu = gpus[number];
    if (!gpu) {
      auto opened = TRY(
          Gpu::open(driver, number, gpu_name, options.cache, options.cubins));
      gpu = opened;
    }
    const int copy = copies[number]++;
    std::string name = copy ? fmt::format("{}.{}", gpu_name, copy) : gpu_name;
    if (!options.names.empty()) name = options.names.at(devices.size());
    auto queue = TRY(StreamQueue::open(gpu, name));
    if (source) queue->use_library(source);
    auto device = std::make_unique<CudaDevice>(
        static_cast<int>(devices.size()), std::move(name), std::move(queue),
        limit_of(options, *gpu, std::ranges::count(chosen, number)));
    all.push_back(device.get());
    devices.push_back(std::move(device));
  }
  TRY(introduce(all));
  return devices;
}

Result<int> count_cuda_devices(const std::string& path) {
  return gpu_count(*TRY(Driver::open(path)));
}

Result<std::vector<std::string>> describe_cuda(const std::string& path,
                                               const std::string& cublas,
                                               const std::string& nccl) {
  auto driver = TRY(Driver::open(path));
  int count = TRY(gpu_count(*driver));
  std::vector<std::string> lines;
  for (int i = 0; i < count; ++i) {
    const std::string name = fmt::format("cuda:{}", i);
    auto gpu = Gpu::open(driver, i, name, nullptr);
    if (!gpu) {
      lines.push_back(fmt::format("{}  {}", name, gpu.error().message));
      continue;
    }
    size_t bytes = 0;
    driver->device_total_mem(&bytes, (*gpu)->device());
    lines.push_back(fmt::format("{}  {}, sm_{}, {:.1f} GiB", name,
                                (*gpu)->model(), (*gpu)->capability(),
                                static_cast<double>(bytes) / (1 << 30)));
  }
  lines.push_back(fmt::format("CUDA driver {}, version {}", driver->path(),
                              cuda::version_text(driver->version())));
  auto library = cublas::Library::open(cublas, driver->version());
  lines.push_back(
      library ? fmt::format("cuBLASLt {}, version {}.{}", (*library)->path(),
                            (*library)->version() / 10000,
                            (*library)->version() % 10000 / 100)
              : fmt::format("products of matrices by kernels of our own: {}",
                            library.error().message));
  auto between = nccl::Library::open(nccl);
  lines.push_back(
      between ? fmt::format("NCCL {}, version {}", (*between)->path(),
                            (*between)->version())
              : fmt::format("GPUs of several processes exchange by way of the "
                            "host's memory: {}",
                            between.error().message));
  return lines;
}

}  // namespace unisono
