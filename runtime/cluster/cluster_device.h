#pragma once
// Devices of a program in several processes.
//
// What maps place lies on devices of which one process has each: to the others
// such a device is a name, its allocations have a size alone, and what does not
// need them is left out there. What no map has placed is on a device that every
// process has, with the same contents, so the host's part of a program is done
// by each process for itself. All processes make the same calls of devices in
// the same order; where one needs what another has, the call is an exchange of
// the cluster. So who moves arrays (runtime/array.h) knows of no processes.
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "runtime/array.h"
#include "runtime/cluster/cluster.h"
#include "runtime/cluster/mover.h"
#include "runtime/device.h"
#include "runtime/files/file_device.h"
#include "runtime/heap.h"

namespace unisono {

/// What the processes know of GPUs, each of all.
struct ClusterGpus {
  /// "cuda": devices are called "cuda:INDEX".
  std::string kind;
  /// By device of all, their compute capabilities.
  std::vector<int> capabilities;
  /// Moves bytes between two processes' devices.
  std::shared_ptr<Mover> mover;
};

/// Memory of the host, "cpu:INDEX", or of a GPU.
class ClusterDevice final : public Device {
 public:
  /// Which process has it; `all`: each has one of its own.
  static constexpr int all = -1;

  ClusterDevice(std::shared_ptr<Cluster> cluster, int process, int index,
                std::shared_ptr<MemoryBudget> budget);
  /// A GPU of a process; `own` is the device itself where it is this process's,
  /// or `all` have one, else null.
  ClusterDevice(std::shared_ptr<Cluster> cluster, int process, int index,
                std::shared_ptr<const ClusterGpus> gpus,
                std::shared_ptr<Device> own);

  int process() const { return process_; }
  /// Whether this process has it.
  bool is_here() const { return here_; }
  Cluster& cluster() const { return *cluster_; }
  /// Of all devices of a list the first one keeps what every process has.
  void keep_home(std::unique_ptr<Device> home) {
    home_ = std::move(home);
    files_ = std::make_unique<FileDevice>();
  }
  Device* home() const { return home_.get(); }
  /// Likewise the one that stands for files.
  FileDevice& files() const { return *files_; }

  const std::string& name() const override { return name_; }
  int index() const override { return index_; }
  DeviceKind kind() const override {
    return gpus_ ? DeviceKind::gpu : DeviceKind::cpu;
  }
  Queue* queue() override { return own_ ? own_->queue() : nullptr; }
  int capability() const override {
    if (own_) return own_->capability();
    return gpus_ ? gpus_->capabilities[index_] : 0;
  }
  /// Of GPUs alone.
  Mover& mover() const { return *gpus_->mover; }
  /// What this process has, to the host's memory, without the others.
  Status from_own(void* to, const void* from, const CopyExtent& extent);
  Result<Buffer> allocate(int64_t bytes) override;
  void free(void* data, int64_t bytes) override;
  /// The host's bytes are the same in all processes.
  Status copy_from_host(void* to, const void* from,
                        const CopyExtent& extent) override;
  /// To the same place in all processes.
  Status copy_to_host(void* to, const void* from,
                      const CopyExtent& extent) override;
  Status copy_from_peer(void* to, const Device& peer, const void* from,
                        const CopyExtent& extent) override;
  int64_t bytes_in_use() const override;
  int64_t peak_bytes() const override;

 private:
  Status to_own(void* to, const void* from, const CopyExtent& extent);
  Status from_file(void* to, Device& file, const void* from,
                   const CopyExtent& extent);
  Status from_other(void* to, ClusterDevice& sender, const void* from,
                    const CopyExtent& extent);

  const std::shared_ptr<Cluster> cluster_;
  const int process_;
  const bool here_;
  const std::string name_;
  const int index_;
  // One or the other.
  const std::shared_ptr<MemoryBudget> budget_;
  std::optional<Heap> heap_;
  const std::shared_ptr<const ClusterGpus> gpus_;
  const std::shared_ptr<Device> own_;
  std::unique_ptr<Device> home_;
  std::unique_ptr<FileDevice> files_;
};

/// All devices of the cluster, numbered through by process. `memory_limit`, in
/// bytes, is for those of this process; 0 means 80 % of the machine's.
std::vector<std::unique_ptr<Device>> make_cluster_devices(
    const std::shared_ptr<Cluster>& cluster, int64_t memory_limit = 0);
/// The same of GPUs; `own` are this process's, as many as each has.
std::vector<std::unique_ptr<Device>> make_cluster_devices(
    const std::shared_ptr<Cluster>& cluster,
    std::shared_ptr<const ClusterGpus> gpus,
    const std::vector<std::shared_ptr<Device>>& own);

/// Null for a device of a process that is alone.
inline const ClusterDevice* cluster_device(const Device& device) {
  return dynamic_cast<const ClusterDevice*>(&device);
}

/// Where arrays lie that no map has placed: the first of a runtime's devices;
/// in a cluster, what every process has under the name of that.
inline Device& home_device(const std::vector<Device*>& devices) {
  const ClusterDevice* first = cluster_device(*devices[0]);
  return first && first->home() ? *first->home() : *devices[0];
}

/// The same elements where this process may read them without the others, if
/// each process has them all; else `array`. `home` is what home_device gives.
Array own_copy(const Array& array, Device& home);

/// The cluster whose devices these are; null if this process is alone.
inline Cluster* cluster_of(const std::vector<Device*>& devices) {
  const ClusterDevice* first = cluster_device(*devices[0]);
  return first ? &first->cluster() : nullptr;
}

/// Whether the host may read the device's memory: it is a CPU's, and no other
/// process needs to be told.
inline bool is_host_memory(const Device& device) {
  if (device.kind() != DeviceKind::cpu ||
      device.index() == FileDevice::no_index)
    return false;
  const ClusterDevice* shared = cluster_device(device);
  return !shared || shared->process() == ClusterDevice::all;
}

/// Whether this process does the device's work.
inline bool is_here(const Device& device) {
  const ClusterDevice* shared = cluster_device(device);
  return !shared || shared->is_here();
}

}  // namespace unisono
