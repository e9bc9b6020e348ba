#include "runtime/nccl/nccl_mover.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <functional>
#include <optional>
#include <thread>
#include <utility>

#include "runtime/cluster/tell_all.h"
#include "runtime/cuda/nccl_library.h"
#include "runtime/cuda/queue.h"

namespace unisono {
namespace {

using Clock = std::chrono::steady_clock;
using cuda::CurrentContext;
using cuda::StreamQueue;

/// Who waits looks so often whether the others are there, and asks so often
/// without giving the processor away.
constexpr std::chrono::milliseconds look{1};
constexpr int quick_asks = 200;
constexpr std::chrono::microseconds pause{50};
/// NCCL may know before the cluster does that a process is gone.
constexpr std::chrono::seconds most_behind{2};

/// Asks `ready` until that is true; meanwhile `watch` may give an error.
Status ask(const std::function<bool()>& ready,
           const std::function<Status()>& watch) {
  Clock::time_point looked = Clock::now();
  for (int asked = 0; !ready(); ++asked) {
    if (asked < quick_asks) continue;
    if (const auto now = Clock::now(); now - looked > look) {
      looked = now;
      TRY(watch());
    }
    std::this_thread::sleep_for(pause);
  }
  return Unit{};
}

class NcclMover final : public Mover {
 public:
  NcclMover(std::shared_ptr<Cluster> cluster,
            std::shared_ptr<const nccl::Library> library,
            std::vector<std::shared_ptr<Device>> own)
      : cluster_(std::move(cluster)),
        library_(std::move(library)),
        own_(std::move(own)) {}
  ~NcclMover() override;

  /// Meets the others. After an error, by NCCL's fault or by that of `ended`,
  /// there is nothing left but to destroy it.
  Status start(const nccl::UniqueId& id, bool& ended);

  std::string name() const override { return "NCCL " + library_->version(); }
  bool waits() const override { return false; }
  Status move(std::span<const Transfer> transfers, std::span<const int> others,
              uint64_t fingerprint) override;

 private:
  struct Rank {
    StreamQueue* queue = nullptr;
    nccl::Comm comm = nullptr;
    /// Before and after what was put in its stream last.
    cuda::Event before = nullptr, after = nullptr;
    bool pending = false;
    std::vector<int> peers = {};  // processes of what is pending
    std::optional<Clock::time_point> waits_since = {};
  };

  cuda::Stream stream_of(const Rank& rank) const {
    return rank.queue->stream(lane);
  }
  Status begin(Rank& rank);
  Status end(Rank& rank);
  Status put(Rank& rank, const Transfer& transfer, bool sends);
  Result<nccl::Status> settled(const Rank& rank,
                               const std::function<Status()>& watch);
  Status settle_calls();
  Status await(Rank& rank);
  Status await_all();
  Status watch(Rank& rank);
  Status look_at(const Rank& rank);
  Error fail(Error error);
  void abort_all();
  Error failed(const Rank& rank, nccl::Status status);
  Rank& rank_of(const Transfer::End& end) {
    return ranks_[end.device - first_rank()];
  }
  int first_rank() const {
    return cluster_->process() * static_cast<int>(ranks_.size());
  }

