#pragma once
// What a run says about itself: `--stats` and `--trace`.
#include <functional>
#include <string>

#include "host/session/session.h"
#include "runtime/recorder.h"

namespace unisono::host {

/// A table, by device: launches, collectives, copies, peak memory; copies by
/// pair of devices; what was compiled.
std::string stats_table(Session& session, const Recorder& recorder);

/// A Chrome trace (chrome://tracing, Perfetto) of the recorder's events: one
/// row for each device, and one for the host. A collective is called as in the
/// program: `psum(x, dev)`.
Status write_trace(const std::string& path, Session& session,
                   const Recorder& recorder);

}  // namespace unisono::host
