#pragma once
#include <string>

namespace unisono {

/// Names the binary, executable or library, that this code is part of, in
/// hexadecimal digits: another build has another name. "" where the linker left
/// none. What one build of this code made may be used by the same one later.
std::string build_id();

}  // namespace unisono
