#include "jit/generate_grid.h"

#include <fmt/format.h>
#include <llvm/IR/LLVMContext.h>
#include <llvm/IR/Module.h>
#include <llvm/Support/raw_ostream.h>

#include "jit/emit_grid.h"
#include "jit/group.h"
#include "runtime/stop.h"

namespace unisono::jit {
namespace {

/// Of the kernels that LLVM gets at once, in expressions: it cannot be stopped.
constexpr size_t most_module_weight = 512;

/// Grows as the time that LLVM takes for it.
size_t weight(const Kernel& kernel) {
  size_t total = 16;
  for (const Nest& nest : kernel.nests)
    for (const Expr& expr : nest.exprs) total += jit::weight(expr);
  return total;
}

}  // namespace

NvptxTarget& GridGenerator::target(int capability) {
  return targets_.try_emplace(capability, capability).first->second;
}

Result<std::vector<std::shared_ptr<const GridLaunch>>>
GridGenerator::generate_module(std::span<const Kernel* const> kernels,
                               const std::vector<int>& capabilities,
                               Dump* dump) {
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
          emit_grid(module, fmt::format("kernel{}", emitted.size()), *kernel));
    if (dump) llvm::raw_string_ostream(dump->llvm) << module;
    Result<std::string> ptx = target(capability).ptx(module);
    if (!ptx) return ptx.error();
    if (dump) dump->ptx += *ptx;
    code->images.push_back({capability, std::move(*ptx)});
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

Result<GridKernels> GridGenerator::generate(
    const std::vector<const Kernel*>& kernels,
    const std::vector<int>& capabilities, Dump* dump) {
  const std::string targets =
      fmt::format("sm {}\n", fmt::join(capabilities, " "));
  GridKernels result;
  std::vector<std::string> keys;
  std::vector<const Kernel*> fresh;
  for (const Kernel* kernel : kernels) {
    poll_stop();
    std::string key = print(*kernel);
    if (result.contains(key)) continue;
    const auto* known = dump ? nullptr : kernels_.find(targets + key);
    result[key] = known ? *known : nullptr;
    if (known) continue;
    keys.push_back(std::move(key));
    fresh.push_back(kernel);
  }
  for (size_t begin = 0; begin < fresh.size();) {
    size_t end = begin + 1, total = weight(*fresh[begin]);
    // What is shown is shown as one.
    while (end < fresh.size() &&
           (dump || total + weight(*fresh[end]) <= most_module_weight))
      total += weight(*fresh[end++]);
    auto made = generate_module(std::span(fresh).subspan(begin, end - begin),
                                capabilities, dump);
    if (!made) return made.error();
    for (size_t i = begin; i < end; ++i) {
      const auto& launch = (*made)[i - begin];
      result[keys[i]] = launch;
      kernels_.put(targets + keys[i], launch,
                   8 * static_cast<int64_t>(keys[i].size()));
    }
    begin = end;
  }
  kernels_generated_ += static_cast<int64_t>(fresh.size());
  return result;
}

}  // namespace unisono::jit
