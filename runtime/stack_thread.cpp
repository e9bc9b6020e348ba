#include "runtime/stack_thread.h"

#include <utility>

#include "runtime/signals.h"

namespace unisono {

StackThread::StackThread(size_t stack_bytes, std::function<void()> body)
    : body_(std::make_unique<std::function<void()>>(std::move(body))),
      started_(std::make_unique<Started>()) {
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  const SignalsBlocked blocked;
  pthread_attr_setstacksize(&attributes, stack_bytes);
  auto run = [](void* argument) -> void* {
    (*static_cast<const std::function<void()>*>(argument))();
    return nullptr;
  };
  if (pthread_create(&started_->thread, &attributes, run, body_.get()) != 0)
    started_.reset();
  pthread_attr_destroy(&attributes);
}

StackThread::~StackThread() {
  if (started_) pthread_join(started_->thread, nullptr);
}

}  // namespace unisono
