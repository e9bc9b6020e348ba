#pragma once
// Functions of the host as threaded code. Private to this room.
//
// A function that is called often, and computes with scalars and text alone, is
// compiled from its tree to steps (jit/bytecode/call_steps.h), with the
// functions that it calls: its calls are jumps. What the steps cannot do as the
// walk would is done by the walk, in frames that are made of the windows of the
// calls under way: an int that does not fit, a call too deep, `print`, a
// failing `assert`. So an error is the walk's own, with its place and the calls
// around it. A loop of the host that cannot be traced, as functions in it call
// themselves, is compiled in the same way; its variables are registers
// meanwhile.
#include <algorithm>
#include <cstdint>
#include <deque>
#include <exception>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "jit/bytecode/call_steps.h"
#include "jit/bytecode/steps.h"
#include "lang/code/text_steps.h"
#include "lang/walk/walker.h"
#include "runtime/check.h"
#include "runtime/cluster/cluster_device.h"
#include "runtime/tuning/tuning.h"

namespace unisono::lang {

/// What the compiler knows of a value: all but its bits, which are in a
/// register.
struct HostKind {
  enum class Form : uint8_t {
    integer,  // IntValue
    boolean,  // BoolValue
    either,   // that, or a bool scalar: the condition of an `if`
    number,   // a weak number (value.h): f64 or i64
    // An int, or a weak one: what a function gives with `return 0` and with a
    // `var`. It can be taken for a number alone.
    whole,
    scalar,  // an array of rank 0
    array,   // another, whose elements are read: a FunctionArray's address
    // Of these the register means nothing, and a Held belongs to it.
    text,   // StrValue
    texts,  // a tuple of texts, however many
    ints,   // a tuple of ints
    // An array that was made here: the register has its address, too.
    own,
  };
  /// Of a weak number: whether it is ArrayCell::literal. Of a scalar `unknown`
  /// means that it may still be the number, which has this value exactly, that
  /// a variable began with: `var n = 0` before `n += f(x)`.
  enum class Literal : uint8_t { no, yes, unknown };
  Form form = Form::integer;
  DType dtype = DType::I64;
  Literal literal = Literal::no;
  int rank = 0;  // of an array, also of one's own
  bool operator==(const HostKind&) const = default;

