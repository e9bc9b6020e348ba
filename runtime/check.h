#pragma once
#include <cstdio>
#include <cstdlib>

/// For our own bugs: where an invariant is broken, the process ends with a
/// message that names the place. Never for a user's mistake (diagnostics) or a
/// failing machine (Result). Headers write UNISONO_CHECK, as tests have a CHECK
/// of doctest's.
#define UNISONO_CHECK(condition)                                               \
  do {                                                                         \
    if (!(condition)) ::unisono::check_failed(#condition, __FILE__, __LINE__); \
  } while (false)
#ifndef DOCTEST_LIBRARY_INCLUDED
#define CHECK UNISONO_CHECK
#endif

namespace unisono {
[[noreturn]] inline void check_failed(const char* condition, const char* file,
                                      int line) {
  std::fprintf(stderr, "unisono: internal error: %s at %s:%d\n", condition,
               file, line);
  std::abort();
}
}  // namespace unisono
