#include "host/session/processes.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "host/session/devices.h"
#include "host/session/library.h"
#include "runtime/cluster/mpi_transport.h"
#include "runtime/cluster/socket_transport.h"

namespace unisono::host {
namespace {

std::optional<int> number_of(const char* variable) {
  const char* text = std::getenv(variable);
  return text ? number_in(text) : std::nullopt;
}

/// What `launch` says.
struct Launched {
  int process = 0;
  std::vector<int> sockets;  // by process, -1 for its own
};

std::optional<Launched> launched() {
  const char* text = std::getenv(launched_variable);
  if (!text) return std::nullopt;
  Launched out;
  out.process = -1;
  for (std::string_view rest = text; !rest.empty();) {
    const std::string_view word = rest.substr(0, rest.find('/'));
    const auto socket = number_in(word);
    if (word == "-" && out.process < 0)
      out.process = static_cast<int>(out.sockets.size());
    else if (!socket)
      return std::nullopt;
    out.sockets.push_back(socket.value_or(-1));
    rest.remove_prefix(std::min(word.size() + 1, rest.size()));
  }
  if (out.process < 0) return std::nullopt;
  return out;
}

/// What launchers of MPI say: those of MPICH and its like, of MVAPICH and of
/// Open MPI, and Slurm for it.
constexpr const char* slurm_tasks = "SLURM_STEP_NUM_TASKS";
struct Launcher {
  const char* process;
  const char* processes;
};
constexpr Launcher launchers[] = {
    {"PMI_RANK", "PMI_SIZE"},
    {"MV2_COMM_WORLD_RANK", "MV2_COMM_WORLD_SIZE"},
    {"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"},
    {"PMIX_RANK", slurm_tasks},
};

/// The number of this process and of all, by a launcher of MPI.
std::optional<std::pair<int, int>> by_mpi() {
  for (const Launcher& launcher : launchers) {
    const auto process = number_of(launcher.process);
    const auto processes = number_of(launcher.processes);
    if (process && processes && *processes > 1)
      return std::pair(*process, *processes);
  }
  return std::nullopt;
}

Result<std::unique_ptr<Transport>> open_transport() {
  if (const auto start = launched())
    return open_socket_transport(start->process, Sockets(start->sockets));
  const auto mpi = by_mpi();
  if (!mpi) return std::unique_ptr<Transport>();
  constexpr std::string_view name = "libunisono_mpi.so";
  const char* given = std::getenv("UNISONO_MPI");
  const Result<std::string> path =
      given && *given ? std::string(given) : find_library_beside(name);
  if (!path)
    return Error{.kind = Error::Kind::io,
                 .message = fmt::format(
                     "{} processes were started together by MPI, for which "
                     "Unisono needs the library {}, {}\nit is built where "
                     "`mpicc` is there; UNISONO_MPI=PATH says where it lies; "
                     "`unisono launch -n {}` starts processes on one machine "
                     "without MPI",
                     mpi->second, name, path.error().message, mpi->second)};
  auto transport = TRY(open_mpi_transport(*path));
  if (const int known = transport->processes(); known != mpi->second) {
    Error error{
        .kind = Error::Kind::io,
        .message = fmt::format(
            "a launcher has started {} processes, but {} knows of {}: {} is "
            "built against another MPI than the launcher's\nthe sources build "
            "one with the `mpicc` that is found first; UNISONO_MPI=PATH says "
            "where it lies",
            mpi->second, transport->name(), known, *path)};
    transport->close(true);
    return error;
  }
  return transport;
}

}  // namespace

int launched_process() {
  if (const auto start = launched()) return start->process;
  const auto mpi = by_mpi();
  return mpi ? mpi->first : 0;
}

bool is_launched() {
  const auto start = launched();
  return (start && start->sockets.size() > 1) || by_mpi();
}

bool is_passed_on() { return !launched() && by_mpi(); }

int tasks_apart() {
  const auto process = number_of("SLURM_PROCID"),
             tasks = number_of(slurm_tasks);
  const bool first = process && *process == 0 && tasks && *tasks > 1;
  return first && !is_launched() ? *tasks : 0;
}

Result<std::shared_ptr<Cluster>> join_cluster(ClusterOptions options) {
  if (!is_launched()) return std::shared_ptr<Cluster>();
  if (const char* faults = std::getenv("UNISONO_FAULTS"))
    options.faults = TRY(Faults::parse(faults));
  std::unique_ptr<Transport> transport = TRY(open_transport());
  return Cluster::open(std::move(transport), std::move(options));
}

}  // namespace unisono::host
