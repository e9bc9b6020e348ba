#pragma once
// From a ModuleText to Kernels: names become rows and offsets, opcodes become
// handlers, calls are inlined. Opcodes are opcodes.def; each belongs to a
// family, whose function picks the handler.
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "simcuda/ptx/ast.h"
#include "simcuda/ptx/code.h"

namespace simcuda {

/// An opcode such as `ld.global.v4.f32` in its parts, which point into `text`.
struct Opcode {
  std::string_view base;
  std::vector<std::string_view> suffixes;  // types too
  std::vector<Type> types;
  explicit Opcode(std::string_view text);
  bool has(std::string_view suffix) const;
  /// The number, in the list, of the opcode's first suffix that is there; -1 if
  /// none is.
  int which(std::initializer_list<const char*> suffixes) const;
  Type type(size_t i = 0) const {
    return i < types.size() ? types[i] : Type::none;
  }
};

/// One instruction while it is decoded into `out`. Functions that give a bool
/// give false after an error (fail).
class Decoding {
 public:
  Decoding(const Opcode& opcode, const Statement& statement,
           const ModuleText& module)
      : op(opcode),
        statement(statement),
        target(module.target),
        exact(module.target_exact) {}
  virtual ~Decoding() = default;

  const Opcode& op;
  const Statement& statement;
  const int target;  // 90 is sm_90
  const bool exact;  // sm_90a
  Instruction out;

  size_t count() const { return statement.operands.size(); }
  const Operand& operand(size_t i) const { return statement.operands[i]; }

  /// The row to read or write; no_slot, with an error, when the operand does
  /// not fit. `any_size`: a wider register will do (cvt, ld, st).
  virtual Slot read(const Operand& operand, Type type, bool any_size) = 0;
  virtual Slot write(const Operand& operand, Type type, bool any_size) = 0;
  /// The size of a register as declared; 0 when it is none.
  virtual int register_bytes(const Operand& operand) = 0;
  /// Fills in out.a or out.offset, and out.narrow_address; a name stands for
  /// its address.
  virtual bool address(const Operand& operand, Space space) = 0;
  /// Sets the instruction's list: slots, of which the first `defined` are
  /// written.
  virtual void add_slots(Instruction& instruction,
                         const std::vector<Slot>& slots, size_t defined) = 0;
  /// A row of 8 bytes that only this instruction uses; and a row of a constant.
  virtual Slot scratch() = 0;
  virtual Slot constant(uint64_t bits, int bytes) = 0;
  /// Adds an instruction behind this one, under the same guard.
  virtual void follow(const Instruction& instruction) = 0;
  /// A number for the label, which is replaced by its place when all are known.
  virtual uint32_t label(const std::string& name) = 0;
  /// The bytes of all parameters of the kernel.
  virtual uint32_t parameter_bytes() const = 0;
  virtual void add_labels(const std::vector<Slot>& labels) = 0;
  /// The labels of a `.branchtargets`, or null.
  virtual const std::vector<std::string>* table(const std::string& name) = 0;
  /// In a function that is inlined: the label at its end; else null.
  virtual const std::string* end_of_call() = 0;
  /// The kernel has wgmma, whose reads of shared memory are watched.
  virtual void multiplies_shared() = 0;
  /// Notes an error; returns false.
  virtual bool fail(const std::string& what) = 0;

  /// Decodes dst and a, b, c by a pattern such as `t:ttu`. t: the type of the
  /// opcode, w: one of twice its size, s: its second type, u: u32, p: a
  /// predicate.
  bool operands(std::string_view pattern);
  bool unsupported() {
    return fail("`" + statement.name + "` is not supported");
  }
  /// Fails if the module's target is older.
  bool needs(int minimum) {
    return target >= minimum || fail("`" + statement.name + "` requires sm_" +
                                     std::to_string(minimum) + " or higher");
  }
  /// Fails if the module's target is not this very one, with an `a`.
  bool needs_exactly(int only) {
    return (exact && target == only) ||
           fail("`" + statement.name + "` requires sm_" + std::to_string(only) +
                "a");
  }
  bool handler(Handler run) {
    out.run = run;
    return run != nullptr || unsupported();
  }
};

#define OPCODE(name, family) bool decode_##family(Decoding&);
#include "simcuda/opcodes/opcodes.def"

/// Where the variables of a loaded module lie.
using SymbolAddresses = std::map<std::string, uint64_t, std::less<>>;

/// Decodes one kernel of a module. False: `error` says what is wrong in which
/// line.
bool decode_kernel(const ModuleText& module, const FunctionText& function,
                   const SymbolAddresses& symbols, Kernel& kernel,
                   std::string& error);

}  // namespace simcuda
