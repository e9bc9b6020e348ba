#include "jit/target/generator.h"

namespace unisono::jit {
namespace {

void list_requests(const PlanSteps& steps, std::vector<Request>& out) {
  for (const PlanStep& step : steps) {
    if (const auto* kernel = std::get_if<Kernel>(&step.what))
      out.push_back(kernel);
    if (const auto* dot = std::get_if<DotTask>(&step.what)) out.push_back(dot);
    if (const auto* loop = std::get_if<LoopTask>(&step.what)) {
      list_requests(*loop->condition, out);
      list_requests(*loop->body, out);
    }
    if (const auto* branch = std::get_if<IfTask>(&step.what)) {
      list_requests(*branch->then_steps, out);
      list_requests(*branch->else_steps, out);
    }
  }
}

}  // namespace

std::vector<Request> requests_of(const Plan& plan) {
  std::vector<Request> out;
  list_requests(plan.steps, out);
  return out;
}

}  // namespace unisono::jit
