#pragma once
// The walk over the syntax tree and its state: private to this room.
//
//   walker.cpp        entry points, statements, blocks
//   expr.cpp          expressions
//   names.cpp         names, what an unknown one may have meant, and arrays
//                     that were given away
//   assign.cpp        assignments
//   call.cpp          calls of functions, definitions
//   control.cpp       if, for, while in three modes
//   comprehension.cpp comprehensions
//   loop.cpp          loops of compiled code
//   host_loop.cpp     loops on the host, which may go on as code
//   function_code.cpp functions on the host that run as code;
//                     function_compiler.cpp makes it, function_expr.cpp its
//                     expressions, function_loop.cpp its loops
//   types.cpp         annotations; type_sizes.cpp: the sizes in them
//   pending.cpp       the graph of the current statement
//   compute.cpp       how that graph is computed
//   module.cpp        import, and what tools ask
//   resolve.cpp       names in functions that nothing calls
//   redefined.cpp     inputs of a session
//   compile_only.cpp  programs that are compiled and not run
#include <deque>
#include <exception>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "lang/context/function.h"
#include "lang/context/scope.h"
#include "lang/context/under_way.h"
#include "lang/context/walk.h"
#include "lang/ops/indexing.h"
#include "lang/ops/range.h"
#include "lang/syntax/ast.h"

namespace unisono::lang {

class Sequence;          // context/iterable.h
struct FunctionCodes;    // function_code.h
class FunctionCompiler;  // function_code.h

using Env = std::shared_ptr<Environment>;

/// Sets a variable for the life of this object.
template <class T>
class Saved {
 public:
  explicit Saved(T& place) : place_(place), before_(place) {}
  Saved(T& place, T value) : Saved(place) { place = std::move(value); }
  ~Saved() { place_ = std::move(before_); }
  Saved(const Saved&) = delete;
  Saved& operator=(const Saved&) = delete;

 private:
  T& place_;
  T before_;
};

/// The first assignment to a `var` since the journal was opened, and what it
/// held before.
struct Change {
  Env environment;
  std::string name;
  Value before;
  Span where = {};  // the last assignment, if it is one of the program's
};
struct Journal {
  uint32_t call = 0;  // names of later calls are gone when it is closed
  std::vector<Change> changes;
};

/// Notes about calls around an error.
inline constexpr size_t max_call_notes = 4;

/// What a `return` in a loop gave when it was last walked.
struct Returned {
  Value value;
  const Expr* expression = nullptr;
};

/// A call around the code being walked, for the notes of an error.
struct CallFrame {
  const FunctionValue* function = nullptr;
  const Function* syntax = nullptr;
  Env environment;  // of the body: the parameters
  Span where;
  bool is_definition = false;  // walked for all arguments, not called
  std::map<std::string, DType> generics = {};  // of a definition
  std::optional<Diagnostic> failed = {};       // see Walk::note_failed
  /// Check mode: of which numbers symbols are that begin in this call.
  uint32_t first_symbol = 0;
  /// What a call of the function in itself gives, as far as is known: nothing
  /// at first. Then a branch with such a call is left out, once.
  std::optional<Value> result = {};
  std::optional<Diagnostic> left_out = {};
  /// Check mode: by where they stand. For messages, as the function's result
  /// has come through a `var` and loops.
  std::map<uint32_t, Returned> returned = {};
};

/// A function written in the language: what `def` and `fn` share.
struct FunctionSyntax {
  const Function* function;
  Span name;  // where it is defined
};
FunctionSyntax syntax_of(const Closure& closure);

/// A binding of the checked program, for `inspect --emit=types`.
struct TypeRecord {
  Span where;
  std::string name;
  std::string type;
  Value shape = {};  // of a `var`: of its arrays only the type
};

/// A file or a module of the standard library that was imported.
struct Module {
  std::unique_ptr<Program> program;
  Env checked, run;     // its names in either mode; null before
  bool active = false;  // being evaluated: an import of it now is a cycle
  bool failed = false;
  bool reported = false;  // at the first import
};

/// What an annotation is that the check has found to be `int`, `str` or a
/// scalar's element type, whatever is bound to these names. A value that is
/// just that needs no matching when the program runs.
struct PlainType {
  enum class Kind : uint8_t { integer, text, scalar } kind = Kind::integer;
  DType dtype = DType::I32;  // of a scalar
};

/// What a run was left with (lang/context/under_way.h).
struct LeftRun {
  std::shared_ptr<const unisono::Program> program;
  std::unique_ptr<RunUnderWay> run;
  std::function<void(const Error&)> fail;
  struct Call {
    Span where;
    std::string note;
  };
  std::vector<Call> calls;  // around it, the innermost last
};

/// What an input of a session that fails must not have changed: the global
/// names, and the arrays in them that are given away, which stay until the
/// input ends.
class Undo {
 public:
  explicit Undo(Env globals)
      : globals_(std::move(globals)), names_(globals_->names) {}
  /// Before `value` is given away.
  void keep(const ArrayValue& value);
  void take_back();

