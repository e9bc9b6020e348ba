#pragma once
// Pieces of pages: text, code, names with what is said of them.
#include <functional>
#include <string>
#include <string_view>

#include "host/manual/functions.h"
#include "host/manual/links.h"
#include "host/manual/markdown.h"
#include "host/manual/module.h"
#include "host/manual/site.h"
#include "lang/context/builtin.h"
#include "lang/source/builtin_examples.h"

namespace unisono::host::manual {

/// Where a text stands that is to become HTML.
struct TextPlace {
  const Links& links;
  std::string page;                // its place
  std::string path;                // of the text, for its links
  const Module* module = nullptr;  // whose names it may use; null: nobody's
  /// Told of links that lead to no page: what it says, and the line of `text`,
  /// from 1.
  std::function<void(std::string_view url, int line)> dead_link;
};

Markdown text_html(const TextPlace& place, std::string_view text,
                   const std::string& id_prefix = "", int deeper = 0);

/// A page with the text of a Markdown file; its first heading is its title.
/// What is found in it is added to `searched`.
Page text_page(const TextPlace& place, std::string_view text,
               std::vector<Searched>& searched);
/// The ids of the headings of a text.
std::set<std::string> sections_of(std::string_view text);
/// The first heading of a text, plain; empty if there is none.
std::string title_of(std::string_view text);

Page module_page(const TextPlace& place, std::vector<Searched>& searched);
/// The module's text, with numbers of lines.
Page source_page(const Links& links, const Module& module);
Page family_page(const Links& links, const lang::BuiltinFamily& family,
                 const std::string& place, std::vector<Searched>& searched);

}  // namespace unisono::host::manual
