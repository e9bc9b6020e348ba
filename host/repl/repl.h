#pragma once
// The session on a terminal.
#include <string>

#include "host/interactive/shell.h"

namespace unisono::host {

struct ReplOptions {
  /// `progress`: `--no-progress` was not given.
  ShellOptions shell;
  std::string version;
};

/// Reads inputs from standard input, which is a terminal, until it ends. Gives
/// the exit status: 0; 1 if there are no such devices, or the output cannot be
/// written any more.
int run_repl(ReplOptions options);

}  // namespace unisono::host
