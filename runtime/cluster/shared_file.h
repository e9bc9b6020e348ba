#pragma once
// A file that all processes write, each what its own devices have.
#include <span>
#include <string>

#include "runtime/array.h"
#include "runtime/cluster/cluster.h"
#include "runtime/files/array_file.h"
#include "runtime/result.h"

namespace unisono {

/// All processes call it. The file takes its place in one step, when all have
/// written; before that, and if one fails or is gone, there is no trace of it.
/// No process goes on before it is there. `arrays` have the layout's types, in
/// its order, and lie anywhere.
///
/// Errors: those of files, of the cluster, and io where a process does not see
/// the file that process 0 has begun; it names its host.
Status write_together(Cluster& cluster, const std::string& path,
                      const FileLayout& layout, std::span<const Array> arrays);

}  // namespace unisono
