// The compiler on one page: graph -> optimised graph -> plan of kernels and
// steps -> places in memory -> LLVM -> machine code -> Program.
#include "jit/compile.h"

#include <fmt/format.h>
#include <llvm/IR/LLVMContext.h>
#include <llvm/IR/Module.h>
#include <llvm/Support/raw_ostream.h>
#include <llvm/Transforms/Utils/Cloning.h>

#include <atomic>
#include <chrono>
#include <mutex>
#include <optional>
#include <unordered_map>

#include "jit/emit.h"
#include "jit/fuse.h"
#include "jit/ir/text.h"
#include "jit/lru_cache.h"
#include "jit/memory_plan.h"
#include "jit/sort.h"
#include "jit/target.h"

namespace unisono::jit {
namespace {

constexpr int64_t most_cached_programs = 1024;
constexpr int64_t most_cached_kernel_bytes = int64_t{64} << 20;

/// A kernel as machine code.
struct Compiled {
  KernelFunction function = nullptr;
  int64_t units = 1, grain = 1;
  std::shared_ptr<LoadedCode> code;
};
using CompiledKernels = std::unordered_map<std::string, Compiled>;

/// The kernels of a plan, in the order of steps.
void list_kernels(const PlanSteps& steps, std::vector<const Kernel*>& out) {
  for (const PlanStep& step : steps) {
    if (const auto* kernel = std::get_if<Kernel>(&step.what))
      out.push_back(kernel);
    if (const auto* loop = std::get_if<LoopTask>(&step.what)) {
      list_kernels(*loop->condition, out);
      list_kernels(*loop->body, out);
    }
    if (const auto* branch = std::get_if<IfTask>(&step.what)) {
      list_kernels(*branch->then_steps, out);
      list_kernels(*branch->else_steps, out);
    }
  }
}

/// Steps of a plan as steps of a program.
class StepWriter {
 public:
  StepWriter(const CompiledKernels& kernels, Program& program,
             CompileStats& stats)
      : kernels_(kernels), program_(program), stats_(stats) {}

  Steps write(const PlanSteps& steps) {
    Steps out;
    for (const PlanStep& step : steps)
      std::visit([&](const auto& what) { out.push_back(write(what)); },
                 step.what);
    return out;
  }

 private:
  std::shared_ptr<const Steps> shared(const PlanSteps& steps) {
    return std::make_shared<const Steps>(write(steps));
  }
  Step write(const Kernel& kernel) {
    const Compiled& compiled = kernels_.at(print(kernel));
    LaunchStep step;
    step.function = compiled.function;
    step.name = fmt::format("kernel{}", stats_.kernels++);
    for (const Argument& argument : kernel.arguments)
      step.arguments.push_back(argument.buffer);
    step.units = compiled.units;
    step.grain = compiled.grain;
    return {step};
  }
  Step write(const SortTask& task) {
    SortKernel sort =
        sort_kernel(task.dtype, task.rows, task.length, task.positions);
    LaunchStep step;
    step.function = sort.function;
    step.name = "sort";
    step.arguments = {task.from, task.to,
                      static_cast<SlotId>(program_.slots.size())};
    Slot parameters{.home = Slot::Home::constant};
    parameters.bytes = static_cast<int64_t>(sort.parameters.size());
    parameters.index = static_cast<int>(program_.constants.size());
    program_.slots.push_back(parameters);
    program_.constants.push_back(std::move(sort.parameters));
    step.units = sort.units;
    step.grain = sort.grain;
    ++stats_.kernels;
    return {step};
  }
  Step write(const CopyTask& task) {
    ++stats_.copies;
    return {CopyStep{task.from, task.to, task.bytes}};
  }
  Step write(const CollectiveTask& task) {
    ++stats_.collectives;
    const int64_t bytes = task.elements * byte_size(task.dtype);
    if (task.op == ir::Op::all_gather)
      return {AllGatherStep{task.from, task.to, bytes, task.source}};
    if (task.op == ir::Op::permute)
      return {PermuteStep{task.from, task.to, bytes, task.attrs.pairs,
                          task.source}};
    AllReduceStep step{.from = task.from, .to = task.to, .dtype = task.dtype};
    step.elements = task.elements;
    switch (task.attrs.reduce) {
      case ir::ReduceOp::sum: step.op = AllReduceStep::Op::sum; break;
      case ir::ReduceOp::max: step.op = AllReduceStep::Op::max; break;
      case ir::ReduceOp::min: step.op = AllReduceStep::Op::min; break;
    }
    step.source = task.source;
    return {step};
  }
  Step write(const LoopTask& task) {
    return {LoopStep{shared(*task.condition), shared(*task.body), task.flag}};
  }
  Step write(const IfTask& task) {
    return {
        IfStep{task.flag, shared(*task.then_steps), shared(*task.else_steps)}};
  }
  Step write(const HostTask& task) {
    HostCallStep step;
    step.arguments = task.arguments;
    for (BufferId argument : task.arguments)
      step.bytes.push_back(program_.slots[argument].bytes);
    step.call = task.call;
    return {step};
  }

