#pragma once
// The one walk over the AST: checks, traces and runs (docs/internals.md).
#include <atomic>
#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <tuple>
#include <unordered_map>
#include <vector>

#include "jit/compile.h"
#include "lang/context/builtin.h"
#include "lang/context/context.h"
#include "lang/context/environment.h"
#include "lang/context/function.h"
#include "lang/context/scope.h"
#include "lang/context/value.h"
#include "lang/source/diagnostics.h"
#include "lang/syntax/ast.h"
#include "runtime/execute/program.h"
#include "runtime/recorder.h"
#include "runtime/tuning/tuning.h"

namespace unisono::lang {

/// What a host lets a program take, and what it has taken. Counting begins
/// anew where the host sets the counts to 0.
struct Limits {
  static constexpr int most_depth = 1000;
  /// Calls of functions written in the language that nest.
  int depth = most_depth;
  /// Expressions that are walked while the program runs; 0: no limit.
  int64_t steps = 0;
  int64_t steps_taken = 0;
  /// Bytes of texts, trees and copies of arrays that are made in the host's
  /// memory, needed later or not; 0: no limit.
  int64_t host_bytes = 0;
  int64_t host_bytes_made = 0;
};

/// How far a loop is that runs on the host.
struct LoopProgress {
  int64_t turns = 0;  // taken
  int64_t all = -1;   // of so many; -1 if nobody knows
  /// The program asked that it be shown, by `progress`.
  bool asked = false;
  /// Text to show beside it, "loss 0.0312"; asked for only where it is shown.
  const std::function<std::string()>* note = nullptr;
};

/// What the program runs on; owned by the session.
struct Machine {
  Runtime* runtime = nullptr;
  jit::Compiler* compiler = nullptr;
  /// Evaluate everything by the reference evaluator: no LLVM at all.
  bool reference_only = false;
  bool checked = true;
  /// A statement's array work from this many bytes on may be compiled.
  int64_t compile_threshold = tuning().least_compiled_bytes;
  const std::atomic<bool>* stop = nullptr;
  /// Nothing runs: programs are compiled for the types that the program's walk
  /// shows, small work apart, arrays hold nothing, and no effect happens.
  bool compile_only = false;
  /// What is compiled for one number is not found again for another: who looks
  /// at what is compiled wants to see it compiled.
  int compiled_for = 0;
  /// As in RunOptions.
  std::chrono::milliseconds watchdog{60'000};
  const std::function<bool(int device)>* lose_device = nullptr;
  /// For tests: called wherever the walk looks at `stop`; may throw.
  const std::function<void()>* disturb = nullptr;
  Recorder* recorder = nullptr;
  /// Messages about what is slower than it looks.
  bool performance_notes = true;
  /// Whether that shows colours.
  bool colour = false;
  /// Shows a picture (its type, "image/png" or "image/svg+xml", and its bytes)
  /// that the program makes without naming a file for it. Null: there is nobody
  /// who could see one, and the program must name a file.
  std::function<void(std::string_view type, std::string_view bytes)>
      show_picture = nullptr;
  /// Where `print` goes. Each call is one or more whole lines.
  std::function<void(std::string_view)> output;
  /// Functions that the host has defined, by their numbers, which stay.
  std::vector<std::shared_ptr<const HostFunction>> host_functions = {};
  /// The script's arguments, after its file name.
  std::vector<std::string> arguments;
  /// False where a program is only checked: they may then be any.
  bool arguments_known = true;
  /// Told before each turn of an outermost loop of the top level, and of the
  /// outermost `progress` anywhere; and at its end, with `turns` equal to
  /// `all`.
  std::function<void(const LoopProgress&)> progress = nullptr;
  /// Programs may read and write files.
  bool files = true;
  /// Gives the text that `import "PATH"` asks for, by the path as written after
  /// the importing text's folder; unset: it is read from a file.
  std::function<Result<std::string>(const std::string& path)> import = nullptr;
  Limits limits = {};
};

/// Calls a function of the host for one member: a jit::HostCall.
Status call_host_function(const Machine& machine, const ir::HostCallAttrs& call,
                          const std::vector<jit::HostArray>& arguments,
                          std::vector<jit::HostArray>& results);

/// How a program runs on this machine.
RunOptions run_options(const Machine& machine);

/// A located error that ends the statement being evaluated. Thrown inside
/// lang/, caught by Walk's public entry points; never leaves this floor.
struct Failure {
  Diagnostic diagnostic;
  /// It is about something that was reported before: say nothing more.
  bool reported = false;
  /// While checking: no mistake, but a question that only running answers, as
  /// it is about an open size; or, of a definition, only its calls, such as how
  /// many turns `unrolled(n)` has.
  bool open = false;
};

/// The diagnostic for a bug of ours: nothing that a program says may lead to
/// it.
Diagnostic internal_error(Span where, std::string_view what);

/// What stands in for the type of a parameter: `parameter` of `function`, or,
/// if that is empty, of every function that has one.
struct GivenType {
  std::string function, parameter, type;
};

/// A slice at a place that compiled code computes, of an axis of `size`:
/// `x[start:start + length:step]`.
struct SliceCheck {
  int64_t length = 0, step = 1, size = 0;
  bool operator==(const SliceCheck&) const = default;
};

/// State of one walk. Not thread-safe; one per session and thread.
class Walk {
 public:
  Walk(Machine& machine, SourceMap& sources, Diagnostics& diagnostics);
  ~Walk();

