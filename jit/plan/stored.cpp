#include "jit/plan/stored.h"

#include <algorithm>
#include <map>
#include <set>
#include <vector>

#include "jit/plan/fuse.h"
#include "runtime/tuning/tuning.h"

namespace unisono::jit {
namespace {

/// Of a kernel, the nest that stores the buffer, or reads it.
const Nest* nest_of(const Kernel& kernel, BufferId buffer, bool written) {
  const auto is_of = [&](int argument) {
    return kernel.arguments[argument].buffer == buffer;
  };
  for (const Nest& nest : kernel.nests) {
    if (written && (std::ranges::any_of(nest.stores,
                                        [&](const Store& store) {
                                          return is_of(store.argument);
                                        }) ||
                    (nest.scan && is_of(nest.scan->argument)) ||
                    (nest.scatter && is_of(nest.scatter->argument))))
      return &nest;
    if (!written && std::ranges::any_of(nest.exprs, [&](const Expr& expr) {
          return expr.argument >= 0 && is_of(expr.argument);
        }))
      return &nest;
  }
  return nullptr;
}

/// Whether the nest stores there what its reductions gave.
bool is_reduced(const Kernel& kernel, const Nest& nest, BufferId buffer) {
  const std::vector<bool> inner = inner_expressions(nest);
  return std::ranges::any_of(nest.stores, [&](const Store& store) {
    return kernel.arguments[store.argument].buffer == buffer &&
           !inner[store.value];
  });
}

/// What no kernel of the elementwise kind can be a part of.
std::string_view own_kind(const PlanStep& step, bool written) {
  if (std::holds_alternative<DotTask>(step.what))
    return written ? "a product of matrices is a kernel of its own"
                   : "a product of matrices reads each element many times";
  if (std::holds_alternative<LaunchStep>(step.what))
    return "a sort is a kernel of its own";
  if (std::holds_alternative<CollectiveStep>(step.what))
    return "devices exchange it";
  if (std::holds_alternative<HostCallStep>(step.what))
    return "the host takes part";
  if (std::holds_alternative<LoopTask>(step.what))
    return written ? "a loop gives it" : "a loop reads it in each turn";
  if (std::holds_alternative<IfTask>(step.what))
    return written ? "a branch gives it" : "a branch reads it";
  return {};
}

std::string_view why_stored(const PlanStep& writer, const PlanStep& reader,
                            BufferId buffer) {
  if (const auto why = own_kind(writer, true); !why.empty()) return why;
  if (const auto why = own_kind(reader, false); !why.empty()) return why;
  const auto* one = std::get_if<Kernel>(&writer.what);
  const auto* other = std::get_if<Kernel>(&reader.what);
  if (!one || !other) return {};  // a copy
  const Nest* from = nest_of(*one, buffer, true);
  const Nest* to = nest_of(*other, buffer, false);
  if (!from || !to) return {};
  if (from->scatter || to->scatter)
    return "`x[i] = v` with positions is a kernel of its own";
  if (from->scan) return "a running total is whole before it is read";
  if (!from->reductions.empty() && is_reduced(*one, *from, buffer))
    return "it is reduced, and whole before it is read";
  if (from->exprs.size() + to->exprs.size() > tuning().many_stored_exprs)
    return "both together are more than a kernel holds";
  return "what reads it does so in another order, or waits for a result that "
         "is whole first";
}

class Finder {
 public:
  explicit Finder(const Plan& plan) : plan_(plan) {}

  void steps(const PlanSteps& steps) {
    for (const PlanStep& step : steps) {
      if (const auto* loop = std::get_if<LoopTask>(&step.what))
        this->steps(*loop->body);
      std::vector<BufferId> read, written;
      for_each_buffer(step, [&](BufferId buffer, bool writes) {
        (writes ? written : read).push_back(buffer);
      });
      for (const BufferId buffer : read) tell(buffer, step);
      for (const BufferId buffer : written) writers_[buffer] = &step;
    }
  }
  std::vector<StoredArray> take() { return std::move(found_); }

 private:
  void tell(BufferId id, const PlanStep& reader) {
    const PlanBuffer& buffer = plan_.buffers[id];
    const auto writer = writers_.find(id);
    if (writer == writers_.end() ||
        buffer.bytes < tuning().large_stored_bytes || buffer.source == 0)
      return;  // inputs and constants have no source
    const std::string_view why = why_stored(*writer->second, reader, id);
    const uint32_t to = reader.sources.empty() ? 0 : reader.sources.back();
    if (!why.empty() && told_.emplace(id, to).second)
      found_.push_back({buffer.source, to, buffer.bytes, why});
  }

  const Plan& plan_;
  std::vector<StoredArray> found_;
  std::map<BufferId, const PlanStep*> writers_;  // the last ones
  std::set<std::pair<BufferId, uint32_t>> told_;
};

}  // namespace

std::vector<StoredArray> stored_arrays(const Plan& plan) {
  Finder finder(plan);
  finder.steps(plan.steps);
  return finder.take();
}

}  // namespace unisono::jit