 private:
  struct Kept {
    ArrayValue value;
    std::optional<unisono::Array> array;
    std::shared_ptr<const std::vector<uint8_t>> constant;
  };
  Env globals_;
  Names names_;
  std::vector<Kept> kept_;
  /// Arrays that the names held, once something is given away.
  std::optional<std::unordered_set<ArrayCell*>> held_;
};

struct Walk::State {
  State();
  ~State();

  Env prelude;  // what is in scope without import
  Env globals;  // of the program that runs

  uint32_t last_call = 0;  // number of the latest call
  int call_depth = 0;
  const char* stack_limit = nullptr;
  std::thread::id stack_owner;  // of the large stack in use
  std::vector<CallFrame> frames;
  std::vector<Journal> journals;

  /// Check mode: results of calls by function, names around it, and arguments.
  struct Memo {
    std::optional<Value> result;  // empty: in progress
    bool failed = false;
    std::vector<Value> keep;  // so that addresses in the key stay unique
    Env environment;
    std::vector<TypeRecord> types = {};     // that the call added
    std::shared_ptr<const Mesh> mesh = {};  // of the compiled code around, then
    std::optional<Diagnostic> open = {};    // it failed, with an open question
    uint32_t first_symbol = 0;              // of those that the call has made
  };
  std::unordered_map<std::string, Memo> memo;
  enum class Definition : uint8_t { waiting, active, done, failed };
  struct WaitingDefinition {
    std::shared_ptr<const FunctionValue> function;
    Definition state = Definition::waiting;
    /// Why it is checked at its calls, if it is.
    std::optional<Diagnostic> open = {};
  };
  /// Annotated functions, checked at the end of the block that defines them or
  /// at their first call.
  std::map<std::pair<const void*, const Environment*>, WaitingDefinition>
      definitions;
  std::vector<std::pair<const void*, const Environment*>> waiting;

  /// Check mode: arrays that are given away for certain; kept alive, so that an
  /// address means one.
  std::map<ArrayValue, Donation> donated;
  /// Places of which a performance note told.
  std::set<std::pair<const SourceFile*, uint32_t>> noted;

  /// Errors of the check so far, and where they were: each mistake once.
  std::vector<Diagnostic> found;
  std::optional<Diagnostic> failed;  // outside functions; Walk::note_failed
  bool gave_up = false;              // the rest is not checked,
  bool stopped = false;  // the machine was told to stop, and it is said
  std::set<const Function*> walked;  // with Machine::compile_only: called
  Span too_many_errors = {};         // because of too many: the first left out
  uint64_t steps = 0;  // expressions walked by this check, or this trace
  std::vector<TypeRecord> types;
  std::unordered_map<const Stmt*, std::vector<std::string>> assigned_names;
  /// What the check has found of annotations.
  std::unordered_map<const Expr*, PlainType> plain_types;
  /// Elements and conditions of comprehensions that are no code: on the host
  /// they go member by member.
  std::unordered_set<const Expr*> by_turns;
  /// Those that are.
  std::unordered_set<const Expr*> as_code;

