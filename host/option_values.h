#pragma once
// What the values of options on the command line mean. Each gives nothing for a
// text that means none.
#include <chrono>
#include <optional>
#include <string>
#include <string_view>

#include "lang/context/walk.h"

namespace unisono::host {

/// There is no GPU that is called higher.
inline constexpr int newest_target = 130;

/// The compute capability that a `--target` text means: 90 for "sm_90". Later
/// ones than LLVM knows get code for the newest that it does.
std::optional<int> parse_target(std::string_view text);
/// Seconds from 0 to 10^9.
std::optional<double> parse_seconds(std::string_view text);
/// How long a `--watchdog` text means; what is above 0 is at least one
/// millisecond, since 0 is for ever.
std::optional<std::chrono::milliseconds> parse_watchdog(std::string_view text);
/// "x=f32[4]", "f.x=f32[4]".
std::optional<lang::GivenType> parse_shape(const std::string& text);

}  // namespace unisono::host
