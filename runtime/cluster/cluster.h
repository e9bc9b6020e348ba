#pragma once
// One program in several processes. Each of them walks the same script and so
// comes to the same exchanges in the same order, where messages meet: every
// message says which exchange it belongs to and what its sender is doing, so
// that processes that have gone different ways are found at once.
//
// At the end all come together, in a tree. A process that fails, or sees that
// another does not come, says goodbye to all others instead. Who waits for it
// then stops, and does so, too, and in the end everybody knows how all ended:
// the first failure, in the order in which one process would have had it, is
// the program's, and one process tells of it.
#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/cluster/background.h"
#include "runtime/cluster/faults.h"
#include "runtime/cluster/transport.h"
#include "runtime/result.h"

namespace unisono {

/// The name of this machine.
std::string host_name();

struct Piece {
  void* data = nullptr;  // not written to where it is sent
  int64_t bytes = 0;
};

/// Takes pieces of an exchange as they come, so that one place in memory will
/// do for several. Called while the exchange waits, from its thread.
class Taker {
 public:
  virtual ~Taker() = default;
  /// Whether the place of this piece is free.
  virtual bool may_come(int process, size_t piece) = 0;
  virtual void take(int process, size_t piece) = 0;
};

/// What goes to another process, or comes from it, in an exchange: the bytes of
/// the pieces, one after the other.
struct Message {
  int process = 0;
  std::vector<Piece> pieces = {};
  Taker* taker = nullptr;  // of what comes; outlives the exchange
};

struct ClusterOptions {
  /// How long nothing may come from a process that is waited for; 0: for ever.
  std::chrono::milliseconds limit{60'000};
  /// Of this process; kind and number must be the same in all.
  std::string kind = "cpu";
  int devices = 1;  // 0: not known yet
  /// Set: who waits stops, soon.
  const std::atomic<bool>* stop = nullptr;
  /// Where lines go that are the program's output. Used in process 0, or in the
  /// first that is there.
  std::function<void(std::string_view)> output;
  Faults faults = {};
};

/// Not thread-safe, but calls may come from different threads one after the
/// other. Errors of what waits: process_lost, processes_differ, cancelled;
/// after one there is nothing left but `finish`.
class Cluster {
 public:
  /// Returns when all processes have done so: they know each other then, and
  /// are of one version, and have as many devices, of one kind.
  static Result<std::shared_ptr<Cluster>> open(
      std::unique_ptr<Transport> transport, ClusterOptions options);
  /// Closes the transport: after `finish`, and after what it says was told, as
  /// that may end the process.
  ~Cluster();
  Cluster(const Cluster&) = delete;

  int process() const { return transport_->process(); }
  int processes() const { return transport_->processes(); }
  int devices_each() const { return options_.devices; }
  /// Where that was not known: it is the same in all processes.
  void set_devices_each(int devices) { options_.devices = devices; }
  /// The name of a process's host.
  const std::string& host(int process) const { return peers_[process].host; }
  /// Processes on this host, this one included.
  int on_this_host() const;
  std::string transport() const { return transport_->name(); }
  /// "process 2", with its host if there are several.
  std::string label(int process) const;
  std::string label_with_host(int process) const;

  /// Where the program is, for messages: "train.uni:14".
  void at(std::string_view place) { own_.place = place; }

  /// What all processes do at the same time, with equal `fingerprint`s; each
  /// receives what is sent to it. The pieces of both sides have equal bytes in
  /// all. Each process comes once in `sends`, and in `receives`, and not the
  /// own one.
  Status exchange(std::span<const Message> sends,
                  std::span<const Message> receives, uint64_t fingerprint);
  /// Whether somebody is gone, has failed, or wants all to stop, as far as is
  /// known now: an error then, as of an exchange. For who waits for others by
  /// other means.
  Status check_others();
  /// A process does not come in time: gives what is said of it.
  Error late(int process);
  std::chrono::milliseconds limit() const { return options_.limit; }
  // Of the following each process sends and receives about log2 N messages.