  const std::shared_ptr<Cluster> cluster_;
  const std::shared_ptr<const nccl::Library> library_;
  const std::vector<std::shared_ptr<Device>> own_;
  std::vector<Rank> ranks_;  // of this process
  std::optional<Error> broken_;
};

NcclMover::~NcclMover() {
  // What was put in the streams is done then, so nothing is lost; and others,
  // which may be gone, are not waited for.
  for (Rank& rank : ranks_) rank.queue->settle();
  abort_all();
  for (Rank& rank : ranks_) {
    rank.queue->before_waits({});
    CurrentContext current(rank.queue->gpu());
    const cuda::Driver& cuda = rank.queue->gpu().driver();
    if (rank.before) cuda.event_destroy(rank.before);
    if (rank.after) cuda.event_destroy(rank.after);
  }
}

/// All at once: one may wait for its stream, which may wait for another's.
void NcclMover::abort_all() {
  std::vector<std::thread> threads;
  for (Rank& rank : ranks_) {
    if (!rank.comm) continue;
    threads.emplace_back([this, gpu = &rank.queue->gpu(),
                          comm = std::exchange(rank.comm, nullptr)] {
      CurrentContext current(*gpu);
      library_->abort(comm);
    });
  }
  for (std::thread& thread : threads) thread.join();
}

Error NcclMover::fail(Error error) {
  broken_ = error;
  abort_all();
  return error;
}

Error NcclMover::failed(const Rank& rank, nccl::Status status) {
  // If that is because another process is gone, the cluster names it.
  for (const auto start = Clock::now(); Clock::now() - start < most_behind;
       std::this_thread::sleep_for(look))
    if (const Status there = cluster_->check_others(); !there)
      return fail(there.error());
  return fail({.kind = Error::Kind::device_lost,
               .message = fmt::format("NCCL failed on {}: {}",
                                      rank.queue->name(), text_of(status))});
}

Status NcclMover::look_at(const Rank& rank) {
  nccl::Status state = nccl::Status::success;
  const nccl::Status asked = library_->get_async_error(rank.comm, &state);
  if (asked != nccl::Status::success) state = asked;
  if (state != nccl::Status::success && state != nccl::Status::in_progress)
    return failed(rank, state);
  if (const Status there = cluster_->check_others(); !there)
    return fail(there.error());
  return Unit{};
}

Status NcclMover::start(const nccl::UniqueId& id, bool& ended) {
  const int each = static_cast<int>(own_.size());
  const int all = each * cluster_->processes();
  for (const auto& device : own_)
    ranks_.push_back({static_cast<StreamQueue*>(device->queue())});
  nccl::Config config;
  config.blocking = 0;
  nccl::Status called = library_->group_start();
  for (int i = 0; i < each; ++i) {
    Rank& rank = ranks_[i];
    CurrentContext current(rank.queue->gpu());
    const cuda::Driver& cuda = rank.queue->gpu().driver();
    for (cuda::Event* event : {&rank.before, &rank.after})
      TRY(rank.queue->gpu().check(
          cuda.event_create(event, cuda::event_disable_timing),
          "opening NCCL"));
    const nccl::Status one =
        library_->init_rank(&rank.comm, all, id, first_rank() + i, &config);
    if (one != nccl::Status::success && one != nccl::Status::in_progress)
      called = one;
  }
  const nccl::Status grouped = library_->group_end();
  if (grouped != nccl::Status::in_progress && called == nccl::Status::success)
    called = grouped;
  const auto refused = [](nccl::Status status) {
    return Error{
        .kind = Error::Kind::device_lost,
        .message = fmt::format("NCCL does not start: {}", text_of(status))};
  };
  if (called != nccl::Status::success) return refused(called);
  const Clock::time_point began = Clock::now();
  for (Rank& rank : ranks_) {
    const nccl::Status state = TRY(settled(rank, [&]() -> Status {
      const Status there = cluster_->check_others();
      ended = !there;
      if (!there) return there.error();
      if (cluster_->limit().count() > 0 &&
          Clock::now() - began > cluster_->limit())
        return Error{.kind = Error::Kind::device_lost,
                     .message = "NCCL does not start in time"};
      return Unit{};
    }));
    if (state != nccl::Status::success) return refused(state);
  }
  for (Rank& rank : ranks_)
    rank.queue->before_waits([this] { return await_all(); });
  return Unit{};
}

/// What a rank's call in progress ends with.
Result<nccl::Status> NcclMover::settled(const Rank& rank,
                                        const std::function<Status()>& watch) {
  nccl::Status state = nccl::Status::in_progress;
  TRY(ask(
      [&] {
        const nccl::Status asked = library_->get_async_error(rank.comm, &state);
        if (asked != nccl::Status::success) state = asked;
        return state != nccl::Status::in_progress;
      },
      watch));
  return state;
}

/// Calls in progress are over: then there may be others.
Status NcclMover::settle_calls() {
  for (Rank& rank : ranks_) {
    const nccl::Status state =
        TRY(settled(rank, [&] { return look_at(rank); }));
    if (state != nccl::Status::success) return failed(rank, state);
  }
  return Unit{};
}

Status NcclMover::begin(Rank& rank) {
  if (rank.pending) return Unit{};
  cuda::Gpu& gpu = rank.queue->gpu();
  CurrentContext current(gpu);
  TRY(gpu.check(gpu.driver().event_record(rank.before, stream_of(rank)),
                "exchanging with other processes"));
  rank.pending = true;
  rank.peers.clear();
  rank.waits_since.reset();
  return Unit{};
}

Status NcclMover::end(Rank& rank) {
  cuda::Gpu& gpu = rank.queue->gpu();
  CurrentContext current(gpu);
  return gpu.check(gpu.driver().event_record(rank.after, stream_of(rank)),
                   "exchanging with other processes");
}

Status NcclMover::put(Rank& rank, const Transfer& transfer, bool sends) {
  CurrentContext current(rank.queue->gpu());
  const auto count = static_cast<size_t>(transfer.bytes);
  cuda::Stream stream = stream_of(rank);
  const nccl::Status status =
      sends ? library_->send(transfer.from.data, count, nccl::DataType::i8,
                             transfer.to.device, rank.comm, stream)
            : library_->receive(transfer.to.data, count, nccl::DataType::i8,
                                transfer.from.device, rank.comm, stream);
  const int peer = sends ? transfer.to.process : transfer.from.process;
  if (std::ranges::find(rank.peers, peer) == rank.peers.end())
    rank.peers.push_back(peer);
  if (status != nccl::Status::success && status != nccl::Status::in_progress)
    return failed(rank, status);
  return Unit{};
}

Status NcclMover::move(std::span<const Transfer> transfers,
                       std::span<const int> others, uint64_t fingerprint) {
  if (broken_) return *broken_;
  std::vector<Message> messages;
  for (const int process : others) messages.push_back({process});
  TRY(cluster_->exchange(messages, messages, fingerprint));
  if (transfers.empty()) return Unit{};
  std::vector<Rank*> used;
  for (const Transfer& transfer : transfers) {
    const bool sends = transfer.from.queue != nullptr;
    Rank& rank = rank_of(sends ? transfer.from : transfer.to);
    if (std::ranges::find(used, &rank) == used.end()) used.push_back(&rank);
  }
  for (Rank* rank : used) TRY(begin(*rank));
  Status done = Unit{};
  // NCCL may leave another context current than it found.
  CurrentContext current(used[0]->queue->gpu());
  (void)library_->group_start();
  for (const Transfer& transfer : transfers) {
    const bool sends = transfer.from.queue != nullptr;
    Rank& rank = rank_of(sends ? transfer.from : transfer.to);
    if (done) done = put(rank, transfer, sends);
  }
  const nccl::Status grouped = library_->group_end();
  if (!done) return done;
  if (grouped != nccl::Status::success && grouped != nccl::Status::in_progress)
    return failed(*used[0], grouped);
  TRY(settle_calls());
  for (Rank* rank : used) TRY(end(*rank));
  return Unit{};
}

/// Before the host waits for a stream: all that other processes must do for it,
/// or for one that it waits for, is done.
Status NcclMover::await_all() {
  if (broken_) return *broken_;
  for (Rank& rank : ranks_)
    if (rank.pending) TRY(await(rank));
  return Unit{};
}

Status NcclMover::await(Rank& rank) {
  cuda::Gpu& gpu = rank.queue->gpu();
  CurrentContext current(gpu);
  cuda::Code code = cuda::success;
  TRY(ask(
      [&] {
        code = gpu.driver().event_query(rank.after);
        return code != cuda::not_ready;
      },
      [&] { return watch(rank); }));
  rank.pending = false;
  return gpu.check(code, "exchanging with other processes");
}

Status NcclMover::watch(Rank& rank) {
  TRY(look_at(rank));
  const cuda::Gpu& gpu = rank.queue->gpu();
  if (gpu.driver().event_query(rank.before) == cuda::not_ready) return Unit{};
  const auto now = Clock::now();
  if (!rank.waits_since) rank.waits_since = now;
  // NCCL does not know which of several is late; another process may.
  const auto limit = cluster_->limit() + (rank.peers.size() > 1
                                              ? std::chrono::milliseconds(1000)
                                              : std::chrono::milliseconds(0));
  if (cluster_->limit().count() == 0 || now - *rank.waits_since < limit)
    return Unit{};
  return fail(cluster_->late(rank.peers[0]));
}

/// What the processes tell each other before they start.
struct Hello {
  nccl::UniqueId id{};
  std::array<char, 256> problem{};
};

/// The first process's problem; empty if there is none.
std::string problem_of(const Cluster& cluster, const std::vector<Hello>& all) {
  const int p = first_problem(all);
  return p < 0 ? ""
               : fmt::format("{} (in {})", all[p].problem.data(),
                             cluster.label(p));
}

}  // namespace

Result<NcclOpened> open_nccl_mover(const std::shared_ptr<Cluster>& cluster,
                                   std::vector<std::shared_ptr<Device>> own,
                                   const std::string& path) {
  Hello hello;
  auto library = nccl::Library::open(path);
  if (!library)
    set_text(hello.problem, library.error().message);
  else if (cluster->process() == 0)
    if (const auto made = (*library)->get_unique_id(&hello.id);
        made != nccl::Status::success)
      set_text(hello.problem, text_of(made));
  std::vector<Hello> all = TRY(tell_all(*cluster, hello));
  if (std::string why = problem_of(*cluster, all); !why.empty())
    return NcclOpened{nullptr, std::move(why)};

  auto mover = std::make_shared<NcclMover>(cluster, *library, std::move(own));
  bool ended = false;
  if (Status started = mover->start(all[0].id, ended); !started) {
    if (ended) return started.error();
    set_text(hello.problem, started.error().message);
    mover.reset();
  }
  all = TRY(tell_all(*cluster, hello));
  if (std::string why = problem_of(*cluster, all); !why.empty())
    return NcclOpened{nullptr, std::move(why)};
  return NcclOpened{std::move(mover), ""};
}

}  // namespace unisono
