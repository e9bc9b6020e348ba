#pragma once
// Thresholds for the time of a test (runtime/tuning/tuning.h).
#include <functional>

#include "runtime/tuning/tuning.h"

namespace unisono {

class Moved {
 public:
  explicit Moved(const std::function<void(Tuning&)>& move) {
    Tuning moved = before_;
    move(moved);
    set_tuning(moved);
  }
  ~Moved() { set_tuning(before_); }
  Moved(const Moved&) = delete;

 private:
  const Tuning before_ = tuning();
};

}  // namespace unisono
