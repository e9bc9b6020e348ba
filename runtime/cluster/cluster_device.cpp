#include "runtime/cluster/cluster_device.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <optional>
#include <utility>

#include "runtime/check.h"

namespace unisono {
namespace {

/// Stands for memory of another process: never read, and not null, so that
/// places in it can be named.
void* const elsewhere = reinterpret_cast<void*>(64);

void copy_rows(void* to, const void* from, const CopyExtent& extent) {
  for (int64_t row = 0; row < extent.rows; ++row)
    std::memcpy(static_cast<char*>(to) + row * extent.to_step,
                static_cast<const char*>(from) + row * extent.from_step,
                static_cast<size_t>(extent.bytes));
}

int64_t bytes_of(const CopyExtent& extent) {
  return extent.bytes * extent.rows;
}

/// The rows on one side of a copy, one after the other.
class Rows {
 public:
  Rows(void* data, const CopyExtent& extent, int64_t step)
      : data_(data), extent_(extent), step_(step) {
    if (extent.rows > 1) rows_.resize(static_cast<size_t>(bytes_of(extent)));
  }
  void* dense() { return extent_.rows > 1 ? rows_.data() : data_; }
  /// Brings them there before they are sent.
  void pack() {
    if (extent_.rows > 1)
      copy_rows(rows_.data(), data_,
                {extent_.bytes, extent_.rows, extent_.bytes, step_});
  }
  /// And to their place after they have come.
  void unpack() {
    if (extent_.rows > 1)
      copy_rows(data_, rows_.data(),
                {extent_.bytes, extent_.rows, step_, extent_.bytes});
  }