  const CompiledKernels& kernels_;
  Program& program_;
  CompileStats& stats_;
};

/// The program's calls back to the host, for one caller's options.
std::vector<HostCallback> host_callbacks(const std::vector<PlanHostCall>& calls,
                                         const CompileOptions& options) {
  std::vector<HostCallback> out;
  for (const PlanHostCall& call : calls)
    out.push_back(
        [call, render = options.host_call](
            int position, const std::vector<std::vector<uint8_t>>& arguments) {
          if (!render) return;
          std::vector<HostArray> operands;
          for (size_t i = 0; i < arguments.size(); ++i)
            operands.push_back({call.types[i], arguments[i]});
          render(call.node, position, operands);
        });
  return out;
}

struct CachedProgram {
  std::shared_ptr<const Program> program;
  std::vector<PlanHostCall> host_calls;
  CompileStats stats;
};

}  // namespace

struct Compiler::State {
  explicit State(int vector_bytes) : vector_bytes(vector_bytes) {}

  int vector_bytes;
  std::mutex cache_mutex;    // programs
  std::mutex compile_mutex;  // the rest
  LruCache<CachedProgram> programs{most_cached_programs};
  LruCache<Compiled> kernels{most_cached_kernel_bytes};
  std::unique_ptr<Target> target;
  CompileObserver observer;
  std::atomic<int64_t> programs_compiled{0}, kernels_generated{0};

