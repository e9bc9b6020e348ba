#include "simcuda/opcodes/decode.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <unordered_map>

#include "simcuda/machine/block.h"
#include "simcuda/machine/lanes.h"

namespace simcuda {

Opcode::Opcode(std::string_view text) {
  size_t dot = text.find('.');
  base = text.substr(0, dot);
  while (dot != std::string_view::npos) {
    size_t next = text.find('.', dot + 1);
    suffixes.push_back(text.substr(dot + 1, next - dot - 1));
    if (Type type = type_named(suffixes.back()); type != Type::none)
      types.push_back(type);
    dot = next;
  }
}
bool Opcode::has(std::string_view suffix) const {
  return std::find(suffixes.begin(), suffixes.end(), suffix) != suffixes.end();
}
int Opcode::which(std::initializer_list<const char*> names) const {
  // In the order of the suffixes: `setp.eq.and` is an eq, not an and.
  for (std::string_view suffix : suffixes) {
    int place = 0;
    for (const char* name : names) {
      if (suffix == name) return place;
      ++place;
    }
  }
  return -1;
}

bool Decoding::operands(std::string_view pattern) {
  if (count() + 1 != pattern.size()) {
    return fail("`" + statement.name + "` takes " +
                std::to_string(pattern.size() - 1) + " operands");
  }
  auto wide = [](Type type) {
    switch (type) {
      case Type::u16: return Type::u32;
      case Type::s16: return Type::s32;
      case Type::u32: return Type::u64;
      case Type::s32: return Type::s64;
      default: return Type::none;
    }
  };
  auto type = [&](char c) {
    return c == 't'   ? op.type()
           : c == 'w' ? wide(op.type())
           : c == 's' ? op.type(1)
           : c == 'u' ? Type::u32
                      : Type::pred;
  };
  if (op.types.empty() && pattern.find('t') != std::string_view::npos)
    return fail("`" + statement.name + "` needs a type");
  out.dst = write(operand(0), type(pattern[0]), false);
  Slot* sources[] = {&out.a, &out.b, &out.c};
  for (size_t i = 2; i < pattern.size(); ++i)
    *sources[i - 2] = read(operand(i - 1), type(pattern[i]), false);
  return true;
}

// simcuda/ptx/rows.cpp
void share_rows(Kernel& kernel, const std::vector<uint8_t>& widths);

namespace {

using Family = bool (*)(Decoding&);
struct OpcodeRow {
  std::string_view name;
  Family decode;
};
constexpr OpcodeRow opcode_rows[] = {
#define OPCODE(name, family) {#name, decode_##family},
#include "simcuda/opcodes/opcodes.def"
};
Family family_of(std::string_view base) {
  for (const OpcodeRow& row : opcode_rows)
    if (row.name == base) return row.decode;
  return nullptr;
}

constexpr struct {
  std::string_view name;
  Special special;
} special_rows[] = {
    {"%tid.x", Special::tid_x},
    {"%tid.y", Special::tid_y},
    {"%tid.z", Special::tid_z},
    {"%ntid.x", Special::ntid_x},
    {"%ntid.y", Special::ntid_y},
    {"%ntid.z", Special::ntid_z},
    {"%ctaid.x", Special::ctaid_x},
    {"%ctaid.y", Special::ctaid_y},
    {"%ctaid.z", Special::ctaid_z},
    {"%nctaid.x", Special::nctaid_x},
    {"%nctaid.y", Special::nctaid_y},
    {"%nctaid.z", Special::nctaid_z},
    {"%laneid", Special::laneid},
    {"%warpid", Special::warpid},
    {"%nwarpid", Special::nwarpid},
    {"%smid", Special::smid},
    {"%nsmid", Special::nsmid},
    {"%gridid", Special::gridid},
    {"%clock", Special::clock},
    {"%clock64", Special::clock64},
    {"%globaltimer", Special::globaltimer},
    {"%lanemask_eq", Special::lanemask_eq},
    {"%lanemask_le", Special::lanemask_le},
    {"%lanemask_lt", Special::lanemask_lt},
    {"%lanemask_ge", Special::lanemask_ge},
    {"%lanemask_gt", Special::lanemask_gt},
    {"%dynamic_smem_size", Special::dynamic_smem_size},
    {"%total_smem_size", Special::total_smem_size},
};
bool is_clock(Special special) {
  return special == Special::clock || special == Special::clock64 ||
         special == Special::globaltimer;
}
int special_bytes(Special special) {
  return special == Special::gridid || special == Special::clock64 ||
                 special == Special::globaltimer
             ? 8
             : 4;
}

Flow read_clock(Warp& warp, const Instruction& i) {
  warp.worker->polled = true;
  const auto now = std::chrono::steady_clock::now().time_since_epoch();
  const auto ticks = static_cast<uint64_t>(
      std::chrono::duration_cast<std::chrono::nanoseconds>(now).count());
  if (i.mode == 8) {
    map_lanes(warp, warp.row<uint64_t>(i.dst), [=](int) { return ticks; });
  } else {
    map_lanes(warp, warp.row<uint32_t>(i.dst),
              [=](int) { return static_cast<uint32_t>(ticks); });
  }
  return Flow::next;
}

constexpr uint32_t label_bit = 1u << 30;
constexpr size_t max_code = 1'000'000;
constexpr uint32_t max_local_bytes = 512 << 10;  // of a thread, as on hardware
constexpr int max_inline_depth = 32;

struct Registers {
  Type type = Type::none;
  uint64_t count = 0;                        // 0: one, of exactly this name
  std::unordered_map<uint64_t, Slot> slots;  // those that are used
};

struct Place {  // of a variable
  Space space = Space::generic;
  uint64_t address = 0;
};

struct Scope {
  std::unordered_map<std::string, Registers> registers;
  std::unordered_map<std::string, Place> variables;
};

class KernelDecoder {
 public:
  KernelDecoder(const ModuleText& module, const FunctionText& function,
                const SymbolAddresses& symbols, Kernel& kernel,
                std::string& error)
      : module_(module),
        function_(function),
        symbols_(symbols),
        kernel_(kernel),
        error_(error) {}

