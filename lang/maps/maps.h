#pragma once
// What Unisono is for: functions that run once per member of an axis.
//
//   map_spec            in_axes and out_axes, matched to trees
//   map_call            a mapped call: checked, and traced for one member
//   map_run             a traced map on devices: arguments placed, results
//   executable          compiling and running what was traced
//   map_state           what is kept between calls
//   map_nested          a map over devices inside compiled code
//   map_mesh            the devices of code that has such maps
//   scan                `scan`, `fold`
//   number_attempt      numbers of a call as arguments of its code
//   donation            arrays that are given away
//   collectives         psum ... axis_size
//   collective_members  their arguments
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "lang/context/builtin.h"
#include "lang/context/function.h"
#include "lang/context/value.h"

namespace unisono::lang {

class Walk;
struct Name;  // ast.h

/// The states of all maps of a session (map_state.h): a map that is made again
/// from the same function and the same axes finds what was compiled for it.
class MapCache;

/// The function that an argument of a builtin is; an error if it is none.
std::shared_ptr<const FunctionValue> function_argument(Argument f);

/// Calls a function that `jit`, `vmap` or `pmap` made. In check mode the inner
/// function is walked with the types that one member sees. A `pmap` or `jit`
/// runs in run mode only, and is traced and compiled at its first call with
/// these types; a `vmap` adds its operations to the graph that is being built.
Value call_transformed(Walk& walk,
                       const std::shared_ptr<const FunctionValue>& function,
                       std::vector<CallArgument> positional,
                       std::vector<std::pair<std::string, CallArgument>> named,
                       Span where);

/// Maps `body` over a new logical axis of `count` members and stacks its
/// results along a new leading axis: comprehensions and `map` are this. The
/// leaves of `mapped` are arrays of size `count` along axis 0; `body` gets one
/// member's part of them, in the same order.
Value map_members(
    Walk& walk, const ir::Dim& count, std::vector<Value> mapped,
    const std::function<Value(const std::vector<Value>& member)>& body,
    Span where);

/// The number of members of `axis` around this place, as a size in a type or as
/// `axis_size`: a symbol while a definition is checked, nothing where the axis
/// is not mapped.
std::optional<ir::Dim> axis_size_here(Walk& walk, const AxisInfo& axis);

/// " varies over rows, cols": the axes mapped around this place over which the
/// array differs between members; empty if there are none.
std::string varies_note(Walk& walk, const ArrayCell& array);

/// A tuple of different devices (or one device) as their indices; nothing if
/// it is something else. The same device twice is an error.
std::optional<std::vector<int>> device_list(Walk& walk,
                                            const CallArgument& argument);

/// `axis dev = devices()`, `axis batch`: the axes that a statement declares,
/// one per name. `value` is what stands after `=`, or null.
std::vector<AxisValue> declare_axes(Walk& walk, std::span<const Name> names,
                                    const CallArgument* value);

}  // namespace unisono::lang
