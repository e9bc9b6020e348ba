#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "lang/context/signature.h"
#include "lang/context/value.h"

namespace unisono::lang {

class Walk;
struct Builtin;

/// An argument as the call wrote it.
struct CallArgument {
  Value value;
  Span where;
};

/// A call of a builtin, its arguments already matched to the parameters of its
/// signature: positional and named ones, defaults left empty. The function of
/// the builtin gets it as a CallOf (call_of.h), which has the arguments by
/// name.
struct BuiltinCall {
  Walk& walk;
  const Builtin& builtin;
  Span where;                                          // the whole call
  std::vector<std::optional<CallArgument>> arguments;  // one per parameter
  std::vector<CallArgument> rest;  // of a `*name` parameter (print, zip, ...)
};

/// One parameter of a call, and what was written for it. It refers to the call,
/// and is copied like a pointer.
class Argument {
 public:
  /// `place` is that of the parameter in the signature: CallOf knows it.
  Argument(BuiltinCall& call, size_t place) : call_(&call), place_(place) {}

  BuiltinCall& call() const { return *call_; }
  /// "axis"
  std::string_view name() const;

  /// Whether the call wrote it.
  bool written() const { return call_->arguments[place_].has_value(); }
  /// Whether the call wrote it, and not as `none`.
  bool given() const { return written() && !value().is<NoneValue>(); }
  /// What was written, which must be there: the parameter has no default, or
  /// written() was asked.
  const Value& value() const { return call_->arguments[place_]->value; }
  operator const CallArgument&() const { return *call_->arguments[place_]; }
  /// Its place; if it is not written, that of the call.
  Span where() const {
    return written() ? call_->arguments[place_]->where : call_->where;
  }

 private:
  BuiltinCall* call_;
  size_t place_;
};

/// One builtin function: a row of builtins.def or ops.def.
struct Builtin {
  std::string_view name;
  /// "x, axis=none, *, keepdims=false": what help and messages show, and what
  /// arguments are matched against. A parameter with `=` may be left out.
  std::string_view signature;
  std::span<const Parameter> parameters;
  Value (*function)(BuiltinCall call);
  std::string_view help;
};

inline std::string_view Argument::name() const {
  return call_->builtin.parameters[place_].name;
}

/// The table, and a row of it by name (null if there is none).
std::span<const Builtin> builtins();
const Builtin* find_builtin(std::string_view name);

/// Matches the arguments and calls it.
Value call_builtin(Walk& walk, const Builtin& builtin,
                   std::vector<CallArgument> positional,
                   std::vector<std::pair<std::string, CallArgument>> named,
                   Span where);

}  // namespace unisono::lang
