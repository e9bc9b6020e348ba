#pragma once
// A graph that is ready to run: its devices, where its arrays lie, and its
// program. Statements, `jit` and maps all run here.
#include <memory>
#include <vector>

#include "jit/partition/map_graph.h"
#include "lang/context/walk.h"

namespace unisono::lang {

/// Where an array lies while a program runs: how one input is brought there,
/// or how one output comes out.
struct Placed {
  DType dtype = DType::F32;
  std::vector<int64_t> shape;  // of the whole array
  Sharding sharding;
};

struct Executable {
  std::vector<Device*> devices;  // in the order of the program's
  std::vector<Placed> inputs;    // empty: nobody asks where they lie
  std::vector<Placed> outputs;
  /// By input: it is given away, and its memory may become an output's. Empty:
  /// none is.
  std::vector<bool> donated;
  /// What it prints is told with the device.
  bool names_devices = false;

  std::shared_ptr<const unisono::Program> program;  // compiled, or:
  std::shared_ptr<const jit::MemberGraph> member;   // for the reference
  // Neither: a map without members; its outputs have no elements.
};

/// Compiles `map` for the executable's devices, or finds what was compiled for
/// them before. An error of the compiler is one at `where`.
void compile(Walk& walk, const jit::MemberGraph& map, Executable& executable,
             Span where);

/// Runs it on `inputs`, which lie where it says. Where the program writes to
/// some of them `inputs` is empty afterwards, unless the error says that they
/// are untouched. In an error, `device` is the position among the executable's
/// devices, and `member` that among the members of the device.
Result<std::vector<unisono::Array>> run(Walk& walk,
                                        const Executable& executable,
                                        std::vector<unisono::Array>& inputs);

}  // namespace unisono::lang
