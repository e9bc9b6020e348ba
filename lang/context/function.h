#pragma once
// Functions as values.
#include <map>
#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "lang/context/environment.h"
#include "lang/context/value.h"

namespace unisono::lang {

struct DefStmt;       // ast.h
struct FnExpr;        // ast.h
struct FunctionType;  // ast.h
struct Builtin;       // builtin.h
struct MapState;      // maps: what a `pmap` keeps between calls

/// A `def` or `fn` with the names around it.
struct Closure {
  const DefStmt* definition = nullptr;  // or null, and then:
  const FnExpr* lambda = nullptr;
  std::shared_ptr<Environment> environment;
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
