#pragma once
// What the simulated driver exports besides the driver's own functions, for
// tests and for `--devices sim:N`; to be found with dlsym.
#include <cstddef>
#include <cstdint>

extern "C" {

/// Ends the simulation that there is, as if the process began again, and sets
/// up another, by the keys of docs/testing.md; before that the file
/// $SIMCUDA_CONFIG and the text $SIMCUDA are read. 0: done; else it says on
/// standard error what it does not understand. While a context is retained,
/// the same text changes nothing, another one is refused.
int simcuda_configure(const char* text);

/// Another fault plan, of the keys `fail`, `fault` and `oom`, which counts from
/// now on; null: nothing fails any more. 0: done.
int simcuda_plan(const char* text);
/// The function whose call the plan failed last; null: none since it was made.
const char* simcuda_failed();

/// What was found wrong so far, a line each; and what was not given back.
/// Writes at most `size` bytes, with a 0 at the end; returns the bytes needed.
size_t simcuda_findings(char* buffer, size_t size);
size_t simcuda_leaks(char* buffer, size_t size);

/// While *flag, which another thread or a signal sets, kernels that were put
/// into the stream from now on end early, and have not done what is left of
/// them; that this is read is no finding then. Null: they end by themselves.
/// 0: done.
int simcuda_interrupt(void* stream, const bool* flag);

/// With the key `log=on`: the functions that were called since the plan was
/// made, in order, a line each.
size_t simcuda_log(char* buffer, size_t size);

/// How often a function was called, by its name or symbol; null: all.
uint64_t simcuda_calls(const char* function);

/// `launches`, `copied_bytes`, `peer_bytes`; `pending`: the operations that are
/// not done yet; 0 for other names.
uint64_t simcuda_counter(const char* name);
}
