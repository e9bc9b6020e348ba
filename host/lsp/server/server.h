#pragma once

namespace unisono::host::lsp {

struct ServerOptions {
  int input = 0, output = 1;  // file descriptors
  int devices = 1;            // programs are checked for so many
};

/// `unisono lsp`: speaks the Language Server Protocol until the client says
/// `exit` or is gone. Programs are read and checked; nothing of them runs.
/// Gives the exit status: 0 if the client said `shutdown` before, else 1.
int serve(const ServerOptions& options);

}  // namespace unisono::host::lsp
