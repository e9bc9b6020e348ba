#include "jit/target/generate_cpu.h"

#include <fmt/format.h>
#include <llvm/IR/LLVMContext.h>
#include <llvm/IR/Module.h>
#include <llvm/Support/raw_ostream.h>
#include <llvm/Transforms/Utils/Cloning.h>

#include <algorithm>
#include <cctype>
#include <iterator>
#include <limits>
#include <optional>
#include <sstream>
#include <string_view>
#include <thread>

#include "jit/emit/dot.h"
#include "jit/emit/emit.h"
#include "jit/kernel/group.h"
#include "jit/kernel/schedule.h"
#include "runtime/files/build_id.h"
#include "runtime/stop.h"
#include "runtime/tuning/tuning.h"

namespace unisono::jit {
namespace {

size_t threads_for(size_t kernels) {
  const size_t processors = std::max(1u, std::thread::hardware_concurrency());
  return std::clamp<size_t>(
      kernels / tuning().least_kernels_a_thread, 1,
      std::min(processors, tuning().most_compile_threads));
}

/// Grows as the time that LLVM takes for it.
size_t weight(const Request& request) {
  const auto* kernel = std::get_if<const Kernel*>(&request);
  if (!kernel) return tuning().dot_weight;
  size_t total = 16;
  for (const Nest& nest : (*kernel)->nests)
    for (const Expr& expr : nest.exprs) total += jit::weight(expr);
  return total;
}

/// Whether all its loops go along one axis, element by element.
bool is_plain(const Request& request) {
  const auto* kernel = std::get_if<const Kernel*>(&request);
  return kernel && std::ranges::all_of((*kernel)->nests, [](const Nest& nest) {
           return nest.extents.size() <= 1 && nest.reductions.empty() &&
                  !nest.scan && !nest.scatter && !nest.turns;
         });
}

std::vector<EmittedKernel> emit(llvm::Module& module, const std::string& name,
                                const KeyedRequest& what, Machine machine) {
  if (what.sharers > 0)
    machine.last_level_cache /= what.sharers;
  else
    machine.last_level_cache = std::numeric_limits<int64_t>::max();
  if (const auto* kernel = std::get_if<const Kernel*>(&what.request))
    return {emit_kernel(module, name, **kernel, machine)};
  const DotTask& task = *std::get<const DotTask*>(what.request);
  EmittedDot dot = emit_dot(module, name, task.shape, machine.vector_bytes);
  std::vector<EmittedKernel> out;
  for (const auto& launch : dot.launches)
    out.push_back({launch.name, launch.units, launch.grain});
  return out;
}

/// As one module, though code is made of parts.
std::string llvm_text(std::span<const KeyedRequest> all, Target& target) {
  llvm::LLVMContext context;
  llvm::Module module("kernels", context);
  target.prepare(module);
  for (size_t i = 0; i < all.size(); ++i) {
    poll_stop();
    emit(module, fmt::format("kernel{}", i), all[i], target.machine());
  }
  std::string out;
  llvm::raw_string_ostream(out) << module;
  return out;
}

/// Assembly whose local labels (`.L`...) are those of no other part.
std::string with_own_labels(const std::string& text, size_t part) {
  const std::string own = fmt::format(".L{}_", part);
  auto in_name = [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) || c == '_' ||
           c == '.' || c == '$';
  };
  std::string out;
  size_t done = 0;
  for (size_t at = text.find(".L"); at != std::string::npos;
       at = text.find(".L", at + 2)) {
    if (at > 0 && in_name(text[at - 1])) continue;
    out.append(text, done, at - done).append(own);
    done = at + 2;
  }
  return out.append(text, done);
}

}  // namespace

std::string key_of(const Kernel& kernel) { return print(kernel); }
std::string key_of(const DotTask& task) {
  const DotShape& s = task.shape;
  std::string view;
  for (const auto* axes : {&s.a_rows, &s.a_columns}) {
    view += view.empty() ? "" : ";";
    for (const DotShape::Axis& axis : *axes)
      view += fmt::format(" {} by {}", axis.extent, axis.stride);
  }
  return fmt::format(
      "{} dot {} times {} x {} x {}, a at {} by {} {} {}{}, b at {} by {} {} "
      "{}\n",
      name(s.dtype), s.batch, s.m, s.n, s.k, s.a_offset, s.a_batch, s.a_row,
      s.a_column, view, s.b_offset, s.b_batch, s.b_row, s.b_column);
}

const Lowering& CpuGenerator::lowering() {
  if (!lowering_) lowering_.emplace(target(0).machine());
  return *lowering_;
}

