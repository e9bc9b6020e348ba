#pragma once
// The place of a thread in its grid, barriers and address spaces, for the
// kernels of the library. Compiled by clang for NVPTX, never for the host.
#include <cstdint>

#define GRID_KERNEL extern "C" __attribute__((nvptx_kernel)) void
#define GRID_INLINE [[gnu::always_inline]] inline

namespace unisono::grid {

inline constexpr int block_threads = 256, warp_threads = 32;

GRID_INLINE int thread() { return __nvvm_read_ptx_sreg_tid_x(); }
GRID_INLINE int block() { return __nvvm_read_ptx_sreg_ctaid_x(); }
GRID_INLINE int blocks() { return __nvvm_read_ptx_sreg_nctaid_x(); }
GRID_INLINE void synchronise() { __syncthreads(); }

template <class T>
using Global = T __attribute__((address_space(1)));

/// An address of global memory.
template <class T>
GRID_INLINE Global<T>* global(T* pointer) {
  return (Global<T>*)pointer;
}

}  // namespace unisono::grid
