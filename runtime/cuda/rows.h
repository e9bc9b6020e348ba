#pragma once
// Copies of rows, put in a stream by one call of the driver where its bounds on
// pitches allow that, else row by row.
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
/// The contexts of the two ends of a copy. `seen`: the stream's device sees the
/// memory of both, so the copy is made like one within a device; such a copy
/// can be captured in a graph, one from context to context cannot.
struct CopyEnds {
  Context to = nullptr, from = nullptr;
  bool seen = false;
};
Code copy_rows_between(const Driver& cuda, const CopyEnds& ends, void* to,
                       const void* from, const CopyExtent& extent,
                       Stream stream);

}  // namespace unisono::cuda