  static HostKind integer() { return {}; }
  static HostKind boolean() { return {Form::boolean, DType::Bool}; }
  static HostKind whole() { return {Form::whole}; }
  static HostKind scalar(DType dtype) { return {Form::scalar, dtype}; }
  static HostKind number(DType dtype, Literal literal) {
    return {Form::number, dtype, literal};
  }
  static HostKind array(DType dtype, int rank) {
    return {Form::array, dtype, Literal::no, rank};
  }
  static HostKind own(DType dtype, int rank) {
    return {Form::own, dtype, Literal::no, rank};
  }
  static HostKind text() { return {Form::text}; }
  bool is_tuple() const { return form == Form::texts || form == Form::ints; }
  bool is_held() const {
    return form == Form::text || form == Form::own || is_tuple();
  }
  bool has_elements() const { return form == Form::array || form == Form::own; }
  bool is(Form f) const { return form == f; }
  bool may_be_number() const {
    return form == Form::scalar && literal == Literal::unknown;
  }
};

/// A value that is known, or lies in a register of the function.
struct HostOperand {
  HostKind kind;
  bool known = false;
  uint64_t bits = 0;     // if it is; the number of a constant that is held
  uint32_t place = 0;    // else
  bool changes = false;  // it is the place of a `var`
};

/// An array, as it lies in the host's memory now.
struct FunctionArray : jit::bytecode::ElementView {
  std::vector<int64_t> shape;
  /// Its elements are computed first, if they are not yet. False if it is no
  /// array of this kind, or the host cannot read it.
  bool look_at(Walk& walk, const Value& value, const HostKind& kind,
               Span where);
};

/// The kind of a value that is there; nothing if code cannot compute with it.
std::optional<HostKind> host_kind(const Value& value);
/// Also that of an array, of text, or of a tuple.
std::optional<HostKind> array_kind(const Value& value);
/// The kind of text, or of a tuple of texts or of ints; nothing of others.
std::optional<HostKind> held_kind(const Value& value);
/// Of these what is held, and what that stands for.
Held held_of(const Value& value);
Value value_of(const Held& held, const HostKind& kind);
/// Its bits, if it has this kind; what is not known of a literal is not asked.
std::optional<uint64_t> host_bits(const Value& value, const HostKind& kind);

/// Functions compiled together: one that the walk calls, for arguments of
/// certain kinds, and those that it calls. Immutable.
struct FunctionCode {
  /// A local name at some place.
  struct Local {
    std::string name;
    HostOperand value;
    Span where;
    const Expr* type = nullptr;  // of a `var`, where it is written
    const LetStmt* declared = nullptr;
  };
  /// What the walk does where a step fails, or at a `walk_step`.
  struct Site {
    enum class What : uint8_t {
      binary,
      unary,
      abs,
      convert,
      builtin,
      part,   // of text or a tuple: an index, a slice
      piece,  // a value in text
      call,
      statement,
      turn,  // the run shall stop
      rest,  // of a loop that is long
    };
    What what = What::statement;
    Span where;  // the whole
    /// The step only looks whether the walk could do this: there is an error
    /// to tell, and no result.
    bool only_fails = false;
    // binary, unary, abs, convert, part
    const Expr* expr = nullptr;
    HostOperand a, b;
    HostKind result;
    std::vector<Span> arguments;  // convert, builtin, call
    // builtin; of a part, the bounds that are written
    const Builtin* function = nullptr;
    std::vector<HostOperand> operands;
    const StringPiece* text = nullptr;  // piece
    // call
    size_t callee = 0;
    // statement, rest
    const Stmt* statement = nullptr;
    std::vector<Local> locals;
    // rest of a `for` from `a` to `b`, by this
    int64_t by = 0;
  };
  struct Compiled {
    /// There as long as the code is valid: it holds no names alive.
    std::weak_ptr<const FunctionValue> function;
    const Function* syntax = nullptr;
    std::vector<HostKind> params;
    std::optional<HostKind> result;
    size_t start = 0;  // its first step
    uint32_t registers = 0;
  };
  /// A name outside the functions, and what it must still be.
  struct Outer {
    std::weak_ptr<Environment> environment;  // where it is looked up
    std::string name;
    std::weak_ptr<const FunctionValue> function = {};
    std::optional<DType> type = std::nullopt;
    std::optional<std::pair<HostKind, uint64_t>> number = std::nullopt;
    /// An array of this kind: where it lies is asked at each call.
    HostKind kind = {};
    std::shared_ptr<FunctionArray> array = nullptr;
    /// Text, or a tuple.
    std::optional<Held> held = std::nullopt;
  };

  /// Of a loop: where its statements are, the variables that it changes, and
  /// the register where its turns are counted. Not kept longer than it runs.
  Env environment;
  std::vector<Local> variables;
  uint32_t turns = 0;

  /// The root's call, the end, then the functions.
  std::vector<jit::Step> steps;
  std::unordered_map<size_t, Site> sites;  // by step
  std::vector<Compiled> functions;         // the root first
  uint32_t most_registers = 0;
  std::vector<Outer> outer;
  std::vector<Held> constants;
  bool holds = false;  // there are registers that text belongs to

