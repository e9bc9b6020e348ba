#pragma once
#include <cstdio>
#include <string>

#include "runtime/result.h"

namespace unisono::lang {

/// The text of a source file, which may be a pipe. Of one that is too large so
/// much that the lexer says so.
Result<std::string> read_source(const std::string& path);
/// The same from a stream that is open.
Result<std::string> read_source(std::FILE* file);

}  // namespace unisono::lang
