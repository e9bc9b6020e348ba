#include "host/cluster/report_together.h"

#include <fmt/format.h>

#include <chrono>
#include <vector>

#include "host/session/report.h"
#include "runtime/cluster/tell_all.h"

namespace unisono::host {
namespace {

using Clock = Recorder::Clock;

/// When process 0's trace began, by this process's clock. Processes of a host
/// have one clock; of others a moment is known, that of a barrier.
Result<Clock::time_point> common_start(Cluster& cluster,
                                       const Recorder& recorder) {
  TRY(cluster.barrier());
  struct Times {
    int64_t started = 0, met = 0;
  };
  const auto count = [](Clock::time_point time) {
    return static_cast<int64_t>(time.time_since_epoch().count());
  };
  const Times own{count(recorder.started()), count(Clock::now())};
  const std::vector<Times> all = TRY(tell_all(cluster, own));
  const bool one_clock = cluster.host(0) == cluster.host(cluster.process());
  const int64_t later = one_clock ? 0 : own.met - all[0].met;
  return Clock::time_point(Clock::duration(all[0].started + later));
}

Status gather(Cluster& cluster, Session& session, const Recorder& recorder,
              bool stats, bool trace, std::vector<std::string>& tables,
              std::vector<std::string>& parts) {
  if (stats) tables = TRY(cluster.gather_texts(statistics(session, recorder)));
  if (trace) {
    const TracedProcess process{.number = cluster.process(),
                                .name = cluster.label(cluster.process()),
                                .start = TRY(common_start(cluster, recorder))};
    parts =
        TRY(cluster.gather_texts(traced_events(session, recorder, process)));
  }
  return Unit{};
}

}  // namespace

TogetherReport report_together(Cluster& cluster, bool ok, Session& session,
                               const Recorder& recorder, bool stats,
                               const std::optional<std::string>& trace) {
  cluster.at("the end of the program");
  std::vector<std::string> tables, parts;
  if (ok)
    ok = static_cast<bool>(gather(cluster, session, recorder, stats,
                                  trace.has_value(), tables, parts));
  TogetherReport out;
  if (cluster.process() > 0) return out;
  if (!ok) {
    tables = {statistics(session, recorder)};
    parts = {
        traced_events(session, recorder,
                      {.name = cluster.label(0), .start = recorder.started()})};
  }
  if (stats) out.stats = stats_table(tables);
  if (!trace) return out;
  if (const Status written = write_trace(*trace, parts); !written)
    out.problem = written.error().message;
  return out;
}

}  // namespace unisono::host
