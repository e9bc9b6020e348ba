#include "jit/derivative/residuals.h"

namespace unisono::jit {

std::vector<ir::NodeId> residuals(const ir::Graph& known,
                                  const std::vector<bool>& free,
                                  const std::vector<ir::NodeId>& wanted) {
  std::vector<bool> chosen(known.nodes.size(), false);
  std::vector<ir::NodeId> kept;
  for (const ir::NodeId id : wanted) {
    const ir::Node& node = known[id];
    const bool is_free =
        node.op == ir::Op::constant ||
        (node.op == ir::Op::input && free[static_cast<size_t>(id)]);
    if (is_free || chosen[id]) continue;
    chosen[id] = true;
    kept.push_back(id);
  }
  return kept;
}

}  // namespace unisono::jit
