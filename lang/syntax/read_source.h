#pragma once
#include <cstdio>
#include <string>

#include "runtime/result.h"

namespace unisono::lang {

/// The text of a source file, which may be a pipe. A file that is too large is
/// read only so far that the lexer finds it too large. Errors (io) do not
/// repeat the path.
Result<std::string> read_source(const std::string& path);
/// The same from an open stream, which stays open.
Result<std::string> read_source(std::FILE* file);

}  // namespace unisono::lang
