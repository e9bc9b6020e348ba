#pragma once
// The steps that are no element operation, and what they share. See step.h.
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "jit/bytecode/bytecode.h"

namespace unisono::jit::bytecode {

/// A run: what steps find behind their StepRun.
struct Run : StepRun {
  const Code* code = nullptr;
  const ReferenceOptions* options = nullptr;
  std::vector<reference::Value> slots;
  /// Steps until the next look at the stop flag.
  int64_t fuel = 0;
  Bytecode::Turns* turns = nullptr;
  int64_t bytes_copied = 0;
  std::optional<Error> error_of_node;  // which ended the run
};

// Where a step has a `place`, in[0] or `out` is a register or a slot as its
// name says. A target is the number of steps from the step itself, an int32.
void end_step(const Step*, uint64_t*, StepRun*);
/// Goes on at the target in[0].
void jump_step(const Step*, uint64_t*, StepRun*);
/// Goes on at the target in[0] if register in[1] is false.
void jump_unless_step(const Step*, uint64_t*, StepRun*);
/// The end of a turn of in[2] steps: back to the target in[0] if register in[1]
/// is true.
void turn_step(const Step*, uint64_t*, StepRun*);
/// Between two turns of the outermost loop: if there may be no more, goes on at
/// the target in[0].
void count_step(const Step*, uint64_t*, StepRun*);
/// Registers: out = in[0].
void copy_step(const Step*, uint64_t*, StepRun*);
/// Slots: out = in[0], which both hold, or is empty afterwards; or in[0] gets
/// empty.
void share_step(const Step*, uint64_t*, StepRun*);
void move_step(const Step*, uint64_t*, StepRun*);
void release_step(const Step*, uint64_t*, StepRun*);
/// Code::calls[in[0]].
void node_step(const Step*, uint64_t*, StepRun*);
void host_step(const Step*, uint64_t*, StepRun*);
/// Register out = the element Code::elements[in[1]] of slot in[0]. Of an array
/// with one axis the index is register in[2], and `number` its size. An index
/// outside ends the run.
StepFunction load_step(const ElementPlace& place);
/// The element Code::elements[in[1]] of slot `out` = register in[0], and the
/// rest as above. The slot's array is copied first if somebody else holds it.
StepFunction store_step(const ElementPlace& place);

}  // namespace unisono::jit::bytecode
