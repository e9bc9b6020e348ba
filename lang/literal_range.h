#pragma once
// Numbers that are too large for the floating type that they take.
#include "lang/source.h"
#include "lang/value.h"
#include "runtime/dtype.h"

namespace unisono::lang {

class Evaluator;

/// Whether a finite number stays finite in the type.
bool stays_finite(double value, DType dtype);

/// An error if a finite number, written at `where`, would be infinite.
void require_finite(Evaluator& evaluator, double value, DType dtype,
                    Span where);
/// The same for a literal that is used in the type it has.
void require_finite(Evaluator& evaluator, const ArrayCell& array, Span where);

}  // namespace unisono::lang
