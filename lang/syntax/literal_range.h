#pragma once
// Which numbers an element type can hold. In a header of its own, so that the
// parser does not need lang/context/literals.h.
#include "runtime/dtype.h"

namespace unisono::lang {

/// False if a finite number becomes infinite when it is rounded to the type.
bool stays_finite(double value, DType dtype);

}  // namespace unisono::lang