  Result<CachedProgram> compile(const ir::Graph& graph,
                                const CompileOptions& options);
  Result<CompiledKernels> generate(const std::vector<const Kernel*>& kernels,
                                   CompileDump* dump);
};

/// Machine code for all kernels; one module for those not known yet. With
/// `dump` all are generated again to be seen.
Result<CompiledKernels> Compiler::State::generate(
    const std::vector<const Kernel*>& all, CompileDump* dump) {
  CompiledKernels result;
  std::vector<std::pair<std::string, const Kernel*>> fresh;
  for (const Kernel* kernel : all) {
    std::string key = print(*kernel);
    if (dump) dump->kernels += key;
    if (result.contains(key)) continue;
    const Compiled* known = dump ? nullptr : kernels.find(key);
    result[key] = known ? *known : Compiled{};
    if (!known) fresh.emplace_back(std::move(key), kernel);
  }
  if (fresh.empty()) return result;
  if (!target) target = make_cpu_target(vector_bytes);
  llvm::LLVMContext context;
  llvm::Module module("kernels", context);
  target->prepare(module);
  std::vector<EmittedKernel> emitted;
  for (const auto& [key, kernel] : fresh)
    emitted.push_back(emit_kernel(module,
                                  fmt::format("kernel{}", emitted.size()),
                                  *kernel, target->machine()));
  if (dump) {
    llvm::raw_string_ostream(dump->llvm) << module;
    auto text = target->assembly(*llvm::CloneModule(module));
    if (!text) return text.error();
    dump->assembly = std::move(*text);
  }
  auto code = target->load(module);
  if (!code) return code.error();
  for (size_t i = 0; i < fresh.size(); ++i) {
    Compiled& compiled = result[fresh[i].first];
    compiled.function =
        reinterpret_cast<KernelFunction>((*code)->symbol(emitted[i].name));
    if (!compiled.function)
      return Error{Error::Kind::compile_failed, "a kernel has no code"};
    compiled.units = emitted[i].units;
    compiled.grain = emitted[i].grain;
    compiled.code = *code;
    // Text and code grow alike.
    kernels.put(fresh[i].first, compiled,
                4 * static_cast<int64_t>(fresh[i].first.size()));
  }
  kernels_generated += static_cast<int64_t>(fresh.size());
  return result;
}

Result<CachedProgram> Compiler::State::compile(const ir::Graph& graph,
                                               const CompileOptions& options) {
  const auto start = std::chrono::steady_clock::now();
  CompileDump dump;
  CachedProgram result;
  Plan plan = fuse(optimise(graph, observer.after_pass), options.checked);
  MemoryPlan memory = plan_memory(plan);
  std::vector<const Kernel*> kernels;
  list_kernels(plan.steps, kernels);
  auto compiled = generate(kernels, observer.dump ? &dump : nullptr);
  if (!compiled) return compiled.error();

  auto program = std::make_shared<Program>();
  program->slots = std::move(memory.slots);
  program->inputs = plan.inputs;
  program->outputs = plan.outputs;
  program->constants = std::move(plan.constants);
  program->arena_bytes = memory.arena_bytes;
  program->devices = options.devices;
  program->steps =
      StepWriter(*compiled, *program, result.stats).write(plan.steps);
  auto codes = std::make_shared<std::vector<std::shared_ptr<LoadedCode>>>();
  for (auto& [key, kernel] : *compiled) codes->push_back(kernel.code);
  program->code = codes;
  if (observer.dump) observer.dump(dump);
  result.program = std::move(program);
  result.host_calls = std::move(plan.host_calls);
  result.stats.seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - start)
          .count();
  ++programs_compiled;
  return result;
}

Compiler::Compiler(int vector_bytes)
    : state_(std::make_unique<State>(vector_bytes)) {}
Compiler::~Compiler() = default;

Result<std::shared_ptr<const Program>> Compiler::compile(
    const ir::Graph& graph, const CompileOptions& options,
    CompileStats* stats) {
  const std::string key = fmt::format("{} {}\n{}", options.devices,
                                      options.checked, ir::print(graph));
  const bool observed = state_->observer.after_pass || state_->observer.dump;
  auto finish = [&](const CachedProgram& cached) {
    if (stats) *stats = cached.stats;
    if (cached.host_calls.empty()) return cached.program;
    auto own = std::make_shared<Program>(*cached.program);
    own->host_calls = host_callbacks(cached.host_calls, options);
    return std::shared_ptr<const Program>(std::move(own));
  };
  auto find = [&]() -> std::optional<CachedProgram> {
    std::lock_guard lock(state_->cache_mutex);
    const CachedProgram* known =
        observed ? nullptr : state_->programs.find(key);
    return known ? std::optional(*known) : std::nullopt;
  };
  if (auto known = find()) return finish(*known);
  std::lock_guard lock(state_->compile_mutex);
  if (auto known = find()) return finish(*known);  // by another thread
  std::optional<Result<CachedProgram>> compiled;
  on_deep_stack([&] { compiled = state_->compile(graph, options); });
  if (!*compiled) return compiled->error();
  {
    std::lock_guard cache_lock(state_->cache_mutex);
    state_->programs.put(key, **compiled, 1);
  }
  return finish(**compiled);
}

int64_t Compiler::programs_compiled() const {
  return state_->programs_compiled;
}
int64_t Compiler::kernels_generated() const {
  return state_->kernels_generated;
}
void Compiler::observe(CompileObserver observer) {
  state_->observer = std::move(observer);
}

}  // namespace unisono::jit