  bool run();

 private:
  friend class OneDecoding;
  bool fail(int line, const std::string& what) {
    if (error_.empty()) error_ = "line " + std::to_string(line) + ": " + what;
    return false;
  }
  static uint64_t align_up(uint64_t x, uint64_t align) {
    return (x + align - 1) / align * align;
  }
  void lay_out_parameters();
  bool lay_out_shared();
  bool body(const FunctionText& function, int depth);
  bool statement(const Statement& statement, int depth);
  bool declare(const Variable& variable);
  bool instruction(const Statement& statement, int depth);
  bool call(const Statement& statement, int depth);
  bool emit(Instruction instruction, int line);
  bool finish();

  Registers* find_registers(const std::string& name, uint64_t& number);
  Slot row_of(Registers& registers, uint64_t number);
  const Place* find_variable(const std::string& name) const;
  Slot new_row(int bytes) {
    Slot slot = kernel_.rows;
    widths_.resize(slot + 2, 0);
    widths_[slot] = bytes == 8 ? 2 : 1;
    kernel_.rows += bytes == 8 ? 2 : 1;
    return slot;
  }
  Slot constant(uint64_t bits, int bytes);
  Slot special(Special which, int line);
  uint32_t label(const std::string& name) {
    const std::string full = std::to_string(instance_) + ":" + name;
    auto [it, fresh] = label_numbers_.try_emplace(
        full, static_cast<uint32_t>(label_places_.size()));
    if (fresh) {
      label_places_.push_back(~0u);
      label_names_.push_back(name);
    }
    return it->second | label_bit;
  }

