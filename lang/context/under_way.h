#pragma once
// Runs that devices may still be at work with (GPUs). Whatever others see is
// made after a wait for them: output, files, the clock, decisions of the host,
// and what a host that embeds us gets. So their errors come up in the order in
// which they would have, and nothing that should not be has happened since.
// And ranges for tools, which say what the host does meanwhile.
#include <functional>
#include <memory>

#include "lang/context/walk.h"
#include "lang/source/source.h"
#include "runtime/execute/program.h"
#include "runtime/execute/ranges.h"

namespace unisono::lang {

/// Whether a run may be left under way now.
bool leaves_runs(Walk& walk);
/// Keeps a run that was left. If it turns out to have failed, `fail` throws
/// what the run itself would have thrown, which is reported as it would have
/// been where the walk is now.
void keep_under_way(Walk& walk, std::unique_ptr<RunUnderWay> run,
                    std::shared_ptr<const unisono::Program> program,
                    std::function<void(const Error&)> fail);
/// Waits for all of them; throws the failure of the first that failed, which
/// has been reported. `where` is for Ctrl-C; without one the place is that of
/// the run that was waited for.
void wait_for_runs(Walk& walk, Span where);

/// Null where no tool wants any.
Ranges* ranges_of(Walk& walk);
void set_ranges(Walk& walk, std::unique_ptr<Ranges> ranges);

}  // namespace unisono::lang
