#pragma once
#include <string>
#include <string_view>

#include "runtime/result.h"

namespace unisono::host {

/// The path of a library of ours that programs open when they need it: beside
/// the program, in its lib folder, or on the library path. Where there is none,
/// the error says where it was looked for.
Result<std::string> find_library_beside(std::string_view name);

}  // namespace unisono::host