  const ModuleText& module_;
  const FunctionText& function_;
  const SymbolAddresses& symbols_;
  Kernel& kernel_;
  std::string& error_;
  std::vector<Scope> scopes_;
  std::unordered_map<std::string, Place> outer_;  // of module and entry
  std::map<std::pair<uint64_t, int>, Slot> constants_;
  std::map<Special, Slot> specials_;
  std::unordered_map<std::string, uint32_t> label_numbers_;
  std::vector<uint32_t> label_places_;
  std::vector<std::string> label_names_;
  std::unordered_map<std::string, std::vector<std::string>> tables_;
  std::vector<std::string> call_ends_;
  std::vector<std::string> calls_;  // functions that are being inlined
  int instance_ = 0, instances_ = 0;
  uint32_t dynamic_begin_ = 0;
  std::vector<uint8_t> widths_;  // rows of the register that begins at a row
};

class OneDecoding final : public Decoding {
 public:
  OneDecoding(KernelDecoder& decoder, const Opcode& opcode,
              const Statement& statement)
      : Decoding(opcode, statement, decoder.module_), on_(decoder) {}

  std::vector<Instruction> followers;

  Slot read(const Operand& operand, Type type, bool any_size) override {
    const int bytes = type_bytes(type);
    if (operand.kind == Operand::Kind::integer) {
      uint64_t bits = operand.bits;
      if (type == Type::pred) bits = bits != 0;
      return constant(bits, bytes);
    }
    if (operand.kind == Operand::Kind::real) {
      uint64_t bits = operand.bits;
      if (operand.real_bytes == 8 && bytes == 4) {
        bits = std::bit_cast<uint32_t>(
            static_cast<float>(std::bit_cast<double>(bits)));
      } else if (operand.real_bytes != bytes) {
        fail("a constant of another size");
      }
      return constant(bits, bytes);
    }
    if (operand.kind != Operand::Kind::name) {
      fail("an operand of another kind is expected");
      return no_slot;
    }
    uint64_t number = 0;
    if (Registers* found = on_.find_registers(operand.name, number))
      return checked(*found, number, operand.name, type, any_size);
    if (operand.name == "WARP_SZ") return constant(warp_size, bytes);
    for (const auto& row : special_rows) {
      if (row.name != operand.name) continue;
      int have = special_bytes(row.special);
      if (have > bytes) fail("`" + operand.name + "` is larger");
      Slot slot = on_.special(row.special, statement.line);
      return have == bytes ? slot : widened(slot);
    }
    if (const Place* place = on_.find_variable(operand.name)) {
      if (bytes < 4) fail("an address is larger");
      return constant(place->address, bytes);
    }
    fail("unknown name `" + operand.name + "`");
    return no_slot;
  }

  Slot write(const Operand& operand, Type type, bool any_size) override {
    uint64_t number = 0;
    Registers* found = operand.kind == Operand::Kind::name
                           ? on_.find_registers(operand.name, number)
                           : nullptr;
    if (found == nullptr) {
      fail("a register is expected as the destination");
      return no_slot;
    }
    return checked(*found, number, operand.name, type, any_size);
  }

  int register_bytes(const Operand& operand) override {
    uint64_t number = 0;
    Registers* found = operand.kind == Operand::Kind::name
                           ? on_.find_registers(operand.name, number)
                           : nullptr;
    return found == nullptr ? 0 : type_bytes(found->type);
  }

  bool address(const Operand& operand, Space space) override {
    if (operand.kind != Operand::Kind::address)
      return fail("an address in brackets is expected");
    const Operand& base = operand.parts[0];
    out.offset = operand.offset;
    if (base.kind == Operand::Kind::integer) {
      out.offset += static_cast<int64_t>(base.bits);
      return true;
    }
    uint64_t number = 0;
    if (Registers* found = on_.find_registers(base.name, number)) {
      const int bytes = type_bytes(found->type);
      if (bytes != 8 && bytes != 4) return fail("not a register of an address");
      out.narrow_address = bytes == 4;
      out.a = on_.row_of(*found, number);
      return true;
    }
    const Place* place = on_.find_variable(base.name);
    if (place == nullptr) return fail("unknown name `" + base.name + "`");
    out.offset += static_cast<int64_t>(place->address);
    // A parameter of an inlined function lies with its caller's locals.
    if (space == Space::parameter) {
      out.space = place->space;
    } else if (space != Space::generic && space != place->space &&
               !(space == Space::global && place->space == Space::constant)) {
      return fail("`" + base.name + "` lies in another space");
    } else if (space == Space::generic) {
      out.space = place->space;
    }
    return true;
  }

