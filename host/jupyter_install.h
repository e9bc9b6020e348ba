#pragma once
// `unisono jupyter install`: tells Jupyter of the kernel.
#include <optional>
#include <string>

namespace unisono::host {

struct JupyterOptions {
  /// Below it is share/jupyter, such as /usr/local or a virtual environment;
  /// else the kernel is the user's own.
  std::optional<std::string> prefix;
  bool user = false;
  std::string name = "unisono";  // of the kernel
  std::string devices;           // that it opens; empty: cpu:1
};

/// Writes kernel.json, for the `unisono-jupyter` beside this program. Says
/// where it is, or what is missing; gives the exit status.
int install_kernel(const JupyterOptions& options);

}  // namespace unisono::host
