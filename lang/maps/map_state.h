#pragma once
// What maps keep between calls: traced and compiled code, found again by the
// types, host values and names that it was made for.
#include <memory>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "jit/ir/graph.h"
#include "lang/context/function.h"
#include "lang/context/walk.h"
#include "lang/maps/executable.h"
#include "lang/maps/made_for.h"
#include "lang/maps/map_spec.h"
#include "lang/maps/number_attempt.h"
#include "runtime/lru_cache.h"

namespace unisono::lang {

/// A function traced and compiled for one set of argument types.
struct MapEntry {
  int compiled_for = 0;  // Machine::compiled_for
  MadeFor made_for;

  // What runs. Inputs are the arrays of the arguments, then the captures.
  Executable executable;
  int64_t per_device = 1;  // members on each, of a map that is not nested
  /// Of a map of maps, the axes along which each device is one member, and
  /// its position: device / stride % size.
  struct Place {
    std::string axis;
    int64_t stride = 1, size = 1;
  };
  std::vector<Place> places;
  Value result;  // the tree; its arrays are replaced by the outputs
};

/// What all calls of one map share.
struct MapState {
  /// What it runs over; null for jit.
  std::shared_ptr<const AxisInfo> axis;
  /// What no call tries to do without again.
  KnownNumbers known;
  /// Calls with more kinds of arguments trace again.
  LruList<std::unique_ptr<MapEntry>> entries{32};
};

/// The loop that a `scan` or `fold` at the top level was traced to, of its
/// first carry and its rows.
struct ScanTrace {
  MadeFor made_for;
  bool backwards = false, stacks = false;
  std::shared_ptr<const ir::Graph> body;
  size_t carries = 0, outputs = 0;
  Value carry, y;  // the trees; their arrays are types alone
};

/// A new axis for a map without `over`; `map` is its name: "pmap(scale)".
std::shared_ptr<AxisInfo> anonymous_axis(Walk& walk, std::string map,
                                         Span where);

/// A statement's graph, as it was traced, with what it was compiled to.
struct KeptStatement {
  ir::Graph graph;
  int compiled_for = 0;  // Machine::compiled_for
  Executable executable;
};

/// The states of a session's maps. A map made again from the same function and
/// the same axes, as `pmap(f)(x)` in a loop does, gets the state it had; a
/// `jit` also of a function that was made again from the same code
/// (made_for.h). A state also lives as long as a value that uses it.
class MapCache {
 public:
  /// The state of `map` (its other members are set), made by `make` if there
  /// is none.
  template <class Make>
  std::shared_ptr<MapState> state(const Transformed& map, Make make) {
    if (auto known = find(map)) return known;
    return insert(map, make());
  }
  /// The trace of a scan of a function with the code of `function` that serves
  /// this call, and the arrays that it captures now; null if there is none.
  /// Valid until the next call.
  const ScanTrace* find_scan(const FunctionValue& function, bool backwards,
                             bool stacks, const MadeFor::Positional& call,
                             std::vector<ArrayValue>& captured);
  void keep_scan(const FunctionValue& function, ScanTrace trace);

  /// What a statement's graph with a loop was compiled to: `scan` gives the
  /// same body again, so that neither has to be cleaned, printed and looked up.
  /// Null if it is not known. Valid until the next call.
  const Executable* find_statement(const ir::Graph& graph, int compiled_for);
  void keep_statement(KeptStatement statement);

  /// Whether the reference evaluator computes a statement's graph, in `once`
  /// nanoseconds, rather than code that takes `compile` to make: as long as its
  /// runs, with this one, have taken less than that. So one costs at most twice
  /// the cheaper of both, however often it runs. No clock is asked.
  bool is_evaluated(const ir::Graph& graph, double once, double compile);

  /// The axis of a collective that names none, and the symbol of its size,
  /// while a definition is checked.
  std::shared_ptr<const AxisInfo> innermost(Walk& walk);

  /// A map over devices inside compiled code: in the graph it has an axis of
  /// its own for each number of members.
  struct Nested {
    ir::AxisId id = 0;
    std::shared_ptr<const AxisInfo> axis;
    int64_t members = 1;
  };
  ir::AxisId nested_id(Walk& walk, const std::shared_ptr<const AxisInfo>& axis,
                       int64_t members);
  /// Null for an axis that is none.
  const Nested* find_nested(ir::AxisId id);

 private:
  /// Identity of a function: its code, the names around it, and what was made
  /// of it, the outermost first. Nothing is kept alive.
  struct FunctionKey {
    struct Made {
      bool is_map = false;
      std::weak_ptr<MapState> map = {};  // a map is known by its state,
      Differentiated::Kind kind = Differentiated::Kind::grad;  // else this
      std::vector<DerivativeOf> wrt = {};
      bool wrt_is_tuple = false, aux = false;
      std::vector<FunctionKey> rule = {};  // none or one
    };
    const void* code = nullptr;
    std::weak_ptr<Environment> environment;
    bool has_environment = false;
    std::vector<Made> made;

    bool operator==(const FunctionKey& other) const;
    bool expired() const;
    /// Leaves the code alone: functions made again have the same key.
    void forget_environments();
  };
  /// Identity of a map.
  struct Key {
    Transformed::Kind kind;
    FunctionKey function;
    Value in_axes, out_axes, over;
    std::vector<DonatedParameter> donated;
  };
  /// Nothing for a function that only has a type.
  static std::optional<FunctionKey> key_of(const FunctionValue& function);
  static std::optional<Key> key_of(const Transformed& map);
  std::shared_ptr<MapState> find(const Transformed& map);
  std::shared_ptr<MapState> insert(const Transformed& map,
                                   std::shared_ptr<MapState> state);

  LruList<std::pair<Key, std::shared_ptr<MapState>>> states_{32};
  LruList<std::pair<FunctionKey, ScanTrace>> scans_{32};
  LruList<KeptStatement> statements_{32};
  /// Nanoseconds of what was evaluated, by the hash of its graph: of two graphs
  /// with one hash one is compiled early.
  std::unordered_map<size_t, double> evaluated_;
  std::shared_ptr<AxisInfo> innermost_;
  LruList<Nested> nested_{1024};  // a graph is soon done with them
};

/// The evaluator's cache, made at the first use.
MapCache& map_cache(Walk& walk);

}  // namespace unisono::lang
