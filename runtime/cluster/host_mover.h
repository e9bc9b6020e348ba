#pragma once
// Bytes of GPUs by way of the host's memory and the cluster's messages: it
// needs nothing of the machine, and waits for the GPUs' copies.
#include <memory>

#include "runtime/cluster/cluster.h"
#include "runtime/cluster/mover.h"

namespace unisono {

/// `cluster` outlives it.
std::unique_ptr<Mover> make_host_mover(Cluster& cluster);

}  // namespace unisono
