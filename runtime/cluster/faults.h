#pragma once
// Faults on purpose, for tests of programs in several processes.
#include <chrono>
#include <cstdint>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/result.h"

namespace unisono {

/// From a text such as "die 1 7; hang 2 5; slow 0 1 20; reorder 3", whose parts
/// are
///   die P J        process P is killed at its J-th message (from 1)
///   tear P J       process P is killed in the midst of its J-th message: the
///   head
///                  is sent, and what follows it is offered, or begun
///   hang P J       process P stands still there, for ever
///   slow P Q MS    each message from P to Q begins so many milliseconds late
///   reorder SEED   messages begin up to 2 ms late, so that those of different
///                  pairs of processes come in any order
///   eager          collectives travel while devices compute even where that is
///                  worth nothing
///   tally          each process tells at its end what it has sent
/// The texts of all processes are the same one.
class Faults {
 public:
  Faults() = default;
  static Result<Faults> parse(std::string_view text);

  /// Process `from` is about to send a message of so many bytes: how late it
  /// begins. May not return.
  std::chrono::microseconds before_message(int from, int to, int64_t bytes);
  /// Whether this process ends in the midst of the message that was asked about
  /// last; and how it does.
  bool tears_message() const { return tears_; }
  [[noreturn]] static void die();
  bool is_eager() const { return eager_; }
  /// "process 1: 12 messages, 4096 bytes"; empty if nobody wants to know.
  std::string tally(int process) const;

 private:
  struct At {
    int process = 0;
    int64_t message = 0;
    enum class How : uint8_t { die, hang, tear } how = How::die;
  };
  struct Link {
    int from = 0, to = 0;
    std::chrono::milliseconds late{0};
  };
  std::vector<At> ends_;
  std::vector<Link> links_;
  bool reorders_ = false;
  bool eager_ = false;
  bool tears_ = false;
  bool tallies_ = false;
  std::mt19937_64 random_;
  int64_t messages_ = 0, bytes_ = 0;
};

}  // namespace unisono
