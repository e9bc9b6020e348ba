// What members print, and the end of a program: who tells of it, and how all
// have ended.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <iterator>
#include <limits>
#include <tuple>
#include <utility>

#include "runtime/check.h"
#include "runtime/cluster/cluster.h"
#include "runtime/cluster/cluster_messages.h"

namespace unisono {

// ---- what members print

void Cluster::output(std::string_view text) {
  if (in_member())
    lines_.push_back(
        {own_.sequence, member_, lines_.size(), std::string(text)});
  else if (process() == 0)
    options_.output(text);
}

std::string Cluster::lines_text() const {
  std::string text;
  for (const Line& line : lines_) {
    const std::array<int64_t, 3> head = {
        static_cast<int64_t>(line.sequence), line.position,
        static_cast<int64_t>(line.text.size())};
    text.append(reinterpret_cast<const char*>(head.data()), sizeof head);
    text += line.text;
  }
  return text;
}

void Cluster::take_lines(std::string_view text, std::vector<Line>& lines) {
  std::array<int64_t, 3> head;
  while (text.size() >= sizeof head) {
    std::memcpy(head.data(), text.data(), sizeof head);
    text.remove_prefix(sizeof head);
    const size_t bytes = std::min(text.size(), static_cast<size_t>(head[2]));
    lines.push_back({static_cast<uint64_t>(head[0]), head[1], lines.size(),
                     std::string(text.substr(0, bytes))});
    text.remove_prefix(bytes);
  }
}

/// Up to what a failure would have let one process print.
void Cluster::print_lines(const When* until) {
  std::ranges::move(lines_of_others_, std::back_inserter(lines_));
  lines_of_others_.clear();
  const auto place = [](const Line& line) {
    return std::tuple(line.sequence, line.position, line.number);
  };
  const auto is_before = [&](const Line& line) {
    return std::pair(line.sequence, line.position) <=
           std::pair(until->sequence, until->position);
  };
  std::sort(lines_.begin(), lines_.end(),
            [&](const Line& a, const Line& b) { return place(a) < place(b); });
  for (const Line& line : lines_)
    if (!until || is_before(line)) options_.output(line.text);
  lines_.clear();
}

// ---- the end

void Cluster::note_failure(int64_t position) {
  if (failure_ || follows_) return;
  failure_ = found_ = When{context().sequence, context().runs, position};
}

void Cluster::note_failure(int64_t position, uint64_t sequence) {
  if (failure_) return;
  failure_ = When{sequence, own_.runs, position};
  found_ = When{own_.sequence, own_.runs, std::numeric_limits<int64_t>::max()};
  follows_ = false;
}

Cluster::End Cluster::finish(int status, std::string messages) {
  CHECK(!finished_);
  // Its error is known from `failure_`.
  const bool came = static_cast<bool>(finish_asides());
  finished_ = true;
  own_.place = "the end of the program";
  if (came && status == 0 && !failure_ && !follows_ && end_well()) {
    clean_ = true;
    return {.status = 0,
            .messages = process() == 0 ? std::optional(std::move(messages))
                                       : std::nullopt};
  }
  say_goodbye(status, messages);
  return end_of_all(messages);
}

/// Whether all have come to the end. One that is late may still have much to do
/// or wait for somebody that is here, so all hear of the end then. It is missed
/// by who waits for it on the way to process 0; who waits for process 0 does
/// not lose patience: that one may have seen all, and be gone.
bool Cluster::end_well() {
  ending_ = options_.limit.count() == 0 || options_.limit > end_patience;
  const bool came = static_cast<bool>(settle_runs());
  if (std::exchange(ending_, false) && !came)
    for (Peer& peer : peers_) peer.late = false;
  return came && broadcast(0, nullptr, 0);
}

void Cluster::say_goodbye(int status, const std::string& messages) {
  // The host's part of the program comes after the runs before.
  constexpr int64_t host = int64_t{1} << 32;
  constexpr uint64_t run = 0xffff'ffff;
  Goodbye own{
      .status = status,
      .is_own = status != 0 && !follows_,
      .when = failure_.value_or(When{own_.sequence | run, own_.runs, host}),
      .found = found_.value_or(When{own_.sequence | run, own_.runs, host}),
      .message_bytes = static_cast<int64_t>(messages.size())};
  std::string note(reinterpret_cast<const char*>(&own), sizeof own);
  note += messages;
  if (process() > 0) note += lines_text();
  transport_->forget();
  clear();
  const Piece piece{note.data(), static_cast<int64_t>(note.size())};
  for (int p = 0; p < processes(); ++p) {
    if (p == process()) continue;
    if (!stopped_ && !peers_[p].torn)
      add_outgoing(p, Kind::goodbye, {&piece, 1}, 0);
    if (!peers_[p].goodbye)
      incoming_.push_back({.from = p, .to_the_end = true});
  }
  // Who was stopped waits for the others nevertheless, but not for long; nor
  // does who has given somebody up: that one may only have waited, too, and
  // knows for whom.
  const std::atomic<bool>* stop = std::exchange(options_.stop, nullptr);
  const bool hurries =
      (stop && stop->load()) || std::ranges::any_of(peers_, &Peer::late);
  if (hurries && (options_.limit.count() == 0 || options_.limit > 4 * grace))
    options_.limit = 4 * grace;
  pump();

  peers_[process()].goodbye = own;
  peers_[process()].messages = messages;
}

Cluster::End Cluster::end_of_all(const std::string& messages) {
  int first = -1, failed = -1, missing = -1;
  const auto earlier = [&](int a, int b) {
    return peers_[a].goodbye->when < peers_[b].goodbye->when;
  };
  for (int p = 0; p < processes(); ++p) {
    const auto& goodbye = peers_[p].goodbye;
    if (!goodbye) {
      if (missing < 0) missing = p;
      continue;
    }
    if (first < 0) first = p;
    if (goodbye->is_own && (failed < 0 || earlier(p, failed))) failed = p;
  }
  End end{.status = 0, .messages = std::nullopt};
  if (failed >= 0)
    end.status = peers_[failed].goodbye->status;
  else if (missing >= 0)
    end.status = 1;
  clean_ = missing < 0;
  if (first != process()) return end;
  print_lines(failed >= 0 ? &peers_[failed].goodbye->found : nullptr);
  if (failed >= 0)
    end.messages = peers_[failed].messages;
  else if (missing >= 0)
    end.messages =
        messages +
        fmt::format("error: {} {}\n", label(missing),
                    peers_[missing].late
                        ? "has not come to the end of the program"
                        : "is gone: it was killed, or its host is down");
  else
    end.messages = messages;
  return end;
}

}  // namespace unisono
