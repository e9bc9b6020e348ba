#pragma once
// What a run says about itself: `--stats` and `--trace`.
#include <span>
#include <string>

#include "host/session/session.h"
#include "runtime/recorder.h"

namespace unisono::host {

/// What this process knows for a table of all.
std::string statistics(Session& session, const Recorder& recorder);
/// A table, by device: launches, collectives, copies, peak memory; copies by
/// pair of devices; what was compiled. Of what `statistics` gave in each
/// process, the first one's first.
std::string stats_table(std::span<const std::string> processes);

/// Of a process, for its part of a trace.
struct TracedProcess {
  int number = 0;
  std::string name = "unisono";
  Recorder::Clock::time_point start;  // the trace's, by this process's clock
};
/// Its part of a Chrome trace (chrome://tracing, Perfetto), of the recorder's
/// events: one row for each device, and one for the host. A collective is
/// called as in the program: `psum(x, dev)`.
std::string traced_events(Session& session, const Recorder& recorder,
                          const TracedProcess& process);
/// The trace of all these parts.
Status write_trace(const std::string& path, std::span<const std::string> parts);

}  // namespace unisono::host
