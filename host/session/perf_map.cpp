#include "host/session/perf_map.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>

namespace unisono::host {

Result<std::unique_ptr<PerfMap>> PerfMap::open() {
  const std::string path = fmt::format("/tmp/perf-{}.map", getpid());
  // Of an ended process that had our number, perhaps; never through a link.
  unlink(path.c_str());
  const int descriptor = ::open(
      path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
  std::FILE* file = descriptor < 0 ? nullptr : fdopen(descriptor, "w");
  if (!file)
    return Error{
        .kind = Error::Kind::io,
        .message = fmt::format("--profile-kernels cannot write {}: {}", path,
                               std::generic_category().message(errno))};
  return std::unique_ptr<PerfMap>(new PerfMap(file));
}

void PerfMap::add(const void* code, int64_t bytes, const std::string& name) {
  if (!known_.insert(code).second) return;
  fmt::print(file_.get(), "{:x} {:x} {}\n", reinterpret_cast<uintptr_t>(code),
             bytes, name);
  std::fflush(file_.get());  // also for who is killed, or looks now
}

}  // namespace unisono::host
