#include "runtime/cluster/cluster.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <functional>
#include <iterator>
#include <limits>
#include <tuple>
#include <utility>

#include "runtime/check.h"
#include "runtime/cluster/cluster_messages.h"
#include "runtime/cluster/tell_all.h"
#include "runtime/tuning/tuning.h"

namespace unisono {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;
using Part = Transport::Part;

/// Who waits looks at the stop flag so often.
constexpr milliseconds look{20};
constexpr int64_t most_note_bytes = int64_t{1} << 30;

/// What processes tell each other first.
struct Hello {
  std::array<char, 64> version{};
  uint64_t tuning = 0;  // a hash of its fingerprint
  std::array<char, 64> host{};
  std::array<char, 8> kind{};  // of devices
  int64_t devices = 0;
};

}  // namespace

std::string host_name() {
  std::array<char, 64> name{};
  gethostname(name.data(), name.size() - 1);
  return name.data();
}

Cluster::Cluster(std::unique_ptr<Transport> transport, ClusterOptions options)
    : transport_(std::move(transport)),
      options_(std::move(options)),
      peers_(static_cast<size_t>(transport_->processes())) {}

Cluster::~Cluster() {
  const std::string tally = options_.faults.tally(process());
  std::fwrite(tally.data(), 1, tally.size(), stderr);
  transport_->close(clean_);
}

Result<std::shared_ptr<Cluster>> Cluster::open(
    std::unique_ptr<Transport> transport, ClusterOptions options) {
  std::shared_ptr<Cluster> cluster(
      new Cluster(std::move(transport), std::move(options)));
  if (const Status met = cluster->meet(); !met) {
    // Who saw one go tells those who only see that others do not come.
    Error error = met.error();
    constexpr std::string_view before = "error: ";
    const auto told =
        cluster->finish(1, fmt::format("{}{}\n", before, error.message))
            .messages;
    if (told && told->starts_with(before))
      error.message =
          told->substr(before.size(), told->find('\n') - before.size());
    return error;
  }
  return cluster;
}

Status Cluster::meet() {
  Hello own;
  set_text(own.version, UNISONO_VERSION);
  own.tuning = std::hash<std::string>()(tuning_fingerprint());
  set_text(own.host, host_name());
  set_text(own.kind, options_.kind);
  own.devices = options_.devices;
  std::vector<Hello> all(peers_.size());
  all[process()] = own;
  TRY(all_gather(all.data(), sizeof(Hello)));
  for (int p = 0; p < processes(); ++p) peers_[p].host = all[p].host.data();
  for (int p = 1; p < processes(); ++p) {
    if (all[p].version != all[0].version)
      return Error{.kind = Error::Kind::check_failed,
                   .message = fmt::format(
                       "{} runs Unisono {}, and {} Unisono {}", label(0),
                       all[0].version.data(), label(p), all[p].version.data())};
    if (all[p].tuning != all[0].tuning)
      return Error{.kind = Error::Kind::check_failed,
                   .message = fmt::format(
                       "{} and {} have other thresholds: UNISONO_TUNING and "
                       "UNISONO_ORDERS must be the same in all processes",
                       label(0), label(p))};
    if (all[p].kind != all[0].kind)
      return Error{
          .kind = Error::Kind::check_failed,
          .message = fmt::format(
              "{} has {} devices, and {} has {} devices: `--devices` "
              "must be the same in all processes",
              label(0), all[0].kind.data(), label(p), all[p].kind.data())};
    if (all[p].devices != all[0].devices)
      return Error{.kind = Error::Kind::check_failed,
                   .message = fmt::format(
                       "{} has {} devices, and {} has {}: `--devices` must be "
                       "the same in all processes",
                       label(0), all[0].devices, label(p), all[p].devices)};
  }
  return Unit{};
}

int Cluster::on_this_host() const {
  return static_cast<int>(std::ranges::count_if(peers_, [&](const Peer& peer) {
    return peer.host == peers_[process()].host;
  }));
}

Error Cluster::stopped() {
  return {.kind = Error::Kind::cancelled, .message = "stopped"};
}

