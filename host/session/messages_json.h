#pragma once
#include <string>

#include "lang/source/diagnostics.h"

namespace unisono::host {

/// What `unisono check --json` prints; docs/command-line.md has the schema.
std::string to_json(const lang::Diagnostics& diagnostics);

}  // namespace unisono::host
