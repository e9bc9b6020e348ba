// The compiler on one page: graph -> optimised graph -> plan of kernels and
// steps -> places in memory -> LLVM -> machine code -> Program.
#include "jit/compile.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <mutex>
#include <optional>
#include <set>
#include <unordered_map>

#include "jit/arrange/do_once.h"
#include "jit/arrange/join_kernels.h"
#include "jit/arrange/memory_plan.h"
#include "jit/arrange/overlap.h"
#include "jit/ir/kinds.h"
#include "jit/ir/routines.h"
#include "jit/ir/text.h"
#include "jit/kernel/work.h"
#include "jit/partition/map_graph.h"
#include "jit/plan/fuse.h"
#include "jit/plan/join_copies.h"
#include "jit/plan/stored.h"
#include "jit/reference/host_call.h"
#include "jit/target/generate_cpu.h"
#include "jit/target/generate_gpu.h"
#include "jit/target/target.h"
#include "runtime/lru_cache.h"
#include "runtime/pool.h"
#include "runtime/stop.h"
#include "runtime/tuning/tuning.h"

namespace unisono::jit {
namespace {

/// How many workers a routine is worth: of matrices, some ten operations for
/// each element and each of its row.
float routine_work(const PlanHostCall& call) {
  const ir::Type& a = call.types[0];
  return 10 * static_cast<float>(a.elements()) *
         static_cast<float>(a.shape.back().value()) / tuning().routine_grain;
}

/// Steps of a plan as steps of a program.
class StepWriter {
 public:
  StepWriter(const Generator& generator, int devices,
             const std::vector<MeshAxis>& mesh, const Plan& plan,
             const CompiledKernels& kernels, const CodeObserver& on_code,
             Program& program, CompileStats& stats)
      : generator_(generator),
        devices_(devices),
        mesh_(mesh),
        plan_(plan),
        kernels_(kernels),
        on_code_(on_code),
        program_(program),
        stats_(stats) {}

  Steps write(const PlanSteps& steps) {
    for (const PlanStep& step : steps) {
      sources_ = &step.sources;
      const size_t first = steps_.size();
      std::visit([&](const auto& what) { write(what); }, step.what);
      for (size_t i = first; i < steps_.size(); ++i) steps_[i].once = step.once;
    }
    return std::move(steps_);
  }

 private:
  std::shared_ptr<const Steps> apart(const PlanSteps& steps) {
    Steps outer = std::move(steps_);
    steps_.clear();
    auto inner = std::make_shared<const Steps>(write(steps));
    steps_ = std::move(outer);
    return inner;
  }
  void launch(const Compiled::Launch& compiled, std::vector<SlotId> arguments,
              Work work) {
    if (on_code_ && compiled.function)
      on_code_(reinterpret_cast<const void*>(compiled.function),
               compiled.code_bytes, *sources_);
    steps_.push_back({LaunchStep{
        compiled.function, fmt::format("kernel{}", stats_.kernels++),
        std::move(arguments), compiled.units, compiled.grain, compiled.grid,
        *sources_, work.flops, work.bytes}});
  }
  void write(const Kernel& kernel) {
    std::vector<SlotId> arguments;
    std::vector<int64_t> bytes;
    for (const Argument& argument : kernel.arguments) {
      arguments.push_back(argument.buffer);
      bytes.push_back(program_.slots[argument.buffer].bytes);
    }
    launch(kernels_.at(key_of(kernel)).launches[0], std::move(arguments),
           work_of(kernel, bytes));
  }
  void write(const DotTask& dot) {
    const auto& launches = kernels_.at(key_of(dot)).launches;
    if (launches.size() == 1)
      return launch(launches[0], {dot.a, dot.b, dot.to}, work_of(dot.shape));
    // The program asks for the product; that it is packed first is ours.
    launch(launches[0], {dot.a, dot.packed_a}, {});
    const bool packs_b = dot.packed_b >= 0;
    if (packs_b) launch(launches[1], {dot.b, dot.packed_b}, {});
    launch(launches.back(),
           {dot.packed_a, packs_b ? dot.packed_b : dot.b, dot.to},
           work_of(dot.shape));
  }
  void write(LaunchStep launch) {
    ++stats_.kernels;
    if (launch.bytes == 0)
      for (const SlotId argument : launch.arguments)
        launch.bytes += program_.slots[argument].bytes;
    launch.sources = *sources_;
    add(std::move(launch));
  }
  void write(const CopyStep& copy) {
    if (copy.bytes > 0) ++stats_.copies;
    add(copy);
  }
  void write(CollectiveStep step) {
    ++stats_.collectives;
    generator_.complete(step, devices_, kernels_);
    add(std::move(step));
  }
  template <class What>
  void add(What what) {
    steps_.push_back({std::move(what)});
  }
  void write(const LoopTask& task) {
    steps_.push_back({LoopStep{apart(*task.condition), apart(*task.body),
                               task.flag, task.turns}});
  }
  void write(const IfTask& task) {
    steps_.push_back(
        {IfStep{task.flag, apart(*task.then_steps), apart(*task.else_steps)}});
  }
  void write(HostCallStep call) {
    for (SlotId argument : call.arguments)
      call.bytes.push_back(program_.slots[argument].bytes);
    for (SlotId result : call.results)
      call.result_bytes.push_back(program_.slots[result].bytes);
    const auto& attrs =
        ir::attrs<ir::HostCallAttrs>(plan_.host_calls[call.call].node);
    if (ir::is_routine(attrs)) {
      call.in_turn = false;
      call.work = routine_work(plan_.host_calls[call.call]);
    } else {
      for (int d = 0; d < devices_; ++d)
        call.callers.push_back(calling_device(mesh_, attrs, d));
    }
    add(std::move(call));
  }

