#pragma once
// Copies of rows, put in a stream: in one call of the driver where its bounds
// allow that.
#include "runtime/cuda_driver.h"
#include "runtime/device.h"

namespace unisono::cuda {

inline DevicePointer address(const void* pointer) {
  return reinterpret_cast<DevicePointer>(pointer);
}

Code copy_rows_from_host(const Driver& cuda, void* to, const void* from,
                         const CopyExtent& extent, Stream stream);
Code copy_rows_to_host(const Driver& cuda, void* to, const void* from,
                       const CopyExtent& extent, Stream stream);
/// Between two devices, or within one if the contexts are the same.
Code copy_rows_between(const Driver& cuda, Context to_context, void* to,
                       Context from_context, const void* from,
                       const CopyExtent& extent, Stream stream);

}  // namespace unisono::cuda