  void add_slots(Instruction& instruction, const std::vector<Slot>& slots,
                 size_t defined) override {
    auto& all = on_.kernel_.slots;
    instruction.list = static_cast<uint32_t>(all.size());
    instruction.list_size = static_cast<uint16_t>(slots.size());
    instruction.list_defines = static_cast<uint16_t>(defined);
    all.insert(all.end(), slots.begin(), slots.end());
  }
  void add_labels(const std::vector<Slot>& labels) override {
    auto& all = on_.kernel_.slots;
    out.list = static_cast<uint32_t>(all.size());
    all.insert(all.end(), labels.begin(), labels.end());
  }
  void multiplies_shared() override { on_.kernel_.multiplies_shared = true; }
  Slot scratch() override { return on_.new_row(8); }
  Slot constant(uint64_t bits, int bytes) override {
    return on_.constant(bits, bytes);
  }
  void follow(const Instruction& instruction) override {
    followers.push_back(instruction);
  }
  uint32_t parameter_bytes() const override {
    return on_.kernel_.parameter_bytes;
  }
  uint32_t label(const std::string& name) override { return on_.label(name); }
  const std::vector<std::string>* table(const std::string& name) override {
    auto it = on_.tables_.find(std::to_string(on_.instance_) + ":" + name);
    return it == on_.tables_.end() ? nullptr : &it->second;
  }
  const std::string* end_of_call() override {
    return on_.call_ends_.empty() ? nullptr : &on_.call_ends_.back();
  }
  bool fail(const std::string& what) override {
    return on_.fail(statement.line, what);
  }

 private:
  Slot checked(Registers& registers, uint64_t number, const std::string& name,
               Type type, bool any_size) {
    const int have = type_bytes(registers.type), want = type_bytes(type);
    const bool predicate = registers.type == Type::pred;
    bool fits = predicate == (type == Type::pred) &&
                (any_size ? have >= want : have == want);
    if (!fits) {
      fail("register `" + name + "` of type ." + type_name(registers.type) +
           " does not fit ." + type_name(type) + " in `" + statement.name +
           "`");
    }
    return on_.row_of(registers, number);
  }
  /// A 32-bit special register read as 64 bits.
  Slot widened(Slot slot) {
    Instruction widen;
    widen.run = unary<uint64_t, uint32_t, Same>;
    widen.a = slot;
    widen.dst = on_.new_row(8);
    on_.emit(widen, statement.line);
    return widen.dst;
  }
  struct Same {
    uint32_t operator()(uint32_t x) const { return x; }
  };

