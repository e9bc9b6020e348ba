#include "runtime/cluster/mpi_transport.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "runtime/cluster/mpi_library.h"

namespace unisono {
namespace {

static_assert(MpiLibrary::packet == Transport::packet);

class MpiTransport final : public Transport {
 public:
  MpiTransport(const MpiLibrary& mpi, int process, int processes,
               std::string name)
      : mpi_(mpi),
        process_(process),
        processes_(processes),
        name_(std::move(name)) {}

  int process() const override { return process_; }
  int processes() const override { return processes_; }
  std::string name() const override { return name_; }
  int64_t try_send(int to, Part part, const void* data,
                   int64_t bytes) override {
    return part == Part::head ? mpi_.try_send_head(to, data, bytes)
                              : mpi_.try_send(to, data, bytes);
  }
  int64_t try_receive(int from, Part part, void* data, int64_t bytes) override {
    if (bytes == 0) return 0;
    return part == Part::head ? mpi_.try_receive_head(from, data)
                              : mpi_.try_receive(from, data, bytes);
  }
  void forget() override { mpi_.forget(); }
  bool wait(std::span<const int>, std::span<const int>,
            std::chrono::milliseconds most) override {
    return mpi_.wait(static_cast<int>(std::min<int64_t>(most.count(), 1000)) *
                     1000) != 0;
  }
  void close(bool clean) override { mpi_.close(clean ? 1 : 0); }

 private:
  const MpiLibrary& mpi_;
  const int process_, processes_;
  const std::string name_;
};

Error cannot(const std::string& path, std::string_view why) {
  return {.kind = Error::Kind::io,
          .message = fmt::format("cannot use {}: {}", path, why)};
}

}  // namespace

Result<std::unique_ptr<Transport>> open_mpi_transport(const std::string& path) {
  // MPI's own modules find its symbols.
  void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_GLOBAL);
  if (!library) return cannot(path, dlerror());
  using Entry = const MpiLibrary* (*)();
  const auto entry = reinterpret_cast<Entry>(dlsym(library, "unisono_mpi"));
  if (!entry) return cannot(path, "it is no library of Unisono's");
  const MpiLibrary& mpi = *entry();
  if (mpi.version != MpiLibrary::current)
    return cannot(path, "it is of another version of Unisono");
  int process = 0, processes = 1;
  std::array<char, 256> name{}, problem{};
  if (mpi.open(&process, &processes, name.data(), problem.data()) != 0)
    return cannot(path, problem.data());
  return std::unique_ptr<Transport>(
      std::make_unique<MpiTransport>(mpi, process, processes, name.data()));
}

}  // namespace unisono