  /// The bytes of process `from` come to all others; each sends less than twice
  /// as many.
  Status broadcast(int from, void* data, int64_t bytes);
  /// Those of each process come to all: process p's are at `all` + p * `bytes`.
  Status all_gather(void* all, int64_t bytes);
  /// The texts of all come to process 0, by process; elsewhere there is none.
  Result<std::vector<std::string>> gather_texts(std::string_view own);
  /// What all processes have, combined by xor, comes to process 0; elsewhere
  /// the numbers are of no use then.
  Status combine_xor(std::span<uint32_t> numbers);
  /// When this returns in process 0, all others have come here, without an
  /// error: what is done now would have been done by one process alone, too.
  /// What members have printed is then output.
  Status settle();
  /// No process goes on before all have come here; with equal `fingerprint`s.
  Status barrier(uint64_t fingerprint = 0);

  /// What a member prints is kept until the next `settle`, and comes there in
  /// the order of exchanges, then of positions: between these two calls
  /// `output` keeps it.
  void begin_member(int position) { member_ = position; }
  void end_member() { member_ = -1; }
  bool in_member() const { return member_ >= 0; }
  /// Output of a member; or else of the program: in process 0 alone. (The
  /// caller has settled.)
  void output(std::string_view text);

  /// A run of a program on devices of the cluster, whether or not this process
  /// has some of them. Exchanges in between are those of the processes that do,
  /// in each collective all of them.
  void begin_run();
  /// Waits for what was begun aside: what that sends may be written to then.
  void end_run();
  /// The device at this position of a run's has failed. The first call counts.
  void note_failure(int64_t position);
  /// The same of one that went on by itself, so that it is found only now, when
  /// `sequence` is no more what it was then.
  void note_failure(int64_t position, uint64_t sequence);
  /// Grows with the exchanges, in all processes of a run alike.
  uint64_t sequence() const { return own_.sequence; }
  /// For exchanges while somebody computes. From the first that is begun there
  /// until the last is done nobody else calls the cluster.
  Background& background() { return background_; }
  /// Exchanges between runs that are under way while the program goes on, and
  /// all processes begin alike: their numbers and their place are those of now.
  /// `work`, done by the background's thread, calls the cluster, and writes to
  /// `places`; then `done` is called. Who calls the cluster otherwise waits for
  /// it first.
  void begin_aside(std::function<Status()> work,
                   std::vector<const void*> places, std::function<void()> done);
  /// When something is there that comes to this place: a ticket of the
  /// background; 0: it is.
  Background::Ticket arrival(const void* place) const;
  /// For tests: exchanges are begun there whenever they can be.
  bool is_eager() const { return options_.faults.is_eager(); }

  struct End {
    int status = 0;
    /// What this process tells the user, if it is the one that does.
    std::optional<std::string> messages;
  };
  /// The end of this process: it would have this exit status and tell of this.
  /// Waits for the others, and gives what is the end of all.
  End finish(int status, std::string messages);

 private:
  enum class Kind : uint32_t { data = 1, lines = 2, goodbye = 3 };
  static constexpr uint32_t magic = 0x4f534e55;  // "UNSO"
  struct Header {
    uint32_t magic = Cluster::magic;
    Kind kind = Kind::data;
    uint64_t sequence = 0;
    uint64_t fingerprint = 0;
    int64_t bytes = 0;
    std::array<char, 64> place{};
  };
  /// When a process failed, in the order of one process. A failure of the
  /// host's part of the program comes after those of the run before it.
  struct When {
    uint64_t sequence = 0, runs = 0;
    int64_t position = 0;
    auto operator<=>(const When&) const = default;
  };
  struct Goodbye {
    int32_t status = 0;
    /// Whether it failed by itself, and not because another one had.
    int32_t is_own = 0;
    When when;
    When found;  // what members have printed until then is output
    int64_t message_bytes = 0;
  };
  struct Line {
    uint64_t sequence = 0;
    int64_t position = 0;
    size_t number = 0;  // of those that this process has, as they came
    std::string text;
  };
  struct Peer {
    std::string host;
    bool gone = false;  // nothing comes from it any more
    bool late = false;
    bool torn = false;  // a message to it was given up in its midst
    /// Bytes that have come and nobody has looked at; of no size until some do.
    std::vector<char> buffer;
    int64_t begin = 0, end = 0;
    std::optional<Goodbye> goodbye;
    std::string messages;
  };
  struct Outgoing;
  struct Incoming;

