#pragma once
// Functions as values.
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "lang/context/environment.h"
#include "lang/context/value.h"
#include "runtime/result.h"

namespace unisono::jit {
struct HostArray;  // reference.h
}

namespace unisono::lang {

struct DefStmt;       // ast.h
struct FnExpr;        // ast.h
struct FunctionType;  // ast.h
struct Builtin;       // builtin.h
struct MapState;      // maps: what a `pmap` keeps between calls

/// A function that the host defined: what it does is the host's.
struct HostFunction {
  const DefStmt* declaration = nullptr;
  /// It always gives the same for the same, and does nothing else: it may be
  /// called less often than the program says, where the arguments are the same.
  bool pure = true;
  /// One array for each leaf of the arguments, in their order: arrays as they
  /// are, an `int` as i64, a `str` as u8, its UTF-8 bytes. Replaces the
  /// elements of `results`, the leaves of the declared result. Called by any
  /// thread, but by one at a time in each run of a program. An error's message
  /// is the user's; what is thrown is one, too.
  std::function<Status(const std::vector<jit::HostArray>& arguments,
                       std::vector<jit::HostArray>& results)>
      call;
};

/// A `def` or `fn` with the names around it.
struct Closure {
  const DefStmt* definition = nullptr;  // or null, and then:
  const FnExpr* lambda = nullptr;
  std::shared_ptr<Environment> environment;
  /// Not -1: the definition has no body, and this is the number of the function
  /// of the host (Machine::host_functions).
  int64_t host = -1;
};

/// A parameter of a `pmap` whose argument is given away (`donate=`).
struct DonatedParameter {
  int position = -1;  // -1: keyword-only
  std::string name;
  bool operator==(const DonatedParameter&) const = default;
};

/// `pmap(f, ...)`, `vmap(f, ...)`, `jit(f)`: a function that is another one,
/// `inner`, transformed. The arguments of the transformation are kept as
/// values.
struct Transformed {
  enum class Kind { jit, vmap, pmap } kind = Kind::jit;
  std::shared_ptr<const FunctionValue> inner;
  Value in_axes, out_axes, over;
  Span in_axes_span, out_axes_span, over_span, where;
  std::vector<DonatedParameter> donated;
  std::shared_ptr<MapState> state;  // caches; shared by copies of the value
};

/// A parameter declared `(A, B) -> C`, while the function that has it is
/// checked for all arguments: only its type is known. The type's names are
/// looked up in `environment`.
struct DeclaredFunction {
  const FunctionType* type = nullptr;
  std::shared_ptr<Environment> environment;
};

struct FunctionValue {
  std::string name;  // "scale", "fn" for a lambda, "pmap(scale)"
  std::variant<Closure, const Builtin*, Transformed, DeclaredFunction> what;
};

}  // namespace unisono::lang