  bool is_valid(Walk& walk, Span where) const;
};

/// Why a function is not compiled: it stays with the walk.
struct NotCode {
  Span where;
  std::string why;
};

/// The code of a function for arguments of these kinds; null, and `why`, if
/// there is none.
std::shared_ptr<const FunctionCode> compile_function(
    Walker& walker, const std::shared_ptr<const FunctionValue>& function,
    const std::vector<HostKind>& params, NotCode& why);

/// What is left of a loop of the walk.
struct LoopStart {
  const Stmt* loop = nullptr;
  std::optional<KnownRange> range;  // of a `for`
  Env environment;
  std::vector<Carry> variables;  // which it changes
};
/// The code of a loop, for the types that its variables have now; null, and
/// `why`, if there is none.
std::shared_ptr<const FunctionCode> compile_loop(Walker& walker,
                                                 const LoopStart& start,
                                                 NotCode& why);

/// What the walk keeps of functions and their code.
struct FunctionCodes {
  struct Entry {
    int64_t calls = 0;
    int compilations = 0;
    int failures = 0;  // of them, and calls that had to be walked again
    std::vector<std::shared_ptr<const FunctionCode>> variants;
  };
  std::unordered_map<const Function*, Entry> entries;
  /// Loops that have run as code.
  std::unordered_set<const Stmt*> loops;
  /// Memory for runs, those that nobody uses.
  struct Memory {
    std::vector<uint64_t> registers;
    std::vector<const jit::Step*> calls;
    std::vector<Held> held;
  };
  std::vector<std::unique_ptr<Memory>> memory;

  /// Memory for a run of code in which so many calls may nest.
  std::unique_ptr<Memory> take(const FunctionCode& code, size_t depth);
};

/// An expression, of which some names are what changes.
struct MemberStart {
  struct Name {
    const Pattern* pattern = nullptr;
    HostKind kind;
  };
  const Expr* expr = nullptr;
  Env environment;
  std::vector<Name> names;
};
/// Its code, which prints nothing; null if there is none.
std::shared_ptr<const FunctionCode> compile_member(Walker& walker,
                                                   const MemberStart& start);

/// Computes a member of a comprehension for each of many items as code.
class MemberCode {
 public:
  /// Null if it is to be walked.
  static std::shared_ptr<MemberCode> make(Walker& walker, const Expr& expr,
                                          const Pattern& pattern,
                                          const Value& item, const Env& env);
  ~MemberCode();
  MemberCode(const MemberCode&) = delete;
  MemberCode& operator=(const MemberCode&) = delete;
  /// Nothing if this one is to be walked.
  std::optional<Value> operator()(const Value& item);

 private:
  explicit MemberCode(Walker& walker) : walker_(walker) {}
  static bool split(const Pattern& pattern, const Value& item,
                    std::vector<std::pair<const Pattern*, Value>>& out);
  bool set(const Pattern& pattern, const Value& item, size_t& place);

  Walker& walker_;
  const Pattern* pattern_ = nullptr;
  Span where_;
  std::shared_ptr<const FunctionCode> code_;
  std::unique_ptr<FunctionCodes::Memory> memory_;
  std::unique_ptr<Walker::CodeRun> run_;  // for one item after the other
};

/// One call of the walk that runs as code.
class Walker::CodeRun : public TextRun {
 public:
  CodeRun(Walker& walker, const FunctionCode& code, Span where)
      : walker_(walker), code_(code), where_(where) {
    checked = walker.walk_.machine().checked;
    fuel = tuning().calls_between_looks;
    walk = walk_site;
    look = tell_turns;
    evaluate = evaluate_site;
    constants = code.constants.data();
    host = &walker.walk_;
  }

  /// What the function gives for arguments in the first registers; nothing if
  /// the walk has to call it: an element is at fault. What the walk throws
  /// comes through.
  std::optional<uint64_t> run(uint64_t* registers);
  /// Puts an argument into a register; false if it is none for code.
  bool set_argument(const Value& value, const HostKind& kind,
                    uint64_t* registers, size_t place);
  /// What a register of the first window stands for.
  Value result(const HostKind& kind, uint64_t* registers, uint32_t place,
               Span where) {
    // Nobody writes to it any more.
    if (kind.is(HostKind::Form::own)) return at(registers, place).array->cell;
    // Behind the arguments stands which of two it is.
    if (kind.is(HostKind::Form::whole))
      return result(registers[code_.functions[0].params.size()] == 0
                        ? HostKind::integer()
                        : HostKind::number(DType::I64, HostKind::Literal::no),
                    registers, place, where);
    return value({kind, false, 0, place}, registers, where);
  }
  /// Puts a value into a register.
  void store(const Value& value, const HostKind& kind, uint64_t* window,
             uint32_t place, Span where);
  /// Told of the turns of a loop, now and then.
  std::function<void(int64_t turns)> tell;

