#pragma once
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
  const DefStmt* definition = nullptr;  // one of these two
  const FnExpr* lambda = nullptr;
  std::shared_ptr<Environment> environment;
};

/// A parameter that a `pmap` is given for good.
struct DonatedParameter {
  int position = -1;  // -1: keyword-only
  std::string name;
  bool operator==(const DonatedParameter&) const = default;
};

/// `pmap(f, ...)`, `vmap(f, ...)`, `jit(f)`: a function that is another one
/// transformed. The specification is kept as the values it was written as.
struct Transformed {
  enum class Kind { jit, vmap, pmap } kind = Kind::jit;
  std::shared_ptr<const FunctionValue> inner;
  Value in_axes, out_axes, over;
  Span in_axes_span, out_axes_span, over_span, where;
  std::vector<DonatedParameter> donated;
  std::shared_ptr<MapState> state;  // caches; shared by copies of the value
};

/// A parameter declared `(A, B) -> C`, while its function is checked for all
/// arguments: only its type is known. Names are looked up in `environment`.
struct DeclaredFunction {
  const FunctionType* type = nullptr;
  std::shared_ptr<Environment> environment;
};

struct FunctionValue {
  std::string name;  // "scale", "fn" for a lambda, "pmap(scale)"
  std::variant<Closure, const Builtin*, Transformed, DeclaredFunction> what;
};

}  // namespace unisono::lang
