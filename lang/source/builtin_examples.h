#pragma once
// Examples of builtins, which `?name`, editors and the manual show.
#include <string>
#include <string_view>
#include <vector>

namespace unisono::lang {

/// A Markdown page of lang/context/: families `# TITLE` with sections `##
/// NAME`, each with what more there is to say of a builtin, and a block of
/// examples.
struct ExamplePage {
  std::string_view name;
  std::string_view text;
};
/// The one page; embedded at build time.
const std::vector<ExamplePage>& example_pages();

/// Builtins that belong together.
struct BuiltinFamily {
  std::string_view title;               // "Shapes"
  std::vector<std::string_view> names;  // of sections
};
/// In the order of the page, which has all builtins.
std::vector<BuiltinFamily> builtin_families();

/// The section of a builtin in the form of a `##` comment: text, and code that
/// is indented by four spaces. Lines, each with its end; empty if there is
/// none.
std::string builtin_example(std::string_view builtin);

/// The help of a builtin, and below it its section, if there is one. Lines as
/// above.
std::string builtin_documentation(std::string_view builtin,
                                  std::string_view help);

}  // namespace unisono::lang
