#pragma once
// A graph that is ready to run: its devices, the placements of its arrays, and
// its program. Statements, `jit` and maps all run by it.
#include <memory>
#include <span>
#include <vector>

#include "jit/partition/map_graph.h"
#include "lang/context/walk.h"

namespace unisono::lang {

struct Executable {
  std::vector<Device*> devices;     // in the order of the program's
  std::vector<ArrayLayout> inputs;  // may be empty if none is donated
  std::vector<std::shared_ptr<const ArrayLayout>> outputs;
  /// By input: whether it is given away, so that its memory may become an
  /// output's. Empty: none is.
  std::vector<bool> donated;
  /// Lines that the program prints begin with the name of the device.
  bool names_devices = false;

  std::shared_ptr<const unisono::Program> program;  // compiled, or:
  std::shared_ptr<const jit::MemberGraph> member;   // for the reference
  // Neither: a map without members; its outputs have no elements.
};

/// What makes the host calls of code: a line, or a function of the host. Lines
/// begin with the name of the device `named`, if there is one.
jit::HostCall host_caller(Machine& machine, const Device* named);

/// Fills in the program of `executable`: compiles `map` for its devices, or
/// finds what was compiled for them before. An error of the compiler is one at
/// `where` (Walk::fail).
void compile(Walk& walk, const jit::MemberGraph& map, Executable& executable,
             Span where);

/// Runs the executable on `inputs`, which lie where it says, and gives the
/// outputs. If the program writes to some of the inputs, `inputs` is empty
/// afterwards, unless an error says that they are untouched. In an error,
/// `device` is the position among the executable's devices, and `member` that
/// among the members of the device. With `left`, which may be null, devices may
/// still be at work afterwards; who calls then keeps what comes there
/// (keep_under_way).
Result<std::vector<unisono::Array>> run(
    Walk& walk, const Executable& executable,
    std::vector<unisono::Array>& inputs,
    std::unique_ptr<RunUnderWay>* left = nullptr);

/// The same of an executable to which nothing is given away: it only reads its
/// inputs, which the caller holds until the run is over. None is copied.
Result<std::vector<unisono::Array>> run(
    Walk& walk, const Executable& executable,
    std::span<const unisono::Array* const> inputs,
    std::unique_ptr<RunUnderWay>* left = nullptr);

}  // namespace unisono::lang
