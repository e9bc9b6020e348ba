#pragma once
// Functions of the host as threaded code. Private to this room.
//
// A function that is called often, and computes with scalars alone, is compiled
// from its tree to steps (jit/bytecode/call_steps.h), with the functions that
// it calls: its calls are jumps. What the steps cannot do as the walk would is
// done by the walk, in frames that are made of the windows of the calls under
// way: an int that does not fit, a call too deep, `print`, a failing `assert`.
// So an error is the walk's own, with its place and the calls around it.
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "jit/bytecode/call_steps.h"
#include "lang/walk/walker.h"

namespace unisono::lang {

/// What the compiler knows of a value: all but its bits, which are in a
/// register.
struct HostKind {
  enum class Form : uint8_t {
    integer,  // IntValue
    boolean,  // BoolValue
    either,   // that, or a bool scalar: the condition of an `if`
    number,   // a weak number (value.h): f64 or i64
    scalar,   // an array of rank 0
  };
  /// Of a weak number: whether it is ArrayCell::literal.
  enum class Literal : uint8_t { no, yes, unknown };
  Form form = Form::integer;
  DType dtype = DType::I64;
  Literal literal = Literal::no;
  bool operator==(const HostKind&) const = default;

  static HostKind integer() { return {}; }
  static HostKind boolean() { return {Form::boolean, DType::Bool}; }
  static HostKind scalar(DType dtype) { return {Form::scalar, dtype}; }
  static HostKind number(DType dtype, Literal literal) {
    return {Form::number, dtype, literal};
  }
  bool is(Form f) const { return form == f; }
};

/// A value that is known, or lies in a register of the function.
struct HostOperand {
  HostKind kind;
  bool known = false;
  uint64_t bits = 0;     // if it is
  uint32_t place = 0;    // else
  bool changes = false;  // it is the place of a `var`
};

/// The kind of a value that is there; nothing if code cannot compute with it.
std::optional<HostKind> host_kind(const Value& value);
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
  };
  /// What the walk does where a step fails, or at a `walk_step`.
  struct Site {
    enum class What : uint8_t { binary, unary, abs, call, statement };
    What what = What::statement;
    Span where;  // the whole
    // binary, unary, abs
    const Expr* expr = nullptr;
    HostOperand a, b;
    HostKind result;
    // call
    size_t callee = 0;
    std::vector<Span> arguments;
    // statement
    const Stmt* statement = nullptr;
    std::vector<Local> locals;
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
  };

  /// The root's call, the end, then the functions.
  std::vector<jit::Step> steps;
  std::unordered_map<size_t, Site> sites;  // by step
  std::vector<Compiled> functions;         // the root first
  uint32_t most_registers = 0;
  std::vector<Outer> outer;

  bool is_valid() const;
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

/// What the walk keeps of functions and their code.
struct FunctionCodes {
  struct Entry {
    int64_t calls = 0;
    int compilations = 0;
    int failures = 0;  // of them, and calls that had to be walked again
    std::vector<std::shared_ptr<const FunctionCode>> variants;
  };
  std::unordered_map<const Function*, Entry> entries;
  /// Memory for runs, those that nobody uses.
  struct Memory {
    std::vector<uint64_t> registers;
    std::vector<const jit::Step*> calls;
  };
  std::vector<std::unique_ptr<Memory>> memory;
};

}  // namespace unisono::lang
