#pragma once
// Copies of rows, put in a stream: in one call of the driver where its bounds
// allow that.
#include "runtime/cuda/driver.h"
#include "runtime/device.h"

namespace unisono::cuda {

inline DevicePointer address(const void* pointer) {
  return reinterpret_cast<DevicePointer>(pointer);
}

Code copy_rows_from_host(const Driver& cuda, void* to, const void* from,
                         const CopyExtent& extent, Stream stream);
Code copy_rows_to_host(const Driver& cuda, void* to, const void* from,
                       const CopyExtent& extent, Stream stream);
/// Contexts of the two ends of a copy, and whether the stream's device sees
/// both: then it is a copy like one within a device, which can also be captured
/// in a graph, as copies from context to context cannot.
struct CopyEnds {
  Context to = nullptr, from = nullptr;
  bool seen = false;
};
Code copy_rows_between(const Driver& cuda, const CopyEnds& ends, void* to,
                       const void* from, const CopyExtent& extent,
                       Stream stream);

}  // namespace unisono::cuda
