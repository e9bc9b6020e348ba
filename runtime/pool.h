#pragma once
// The workers that all devices of a machine share. There is no queue of tasks:
// a thread that has work to share (a running program, a parallel loop) adds it
// as a Work and does it, and idle workers help. As the thread that adds work
// takes part, one worker (no other threads) is enough, and a Work may add
// others while it is helped. Threads start when the first work is added.
#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

namespace unisono {

/// Something that several threads can do together.
class Work {
 public:
  /// `group`, an address that is only compared, is what the work is part of: a
  /// thread that waits for something helps only within its own group, so that
  /// it comes back soon. `inner` work is part of some other work, and helped
  /// only while no outer work has anything to do.
  Work(const void* group, bool inner) : group_(group), inner_(inner) {}
  Work(const Work&) = delete;
  Work& operator=(const Work&) = delete;
  virtual ~Work() = default;
  /// Whether help() would find something to do. Cheap, and may be out of date;
  /// called with the pool's lock held.
  virtual bool has_work() const = 0;
  /// Does what there is to do now. Called from several threads at once; must
  /// not throw.
  virtual void help() = 0;

 private:
  friend class Pool;
  const void* group_;
  bool inner_;
  std::atomic<int> visitors_{0};
};

/// Thread-safe.
class Pool {
 public:
  /// `workers` counts the thread that calls; 0 is one per processor.
  explicit Pool(int workers = 0);
  ~Pool();
  Pool(const Pool&) = delete;
  int workers() const { return workers_; }

  /// The pool whose workers help the calling thread with what is called without
  /// one (factors of matrices): what the innermost PoolScope of the thread
  /// names, else the pool whose thread it is; null: it works alone.
  static Pool* of_this_thread() { return current_; }

  /// Lets idle workers help with `work`, which lives until it is removed.
  void add(Work& work);
  /// Ends the help: returns when no worker is in `work` any more.
  void remove(Work& work);
  /// Wakes threads: to be called after work has appeared in a Work that was
  /// added before, and after what a thread waits for has happened.
  void notify();
  /// Helps `group` until `done()`; the thread that makes it true calls notify()
  /// afterwards.
  template <class Done>
  void help_until(const void* group, Done&& done) {
    Patience patience(*this);
    while (!done())
      if (help_one(group))
        patience.reset();
      else
        patience.wait([&] { return done() || any_work(group); });
  }

  /// Calls body(begin, end) for pieces of 0 ... units-1, each of at least
  /// `grain` units if there are so many, in any order and from several threads;
  /// returns when all are done. `body` must not throw.
  template <class Body>
  void parallel_for(int64_t units, int64_t grain, const void* group,
                    Body&& body);
  /// As parallel_for, in pieces of at most four grains; once `stopped()` is
  /// true the remaining pieces are skipped.
  template <class Stopped, class Body>
  void parallel_pieces(int64_t units, int64_t grain, const void* group,
                       Stopped&& stopped, Body&& body) {
    parallel_for(units, grain, group, [&](int64_t begin, int64_t end) {
      for (; begin < end && !stopped(); begin += 4 * grain)
        body(begin, std::min(end, begin + 4 * grain));
    });
  }

 private:
  friend class PoolScope;

  /// How a thread passes its time while there is nothing to do. Who waits for
  /// something spins for a while, then lets others run, then sleeps; a worker
  /// that waits for any work spins longer, then sleeps.
  class Patience {
   public:
    explicit Patience(Pool& pool, bool of_worker = false)
        : pool_(pool), of_worker_(of_worker) {}
    void reset() { turns_ = 0; }
    /// One turn; `happened` is asked again before sleeping.
    template <class Happened>
    void wait(Happened&& happened) {
      if (keep_spinning()) return;
      uint64_t epoch = pool_.prepare_sleep();
      if (!happened()) {
        pool_.sleep(epoch);
        turns_ = 0;
      }
      pool_.end_sleep();
    }

   private:
    bool keep_spinning();
    Pool& pool_;
    const bool of_worker_;
    int turns_ = 0;
    std::chrono::steady_clock::time_point since_;  // the first turn
  };

  class Loop;

