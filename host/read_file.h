#pragma once
#include <string>
#include <string_view>

#include "runtime/result.h"

namespace unisono::host {

/// The bytes of a file, or of standard input for "-". At most 64 MiB.
Result<std::string> read_text(const std::string& path);

/// Replaces a file in one step: a reader sees the old text or the new.
Status replace_file(const std::string& path, std::string_view text);

}  // namespace unisono::host
