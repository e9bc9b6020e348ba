#pragma once
// What builtins leave to functions that are written in the language.
#include <string>

#include "lang/context/value.h"

namespace unisono::lang {

class Walk;

/// A function that is in scope without import, of stdlib/ or a builtin; there
/// must be one. Names that begin with `_` are those that only stdlib/ uses.
Value library_function(Walk& walk, const std::string& name);

}  // namespace unisono::lang
