#pragma once
// Which operations of a nest take fewer instructions if their operands are in
// the usual range: quotients and roots whose steps all stay normal, logarithms
// of positive normal numbers, exponentials that are normal. A GPU computes some
// elements so, looks at once whether all were in that range, and computes them
// again if one was not.
#include <vector>

#include "jit/kernel/kernel.h"

namespace unisono::jit {

/// 2^low <= |x| < 2^high.
struct NumberRange {
  int low = 0;
  int high = 0;
  bool positive = false;
};

/// The range that is looked for: exponents of which a sum of bits says at once
/// whether they are inside.
constexpr NumberRange usual_range = {-31, 33, false};
/// |x| up to which exp(x) and all its steps are normal.
constexpr float usual_exponent = 86;

/// What has to hold of a value so that the operations that read it are quick.
struct UsualChecks {
  bool size = false;      // it is in usual_range
  bool positive = false;  // and positive
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
