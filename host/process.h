#pragma once
// What a process of ours wants of the system, whatever its limits are.
#include <functional>

namespace unisono::host {

/// Before anything else, once: a file that would be larger than `ulimit -f`
/// allows is an error of the write, not the end of the process; and no file
/// that is opened takes the place of a standard stream that is closed.
void prepare_process();

/// Runs `body`, which does not throw, where the stack has the size that is
/// usual, also where `ulimit -s` gives the process less. Threads that begin
/// afterwards have it, too.
void on_enough_stack(const std::function<void()>& body);

}  // namespace unisono::host