  /// Checks the whole program: nothing runs, nothing is printed, and the global
  /// names are afterwards what they were. True if there was no error. `last`,
  /// if given, gets what is known of the value of the last statement, if that
  /// is an expression.
  bool check(const Program& program, std::optional<Value>* last = nullptr);
  /// Runs the program's statements in order, after `check`. False when an
  /// error stopped it (reported to the diagnostics). `last`, if given, gets
  /// the value of the last statement if that is an expression.
  bool run(const Program& program, std::optional<Value>* last = nullptr);
  /// After `run`: runs a `test` or `bench` block of the program, which that
  /// left out. What the block assigns to `var`s of the program is undone at its
  /// end. False when an error stopped it (reported to the diagnostics).
  bool run_block(const Program& program, const ToolStmt& block);
  /// With Machine::compile_only, after `run`: compiles each definition of the
  /// program that nothing has called, and those of which a type is given, as
  /// `jit` would. `begins` is told of each before it is compiled, `left_out` of
  /// those that are not, and why. False, and reported, if a given type is none
  /// or belongs to no parameter.
  bool compile_definitions(
      const Program& program, const std::vector<GivenType>& given,
      const std::function<void(const DefStmt&)>& begins,
      const std::function<void(const DefStmt&, const std::string&)>& left_out);
  /// Prints a value as `print` does. False on an error, which is reported.
  bool print(const Value& value);
  /// Programs are the inputs of one session: one that fails while it runs
  /// leaves all names, and arrays that it gave away, as they were; and `check`
  /// warns of functions that no longer fit what a program defines
  /// anew.
  bool interactive = false;
  /// The names that programs have defined. Around them, if `results` was
  /// called, are those; then the library's. Null before the first program,
  /// unless this is called on the walk's stack.
  const std::shared_ptr<Environment>& globals() const;
  /// Names that a session gives, which those of programs hide.
  Environment& results();
  /// Imports of files read them anew from now on.
  void forget_files();
  /// After Machine::compile_only in a session: arrays of names that were
  /// computed in it hold nothing, and are computed when they are needed.
  void forget_absent();
  /// A name that `run` defined at top level; null if there is none.
  const Value* global(const std::string& name);
  /// `name = value` at top level, as a program would define it.
  void set_global(const std::string& name, Value value);
  /// Calls a function in run mode; gives nothing after an error, which is
  /// reported. Takes as long as a call in the program inside `on_stack`, else
  /// some 80 microseconds more.
  std::optional<Value> call_from_host(
      const Value& function, const std::vector<Value>& arguments,
      const std::vector<std::pair<std::string, Value>>& named = {});
  /// Runs `body`, which may fail as programs do, in run mode, inside
  /// `on_stack`. False after an error, which is reported.
  bool run_from_host(const std::function<void()>& body);
  /// Runs `body` where the functions above need no new stack: they walk deep.
  /// Where the host has no memory there is an error at `where`.
  void on_stack(const std::function<void()>& body, Span where = {});
  /// Set before `check`, for `dump_types`.
  bool keep_types = false;
  /// Each definition and the types that `check` found for it, in the order of
  /// the program: `inspect --emit=types`. One line each.
  std::string dump_types() const;

  // ---- for builtins, maps and the walker's own files -----------------------

  /// What is around the code being walked; a ContextScope changes it.
  const Context& context() const { return context_; }
  Mode mode() const { return context_.mode; }
  /// No host decision can depend on an array's elements here.
  bool in_compiled_code() const {
    return context_.compiled || mode() == Mode::trace;
  }
  Machine& machine() { return machine_; }
  SourceMap& sources() { return sources_; }
  Diagnostics& diagnostics() { return diagnostics_; }