  std::map<std::string, Module> modules;
  /// Where the definitions of the prelude stand that are written in the
  /// language: each is read at its first use.
  struct LibraryPart {
    const SourceFile* file = nullptr;
    uint32_t begin = 0, end = 0;
  };
  std::unordered_map<std::string, LibraryPart> library;
  /// Of the prelude, and of modules that were forgotten.
  std::vector<std::unique_ptr<Program>> programs_kept;
  const SourceFile* main_file = nullptr;
  const Program* main_program = nullptr;  // while it is checked or runs
  /// Environments that hold a function, which may hold them in turn: their
  /// names are cleared when nothing can use them any more.
  std::vector<std::weak_ptr<Environment>> function_environments;
  /// Those of modules, which stay.
  std::vector<std::weak_ptr<Environment>> module_environments;

  /// What assertions in compiled code say, by the number of their place.
  std::unordered_map<uint32_t, Diagnostic> assertions;
  /// And slices there: without a length where several are different.
  std::unordered_map<uint32_t, SliceCheck> slices;

  /// Told where time goes; null if nobody asks.
  class LineTimes* line_times = nullptr;

  /// What is taken back if an input of a session fails.
  std::unique_ptr<Undo> undo;
  /// Definitions of which was said that they do not fit any more.
  std::set<const Function*> broken;
  /// Loops on the host around the code being walked.
  int host_loops = 0;
  /// Of these, the ones over a `progress`; and whether there was one since the
  /// outermost of all loops began, which then does not tell how far it is.
  int asked_loops = 0;
  bool asked_since = false;
  /// Loops that cannot go on as code, and how often that was tried.
  std::unordered_map<const Stmt*, int> not_code;
  /// It is being tried: what goes wrong is not told.
  bool attempt = false;
  /// Of each `and` and `or` that was checked, and whose right side may fail or
  /// do something: whether both sides are scalars, whatever it was checked for.
  std::unordered_map<const Expr*, bool> scalar_logic;
  /// The function whose result was asked for in itself, before it was known:
  /// the failure is on its way to a branch of it.
  const Function* asked_result = nullptr;
  /// Numbers that the program says, while it runs.
  std::unordered_map<const Expr*, ArrayValue> literals;
  /// Functions that run as code (function_code.h); null before the first.
  std::shared_ptr<FunctionCodes> function_codes;
  /// Code has met what only the walk can tell: the call is walked, with all in
  /// it.
  bool walks_again = false;

  std::deque<LeftRun> under_way;
  std::unique_ptr<Ranges> ranges;  // null unless a tool wants them
};

/// A `var` that was assigned under a journal.
struct Assigned {
  Env environment;
  std::string name;
  Value before, after;
  Span where = {};  // the last assignment
};

/// A `var` that a loop assigns: its value before the loop, and what it is
/// inside: of its arrays only the type.
struct Carry {
  Env environment;
  std::string name;
  Value value;
  Value shape = {};
};

struct LoopStart;  // function_code.h

/// Opens a journal; its changes are undone by `finish`, or at the end.
class JournalScope {
 public:
  explicit JournalScope(class Walker& walker);
  ~JournalScope();
  JournalScope(const JournalScope&) = delete;
  JournalScope& operator=(const JournalScope&) = delete;
  std::vector<Assigned> finish();

 private:
  Walker& walker_;
  bool open_ = true;
  std::optional<Diagnostic> failed_;  // before: what follows may not be run
};

/// "its fields are `a`, `b`"
std::string fields_text(const RecordValue& record);
/// Whether a function, or a named type, is in it: these hold names.
bool has_function(const Value& value);
/// Whether the expression may fail, or do something: then who decides without
/// it must not walk it.
bool may_matter(const Expr& e);

class Walker {
 public:
  using Named = std::vector<std::pair<std::string, CallArgument>>;

  explicit Walker(Walk& walk) : walk_(walk), s_(*walk.state_) {}
  Walk& walk() { return walk_; }
  Walk::State& state() { return s_; }
  bool checking() const { return walk_.mode() == Mode::check; }

  /// Where Walk::note_failed notes for the code being walked.
  std::optional<Diagnostic>& failed() {
    return s_.frames.empty() ? s_.failed : s_.frames.back().failed;
  }
  /// Whether the value has the type, as far as that is seen at once.
  bool is_plainly(const Expr& type, const Value& value) const;