 private:
  static void tell_turns(CallRun& run) {
    const auto& own = static_cast<CodeRun&>(run);
    if (own.tell) own.tell(static_cast<int64_t>(own.first[own.code_.turns]));
  }
  /// Where statements are that the walk does.
  Env scope() const {
    return code_.environment && depth == 1
               ? code_.environment
               : walker_.s_.frames.back().environment;
  }
  static bool walk_site(CallRun& run, const jit::Step* step, uint64_t* window);
  static bool evaluate_site(TextRun& run, const jit::Step* step,
                            uint64_t* window);
  /// The walk does what the step would.
  bool walk_step_at(const jit::Step* step, uint64_t* window);
  Value walk_value(const FunctionCode::Site& site, uint64_t* window,
                   const jit::Step* step);
  void walk_rest(const FunctionCode::Site& site, uint64_t* window);
  void push_frames();
  Env names_of(const FunctionCode::Compiled& function,
               const uint64_t* window) const;
  Value value(const HostOperand& operand, const uint64_t* window,
              Span where) const {
    if (operand.kind.is(HostKind::Form::own))
      return shown(operand, window, where);
    if (operand.kind.is_held())
      return value_of(
          operand.known
              ? code_.constants[operand.bits]
              : held[static_cast<size_t>(window - first) + operand.place],
          operand.kind);
    const uint64_t bits = operand.known ? operand.bits : window[operand.place];
    return value(operand.kind, bits, where);
  }
  Value value(const HostKind& kind, uint64_t bits, Span where) const;
  Value shown(const HostOperand& operand, const uint64_t* window,
              Span where) const;
  ArrayValue copied(DType dtype, const std::vector<int64_t>& shape,
                    const uint8_t* elements, Span where) const;
  uint64_t bits_of(const Value& value, const HostKind& kind, Span where) const;

  Walker& walker_;
  const FunctionCode& code_;
  Span where_;  // the call
  std::exception_ptr thrown_;
  /// Arguments that are arrays; at addresses that stay.
  std::deque<std::pair<FunctionArray, Value>> arrays_;
};

// ---- the compiler -----------------------------------------------------------
//
//   function_compiler.cpp  functions, statements
//   function_expr.cpp      conversions, expressions, conditions
//   function_text.cpp      text, tuples of it, arrays
//   function_loop.cpp      loops, jumps
//
// What is not known there throws NotCode.

using FunctionPtr = std::shared_ptr<const FunctionValue>;

[[noreturn]] inline void give_up(Span where, std::string why) {
  throw NotCode{where, std::move(why)};
}

/// What a value is of which it is not known which of two it is; nothing if they
/// have nothing in common.
std::optional<HostKind> common_kind(const HostKind& a, const HostKind& b);
/// What a comparison is; nothing of other operators.
std::optional<jit::bytecode::Compare> comparison(BinaryOp op);
/// Whether it is an int, or an element of integers.
bool is_whole(const HostKind& kind);
/// A value that is not there as the walk would have it. (One that may still be
/// a number is: as the scalar that it would be taken for.)
inline bool is_unknown(const HostKind& kind) {
  return kind.is(HostKind::Form::either) || kind.is(HostKind::Form::whole) ||
         (kind.is(HostKind::Form::number) &&
          kind.literal == HostKind::Literal::unknown);
}
/// Whether walking it may assign a variable.
bool assigns(const Expr& e);

/// Compiles functions into one code. A friend of Walker, whose rules for
/// literals and annotations it asks.
class FunctionCompiler {
 public:
  /// What is not seen at once, and is found when it is taken for something
  /// else: then it is compiled anew.
  struct Guesses {
    std::map<const Function*, HostKind> results;  // of recursive functions
    /// Those that give an int in one place, and a weak one in another.
    std::set<const Function*> whole;
    /// Types that `var`s take which begin as numbers.
    std::map<const LetStmt*, DType> variables;
  };
  FunctionCompiler(Walker& walker, Guesses& guesses)
      : walker_(walker), walk_(walker.walk()), guesses_(guesses) {}

