#pragma once
// What the handles of the C interface point to, and how its functions end.
#include <atomic>
#include <cstdint>
#include <exception>
#include <memory>
#include <new>
#include <string>
#include <utility>

#include "embed/error.h"
#include "embed/floating_point.h"
#include "embed/unisono.h"

namespace unisono::embed {

/// An object with a count of the references to it; made with one.
template <class Handle>
struct Counted {
  std::atomic<int64_t> references{1};
};

template <class Handle>
Handle* retain(Handle* handle) {
  if (handle) handle->references.fetch_add(1, std::memory_order_relaxed);
  return handle;
}

/// Callbacks of the host may run in destructors, so this is no place for
/// exceptions.
template <class Handle>
void release(Handle* handle) noexcept {
  if (!handle) return;
  if (handle->references.fetch_sub(1, std::memory_order_acq_rel) != 1) return;
  const FloatingPointScope floating_point;
  delete handle;
}

/// Tells the host once, when what is its own is not needed any more. `release`
/// is set last: what fails before tells nobody.
struct Owner {
  UnisonoRelease release = nullptr;
  void* user = nullptr;
  Owner() = default;
  Owner(const Owner&) = delete;
  Owner& operator=(const Owner&) = delete;
  ~Owner() {
    if (release) release(user);
  }
};

/// Runs the body of a function of the interface: null, or the error that it
/// threw. No exception leaves it.
template <class Body>
UnisonoError* guarded(Body&& body) noexcept {
  try {
    const FloatingPointScope floating_point;
    body();
    return nullptr;
  } catch (...) {
    return caught_error();
  }
}

}  // namespace unisono::embed
