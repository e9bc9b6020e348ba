#pragma once
// Parameters of methods: each throws a Refusal that says what is wrong.
#include <cstdint>
#include <string>

#include "host/lsp/messages.h"
#include "host/lsp/text.h"

namespace unisono::host::lsp {

const Json& field(const Json& in, const char* name);
std::string text_field(const Json& in, const char* name);
/// {"line": 3, "character": 5}; numbers that no text reaches are its end.
Position position_of(const Json& json);
Range range_of(const Json& json);
/// Whether a list has a word; what is no list has none.
bool lists(const Json& list, const char* word);

}  // namespace unisono::host::lsp
