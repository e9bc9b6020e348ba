#pragma once
// Marks memory that nobody may touch in builds with AddressSanitizer, and does
// nothing in other builds.
#include <cstdint>

#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#include <sanitizer/asan_interface.h>
#define UNISONO_POISONS 1
#endif
#endif

namespace unisono {

#ifdef UNISONO_POISONS
inline constexpr bool poisons = true;
#else
inline constexpr bool poisons = false;
#endif

inline void poison([[maybe_unused]] void* start,
                   [[maybe_unused]] int64_t bytes) {
#ifdef UNISONO_POISONS
  __asan_poison_memory_region(start, static_cast<size_t>(bytes));
#endif
}

inline void unpoison([[maybe_unused]] void* start,
                     [[maybe_unused]] int64_t bytes) {
#ifdef UNISONO_POISONS
  __asan_unpoison_memory_region(start, static_cast<size_t>(bytes));
#endif
}

}  // namespace unisono