  /// Appends an array operation (trace, run) or only types it (check). The
  /// operands were checked by the caller, in better words than the type
  /// rule's. Result varies where any operand does.
  ArrayValue add(ir::Op op, std::span<const ArrayValue> operands,
                 ir::Attrs attrs, Span where);
  ArrayValue add(ir::Op op, std::initializer_list<ArrayValue> operands,
                 ir::Attrs attrs, Span where);
  /// A scalar constant of `dtype`, or a literal (then `dtype` says whether it
  /// is a float).
  ArrayValue constant(double value, DType dtype, bool weak, Span where);
  ArrayValue constant_int(int64_t value, DType dtype, bool weak, Span where);
  /// A size as a literal.
  ArrayValue constant_size(const ir::Dim& size, Span where);
  /// A literal array: all elements as bytes.
  ArrayValue constant_array(ir::Type type, std::vector<uint8_t> bytes,
                            Span where);
  /// A scalar constant as an array on the first device (run mode): programs
  /// take it as an argument, so another value compiles nothing. What is weak
  /// stays weak.
  ArrayValue on_first_device(const ArrayCell& constant, Span where);
  /// The same, of an element as it is stored.
  ArrayValue on_first_device(DType dtype, const void* element, Span where);
  /// An array that is on devices (run mode).
  ArrayValue from_array(unisono::Array array);
  /// The layout of an array that lies as a whole on `device`: arrays that are
  /// alike share one.
  std::shared_ptr<const ArrayLayout> whole_layout(DType dtype,
                                                  const ir::Shape& shape,
                                                  Device& device);
  /// With Machine::compile_only: an array without elements, of which only the
  /// type and the place are known.
  static unisono::Array absent(DType dtype, std::vector<int64_t> shape,
                               Sharding sharding);
  static bool is_absent(const unisono::Array& array);
  /// With Machine::compile_only: an error, as the walk depends on the value of
  /// what stands at `where`.
  [[noreturn]] void fail_needs_run(Span where);
  /// Every array of which only the type is known is one on the first device
  /// from now on.
  Value with_absent(const Value& value);
  /// In check mode, a value of which only the type is known.
  ArrayValue unknown_array(ir::Type type);
  /// The same, of a weak number.
  ArrayValue unknown_number(bool floating);

  /// `value` as an array: arrays as they are, ints and bools as constants,
  /// weak numbers as i32 or f32; otherwise an error that says what was
  /// expected.
  ArrayValue to_array(const Value& value, Span where, std::string_view what);
  /// The same, but numbers stay weak: what operators and elementwise functions
  /// take.
  ArrayValue to_operand(const Value& value, Span where, std::string_view what);
  /// Calls any callable value.
  Value call(const Value& function, std::vector<CallArgument> positional,
             std::vector<std::pair<std::string, CallArgument>> named,
             Span where);

  /// The arguments of a call of a function written in the language, as its
  /// parameters get them: one for each parameter, in order, with defaults,
  /// and with the types that are declared. An error if they do not fit.
  std::vector<CallArgument> bind(
      const FunctionValue& closure, std::vector<CallArgument> positional,
      std::vector<std::pair<std::string, CallArgument>> named, Span where);

  /// Computes what is pending (run mode), so that the array is on a device.
  const unisono::Array& force(const ArrayValue& value, Span where);
  /// In compiled code, an error at the place of `error` unless `holds`, a bool
  /// scalar: a check like any other, which names device and member.
  void assert_when_it_runs(const ArrayValue& holds, Diagnostic error);
  /// The same for a slice from `start` on, an i64 scalar, if it is not inside
  /// its axis.
  void assert_inside_when_it_runs(const ArrayValue& start,
                                  const SliceCheck& slice, Span where);
  /// An error if the array was given away by `donate`.
  void forbid_donated(const ArrayValue& value, Span where);
  /// Gives it away. While checking, only where it is certain that this runs.
  void donate(const ArrayValue& value, const Donation& donation);
  /// An array placed as `to` says, for a message about what that moved.
  unisono::Array moved(const unisono::Array& array, const Sharding& to,
                       Span where);
  /// Says, once for each place, that a large array is brought together.
  void note_gather(const unisono::Array& array, const Device& device,
                   Span where);
  /// Says, once for each place, which updates of large arrays copy them in each
  /// turn of a loop of the program.
  void note_copied_updates(const unisono::Program& program);

  /// Its elements on the host, dense and row-major.
  std::vector<uint8_t> host_bytes(const ArrayValue& value, Span where);
  /// Evaluates and clears the pending statement graph (run mode).
  void flush(Span where);

