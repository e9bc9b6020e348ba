#pragma once
#include <stdexcept>
#include <string>

/// For our own bugs: where an invariant is broken. What is under way is given
/// up with an exception that names the place, which the walk reports as an
/// internal error (U0702): a session goes on, and a host's process never dies.
/// In a destructor, and in a thread that catches nothing, the process ends with
/// the same text. Never for a user's mistake (diagnostics) or a failing machine
/// (Result). Headers write UNISONO_CHECK, as tests have a CHECK of doctest's.
#define UNISONO_CHECK(condition)                                               \
  do {                                                                         \
    if (!(condition)) ::unisono::check_failed(#condition, __FILE__, __LINE__); \
  } while (false)
#ifndef DOCTEST_LIBRARY_INCLUDED
#define CHECK UNISONO_CHECK
#endif

namespace unisono {
[[noreturn, gnu::cold, gnu::noinline]] inline void check_failed(
    const char* condition, const char* file, int line) {
  throw std::logic_error(std::string(condition) + " at " + file + ":" +
                         std::to_string(line));
}
}  // namespace unisono
