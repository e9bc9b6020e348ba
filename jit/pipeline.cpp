#include "jit/pipeline.h"

#include "jit/ir/verify.h"
#include "jit/loops/transpose_captures.h"
#include "jit/transform/fold_arrays.h"
#include "runtime/check.h"

namespace unisono::jit {
namespace {

constexpr const char* trace_name = "trace";
constexpr const char* vmap_name = "vmap";
constexpr const char* join_name = "join";
constexpr const char* spmd_name = "spmd";

struct Pass {
  const char* name;
  Graph (*run)(const Graph&);
};
constexpr Pass optimisations[] = {
    {"pull", pull_gathers},
    {"simplify", simplify},
    {"fold", fold_arrays},
    {"results", drop_dead_results},
    {"cse", cse_dce},
    {"captures", transpose_captures},
    {"narrow", narrow_products},
};

Graph verified(const char* pass, Graph graph, const AfterPass& after) {
  if (auto good = ir::verify(graph); !good)
    check_failed(good.error().message.c_str(), pass, 0);
  if (after) after(pass, graph);
  return graph;
}

}  // namespace

Graph for_devices(const MemberGraph& map, const std::vector<MeshAxis>& mesh,
                  bool plain, const AfterPass& after) {
  if (after) after(trace_name, map.graph);
  const Graph mapped = verified(vmap_name, device_graph(map), after);
  const Graph joined = verified(join_name, join_all_reduces(mapped), after);
  return verified(spmd_name, spmd(joined, mesh, plain), after);
}

Graph optimise(const Graph& graph, const AfterPass& after) {
  Graph current = graph;
  for (const Pass& pass : optimisations)
    current = verified(pass.name, pass.run(current), after);
  return current;
}

std::vector<std::string_view> pass_names() {
  std::vector<std::string_view> out = {trace_name, vmap_name, join_name,
                                       spmd_name};
  for (const Pass& pass : optimisations) out.emplace_back(pass.name);
  return out;
}

}  // namespace unisono::jit
