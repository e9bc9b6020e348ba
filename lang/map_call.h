#pragma once
// A mapped call, walked for one member: shared by checking (map_call.cpp) and
// running (map_run.cpp).
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "lang/evaluator.h"
#include "lang/map_spec.h"

namespace unisono::lang {

/// While alive, the code being walked is inside a map over `axis` (or a jit,
/// if it is null). `inputs` are what is mapped, for messages.
class InsideMap {
 public:
  InsideMap(Evaluator& evaluator, std::shared_ptr<const AxisInfo> axis,
            const ir::Dim& members, bool over_devices, Span where,
            const std::vector<MapInput>& inputs = {});
  ~InsideMap();
  InsideMap(const InsideMap&) = delete;
  InsideMap& operator=(const InsideMap&) = delete;

 private:
  Evaluator& evaluator_;
  bool has_axis_;
};

/// Calls the function that is mapped with one member's arrays (in the order of
/// `call.inputs`), and matches its results to out_axes. Errors inside say what
/// a member sees. An InsideMap is around it.
BoundResult call_member(Evaluator& evaluator, const MapCallee& callee,
                        BoundCall call, const std::vector<ArrayValue>& arrays,
                        Span where);

/// The axes of a member's `value`: those of the whole, and the map's own if it
/// is one member's part.
AxisSet member_varies(const MapInput& input, const AxisInfo* axis);

/// Runs a `pmap` or `jit` (map_run.cpp); the mode is run.
Value run_map(Evaluator& evaluator, const MapCallee& callee,
              std::vector<CallArgument> positional,
              std::vector<std::pair<std::string, CallArgument>> named,
              Span where);

}  // namespace unisono::lang
