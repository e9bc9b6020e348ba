#pragma once
// Texts that are typed or pasted: where one ends, and what does not belong to
// it.
#include <string>
#include <string_view>
#include <vector>

#include "host/editor/screen.h"

namespace unisono::host {

/// Whether the parser needs more text; it alone decides. An empty line after an
/// input that is not complete does not end it.
enum class InputState { complete, incomplete, invalid };
InputState state_of_input(const std::string& text);
/// An invalid one is complete, too: more text would not mend it.
bool is_complete_input(const std::string& text);

/// Whether the last statement is followed by a `;`: its value is not shown.
bool hides_result(const std::string& text);

/// Without the prompts of sessions (ours, Python's, IPython's) that were copied
/// along. If the first line has one, lines without are what was printed, and
/// go, unless the input before them is not complete.
std::string without_prompts(const std::string& text);

/// The style of each byte, by the real lexer; nothing for a text that is too
/// long to be coloured at each key.
std::vector<Style> styles_of(std::string_view text);
/// The text with these styles as escapes.
std::string coloured(std::string_view text);

}  // namespace unisono::host
