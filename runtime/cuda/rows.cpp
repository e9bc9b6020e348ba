#include "runtime/cuda/rows.h"

namespace unisono::cuda {
namespace {

/// Longer rows than this are copied one by one: drivers bound pitches.
constexpr int64_t most_pitch = int64_t{1} << 30;

bool is_dense(const CopyExtent& extent) {
  return extent.to_step == extent.bytes && extent.from_step == extent.bytes;
}

bool needs_pitch(const CopyExtent& extent) {
  return extent.rows > 1 && !is_dense(extent) &&
         extent.to_step >= extent.bytes && extent.from_step >= extent.bytes &&
         extent.to_step <= most_pitch && extent.from_step <= most_pitch;
}

/// Without the ends.
Copy2D rows_of(const CopyExtent& extent) {
  Copy2D copy{};
  copy.WidthInBytes = static_cast<size_t>(extent.bytes);
  copy.Height = static_cast<size_t>(extent.rows);
  copy.srcPitch = static_cast<size_t>(extent.from_step);
  copy.dstPitch = static_cast<size_t>(extent.to_step);
  return copy;
}

/// Calls copy(to, from, bytes) for each row while that succeeds, or once for
/// all.
template <class F>
Code each_row(void* to, const void* from, const CopyExtent& extent, F&& copy) {
  auto* t = static_cast<char*>(to);
  const auto* f = static_cast<const char*>(from);
  const auto bytes = static_cast<size_t>(extent.bytes);
  if (is_dense(extent))
    return copy(t, f, bytes * static_cast<size_t>(extent.rows));
  Code code = success;
  for (int64_t row = 0; row < extent.rows && code == success; ++row)
    code = copy(t + row * extent.to_step, f + row * extent.from_step, bytes);
  return code;
}

}  // namespace

Code copy_rows_from_host(const Driver& cuda, void* to, const void* from,
                         const CopyExtent& extent, Stream stream) {
  if (!needs_pitch(extent))
    return each_row(
        to, from, extent, [&](char* t, const char* f, size_t bytes) {
          return cuda.memcpy_htod_async(address(t), f, bytes, stream);
        });
  Copy2D copy = rows_of(extent);
  copy.srcMemoryType = MemoryType::host;
  copy.srcHost = from;
  copy.dstMemoryType = MemoryType::device;
  copy.dstDevice = address(to);
  return cuda.memcpy_2d_async(&copy, stream);
}

Code copy_rows_to_host(const Driver& cuda, void* to, const void* from,
                       const CopyExtent& extent, Stream stream) {
  if (!needs_pitch(extent))
    return each_row(
        to, from, extent, [&](char* t, const char* f, size_t bytes) {
          return cuda.memcpy_dtoh_async(t, address(f), bytes, stream);
        });
  Copy2D copy = rows_of(extent);
  copy.srcMemoryType = MemoryType::device;
  copy.srcDevice = address(from);
  copy.dstMemoryType = MemoryType::host;
  copy.dstHost = to;
  return cuda.memcpy_2d_async(&copy, stream);
}

Code copy_rows_between(const Driver& cuda, const CopyEnds& ends, void* to,
                       const void* from, const CopyExtent& extent,
                       Stream stream) {
  if (needs_pitch(extent) && ends.seen) {
    Copy2D copy = rows_of(extent);
    copy.srcMemoryType = copy.dstMemoryType = MemoryType::device;
    copy.srcDevice = address(from);
    copy.dstDevice = address(to);
    // Drivers need not take pitches that they have not chosen.
    const Code code = cuda.memcpy_2d_async(&copy, stream);
    if (code != invalid_value) return code;
  } else if (needs_pitch(extent)) {
    Copy3DPeer copy{};
    copy.srcMemoryType = copy.dstMemoryType = MemoryType::device;
    copy.srcDevice = address(from);
    copy.dstDevice = address(to);
    copy.srcContext = ends.from;
    copy.dstContext = ends.to;
    copy.srcPitch = static_cast<size_t>(extent.from_step);
    copy.dstPitch = static_cast<size_t>(extent.to_step);
    copy.srcHeight = copy.dstHeight = copy.Height =
        static_cast<size_t>(extent.rows);
    copy.WidthInBytes = static_cast<size_t>(extent.bytes);
    copy.Depth = 1;
    return cuda.memcpy_3d_peer_async(&copy, stream);
  }
  return each_row(to, from, extent, [&](char* t, const char* f, size_t bytes) {
    return ends.seen
               ? cuda.memcpy_dtod_async(address(t), address(f), bytes, stream)
               : cuda.memcpy_peer_async(address(t), ends.to, address(f),
                                        ends.from, bytes, stream);
  });
}

}  // namespace unisono::cuda
