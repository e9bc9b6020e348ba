#pragma once
// The context of the code being walked: mode, maps and conditions around it.
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "lang/context/environment.h"
#include "lang/context/scope.h"
#include "lang/context/value.h"

namespace unisono::lang {

/// What the walk does with operations (docs/internals.md): type them, append
/// them to a graph, or compute them.
enum class Mode : uint8_t { check, trace, run };

/// An axis that is mapped around the code being walked.
struct MappedAxis {
  std::shared_ptr<const AxisInfo> axis;
  ir::AxisId id = 0;  // in the graph
  ir::Dim size;       // members
  bool over_devices;  // pmap, not vmap
  Span where;         // the map's call
  /// What one member sees of the arguments: facts that are added to a type
  /// error inside the map.
  std::vector<std::string> facts;
};

/// A condition that varies over mapped axes. Code that depends on it must have
/// no collective over one of these axes.
struct VaryingCondition {
  AxisSet axes;
  Span where;
  bool is_loop;
  Span from = {};  // why it varies
};

/// A name that a traced function read outside itself: the environment in which,
/// or around which, the name is found, and the value that it had.
struct OuterRead {
  std::shared_ptr<Environment> environment;
  std::string name;
  Value value;
};

/// The outermost `jit` or map around the code being walked.
struct CompiledCode {
  /// Its devices: all its maps over devices run over axes of one mesh. Null
  /// until the first such map is met.
  std::shared_ptr<const Mesh> mesh;
};

/// A derivative that is taken of the code being walked: of which of its
/// arguments, and over which axes values that depend on them vary.
struct Derivative {
  /// An argument, whose number is `first` and its place. Inner derivatives have
  /// larger numbers.
  struct Argument {
    AxisSet varies;
    Span varies_from = {};
  };
  uint32_t first = 0;
  std::vector<Argument> arguments;
  bool reverse = false;
  Span where;        // the call
  std::string name;  // "grad(loss)"

  bool has(uint32_t argument) const {
    return argument >= first && argument - first < arguments.size();
  }
};

/// Everything that depends on where the walk is, apart from names. One value:
/// a ContextScope (walk.h) changes it for a part of the walk.
struct Context {
  Mode mode = Mode::run;
  /// The graph that is traced; null in run and check mode.
  std::shared_ptr<GraphScope> scope;
  /// Outermost first.
  std::vector<MappedAxis> mapped_axes;
  std::vector<VaryingCondition> varying_conditions;
  /// Derivatives around the code, outermost first. The walk notes in them what
  /// it finds.
  std::vector<std::shared_ptr<Derivative>> derivatives;
  /// The rule of a `custom_jvp` is being checked: linearity is known of values.
  bool in_linear_rule = false;
  /// Null outside code that is, or will be, compiled; in every mode.
  std::shared_ptr<CompiledCode> compiled;
  /// While an annotated function is checked at its definition: an axis that it
  /// names may be mapped by its callers, and has a symbolic size
  /// (`axis_size_here` in maps.h).
  bool checking_definition = false;
  /// Where reads of names outside the traced function are noted, for the caches
  /// of maps; null: nowhere.
  std::vector<OuterRead>* outer_reads = nullptr;
  /// Environments of calls with larger numbers belong to the traced function.
  uint32_t trace_base = 0;

  /// CompiledCode::mesh; null outside compiled code, too.
  const Mesh* mesh() const { return compiled ? compiled->mesh.get() : nullptr; }
};

}  // namespace unisono::lang
