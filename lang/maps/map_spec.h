#pragma once
// Matches in_axes and out_axes to the trees of arguments and results. All
// mistakes in them are found here, before anything runs.
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "jit/partition/map_graph.h"
#include "lang/context/builtin.h"
#include "lang/context/context.h"
#include "lang/context/function.h"
#include "lang/context/value.h"
#include "lang/source/diagnostics.h"

namespace unisono::lang {

class Walk;

using jit::AxisEntry;

/// A parameter of any function; the name of a pattern is "".
struct ParameterInfo {
  std::string name;
  bool keyword_only = false;
};
std::vector<ParameterInfo> parameters_of(const FunctionValue& function);

/// "axis i", or "the axis of `pmap(scale)`" for one without a name.
std::string label(const AxisInfo& axis);
/// "cpu:0, cpu:1"; of many the first eight. `devices` are their indices.
std::string device_names(Walk& walk, std::span<const int> devices);
/// `(1, 1, 2)`, as the language writes a tuple.
std::string tuple_text(const std::vector<int64_t>& items);

/// An error unless `axes` is a tree of integers, `split(k)` and `none`; `what`
/// is "in_axes" or "out_axes".
void check_axes_form(Walk& walk, const Value& axes, std::string_view what,
                     Span where);

/// One array among the arguments of a mapped call.
struct MapInput {
  ArrayValue value;
  AxisEntry entry;    // its axis counted from 0
  int position = -1;  // of the argument; -1 if it is keyword-only
  std::string path;   // "t.0.w"; "" if the parameter has no name
  Span where;
  ir::Type type;    // the whole array
  ir::Type member;  // what one member sees

  /// "argument 1 (`b`)"
  std::string label() const;
};

/// How the members of a map lie on its devices.
struct MapLayout {
  ir::Dim members = 1;     // of the axis
  ir::Dim per_device = 1;  // members / devices
  int devices = 1;
  bool has_split = false;
};

/// A call's arguments, matched to in_axes. `inputs` are the arrays among their
/// leaves, in order.
struct BoundCall {
  std::vector<CallArgument> positional;
  std::vector<std::pair<std::string, CallArgument>> named;
  std::vector<MapInput> inputs;
  MapLayout layout;

  /// The arguments with their arrays replaced, in the order of `inputs`.
  void replace_arrays(const std::vector<ArrayValue>& arrays);
};

/// The map that is called: `map` is `function`'s Transformed, `axis` what it
/// runs over (null for jit).
struct MapCallee {
  const FunctionValue& function;
  const Transformed& map;
  std::shared_ptr<const AxisInfo> axis;
  bool is_vmap() const { return map.kind == Transformed::Kind::vmap; }
};

/// Matches the arguments to in_axes. An error if ranks or sizes do not fit, or
/// the members cannot be shared equally among the devices.
BoundCall bind_call(Walk& walk, const MapCallee& callee,
                    std::vector<CallArgument> positional,
                    std::vector<std::pair<std::string, CallArgument>> named,
                    Span where);

/// An error if `leaf`, a result of the `call`, is a text or range that depends
/// on arrays of compiled code: only arrays are computed when the code runs.
void require_known_result(Walk& walk, const Value& leaf, Span call);

/// One array among the results.
struct MapOutput {
  ArrayValue value;  // of one member
  AxisEntry entry;   // its axis counted from 0
  ir::Type type;     // the whole result
};
/// The tree of a member's results; an `int` that out_axes stacks is an array in
/// it. `outputs` are the arrays among its leaves, in order.
struct BoundResult {
  Value tree;
  std::vector<MapOutput> outputs;
};
/// Matches the results of one member to out_axes, and proves that a result of
/// which `none` takes one copy does not vary over the axis.
BoundResult bind_result(Walk& walk, const MapCallee& callee,
                        const MapLayout& layout, const Value& result,
                        Span where);

/// The tree with its arrays replaced, in order.
Value replace_arrays(const Value& tree, const std::vector<ArrayValue>& arrays);

/// The types of mapped arguments as one member sees them, at most four lines:
/// facts for errors inside the function.
std::vector<std::string> member_facts(const std::vector<MapInput>& inputs);

/// Adds them to an error inside the function, and what gives a member more.
void explain_members(const MappedAxis& axis, Diagnostic& diagnostic);

}  // namespace unisono::lang
