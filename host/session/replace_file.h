#pragma once
#include <string>
#include <string_view>

#include "runtime/result.h"

namespace unisono::host {

/// Replaces the text of a file (the one that a link leads to) in one step: a
/// reader sees the old text or the new, and after an error the old. The file
/// must exist; it keeps its owner and permissions.
Status replace_file(const std::string& path, std::string_view text);

}  // namespace unisono::host
