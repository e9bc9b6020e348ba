#include "host/notebook/output.h"

#include <utility>

namespace unisono::host {
namespace {

constexpr std::chrono::milliseconds pause{50};
constexpr size_t enough_bytes = size_t{1} << 20;

}  // namespace

OutputStream::OutputStream(std::function<void(const std::string& text)> publish)
    : publish_(std::move(publish)), late_([this] { publish_late(); }) {}

OutputStream::~OutputStream() {
  {
    const std::scoped_lock lock(mutex_);
    ends_ = true;
  }
  changed_.notify_one();
  late_.join();
}

void OutputStream::write(std::string_view text) {
  {
    const std::scoped_lock lock(mutex_);
    gathered_ += text;
    if (gathered_.size() >= enough_bytes || Clock::now() - shown_ >= pause)
      return publish_gathered();
  }
  changed_.notify_one();
}

void OutputStream::then(const std::function<void()>& other) {
  const std::scoped_lock lock(mutex_);
  publish_gathered();
  other();
}

void OutputStream::publish_gathered() {
  if (gathered_.empty()) return;
  publish_(std::exchange(gathered_, {}));
  shown_ = Clock::now();
}

void OutputStream::publish_late() {
  std::unique_lock lock(mutex_);
  while (!ends_)
    if (gathered_.empty())
      changed_.wait(lock);
    else if (changed_.wait_until(lock, shown_ + pause) ==
             std::cv_status::timeout)
      publish_gathered();
}

}  // namespace unisono::host
