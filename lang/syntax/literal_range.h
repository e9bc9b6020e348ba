#pragma once
// Which numbers an element type can hold. Apart from lang/context/literals.h,
// so that the parser needs no more than this.
#include "runtime/dtype.h"

namespace unisono::lang {

/// False if a finite number becomes infinite when it is rounded to the type.
bool stays_finite(double value, DType dtype);

}  // namespace unisono::lang