Target& CpuGenerator::target(size_t number) {
  while (targets_.size() <= number)
    targets_.push_back(make_cpu_target(options_));
  return *targets_[number];
}

namespace {

/// The code of some kernels: an object file, and the launches of each.
struct Object {
  std::vector<std::vector<EmittedKernel>> kernels;
  std::vector<char> code;
};

/// As a file: lines of launches, an empty one, and the code.
std::vector<uint8_t> to_bytes(const Object& object) {
  std::string text;
  for (const auto& launches : object.kernels) {
    text += fmt::format("{}", launches.size());
    for (const EmittedKernel& kernel : launches)
      text += fmt::format(" {} {} {}", kernel.name, kernel.units, kernel.grain);
    text += '\n';
  }
  text += '\n';
  std::vector<uint8_t> bytes(text.begin(), text.end());
  bytes.insert(bytes.end(), object.code.begin(), object.code.end());
  return bytes;
}

/// Nothing if the file is not such a one, of so many kernels.
std::optional<Object> from_bytes(std::span<const uint8_t> bytes,
                                 size_t kernels) {
  constexpr std::string_view end = "\n\n";
  const auto found =
      std::search(bytes.begin(), bytes.end(), end.begin(), end.end());
  if (found == bytes.end()) return std::nullopt;
  std::istringstream text(std::string(bytes.begin(), found));
  Object out;
  for (size_t i = 0; i < kernels; ++i) {
    size_t launches = 0;
    constexpr size_t most = 3;
    if (!(text >> launches) || launches > most) return std::nullopt;
    for (auto& kernel = out.kernels.emplace_back(); launches > 0; --launches) {
      EmittedKernel& launch = kernel.emplace_back();
      if (!(text >> launch.name >> launch.units >> launch.grain))
        return std::nullopt;
    }
  }
  out.code.assign(found + end.size(), bytes.end());
  return out;
}

Result<std::vector<Compiled>> load(const Object& object, Target& target) {
  std::vector<std::string> names;
  for (const auto& launches : object.kernels)
    for (const EmittedKernel& kernel : launches) names.push_back(kernel.name);
  auto code = TRY(target.load(object.code, names));
  std::vector<Compiled> out;
  for (const auto& launches : object.kernels) {
    Compiled& compiled = out.emplace_back();
    for (const EmittedKernel& kernel : launches) {
      auto function =
          reinterpret_cast<KernelFunction>(code->symbol(kernel.name));
      if (!function)
        return Error{Error::Kind::compile_failed, "a kernel has no code"};
      compiled.launches.push_back(
          {.function = function,
           .units = kernel.units,
           .grain = kernel.grain,
           .code_bytes = code->code_bytes(kernel.name)});
    }
    compiled.code = code;
  }
  return out;
}

}  // namespace

CpuGenerator::CpuGenerator(CpuTargetOptions options,
                           std::shared_ptr<DiskCache> cache)
    : options_(std::move(options)),
      // Another build may make other code of the same kernel.
      cache_(build_id().empty() || options_.profile ? nullptr
                                                    : std::move(cache)) {}

Result<std::vector<Compiled>> CpuGenerator::generate_module(
    std::span<const KeyedRequest> fresh, size_t first, Target& target,
    CodeText* dump) {
  std::string key;
  if (cache_ && !dump) {
    key = fmt::format("code of build {} for {}from {}\n{}\n", build_id(),
                      target.description(), first, tuning_fingerprint());
    for (const KeyedRequest& one : fresh) key += one.key + '\n';
    if (const auto bytes = cache_->find(key)) {
      if (const auto object = from_bytes(*bytes, fresh.size())) {
        if (auto kept = load(*object, target)) {
          kernels_found_ += static_cast<int64_t>(fresh.size());
          return kept;
        }
      }
      cache_->remove(key);
    }
  }
  llvm::Module module("kernels", target.context());
  target.prepare(module);
  const bool plain = std::ranges::all_of(
      fresh, [](const KeyedRequest& one) { return is_plain(one.request); });
  Object object;
  for (const KeyedRequest& one : fresh)
    object.kernels.push_back(
        emit(module, fmt::format("kernel{}", first + object.kernels.size()),
             one, target.machine()));
  if (dump && dump->wants_assembly) {
    auto text = TRY(target.assembly(*llvm::CloneModule(module), plain));
    dump->assembly += first == 0 ? text : with_own_labels(text, first);
    poll_stop();
  }
  object.code = TRY(target.object(module, plain));
  auto out = TRY(load(object, target));
  kernels_generated_ += static_cast<int64_t>(fresh.size());
  if (!key.empty()) cache_->keep(key, to_bytes(object));
  return out;
}