  Steps steps_;
  const std::vector<uint32_t>* sources_ = nullptr;  // of the step
  const Generator& generator_;
  const int devices_;
  const std::vector<MeshAxis>& mesh_;
  const Plan& plan_;
  const CompiledKernels& kernels_;
  const CodeObserver& on_code_;
  Program& program_;
  CompileStats& stats_;
};

/// The program's calls back to the host, for one caller's options.
std::vector<HostCallback> host_callbacks(const std::vector<PlanHostCall>& calls,
                                         const CompileOptions& options) {
  std::vector<HostCallback> out;
  for (const PlanHostCall& call : calls)
    out.push_back([call, make = options.host_call](
                      int position,
                      const std::vector<std::vector<uint8_t>>& arguments,
                      std::vector<std::vector<uint8_t>>& given) -> Status {
      std::vector<HostArray> operands, results;
      for (size_t i = 0; i < arguments.size(); ++i) {
        const std::vector<uint8_t>& from = arguments[i];
        std::vector<uint8_t>& to = operands.emplace_back(call.types[i]).bytes;
        to.reserve(from.size());
        in_pieces(static_cast<int64_t>(from.size()), tuning().copy_grain,
                  [&](int64_t begin, int64_t end) {
                    to.insert(to.end(), from.begin() + begin,
                              from.begin() + end);
                  });
      }
      for (size_t i = 0; i < given.size(); ++i)
        results.push_back({ir::result_type(call.node, static_cast<int>(i)),
                           std::move(given[i])});
      TRY(call_host(make, call.node, position, operands, results));
      for (size_t i = 0; i < given.size(); ++i)
        given[i] = std::move(results[i].bytes);
      return Unit{};
    });
  return out;
}

/// No address space holds more; sizes below it can be computed with.
constexpr int64_t most_bytes = int64_t{1} << 46;

/// A node whose array is larger than any memory.
const ir::Node* too_large(const ir::Graph& graph) {
  for (const ir::Node& node : graph.nodes) {
    const ir::Node* inside = nullptr;
    if (const auto* loop = std::get_if<ir::LoopAttrs>(&node.attrs)) {
      if (loop->condition) inside = too_large(*loop->condition);
      if (!inside) inside = too_large(*loop->body);
    }
    if (const auto* branch = std::get_if<ir::IfAttrs>(&node.attrs)) {
      inside = too_large(*branch->then_graph);
      if (!inside) inside = too_large(*branch->else_graph);
    }
    if (inside) return inside;
    if (node.type.bytes() > most_bytes) return &node;
  }
  return nullptr;
}

/// Whether an input of the map lies on each device as a whole.
bool is_whole(const MemberGraph& map, size_t input) {
  return std::ranges::count(input_cuts(map, input), -1) == std::ssize(map.mesh);
}

/// By what a program is found again.
std::string key_of(const ir::Graph& graph, const MemberGraph& map,
                   const CompileOptions& options) {
  std::string key = fmt::format(
      "{} {} {} {} {}", options.devices, options.checked, options.one_memory,
      options.own_devices, options.target.to_string());
  // Collectives of the graph are over axes of the mesh, if there are no maps.
  for (const MeshAxis& axis : map.mesh)
    if (map.axes.empty())
      key += fmt::format(" {}:{}", axis.size, fmt::join(axis.ids, ","));
  key += '\n';
  for (const bool donated : options.donated) key += donated ? '1' : '0';
  key += '\n';
  for (const bool same : options.same) key += same ? '1' : '0';
  return key + '\n' + ir::print(graph);
}

struct CachedProgram {
  std::shared_ptr<const Program> program;
  std::vector<PlanHostCall> host_calls;
  CompileStats stats;
};

/// For the message that there is not so much.
void describe_memory(const Plan& plan, Program& program) {
  int64_t largest = 0;
  for (size_t i = 0; i < plan.buffers.size(); ++i) {
    const PlanBuffer& buffer = plan.buffers[i];
    const Slot& slot = program.slots[i];
    if (!buffer.type) continue;
    const auto contents = [&] {
      return Program::Contents{buffer.type->to_string(), buffer.source};
    };
    if (slot.home == Slot::Home::arena && slot.bytes > largest) {
      largest = slot.bytes;
      program.in_arena = contents();
    } else if (slot.home == Slot::Home::output) {
      const auto index = static_cast<size_t>(slot.index);
      if (program.in_outputs.size() <= index)
        program.in_outputs.resize(index + 1);
      program.in_outputs[index] = contents();
    }
  }
}

}  // namespace

struct Compiler::State {
  explicit State(CompilerOptions options)
      : cpu({.vector_bytes = options.vector_bytes,
             .profile = options.on_code != nullptr},
            std::move(options.cache)),
        gpu(std::move(options.lines)),
        on_code(std::move(options.on_code)) {}

