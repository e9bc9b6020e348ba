#include "runtime/pool.h"

#ifdef __linux__
#include <sched.h>
#endif

#include <system_error>
#include <utility>

#include "runtime/check.h"
#include "runtime/signals.h"

namespace unisono {
namespace {

/// Those that this process may run on: of more threads, one that waits would
/// keep another from working.
int processors() {
#ifdef __linux__
  cpu_set_t set;
  if (sched_getaffinity(0, sizeof set, &set) == 0)
    return std::max(CPU_COUNT(&set), 1);
#endif
  const unsigned count = std::thread::hardware_concurrency();
  return count ? static_cast<int>(count) : 1;
}

/// Which one runs the calling thread now; 0 where nobody says.
int this_processor() {
#ifdef __linux__
  return sched_getcpu();
#else
  return 0;
#endif
}

void pause() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#endif
}

/// A pause takes some 20 to 50 ns: 500 of them about 20 us. Who waits for
/// others to finish then lets them run, and sleeps.
constexpr int spins = 500;
constexpr int yields = 50;
/// A worker waits for more work for so long: to wake it takes up to 50 us,
/// which each of several calls that follow one another would pay.
constexpr std::chrono::microseconds worker_patience{500};

/// 0 is every thread that is not the pool's.
thread_local int worker = 0;

}  // namespace

Pool::Pool(int workers) : workers_(workers > 0 ? workers : processors()) {}

Pool::~Pool() {
  {
    std::lock_guard lock(mutex_);
    CHECK(works_.empty());
    quit_ = true;
  }
  notify();
  for (std::thread& thread : threads_) thread.join();
}

void Pool::start_threads() {
  const SignalsBlocked blocked;
  try {
    while (static_cast<int>(threads_.size()) < workers_ - 1)
      threads_.emplace_back(
          [this, number = static_cast<int>(threads_.size()) + 1] {
            worker = number;
            current_ = this;
            work();
          });
  } catch (const std::system_error&) {
    // The system gives no more threads: those that there are do the work.
  }
}

constinit thread_local Pool* Pool::current_ = nullptr;

int Pool::worker_number() { return worker; }

void Pool::add(Work& work) {
  if (workers_ == 1) return;
  from_processor_.store(this_processor(), std::memory_order_relaxed);
  {
    std::lock_guard lock(mutex_);
    if (!std::exchange(started_, true)) start_threads();
    works_.insert(work.inner_ ? works_.end() : works_.begin(), &work);
    work_count_.store(static_cast<int>(works_.size()),
                      std::memory_order_release);
  }
  notify();
}

void Pool::remove(Work& work) {
  if (workers_ == 1) return;
  {
    std::lock_guard lock(mutex_);
    std::erase(works_, &work);
    work_count_.store(static_cast<int>(works_.size()),
                      std::memory_order_release);
  }
  // Nobody enters any more, and who is inside is doing the last pieces.
  auto left = [&] {
    return work.visitors_.load(std::memory_order_acquire) == 0;
  };
  for (Patience patience(*this); !left();) patience.wait(left);
}

Work* Pool::enter(const void* group) {
  if (work_count_.load(std::memory_order_acquire) == 0) return nullptr;
  std::lock_guard lock(mutex_);
  for (Work* work : works_) {
    if ((!group || work->group_ == group) && work->has_work()) {
      work->visitors_.fetch_add(1, std::memory_order_relaxed);
      return work;
    }
  }
  return nullptr;
}

void Pool::leave(Work& work) {
  // `work` may be gone as soon as its last visitor is.
  if (work.visitors_.fetch_sub(1, std::memory_order_acq_rel) == 1) notify();
}

bool Pool::help_one(const void* group) {
  Work* work = enter(group);
  if (!work) return false;
  work->help();
  leave(*work);
  return true;
}

bool Pool::any_work(const void* group) const {
  std::lock_guard lock(mutex_);
  for (const Work* work : works_)
    if ((!group || work->group_ == group) && work->has_work()) return true;
  return false;
}

void Pool::work() {
  Patience patience(*this, true);
  while (!quit_.load(std::memory_order_acquire))
    if (help_one(nullptr))
      patience.reset();
    else
      patience.wait([this] { return quit_ || any_work(nullptr); });
}

bool Pool::Patience::keep_spinning() {
  ++turns_;
  if (of_worker_) {
    if (turns_ % 32 == 1) {
      const auto now = std::chrono::steady_clock::now();
      if (turns_ == 1) since_ = now;
      if (now - since_ > worker_patience) return false;
      // On the processor that the work comes from it would be in its way.
      if (this_processor() ==
          pool_.from_processor_.load(std::memory_order_relaxed))
        std::this_thread::yield();
    }
    pause();
    return true;
  }
  if (turns_ < spins)
    pause();
  else if (turns_ < spins + yields)
    std::this_thread::yield();
  else
    return false;
  return true;
}

// Sleeping loses no wake-up: who sleeps says so, then looks again, then waits
// for the epoch to move; who notifies moves the epoch, then asks for sleepers.
uint64_t Pool::prepare_sleep() {
  sleepers_.fetch_add(1, std::memory_order_seq_cst);
  return epoch_.load(std::memory_order_seq_cst);
}

void Pool::sleep(uint64_t epoch) {
  std::unique_lock lock(sleep_mutex_);
  wake_.wait(lock,
             [&] { return epoch_.load(std::memory_order_seq_cst) != epoch; });
}

void Pool::end_sleep() { sleepers_.fetch_sub(1, std::memory_order_seq_cst); }

void Pool::notify() {
  epoch_.fetch_add(1, std::memory_order_seq_cst);
  if (sleepers_.load(std::memory_order_seq_cst) == 0) return;
  // Taking the lock puts this after the sleeper's last look at the epoch.
  {
    std::lock_guard lock(sleep_mutex_);
  }
  wake_.notify_all();
}

}  // namespace unisono
