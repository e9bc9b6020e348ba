#pragma once
// The arguments of a derivative's call: by which of their arrays is derived,
// and the tangents that go with them.
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "lang/context/builtin.h"
#include "lang/context/function.h"
#include "lang/context/value.h"
#include "lang/derivatives/derivative.h"

namespace unisono::lang {

/// The arguments of a call of the function that is derived.
struct CallArguments {
  std::vector<CallArgument> positional;
  std::vector<std::pair<std::string, CallArgument>> named;
};

/// As the function gets them: a function written in the language with all of
/// its parameters, in their order, its keyword-only ones by name.
CallArguments bind_arguments(Walk& walk, const FunctionValue& function,
                             CallArguments given, Span where);

/// By what is derived: some arguments of a call, and the floats among their
/// leaves.
struct WrtSelection {
  CallArguments call;
  /// Places among the positional arguments, and behind them the named ones.
  std::vector<size_t> arguments;
  std::vector<DerivativeLeaf> leaves;

  CallArgument& argument(size_t place);
  /// The call with its floats replaced where there is another one.
  CallArguments with(const std::vector<ArrayValue>& arrays) const;
  /// The selected arguments, with `arrays` for their floats and `none` for what
  /// is no float.
  std::vector<Value> trees(const std::vector<ArrayValue>& arrays) const;
};

/// The arguments that `wrt` names: an error if there is none, or if one has a
/// leaf that is no float.
WrtSelection select_wrt(Walk& walk, const FunctionValue& function,
                        const Differentiated& made, CallArguments call);
/// The first `count` positional arguments; what is no float stays as it is.
WrtSelection select_first(Walk& walk, CallArguments call, size_t count);

/// An error at `where` if `wrt` names no parameter of the function, as far as
/// these are known.
void check_wrt(Walk& walk, const FunctionValue& function,
               const Differentiated& made, std::string_view name);

/// The tangents that go with the floats of `primal`: null where `given` has
/// none. An error if the trees or types differ; `what` names `given` in it:
/// "the tangent of argument 0".
void match_tangents(Walk& walk, const Value& primal, const CallArgument& given,
                    const std::string& what, std::vector<ArrayValue>& out);

/// A float: a leaf that has a derivative.
bool is_float_leaf(const Value& leaf);
/// The tree with `arrays` for its floats, null for `none`, and `none` for all
/// else: what goes with `tree` as its tangent.
Value tangent_tree(const Value& tree, const std::vector<ArrayValue>& arrays);

}  // namespace unisono::lang
