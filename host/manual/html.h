#pragma once
// Text as HTML, and paths between pages.
#include <string>
#include <string_view>

namespace unisono::host::manual {

/// With entities for `<`, `>`, `&` and quotes.
std::string escaped(std::string_view text);
/// Text as a JSON string, with its quotes, that may stand in a script: `<` is
/// an escape.
std::string json_string(std::string_view text);
/// The path from one page to another place, both from the folder of the manual:
/// "../functions/shapes.html#tile". Characters that a URL cannot have are
/// encoded.
std::string relative(std::string_view from, std::string_view to);
/// The path that a URL means, without its fragment: "a b.md" of "a%20b.md#c".
std::string path_of_url(std::string_view url);
/// As GitHub does for headings: "the-same-bits".
std::string slug(std::string_view title);

}  // namespace unisono::host::manual
