#pragma once
// Which calls traced code serves: those with arguments of the same types, while
// the names that the function read outside itself are bound to the same.
//
// The function may have been made again since, by another call of the function
// around it or in another turn of a loop, with new environments around the same
// code. Those then stand for the ones that there were.
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "lang/context/function.h"
#include "lang/context/walk.h"

namespace unisono::lang {

/// Environments of now, each beside the one that it stands for. One of them
/// stands for each, itself or another: else two functions of one call, of which
/// one is now another call's, would read that one's names.
class Counterparts {
 public:
  using Environments = std::vector<std::weak_ptr<Environment>>;

  /// Whether `now` and the environments around it can stand for `known`, the
  /// innermost first.
  bool match(const Environments& known,
             const std::shared_ptr<Environment>& now);
  bool match(const std::shared_ptr<Environment>& known,
             const std::shared_ptr<Environment>& now);

  /// Whether all environments are those that there were.
  bool empty() const { return pairs_.empty(); }
  /// What stands for `known`: itself, if nothing does; null if it is gone.
  std::shared_ptr<Environment> now(
      const std::weak_ptr<Environment>& known) const;

 private:
  bool stays(const Environment& environment);

  std::vector<const Environment*> same_;  // those that stand for themselves
  std::vector<
      std::pair<std::weak_ptr<Environment>, std::shared_ptr<Environment>>>
      pairs_;
};

/// `now` is what `known` was, where compiled code is concerned: host values are
/// equal, functions are the same or were made again, arrays have the same type;
/// constants that `known` has are equal.
bool same_for_code(const Value& known, const Value& now,
                   Counterparts& counterparts);

/// A value whose arrays are types alone: for keys, which hold no memory.
/// A literal that is there has to be known, so the code is for it alone.
Value types_of(const Value& value, bool keep_constants = false);

/// A name that the traced function read outside itself, with what it was. Of
/// an array only the type counts, as it is a hidden argument; constants are
/// part of the code.
struct OuterName {
  std::weak_ptr<Environment> environment;
  std::string name;
  Value value;
};

/// A captured array: leaf `leaf` of what `names[name]` is now; or, with name
/// -1, always the same array (`fixed`).
struct Capture {
  int name = -1;
  int leaf = 0;
  ArrayValue fixed;
};

struct MadeFor {
  /// What is around the functions that it was made of, which are written in the
  /// language.
  std::vector<Counterparts::Environments> around;
  /// The result holds functions: of other environments it would be others.
  bool holds_functions = false;
  // Arrays in `positional` and `named` are types alone.
  std::vector<Value> positional;
  std::vector<std::pair<std::string, Value>> named;
  std::vector<OuterName> names;
  std::vector<Capture> captures;

  using Positional = std::vector<CallArgument>;
  using Named = std::vector<std::pair<std::string, CallArgument>>;

  /// Of a function, called with these arguments.
  void set_call(const FunctionValue& function, const Positional& positional,
                const Named& named);
  /// What the trace read outside itself, and the arrays that it captured; what
  /// it gave.
  void set_trace(const std::vector<OuterRead>& reads,
                 const std::vector<ArrayValue>& captured, const Value& result);

  bool same_arguments(const Positional& positional, const Named& named,
                      Counterparts& counterparts) const;
  /// Whether it serves this call of `function`, which has the code of the one
  /// that it was made of; `captured` are then its captured arrays as they are
  /// now.
  bool serves(const FunctionValue& function, const Positional& positional,
              const Named& named, std::vector<ArrayValue>& captured) const;
};

}  // namespace unisono::lang
