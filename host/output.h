#pragma once
// What the command line's programs write, and how they end by it.
#include <csignal>
#include <string>
#include <string_view>

namespace unisono::host {

/// Exit status of a wrong command line.
inline constexpr int usage_error = 2;

/// Whether what is written there may be coloured: see no-color.org.
bool shows_colours(int file);
/// Writes to standard output; see finish_output.
void write_output(std::string_view text);
/// Writes to standard error. A failure is ignored, where fmt::print would
/// throw.
void tell(std::string_view text);
/// Says what is wrong with the command line, with escapes for what a terminal
/// would obey; gives `usage_error`.
int wrong_usage(const std::string& message);
/// The status to leave with: `status`, or 1 when standard output could not be
/// written.
int finish_output(int status);

/// Output of several processes. Where nobody reads it any more all stop, and
/// end with this status, as one alone does, of which the system says no more.
inline constexpr int unread_status = 128 + SIGPIPE;
void write_together(std::string_view text);
void flush_together();

}  // namespace unisono::host
