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

/// The name that somebody at the cursor wants to know of, as it is written:
/// "nn.dense". That is a function's name, if the cursor is in one or behind it;
/// else that of the function in whose call it is; else any name it is in. Empty
/// if there is none.
std::string name_at(Session& session, const std::string& text, size_t cursor);

}  // namespace unisono::host
