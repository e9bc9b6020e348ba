#pragma once
// The CUDA driver's binary interface as far as we use it: handles, codes and
// structures with the driver's layout, written by us from its documented ABI,
// so that no toolkit is needed to build. The functions are driver.def.
// Names in the structures are the driver's.
#include <cstddef>
#include <cstdint>

namespace unisono::cuda {

/// What every function returns. Any int may come back from a newer driver.
enum Code : int {
#define CUDA_ERROR(name, value, text) name = value,
#include "runtime/cuda/errors.def"
};

using Device = int;              // number of a device, from 0
using DevicePointer = uint64_t;  // address in the unified address space
using Context = struct ContextHandle*;
using Module = struct ModuleHandle*;
using Function = struct FunctionHandle*;
using Stream = struct StreamHandle*;
using Event = struct EventHandle*;
using Graph = struct GraphHandle*;
using GraphNode = struct GraphNodeHandle*;
using GraphExec = struct GraphExecHandle*;
using MemoryPool = struct MemoryPoolHandle*;
using LinkState = struct LinkStateHandle*;
using HostFunction = void (*)(void* data);

struct Uuid {
  unsigned char bytes[16];
};

/// Streams that always exist. Null is the legacy stream.
inline StreamHandle* const legacy_stream = reinterpret_cast<Stream>(1);
inline StreamHandle* const per_thread_stream = reinterpret_cast<Stream>(2);

// clang-format off
enum class DeviceAttribute : int {
  max_threads_per_block = 1,
  max_block_dim_x = 2, max_block_dim_y = 3, max_block_dim_z = 4,
  max_grid_dim_x = 5, max_grid_dim_y = 6, max_grid_dim_z = 7,
  max_shared_memory_per_block = 8,
  total_constant_memory = 9,
  warp_size = 10,
  max_pitch = 11,
  max_registers_per_block = 12,
  clock_rate_khz = 13,
  multiprocessor_count = 16,
  kernel_exec_timeout = 17,
  integrated = 18,
  can_map_host_memory = 19,
  compute_mode = 20,
  concurrent_kernels = 31,
  ecc_enabled = 32,
  pci_bus_id = 33,
  pci_device_id = 34,
  memory_clock_rate_khz = 36,
  global_memory_bus_width = 37,
  l2_cache_size = 38,
  max_threads_per_multiprocessor = 39,
  async_engine_count = 40,
  unified_addressing = 41,
  pci_domain_id = 50,
  compute_capability_major = 75,
  compute_capability_minor = 76,
  stream_priorities_supported = 78,
  max_shared_memory_per_multiprocessor = 81,
  max_registers_per_multiprocessor = 82,
  managed_memory = 83,
  host_native_atomic_supported = 86,
  pageable_memory_access = 88,
  concurrent_managed_access = 89,
  can_use_host_pointer_for_registered_mem = 91,
  cooperative_launch = 95,
  max_shared_memory_per_block_optin = 97,
  max_blocks_per_multiprocessor = 106,
  reserved_shared_memory_per_block = 111,
  memory_pools_supported = 115,
};

enum class FunctionAttribute : int {
  max_threads_per_block = 0,
  shared_size_bytes = 1,
  const_size_bytes = 2,
  local_size_bytes = 3,
  num_regs = 4,
  ptx_version = 5,
  binary_version = 6,
  cache_mode_ca = 7,
  max_dynamic_shared_size_bytes = 8,
  preferred_shared_memory_carveout = 9,
};

enum class PeerAttribute : int {
  performance_rank = 1,
  access_supported = 2,
  native_atomic_supported = 3,
  array_access_supported = 4,
};

enum class Limit : int {
  stack_size = 0, printf_fifo_size = 1, malloc_heap_size = 2,
};

enum class PointerAttribute : int {
  context = 1,
  memory_type = 2,
  device_pointer = 3,
  host_pointer = 4,
  is_managed = 8,
  device_ordinal = 9,
  range_start_addr = 11,
  range_size = 12,
  mempool_handle = 17,
};

/// Also the types of the ends of a copy.
enum class MemoryType : unsigned {
  host = 1, device = 2, array = 3, unified = 4,
};

/// The keys of module and link options; the value of one is an integer or an
/// address, put in the bits of the void* beside it.
enum class JitOption : int {
  max_registers = 0,
  wall_time = 2,                     // out: float milliseconds
  info_log_buffer = 3,               // char*
  info_log_buffer_size_bytes = 4,    // in: size; out: bytes written
  error_log_buffer = 5,
  error_log_buffer_size_bytes = 6,
  optimization_level = 7,
  target_from_cucontext = 8,
  target = 9,
  generate_debug_info = 11,
  log_verbose = 12,
  generate_line_info = 13,
  cache_mode = 14,
};

enum class JitInput : int {
  cubin = 0, ptx = 1, fatbinary = 2, object = 3, library = 4,
};

enum StreamFlags : unsigned { stream_default = 0, stream_non_blocking = 1 };
enum EventFlags : unsigned {
  event_default = 0, event_blocking_sync = 1, event_disable_timing = 2,
  event_interprocess = 4,
};
enum ContextFlags : unsigned {
  context_sched_auto = 0, context_sched_spin = 1, context_sched_yield = 2,
  context_sched_blocking_sync = 4, context_map_host = 8,
  context_lmem_resize_to_max = 16,
};
enum HostAllocFlags : unsigned {
  host_alloc_portable = 1, host_alloc_device_map = 2,
  host_alloc_write_combined = 4,
};
enum HostRegisterFlags : unsigned {
  host_register_portable = 1, host_register_device_map = 2,
  host_register_io_memory = 4, host_register_read_only = 8,
};

enum class CaptureMode : int { global = 0, thread_local_ = 1, relaxed = 2 };
enum class CaptureStatus : int { none = 0, active = 1, invalidated = 2 };

enum class GraphExecUpdate : int {
  success = 0, error = 1, topology_changed = 2, node_type_changed = 3,
  function_changed = 4, parameters_changed = 5, not_supported = 6,
};
struct GraphExecUpdateResultInfo {
  GraphExecUpdate result;
  GraphNode errorNode;
  GraphNode errorFromNode;
};

enum class MemoryPoolAttribute : int {
  reuse_follow_event_dependencies = 1,  // int
  reuse_allow_opportunistic = 2,        // int
  reuse_allow_internal_dependencies = 3,// int
  release_threshold = 4,                // uint64_t, as all below
  reserved_mem_current = 5,
  reserved_mem_high = 6,
  used_mem_current = 7,
  used_mem_high = 8,
};
enum class MemoryAccess : int { none = 0, read = 1, read_write = 3 };
enum class MemoryLocationType : int { invalid = 0, device = 1, host = 2 };
enum class AllocationType : int { invalid = 0, pinned = 1 };
enum class AllocationHandle : int { none = 0, posix_file_descriptor = 1 };

enum class ProcAddressResult : int {
  success = 0, symbol_not_found = 1, version_not_sufficient = 2,
};
// clang-format on

struct MemoryLocation {
  MemoryLocationType type;
  int id;  // a device's number
};
struct MemoryAccessDescription {
  MemoryLocation location;
  MemoryAccess flags;
};
struct MemoryPoolProperties {
  AllocationType allocType;
  AllocationHandle handleTypes;
  MemoryLocation location;
  void* win32SecurityAttributes;
  size_t maxSize;
  unsigned short usage;
  unsigned char reserved[54];
};

/// A copy of Height rows of WidthInBytes.
struct Copy2D {
  size_t srcXInBytes;
  size_t srcY;
  MemoryType srcMemoryType;
  const void* srcHost;
  DevicePointer srcDevice;
  void* srcArray;
  size_t srcPitch;
  size_t dstXInBytes;
  size_t dstY;
  MemoryType dstMemoryType;
  void* dstHost;
  DevicePointer dstDevice;
  void* dstArray;
  size_t dstPitch;
  size_t WidthInBytes;
  size_t Height;
};

/// A copy of Depth slices of Height rows, between devices.
struct Copy3DPeer {
  size_t srcXInBytes;
  size_t srcY;
  size_t srcZ;
  size_t srcLOD;
  MemoryType srcMemoryType;
  const void* srcHost;
  DevicePointer srcDevice;
  void* srcArray;
  Context srcContext;
  size_t srcPitch;
  size_t srcHeight;
  size_t dstXInBytes;
  size_t dstY;
  size_t dstZ;
  size_t dstLOD;
  MemoryType dstMemoryType;
  void* dstHost;
  DevicePointer dstDevice;
  void* dstArray;
  Context dstContext;
  size_t dstPitch;
  size_t dstHeight;
  size_t WidthInBytes;
  size_t Height;
  size_t Depth;
};

static_assert(sizeof(MemoryPoolProperties) == 88);
static_assert(sizeof(Copy2D) == 128);
static_assert(sizeof(Copy3DPeer) == 200);

}  // namespace unisono::cuda
