#pragma once
// What a run says about its speed: `--explain-speed`.
#include <string>

#include "host/session/session.h"
#include "lang/context/line_times.h"
#include "runtime/recorder.h"

namespace unisono::host {

/// Where time went, by line of the program, the longest first; then why
/// something took the slower way. `recorder` was told of the whole run.
std::string speed_report(Session& session, const Recorder& recorder,
                         const lang::LineTimes& times);

}  // namespace unisono::host