  /// Which exchange it is, and where in the program.
  struct Context {
    /// Exchanges, and runs, in all processes; in the higher half. In the lower
    /// one the exchanges of a run.
    uint64_t sequence = 0;
    bool in_run = false;
    uint64_t runs = 0;
    std::string place = "the beginning";
  };
  /// Of the thread that calls.
  const Context& context() const {
    return background_.is_here() && aside_ ? *aside_ : own_;
  }
  Context& context() {
    return background_.is_here() && aside_ ? *aside_ : own_;
  }
  /// What was begun aside comes before what this thread does now.
  Status finish_asides();

  static void take_lines(std::string_view text, std::vector<Line>& lines);

  Cluster(std::unique_ptr<Transport> transport, ClusterOptions options);
  Status meet();  // the beginning of `open`
  Status settle_runs();
  bool end_well();
  /// Tells all others how this process ends, and listens to how they do.
  void say_goodbye(int status, const std::string& messages);
  End end_of_all(const std::string& messages);
  Header header(Kind kind, int64_t bytes, uint64_t fingerprint) const;
  void count_exchange();
  /// An exchange that is counted already.
  Status transfer(std::span<const Message> sends,
                  std::span<const Message> receives, uint64_t fingerprint);
  /// To what is sent in the next `pump`; the pieces are there until then.
  void add_outgoing(int to, Kind kind, std::span<const Piece> pieces,
                    uint64_t fingerprint);
  /// Before a new list of what is sent and received.
  void clear();
  /// Sends and receives all; gives up those that are late. False if it was
  /// stopped.
  bool pump();
  void give_up();
  void stop_taking();
  static Error stopped();
  bool push(Outgoing& out);
  bool pull(Incoming& in);
  bool read_header(Incoming& in);
  void begin_payload(Incoming& in, const Header& header);
  void take_note(Incoming& in);
  Status outcome();
  Error differs(int process, const Header& other) const;
  Error late_error(int process) const;
  /// Whether process 0 has said goodbye, as far as is known now.
  Status glance();
  std::string lines_text() const;
  void print_lines(const When* until);

  std::unique_ptr<Transport> transport_;
  ClusterOptions options_;
  std::vector<Peer> peers_;
  std::vector<Outgoing> outgoing_;
  std::vector<Incoming> incoming_;
  std::vector<std::vector<char>> heads_;         // memory of messages sent
  std::vector<int> busy_, sending_, receiving_;  // of `pump`
  Context own_;
  Context* aside_ = nullptr;  // of the background's thread, which alone looks
  /// What was begun aside, and may not be done.
  struct Aside {
    Background::Ticket ticket = 0;
    std::vector<const void*> places;
  };
  std::vector<Aside> asides_;
  uint64_t runs_settled_ = 0;
  int64_t member_ = -1;
  /// Of this process, and what has come here on its way to process 0; what
  /// others have said in the end.
  std::vector<Line> lines_, lines_of_others_;
  std::optional<When> failure_, found_;
  /// It stopped because another process had failed.
  bool follows_ = false;
  /// Of processes that wait for each other in one exchange and give up, the one
  /// with the lowest says who is late.
  int64_t waits_ = 0;
  bool stopped_ = false;
  bool ending_ = false;
  bool finished_ = false;
  bool clean_ = false;  // all others have said goodbye
  Background background_;
};

}  // namespace unisono