  std::shared_ptr<const FunctionCode> compile(
      const FunctionPtr& function, const std::vector<HostKind>& params);
  std::shared_ptr<const FunctionCode> compile(const LoopStart& start);
  std::shared_ptr<const FunctionCode> compile(const MemberStart& start);

  /// A guess was wrong, or missing.
  struct WrongGuess {};

 private:
  class Body;

  /// A function, or loop, that is compiled, or being so.
  struct Unit {
    FunctionCode::Compiled compiled;
    const Stmt* loop = nullptr;
    Span where;
    std::vector<jit::Step> steps;
    std::unordered_map<size_t, FunctionCode::Site> sites;
    bool done = false;
    bool is_recursive = false;  // or calls one that calls it
    bool holds = false;         // text belongs to registers of it
  };

  /// The function compiled for these kinds, by its place among `units_`.
  size_t unit_of(const FunctionPtr& function,
                 const std::vector<HostKind>& params, Span where);
  /// What its result is; while it is being compiled by its annotation, or a
  /// guess.
  HostKind result_of(size_t unit);
  std::shared_ptr<FunctionCode> link();
  /// What a name outside of functions is; noted as what it must stay.
  Value outer_value(const Env& env, const NameExpr& name);
  /// The kind that an annotation asks for; nothing without one.
  std::optional<HostKind> annotated(const Expr* type) const;

  Walker& walker_;
  Walk& walk_;
  Guesses& guesses_;
  std::vector<std::unique_ptr<Unit>> units_;
  std::vector<FunctionCode::Outer> outer_;
  std::vector<Held> constants_;
  bool prints_ = false;
  /// A step may fail for which the walk has to begin again.
  std::optional<Span> begins_again_;
};

/// One function, or loop.
class FunctionCompiler::Body {
 public:
  /// `env`: where names are that are not its own.
  Body(FunctionCompiler& all, Unit& unit, Env env)
      : all_(all), unit_(unit), env_(std::move(env)) {}

  void compile();
  /// The loop's variables, and the register of its turns.
  std::pair<std::vector<FunctionCode::Local>, uint32_t> compile(
      const LoopStart& start);
  void compile(const MemberStart& start);

 private:
  using Operand = HostOperand;
  using Site = FunctionCode::Site;
  using Local = FunctionCode::Local;
  enum class Use : uint8_t { nothing, value, result };
  struct Target {
    std::vector<size_t> jumps;  // which go there
  };
  /// Where the jumps of a loop go.
  struct LoopExits {
    Target *end, *turn;
  };

  // ---- registers and steps

  uint32_t reserve() {
    constexpr uint32_t most_registers = 256;
    if (++top_ > most_registers) give_up(unit_.where, "it is too large");
    most_ = std::max(most_, top_);
    return top_ - 1;
  }
  size_t emit(jit::StepFunction function, uint32_t out = 0, uint32_t a = 0,
              uint32_t b = 0, uint32_t c = 0, int64_t number = 0) {
    CHECK(function != nullptr);
    unit_.steps.push_back({function, out, {a, b, c}, number});
    return unit_.steps.size() - 1;
  }
  /// The steps before go on here.
  void bind(Target& target) {
    for (const size_t step : target.jumps)
      unit_.steps[step].in[0] =
          static_cast<uint32_t>(unit_.steps.size() - step);
  }
  void jump(Target& target) {
    target.jumps.push_back(emit(jit::bytecode::jump_step));
  }

