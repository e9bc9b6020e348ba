#pragma once
// A loop on the host that may go on as code. Private to this room.
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
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

/// A loop on the host, as long as it runs. Who wants to know of its turns is
/// told (Machine::progress).
class Walker::HostLoop {
 public:
  /// `all`: its turns, -1 if nobody knows. `shown`: what it runs over asks that
  /// it be shown, with numbers that are found in `env`; else null.
  HostLoop(Walker& walker, const Stmt& loop, int64_t all,
           const ProgressValue* shown = nullptr, const Env& env = nullptr);
  ~HostLoop();
  HostLoop(const HostLoop&) = delete;
  HostLoop& operator=(const HostLoop&) = delete;

  /// Before each turn that is walked.
  void turn() { tell(turns_++, all_, true); }
  /// After the last one.
  void end() const { tell(turns_, turns_, false); }

  /// Whether the loop should go on as code.
  bool is_hot() const;
  /// Runs the rest of the loop as code: `walk_rest` walks, in trace mode, what
  /// is left of it after so many more turns. Nothing: it is done. Else so many
  /// more turns have been taken, and the walk must go on with the next: in that
  /// one there is an error, or, after none, the loop cannot be code.
  /// `range`: the turns that are left of a `for` that counts.
  std::optional<uint64_t> run(const std::function<void(int64_t)>& walk_rest,
                              const std::optional<KnownRange>& range = {});

 private:
  using Printing = Saved<std::function<void(std::string_view)>>;

  /// `noted`: the variables hold what the turns before have left.
  void tell(int64_t turns, int64_t all, bool noted) const;
  std::string note() const;
  Result<std::vector<unisono::Array>> run_code(
      const LoopCode& code, const jit::Bytecode& bytecode,
      jit::Bytecode::Turns& turns, const std::function<bool()>& looks);
  void make_texts_grow();
  void append_grown(const LoopCode& code);
  bool run_as_function(const std::optional<KnownRange>& range,
                       std::string& why);
  bool run_compiled(const std::function<void()>& walk_loop);
  void go_to_error(const LoopCode& code, const jit::Bytecode& bytecode,
                   int64_t turn, int64_t lines);

  Walker& walker_;
  const Stmt& loop_;
  int64_t all_, turns_ = 0;
  const ProgressValue* shown_;
  Env env_;
  bool tells_ = false;
  bool compiled_ = false;  // or it was tried
  /// What the last run of the code has put behind texts (growing_text).
  std::vector<std::string> grown_;
  /// The next turn has an error: it is walked, and prints into this.
  bool failing_ = false;
  std::unique_ptr<Printing> printing_;
};

}  // namespace unisono::lang
