#pragma once
// Messages of a cluster on their way, for its own files.
#include <chrono>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "runtime/cluster/cluster.h"

namespace unisono {

/// Who has come to the end waits so long before it tells all others.
inline constexpr std::chrono::milliseconds end_patience{1000};
/// Who is stopped finishes messages that have begun for so long.
inline constexpr std::chrono::milliseconds grace{500};

/// A message on its way: its head, with the payload if that is short, and the
/// pieces. Messages are frequent, and often short: their memory is used again.
struct Cluster::Outgoing {
  int to = 0;
  std::vector<char> head;
  std::span<const Piece> pieces;
  size_t piece = 0;  // 0 is the head
  int64_t sent = 0;  // of this one
  std::optional<std::chrono::steady_clock::time_point> begins = {};
  bool tears = false;  // this process is killed in its midst
  bool done = false;
  bool late = false;  // given up, as it could not be sent in time

  bool begun() const { return piece > 0 || sent > 0; }
};

/// What is waited for from a process: a message of data, or with `to_the_end`
/// its goodbye.
struct Cluster::Incoming {
  enum class State : uint8_t { header, payload, note, skip, done };
  enum class Result : uint8_t { data, goodbye, differs, gone, late };
  int from = 0;
  std::span<const Piece> pieces = {};
  Taker* taker = nullptr;
  Header expected = {};
  bool to_the_end = false;

  State state = State::header;
  Result result = Result::data;
  Header got = {};
  size_t piece = 0;
  int64_t received = 0;  // of this piece, note or what is skipped
  std::string note = {};

  bool done() const { return state == State::done; }
  bool begun() const { return !done() && state != State::header; }
  void end(Result how) {
    result = how;
    state = State::done;
  }
};

}  // namespace unisono
