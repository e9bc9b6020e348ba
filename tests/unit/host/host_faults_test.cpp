// What becomes of a program on CPU devices when call k of the system fails, for
// every k, once and for ever: memory that it does not give, files that it does
// not open, read, write or rename. Here are these functions, instead of the C
// library's; the program's calls come to them, the C library's own do not.
#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdarg>
#include <string>

#include "tests/unit/host/fault_programs.h"
#include "tests/unit/host/machine.h"

#if !defined(__has_feature)
#define __has_feature(feature) 0
#endif
// The sanitizers have put themselves in the same place.
#if defined(__linux__) && !__has_feature(address_sanitizer) && \
    !__has_feature(thread_sanitizer)

namespace {

std::atomic<bool> counting{false};
std::atomic<int> count{0};
std::atomic<int> fails_from{0}, fails_to{0};

/// Whether this call is one that shall fail.
bool strikes(int error) {
  if (!counting.load()) return false;
  const int now = ++count;
  if (now < fails_from.load() || now > fails_to.load()) return false;
  errno = error;
  return true;
}

}  // namespace

extern "C" {

void* mmap(void* at, size_t bytes, int protection, int flags, int descriptor,
           off_t offset) noexcept {
  if (strikes(ENOMEM)) return MAP_FAILED;
  return reinterpret_cast<void*>(
      syscall(SYS_mmap, at, bytes, protection, flags, descriptor, offset));
}
int open(const char* path, int flags, ...) {
  va_list rest;
  va_start(rest, flags);
  const int mode = flags & O_CREAT ? va_arg(rest, int) : 0;
  va_end(rest);
  if (strikes(EACCES)) return -1;
  return static_cast<int>(syscall(SYS_openat, AT_FDCWD, path, flags, mode));
}
int openat(int folder, const char* path, int flags, ...) {
  va_list rest;
  va_start(rest, flags);
  const int mode = flags & O_CREAT ? va_arg(rest, int) : 0;
  va_end(rest);
  if (strikes(EACCES)) return -1;
  return static_cast<int>(syscall(SYS_openat, folder, path, flags, mode));
}
int flock(int descriptor, int operation) noexcept {
  if (strikes(ENOLCK)) return -1;
  return static_cast<int>(syscall(SYS_flock, descriptor, operation));
}
ssize_t pread(int descriptor, void* to, size_t bytes, off_t offset) {
  if (strikes(EIO)) return -1;
  return syscall(SYS_pread64, descriptor, to, bytes, offset);
}
ssize_t write(int descriptor, const void* from, size_t bytes) {
  if (strikes(ENOSPC)) return -1;
  return syscall(SYS_write, descriptor, from, bytes);
}
int fsync(int descriptor) {
  if (strikes(EIO)) return -1;
  return static_cast<int>(syscall(SYS_fsync, descriptor));
}
int renameat(int from_folder, const char* from, int to_folder,
             const char* to) noexcept {
  if (strikes(EXDEV)) return -1;
  return static_cast<int>(
      syscall(SYS_renameat, from_folder, from, to_folder, to));
}

}  // extern "C"

namespace unisono::host::testing {
namespace {

void plan(int from, int to) {
  fails_from = from;
  fails_to = to;
  count = 0;
  counting = from > 0;
}

/// A session from its beginning to its end, of which calls `from` ... `to` of
/// the system fail; how many there were.
int run_with(const FaultProgram& program, const std::string& expected, int from,
             int to, const Folder& folder) {
  INFO(program.name, ": calls ", from, " to ", to, " of the system fail");
  plan(from, to);
  Machine machine;
  Outcome outcome = machine.run(program.definitions);
  const bool defined = outcome.ok;
  if (defined) outcome = machine.run(program.body);
  const int calls = count;
  plan(0, 0);
  INFO(outcome.messages);
  if (outcome.ok) {
    CHECK(outcome.output == expected);
  } else {
    CHECK(outcome.messages.find("error[U") != std::string::npos);
    CHECK(outcome.has_place());
    CHECK(folder.files() <= 1);  // nothing half written
  }
  // The session goes on.
  if (!defined) CHECK(machine.run(program.definitions).ok);
  const Outcome again = machine.run(program.body);
  INFO(again.messages);
  CHECK(again.ok);
  CHECK(again.output == expected);
  return calls;
}

TEST_CASE("each call of the system fails") {
  const Folder folder;
  int cases = 0;
  for (const FaultProgram& program : fault_programs) {
    Machine machine;
    REQUIRE(machine.run(program.definitions).ok);
    const Outcome outcome = machine.run(program.body);
    INFO(outcome.messages);
    REQUIRE(outcome.ok);
    const int calls = run_with(program, outcome.output, 1 << 30, 0, folder);
    CHECK(calls > 0);
    for (int k = 1; k <= calls; ++k)
      for (int to : {k, 1 << 30}) {
        run_with(program, outcome.output, k, to, folder);
        ++cases;
      }
  }
  MESSAGE(cases << " cases");
}

}  // namespace
}  // namespace unisono::host::testing

#endif