  KernelDecoder& on_;
};

Registers* KernelDecoder::find_registers(const std::string& name,
                                         uint64_t& number) {
  size_t digits = name.size();
  while (digits > 0 && name[digits - 1] >= '0' && name[digits - 1] <= '9')
    --digits;
  const std::string prefix = name.substr(0, digits);
  uint64_t value = 0;
  const bool numbered = digits < name.size() && name.size() - digits < 9;
  if (numbered)
    for (size_t i = digits; i < name.size(); ++i)
      value = value * 10 + static_cast<uint64_t>(name[i] - '0');
  for (size_t s = scopes_.size(); s-- > 0;) {
    auto& registers = scopes_[s].registers;
    if (auto it = registers.find(name);
        it != registers.end() && it->second.count == 0) {
      number = 0;
      return &it->second;
    }
    if (!numbered) continue;
    if (auto it = registers.find(prefix);
        it != registers.end() && value < it->second.count) {
      number = value;
      return &it->second;
    }
  }
  return nullptr;
}

Slot KernelDecoder::row_of(Registers& registers, uint64_t number) {
  auto [it, fresh] = registers.slots.try_emplace(number, 0);
  if (fresh) it->second = new_row(type_bytes(registers.type));
  return it->second;
}

const Place* KernelDecoder::find_variable(const std::string& name) const {
  for (size_t s = scopes_.size(); s-- > 0;) {
    auto it = scopes_[s].variables.find(name);
    if (it != scopes_[s].variables.end()) return &it->second;
  }
  auto it = outer_.find(name);
  return it == outer_.end() ? nullptr : &it->second;
}

Slot KernelDecoder::constant(uint64_t bits, int bytes) {
  const bool wide = bytes == 8;
  if (!wide && bytes < 4) bits &= (uint64_t{1} << (8 * bytes)) - 1;
  if (!wide) bits &= 0xffffffff;
  auto [it, fresh] = constants_.try_emplace({bits, wide ? 8 : 4}, 0);
  if (fresh) {
    auto& rows = kernel_.constants;
    it->second = static_cast<Slot>(rows.size() / warp_size) | constant_bit;
    for (int lane = 0; lane < warp_size; ++lane) {
      rows.push_back(static_cast<uint32_t>(bits));
      if (wide) rows.push_back(static_cast<uint32_t>(bits >> 32));
    }
  }
  return it->second;
}

Slot KernelDecoder::special(Special which, int line) {
  auto [it, fresh] = specials_.try_emplace(which, 0);
  if (fresh) {
    it->second = new_row(special_bytes(which));
    if (!is_clock(which)) kernel_.specials.push_back({which, it->second});
  }
  if (is_clock(which)) {
    Instruction read;
    read.run = read_clock;
    read.dst = it->second;
    read.mode = static_cast<uint8_t>(special_bytes(which));
    emit(read, line);
  }
  return it->second;
}

void KernelDecoder::lay_out_parameters() {
  uint64_t at = 0;
  for (const Variable& parameter : function_.parameters) {
    at = align_up(at, parameter.align);
    outer_[parameter.name] = {Space::parameter, at};
    kernel_.parameters.push_back({parameter.name, static_cast<uint32_t>(at),
                                  static_cast<uint32_t>(parameter.bytes())});
    at += parameter.bytes();
  }
  kernel_.parameter_bytes = static_cast<uint32_t>(at);
}

/// Shared memory of the module that this kernel, or what it calls, names;
/// and that of its own body. What the launch sizes lies behind all.
bool KernelDecoder::lay_out_shared() {
  std::unordered_map<std::string, bool> used;
  std::vector<const FunctionText*> todo = {&function_};
  uint64_t own = 0;
  for (size_t f = 0; f < todo.size(); ++f) {
    for (const Statement& statement : todo[f]->body) {
      if (statement.kind == Statement::Kind::variable &&
          statement.variable.space == Space::shared) {
        own += align_up(statement.variable.bytes(), 16) + 16;
      }
      auto visit = [&](auto&& self, const Operand& operand) -> void {
        if (operand.kind == Operand::Kind::name) used[operand.name] = true;
        for (const Operand& part : operand.parts) self(self, part);
      };
      for (const Operand& operand : statement.operands) visit(visit, operand);
      if (!statement.name.starts_with("call")) continue;
      for (const FunctionText& other : module_.functions) {
        bool named = false;
        for (const Operand& operand : statement.operands)
          named |= operand.name == other.name;
        if (named && std::find(todo.begin(), todo.end(), &other) == todo.end())
          todo.push_back(&other);
      }
    }
  }
  uint64_t at = 0, dynamic_align = 16;
  for (const Variable& variable : module_.variables) {
    if (variable.space != Space::shared || !used.count(variable.name)) continue;
    if (variable.is_external) {
      dynamic_align = std::max<uint64_t>(dynamic_align, variable.align);
      continue;
    }
    at = align_up(at, variable.align);
    outer_[variable.name] = {Space::shared, at};
    at += variable.bytes();
  }
  kernel_.shared_bytes = static_cast<uint32_t>(at);
  if (at + own > (1u << 20))
    return fail(function_.line, "too much shared memory");
  // Bodies are laid out as they are met, so the dynamic part's place is
  // reserved for the most they can need.
  uint64_t dynamic = own == 0 ? at : at + own;
  dynamic = align_up(dynamic, dynamic_align);
  for (const Variable& variable : module_.variables) {
    if (variable.space == Space::shared && variable.is_external &&
        used.count(variable.name)) {
      outer_[variable.name] = {Space::shared, dynamic};
      dynamic_begin_ = static_cast<uint32_t>(dynamic);
    }
  }
  return true;
}

bool KernelDecoder::declare(const Variable& variable) {
  Place place{variable.space, 0};
  const uint64_t bytes = variable.bytes();
  if (bytes > (1u << 24)) return fail(variable.line, "too large a variable");
  if (variable.space == Space::shared) {
    uint64_t at = align_up(kernel_.shared_bytes, variable.align);
    place.address = at;
    kernel_.shared_bytes = static_cast<uint32_t>(at + bytes);
  } else if (variable.space == Space::local ||
             variable.space == Space::parameter) {
    uint64_t align = std::max<uint64_t>(variable.align, 8);
    uint64_t at = align_up(kernel_.local_bytes, align);
    place.space = Space::local;
    place.address = at;
    kernel_.local_bytes = static_cast<uint32_t>(at + bytes);
    if (kernel_.local_bytes > max_local_bytes)
      return fail(variable.line, "too much local memory");
  } else {
    return fail(variable.line, "this variable does not belong in a function");
  }
  scopes_.back().variables[variable.name] = place;
  return true;
}

bool KernelDecoder::emit(Instruction instruction, int line) {
  instruction.line = line;
  instruction.memory = static_cast<uint32_t>(kernel_.code.size());
  kernel_.code.push_back(instruction);
  return kernel_.code.size() < max_code || fail(line, "too many instructions");
}

bool KernelDecoder::statement(const Statement& statement, int depth) {
  switch (statement.kind) {
    case Statement::Kind::instruction: return instruction(statement, depth);
    case Statement::Kind::label: {
      if (!statement.targets.empty()) {
        tables_[std::to_string(instance_) + ":" + statement.name] =
            statement.targets;
        return true;
      }
      uint32_t number = label(statement.name) & ~label_bit;
      if (label_places_[number] != ~0u)
        return fail(statement.line, "label `" + statement.name + "` twice");
      label_places_[number] = static_cast<uint32_t>(kernel_.code.size());
      return true;
    }
    case Statement::Kind::registers: {
      auto [it, fresh] = scopes_.back().registers.try_emplace(statement.name);
      if (!fresh) {
        return fail(statement.line,
                    "register `" + statement.name + "` declared twice");
      }
      it->second.type = statement.type;
      it->second.count = statement.count;
      return true;
    }
    case Statement::Kind::variable: return declare(statement.variable);
    case Statement::Kind::open: scopes_.emplace_back(); return true;
    case Statement::Kind::close: scopes_.pop_back(); return true;
  }
  return true;
}

bool KernelDecoder::instruction(const Statement& statement, int depth) {
  const Opcode opcode(statement.name);
  if (opcode.base == "call") return call(statement, depth);
  Family decode = family_of(opcode.base);
  if (decode == nullptr)
    return fail(statement.line, "unknown instruction `" + statement.name + "`");
  OneDecoding one(*this, opcode, statement);
  if (!statement.guard.empty()) {
    Operand guard;
    guard.name = statement.guard;
    one.out.guard = one.read(guard, Type::pred, false);
    one.out.guard_negated = statement.guard_negated;
  }
  const Slot guard = one.out.guard;
  if (!decode(one) || !error_.empty())
    return fail(statement.line, "`" + statement.name + "` is malformed");
  if (!emit(one.out, statement.line)) return false;
  for (Instruction& follower : one.followers) {
    follower.guard = guard;
    follower.guard_negated = statement.guard_negated;
    if (!emit(follower, statement.line)) return false;
  }
  return true;
}

/// `call (results), function, (arguments)`: the body is put here; parameters
/// and results are the caller's variables.
bool KernelDecoder::call(const Statement& statement, int depth) {
  if (!statement.guard.empty())
    return fail(statement.line, "a call under a predicate is not supported");
  const Operand* results = nullptr;
  const Operand* arguments = nullptr;
  std::string name;
  for (const Operand& operand : statement.operands)
    if (operand.kind == Operand::Kind::list)
      (name.empty() ? results : arguments) = &operand;
    else if (name.empty())
      name = operand.name;
  auto callee = std::find_if(
      module_.functions.begin(), module_.functions.end(),
      [&](const FunctionText& f) { return f.name == name && !f.is_entry; });
  if (callee == module_.functions.end() || !callee->has_body)
    return fail(statement.line, "unresolved function `" + name + "`");
  if (depth >= max_inline_depth ||
      std::find(calls_.begin(), calls_.end(), name) != calls_.end()) {
    return fail(statement.line, "calls are nested too deeply, or recursive");
  }
  Scope inner;
  auto bind = [&](const std::vector<Variable>& formal, const Operand* actual) {
    size_t given = actual == nullptr ? 0 : actual->parts.size();
    if (given != formal.size()) {
      return fail(statement.line, "`" + name +
                                      "` takes another number of "
                                      "arguments");
    }
    for (size_t i = 0; i < given; ++i) {
      const Place* place = find_variable(actual->parts[i].name);
      if (place == nullptr || place->space != Space::local)
        return fail(statement.line, "arguments are variables in .param space");
      inner.variables[formal[i].name] = *place;
    }
    return true;
  };
  if (!bind(callee->parameters, arguments) || !bind(callee->results, results))
    return false;
  // Nothing of the caller is seen inside.
  std::vector<Scope> outer;
  outer.swap(scopes_);
  scopes_.push_back(std::move(inner));
  const int caller = instance_;
  instance_ = ++instances_;
  call_ends_.push_back("%end");
  calls_.push_back(name);
  bool fine = body(*callee, depth + 1);
  calls_.pop_back();
  if (fine) {
    label_places_[label("%end") & ~label_bit] =
        static_cast<uint32_t>(kernel_.code.size());
  }
  call_ends_.pop_back();
  instance_ = caller;
  scopes_.swap(outer);
  return fine;
}

bool KernelDecoder::body(const FunctionText& function, int depth) {
  scopes_.emplace_back();
  for (const Statement& one : function.body)
    if (!statement(one, depth)) return false;
  scopes_.pop_back();
  return true;
}

bool KernelDecoder::finish() {
  Statement last;
  last.name = "exit";
  if (!instruction(last, 0)) return false;
  auto place = [&](uint32_t& target) {
    if ((target & label_bit) == 0 || (target & constant_bit) != 0) return true;
    uint32_t number = target & ~label_bit;
    target = label_places_[number];
    return target != ~0u ||
           fail(function_.line, "unknown label `" + label_names_[number] + "`");
  };
  for (Instruction& i : kernel_.code)
    if (!place(i.target)) return false;
  for (Slot& slot : kernel_.slots)
    if (slot != no_slot && !place(slot)) return false;
  kernel_.memory_instructions = static_cast<uint32_t>(kernel_.code.size());
  if (dynamic_begin_ != 0)
    kernel_.shared_bytes = std::max(kernel_.shared_bytes, dynamic_begin_);
  return true;
}

bool KernelDecoder::run() {
  kernel_ = {};
  kernel_.name = function_.name;
  std::copy_n(function_.required_threads, 3, kernel_.required_threads);
  const uint32_t* most = function_.max_threads[0] ? function_.max_threads
                                                  : function_.required_threads;
  if (most[0] != 0)
    kernel_.max_threads = std::min(most[0] * most[1] * most[2], 1024u);
  for (const Variable& variable : module_.variables) {
    auto it = symbols_.find(variable.name);
    if (it != symbols_.end())
      outer_[variable.name] = {variable.space, it->second};
  }
  lay_out_parameters();
  if (!lay_out_shared() || !body(function_, 0) || !finish()) return false;
  widths_.resize(kernel_.rows, 0);
  share_rows(kernel_, widths_);
  return true;
}

}  // namespace

bool decode_kernel(const ModuleText& module, const FunctionText& function,
                   const SymbolAddresses& symbols, Kernel& kernel,
                   std::string& error) {
  error.clear();
  return KernelDecoder(module, function, symbols, kernel, error).run();
}

}  // namespace simcuda
