#include "host/manual/site.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <set>
#include <utility>

#include "host/manual/html.h"
#include "host/manual/pages.h"
#include "lang/syntax/read_source.h"
#include "runtime/files/file.h"

namespace unisono::host::manual {
namespace {

namespace fs = std::filesystem;

/// Stands near the beginning of each file that we write.
constexpr std::string_view mark = "made by unisono doc";
constexpr size_t mark_within = 400;  // bytes

struct File {
  std::string place, text;
};

std::string side_bar(const Site& site, const Page& page) {
  std::string out;
  for (const Group& group : site.groups) {
    out += fmt::format("<h2>{}</h2>\n<ul>\n", escaped(group.title));
    for (const Group::Member& member : group.members) {
      const bool here = member.place == page.place;
      out += fmt::format(
          "<li><a href=\"{}\"{}>{}</a>", relative(page.place, member.place),
          here ? " aria-current=\"page\"" : "", escaped(member.title));
      std::string inner;
      for (const Heading& heading : page.headings)
        if (here && heading.level == 2)
          inner += fmt::format("<li><a href=\"#{}\">{}</a></li>\n",
                               escaped(heading.id), escaped(heading.text));
      if (!inner.empty()) out += "\n<ul>\n" + inner + "</ul>\n";
      out += "</li>\n";
    }
    out += "</ul>\n";
  }
  return out;
}

std::string html_of(const Site& site, const Page& page) {
  const bool is_front = page.place == "index.html";
  const std::string title = is_front || page.title == site.title
                                ? site.title
                                : page.title + " – " + site.title;
  return fmt::format(
      R"(<!doctype html>
<!-- {mark} {version} -->
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>{title}</title>
<link rel="stylesheet" href="{root}style.css">
<script defer src="{root}search.js"></script>
</head>
<body data-root="{root}">
<a class="skip" href="#manual-text">to the text</a>
<header>
<label for="manual-menu" class="menu" title="contents"><span>☰</span></label>
<a class="home" href="{root}index.html">{manual}</a>
<div class="search" hidden><input type="search" placeholder="Search  /" aria-label="search the manual" autocomplete="off" spellcheck="false" role="combobox" aria-expanded="false" aria-controls="manual-results"><ul id="manual-results" role="listbox" hidden></ul></div>
</header>
<input type="checkbox" id="manual-menu" aria-label="contents">
<nav aria-label="contents">
{side}</nav>
<main id="manual-text">
{body}</main>
</body>
</html>
)",
      fmt::arg("mark", mark), fmt::arg("version", site.version),
      fmt::arg("title", escaped(title)),
      fmt::arg("root", relative(page.place, "")),
      fmt::arg("manual", escaped(site.title)),
      fmt::arg("side", side_bar(site, page)), fmt::arg("body", page.body));
}

std::string search_index(const Site& site) {
  std::string out =
      fmt::format("// {} {}\nvar manual_index = [\n", mark, site.version);
  for (const Searched& entry : site.searched)
    out += fmt::format("[{},{},{},{}],\n", json_string(entry.kind),
                       json_string(entry.title), json_string(entry.place),
                       json_string(entry.text));
  return out + "];\n";
}

std::vector<File> files_of(const Site& site) {
  std::vector<File> out;
  for (const Page& page : site.pages)
    out.push_back({page.place, html_of(site, page)});
  out.push_back({"search-index.js", search_index(site)});
  for (const Asset& asset : assets())
    out.push_back(
        {std::string(asset.name) + (asset.name == "style" ? ".css" : ".js"),
         fmt::format("/* {} {} */\n{}", mark, site.version, asset.text)});
  return out;
}

Error at(const fs::path& path, const std::string& message) {
  return Error{Error::Kind::io,
               fmt::format("cannot write `{}`: {}", path.string(), message)};
}

/// Whether a file may be replaced: it is not there, or ours.
bool is_ours(const fs::path& path) {
  std::error_code error;
  if (!fs::exists(fs::symlink_status(path, error))) return true;
  if (!fs::is_regular_file(path, error)) return false;
  const auto text = lang::read_source(path.string());
  return text && std::string_view(*text).substr(0, mark_within).find(mark) !=
                     std::string_view::npos;
}

}  // namespace

Status write_site(const Site& site, const std::string& folder) {
  const fs::path root = folder;
  const std::vector<File> files = files_of(site);
  std::set<fs::path> folders;
  for (const File& file : files) {
    if (!is_ours(root / file.place))
      return at(root / file.place,
                "it is there, and no page of a manual; --out names another "
                "folder");
    folders.insert((root / file.place).parent_path());
  }
  for (const fs::path& needed : folders) {
    std::error_code error;
    fs::create_directories(needed, error);
    if (error) return at(needed, error.message());
  }
  for (const File& file : files) {
    const fs::path path = root / file.place;
    if (Status done = write_text(path.string(), file.text); !done)
      return at(path, done.error().message);
  }
  return Unit{};
}

}  // namespace unisono::host::manual
