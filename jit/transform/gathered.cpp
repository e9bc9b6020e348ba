#include "jit/transform/gathered.h"

#include <numeric>

namespace unisono::jit {

NodeId place_gathered(Graph& graph, NodeId stacked, bool mapped, int dim,
                      bool tiled, uint32_t source) {
  const int from = mapped ? 1 : 0;
  const int to = from + dim;
  NodeId id = stacked;
  if (from != to) {
    std::vector<int> axes(graph.type(id).shape.size());
    std::iota(axes.begin(), axes.end(), 0);
    axes.erase(axes.begin() + from);
    axes.insert(axes.begin() + to, from);
    id = graph.add(ir::Op::transpose, {id}, ir::AxesAttrs{axes}, source);
  }
  if (!tiled) return id;
  ir::Shape shape = graph.type(id).shape;
  shape[to] = shape[to] * shape[to + 1];
  shape.erase(shape.begin() + to + 1);
  return graph.add(ir::Op::reshape, {id}, ir::ShapeAttrs{shape}, source);
}

}  // namespace unisono::jit
