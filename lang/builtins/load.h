#pragma once
// What builtins for files share with the check of a program.
#include <optional>
#include <string>
#include <string_view>

#include "lang/context/builtin.h"

namespace unisono::lang {

/// A value of the type that `load(path)` will have, known before it runs: from
/// the file's header, or from an earlier `save` in the program. Nothing if the
/// path is not known yet or there is no such file; the program must then say
/// the type, `load(path) as f32[n, 3]`. A file that is there and is no array
/// file is an error.
std::optional<Value> loaded_type(Walk& walk, const CallArgument& path);

/// Whether what `builtin`, which is `load` or `read_csv`, reads at `path` is
/// not known before it runs.
bool is_awaited(Walk& walk, const Builtin& builtin, const CallArgument& path);

}  // namespace unisono::lang
