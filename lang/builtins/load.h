#pragma once
#include <optional>
#include <string>

#include "lang/context/builtin.h"

namespace unisono::lang {

/// What `load(path)` will give, as far as the file's header says it while the
/// program is checked, or an earlier `save` of the program. Nothing if the path
/// is not known yet or there is no such file: then the program says the type,
/// `load(path) as f32[n, 3]`. A file that is there and is no array file is an
/// error.
std::optional<Value> loaded_type(Walk& walk, const CallArgument& path);

/// Removes what processes that were killed while they wrote have left in the
/// folder of `path`; once for each folder.
void sweep_beside(Walk& walk, const std::string& path);

}  // namespace unisono::lang
