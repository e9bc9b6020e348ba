#include "jit/target/generate_gpu.h"

#include <fmt/format.h>
#include <llvm/IR/LLVMContext.h>
#include <llvm/IR/Module.h>
#include <llvm/Support/raw_ostream.h>

#include <deque>

#include "jit/emit/grid.h"
#include "jit/kernel/group.h"
#include "jit/plan/collective_kernel.h"
#include "runtime/stop.h"
#include "runtime/tuning/tuning.h"

namespace unisono::jit {
namespace {

/// Grows as the time that LLVM takes for it.
size_t weight(const Kernel& kernel) {
  size_t total = 16;
  for (const Nest& nest : kernel.nests)
    for (const Expr& expr : nest.exprs) total += jit::weight(expr);
  return total;
}

/// Lets the module's text follow that of others: names that are not a kernel's
/// are its own.
void name_apart(llvm::Module& module, size_t first) {
  auto rename = [&](llvm::GlobalValue& value) {
    if (!value.isDeclaration() && !value.getName().starts_with("kernel"))
      value.setName(fmt::format("{}_{}", value.getName().str(), first));
  };
  for (llvm::GlobalVariable& variable : module.globals()) rename(variable);
  for (llvm::Function& function : module) rename(function);
}

/// PTX without the lines that say which version it is.
std::string_view without_head(std::string_view ptx) {
  constexpr std::string_view last = ".address_size 64\n";
  const size_t at = ptx.find(last);
  return at == ptx.npos ? ptx : ptx.substr(at + last.size());
}

}  // namespace

/// As one module, though code is made of parts.
std::string GpuGenerator::llvm_text(std::span<const Kernel* const> all,
                                    int capability) {
  llvm::LLVMContext context;
  llvm::Module module("kernels", context);
  target(capability).prepare(module);
  for (size_t i = 0; i < all.size(); ++i) {
    poll_stop();
    emit_grid(module, fmt::format("kernel{}", i), *all[i], lines_);
  }
  std::string out;
  llvm::raw_string_ostream(out) << module;
  return out;
}

namespace {

/// Kernels of an all_reduce on GPUs (CollectiveStep::Kernels).
struct AllReduceKernels {
  int64_t part;
  Kernel full, last, own;
};
AllReduceKernels all_reduce_kernels(const CollectiveStep& task, int devices) {
  const int64_t part = all_reduce_part(task.elements, task.dtype, devices);
  const int64_t rest = task.elements - (task.elements - 1) / part * part;
  auto kernel = [&](int64_t elements, int targets) {
    return all_reduce_kernel(task.op, task.dtype, elements, devices, targets);
  };
  return {part, kernel(part, devices), kernel(rest, devices),
          kernel(task.elements, 1)};
}

/// All steps of a kind, in the order of steps.
void list_all_reduces(const PlanSteps& steps,
                      std::vector<const CollectiveStep*>& out) {
  for (const PlanStep& step : steps) {
    if (const auto* task = std::get_if<CollectiveStep>(&step.what))
      if (task->kind == CollectiveStep::Kind::all_reduce) out.push_back(task);
    if (const auto* loop = std::get_if<LoopTask>(&step.what)) {
      list_all_reduces(*loop->condition, out);
      list_all_reduces(*loop->body, out);
    }
    if (const auto* branch = std::get_if<IfTask>(&step.what)) {
      list_all_reduces(*branch->then_steps, out);
      list_all_reduces(*branch->else_steps, out);
    }
  }
}

}  // namespace

Result<CompiledKernels> GpuGenerator::generate(const Plan& plan, int devices,
                                               const CodeTarget& target,
                                               CodeText* dump) {
  std::vector<const Kernel*> wanted;
  for (const Request& request : requests_of(plan))
    wanted.push_back(std::get<const Kernel*>(request));
  std::vector<const CollectiveStep*> reduces;
  list_all_reduces(plan.steps, reduces);
  std::deque<AllReduceKernels> kept;
  for (const CollectiveStep* step : reduces) {
    const auto& all = kept.emplace_back(all_reduce_kernels(*step, devices));
    wanted.insert(wanted.end(), {&all.full, &all.last, &all.own});
  }
  auto launches = TRY(generate(wanted, target.capabilities, dump));
  CompiledKernels result;
  for (const Kernel* kernel : wanted) {
    std::string key = key_of(*kernel);
    if (dump) dump->kernels += key;
    Compiled compiled;
    compiled.launches.push_back({.grid = launches.at(key)});
    result.emplace(std::move(key), std::move(compiled));
  }
  return result;
}

void GpuGenerator::complete(CollectiveStep& step, int devices,
                            const CompiledKernels& kernels) const {
  if (step.kind != CollectiveStep::Kind::all_reduce) return;
  const auto reduce = all_reduce_kernels(step, devices);
  auto launch = [&](const Kernel& kernel) {
    return kernels.at(key_of(kernel)).launches[0].grid;
  };
  step.kernels = {reduce.part, launch(reduce.full), launch(reduce.last),
                  launch(reduce.own)};
}

NvptxTarget& GpuGenerator::target(int capability) {
  return targets_.try_emplace(capability, capability).first->second;
}

Result<std::vector<std::shared_ptr<const GridLaunch>>>
GpuGenerator::generate_module(std::span<const Kernel* const> kernels,
                              size_t first,
                              const std::vector<int>& capabilities,
                              CodeText* dump) {
  auto code = std::make_shared<GridCode>();
  std::vector<EmittedGrid> emitted;
  for (int capability : capabilities) {
    poll_stop();
    llvm::LLVMContext context;
    llvm::Module module("kernels", context);
    target(capability).prepare(module);
    emitted.clear();
    for (const Kernel* kernel : kernels)
      emitted.push_back(
          emit_grid(module, fmt::format("kernel{}", first + emitted.size()),
                    *kernel, lines_));
    if (dump && first > 0) name_apart(module, first);
    std::string ptx = TRY(target(capability).ptx(module));
    if (dump) {
      dump->assembly += first > 0 ? without_head(ptx) : ptx;
      for (const EmittedGrid& grid : emitted)
        dump->assembly += fmt::format("// {}: {} blocks of {} threads\n",
                                      grid.name, grid.blocks, grid.threads);
    }
    code->images.push_back({capability, std::move(ptx)});
  }
  std::vector<std::shared_ptr<const GridLaunch>> out;
  for (EmittedGrid& grid : emitted) {
    if (grid.blocks > INT32_MAX)
      return Error{Error::Kind::compile_failed,
                   "a kernel has more elements than a GPU takes at once"};
    GridLaunch launch{.code = code, .entry = grid.name};
    launch.blocks = grid.blocks;
    launch.threads = grid.threads;
    launch.element_bits = grid.element_bits;
    launch.checks = std::move(grid.checks);
    out.push_back(std::make_shared<const GridLaunch>(std::move(launch)));
  }
  return out;
}

/// Equal kernels of other lines have other code, if that names lines.
std::string GpuGenerator::kept_by(const Kernel& kernel,
                                  const std::string& key) const {
  std::string out = key;
  if (!lines_) return out;
  for (const Nest& nest : kernel.nests)
    for (const Expr& expr : nest.exprs) out += fmt::format(" {}", expr.source);
  return out;
}

Result<GridLaunches> GpuGenerator::generate(
    const std::vector<const Kernel*>& kernels,
    const std::vector<int>& capabilities, CodeText* dump) {
  const std::string targets =
      fmt::format("sm {}\n", fmt::join(capabilities, " "));
  GridLaunches result;
  std::vector<std::string> keys;
  std::vector<const Kernel*> fresh;
  for (const Kernel* kernel : kernels) {
    poll_stop();
    std::string key = print(*kernel);
    if (result.contains(key)) continue;
    const auto* known =
        dump ? nullptr : kernels_.find(targets + kept_by(*kernel, key));
    result[key] = known ? *known : nullptr;
    if (known) continue;
    keys.push_back(std::move(key));
    fresh.push_back(kernel);
  }
  if (dump && dump->wants_llvm)
    for (int capability : capabilities)
      dump->llvm += llvm_text(fresh, capability);
  for (size_t begin = 0; begin < fresh.size();) {
    size_t end = begin + 1, total = weight(*fresh[begin]);
    while (end < fresh.size() &&
           total + weight(*fresh[end]) <= tuning().gpu_most_module_weight)
      total += weight(*fresh[end++]);
    auto made =
        TRY(generate_module(std::span(fresh).subspan(begin, end - begin), begin,
                            capabilities, dump));
    for (size_t i = begin; i < end; ++i) {
      const auto& launch = made[i - begin];
      result[keys[i]] = launch;
      kernels_.put(targets + kept_by(*fresh[i], keys[i]), launch,
                   8 * static_cast<int64_t>(keys[i].size()));
    }
    begin = end;
  }
  kernels_generated_ += static_cast<int64_t>(fresh.size());
  return result;
}

}  // namespace unisono::jit
