#pragma once
// What libunisono_mpi.so has: MPI for `MpiTransport`, built against the MPI of
// the machine, so that nothing else depends on one.
#include <cstdint>

namespace unisono {

/// As in transport.h, where they have the same names; heads and bodies have
/// functions of their own.
struct MpiLibrary {
  static constexpr int current = 3;
  int version = 0;  // is `current`
  /// Starts MPI, once. 0, or -1 with a text (of 256 bytes) in `problem`.
  int (*open)(int* process, int* processes, char* name, char* problem);
  static constexpr int64_t packet = 4096;
  int64_t (*try_send_head)(int to, const void* data, int64_t bytes);
  int64_t (*try_send)(int to, const void* data, int64_t bytes);
  int64_t (*try_receive_head)(int from, void* data);
  int64_t (*try_receive)(int from, void* data, int64_t bytes);
  void (*forget)();
  /// Waits a little, longer if called again and again; 0 if it has not yet.
  int (*wait)(int microseconds);
  void (*close)(int clean);
};

}  // namespace unisono

/// The one symbol of the library: a function that gives it.
extern "C" const unisono::MpiLibrary* unisono_mpi();