  // ---- walker.cpp
  bool check_program(const Program& program, std::optional<Value>* last);
  bool run_program(const Program& program, std::optional<Value>* last);
  bool run_block(const Program& program, const ToolStmt& tool);
  bool run_from_host(const std::function<void()>& body);
  /// The exception that is being handled, as an error: one that ends a
  /// statement as it is, any other as an error at `where`.
  Failure caught(Span where);
  /// Reports, with the calls around it as notes; each mistake once.
  /// Waits for the runs under way, of which one may have failed before: true,
  /// and that is reported, if so.
  bool report_earlier(const Diagnostic& diagnostic);
  std::vector<LeftRun::Call> calls_around() const;
  /// Reports what was left and has failed, and throws it.
  [[noreturn]] void fail_left(const LeftRun& left, const Error& error);
  void report(Diagnostic diagnostic);
  /// Forgets what a run that ended with an error was about to do.
  void abandon_run();
  /// Where an expression or call begins: an error when the stack is used up,
  /// the machine is told to stop, or a check or trace has taken more steps than
  /// any sensible program needs.
  void enter(Span where);
  /// An error when the machine is told to stop.
  void poll(Span where);
  /// The error for that; nothing more is checked or run.
  Failure stopped(Span where);
  /// An error for a tuple or record with too much in it.
  void check_tree(const Value& value, Span where);
  /// Counts what a tuple or record that is made takes (count_host_bytes).
  void count_tree(const Value& value, Span where);

  static Env inner(const Env& env);
  /// Its type with the axes over which its arrays vary.
  std::string noted_type(const Value& value);
  void widen_record(const Binding& binding, const Value& value);
  void define(const Env& env, const std::string& name, Value value, bool is_var,
              Span where, const Expr* type = nullptr);
  void assign(const Env& holder, const std::string& name, Value value,
              Span where = {});
  /// The same, where its binding was found.
  void set_variable(const Env& holder, const std::string& name,
                    Binding& binding, Value value, Span where);
  /// Before a `var` changes, by `assign` or in place: the innermost journal
  /// keeps what it holds.
  void note_change(const Env& holder, const std::string& name, Span where);
  /// Undoes the changes of the innermost journal and gives them.
  std::vector<Assigned> take_back();
  /// Statements in order; in check mode after an error, too, and then a silent
  /// failure at the end. Gives the value of a last expression, if `wanted`
  /// (else the branches of a last `if` need not agree).
  Value statements(const std::vector<StmtPtr>& list, const Env& env,
                   bool flush_each, bool wanted);

  // ---- names.cpp
  Value note_read(const Binding& binding, const Environment& holder,
                  const Env& from, const std::string& name);
  /// For a use of a name whose definition failed.
  [[noreturn]] static void use_poisoned(const Binding& binding,
                                        const std::string& name, Span where);
  /// Whether this is no mistake, but for the calls to decide.
  bool is_open(const Failure& failure) const;
  Value lookup(const NameExpr& name, const Env& env);
  /// The error for `x = 3` where no `x` is bound.
  [[noreturn]] void unbound_variable(const NameExpr& name, const Env& env);
  Value present(Value value, Span where);

  // ---- expr.cpp
  Value expr(const Expr& e, const Env& env);

  // ---- call.cpp
  Value call_value(const CallArgument& callee,
                   std::vector<CallArgument> positional, Named named,
                   Span where);
  /// The names of a call's body. `values`, if given, gets what each parameter
  /// is bound to.
  Env bind_arguments(const FunctionValue& function,
                     std::vector<CallArgument> positional, Named named,
                     Span where, std::vector<CallArgument>* values = nullptr);

  // ---- module.cpp
  void load_prelude();
  /// Reads a definition of the prelude (Environment::read).
  void read_library(const std::string& name);

  // ---- resolve.cpp
  /// Reports unknown names in functions of the program, and of the files that
  /// it imports, called or not. `env` holds the names of the checked program.
  void resolve_names(const Program& program, const Env& env);

  // ---- redefined.cpp
  /// Warns of functions of earlier programs that do not fit to what this one
  /// defines anew; `before` are the names that there were.
  void check_users(const Program& program, const Environment& before);
  /// Modules of files are read anew; with `failed`, only those that failed.
  void forget_modules(bool failed);

