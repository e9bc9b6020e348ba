#include "runtime/cluster/faults.h"

#include <fmt/format.h>
#include <unistd.h>

#include <csignal>
#include <sstream>
#include <string>

namespace unisono {

Result<Faults> Faults::parse(std::string_view text) {
  Faults faults;
  std::stringstream parts{std::string(text)};
  std::string part;
  while (std::getline(parts, part, ';')) {
    std::stringstream words(part);
    std::string what;
    if (!(words >> what)) continue;
    int64_t a = 0, b = 0, c = 0;
    const bool is_flag = what == "eager" || what == "tally";
    if (!is_flag) words >> a;
    if (!is_flag && what != "reorder") words >> b;
    if (what == "slow") words >> c;
    const bool read = !words.fail() && (words >> std::ws).eof();
    using How = At::How;
    if (read && (what == "die" || what == "hang" || what == "tear")) {
      faults.ends_.push_back({static_cast<int>(a), b,
                              what == "die"    ? How::die
                              : what == "hang" ? How::hang
                                               : How::tear});
    } else if (read && what == "slow") {
      faults.links_.push_back({static_cast<int>(a), static_cast<int>(b),
                               std::chrono::milliseconds(c)});
    } else if (read && what == "reorder") {
      faults.reorders_ = true;
      faults.random_.seed(static_cast<uint64_t>(a));
    } else if (read && what == "eager") {
      faults.eager_ = true;
    } else if (read && what == "tally") {
      faults.tallies_ = true;
    } else {
      return Error{
          .message = fmt::format(
              "UNISONO_FAULTS expects `die P J`, `hang P J`, `tear P "
              "J`, `slow P Q MS`, `reorder SEED`, `eager` and `tally`, with ; "
              "between them; got `{}`",
              part)};
    }
  }
  return faults;
}

void Faults::die() {
  kill(getpid(), SIGKILL);
  for (;;) pause();
}

std::string Faults::tally(int process) const {
  if (!tallies_) return "";
  return fmt::format("process {}: {} messages, {} bytes\n", process, messages_,
                     bytes_);
}

std::chrono::microseconds Faults::before_message(int from, int to,
                                                 int64_t bytes) {
  ++messages_;
  bytes_ += bytes;
  for (const At& end : ends_) {
    if (end.process != from || end.message != messages_) continue;
    if (end.how == At::How::tear)
      tears_ = true;
    else if (end.how == At::How::die)
      die();
    else
      for (;;) pause();
  }
  std::chrono::microseconds late{0};
  for (const Link& link : links_)
    if (link.from == from && link.to == to) late += link.late;
  if (reorders_) late += std::chrono::microseconds(random_() % 2000);
  return late;
}

}  // namespace unisono
