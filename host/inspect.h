#pragma once
#include <functional>
#include <string>
#include <string_view>

#include "host/session.h"

namespace unisono::host {

/// Shows one stage of what a program becomes: tokens, ast, types, or, for each
/// graph that running it compiles, ir (after pass `after`, by default the
/// last), kernels, llvm, asm; the last three as for GPUs of a compute
/// capability where that is not 0, and nvvm and ptx always so. False when the
/// program had errors.
bool inspect(Session& session, std::string path, std::string text,
             std::string_view emit, std::string_view after, int capability,
             const std::function<void(std::string_view)>& output);

}  // namespace unisono::host
