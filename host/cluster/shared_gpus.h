#pragma once
// The GPUs of a program in several processes: which of a host's are whose.
#include <memory>
#include <string>
#include <vector>

#include "host/session/devices.h"
#include "runtime/cluster/cluster.h"
#include "runtime/device.h"
#include "runtime/result.h"

namespace unisono::host {

/// What one process knows of those of its host, for `share_gpus`.
struct HostGpus {
  std::string host;
  int count = 0;  // GPUs that the process sees
  /// $CUDA_VISIBLE_DEVICES; it sees others where that is another one.
  std::string visible;
};

/// The GPUs of process `process` of those that `all` tell of, in their order.
/// Processes of a host that see the same GPUs get equal shares of them, in
/// order; those that see others get what they see. An error of the command
/// line, the same one in all processes, where shares are not equal.
Result<std::vector<int>> share_gpus(const std::vector<HostGpus>& all,
                                    int process);

/// The request of this process for its own GPUs, where `--devices cuda` leaves
/// that open; the cluster then knows how many each process has. Errors: as
/// above, and device_lost from the first process that has no GPUs.
Result<DeviceRequest> request_own_gpus(Cluster& cluster, DeviceRequest request);

/// The devices of all processes.
struct CommonDevices {
  std::vector<std::unique_ptr<Device>> devices;
  /// Why bytes of GPUs go by way of the host's memory, though NCCL was looked
  /// for; in one line.
  std::string without_nccl;
  std::string moved_by;  // of GPUs: "NCCL 2.21.5"; as Mover::name
};
/// Opens this process's. All fail if one does. NCCL is $UNISONO_NCCL if that is
/// set, else the system's, or none for simulated GPUs.
Result<CommonDevices> open_devices_together(
    const std::shared_ptr<Cluster>& cluster, const DeviceRequest& request,
    std::shared_ptr<DiskCache> cache);

}  // namespace unisono::host
