#pragma once
// Matching the arguments of a call to parameters: for builtins and for
// functions written in the language.
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "lang/context/builtin.h"
#include "lang/context/signature.h"

namespace unisono::lang {

struct MatchedArguments {
  std::vector<std::optional<CallArgument>> arguments;  // one per parameter
  std::vector<CallArgument> rest;
};

/// Each argument at its parameter; a parameter with a default may stay empty.
/// An error (Walk::fail) names the function, and `signature` in its help.
/// `declared` is where the function is defined, or nowhere.
MatchedArguments match_arguments(
    Walk& walk, std::string_view function,
    std::span<const Parameter> parameters, std::string_view signature,
    std::vector<CallArgument> positional,
    std::vector<std::pair<std::string, CallArgument>> named, Span where,
    Span declared);

}  // namespace unisono::lang
