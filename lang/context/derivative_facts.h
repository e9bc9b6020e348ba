#pragma once
// What the walk knows of values inside derivatives, operation by operation and
// in every mode: on which arguments they depend (ArrayCell::depends), and in
// the rule of a `custom_jvp` whether they are linear (ArrayCell::linearity). So
// mistakes are found before anything runs.
#include <span>

#include "jit/ir/graph.h"
#include "lang/context/context.h"
#include "lang/context/value.h"
#include "lang/source/diagnostics.h"

namespace unisono::lang {

/// Sets on what `out`, the result of an operation, depends, and tells the
/// derivatives around.
void set_depends(const Context& context, ir::Op op,
                 std::span<const ArrayValue> operands, ArrayCell& out);

/// Whether a derivative around needs one of `op`, which has none: its row in
/// the table of operations says so.
bool lacks_derivative(ir::Op op, std::span<const ArrayValue> operands);
/// The error of such an operation.
Diagnostic no_derivative(ir::Op op, Span where);

/// Whether the result of an operation at `where`, of the element type `dtype`,
/// is linear: in check mode, where there are no control operations.
Linearity linearity_of(ir::Op op, std::span<const ArrayValue> operands,
                       const ir::Attrs& attrs, DType dtype, Span where);

/// The same of what a function gives of which nobody knows what it computes:
/// it is not linear where an operand depends on the tangent.
Linearity linearity_through(std::span<const ArrayValue> operands, Span where);

/// Tells the derivatives on which `value` depends over which axes it varies: to
/// be called where that is set otherwise than by an operation.
void tell_derivatives(const Context& context, const ArrayCell& value);

/// Whether it is 0 everywhere, as anybody can see.
bool is_zero(const ArrayCell& value);

/// What is known of a value that is one or the other.
Linearity either(const Linearity& a, const Linearity& b);

/// Whether an argument of one of the derivatives is among `depends`; the
/// innermost of those, or null.
const Derivative* innermost(const Context& context,
                            const DerivativeArguments& depends);

/// The error for a derivative that goes backwards through a `while` at `loop`
/// without a maximum.
Diagnostic reverse_while_error(const Derivative& derivative, Span loop);

}  // namespace unisono::lang
