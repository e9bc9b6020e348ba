#pragma once
// Processes that a launcher of MPI has started (mpirun, mpiexec, srun).
#include <memory>
#include <string>

#include "runtime/cluster/transport.h"
#include "runtime/result.h"

namespace unisono {

/// Opens `path`, a libunisono_mpi.so, and starts MPI, which a process does
/// once.
Result<std::unique_ptr<Transport>> open_mpi_transport(const std::string& path);

}  // namespace unisono
