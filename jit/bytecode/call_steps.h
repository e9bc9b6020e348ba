#pragma once
// Steps of functions that call each other: calls, jumps, and the host's own
// numbers, 64-bit integers that do not wrap and booleans. What makes the code
// (lang/walk/function_code.h) knows what they stand for in the language;
// element_step and cast_step (jit/scalar/step.h) are the steps of all others.
//
// A function's registers are a window: those from `registers` on. A caller puts
// the arguments where the callee's window begins, among its own registers, and
// finds the result in the first of them.
#include <cstdint>
#include <span>

#include "jit/scalar/step.h"

namespace unisono::jit::bytecode {

/// A run: what the steps find behind their StepRun. A step that cannot do its
/// work (an integer that does not fit, a call too deep, a stop) leaves itself
/// in `failed` and its window in `window`, and has changed nothing.
struct CallRun : StepRun {
  uint64_t* window = nullptr;
  /// The calls under way, outermost first: as many as may nest.
  std::span<const Step*> calls;
  size_t depth = 0;
  /// Calls and turns of loops until the next look at whether the run shall
  /// stop, and the looks so far.
  int64_t fuel = 0;
  int64_t looks = 0;
  bool stopped = false;
  /// Called at each look, if it is set.
  void (*look)(CallRun& run) = nullptr;
  /// Where the walk has to do something, and finds what by the step. False: it
  /// failed.
  bool (*walk)(CallRun& run, const Step* step, uint64_t* window) = nullptr;
};

enum class IntOp : uint8_t {
  add,
  sub,
  mul,
  floor_div,
  mod,
  bit_and,
  bit_or,
  bit_xor,
  shift_left,
  shift_right,
  minimum,
  maximum,
};
enum class Compare : uint8_t { eq, ne, lt, le, gt, ge };

// A target is the number of steps from the step itself, an int32.

/// out = in[0] op in[1], or op `number`. Fails where the result does not fit,
/// and where a divisor or a shift is an odd one, which the caller decides.
StepFunction int_step(IntOp op, bool immediate);
/// out = -in[0] and its absolute value. The least integer fails.
void int_negate_step(const Step*, uint64_t*, StepRun*);
void int_abs_step(const Step*, uint64_t*, StepRun*);
/// A boolean: out = in[0] op in[1], or op `number`.
StepFunction int_compare_step(Compare op, bool immediate);
/// Goes on at the target in[0] unless in[1] op in[2], or op `number`.
StepFunction jump_unless_compare_step(Compare op, bool immediate);
/// out = in[0] / in[1], as floats of 64 bits. Fails where that is not finite.
void int_divide_step(const Step*, uint64_t*, StepRun*);
/// Booleans: out = not in[0]; out = whether in[0] and in[1] differ.
void not_step(const Step*, uint64_t*, StepRun*);
void differ_step(const Step*, uint64_t*, StepRun*);
/// Goes on at the target in[0] if the boolean in[1] is true.
void jump_if_step(const Step*, uint64_t*, StepRun*);
/// out = `number`.
void constant_step(const Step*, uint64_t*, StepRun*);
/// Fails unless the int in[0] lies in the range of a type of integers, or the
/// float of 64 bits in[0] is finite as `to`, if it is so itself.
StepFunction require_fit_step(DType to, bool floating);

/// An array that steps read: dense, row-major.
struct ElementView {
  const uint8_t* data = nullptr;
  const int64_t* sizes = nullptr;
};
/// out = the place along axis `number`, among those of the axes before, whose
/// place is in in[2], that the index in[0] names in the array (an ElementView)
/// in[1]. Negative ones count from the end. Fails where there is no such
/// element.
void element_index_step(const Step*, uint64_t*, StepRun*);
/// out = the element, of so many bytes, at place in[0] of the array in[1].
StepFunction load_element_step(int64_t bytes);
/// out = the size of axis `number` of the array in[0].
void size_step(const Step*, uint64_t*, StepRun*);

/// Calls the function at the target in[0]; its window begins at `out`.
void call_step(const Step*, uint64_t*, StepRun*);
/// Gives register in[0] to the caller, or `number`.
void return_step(const Step*, uint64_t*, StepRun*);
void return_constant_step(const Step*, uint64_t*, StepRun*);
/// A loop begins: out = the looks so far.
void begin_loop_step(const Step*, uint64_t*, StepRun*);
/// The end of a loop's turn: out += `number`, and goes on at the target in[0]
/// while out has not come to in[1]. After so many looks since in[2] that other
/// code pays, goes to the next step; at the end behind it. Fails if the run
/// shall stop, and has then changed nothing.
void next_turn_step(const Step*, uint64_t*, StepRun*);
/// The same of a loop that does not count: it always goes on.
void repeat_step(const Step*, uint64_t*, StepRun*);
/// CallRun::walk.
void walk_step(const Step*, uint64_t*, StepRun*);

}  // namespace unisono::jit::bytecode
