#include "jit/bytecode/steps.h"

#include <algorithm>
#include <cstring>
#include <type_traits>

#include "jit/reference/host_call.h"
#include "jit/reference/nodes.h"
#include "runtime/execute/program.h"
#include "runtime/stop.h"
#include "runtime/tuning/tuning.h"

namespace unisono::jit::bytecode {
namespace {

using reference::Value;

Run& run_of(StepRun* run) { return *static_cast<Run*>(run); }

const Step* at_target(const Step* step) {
  return step + static_cast<int32_t>(step->in[0]);
}

uint32_t source_of(const Run& run, const Step* step) {
  return run.code->sources[step - run.code->steps.data()];
}

void fail(Run& run, const Step* step, Error error) {
  if (error.source == 0) error.source = source_of(run, step);
  run.error_of_node = std::move(error);
  run.failed = step;
}

bool is_stopped(const Run& run) {
  return stop_requested() || (run.options->stop && run.options->stop());
}

/// A value in a register as one of the evaluator's.
Value from_register(uint64_t element, DType dtype) {
  return Value::view(reinterpret_cast<const uint8_t*>(&element),
                     byte_size(dtype));
}

void put(const Place& place, Value value, uint64_t* registers, Run& run) {
  if (!place.scalar) {
    run.slots[place.index] = std::move(value);
    return;
  }
  uint64_t element = 0;
  std::memcpy(&element, value.data(), static_cast<size_t>(value.bytes()));
  registers[place.index] = element;
}

}  // namespace

void end_step(const Step*, uint64_t*, StepRun*) {}

void jump_step(const Step* step, uint64_t* registers, StepRun* run) {
  const Step* next = at_target(step);
  [[clang::musttail]] return next->function(next, registers, run);
}

void jump_unless_step(const Step* step, uint64_t* registers, StepRun* run) {
  const bool taken = static_cast<uint8_t>(registers[step->in[1]]) == 0;
  const Step* next = taken ? at_target(step) : step + 1;
  [[clang::musttail]] return next->function(next, registers, run);
}

/// Looks at the stop flag; false if the run ends.
[[gnu::noinline]] static bool refuel(const Step* step, StepRun* any) {
  Run& run = run_of(any);
  run.fuel = tuning().steps_between_looks;
  if (!is_stopped(run)) return true;
  fail(run, step, stopped_error());
  return false;
}

void turn_step(const Step* step, uint64_t* registers, StepRun* run) {
  const bool again = static_cast<uint8_t>(registers[step->in[1]]) != 0;
  const Step* next = again ? at_target(step) : step + 1;
  if ((run_of(run).fuel -= step->in[2]) < 0 && !refuel(step, run)) return;
  [[clang::musttail]] return next->function(next, registers, run);
}

void count_step(const Step* step, uint64_t* registers, StepRun* run) {
  Bytecode::Turns& turns = *run_of(run).turns;
  const Step* next = ++turns.taken < turns.most ? step + 1 : at_target(step);
  [[clang::musttail]] return next->function(next, registers, run);
}

void copy_step(const Step* step, uint64_t* registers, StepRun* run) {
  registers[step->out] = registers[step->in[0]];
  [[clang::musttail]] return step[1].function(step + 1, registers, run);
}

// Not inlined: a step that keeps no object on the stack is a jump.

[[gnu::noinline]] static void share(const Step* step, Run& run) {
  run.slots[step->out] = run.slots[step->in[0]];
}
[[gnu::noinline]] static void move(const Step* step, Run& run) {
  run.slots[step->out] = std::exchange(run.slots[step->in[0]], Value());
}
[[gnu::noinline]] static void release(const Step* step, Run& run) {
  run.slots[step->in[0]] = Value();
}

void share_step(const Step* step, uint64_t* registers, StepRun* run) {
  share(step, run_of(run));
  [[clang::musttail]] return step[1].function(step + 1, registers, run);
}

void move_step(const Step* step, uint64_t* registers, StepRun* run) {
  move(step, run_of(run));
  [[clang::musttail]] return step[1].function(step + 1, registers, run);
}

void release_step(const Step* step, uint64_t* registers, StepRun* run) {
  release(step, run_of(run));
  [[clang::musttail]] return step[1].function(step + 1, registers, run);
}

// ---- nodes of the reference evaluator --------------------------------------

[[gnu::noinline]] static bool run_node(const Step* step, uint64_t* registers,
                                       StepRun* any) {
  Run& run = run_of(any);
  if (is_stopped(run)) {
    fail(run, step, stopped_error());
    return false;
  }
  const NodeCall& call = run.code->calls[step->in[0]];
  std::vector<Value> scalars;
  scalars.reserve(call.operands.size());
  std::vector<reference::Operand> operands;
  operands.reserve(call.operands.size());
  for (const NodeCall::Operand& operand : call.operands) {
    Value* value = nullptr;
    if (operand.place.scalar)
      value = &scalars.emplace_back(
          from_register(registers[operand.place.index], operand.type.dtype));
    else
      value = &run.slots[operand.place.index];
    operands.push_back({&operand.type, value, operand.dies});
  }
  auto result = reference::run_node(call.node, operands, run.checked);
  if (!result) {
    fail(run, step, result.error());
    return false;
  }
  put(call.results[0], *std::move(result), registers, run);
  return true;
}

void node_step(const Step* step, uint64_t* registers, StepRun* run) {
  if (!run_node(step, registers, run)) return;
  [[clang::musttail]] return step[1].function(step + 1, registers, run);
}

[[gnu::noinline]] static bool call_host_function(const Step* step,
                                                 uint64_t* registers,
                                                 StepRun* any) {
  Run& run = run_of(any);
  // Who prints may wait long for a terminal.
  if (is_stopped(run)) {
    fail(run, step, stopped_error());
    return false;
  }
  const NodeCall& call = run.code->calls[step->in[0]];
  std::vector<HostArray> operands, results;
  for (const NodeCall::Operand& operand : call.operands) {
    const Value value =
        operand.place.scalar
            ? from_register(registers[operand.place.index], operand.type.dtype)
            : run.slots[operand.place.index];
    HostArray& array = operands.emplace_back(HostArray{operand.type, {}});
    array.bytes.resize(static_cast<size_t>(operand.type.bytes()));
    reference::copy_dense(value, operand.type, array.bytes.data());
  }
  for (const ir::Type& type : ir::attrs<ir::HostCallAttrs>(call.node).results)
    results.push_back(
        {type, std::vector<uint8_t>(static_cast<size_t>(type.bytes()))});
  const Status status =
      call_host(run.options->host_call, call.node, -1, operands, results);
  if (!status) {
    fail(run, step, status.error());
    return false;
  }
  for (size_t i = 0; i < call.results.size(); ++i) {
    const HostArray& array = results[i];
    Value value = Value::allocate(array.type.bytes());
    if (!value.ok()) {
      fail(run, step, reference::out_of_memory(array.type));
      return false;
    }
    if (!array.bytes.empty())
      std::memcpy(value.mutable_data(), array.bytes.data(), array.bytes.size());
    put(call.results[i], std::move(value), registers, run);
  }
  return true;
}

void host_step(const Step* step, uint64_t* registers, StepRun* run) {
  if (!call_host_function(step, registers, run)) return;
  [[clang::musttail]] return step[1].function(step + 1, registers, run);
}

// ---- elements of arrays ----------------------------------------------------

namespace {

/// The slot's array becomes its own, and the step is taken once more.
[[gnu::noinline]] bool make_own(const Step* step, Run& run) {
  const ElementPlace& place = run.code->elements[step->in[1]];
  Value& value = run.slots[step->out];
  Value own = Value::allocate(place.array_bytes);
  if (!own.ok()) {
    fail(run, step, reference::out_of_memory(place.type));
    return false;
  }
  reference::copy_dense(value, place.type, own.mutable_data());
  value = std::move(own);
  run.bytes_copied += place.array_bytes;
  return true;
}
void own_step(const Step* step, uint64_t* registers, StepRun* run) {
  if (!make_own(step, run_of(run))) return;
  [[clang::musttail]] return step->function(step, registers, run);
}

template <class Index>
int64_t index_in(uint64_t element) {
  Index index;
  std::memcpy(&index, &element, sizeof index);
  return index;
}

int64_t clamped(int64_t index, int64_t size) {
  return std::clamp<int64_t>(index < 0 ? index + size : index, 0, size - 1);
}

/// Which element, -1 if there is none.
template <class Index, bool one_axis, bool clamps>
int64_t position(const Step* step, const uint64_t* registers,
                 const StepRun* run) {
  if constexpr (one_axis) {
    const int64_t index = index_in<Index>(registers[step->in[2]]);
    const int64_t size = step->number;
    if (static_cast<uint64_t>(index) < static_cast<uint64_t>(size))
      return index;
    if constexpr (clamps) return clamped(index, size);
    return index < 0 && index >= -size ? index + size : -1;
  } else {
    const ElementPlace& place =
        static_cast<const Run*>(run)->code->elements[step->in[1]];
    int64_t at = 0;
    for (size_t i = 0; i < place.sizes.size(); ++i) {
      const int64_t size = place.sizes[i];
      int64_t index = index_in<Index>(registers[place.indexes[i]]);
      if constexpr (clamps) {
        index = clamped(index, size);
      } else {
        if (index < 0) index += size;
        if (static_cast<uint64_t>(index) >= static_cast<uint64_t>(size))
          return -1;
      }
      at += index * place.strides[i];
    }
    return at;
  }
}

/// Ends the run of a step that has no position.
template <class Index>
void outside_step(const Step* step, uint64_t* registers, StepRun* run) {
  const ElementPlace& place = run_of(run).code->elements[step->in[1]];
  for (size_t i = 0; i < place.sizes.size(); ++i) {
    const int64_t index = index_in<Index>(registers[place.indexes[i]]);
    if (index < place.sizes[i] && index >= -place.sizes[i]) continue;
    fail(run_of(run), step,
         checked_error(ErrorWord::index_out_of_bounds, index, place.sizes[i]));
    return;
  }
}

// What happens seldom is a step of its own, so that these keep nothing on the
// stack.

template <class Element, class Index, bool one_axis, bool clamps>
void load(const Step* step, uint64_t* registers, StepRun* run) {
  const int64_t at = position<Index, one_axis, clamps>(step, registers, run);
  if (at < 0) [[unlikely]]
    [[clang::musttail]] return outside_step<Index>(step, registers, run);
  const Value& array = run_of(run).slots[step->in[0]];
  std::memcpy(&registers[step->out],
              array.data() + (array.is_repeated() ? 0 : at * sizeof(Element)),
              sizeof(Element));
  [[clang::musttail]] return step[1].function(step + 1, registers, run);
}

template <class Element, class Index, bool one_axis, bool clamps>
void store(const Step* step, uint64_t* registers, StepRun* run) {
  const int64_t at = position<Index, one_axis, clamps>(step, registers, run);
  if (at < 0) [[unlikely]]
    [[clang::musttail]] return outside_step<Index>(step, registers, run);
  Value& array = run_of(run).slots[step->out];
  if (!array.is_exclusive() || array.is_repeated()) [[unlikely]]
    [[clang::musttail]] return own_step(step, registers, run);
  std::memcpy(array.mutable_data() + at * sizeof(Element),
              &registers[step->in[0]], sizeof(Element));
  [[clang::musttail]] return step[1].function(step + 1, registers, run);
}

/// make.template operator()<Element, Index, one_axis, clamps>() for the place.
template <class Make>
StepFunction with_place(const ElementPlace& place, Make make) {
  const auto with_axes = [&]<class Element, class Index, bool clamps>() {
    return place.sizes.size() == 1
               ? make.template operator()<Element, Index, true, clamps>()
               : make.template operator()<Element, Index, false, clamps>();
  };
  const auto with_clamps = [&]<class Element, class Index>() {
    return place.clamps
               ? with_axes.template operator()<Element, Index, true>()
               : with_axes.template operator()<Element, Index, false>();
  };
  const auto with_index = [&]<class Element>() {
    return place.wide ? with_clamps.template operator()<Element, int64_t>()
                      : with_clamps.template operator()<Element, int32_t>();
  };
  return with_dtype(place.type.dtype, [&]<DType D>() {
    using Storage = typename StorageOf<D>::type;
    if constexpr (sizeof(Storage) == 1)
      return with_index.template operator()<uint8_t>();
    else if constexpr (sizeof(Storage) == 2)
      return with_index.template operator()<uint16_t>();
    else if constexpr (sizeof(Storage) == 4)
      return with_index.template operator()<uint32_t>();
    else
      return with_index.template operator()<uint64_t>();
  });
}

}  // namespace

StepFunction load_step(const ElementPlace& place) {
  return with_place(
      place,
      []<class Element, class Index, bool one, bool clamps>() -> StepFunction {
        return load<Element, Index, one, clamps>;
      });
}

StepFunction store_step(const ElementPlace& place) {
  return with_place(
      place,
      []<class Element, class Index, bool one, bool clamps>() -> StepFunction {
        return store<Element, Index, one, clamps>;
      });
}

}  // namespace unisono::jit::bytecode