  /// Walks `body` in a new graph scope (trace) inside the current one; in
  /// check mode there is no scope, and null is given. In run mode the mode is
  /// trace within.
  std::shared_ptr<GraphScope> with_scope(const std::function<void()>& body);
  /// The graph that operations are appended to.
  const std::shared_ptr<GraphScope>& scope() const {
    return context_.scope ? context_.scope : pending_;
  }
  /// Like with_scope, but without a parent: what it uses from outside are
  /// arrays on devices, captured as hidden inputs. Mode is trace within.
  std::shared_ptr<GraphScope> trace(const std::function<void()>& body);

  /// Errors that were reported, by what is wrong and where: each mistake once.
  using Reported =
      std::set<std::tuple<Code, const SourceFile*, uint32_t, uint32_t>>;
  Reported reported;

  /// Files that the program writes before the place being checked, and what
  /// they will hold (nothing if its sizes are symbols): for `load`.
  std::map<std::string, std::optional<Value>> written_files;
  /// Folders that were searched for what killed processes left (load.h).
  std::set<std::string> swept_folders;

  /// Maps over devices inside compiled code, so far.
  int64_t nested_maps = 0;
  /// What maps keep between calls (map_run.cpp); made at the first use.
  std::shared_ptr<class MapCache> map_cache;
  /// Sizes that only running tells, by what they are computed from
  /// (lang/sizes/known_sizes.h); made at the first use.
  std::shared_ptr<class KnownSizes> known_sizes;

  /// Numbers for the arguments of a derivative: the first of `count`.
  uint32_t new_derivative_arguments(size_t count) {
    const uint32_t first = next_derivative_argument_;
    next_derivative_argument_ += static_cast<uint32_t>(count);
    return first;
  }
  ir::AxisId new_axis_id() { return next_axis_++; }
  uint32_t new_symbol_id() { return next_symbol_++; }
  /// A size, or an int, that only running tells (check mode).
  ir::Dim open_size() {
    const uint32_t id = new_symbol_id();
    return ir::Dim::symbol(id, "?k" + std::to_string(id), /*open=*/true);
  }
  /// The larger or the smaller of two sizes; where that is not known, a symbol
  /// for it: of the same sizes always the same one.
  ir::Dim extreme_size(bool larger, const ir::Dim& a, const ir::Dim& b);
  /// The number that stands for `where` in IR nodes, and back.
  uint32_t source_id(Span where);
  Span source_span(uint32_t id) const;

  /// Ends the statement with this error; while checking, with a question if it
  /// is about an open size.
  [[noreturn]] void fail(Diagnostic diagnostic);
  /// The same for an error of the machine or of compiled code, located at the
  /// operation that failed if it has a place, else at `where`.
  [[noreturn]] void fail(const Error& error, Span where);
  /// Check mode: an assertion that is known to be false. An error behind it, in
  /// the same function or program, is reported as this: what stands there is
  /// never run.
  void note_failed(Diagnostic assertion);

  /// Counts what the program makes in the host's memory while it runs; an error
  /// if that is more than it may.
  void count_host_bytes(int64_t bytes, Span where);

  /// An error for a type that no array can have: a negative size, or more
  /// bytes than any machine has.
  void check_size(const ir::Type& type, Span where);

 private:
  friend class ContextScope;
  friend class Walker;  // lang/walk
  const unisono::Array& computed(const ArrayCell& cell, Span where);
  /// Runs the graph of a statement, where its inputs lie if it can
  /// (compute.cpp).
  std::vector<unisono::Array> compute(const ir::Graph& graph,
                                      std::vector<unisono::Array> inputs,
                                      Span where);

  Machine& machine_;
  SourceMap& sources_;
  Diagnostics& diagnostics_;
  Context context_;
  std::shared_ptr<GraphScope> pending_;  // what statements left to compute
  ir::AxisId next_axis_ = 1;
  uint32_t next_symbol_ = 1;
  struct ExtremeSize {
    bool larger;
    ir::Dim a, b, symbol;
  };
  std::vector<ExtremeSize> extreme_sizes_;
  /// Those of whole_layout that were asked for last, by type.
  std::array<std::shared_ptr<const ArrayLayout>, 16> layouts_;
  uint32_t next_derivative_argument_ = 1;
  struct State;
  std::unique_ptr<State> state_;
};

/// Surroundings for what is walked while it lives: changes of the context are
/// taken back, all of them, when it ends.
class ContextScope {
 public:
  explicit ContextScope(Walk& walk)
      : context_(walk.context_), before_(walk.context_) {}
  ~ContextScope() { context_ = std::move(before_); }
  ContextScope(const ContextScope&) = delete;
  ContextScope& operator=(const ContextScope&) = delete;
  Context* operator->() { return &context_; }

 private:
  Context& context_;
  Context before_;
};

}  // namespace unisono::lang
