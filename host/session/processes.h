#pragma once
// A program in several processes, as they were started: by `unisono launch`, or
// by a launcher of MPI.
#include <memory>
#include <string>

#include "runtime/cluster/cluster.h"
#include "runtime/result.h"

namespace unisono::host {

/// The number of this process among those that a launcher has started; 0 where
/// there is none.
int launched_process();
/// Whether a launcher has started more than one.
bool is_launched();
/// Whether a launcher of MPI has started more than one, and passes on what they
/// print, to what may be no terminal: Open MPI gives them one of its own.
bool is_passed_on();
/// In the first of several processes that srun has started without any MPI, so
/// that none knows of the others: how many there are. Else 0.
int tasks_apart();

/// Meets the others, with these options. Null if there are none. An error in
/// one line if they cannot be reached.
Result<std::shared_ptr<Cluster>> join_cluster(ClusterOptions options);

/// The name of the variable by which `launch` tells a process of the others:
/// its sockets by process, "12/-/15" in the second of three.
inline constexpr const char* launched_variable = "UNISONO_LAUNCHED";

}  // namespace unisono::host