  // ---- compile_only.cpp
  /// Calls a definition as `jit` would, with arrays of the types that are
  /// known for its parameters; why that is not possible, or nothing.
  std::string compile_definition(
      const DefStmt& def, const std::map<std::string, const Expr*>& given,
      const std::function<void()>& begins);

 private:
  // ---- walker.cpp
  std::optional<Value> statement(const Stmt& stmt, const Env& env, bool wanted);
  std::optional<Value> walk_statement(const Stmt& stmt, const Env& env,
                                      bool wanted);
  Value block(const Expr& body, const Env& env, bool flush_each, bool wanted);
  void bind_pattern(const Pattern& pattern, const Value& value, const Env& env,
                    bool is_var, Span where, const Expr* type = nullptr);
  void poison(const Pattern& pattern, const Env& env, bool open);
  void poison_names(const Stmt& stmt, const Env& env, bool open);
  /// An open question leaves what the statement assigns open, too.
  void poison_assigned(const Stmt& stmt, const Env& env);
  void let_stmt(const LetStmt& let, const Env& env);
  void axis_stmt(const AxisStmt& axis, const Env& env);
  /// A part of a pattern, or of a tuple on the left of an assignment.
  struct TakenPart {
    Span where;
    const std::string* name;  // null where it is none
    bool skipped;             // by `_`
  };
  std::vector<Value> parts_of(const Value& value,
                              const std::vector<TakenPart>& taken, Span pattern,
                              Span where);
  void assign_stmt(const AssignStmt& stmt, const Env& env);
  void assign_to(const Expr& target, const CallArgument& value,
                 const AssignStmt& stmt, const Env& env);
  void assign_tuple(const Tuple& targets, const CallArgument& value,
                    const AssignStmt& stmt, const Env& env);
  void assign_inside(const Expr& target, const CallArgument* given,
                     const AssignStmt& stmt, const Env& env);
  void assign_name(const AssignStmt& stmt, const Env& env);
  bool append_text(const Env& holder, const std::string& name, Value& before,
                   const Value& more, Span where);
  bool append_items(const Env& holder, const std::string& name, Value& before,
                    const Value& more, Span where);
  void assign_whole(const Env& holder, const std::string& name,
                    CallArgument value, const AssignStmt& stmt);
  struct TargetStep;
  bool assign_part(const Env& holder, const std::string& name, TargetStep& step,
                   const CallArgument& value, const AssignStmt& stmt);
  Env variable(const NameExpr& name, const Env& env);
  static Value replace_field(const Value& base, const Field& field, Value part);
  Value match_declared(const Expr& type, const Value& value, const Env& env,
                       Span where, const std::string& what);

  // ---- expr.cpp
  Value as_type(Value value);
  CallArgument argument(const Expr& e, const Env& env);
  void arguments(const Call& e, const Value& callee, const Env& env,
                 std::vector<CallArgument>& positional, Named& named);
  Value walk_expr(const Expr& e, const Env& env);
  CallArgument operand(const Expr& e, const Env& env);
  Value int_literal(const IntLiteral& literal, bool negative, Span where);
  Value string_literal(const StringLiteral& e, const Env& env);
  Value record_expr(const Record& e, const Env& env);
  Value with_expr(const With& e, const Env& env);
  Value cast_expr(const Cast& e, const Env& env);
  /// Whether this is a `load` or `read_csv`, in check mode, of a file that is
  /// not there yet.
  bool is_awaited_file(const Expr& e, const Env& env);
  Value unary_expr(const Unary& e, const Env& env);
  Value binary_expr(const Binary& e, const Env& env);
  bool is_decided(const Binary& e, const Value& left);
  Value call_expr(const Call& e, const Env& env);
  /// With `sizes`, those of a type: `f32[n / dev]`.
  std::vector<IndexItem> index_items(const Index& e, const Env& env,
                                     bool sizes = false);
  static const Value* find_field(const Value& base, const Field& e);
  /// `wanted` is the element type of an annotation, which literals adopt.
  Value array_literal(const Array& e, const Env& env,
                      std::optional<DType> wanted);
  Value stacked_rows(const Array& e, const Env& env,
                     std::optional<DType> wanted);
  [[noreturn]] void fail_element(const CallArgument& item);
  [[noreturn]] void fail_rows(size_t row, const ir::Type& type,
                              const ir::Type& first, Span where);
  std::optional<DType> wanted_dtype(const Expr& annotation, const Env& env);

