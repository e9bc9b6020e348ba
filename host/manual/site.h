#pragma once
// The folder of a manual: pages with what stands around each, and what is
// searched.
#include <string>
#include <string_view>
#include <vector>

#include "host/manual/markdown.h"
#include "runtime/result.h"

namespace unisono::host::manual {

struct Page {
  std::string place;  // "guide/pmap.html"
  std::string title;
  std::string body;               // HTML
  std::vector<Heading> headings;  // what stands on it, for the side bar
};

/// Pages with a headline, in the side bar of each page.
struct Group {
  std::string title;
  struct Member {
    std::string title, place;
  };
  std::vector<Member> members;
};

/// What the search finds: a name, a page, a section.
struct Searched {
  std::string kind;   // "function", "section"; see assets/search.js
  std::string title;  // "reshape", "nn.relu"
  std::string place;  // "functions/shapes.html#reshape"
  std::string text;   // what else is looked at; a summary is made from it
};

struct Site {
  std::string title;    // of the manual
  std::string version;  // of Unisono
  std::vector<Group> groups;
  std::vector<Page> pages;
  std::vector<Searched> searched;
};

/// Writes all of it to a folder, which is made if it is not there. Files that
/// no manual has written are not replaced: an error, before anything is
/// written. Errors name the file.
Status write_site(const Site& site, const std::string& folder);

}  // namespace unisono::host::manual
