#pragma once
// Which operations of a nest take fewer instructions if their operands are in
// the usual range: quotients and roots whose steps all stay normal, logarithms
// of positive normal numbers, exponentials that are normal. A GPU computes some
// elements so, looks at once whether all were in that range, and computes them
// again if one was not.
#include <vector>

#include "jit/kernel/kernel.h"

namespace unisono::jit {

/// 2^low <= |x| < 2^high, and a multiple of 2^(low - 23), as all floats of that
/// size are; or 0, if that may be.
struct NumberRange {
  int low = 0;
  int high = 0;
  bool positive = false;    // which a zero is not
  bool zero = false;        // it may be 0,
  bool minus_zero = false;  // and -0
};

/// How many exponents the range has that is looked for, and where it begins if
/// nothing else is wanted.
constexpr int usual_exponents = 64, usual_low = -31;
/// |x| up to which exp(x) and all its steps are normal, and the exponent of
/// numbers below which they are.
constexpr float usual_exponent = 86;
constexpr int usual_exponent_bits = 6;

/// What has to hold of a value so that the operations that read it are quick.
struct UsualChecks {
  bool size = false;      // 2^low <= |x| < 2^(low + usual_exponents)
  bool positive = false;  // and it is positive
  int low = usual_low;
  bool exponent = false;  // |x| <= usual_exponent
};

struct UsualNumbers {
  std::vector<bool> quick;          // by expression: operations of f32
  std::vector<UsualChecks> checks;  // by expression
  /// Instructions that are saved for an element, about.
  int saved = 0;
};

/// For expressions that vary; `fixed` ones are computed before.
UsualNumbers usual_numbers(const Nest& nest, const std::vector<bool>& fixed);

}  // namespace unisono::jit
