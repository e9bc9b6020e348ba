#include "jit/ir/verify.h"
#include "jit/transform/transforms.h"
#include "runtime/check.h"

namespace unisono::jit {

Graph optimise(const Graph& graph, const AfterPass& after) {
  struct Pass {
    const char* name;
    Graph (*run)(const Graph&);
  };
  constexpr Pass passes[] = {
      {"simplify", simplify},
      {"cse", cse_dce},
  };
  Graph current = graph;
  for (const Pass& pass : passes) {
    current = pass.run(current);
    if (auto good = ir::verify(current); !good)
      check_failed(good.error().message.c_str(), pass.name, 0);
    if (after) after(pass.name, current);
  }
  return current;
}

}  // namespace unisono::jit