 private:
  void* data_;
  CopyExtent extent_;
  int64_t step_;
  std::vector<char> rows_;
};

/// The extent of a copy whose rows lie one after the other on these sides.
struct Dense {
  bool to = false, from = false;
};
CopyExtent with_dense(CopyExtent extent, Dense dense) {
  if (dense.to) extent.to_step = extent.bytes;
  if (dense.from) extent.from_step = extent.bytes;
  return extent;
}

/// The memory of a buffer that somebody else gives back.
void* take(Buffer buffer) {
  union Kept {
    explicit Kept(Buffer from) : buffer(std::move(from)) {}
    ~Kept() {}
    Buffer buffer;  // is not destroyed
  } kept(std::move(buffer));
  return kept.buffer.data();
}

}  // namespace

ClusterDevice::ClusterDevice(std::shared_ptr<Cluster> cluster, int process,
                             int index, std::shared_ptr<MemoryBudget> budget)
    : cluster_(std::move(cluster)),
      process_(process),
      here_(process == all || process == cluster_->process()),
      name_(fmt::format("cpu:{}", index)),
      index_(index),
      budget_(std::move(budget)) {
  heap_.emplace(*budget_);
}

ClusterDevice::ClusterDevice(std::shared_ptr<Cluster> cluster, int process,
                             int index, std::shared_ptr<const ClusterGpus> gpus,
                             std::shared_ptr<Device> own)
    : cluster_(std::move(cluster)),
      process_(process),
      here_(process == all || process == cluster_->process()),
      name_(fmt::format("{}:{}", gpus->kind, index)),
      index_(index),
      gpus_(std::move(gpus)),
      own_(std::move(own)) {
  CHECK(here_ == (own_ != nullptr));
  if (own_ && process_ != all) own_->on_shortage([this] { relieve(); });
}

Result<Buffer> ClusterDevice::allocate(int64_t bytes) {
  if (!here_) return Buffer(this, elsewhere, bytes);
  if (own_) return Buffer(this, take(TRY(own_->allocate(bytes))), bytes);
  if (void* data = heap_->allocate(bytes)) return Buffer(this, data, bytes);
  relieve();
  if (void* data = heap_->allocate(bytes)) return Buffer(this, data, bytes);
  return Error{.kind = Error::Kind::out_of_memory,
               .message = fmt::format(
                   "out of memory on {}: {} bytes asked for, {} in use there, "
                   "and all devices of {} may have {}",
                   name_, bytes, heap_->bytes_in_use(),
                   cluster_->label(cluster_->process()), budget_->limit())};
}

void ClusterDevice::free(void* data, int64_t bytes) {
  if (own_)
    own_->free(data, bytes);
  else if (here_)
    heap_->free(data, bytes);
}

int64_t ClusterDevice::bytes_in_use() const {
  return own_ ? own_->bytes_in_use() : heap_ ? heap_->bytes_in_use() : 0;
}

int64_t ClusterDevice::peak_bytes() const {
  return own_ ? own_->peak_bytes() : heap_ ? heap_->peak_bytes() : 0;
}

/// Copies between the memory that this process has, and the host's. Aside of
/// the program they do not wait for its kernels, nor these for them.
Status ClusterDevice::to_own(void* to, const void* from,
                             const CopyExtent& extent) {
  if (own_ && cluster_->background().is_here())
    return own_->queue()->write(to, from, extent, Lane::copies);
  if (own_) return own_->copy_from_host(to, from, extent);
  copy_rows(to, from, extent);
  return Unit{};
}
Status ClusterDevice::from_own(void* to, const void* from,
                               const CopyExtent& extent) {
  if (own_ && cluster_->background().is_here()) {
    const Queue::Read read{to, from, extent};
    return own_->queue()->read({&read, 1}, Lane::copies);
  }
  if (own_) return own_->copy_to_host(to, from, extent);
  copy_rows(to, from, extent);
  return Unit{};
}

Status ClusterDevice::copy_from_host(void* to, const void* from,
                                     const CopyExtent& extent) {
  return here_ ? to_own(to, from, extent) : Unit{};
}

Status ClusterDevice::copy_to_host(void* to, const void* from,
                                   const CopyExtent& extent) {
  if (here_) TRY(from_own(to, from, extent));
  if (process_ == all || bytes_of(extent) == 0) return Unit{};
  Rows rows(to, extent, extent.to_step);
  if (here_) rows.pack();
  TRY(cluster_->broadcast(process_, rows.dense(), bytes_of(extent)));
  if (!here_) rows.unpack();
  return Unit{};
}

Status ClusterDevice::copy_from_peer(void* to, const Device& peer,
                                     const void* from,
                                     const CopyExtent& extent) {
  if (peer.index() == FileDevice::no_index)
    return from_file(to, const_cast<Device&>(peer), from, extent);
  // Who has the peer sends; it does not change.
  auto* other = const_cast<ClusterDevice*>(cluster_device(peer));
  CHECK(other);
  if (other->process_ == process_ || other->process_ == all) {
    if (!here_) return Unit{};
    if (own_) return own_->copy_from_peer(to, *other->own_, from, extent);
    return copy_from_host(to, from, extent);
  }
  if (process_ != all) return from_other(to, *other, from, extent);
  if (!own_) return other->copy_to_host(to, from, extent);
  const int64_t bytes = bytes_of(extent);
  if (bytes == 0) return Unit{};
  std::vector<char> rows(static_cast<size_t>(bytes));
  TRY(other->copy_to_host(rows.data(), from,
                          with_dense(extent, {.to = true, .from = false})));
  return to_own(to, rows.data(),
                with_dense(extent, {.to = false, .from = true}));
}

/// Whoever needs it reads it.
Status ClusterDevice::from_file(void* to, Device& file, const void* from,
                                const CopyExtent& extent) {
  if (!here_) return Unit{};
  if (!own_) return file.copy_to_host(to, from, extent);
  std::vector<char> rows(static_cast<size_t>(bytes_of(extent)));
  TRY(file.copy_to_host(rows.data(), from,
                        with_dense(extent, {.to = true, .from = false})));
  return own_->copy_from_host(to, rows.data(),
                              with_dense(extent, {.to = false, .from = true}));
}

/// Two processes exchange; the others count that they do.
Status ClusterDevice::from_other(void* to, ClusterDevice& sender,
                                 const void* from, const CopyExtent& extent) {
  const int64_t bytes = bytes_of(extent);
  if (bytes == 0) return Unit{};
  if (!here_ && !sender.here_) return cluster_->exchange({}, {}, 0);
  // The host's memory needs no copy where its rows are one.
  const bool copies = own_ || sender.own_ || extent.rows > 1;
  std::vector<char> rows(copies ? static_cast<size_t>(bytes) : 0);
  if (sender.here_) {
    if (copies)
      TRY(sender.from_own(rows.data(), from,
                          with_dense(extent, {.to = true, .from = false})));
    const Message message{
        process_, {{copies ? rows.data() : const_cast<void*>(from), bytes}}};
    return cluster_->exchange({&message, 1}, {}, 0);
  }
  const Message message{sender.process_, {{copies ? rows.data() : to, bytes}}};
  TRY(cluster_->exchange({}, {&message, 1}, 0));
  if (!copies) return Unit{};
  return to_own(to, rows.data(),
                with_dense(extent, {.to = false, .from = true}));
}

Array own_copy(const Array& array, Device& home) {
  const Sharding& sharding = array.sharding();
  if (sharding.is_split() || sharding.devices.size() < 2 ||
      home.kind() != DeviceKind::cpu)
    return array;
  std::vector<bool> have;
  std::optional<size_t> own;
  for (size_t b = 0; b < sharding.devices.size(); ++b) {
    const ClusterDevice* device = cluster_device(*sharding.devices[b]);
    if (!device || device->process() == ClusterDevice::all) return array;
    have.resize(static_cast<size_t>(device->cluster().processes()));
    have[device->process()] = true;
    if (device->is_here() && !own) own = b;
  }
  if (!own || !std::ranges::all_of(have, [](bool has) { return has; }))
    return array;
  return Array(array.dtype(), array.shape(), Sharding{-1, {&home}},
               {array.blocks()[*own]});
}

std::vector<std::unique_ptr<Device>> make_cluster_devices(
    const std::shared_ptr<Cluster>& cluster, int64_t memory_limit) {
  // Processes of one host share its memory.
  const auto budget = std::make_shared<MemoryBudget>(
      memory_limit > 0 ? memory_limit
                       : MemoryBudget::default_limit() /
                             std::max(1, cluster->on_this_host()));
  std::vector<std::unique_ptr<Device>> devices;
  for (int p = 0; p < cluster->processes(); ++p)
    for (int i = 0; i < cluster->devices_each(); ++i)
      devices.push_back(std::make_unique<ClusterDevice>(
          cluster, p, static_cast<int>(devices.size()), budget));
  auto& first = static_cast<ClusterDevice&>(*devices[0]);
  first.keep_home(
      std::make_unique<ClusterDevice>(cluster, ClusterDevice::all, 0, budget));
  return devices;
}

std::vector<std::unique_ptr<Device>> make_cluster_devices(
    const std::shared_ptr<Cluster>& cluster,
    std::shared_ptr<const ClusterGpus> gpus,
    const std::vector<std::shared_ptr<Device>>& own) {
  const int each = cluster->devices_each();
  CHECK(own.size() == static_cast<size_t>(each));
  std::vector<std::unique_ptr<Device>> devices;
  for (int p = 0; p < cluster->processes(); ++p)
    for (int i = 0; i < each; ++i)
      devices.push_back(std::make_unique<ClusterDevice>(
          cluster, p, static_cast<int>(devices.size()), gpus,
          p == cluster->process() ? own[i] : nullptr));
  auto& first = static_cast<ClusterDevice&>(*devices[0]);
  first.keep_home(std::make_unique<ClusterDevice>(cluster, ClusterDevice::all,
                                                  0, gpus, own[0]));
  return devices;
}

}  // namespace unisono
