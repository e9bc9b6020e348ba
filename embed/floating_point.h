#pragma once
// The floating-point state of a thread of the host's: ours is that of C, and
// afterwards it is the host's again, exception flags included.
#include <cfenv>

#if defined(__SSE2__)
#include <xmmintrin.h>
#endif

namespace unisono::embed {

class FloatingPointScope {
 public:
  FloatingPointScope() {
    std::fegetenv(&before_);
    std::fesetenv(FE_DFL_ENV);
  }
  ~FloatingPointScope() { std::fesetenv(&before_); }
  FloatingPointScope(const FloatingPointScope&) = delete;
  FloatingPointScope& operator=(const FloatingPointScope&) = delete;

 private:
  std::fenv_t before_;
};

/// The same where nothing but vector instructions computes: some nanoseconds.
#if defined(__SSE2__)
class VectorStateScope {
 public:
  VectorStateScope() : before_(_mm_getcsr()) {
    if (before_ != initial) _mm_setcsr(initial);
  }
  ~VectorStateScope() {
    if (_mm_getcsr() != before_) _mm_setcsr(before_);
  }
  VectorStateScope(const VectorStateScope&) = delete;
  VectorStateScope& operator=(const VectorStateScope&) = delete;

 private:
  static constexpr unsigned initial = 0x1F80;  // no traps, to nearest
  const unsigned before_;
};
#else
using VectorStateScope = FloatingPointScope;
#endif

}  // namespace unisono::embed
