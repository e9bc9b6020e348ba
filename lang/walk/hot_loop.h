#pragma once
// A loop on the host that may go on as code. Private to this room.
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "jit/bytecode/bytecode.h"
#include "lang/walk/walker.h"

namespace unisono::lang {

/// A loop's graph, and what belongs to its inputs and outputs.
struct Walker::LoopCode {
  std::shared_ptr<const ir::Graph> graph;
  std::vector<unisono::Array> inputs;
  std::vector<Assigned> changes;
  /// The leaves of the changes' new values that the graph computes, in the
  /// order of its outputs.
  std::vector<ArrayValue> outputs;
};

/// Lives as long as the loop runs.
class Walker::HotLoop {
 public:
  HotLoop(Walker& walker, const Stmt& loop) : walker_(walker), loop_(loop) {}

  /// Whether the loop, which has taken so many turns, with so many left if that
  /// is known, should go on as code.
  bool is_hot(uint64_t turns, std::optional<uint64_t> left) const;
  /// Runs the rest of the loop, which `walk_loop` walks in trace mode, as code.
  /// Nothing: it is done. Else so many more turns have been taken, and the walk
  /// must go on with the next: in that one there is an error, or, after none,
  /// the loop cannot be code.
  std::optional<uint64_t> run(const std::function<void()>& walk_loop);

 private:
  Result<jit::Bytecode::Outcome> run_code(
      const LoopCode& code, const jit::Bytecode& bytecode,
      jit::Bytecode::Turns& turns, std::vector<std::vector<uint8_t>>& copies);
  uint64_t go_to_error(const LoopCode& code, const jit::Bytecode& bytecode,
                       int64_t turn, int64_t lines);

  Walker& walker_;
  const Stmt& loop_;
  /// The next turn has an error: it is walked, and prints into this.
  bool failing_ = false;
  std::unique_ptr<Saved<std::function<void(std::string_view)>>> printing_;
};

}  // namespace unisono::lang