  std::mutex cache_mutex;    // programs
  std::mutex compile_mutex;  // the rest
  LruCache<CachedProgram> programs{tuning().most_cached_programs};
  CpuGenerator cpu;
  GpuGenerator gpu;
  CompileObserver observer;
  const CodeObserver on_code;
  std::atomic<int64_t> programs_compiled{0};

  /// What each device runs, of `map`.
  ir::Graph device_graph(const MemberGraph& map, const CompileOptions& options);
  Result<CachedProgram> compile(const ir::Graph& graph,
                                const std::vector<MeshAxis>& mesh,
                                const CompileOptions& options);
  Generator& generator(DeviceKind kind) {
    switch (kind) {
      case DeviceKind::cpu: return cpu;
      case DeviceKind::gpu: return gpu;
    }
    __builtin_unreachable();
  }
  CodeText text_wanted() const {
    return {observer.wants_llvm, observer.wants_assembly};
  }
  Status dump_gpu_code(const ir::Graph& optimised,
                       const CompileOptions& options);
};

/// With the capabilities that code is generated for.
CodeTarget known(const CodeTarget& target) {
  std::set<int> out;
  for (int capability : target.capabilities)
    out.insert(code_capability(capability));
  return {target.kind, {out.begin(), out.end()}};
}

/// Shows the code for GPUs of a program that is compiled for the CPU.
Status Compiler::State::dump_gpu_code(const ir::Graph& optimised,
                                      const CompileOptions& options) {
  CodeText dump = text_wanted();
  Plan plan = fuse(optimised, options.checked, gpu.lowering());
  join_reductions(plan.steps);
  join_kernels(plan.steps, true);
  const CodeTarget target{DeviceKind::gpu, {observer.capability}};
  TRY(gpu.generate(plan, options.devices, target, &dump));
  observer.dump(dump);
  return Unit{};
}

ir::Graph Compiler::State::device_graph(const MemberGraph& map,
                                        const CompileOptions& options) {
  const std::vector<MeshAxis> line = {{options.devices, {}}};
  return for_devices(map, map.mesh.empty() ? line : map.mesh,
                     generator(options.target.kind).plain_collectives(),
                     observer.after_pass);
}

namespace {
/// What a compiler makes.
struct CompiledProgram : Program {
  std::vector<StoredArray> stored;
};
}  // namespace

const std::vector<StoredArray>& stored_arrays(const Program& program) {
  return static_cast<const CompiledProgram&>(program).stored;
}

Result<CachedProgram> Compiler::State::compile(
    const ir::Graph& graph, const std::vector<MeshAxis>& mesh,
    const CompileOptions& options) {
  if (const ir::Node* node = too_large(graph)) {
    Error error{Error::Kind::out_of_memory,
                fmt::format("no memory holds {}", node->type.to_string())};
    error.source = node->source;
    return error;
  }
  const auto start = std::chrono::steady_clock::now();
  CodeText dump = text_wanted();
  CachedProgram result;
  Generator& generator = this->generator(options.target.kind);
  const ir::Graph optimised = optimise(graph, observer.after_pass);
  if (observer.capability && observer.dump)
    TRY(dump_gpu_code(optimised, options));
  CodeText* shown = observer.dump && !observer.capability ? &dump : nullptr;
  Plan plan = fuse(optimised, options.checked, generator.lowering());
  if (options.target.kind == DeviceKind::cpu && options.devices > 1 &&
      !options.same.empty())
    do_once(plan, options.same);
  std::vector<StoredArray> stored = stored_arrays(plan);
  const bool on_cpus = options.target.kind == DeviceKind::cpu;
  if (on_cpus) join_row_sums(plan.steps, generator.lowering().machine());
  if (!on_cpus) join_reductions(plan.steps);
  join_kernels(plan.steps, !on_cpus);
  if (!options.one_memory) overlap_collectives(plan);
  MemoryPlan memory = plan_memory(plan, options.donated, on_cpus);
  mark_overwriting(plan.steps, memory.slots);
  const bool some = on_cpus && options.own_devices > 0;
  auto compiled =
      TRY(generator.generate(plan, some ? options.own_devices : options.devices,
                             known(options.target), shown));

  auto program = std::make_shared<CompiledProgram>();
  program->stored = std::move(stored);
  program->slots = std::move(memory.slots);
  program->inputs = plan.inputs;
  program->outputs = plan.outputs;
  program->constants = std::move(plan.constants);
  program->arena_bytes = memory.arena_bytes;
  program->shared_arena_bytes = memory.shared_arena_bytes;
  describe_memory(plan, *program);
  program->overwritten = std::move(memory.overwritten);
  for_each_copied_update(plan.steps, [&](uint32_t source, int64_t bytes) {
    if (bytes >= tuning().large_update_bytes)
      program->copied_updates.push_back({source, bytes});
  });
  program->devices = options.devices;
  StepWriter writer(generator, options.devices, mesh, plan, compiled, on_code,
                    *program, result.stats);
  program->steps = writer.write(plan.steps);
  auto codes = std::make_shared<std::vector<std::shared_ptr<LoadedCode>>>();
  for (auto& [key, kernel] : compiled) codes->push_back(kernel.code);
  program->code = codes;
  if (shown) observer.dump(dump);
  result.program = std::move(program);
  result.host_calls = std::move(plan.host_calls);
  result.stats.seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - start)
          .count();
  ++programs_compiled;
  return result;
}

