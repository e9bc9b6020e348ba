#include "jit/ir/verify.h"
#include "jit/transform/transforms.h"
#include "runtime/check.h"

namespace unisono::jit {
namespace {

struct Pass {
  const char* name;
  Graph (*run)(const Graph&);
};
constexpr Pass passes[] = {
    {"simplify", simplify},
    {"cse", cse_dce},
};
/// The graph before them, as it was traced.
constexpr const char* before_all = "trace";

}  // namespace

Graph optimise(const Graph& graph, const AfterPass& after) {
  Graph current = graph;
  if (after) after(before_all, current);
  for (const Pass& pass : passes) {
    current = pass.run(current);
    if (auto good = ir::verify(current); !good)
      check_failed(good.error().message.c_str(), pass.name, 0);
    if (after) after(pass.name, current);
  }
  return current;
}

std::vector<std::string_view> pass_names() {
  std::vector<std::string_view> out{before_all};
  for (const Pass& pass : passes) out.emplace_back(pass.name);
  return out;
}

}  // namespace unisono::jit