std::string Cluster::label(int process) const {
  const bool several = std::ranges::any_of(
      peers_, [&](const Peer& peer) { return peer.host != peers_[0].host; });
  return several ? label_with_host(process)
                 : fmt::format("process {}", process);
}

std::string Cluster::label_with_host(int process) const {
  return fmt::format("process {} on {}", process, host(process));
}

// ---- messages

Cluster::Header Cluster::header(Kind kind, int64_t bytes,
                                uint64_t fingerprint) const {
  Header header{.kind = kind,
                .sequence = context().sequence,
                .fingerprint = fingerprint,
                .bytes = bytes};
  set_text(header.place, context().place);
  return header;
}

void Cluster::add_outgoing(int to, Kind kind, std::span<const Piece> pieces,
                           uint64_t fingerprint) {
  int64_t bytes = 0;
  for (const Piece& piece : pieces) bytes += piece.bytes;
  const Header head = header(kind, bytes, fingerprint);
  std::vector<char> memory;
  if (!heads_.empty()) {
    memory = std::move(heads_.back());
    heads_.pop_back();
  }
  const bool is_short =
      static_cast<int64_t>(sizeof head) + bytes <= Transport::packet;
  memory.resize(sizeof head + (is_short ? static_cast<size_t>(bytes) : 0));
  std::memcpy(memory.data(), &head, sizeof head);
  if (is_short) {
    char* at = memory.data() + sizeof head;
    for (const Piece& piece : pieces) {
      if (piece.bytes > 0)
        std::memcpy(at, piece.data, static_cast<size_t>(piece.bytes));
      at += piece.bytes;
    }
    pieces = {};
  }
  Outgoing& out = outgoing_.emplace_back(
      Outgoing{.to = to, .head = std::move(memory), .pieces = pieces});
  const auto delay = options_.faults.before_message(process(), to, bytes);
  out.tears = options_.faults.tears_message();
  if (delay.count() > 0) out.begins = Clock::now() + delay;
}

void Cluster::clear() {
  for (Outgoing& out : outgoing_) heads_.push_back(std::move(out.head));
  outgoing_.clear();
  incoming_.clear();
}

/// Whether it sent anything.
bool Cluster::push(Outgoing& out) {
  if (out.begins) {
    if (Clock::now() < *out.begins) return false;
    out.begins.reset();
  }
  bool moved = false;
  while (!out.done) {
    if (out.piece > out.pieces.size() || peers_[out.to].gone) {
      out.done = true;
      break;
    }
    const char* data = out.head.data();
    auto bytes = static_cast<int64_t>(out.head.size());
    if (out.piece > 0) {
      data = static_cast<const char*>(out.pieces[out.piece - 1].data);
      bytes = out.pieces[out.piece - 1].bytes;
    }
    if (out.sent == bytes) {
      ++out.piece;
      out.sent = 0;
      continue;
    }
    const int64_t sent =
        transport_->try_send(out.to, out.piece == 0 ? Part::head : Part::body,
                             data + out.sent, bytes - out.sent);
    if (out.tears && (out.piece > 0 || out.pieces.empty())) Faults::die();
    if (sent == 0) break;
    moved = true;
    // What it has said before it went is still to be read.
    if (sent == Transport::gone) {
      out.done = true;
      break;
    }
    out.sent += sent;
  }
  return moved;
}

/// Brings a header to the front of the peer's buffer. False: not there yet, or
/// never.
bool Cluster::read_header(Incoming& in) {
  Peer& peer = peers_[in.from];
  if (peer.buffer.empty()) peer.buffer.resize(Transport::packet);
  while (peer.end - peer.begin < static_cast<int64_t>(sizeof(Header))) {
    if (peer.gone) {
      in.end(Incoming::Result::gone);
      return false;
    }
    if (peer.end > peer.begin)
      std::memmove(peer.buffer.data(), peer.buffer.data() + peer.begin,
                   static_cast<size_t>(peer.end - peer.begin));
    peer.end -= std::exchange(peer.begin, 0);
    const int64_t got = transport_->try_receive(in.from, Part::head,
                                                peer.buffer.data() + peer.end,
                                                Transport::packet - peer.end);
    if (got == 0) return false;
    if (got == Transport::gone)
      peer.gone = true;
    else
      peer.end += got;
  }
  return true;
}

