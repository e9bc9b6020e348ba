#pragma once
// What the simulated driver exports besides the driver's own functions, for
// tests and for `--devices sim:N`; to be found with dlsym.
#include <cstddef>
#include <cstdint>

extern "C" {

/// Ends the simulation that there is, as if the process began again. The next
/// call of the driver begins another, which the file $SIMCUDA_CONFIG, the text
/// $SIMCUDA and this text configure, later ones over earlier ones, by the keys
/// of docs/testing.md. While a context is retained, the same text as before
/// changes nothing, and another one is refused. Returns 0; 1 after it has said
/// on standard error what is wrong with a text; or 2 if other devices are in
/// use.
int simcuda_configure(const char* text);

/// Reports what the simulation found, as the end of the process does, and ends
/// it, for a process that does one program after the other.
void simcuda_end();

/// Sets another fault plan, by the keys `fail`, `fault` and `oom`, which counts
/// from now on; null: nothing fails any more. Returns 0 if that is done.
int simcuda_plan(const char* text);
/// The function whose call the plan failed last; null: none since the plan was
/// made.
const char* simcuda_failed();

/// The mistakes that were found so far, a line each; and the objects that were
/// not given back. Both write at most `size` bytes, with a 0 at the end, and
/// return the bytes needed.
size_t simcuda_findings(char* buffer, size_t size);
size_t simcuda_leaks(char* buffer, size_t size);

/// Lets kernels that are put into the stream from now on end early, with the
/// rest of their work undone, while *flag is set by another thread or a signal.
/// Reads of memory that was never written are no findings then. Null: kernels
/// run to their end. Returns 0 if that is done.
int simcuda_interrupt(void* stream, const bool* flag);

/// Puts an operation into the stream that is executed once `may_run(data)`
/// gives true, which another process decides, and then calls `run(data)`.
/// Neither may call the driver. Returns a code of the driver.
int simcuda_await(void* stream, bool (*may_run)(void*), void (*run)(void*),
                  void* data);

/// With the key `log=on`: the functions that were called since the plan was
/// made, in order, a line each, as simcuda_findings writes them.
size_t simcuda_log(char* buffer, size_t size);

/// The number of calls of a function, by its name or symbol; null: of all.
uint64_t simcuda_calls(const char* function);

/// A counter by its name: `launches`, `copied_bytes`, `peer_bytes`, or
/// `pending`, the operations that are not done yet; 0 for other names.
uint64_t simcuda_counter(const char* name);
}