  // ---- names.cpp
  Value field(const Value& base, const Field& e);
  const Program* program_of(Span where) const;
  /// Errors that say what to write instead.
  [[noreturn]] void unknown_name(const NameExpr& name, const Env& env);
  void forbid_foreign_module(const Field& e, const Env& env);
  void forbid_undeclared_axis(const Expr& e, const Env& env);
  void forbid_call_of(const Value& value, const Expr& callee, const Env& env);

  // ---- call.cpp
  void def_stmt(const DefStmt& def, const Env& env);
  /// Every parameter has a type: its body can be checked for all arguments.
  static bool can_be_checked(const Function& function);
  /// The definitions that wait from this one on. False if one has an error.
  bool check_waiting_definitions(size_t from);
  using DefinitionKey = std::pair<const void*, const Environment*>;
  bool check_definition(DefinitionKey key);
  void check_definition_with(
      const std::shared_ptr<const FunctionValue>& function,
      const std::map<std::string, DType>& generics);
  Value call(const std::shared_ptr<const FunctionValue>& function,
             std::vector<CallArgument> positional, Named named, Span where);
  Value call_closure(const std::shared_ptr<const FunctionValue>& function,
                     std::vector<CallArgument> positional, Named named,
                     Span where);
  Value walk_closure(const std::shared_ptr<const FunctionValue>& function,
                     std::vector<CallArgument> positional, Named named,
                     Span where);
  Value call_declared(const FunctionValue& function,
                      const DeclaredFunction& declared,
                      const std::vector<CallArgument>& positional,
                      const Named& named, Span where);
  Value checked_call(const std::shared_ptr<const FunctionValue>& function,
                     const Function& syntax, const Env& env, Span where);
  bool is_endless(const Function& syntax, const Env& env) const;
  /// What a call of a function in itself gives, whose result type is not
  /// written: what was found so far of the call around; else a failure, of
  /// which `asked_result` tells.
  Value own_result(const FunctionValue& function, const Function& syntax,
                   Span where);
  /// Whether the failure is that, in the innermost call.
  bool is_own_result(const Failure& failure) const;
  /// The body of a call that is checked, in a frame of its own, which is still
  /// there after a failure. It is walked again until calls of the function in
  /// itself give what it gives.
  Value checked_body(const CallFrame& frame);
  Value function_body(const FunctionValue& function, const Function& syntax,
                      const Env& env);

  // ---- host_function.cpp
  /// The number of the function of the host that a definition without a body
  /// declares; -1 for all others.
  int64_t host_number(const DefStmt& def);
  /// Calls it with the parameters that `env` has.
  Value call_host(const Closure& closure, const Env& env, Span where);
  Value run_host(const ir::HostCallAttrs& call,
                 const std::vector<ArrayValue>& operands, const Value& shape,
                 Span where);

  // ---- call.cpp
  /// Reports what is being handled in the innermost frame, and leaves that.
  [[noreturn]] void leave_frame();
  std::string call_key(const std::shared_ptr<const FunctionValue>& function,
                       const Function& syntax, const Env& env);
  void forget_functions(size_t from);

  // ---- control.cpp
  /// A condition's value where it is known now; else `array`, or null if it is
  /// a host boolean that only running tells.
  struct Condition {
    std::optional<bool> known;
    ArrayValue array;
    AxisSet varies;
    bool open = false;  // not known, as it depends on an open size