  void start_threads();
  /// The number of the calling thread: 1 ... workers() - 1 if it is a pool's,
  /// else 0.
  static int worker_number();
  void work();
  /// Helps some work, of `group` unless null; false if there is none.
  bool help_one(const void* group);
  Work* enter(const void* group);
  void leave(Work& work);
  bool any_work(const void* group) const;
  uint64_t prepare_sleep();
  void sleep(uint64_t epoch);
  void end_sleep();

  const int workers_;
  mutable std::mutex mutex_;  // works_, threads_, started_
  std::vector<Work*> works_;  // outer ones first
  std::atomic<int> work_count_{0};
  std::atomic<int> from_processor_{-1};  // where work was added last
  std::vector<std::thread> threads_;
  bool started_ = false;
  std::atomic<bool> quit_{false};

  std::mutex sleep_mutex_;
  std::condition_variable wake_;
  std::atomic<uint64_t> epoch_{0};
  std::atomic<int> sleepers_{0};

  static constinit thread_local Pool* current_;
};

/// Makes `pool` that of this thread while this object lives.
class PoolScope {
 public:
  explicit PoolScope(Pool& pool)
      : before_(std::exchange(Pool::current_, &pool)) {}
  ~PoolScope() { Pool::current_ = before_; }
  PoolScope(const PoolScope&) = delete;
  PoolScope& operator=(const PoolScope&) = delete;

 private:
  Pool* before_;
};

/// The loop of parallel_for, by work stealing. Each worker has a part of its
/// own, the same one in every loop over as many units, so that the part is
/// still in its cache; when that is done, the worker steals pieces of others.
/// Pieces shrink towards a part's end, so that the workers finish together.
class Pool::Loop : public Work {
 public:
  Loop(int64_t units, int64_t grain, int workers, const void* group)
      : Work(group, true),
        grain_(std::max<int64_t>(grain, 1)),
        count_(static_cast<int>(std::clamp<int64_t>(
            units / grain_, 1, std::min(workers, most_parts)))) {
    int64_t begin = 0;
    for (int i = 0; i < count_; ++i) {
      const int64_t end =
          i + 1 == count_ ? units : units / count_ * (i + 1) / grain_ * grain_;
      parts_[i].next.store(begin, std::memory_order_relaxed);
      parts_[i].end = end;
      begin = end;
    }
  }
  bool has_work() const override {
    for (int i = 0; i < count_; ++i)
      if (parts_[i].next.load(std::memory_order_relaxed) < parts_[i].end)
        return true;
    return false;
  }

 protected:
  bool claim(int64_t& begin, int64_t& end) {
    const int own = worker_number();
    for (int i = 0; i < count_; ++i)
      if (parts_[(own + i) % count_].claim(grain_, begin, end)) return true;
    return false;
  }

 private:
  static constexpr int most_parts = 16;
  struct alignas(64) Part {
    std::atomic<int64_t> next;
    int64_t end;

    bool claim(int64_t grain, int64_t& from, int64_t& to) {
      from = next.load(std::memory_order_relaxed);
      do {
        if (from >= end) return false;
        const int64_t piece = std::max(grain, (end - from) / 3);
        // What is left over from a piece is done with it, if it is no piece.
        to = end - from < piece + grain ? end : from + piece;
      } while (
          !next.compare_exchange_weak(from, to, std::memory_order_relaxed));
      return true;
    }
  };

  const int64_t grain_;
  const int count_;
  std::array<Part, most_parts> parts_;
};

template <class Body>
void Pool::parallel_for(int64_t units, int64_t grain, const void* group,
                        Body&& body) {
  if (units <= 0) return;
  if (workers_ == 1 || units / 2 < grain) return body(int64_t{0}, units);

  class BodyLoop final : public Loop {
   public:
    BodyLoop(int64_t units, int64_t grain, int workers, const void* group,
             Body& body)
        : Loop(units, grain, workers, group), body_(body) {}
    void help() override {
      int64_t begin, end;
      while (claim(begin, end)) body_(begin, end);
    }

   private:
    Body& body_;
  };
  BodyLoop loop(units, grain, workers_, group, body);
  add(loop);
  loop.help();
  remove(loop);
}

}  // namespace unisono
