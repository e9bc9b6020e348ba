#pragma once
// What tools that show a program while it is written want of a check.
#include <string>
#include <vector>

#include "lang/source/source.h"

namespace unisono::lang {

class Walk;

/// A name that the checked program binds, and a type that the check found for
/// it. A name in a function has one for each way in which that is called.
struct KnownType {
  Span where;
  std::string name, type;
};

/// After a check with Walk::keep_types, in no order; each type of a name once.
std::vector<KnownType> known_types(Walk& walk);

/// What tells one imported file from another, by whatever path it is imported.
std::string module_key(const std::string& path);

/// Before a check: an import of `path` finds this text, and looks at no file.
/// The path is as the importing file gives it, with that file's folder before
/// it. What does not parse is reported at once.
void provide_module(Walk& walk, const std::string& path, std::string text);

}  // namespace unisono::lang
