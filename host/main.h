#pragma once
// The command line as a function: the process of a command, from its words to
// its exit status.
#include <memory>
#include <string_view>

#include "jit/compile.h"

namespace unisono::host {

/// What `unisono` does with these words, the first of which is its own name.
/// `--version` ends with `commit`. A program that is run has `compiler` in
/// common with others, if it is given one and is not asked what it compiled
/// (`--stats`).
int command_line(int argc, char** argv, std::string_view commit = "",
                 std::shared_ptr<jit::Compiler> compiler = nullptr);

}  // namespace unisono::host
