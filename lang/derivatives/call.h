#pragma once
// Calls of derivatives, where they are no longer compiled by themselves: in
// check and trace mode.
#include "lang/derivatives/arguments.h"

namespace unisono::lang {

/// A call being made.
struct DerivativeCall {
  const FunctionValue& function;
  const Differentiated& made;
  CallArguments arguments;
  Span where;

  /// What the walk is told of it.
  Derivative derivative(bool reverse) const;
};

/// jacobian and hessian.
Value call_jacobian(Walk& walk, DerivativeCall call);
/// checkpoint, custom_jvp and custom_vjp, in any mode.
Value call_checkpoint(Walk& walk, DerivativeCall call);
Value call_with_rule(Walk& walk, DerivativeCall call);

}  // namespace unisono::lang
