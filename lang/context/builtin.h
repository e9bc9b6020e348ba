#pragma once
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

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
/// signature: positional and named ones, defaults left empty.
struct BuiltinCall {
  Walk& walk;
  const Builtin& builtin;
  Span where;                                          // the whole call
  std::vector<std::optional<CallArgument>> arguments;  // one per parameter
  std::vector<CallArgument> rest;  // of a `*name` parameter (print, zip, ...)

  const CallArgument& operator[](size_t i) const { return *arguments[i]; }
  bool has(size_t i) const { return arguments[i].has_value(); }
};

/// One builtin function: a row of builtins.def.
struct Builtin {
  std::string_view name;
  /// "x, axis=none, *, keepdims=false": what help and messages show, and what
  /// arguments are matched against. A parameter with `=` may be left out.
  std::string_view signature;
  Value (*function)(BuiltinCall& call);
  std::string_view help;
};

/// The table, and a row of it by name (null if there is none).
std::span<const Builtin> builtins();
const Builtin* find_builtin(std::string_view name);

/// Matches the arguments and calls it.
Value call_builtin(Walk& walk, const Builtin& builtin,
                   std::vector<CallArgument> positional,
                   std::vector<std::pair<std::string, CallArgument>> named,
                   Span where);

}  // namespace unisono::lang
