#pragma once
// A kernel decoded for execution. Registers are rows: 32 lanes of 4 bytes; a
// 64-bit register is two rows, of 32 lanes of 8 bytes. A value of less than
// 32 bits lies zero-extended in its lane, a predicate is 0 or 1.
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "simcuda/ptx/ast.h"

namespace simcuda {

constexpr int warp_size = 32;

/// A row: of the warp's registers, or (with the top bit) of the kernel's
/// constants.
using Slot = uint32_t;
constexpr Slot no_slot = ~Slot{0};
constexpr Slot constant_bit = Slot{1} << 31;

// Windows of generic addresses. Device memory begins above them, the host's
// own addresses lie below.
constexpr uint64_t shared_window = uint64_t{0x70} << 48;
constexpr uint64_t local_window = uint64_t{0x71} << 48;
constexpr uint64_t parameter_window = uint64_t{0x72} << 48;
constexpr uint64_t window_size = uint64_t{1} << 40;

/// What the warp does after an instruction.
enum class Flow : uint8_t {
  next,   // the instruction after it
  moved,  // the warp has set where it goes on, or waits
  fault,  // the warp has said why
};

struct Warp;
struct Instruction;
using Handler = Flow (*)(Warp&, const Instruction&);

struct Instruction {
  Handler run = nullptr;
  Slot dst = no_slot, a = no_slot, b = no_slot, c = no_slot;
  Slot guard = no_slot;
  bool guard_negated = false;
  Space space = Space::generic;
  Type type = Type::none;
  uint8_t elements = 1;         // of a vector
  bool narrow_address = false;  // the address is a 32-bit register
  bool wide = false;            // the register of a load or store has 64 bits
  bool meets = false;           // waits for other lanes or warps
  bool ordered = false;         // volatile, acquire, release: may poll
  bool acquires = false, releases = false;
  bool block_scope = false;  // ... for the block only
  bool stale = false;        // ld.global.nc
  bool aligned = false;      // a barrier for whole warps
  uint8_t mode = 0;          // which one of its family, which gives the meaning
  uint8_t mode2 = 0;
  int64_t offset = 0;          // of an address; or a constant
  uint32_t target = 0;         // of a jump
  bool jumps = false;          // to target
  uint32_t table = 0;          // branch table: number of labels in the list
  uint32_t list = 0;           // place of further slots in Kernel::slots
  uint16_t list_size = 0;      // rows in the list
  uint16_t list_defines = 0;   // how many of them, the first, are written
  bool dst_is_source = false;  // of a store
  uint32_t memory = 0;  // number among the instructions that touch memory
  int line = 0;
};

/// Instruction::mode of bar.
enum BarrierMode : uint8_t {
  barrier_sync,
  barrier_arrive,
  barrier_popc,
  barrier_and,
  barrier_or,
};

struct Parameter {
  std::string name;
  uint32_t offset = 0;
  uint32_t bytes = 0;
};

enum class Special : uint8_t {
  tid_x,
  tid_y,
  tid_z,
  ntid_x,
  ntid_y,
  ntid_z,
  ctaid_x,
  ctaid_y,
  ctaid_z,
  nctaid_x,
  nctaid_y,
  nctaid_z,
  laneid,
  warpid,
  nwarpid,
  smid,
  nsmid,
  gridid,
  clock,
  clock64,
  globaltimer,
  lanemask_eq,
  lanemask_le,
  lanemask_lt,
  lanemask_ge,
  lanemask_gt,
  dynamic_smem_size,
  total_smem_size,
  none,
};

struct Kernel {
  std::string name;
  std::vector<Parameter> parameters;
  uint32_t parameter_bytes = 0;
  std::vector<Instruction> code;
  std::vector<Slot> slots;
  std::vector<uint32_t> constants;  // rows
  struct SpecialRow {
    Special special;
    Slot slot;
  };
  std::vector<SpecialRow> specials;  // set when a block begins
  uint32_t rows = 0;
  uint32_t memory_instructions = 0;
  uint32_t shared_bytes = 0;  // static; the dynamic part begins after it
  uint32_t local_bytes = 0;
  bool multiplies_shared = false;  // has wgmma
  uint32_t max_threads = 1024;
  uint32_t required_threads[3] = {0, 0, 0};
  int registers = 16;  // 32-bit ones that a thread needs, an estimate
};

}  // namespace simcuda