  static Operand known(HostKind kind, uint64_t bits) {
    return {kind, true, bits};
  }
  static Operand in(HostKind kind, uint32_t place) {
    return {kind, false, 0, place};
  }
  /// The value in a register: its own, or `place`.
  uint32_t placed(const Operand& value, uint32_t place) {
    if (!value.known) return value.place;
    if (value.kind.is_held())
      emit(text_step(TextStep::constant), place, 0, 0, 0,
           static_cast<int64_t>(value.bits));
    else
      emit(jit::bytecode::constant_step, place, 0, 0, 0,
           static_cast<int64_t>(value.bits));
    return place;
  }
  Operand move(const Operand& value, uint32_t place) {
    const uint32_t from = placed(value, place);
    if (from != place)
      emit(value.kind.is_held() ? text_step(TextStep::copy)
                                : jit::bytecode::copy_step,
           place, from);
    return in(value.kind, place);
  }
  /// The same, where nothing reads the register any more in which it lies.
  Operand take(const Operand& value, uint32_t place) {
    if (value.known || !value.kind.is_held()) return move(value, place);
    if (value.place != place)
      emit(text_step(TextStep::move), place, value.place);
    return in(value.kind, place);
  }
  /// A value that no assignment changes.
  Operand kept(const Operand& value, uint32_t place) {
    return value.changes ? move(value, place) : value;
  }

  // ---- names

  const Operand* local(const std::string& name) const {
    for (size_t i = locals_.size(); i-- > 0;)
      if (locals_[i].name == name) return &locals_[i].value;
    return nullptr;
  }

  // ---- conversions

  /// `failure`: what the walk does where the value does not fit; without it,
  /// the whole call is walked then.
  Operand to_scalar(const Operand& value, DType dtype, uint32_t place,
                    Span where, const Site* failure = nullptr);
  Operand to_number(const Operand& value, DType dtype, uint32_t place);
  Operand match(const Operand& value, const Expr* type, uint32_t place,
                Span where);
  Operand as_variable(const Operand& value, uint32_t place);
  Operand as_scalar_variable(const LetStmt& s, const Operand& value,
                             DType dtype, uint32_t place);

  // ---- expressions: `place` is a register that the value may be put in

  /// A number or boolean.
  Operand expr(const Expr& e, uint32_t place);
  /// Or text, or a tuple.
  Operand value(const Expr& e, uint32_t place);
  /// Or an array.
  Operand any(const Expr& e, uint32_t place);
  Operand element(const Index& e, uint32_t place);
  Operand constant(const Expr& e);
  Operand name(const NameExpr& e);
  Operand unary(const Unary& e, uint32_t place);
  Operand binary(const Binary& e, uint32_t place);
  Operand operation(BinaryOp op, const Operand& a, const Operand& b,
                    uint32_t place, const Expr* site, Span where);
  Operand ints(BinaryOp op, const Operand& a, const Operand& b, uint32_t place,
               const Expr* site, Span where);
  Operand elements(ir::Op op, bool comparison, const Operand& a,
                   const Operand& b, uint32_t place, Span where,
                   const Expr* site = nullptr);
  Operand logic(const Binary& e, uint32_t place);
  Operand call(const Expr& e, const Expr& callee,
               const std::vector<const Expr*>& arguments, uint32_t place);
  Operand call_function(const FunctionPtr& function,
                        const std::vector<const Expr*>& arguments,
                        uint32_t place, Span where);
  Operand call_builtin(const Builtin& builtin,
                       const std::vector<const Expr*>& arguments,
                       uint32_t place, const Expr& whole);

  // ---- text

  /// Text belongs to registers of the function.
  void hold() {
    if (all_.walk_.machine().limits.host_bytes > 0)
      give_up(unit_.where, "text is counted here");
    unit_.holds = holds_ = true;
  }
  Operand evaluate(Site site_of, HostKind result, uint32_t place);
  Operand held_constant(HostKind kind, Held held);
  std::optional<Operand> items_constant(const Expr& e);
  void add_item(uint32_t tuple, const Operand& item, Span where);
  Operand tuple(const Tuple& e, uint32_t place);
  Operand texts(const Comprehension& e, uint32_t place);
  Operand text_literal(const StringLiteral& e, uint32_t place);
  void append_piece(const StringPiece& piece, uint32_t place);
  uint32_t index_register(const Operand& index, uint32_t place, Span where);
  Operand part(const Index& e, const Operand& whole, uint32_t place);
  Operand slice(const Index& e, const Slice& bounds, const Operand& whole,
                uint32_t place);
  Operand text_operation(BinaryOp op, const Operand& a, const Operand& b,
                         uint32_t place, const Expr* e, Span where);
  Operand length(const Operand& whole, uint32_t place);
  std::optional<Operand> text_function(
      const Builtin& builtin, const std::vector<const Expr*>& arguments,
      uint32_t place, const Expr& whole);
  bool append(const AssignStmt& s, const Operand& variable);
  void let_items(const LetStmt& s, const Operand& items);
  void for_held(const Pattern& pattern, const Expr& iterable, const Stmt* s,
                const std::function<void(Target& end)>& turn);

