#pragma once
// Derivatives of functions: what `grad(f)`, `vjp(f)` and their like do.
//
//   functions     the builtins, which make functions
//   arguments     the arguments of a call: by what is derived, tangents
//   derivative    a function walked for its derivative, and what becomes of it
//   call          grad, value_and_grad, jvp, vjp
//   jacobian      jacobian, hessian
//   rules         checkpoint, custom_jvp, custom_vjp
#include <string>
#include <utility>
#include <vector>

#include "lang/context/builtin.h"
#include "lang/context/function.h"
#include "lang/context/value.h"

namespace unisono::lang {

/// Calls a function that has to do with a derivative. In check mode the inner
/// function is walked with types; in trace mode its graph is transformed
/// (jit/derivative), and appended to the one around. At the top level a
/// derivative is compiled as `jit` of itself is, and found again by the
/// function and the types of the arguments.
Value call_differentiated(
    Walk& walk, const std::shared_ptr<const FunctionValue>& function,
    std::vector<CallArgument> positional,
    std::vector<std::pair<std::string, CallArgument>> named, Span where);

/// Whether calls take a derivative: a function with a rule or a checkpoint is a
/// function as any other where there is none around.
bool is_derivative(const Differentiated& function);

}  // namespace unisono::lang
