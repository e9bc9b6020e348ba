#pragma once
// What this process needs of the system, whatever limits it was started with.
#include <functional>

namespace unisono::host {

/// Before anything else, once: a file that would be larger than `ulimit -f`
/// allows is an error of the write, not the end of the process; no file that is
/// opened takes the place of a standard stream that is closed; and memory that
/// is freed stays with the process, up to 64 MiB.
void prepare_process();

/// Runs `body`, which does not throw, on a stack of at least the usual 8 MiB,
/// even where `ulimit -s` gives the process less. Threads that begin afterwards
/// have such stacks, too.
void on_enough_stack(const std::function<void()>& body);

}  // namespace unisono::host