  // ---- arrays that the function makes

  /// The same of an array: they lie in the host's memory.
  void hold_array() {
    const bool on_host =
        home_device(all_.walk_.machine().runtime->devices()).kind() ==
        DeviceKind::cpu;
    if (!on_host)
      give_up(unit_.where, "arrays do not lie in the host's memory");
    hold();
  }
  std::optional<Operand> new_array(const Call& made, uint32_t place);
  Operand own_copy(const Operand& array, uint32_t place);
  uint32_t element_place(const Operand& array,
                         const std::vector<uint32_t>& indices, uint32_t place);
  std::vector<uint32_t> indices_of(const Index& e, const Operand& array);
  Operand load(const Operand& array, uint32_t at, uint32_t place);
  void assign_element(const Index& target, const AssignStmt& s,
                      const Operand* given);
  Operand as_element(const Operand& value, DType dtype, uint32_t place,
                     Span where);
  std::optional<Operand> reduction(const Builtin& builtin,
                                   const std::vector<const Expr*>& arguments,
                                   uint32_t place, const Expr& whole);

  void site(size_t step, Site::What what, const Expr* e, Span where,
            const Operand& a, const Operand& b, HostKind result);
  void walk_statement(const Stmt& statement, bool prints);
  bool assertion(const Stmt& statement, const Call& call);

  // ---- conditions, blocks, statements

  void jump_unless(const Operand& condition, Target& exit, Span where);
  void jump_if(const Operand& condition, Target& there, Span where);
  bool is_int(const Expr& e) const;
  bool is_host_condition(const Expr& e) const;
  void condition(const Expr& e, Target& exit);
  Operand branches(const If& e, Use use, uint32_t place);
  Operand block(const Expr& e, Use use, uint32_t place);
  Operand finish(const Expr& e, Use use, uint32_t place);
  void statement(const Stmt& s);
  void let(const LetStmt& s);
  void let_each(const LetStmt& s, const Tuple& values);
  void jump(const JumpStmt& s);
  const Local& variable(const NameExpr& name, Span where) const;
  void assign(const AssignStmt& s);
  void assign_to(const Expr& target, const AssignStmt& s, const Operand* given);
  void assign_name(const Local& local, const AssignStmt& s,
                   const Operand* given);
  struct Bounds {
    Operand start, stop;
    int64_t by = 1;
    DType dtype = DType::I32;
  };
  void for_loop(const ForStmt& s, const KnownRange* known_range);
  void while_loop(const WhileStmt& s);
  void count_turn(const Stmt& s);
  void body_of_loop(const Expr& body, Target& end);
  Bounds range_of(const ForStmt& s);
  bool is_range(const ForStmt& s) const;
  Operand bound(const Operand& value, DType dtype, const ForStmt& s);
  template <class Turns>
  void loop(const Stmt* s, Span where, uint32_t looks, Turns&& turns);
  void give(const Operand& value, Span where);
  void end_unit();

  FunctionCompiler& all_;
  Unit& unit_;
  Env env_;
  std::vector<Local> locals_;
  uint32_t top_ = 0, most_ = 0;
  /// The loop being compiled calls what cannot be traced, so it is code to its
  /// end.
  bool recursive_ = false;
  bool holds_ = false;  // text belongs to registers in the loop
  bool gives_ = false;  // a `return` stands in the loop
  std::vector<LoopExits> loops_;
  uint32_t turns_ = 0;  // a register, if the unit is a loop
};

}  // namespace unisono::lang
