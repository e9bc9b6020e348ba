#pragma once
// A program's steps as one list of instructions with jumps, so that where a
// device stands is one number, and it can stop and resume anywhere.
#include <cstdint>
#include <memory>
#include <vector>

#include "runtime/execute/program.h"

namespace unisono {

struct Instruction {
  enum class Kind : uint8_t {
    launch,
    copy,
    host_call,
    collective,
    collective_end,  // of `step`, which is there behind it
    repeat,          // begins loop `loop`, whose turns are counted
    next_turn,       // a turn of it, or to `target` after the last
    jump,            // to `target`
    jump_if_false,   // to `target` if slot `flag` holds false
    end,
  };
  Kind kind = Kind::end;
  SlotId flag = 0;
  int target = 0;
  int loop = 0;  // index into FlatProgram::loops
  /// The step, of the kind's type, in the program.
  const void* step = nullptr;
  /// A launch or copy at which all devices meet, and which is done once.
  bool once = false;
  /// launch, host_call: how many times its grain threads have to do, at most
  /// `much_work`; none where the device does it by itself.
  float work = 0;
  /// collective: it may be under way until its collective_end, and what stands
  /// between the two, launches, copies and other collectives, leaves its result
  /// alone, does not write its operand, and has so many operations and bytes.
  /// 0: it has no end of its own.
  double meanwhile = 0;

  template <class S>
  const S& as() const {
    return *static_cast<const S*>(step);
  }
};

inline constexpr float much_work = 1e6;

/// A loop of which it is known how many turns it takes.
struct FlatLoop {
  int64_t turns = 0;
  /// The body's instructions.
  int begin = 0, end = 0;
  /// They are launches, copies and collectives, as many as `work`.
  bool straight = false;
  int work = 0;
  bool meets = false;  // in some of them all devices meet
};

struct FlatProgram {
  std::vector<Instruction> instructions;
  std::vector<FlatLoop> loops;
  /// Most arguments that a launch has.
  int most_arguments = 0;
  bool meets = false;  // in some instruction all devices meet
};

/// Points into `program`, which outlives it. A copy of no bytes between the
/// slots of a collective before it is the collective's end. Checks that steps
/// name slots that exist and that collectives fit the number of devices
/// (CHECK).
FlatProgram flatten(const Program& program);
/// The first instruction, in the order of the list, that reads one of the
/// slots, or all. Who goes back in it has come by already.
int first_reader(const FlatProgram& flat, const std::vector<bool>& slots);
/// The source of what it does, as in the steps; 0: none.
uint32_t source_of(const Instruction& instruction);

}  // namespace unisono
