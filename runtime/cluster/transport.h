#pragma once
// What moves bytes between the processes of one program. Between each two of
// them there is an ordered stream of bytes in both directions, and nothing
// here waits but `wait`. Messages, their meaning, and who waits for whom are
// cluster.h's.
#include <chrono>
#include <cstdint>
#include <span>
#include <string>

namespace unisono {

/// Not thread-safe, but calls may come from different threads one after the
/// other.
class Transport {
 public:
  /// What `try_send` and `try_receive` give for a process that is gone.
  static constexpr int64_t gone = -1;
  /// A message is a head, of `packet` bytes at most, and what follows it, if
  /// anything does.
  enum class Part : uint8_t { head, body };
  static constexpr int64_t packet = 4096;

  virtual ~Transport() = default;
  /// This process, from 0 on, and how many there are.
  virtual int process() const = 0;
  virtual int processes() const = 0;
  /// "sockets", "MPI (MPICH 4.0.2)"
  virtual std::string name() const = 0;

  /// Sends at most `bytes` (more than 0) of `data` to another process: how many
  /// the transport has taken, which may be used again; 0 if it can take none
  /// now: then the next call for this process is the same one again.
  virtual int64_t try_send(int to, Part part, const void* data,
                           int64_t bytes) = 0;
  /// The next bytes that have come from another process, at most `bytes`, or 0.
  /// `part` is what they are. A transport of messages gives a whole head, for
  /// which there must be `packet` bytes of room; another one gives what there
  /// is, so that what follows the head may come with it.
  virtual int64_t try_receive(int from, Part part, void* data,
                              int64_t bytes) = 0;
  /// Memory that calls were given is not used any more: the program ends.
  virtual void forget() = 0;
  /// Returns when one of `sending` may take bytes or bytes of one of
  /// `receiving` may have come, or when `most` is over, or before. False: at
  /// once, so that the time need not be looked at.
  virtual bool wait(std::span<const int> sending,
                    std::span<const int> receiving,
                    std::chrono::milliseconds most) = 0;
  /// All processes have ended as one, or (`clean` is false) this one cannot
  /// wait for them.
  virtual void close(bool clean) = 0;
};

}  // namespace unisono
