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

/// An argument with respect to which a derivative is taken: its position, or
/// the name of its parameter.
using DerivativeOf = std::variant<int64_t, std::string>;

/// `grad(f)`, `vjp(f)`, `checkpoint(f)`, `custom_jvp(f, rule)` and their like:
/// a function made of another one, `inner`, that has to do with its derivative.
struct Differentiated {
  enum class Kind : uint8_t {
    grad,
    value_and_grad,
    jvp,
    vjp,
    jacobian,
    hessian,
    checkpoint,
    custom_jvp,
    custom_vjp,
  } kind = Kind::grad;
  std::shared_ptr<const FunctionValue> inner;
  /// Of custom_jvp and custom_vjp; else null.
  std::shared_ptr<const FunctionValue> rule;
  /// Of grad, value_and_grad, jacobian and hessian; a gradient is a tuple if
  /// `wrt` was one.
  std::vector<DerivativeOf> wrt;
  bool wrt_is_tuple = false;
  bool aux = false;  // of value_and_grad: f gives (loss, more)
  Span wrt_span, where;
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
  std::variant<Closure, const Builtin*, Transformed, DeclaredFunction,
               Differentiated>
      what;
};

}  // namespace unisono::lang
