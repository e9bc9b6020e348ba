#pragma once
// Bytes of GPUs of several processes by NCCL, from memory to memory, in the
// streams of copies, beside kernels. NCCL moves and nothing else: who meets, in
// which order, and what is combined is ours.
//
// Processes tell each other by a message that they have come, and then put
// their sends and receives in their streams without waiting for them. Whoever
// waits for a stream afterwards looks whether the others are still there: if
// one is not, NCCL gives up what it has begun, and the wait ends.
#include <memory>
#include <string>
#include <vector>

#include "runtime/cluster/cluster.h"
#include "runtime/cluster/mover.h"
#include "runtime/device.h"
#include "runtime/result.h"

namespace unisono {

/// How the bytes of GPUs travel.
struct NcclOpened {
  std::shared_ptr<Mover> mover;  // null: not by NCCL, and
  std::string why;               // why not, in one line
};

/// For `own` GPUs of this process, in the order of Device::index, as many as
/// each process has. All processes call it and get the same answer; `library`
/// is a path, "" the system's. Errors: those of Cluster::exchange, after which
/// the program ends.
Result<NcclOpened> open_nccl_mover(const std::shared_ptr<Cluster>& cluster,
                                   std::vector<std::shared_ptr<Device>> own,
                                   const std::string& library);

}  // namespace unisono