void Cluster::begin_payload(Incoming& in, const Header& got) {
  in.got = got;
  in.received = 0;
  in.piece = 0;
  if (got.magic != magic || got.bytes < 0)
    return in.end(Incoming::Result::gone);
  if (got.kind != Kind::data) {
    if (got.bytes > most_note_bytes) return in.end(Incoming::Result::gone);
    in.note.assign(static_cast<size_t>(got.bytes), '\0');
    in.state = Incoming::State::note;
    return;
  }
  const Header& expected = in.expected;
  const bool fits = got.sequence == expected.sequence &&
                    got.fingerprint == expected.fingerprint &&
                    got.bytes == expected.bytes && got.place == expected.place;
  if (in.to_the_end || !fits) {
    in.state = Incoming::State::skip;
    if (!in.to_the_end) in.result = Incoming::Result::differs;
    return;
  }
  in.state = Incoming::State::payload;
}

void Cluster::take_note(Incoming& in) {
  if (in.got.kind == Kind::lines) {
    take_lines(in.note, lines_);
    in.state = Incoming::State::header;
    return;
  }
  Peer& peer = peers_[in.from];
  Goodbye goodbye;
  if (in.note.size() < sizeof goodbye) return in.end(Incoming::Result::gone);
  std::memcpy(&goodbye, in.note.data(), sizeof goodbye);
  const std::string_view rest =
      std::string_view(in.note).substr(sizeof goodbye);
  const size_t message =
      std::min(rest.size(), static_cast<size_t>(goodbye.message_bytes));
  peer.messages = rest.substr(0, message);
  take_lines(rest.substr(message), lines_of_others_);
  peer.goodbye = goodbye;
  in.end(Incoming::Result::goodbye);
}

/// Whether anything came.
bool Cluster::pull(Incoming& in) {
  using State = Incoming::State;
  Peer& peer = peers_[in.from];
  bool moved = false;
  const auto into = [&](char* data, int64_t bytes) -> int64_t {
    if (peer.end > peer.begin) {
      const int64_t some = std::min(bytes, peer.end - peer.begin);
      std::memcpy(data, peer.buffer.data() + peer.begin,
                  static_cast<size_t>(some));
      peer.begin += some;
      return some;
    }
    const int64_t got =
        transport_->try_receive(in.from, Part::body, data, bytes);
    if (got == Transport::gone) peer.gone = true;
    return got;
  };
  std::array<char, Transport::packet> thrown_away;
  while (!in.done()) {
    if (in.state == State::header) {
      if (peer.goodbye) {  // found by a glance
        in.end(Incoming::Result::goodbye);
        break;
      }
      if (!read_header(in)) break;
      Header got;
      std::memcpy(&got, peer.buffer.data() + peer.begin, sizeof got);
      peer.begin += static_cast<int64_t>(sizeof got);
      moved = true;
      begin_payload(in, got);
      continue;
    }
    char* data = nullptr;
    int64_t bytes = 0;
    if (in.state == State::payload) {
      if (in.piece == in.pieces.size()) {
        in.end(Incoming::Result::data);
        break;
      }
      const Piece& piece = in.pieces[in.piece];
      if (in.received == piece.bytes) {
        if (in.taker) in.taker->take(in.from, in.piece);
        ++in.piece;
        in.received = 0;
        continue;
      }
      if (in.taker && in.received == 0 &&
          !in.taker->may_come(in.from, in.piece))
        break;
      data = static_cast<char*>(piece.data) + in.received;
      bytes = piece.bytes - in.received;
    } else if (in.state == State::note) {
      if (in.received == in.got.bytes) {
        take_note(in);
        continue;
      }
      data = in.note.data() + in.received;
      bytes = in.got.bytes - in.received;
    } else {
      if (in.received == in.got.bytes) {
        if (in.to_the_end)
          in.state = State::header;
        else
          in.end(in.result);
        continue;
      }
      data = thrown_away.data();
      bytes = std::min<int64_t>(Transport::packet, in.got.bytes - in.received);
    }
    const int64_t got = into(data, bytes);
    if (got == 0) break;
    moved = true;
    if (got == Transport::gone) {
      in.end(Incoming::Result::gone);
      break;
    }
    in.received += got;
  }
  return moved || in.done();
}

