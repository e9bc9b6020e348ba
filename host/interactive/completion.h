#pragma once
// What Tab may make of the text before the cursor.
#include <string>

#include "host/editor/editor.h"
#include "host/session/session.h"

namespace unisono::host {

/// Names in scope, fields, names of arguments in a call, paths in a string,
/// commands and what follows them.
Completions complete_input(Session& session, const std::string& text,
                           size_t cursor);

}  // namespace unisono::host
