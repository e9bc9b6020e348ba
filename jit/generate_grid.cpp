#include "jit/generate_grid.h"

#include <fmt/format.h>
#include <llvm/IR/LLVMContext.h>
#include <llvm/IR/Module.h>
#include <llvm/Support/raw_ostream.h>

#include "jit/emit_grid.h"

namespace unisono::jit {

NvptxTarget& GridGenerator::target(int capability) {
  return targets_.try_emplace(capability, capability).first->second;
}

Result<GridKernels> GridGenerator::generate(
    const std::vector<const Kernel*>& kernels,
    const std::vector<int>& capabilities, Dump* dump) {
  const std::string targets =
      fmt::format("sm {}\n", fmt::join(capabilities, " "));
  GridKernels result;
  std::vector<std::pair<std::string, const Kernel*>> fresh;
  for (const Kernel* kernel : kernels) {
    std::string key = print(*kernel);
    if (result.contains(key)) continue;
    const auto* known = dump ? nullptr : kernels_.find(targets + key);
    result[key] = known ? *known : nullptr;
    if (!known) fresh.emplace_back(std::move(key), kernel);
  }
  if (fresh.empty()) return result;
  auto code = std::make_shared<GridCode>();
  std::vector<EmittedGrid> emitted;
  for (int capability : capabilities) {
    llvm::LLVMContext context;
    llvm::Module module("kernels", context);
    target(capability).prepare(module);
    emitted.clear();
    for (const auto& [key, kernel] : fresh)
      emitted.push_back(
          emit_grid(module, fmt::format("kernel{}", emitted.size()), *kernel));
    if (dump) llvm::raw_string_ostream(dump->llvm) << module;
    Result<std::string> ptx = target(capability).ptx(module);
    if (!ptx) return ptx.error();
    if (dump) dump->ptx += *ptx;
    code->images.push_back({capability, std::move(*ptx)});
  }
  for (size_t i = 0; i < fresh.size(); ++i) {
    if (emitted[i].blocks > INT32_MAX)
      return Error{Error::Kind::compile_failed,
                   "a kernel has more elements than a GPU takes at once"};
    GridLaunch launch{.code = code, .entry = emitted[i].name};
    launch.blocks = emitted[i].blocks;
    launch.threads = emitted[i].threads;
    launch.element_bits = emitted[i].element_bits;
    launch.checks = std::move(emitted[i].checks);
    auto shared = std::make_shared<const GridLaunch>(std::move(launch));
    result[fresh[i].first] = shared;
    kernels_.put(targets + fresh[i].first, shared,
                 8 * static_cast<int64_t>(fresh[i].first.size()));
  }
  kernels_generated_ += static_cast<int64_t>(fresh.size());
  return result;
}

}  // namespace unisono::jit