/// Of an exchange that fails: a taker may wait for what does not come, and who
/// sends for the taker. What comes now is of no use.
void Cluster::stop_taking() {
  for (Incoming& in : incoming_) in.taker = nullptr;
}

bool Cluster::pump() {
  // Since nothing has come, and since it shall stop: known from the first time
  // that waiting took any.
  std::optional<Clock::time_point> since, stopped_at;
  bool has_waited = false;
  for (;;) {
    bool moved = false, begun = false;
    sending_.clear();
    receiving_.clear();
    busy_.clear();  // messages to one process go one after the other
    milliseconds most = look;
    for (Outgoing& out : outgoing_) {
      if (out.done || std::ranges::find(busy_, out.to) != busy_.end()) continue;
      moved |= push(out);
      if (out.done) continue;
      busy_.push_back(out.to);
      begun |= out.begun();
      if (out.begins)
        most = milliseconds(1);
      else
        sending_.push_back(out.to);
    }
    for (Incoming& in : incoming_) {
      if (in.done()) continue;
      moved |= pull(in);
      if (in.result != Incoming::Result::data) stop_taking();
      if (in.done()) continue;
      begun |= in.begun();
      receiving_.push_back(in.from);
    }
    if (receiving_.empty() && busy_.empty()) return true;
    if (moved) {
      since.reset();
      continue;
    }
    if (has_waited) {
      const Clock::time_point now = Clock::now();
      if (!since) since = now;
      if (options_.stop && options_.stop->load(std::memory_order_relaxed)) {
        if (!stopped_at) stopped_at = now;
        if (!begun || now - *stopped_at > grace) {
          stopped_ = begun;
          return false;
        }
      }
      // Who waits for others alone has told of its own end.
      const milliseconds limit =
          ending_ && !begun && busy_.empty() ? end_patience : options_.limit;
      if (limit.count() > 0 && now - *since > limit) {
        give_up();
        return true;
      }
    }
    has_waited = transport_->wait(sending_, receiving_, most);
  }
}

/// Of those that have not come nothing is expected any more.
void Cluster::give_up() {
  for (Incoming& in : incoming_) {
    if (in.done()) continue;
    peers_[in.from].late = true;
    in.end(Incoming::Result::late);
  }
  for (Outgoing& out : outgoing_) {
    if (out.done) continue;
    peers_[out.to].late = true;
    peers_[out.to].torn = out.begun();
    out.done = out.late = true;
  }
}

Error Cluster::differs(int process, const Header& other) const {
  const std::string_view there = other.place.data();
  const std::string& here = context().place;
  std::string message;
  if (there == here)
    message = fmt::format("{} and {} do different things at {}", label(process),
                          label(this->process()), here);
  else
    message = fmt::format("{} is at {}, and {} at {}", label(process), there,
                          label(this->process()), here);
  return {.kind = Error::Kind::check_failed,
          .message = message + ": every process must do the same"};
}