Compiler::Compiler(CompilerOptions options)
    : state_(std::make_unique<State>(std::move(options))) {}
Compiler::~Compiler() = default;

Result<std::shared_ptr<const Program>> Compiler::compile(
    const ir::Graph& graph, const CompileOptions& options,
    CompileStats* stats) {
  return compile(MemberGraph{graph, {}, {}}, options, stats);
}

Result<std::shared_ptr<const Program>> Compiler::compile(
    const MemberGraph& map, const CompileOptions& given, CompileStats* stats) {
  CompileOptions options = given;
  if (options.one_memory && !map.mesh.empty() && !map.axes.empty())
    for (size_t i = 0; i < map.graph.inputs.size(); ++i)
      options.same.push_back(is_whole(map, i));
  // What no map is around is found by the graph as it is: statements run often.
  // The axes of a map made anew have other ids, its devices' graph has none.
  std::optional<ir::Graph> graph;
  if (!map.axes.empty()) graph = state_->device_graph(map, options);
  const std::string key = key_of(graph ? *graph : map.graph, map, options);
  const bool observed = state_->observer.after_pass || state_->observer.dump;
  auto finish = [&](const CachedProgram& cached) {
    if (stats) *stats = cached.stats;
    if (cached.host_calls.empty()) return cached.program;
    auto own = std::make_shared<CompiledProgram>(
        static_cast<const CompiledProgram&>(*cached.program));
    own->host_calls = host_callbacks(cached.host_calls, options);
    return std::shared_ptr<const Program>(std::move(own));
  };
  auto find = [&]() -> std::optional<CachedProgram> {
    std::lock_guard lock(state_->cache_mutex);
    const CachedProgram* known =
        observed ? nullptr : state_->programs.find(key);
    if (known && options.recorder) options.recorder->count_cache_hit();
    return known ? std::optional(*known) : std::nullopt;
  };
  if (auto known = find()) return finish(*known);
  std::lock_guard lock(state_->compile_mutex);
  if (auto known = find()) return finish(*known);  // by another thread
  const Recording recording(options.recorder, Recorder::Kind::compile,
                            Recorder::host);
  if (!graph) graph = state_->device_graph(map, options);
  const CachedProgram compiled = TRY(unless_stopped([&] {
    std::optional<Result<CachedProgram>> result;
    on_deep_stacks(1, [&](size_t) {
      result = state_->compile(*graph, map.mesh, options);
    });
    return std::move(*result);
  }));
  {
    std::lock_guard cache_lock(state_->cache_mutex);
    state_->programs.put(key, compiled, 1);
  }
  return finish(compiled);
}

int64_t Compiler::programs_compiled() const {
  return state_->programs_compiled;
}
int64_t Compiler::kernels_generated() const {
  std::lock_guard lock(state_->compile_mutex);
  return state_->cpu.kernels_generated() + state_->gpu.kernels_generated();
}

int64_t Compiler::kernels_found() const {
  std::lock_guard lock(state_->compile_mutex);
  return state_->cpu.kernels_found();
}
void Compiler::observe(CompileObserver observer) {
  state_->observer = std::move(observer);
}

}  // namespace unisono::jit
