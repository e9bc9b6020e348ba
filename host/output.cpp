#include "host/output.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "host/session/interrupt.h"
#include "host/session/processes.h"
#include "lang/source/utf8.h"

namespace unisono::host {

bool shows_colours(int file) {
  const char* no_colour = std::getenv("NO_COLOR");
  return isatty(file) != 0 && !is_passed_on() && (!no_colour || !*no_colour);
}

void write_output(std::string_view text) {
  const WokenByInterrupts woken;
  std::fwrite(text.data(), 1, text.size(), stdout);
}

void tell(std::string_view text) {
  std::fwrite(text.data(), 1, text.size(), stderr);
}

int wrong_usage(const std::string& message) {
  // Of several processes with one command line the first one tells.
  if (launched_process() > 0) return usage_error;
  tell(fmt::format("error: {}\n", lang::visible(message)));
  return usage_error;
}

int finish_output(int status) {
  if (is_unread()) return status;
  const bool flushed = std::fflush(stdout) == 0;
  if (flushed && !std::ferror(stdout)) return status;
  // An earlier write that failed has kept its reason to itself.
  tell(fmt::format("error: cannot write standard output{}{}\n",
                   flushed ? "" : ": ", flushed ? "" : std::strerror(errno)));
  return std::max(status, 1);
}

void write_together(std::string_view text) {
  write_output(text);
  if (std::ferror(stdout) != 0 && errno == EPIPE) stop_unread();
}
void flush_together() {
  if (std::fflush(stdout) != 0 && errno == EPIPE) stop_unread();
}

}  // namespace unisono::host