/// Of several reasons to stop, another's failure: that is the program's.
Status Cluster::outcome() {
  using Result = Incoming::Result;
  std::optional<Error> found;
  int rank = 0;
  const auto consider = [&](int importance, Error error) {
    if (importance <= rank) return;
    rank = importance;
    found = std::move(error);
  };
  for (const Incoming& in : incoming_) {
    switch (in.result) {
      case Result::data: break;
      case Result::goodbye:
        if (peers_[in.from].goodbye->status != 0) {
          consider(4, {.kind = Error::Kind::device_lost,
                       .message = fmt::format("{} failed", label(in.from))});
        } else {
          consider(3, {.kind = Error::Kind::check_failed,
                       .message = fmt::format(
                           "{} has ended, and {} is at {}: every process must "
                           "do the same",
                           label(in.from), label(process()), context().place)});
        }
        break;
      case Result::differs: consider(3, differs(in.from, in.got)); break;
      case Result::gone:
        consider(2, {.kind = Error::Kind::device_lost,
                     .message = fmt::format(
                         "{} is gone: it was killed, or its host is down",
                         label(in.from))});
        break;
      case Result::late: consider(1, late_error(in.from)); break;
    }
  }
  for (const Outgoing& out : outgoing_)
    if (out.late) consider(1, late_error(out.to));
  if (!found) return Unit{};
  follows_ = rank == 4;
  if (!follows_) note_failure(rank == 1 ? waits_ : 0);
  return *std::move(found);
}

Status Cluster::exchange(std::span<const Message> sends,
                         std::span<const Message> receives,
                         uint64_t fingerprint) {
  TRY(finish_asides());
  count_exchange();
  return transfer(sends, receives, fingerprint);
}

Status Cluster::transfer(std::span<const Message> sends,
                         std::span<const Message> receives,
                         uint64_t fingerprint) {
  clear();
  for (const Message& message : sends)
    add_outgoing(message.process, Kind::data, message.pieces, fingerprint);
  for (const Message& message : receives) {
    int64_t bytes = 0;
    for (const Piece& piece : message.pieces) bytes += piece.bytes;
    incoming_.push_back({.from = message.process,
                         .pieces = message.pieces,
                         .taker = message.taker,
                         .expected = header(Kind::data, bytes, fingerprint)});
  }
  if (!pump()) return stopped();
  return outcome();
}

/// Who has ended well has sent all that others wait for.
Status Cluster::check_others() {
  TRY(finish_asides());
  if (options_.stop && options_.stop->load(std::memory_order_relaxed))
    return Error{.kind = Error::Kind::cancelled, .message = "stopped"};
  for (int p = 0; p < processes(); ++p) {
    if (p == process()) continue;
    Incoming in{.from = p, .to_the_end = true};
    if (peers_[p].goodbye) {
      in.end(Incoming::Result::goodbye);
    } else if (read_header(in)) {
      Header got;
      std::memcpy(&got, peers_[p].buffer.data() + peers_[p].begin, sizeof got);
      if (got.kind != Kind::goodbye) continue;
      clear();
      incoming_.push_back(std::move(in));
      if (!pump())
        return Error{.kind = Error::Kind::cancelled, .message = "stopped"};
      in = std::move(incoming_[0]);
    } else if (!in.done()) {
      continue;
    }
    if (peers_[p].goodbye && peers_[p].goodbye->status == 0) continue;
    clear();
    incoming_.push_back(std::move(in));
    return outcome();
  }
  return Unit{};
}

Error Cluster::late(int process) {
  peers_[process].late = true;
  note_failure(0);
  return late_error(process);
}

Error Cluster::late_error(int process) const {
  return {.kind = Error::Kind::device_lost,
          .message = fmt::format(
              "{} did not come to {} in {} s", label(process), context().place,
              static_cast<double>(options_.limit.count()) / 1000)};
}

Status Cluster::glance() {
  Peer& first = peers_[0];
  Incoming in{.from = 0, .to_the_end = true};
  if (!first.goodbye) {
    // As little as a header is enough: what else has come is for later.
    if (read_header(in)) {
      Header got;
      std::memcpy(&got, first.buffer.data() + first.begin, sizeof got);
      if (got.kind != Kind::goodbye) return Unit{};
      clear();
      incoming_.push_back(std::move(in));
      if (!pump()) return stopped();
      in = std::move(incoming_[0]);
    } else if (!in.done()) {
      return Unit{};
    }
  } else {
    in.end(Incoming::Result::goodbye);
  }
  // It may have come to the end before this process: output does not meet.
  if (first.goodbye && first.goodbye->status == 0) return Unit{};
  clear();
  incoming_.push_back(std::move(in));
  return outcome();
}

}  // namespace unisono
