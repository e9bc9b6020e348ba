#pragma once
// A function compiled once for arguments of some types, for hosts that call it
// often: what they call looks for nothing and checks nothing.
#include <optional>
#include <vector>

#include "lang/context/walk.h"
#include "lang/maps/executable.h"

namespace unisono::lang {

struct TypedFunction {
  Executable executable;
  /// By input of the executable: an array that is the same in all calls, placed
  /// as the executable says; nothing for an argument. Arguments are the arrays
  /// among the examples that are no literals, in the order of the leaves.
  std::vector<std::optional<unisono::Array>> fixed;
  /// The tree of results; its arrays are types alone, in the order of the
  /// executable's outputs.
  Value result;
};

/// Compiles a function, as `jit` would at a call with `examples`. Of arrays
/// there the type counts; other values are part of the code. Run mode.
TypedFunction compile_typed(Walk& walk, const Value& function,
                            const std::vector<Value>& examples, Span where);

}  // namespace unisono::lang
