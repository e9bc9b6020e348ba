#include "lang/syntax/literal_range.h"

#include <cmath>

namespace unisono::lang {

bool stays_finite(double value, DType dtype) {
  if (std::isinf(value)) return true;
  // From half a step beyond the greatest element on, numbers round to infinity.
  const double size = std::abs(value);
  if (dtype == DType::F16) return !(size >= 65520.0);
  if (dtype == DType::BF16) return !(size >= 0x1.ffp+127);
  if (dtype == DType::F32) return !(size >= 0x1.ffffffp+127);
  return true;
}

}  // namespace unisono::lang
