#include "jit/bytecode/bytecode.h"

#include <cstring>

#include "jit/bytecode/steps.h"
#include "jit/reference/nodes.h"
#include "runtime/check.h"
#include "runtime/execute/program.h"
#include "runtime/stop.h"
#include "runtime/tuning/tuning.h"

namespace unisono::jit {
namespace {

using bytecode::Code;
using bytecode::Place;
using bytecode::Run;
using reference::Value;

Result<Value> constant(const ir::Node& node) {
  return reference::run_node(node, {}, true);
}

Value taken(const Place& place, const ir::Type& type, Run& run,
            const std::vector<uint64_t>& registers) {
  if (place.scalar)
    return Value::view(
        reinterpret_cast<const uint8_t*>(&registers[place.index]),
        byte_size(type.dtype));
  return run.slots[place.index];
}

Result<Bytecode::Outcome> run_code(const Code& code, std::vector<Value> inputs,
                                   const ReferenceOptions& options,
                                   Bytecode::Turns* turns) {
  CHECK(inputs.size() == code.inputs.size());
  Run run;
  run.checked = options.checked;
  run.code = &code;
  run.options = &options;
  run.slots.resize(code.slots);
  run.fuel = tuning().steps_between_looks;
  Bytecode::Turns uncounted;
  run.turns = turns ? turns : &uncounted;
  std::vector<uint64_t> registers = code.registers;
  for (const auto& [slot, node] : code.constants)
    run.slots[slot] = TRY(constant(*node));
  for (size_t i = 0; i < inputs.size(); ++i) {
    const Place& place = code.inputs[i];
    if (place.scalar)
      std::memcpy(&registers[place.index], inputs[i].data(),
                  static_cast<size_t>(inputs[i].bytes()));
    else
      run.slots[place.index] = std::move(inputs[i]);
  }
  inputs.clear();

  code.steps[0].function(code.steps.data(), registers.data(), &run);
  if (run.error_of_node) return std::move(*run.error_of_node);
  if (run.failed) {
    Error error = checked_error(static_cast<ErrorWord::Code>(run.error.fault),
                                run.error.value, 0);
    error.source = code.sources[run.failed - code.steps.data()];
    return error;
  }

  Bytecode::Outcome out;
  out.bytes_copied = run.bytes_copied;
  for (size_t i = 0; i < code.outputs.size(); ++i)
    out.values.push_back(
        taken(code.outputs[i], code.output_types[i], run, registers));
  return out;
}

}  // namespace

Result<Bytecode::Outcome> Bytecode::run_values(std::vector<Value> inputs,
                                               const ReferenceOptions& options,
                                               Turns* turns) const {
  return unless_stopped(
      [&] { return run_code(code_, std::move(inputs), options, turns); });
}

Result<std::vector<HostArray>> Bytecode::run(
    const std::vector<HostArray>& inputs,
    const ReferenceOptions& options) const {
  std::vector<Value> values;
  for (const HostArray& array : inputs)
    values.push_back(Value::view(array.bytes.data(), array.type.bytes()));
  auto outcome = TRY(run_values(std::move(values), options));
  std::vector<HostArray> out;
  for (size_t i = 0; i < outcome.values.size(); ++i) {
    const ir::Type& type = code_.output_types[i];
    HostArray& array = out.emplace_back(HostArray{type, {}});
    array.bytes.resize(static_cast<size_t>(type.bytes()));
    reference::copy_dense(outcome.values[i], type, array.bytes.data());
  }
  return out;
}

}  // namespace unisono::jit
