#include "lang/maps/executable.h"

#include <fmt/format.h>

#include <algorithm>

#include "jit/plan/stored.h"
#include "lang/context/line_times.h"
#include "lang/context/processes.h"
#include "lang/context/under_way.h"
#include "lang/maps/map_mesh.h"
#include "lang/ops/print_value.h"
#include "lang/source/stdlib.h"
#include "runtime/check.h"
#include "runtime/cluster/cluster_device.h"

namespace unisono::lang {
namespace {

using Arrays = std::vector<unisono::Array>;
using Inputs = std::span<const unisono::Array* const>;
using Blocks = std::vector<DeviceBlocks>;

/// What a host_call node means: a line, or a function of the host.
Status call_host(Machine& machine, const Device* named, const ir::Node& node,
                 const std::vector<jit::HostArray>& operands,
                 std::vector<jit::HostArray>& results) {
  const auto& call = ir::attrs<ir::HostCallAttrs>(node);
  if (!call.function.empty())
    return call_host_function(machine, call, operands, results);
  const std::string line = render_host_call(call, operands) + "\n";
  TRY(settle(machine));
  machine.output(named ? fmt::format("[{}] {}", named->name(), line) : line);
  return Unit{};
}

/// A block that something else holds, too, becomes a copy, and so does one in
/// memory that is borrowed (borrowed.h).
Status make_own(std::shared_ptr<Buffer>& block, Device& device) {
  if (block.use_count() == 1 && block->device() == &device) return Unit{};
  auto copy = device.allocate(block->bytes());
  if (!copy) {
    Error error = copy.error();
    error.untouched = true;
    error.message += "; it is for a copy of an array that is given away";
    return error;
  }
  TRY(device.copy_from_peer(copy->data(), device, block->data(),
                            block->bytes()));
  block = std::make_shared<Buffer>(std::move(*copy));
  return Unit{};
}

/// The blocks of an input that the program writes to. Of a shared one all
/// devices have the first block.
Status make_own(const Executable& executable, int input, DeviceBlocks& blocks) {
  const unisono::Program& program = *executable.program;
  if (!program.slots[program.inputs[input]].shared) {
    for (size_t i = 0; i < blocks.size(); ++i)
      TRY(make_own(blocks[i], *executable.devices[i]));
    return Unit{};
  }
  std::shared_ptr<Buffer> first = std::move(blocks[0]);
  const size_t count = blocks.size();
  blocks.clear();
  Status done = make_own(first, *executable.devices[0]);
  blocks.assign(count, first);
  return done;
}

/// With Machine::compile_only, what a run would give, without elements.
Blocks absent_blocks(const Executable& executable) {
  return Blocks(executable.outputs.size(),
                DeviceBlocks(executable.devices.size()));
}

Arrays as_arrays(const Executable& executable, Blocks outputs) {
  Arrays results;
  results.reserve(outputs.size());
  for (size_t i = 0; i < outputs.size(); ++i) {
    const std::shared_ptr<const ArrayLayout>& layout = executable.outputs[i];
    outputs[i].resize(layout->sharding.devices.size());
    results.emplace_back(layout, std::move(outputs[i]));
  }
  return results;
}

/// What members of other processes have printed comes now.
Status after_run(const Machine& machine, const Executable& executable) {
  if (executable.program->host_calls.empty()) return Unit{};
  return settle(machine);
}

using Left = std::unique_ptr<RunUnderWay>*;

RunOptions options_of(Walk& walk, Left left) {
  RunOptions options = run_options(walk.machine());
  options.ranges = ranges_of(walk);
  options.under_way = left;
  return options;
}

Result<Arrays> run_compiled(Walk& walk, const Executable& executable,
                            Inputs inputs, Left left) {
  const Machine& machine = walk.machine();
  if (machine.compile_only)
    return as_arrays(executable, absent_blocks(executable));
  CHECK(executable.program->overwritten.empty());
  std::vector<const DeviceBlocks*> blocks;
  blocks.reserve(inputs.size());
  for (const unisono::Array* array : inputs) blocks.push_back(&array->blocks());
  auto outputs =
      TRY(unisono::run(*machine.runtime, *executable.program,
                       executable.devices, blocks, options_of(walk, left)));
  TRY(after_run(machine, executable));
  return as_arrays(executable, std::move(outputs));
}

Result<Blocks> run_overwriting(Walk& walk, const Executable& executable,
                               Blocks& blocks, Left left) {
  const Machine& machine = walk.machine();
  if (machine.compile_only) return absent_blocks(executable);
  for (const int input : executable.program->overwritten)
    TRY(make_own(executable, input, blocks[input]));
  auto outputs =
      unisono::run(*machine.runtime, *executable.program, executable.devices,
                   blocks, options_of(walk, left));
  if (outputs) TRY(after_run(machine, executable));
  return outputs;
}

/// Of a program that writes to some of the inputs.
Result<Arrays> run_overwriting(Walk& walk, const Executable& executable,
                               Arrays& inputs, Left left) {
  Blocks blocks;
  blocks.reserve(inputs.size());
  for (const unisono::Array& array : inputs) blocks.push_back(array.blocks());
  inputs.clear();  // else a block that it writes to would have two owners
  auto outputs = run_overwriting(walk, executable, blocks, left);
  if (outputs) return as_arrays(executable, std::move(*outputs));
  if (outputs.error().untouched) {
    for (size_t i = 0; i < blocks.size(); ++i) {
      const ArrayLayout& input = executable.inputs[i];
      inputs.emplace_back(input.dtype, input.shape, input.sharding,
                          std::move(blocks[i]));
    }
  }
  return outputs.error();
}

/// A result of the reference evaluator, placed as compiled code leaves it.
Result<unisono::Array> to_devices(const jit::HostArray& host,
                                  const ArrayLayout& output,
                                  CopyCounter& counter) {
  Device& first = *output.sharding.devices[0];
  auto array =
      array_from_host(first, output.dtype, output.shape, host.bytes.data());
  if (!array || array->sharding() == output.sharding) return array;
  return reshard(*array, output.sharding, &counter);
}

/// Members as compiled code counts them.
Error by_device(Error error, const jit::MemberGraph& map) {
  if (error.member < 0) return error;
  error.device = jit::device_of(map, error.member);
  // Members of several maps have no number.
  error.member =
      map.axes.size() == 1 ? error.member % map.axes[0].per_device : -1;
  return error;
}

Result<Arrays> run_reference(Machine& machine, const Executable& executable,
                             Inputs inputs) {
  const jit::MemberGraph& map = *executable.member;
  CopyCounter counter{.recorder = machine.recorder};
  std::vector<jit::HostArray> hosts;
  hosts.reserve(inputs.size());
  for (const unisono::Array* array : inputs) {
    auto bytes = TRY(array_to_host(*array, &counter));
    hosts.push_back(
        {{array->dtype(), {array->shape().begin(), array->shape().end()}},
         std::move(bytes)});
  }
  jit::ReferenceOptions options;
  options.checked = machine.checked;
  const auto device_of = [&](int64_t member) {
    return jit::device_of(map, std::max<int64_t>(member, 0));
  };
  options.host_call = [&](const ir::Node& node, int64_t member,
                          const std::vector<jit::HostArray>& operands,
                          std::vector<jit::HostArray>& results) {
    const Device* named = executable.names_devices
                              ? executable.devices[device_of(member)]
                              : nullptr;
    return call_host(machine, named, node, operands, results);
  };
  options.device_of = device_of;
  const auto outputs = jit::evaluate_map(map, hosts, options);
  if (!outputs) return by_device(outputs.error(), map);
  Arrays results;
  results.reserve(outputs->size());
  for (size_t i = 0; i < outputs->size(); ++i) {
    auto array =
        TRY(to_devices((*outputs)[i], *executable.outputs[i], counter));
    results.push_back(std::move(array));
  }
  return results;
}

Arrays without_elements(const Executable& executable) {
  Arrays results;
  for (const auto& output : executable.outputs)
    results.push_back(
        Walk::absent(output->dtype, output->shape, output->sharding));
  return results;
}

}  // namespace

jit::HostCall host_caller(Machine& machine, const Device* named) {
  return [&machine, named](const ir::Node& node, int64_t,
                           const std::vector<jit::HostArray>& operands,
                           std::vector<jit::HostArray>& results) {
    return call_host(machine, named, node, operands, results);
  };
}

namespace {
/// Why kernels are not one, at the line of what is stored between them; what
/// the library computes is the line's that calls it.
void note_stored(Walk& walk, LineTimes& times, const jit::StoredArray& stored) {
  const auto line_of = [&](uint32_t source) -> Span {
    const Span where = walk.source_span(source);
    return where && !is_in_stdlib(where) ? where : Span();
  };
  const Span here = line_of(stored.source), there = line_of(stored.reader);
  const std::string reader =
      there ? fmt::format("line {}", there.file->place(there.begin).line)
            : "another kernel";
  times.note(
      here ? stored.source : 0,
      fmt::format("{:.3g} MB are stored here for {} to read: {}",
                  static_cast<double>(stored.bytes) / 1e6, reader, stored.why));
}
}  // namespace

void compile(Walk& walk, const jit::MemberGraph& map, Executable& executable,
             Span where) {
  Machine& machine = walk.machine();
  jit::CompileOptions options;
  options.devices = static_cast<int>(executable.devices.size());
  options.checked = machine.checked;
  options.one_memory = !unisono::cluster_of(executable.devices);
  if (!options.one_memory)
    options.own_devices = static_cast<int>(std::ranges::count_if(
        executable.devices, [](Device* device) { return is_here(*device); }));
  options.target = code_target(executable.devices);
  if (std::ranges::count(executable.donated, true) > 0)
    options.donated = executable.donated;
  options.recorder = machine.recorder;
  options.host_call = [&machine, devices = executable.devices,
                       named = executable.names_devices](
                          const ir::Node& node, int64_t position,
                          const std::vector<jit::HostArray>& operands,
                          std::vector<jit::HostArray>& results) {
    return call_host(machine, named ? devices[position] : nullptr, node,
                     operands, results);
  };
  LineTimes* times = line_times(walk);
  const LineTime time(times, LineTimes::Part::compile, 0);
  const int64_t before = machine.compiler->programs_compiled();
  auto program = machine.compiler->compile(map, options);
  if (times && machine.compiler->programs_compiled() > before)
    times->count_compilation();
  if (!program) walk.fail(program.error(), where);
  if (times)
    for (const jit::StoredArray& stored : jit::stored_arrays(**program))
      note_stored(walk, *times, stored);
  executable.program = std::move(*program);
  walk.note_copied_updates(*executable.program);
}

Result<Arrays> run(Walk& walk, const Executable& executable, Inputs inputs,
                   Left left) {
  Machine& machine = walk.machine();
  const LineTime time(line_times(walk), LineTimes::Part::devices, 0);
  // Neither decides by what a run before it computed, unless that has not
  // failed.
  const bool asks = executable.program ? left && asks_host(*executable.program)
                                       : executable.member != nullptr;
  if (asks) wait_for_runs(walk, Span());
  if (executable.program) return run_compiled(walk, executable, inputs, left);
  const bool absent = std::ranges::any_of(
      inputs,
      [](const unisono::Array* array) { return Walk::is_absent(*array); });
  if (executable.member && !absent)
    return run_reference(machine, executable, inputs);
  if (absent) return without_elements(executable);
  Arrays empty;
  CopyCounter counter{.recorder = machine.recorder};
  for (const auto& output : executable.outputs) {
    auto array = TRY(to_devices({}, *output, counter));
    empty.push_back(std::move(array));
  }
  return empty;
}

Result<Arrays> run(Walk& walk, const Executable& executable, Arrays& inputs,
                   Left left) {
  if (executable.program && !executable.program->overwritten.empty()) {
    const LineTime time(line_times(walk), LineTimes::Part::devices, 0);
    if (left && asks_host(*executable.program)) wait_for_runs(walk, Span());
    return run_overwriting(walk, executable, inputs, left);
  }
  std::vector<const unisono::Array*> read;
  read.reserve(inputs.size());
  for (const unisono::Array& array : inputs) read.push_back(&array);
  return run(walk, executable, read, left);
}

}  // namespace unisono::lang
