#include "runtime/cluster/background.h"

#include <utility>

namespace unisono {
namespace {

thread_local const Background* own_background = nullptr;

}  // namespace

Background::~Background() {
  if (!thread_.joinable()) return;
  {
    std::lock_guard lock(mutex_);
    quit_ = true;
  }
  wake_.notify_one();
  thread_.join();
}

Background::Ticket Background::begin(std::function<Status()> work,
                                     std::function<void()> done) {
  {
    std::lock_guard lock(mutex_);
    tasks_.push_back({std::move(work), std::move(done)});
  }
  if (thread_.joinable())
    wake_.notify_one();
  else
    thread_ = std::thread([this] { run(); });
  return ++given_;
}

void Background::wait() {
  std::unique_lock lock(mutex_);
  idle_.wait(lock, [this] { return is_done(given_); });
}

bool Background::is_here() const { return own_background == this; }

Status Background::status() const {
  std::lock_guard lock(mutex_);
  if (error_) return *error_;
  return Unit{};
}

void Background::run() {
  own_background = this;
  for (;;) {
    Task task;
    bool failed = false;
    {
      std::unique_lock lock(mutex_);
      wake_.wait(lock, [this] { return quit_ || !tasks_.empty(); });
      if (tasks_.empty()) return;
      task = std::move(tasks_.front());
      tasks_.pop_front();
      failed = error_.has_value();
    }
    if (!failed)
      if (Status done = task.work(); !done) {
        std::lock_guard lock(mutex_);
        error_ = std::move(done).error();
      }
    // What both hold is gone when a run that waited for them is over. Who finds
    // it done asks for the status, or waits: what `done` tells is there until
    // it has been told.
    task.work = nullptr;
    {
      std::lock_guard lock(mutex_);
      done_.fetch_add(1, std::memory_order_release);
      task.done();
      task.done = nullptr;
    }
    idle_.notify_all();
  }
}

}  // namespace unisono
