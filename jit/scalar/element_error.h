#pragma once
#include <cstdint>

namespace unisono::jit {

/// What a checked element operation reports. The numbers are those of
/// ErrorWord::Code.
enum class Fault : int32_t {
  none = 0,
  integer_division_by_zero = 1,
  negative_exponent = 3,
};

/// The first fault that element operations met.
struct ElementError {
  Fault fault = Fault::none;
  /// The operand at fault: the divisor, the exponent.
  int64_t value = 0;
};

}  // namespace unisono::jit
