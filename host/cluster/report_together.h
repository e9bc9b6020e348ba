#pragma once
// `--stats` and `--trace` of a program in several processes.
#include <optional>
#include <string>

#include "host/session/session.h"
#include "runtime/cluster/cluster.h"
#include "runtime/recorder.h"

namespace unisono::host {

/// What processes have recorded together.
struct TogetherReport {
  std::string stats;         // what process 0 tells; "" in others
  std::string problem = {};  // the trace cannot be written, in one line
};

/// At the end of the program, before the cluster's. All processes call it with
/// the same wishes; process 0 writes the trace's file. Where the program has
/// failed (`ok` is false) or does so now, process 0 reports of itself alone.
TogetherReport report_together(Cluster& cluster, bool ok, Session& session,
                               const Recorder& recorder, bool stats,
                               const std::optional<std::string>& trace);

}  // namespace unisono::host