Result<std::vector<Compiled>> CpuGenerator::generate_modules(
    std::span<const KeyedRequest> fresh, Target& target, CodeText* dump) {
  std::vector<Compiled> out;
  if (dump && dump->wants_llvm) dump->llvm += llvm_text(fresh, target);
  while (out.size() < fresh.size()) {
    poll_stop();
    const std::span<const KeyedRequest> rest = fresh.subspan(out.size());
    size_t count = 1, total = weight(rest[0].request);
    while (count < rest.size()) {
      total += weight(rest[count].request);
      if (total > tuning().most_module_weight) break;
      ++count;
    }
    auto part =
        TRY(generate_module(rest.first(count), out.size(), target, dump));
    std::ranges::move(part, std::back_inserter(out));
  }
  return out;
}

namespace {

bool has_meetings(const PlanSteps& steps) {
  return std::ranges::any_of(steps, [](const PlanStep& step) {
    if (std::holds_alternative<CollectiveStep>(step.what)) return true;
    if (const auto* loop = std::get_if<LoopTask>(&step.what))
      return (loop->condition && has_meetings(*loop->condition)) ||
             has_meetings(*loop->body);
    const auto* choice = std::get_if<IfTask>(&step.what);
    return choice && (has_meetings(*choice->then_steps) ||
                      has_meetings(*choice->else_steps));
  });
}

/// How many devices share the cache for what the kernel stores: of arrays that
/// one device's stores would leave there, all devices' are too many. 0: stores
/// go where something has just been read, and so to the cache.
int sharers_of(const Request& request, int devices, int64_t cache) {
  const auto* kernel = std::get_if<const Kernel*>(&request);
  if (!kernel) return 1;
  const int64_t bytes = stored_bytes(**kernel), least = cache / devices / 2;
  if ((*kernel)->overwrites) return bytes >= least ? 0 : 1;
  return bytes < cache / 2 && bytes >= least ? devices : 1;
}

}  // namespace

/// Devices that meet take turns: what one has stored, the others' stores have
/// driven out of the cache before it is read.
Result<CompiledKernels> CpuGenerator::generate(const Plan& plan, int devices,
                                               const CodeTarget&,
                                               CodeText* dump) {
  return generate(requests_of(plan), dump,
                  has_meetings(plan.steps) ? devices : 1);
}

Result<CompiledKernels> CpuGenerator::generate(
    const std::vector<Request>& requests, CodeText* dump, int sharers) {
  CompiledKernels result;
  std::vector<KeyedRequest> fresh;
  std::vector<std::string> keys;
  for (const Request& request : requests) {
    poll_stop();
    std::string key =
        std::visit([](const auto* what) { return key_of(*what); }, request);
    if (dump) dump->kernels += key;
    if (result.contains(key)) continue;
    const int shared =
        sharers_of(request, sharers, target(0).machine().last_level_cache);
    const std::string kept =
        shared == 1 ? key : key + fmt::format("cache of {}\n", shared);
    const Compiled* known = dump ? nullptr : kernels_.find(kept);
    result[key] = known ? *known : Compiled{};
    if (known) continue;
    fresh.push_back({kept, request, shared});
    keys.push_back(std::move(key));
  }
  if (fresh.empty()) return result;

  const size_t threads = dump ? 1 : threads_for(fresh.size());
  target(threads - 1);  // made here, not by the threads
  auto begin = [&](size_t thread) { return fresh.size() * thread / threads; };
  std::vector<std::optional<Result<std::vector<Compiled>>>> parts(threads);
  auto generate_part = [&](size_t thread) {
    const std::span<const KeyedRequest> own = std::span(fresh).subspan(
        begin(thread), begin(thread + 1) - begin(thread));
    parts[thread] = generate_modules(own, *targets_[thread], dump);
  };
  if (threads == 1)
    generate_part(0);
  else
    on_deep_stacks(threads, generate_part);
  for (size_t thread = 0; thread < threads; ++thread) {
    auto& part = *parts[thread];
    if (!part) return part.error();
    for (size_t i = 0; i < part->size(); ++i) {
      const std::string& key = fresh[begin(thread) + i].key;
      // Text and code grow alike.
      kernels_.put(key, (*part)[i], 4 * static_cast<int64_t>(key.size()));
      result[keys[begin(thread) + i]] = std::move((*part)[i]);
    }
  }
  return result;
}

}  // namespace unisono::jit
