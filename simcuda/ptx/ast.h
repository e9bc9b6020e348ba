#pragma once
// A PTX module as written, before it is decoded for a device.
#include <cstdint>
#include <string>
#include <vector>

namespace simcuda {

enum class Type : uint8_t {
#define PTX_TYPE(name, bytes, class_) name,
#include "simcuda/ptx/types.def"
  none,
};
enum class TypeClass : uint8_t {
  predicate,
  bits,
  unsigned_,
  signed_,
  floating,
  packed,
  none,
};

/// The type with this name; Type::none if there is none.
Type type_named(std::string_view name);
const char* type_name(Type type);
int type_bytes(Type type);
TypeClass type_class(Type type);
inline bool is_signed(Type t) { return type_class(t) == TypeClass::signed_; }

enum class Space : uint8_t {
  generic,
  global,
  shared,
  local,
  constant,
  parameter,
};

struct Operand {
  enum class Kind : uint8_t {
    name,     // a register, a variable, a label, a function
    integer,  // bits
    real,     // bits, of real_bytes
    vector,   // parts
    address,  // parts[0] (a name or an integer) plus offset
    pair,     // parts[0] | parts[1]
    negated,  // !parts[0]
    list,     // (parts), of a call
    sink,     // _
  };
  Kind kind = Kind::name;
  std::string name;
  uint64_t bits = 0;
  uint8_t real_bytes = 0;
  int64_t offset = 0;
  std::vector<Operand> parts;
};

struct Variable {
  std::string name;
  Space space = Space::generic;
  Type type = Type::b8;
  uint64_t count = 1;  // elements
  bool is_array = false;
  bool is_external = false;  // `.extern .shared x[]`: sized by the launch
  uint32_t align = 0;        // at least the type's
  struct Initial {
    uint64_t bits = 0;
    std::string symbol;  // not empty: its address, plus `bits`
  };
  std::vector<Initial> initial;
  int line = 0;
  uint64_t bytes() const { return count * type_bytes(type); }
};

struct Statement {
  enum class Kind : uint8_t {
    instruction,
    label,      // name
    registers,  // name<count> of type; count 0: one register `name`
    variable,
    open,   // {
    close,  // }
  };
  Kind kind = Kind::instruction;
  int line = 0;
  std::string name;   // the opcode with its suffixes, or a label
  std::string guard;  // a predicate, or empty
  bool guard_negated = false;
  std::vector<Operand> operands;
  Type type = Type::none;
  uint64_t count = 0;
  Variable variable;
  std::vector<std::string> targets;  // of a branch table
};

struct FunctionText {
  std::string name;
  bool is_entry = false;
  bool has_body = false;
  std::vector<Variable> results, parameters;
  std::vector<Statement> body;
  uint32_t max_threads[3] = {0, 0, 0};       // .maxntid
  uint32_t required_threads[3] = {0, 0, 0};  // .reqntid
  int line = 0;
};

struct ModuleText {
  int version = 0;            // 83 is 8.3
  int target = 0;             // 90 is sm_90
  bool target_exact = false;  // sm_90a
  std::vector<Variable> variables;
  std::vector<FunctionText> functions;
};

/// Parses a module. False: `error` says what is wrong in which line.
bool parse_ptx(std::string_view source, ModuleText& module, std::string& error);

}  // namespace simcuda