    Span from() const { return array ? array->varies_from : Span(); }
  };
  Condition condition(const Value& value, Span where);
  /// An error if it is none.
  void require_condition(const Value& value, Span where);
  /// What two values become of which `condition` chooses one: leaves that
  /// differ are arrays of which only the type is there, or new symbols for
  /// `int`s if the host chooses. Nothing if the types differ.
  std::optional<Value> meet(const Value& a, const Value& b,
                            const Condition& condition);
  std::optional<Value> meet_leaf(const Value& a, const Value& b,
                                 const Condition& condition);
  Value branch(const Expr* body, const Env& env, bool wanted);
  struct Choice {
    const Condition& condition;
    Span condition_span, whole;
    bool gives = false;  // If::gives
  };
  /// `walk_branch` walks the branch that is taken, or, where that is not known,
  /// both; what they give and assign becomes one value.
  Value choose(const Choice& choice, const Env& env, bool wanted,
               const std::function<Value(bool)>& walk_branch);
  Value if_expr(const If& e, const Env& env, bool wanted);
  Value if_value(const If& e, const Env& env);
  /// Variables that lower_jumps has made.
  Value flag(bool value, Span where);
  void declare_hidden(const std::string& name, const Env& env, Span where);
  void set_hidden(const std::string& name, Value value, const Env& env,
                  Span where);
  void jump_stmt(const JumpStmt& s, const Env& env);
  /// Where a loop's flag `left` is; without one, `env`.
  Env loop_scope(const std::string& left, const Env& env, Span where);
  Condition left_loop(const std::string& left, const Env& env, Span where);
  bool is_left(const ForStmt& s, const Env& env);
  void for_stmt(const ForStmt& s, const Env& around);
  void tuple_for(const ForStmt& s, const TupleValue& tuple,
                 const ProgressValue* shown, const Env& env);
  void counted_for(const ForStmt& s, const KnownRange& range,
                   const ProgressValue* shown, const Env& env);
  void text_for(const ForStmt& s, const Text& text, const ProgressValue* shown,
                const Env& env);
  void while_stmt(const WhileStmt& s, const Env& around);
  Value while_condition(const WhileStmt& s, const Env& env);
  class HostLoop;  // host_loop.h
  void for_items(const ForStmt& s, const Sequence& iterable,
                 const ProgressValue* shown, const Env& env);
  void turn(const Pattern& pattern, const Value& value, const Expr& body,
            const Env& env, bool flush_each);
  std::vector<Carry> carries_of(const Stmt& loop, const Env& env);
  int64_t host_int(const Value& value, Span where);
  ArrayValue host_counter(uint64_t bits, DType dtype, Span where);
  KnownRange host_range(const RangeValue& range, Span where);
  Value comprehension(const Comprehension& e, const Env& env);
  Value generate(const Comprehension& e, size_t generator, const Env& env);
  Value all_items(const Sequence& sequence, Span where);
  Value members_in_brackets(const Expr& e, const Env& env);
  CallArgument argument_in_brackets(std::string_view parameter, const Expr& e,
                                    const Env& env);
  bool add_known_turns(const Comprehension& e, size_t generator, const Env& env,
                       std::vector<Value>& items);
  /// What stands for one member: of a row or a number.
  using Member = std::function<Value(const Value&)>;
  Member as_code(const Expr& part, const Pattern& pattern, const Env& env,
                 int64_t count, Member walked);
  Value columns_of(const Value& over, const ir::Dim& count, Span where);
  Value mapped(const Value& over, const Member& member, Span where, Span all);
  Value by_turns(const Value& over, const Member& member, Span where, Span all);
  Value members(const Expr& part, const Value& over, const Member& member,
                Span where, Span all);
  Value selected(const Comprehension& e, const Value& over, const Member& holds,
                 Span where);
  Value collected(std::vector<Value> items, Span where);
  Value collected_any(const Value& item, std::optional<ir::Dim> count,
                      Span where);

