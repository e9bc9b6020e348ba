#pragma once
// Where names, pages and sections of a manual are.
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>

#include "host/manual/highlight.h"
#include "host/manual/module.h"

namespace unisono::host::manual {

/// A name that some page tells of.
struct Target {
  std::string place;  // "library/nn.html#relu"; empty: it has no page here
  std::string title;  // its signature, and the start of what is said of it
  bool is_type = false;
};

/// Filled first; then asked while pages are made. A place is a path from the
/// folder of the manual, with `/`.
class Links {
 public:
  void add_prelude(const std::string& name, Target target);
  void add_member(const std::string& key, const std::string& name,
                  Target target);
  /// A text at `path` becomes the page at `place`, with these sections.
  void add_page(const std::string& path, const std::string& place,
                std::string title, std::set<std::string> sections);

  /// What names mean on the page at `from`: first those of `module`, if there
  /// is one, then the prelude's and those of modules.
  LinkOf link_of(std::string from, const Module* module) const;
  /// For `code` in text: "relu(x)", "nn.relu", "U0412"; nothing if it is no
  /// name. The link is from the page at `from`.
  std::optional<NameLink> link_of_code(const std::string& from,
                                       const Module* module,
                                       std::string_view code) const;
  /// Where a link of the text at `path` leads, from the page at `from`;
  /// nothing if this manual has no such place. What begins with https:, http:
  /// or mailto: leads there; other schemes, as of scripts, nowhere.
  std::optional<std::string> link_of_url(const std::string& from,
                                         const std::string& path,
                                         std::string_view url) const;
  /// The title of the page that a link of the text at `path` leads to; empty if
  /// it is no page of this manual.
  std::string title_of_url(const std::string& path, std::string_view url) const;

 private:
  /// The page that the part of a URL before `#` means.
  const std::string* place_of(const std::string& path,
                              std::string_view url) const;
  const Target* prelude(std::string_view name) const;
  const Target* member(std::string_view key, std::string_view name) const;
  const Target* find(const lsp::Occurrence& occurrence, const lsp::Names& names,
                     const Module* module) const;

  using Targets = std::map<std::string, Target, std::less<>>;
  Targets prelude_;
  std::map<std::string, Targets, std::less<>> members_;
  std::map<std::string, std::string, std::less<>> places_;  // by path
  std::map<std::string, std::set<std::string>, std::less<>> sections_;
  std::map<std::string, std::string, std::less<>> titles_;  // by place
};

}  // namespace unisono::host::manual
