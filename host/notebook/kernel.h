#pragma once
// The kernel of a Jupyter notebook.
#include <string>

#include "host/interactive/shell.h"

namespace unisono::host {

struct KernelOptions {
  ShellOptions shell;
  /// The file in which Jupyter says where it listens, and the key of messages.
  std::string connection_file;
  std::string version;
};

/// Answers Jupyter until it ends the kernel; then the process exits, with
/// status 0. Comes back with 1, said on standard error, if it cannot begin. An
/// interrupt (SIGINT) stops the cell that runs, and nothing else. If Jupyter
/// has started the process, and dies, the process ends as well. To be called
/// once, while there is no other thread that SIGINT could reach.
int run_kernel(KernelOptions options);

}  // namespace unisono::host
