#pragma once
// A mapped call, walked for one member: shared by checking (map_call.cpp) and
// running (map_run.cpp).
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "lang/context/walk.h"
#include "lang/maps/map_spec.h"

namespace unisono::lang {

/// While alive, the code being walked is inside a map over `axis` (or a jit,
/// if it is null). `inputs` are what is mapped, for messages.
class InsideMap {
 public:
  InsideMap(Walk& walk, std::shared_ptr<const AxisInfo> axis,
            const ir::Dim& members, bool over_devices, Span where,
            const std::vector<MapInput>& inputs = {},
            std::optional<ir::AxisId> id = std::nullopt);

 private:
  ContextScope context_;
};

/// Calls the function that is mapped with one member's arrays (in the order of
/// `call.inputs`), and matches its results to out_axes. Errors inside say what
/// a member sees. An InsideMap is around it.
BoundResult call_member(Walk& walk, const MapCallee& callee, BoundCall call,
                        const std::vector<ArrayValue>& arrays, Span where);

/// The axes of a member's `value`: those of the whole, and the map's own if it
/// is one member's part.
AxisSet member_varies(const MapInput& input, const AxisInfo* axis);

/// A map over devices inside compiled code needs devices that form a mesh with
/// those of the maps around it, and with those of other maps in the same code.
void join_mesh(Walk& walk, const MapCallee& callee, Span where);
/// Traces a map over devices inside compiled code (map_nested.cpp): one
/// member's part of each argument is taken out of the graph's arrays, and the
/// members' results are stacked.
Value nested_map(Walk& walk, const MapCallee& callee,
                 std::vector<CallArgument> positional,
                 std::vector<std::pair<std::string, CallArgument>> named,
                 Span where);
/// An error if the map's axis is mapped around it.
void forbid_remapping(Walk& walk, const MapCallee& callee, Span where);
/// An error for results taken once of no members.
void forbid_empty_copy(Walk& walk, const MapCallee& callee,
                       const MapLayout& layout, const BoundResult& result,
                       Span where);
/// A call of `vmap` in any mode, and of `pmap` in check mode.
Value map_over(Walk& walk, const MapCallee& callee,
               std::vector<CallArgument> positional,
               std::vector<std::pair<std::string, CallArgument>> named,
               Span where);

/// Runs a statement's graph that has maps over devices in it (map_run.cpp).
std::vector<unisono::Array> run_on_mesh(
    Walk& walk, const ir::Graph& graph,
    const std::vector<unisono::Array>& inputs, Span where);

/// Runs a `pmap` or `jit` (map_run.cpp); the mode is run.
Value run_map(Walk& walk, const MapCallee& callee,
              const std::vector<CallArgument>& positional,
              const std::vector<std::pair<std::string, CallArgument>>& named,
              Span where);

}  // namespace unisono::lang