  // ---- loop.cpp
  void in_scope(const std::shared_ptr<GraphScope>& scope,
                const std::function<void()>& body);
  std::vector<Value> if_node(const ArrayValue& condition,
                             const std::shared_ptr<GraphScope>& one,
                             const std::shared_ptr<GraphScope>& other,
                             const std::vector<Value>& ones,
                             const std::vector<Value>& others,
                             const std::vector<Value>& results, Span where);
  Value widen_text(const Value& before, const Value& after, bool& grown);
  Value widen_tuples(const Value& before, Value& after, bool& grown);
  bool close_turn(std::vector<Carry>& carries,
                  const std::vector<Assigned>& changes,
                  const AxisSet& condition_varies, Span where);
  bool may_be_of_empty(const Failure& failure, size_t found) const;
  void forget_found(size_t found);
  void check_loop(std::vector<Carry>& carries, const AxisSet& bound_varies,
                  Span where,
                  const std::function<AxisSet(ContextScope&)>& walk_turn);
  using LoopPart = std::function<ArrayValue(const ArrayValue& counter)>;
  /// What decides how often a loop turns: a condition, which may need a counter
  /// that is its first carry; or a number, and the body gets the turn's.
  struct LoopTurns {
    ArrayValue counter = nullptr;
    AxisSet varies = {};  // of the counter's bounds
    LoopPart condition = {};
    std::optional<int64_t> count = std::nullopt;
    int64_t most = -1;  // LoopAttrs::most
  };
  void loop_node(std::vector<Carry>& carries, const LoopTurns& turns,
                 Span where, const LoopPart& body);
  /// `go_on` and `condition_scope` are null if the loop is counted.
  void finish_loop(std::vector<Carry>& carries, const LoopTurns& turns,
                   const ArrayValue& go_on,
                   const std::vector<ArrayValue>& outputs,
                   const std::shared_ptr<GraphScope>& condition_scope,
                   const std::shared_ptr<GraphScope>& body_scope, Span where);
  /// The results of a loop, whose operands are carries and captures.
  std::vector<ArrayValue> loop_results(std::vector<ArrayValue> operands,
                                       const std::vector<ArrayValue>& captures,
                                       ir::LoopAttrs attrs, Span where);
  /// The same, where the carries that the loop uses row by row are rows and
  /// stacks.
  std::vector<ArrayValue> loop_by_rows(const std::vector<ArrayValue>& starts,
                                       const std::vector<ArrayValue>& captures,
                                       ir::LoopAttrs attrs, Span where);
  /// What a turn binds, of a row.
  using RowValue = std::function<Value(const Value& row)>;
  /// From row `first` on, if it runs over the rows of an array.
  void compiled_for(const ForStmt& s, const Value& over, const Env& env,
                    int64_t first = 0, const RowValue& item = {});
  std::optional<int64_t> while_maximum(const WhileStmt& s, const Env& env);
  void compiled_while(const WhileStmt& s, const Env& env);
  void begin_turn(const std::string& left, const Env& env, Span where);
  void forbid_reverse(const std::vector<Carry>& carries, Span where) const;
  /// The loop, traced, with at most so many turns. Gives a scope with one name,
  /// which is assigned where the loop's `var`s are: whether the condition still
  /// holds at its end.
  Env bounded_while(const WhileStmt& s, const Env& env, int64_t most);
  [[noreturn]] void fail_not_ended(const WhileStmt& s, int64_t most);

  // ---- host_loop.cpp
  struct LoopCode;
  /// While it is tried to make code of a loop: what is compiled by itself is
  /// not a part of it, and what calls itself would have no end.
  void forbid_as_code(const FunctionValue& function, Span where) const;
  /// Nothing, and `why`, where that is not possible.
  std::optional<LoopCode> trace_loop(const std::function<void()>& walk_loop,
                                     std::string& why);
  void assign_results(const LoopCode& code,
                      std::vector<unisono::Array> results);

  // ---- function_code.cpp
  class CodeRun;
  friend class MemberCode;
  friend class FunctionCompiler;
  /// Whether functions may run as code here.
  bool may_run_code() const;
  /// What a function gives that runs as code; nothing if it is to be walked,
  /// `again` if code has tried and what is in it is to be walked, too.
  std::optional<Value> call_code(
      const std::shared_ptr<const FunctionValue>& function,
      const std::vector<CallArgument>& arguments, Span where, bool& again);
  /// Runs what is left of a loop as code, and gives its turns. Nothing, and
  /// `why`, if it is to be walked, as nothing has happened: there is no code,
  /// or, `at_fault`, an element in some turn is no good.
  std::optional<int64_t> run_loop_code(const LoopStart& start,
                                       const std::function<void(int64_t)>& tell,
                                       bool& at_fault, std::string& why);

  // ---- module.cpp
  void import(const ImportStmt& s, const Env& env);
  Module& find_module(const ImportStmt& s);

  Walk& walk_;
  Walk::State& s_;
};

}  // namespace unisono::lang
