#include "host/manual/links.h"

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <utility>

#include "host/lsp/files.h"
#include "host/manual/html.h"
#include "lang/syntax/lexer.h"

namespace unisono::host::manual {
namespace {

NameLink linked(const std::string& from, const Target& target) {
  return {target.place.empty() ? "" : relative(from, target.place),
          target.title, target.is_type};
}

/// A name that is no keyword: `var` is one, and a function.
bool is_word(std::string_view text) {
  const lang::SourceFile file("", std::string(text));
  lang::Diagnostics diagnostics;
  if (lang::is_keyword(lang::lex(file, diagnostics).tokens[0].kind))
    return false;
  return !text.empty() && !std::isdigit(static_cast<unsigned char>(text[0])) &&
         std::ranges::all_of(
             text, [](unsigned char c) { return std::isalnum(c) || c == '_'; });
}

}  // namespace

void Links::add_prelude(const std::string& name, Target target) {
  prelude_[name] = std::move(target);
}

void Links::add_member(const std::string& key, const std::string& name,
                       Target target) {
  members_[key][name] = std::move(target);
}

void Links::add_page(const std::string& path, const std::string& place,
                     std::string title, std::set<std::string> sections) {
  places_[path] = place;
  titles_[place] = std::move(title);
  sections_[place] = std::move(sections);
}

const Target* Links::prelude(std::string_view name) const {
  const auto found = prelude_.find(name);
  return found == prelude_.end() ? nullptr : &found->second;
}

const Target* Links::member(std::string_view key, std::string_view name) const {
  const auto module = members_.find(key);
  if (module == members_.end()) return nullptr;
  const auto found = module->second.find(name);
  return found == module->second.end() ? nullptr : &found->second;
}

const Target* Links::find(const lsp::Occurrence& occurrence,
                          const lsp::Names& names, const Module* module) const {
  using Kind = lsp::Occurrence::Kind;
  const std::string text(occurrence.where.text());
  switch (occurrence.kind) {
    case Kind::argument: return nullptr;
    case Kind::library: {
      const Target* own = module ? member(module->key, text) : nullptr;
      return own ? own : prelude(text);
    }
    case Kind::local: {
      if (!module) return nullptr;
      for (const lsp::Definition* d : names.targets(occurrence)) {
        const Target* own = member(module->key, d->name);
        if (names.is_top_level(*d) && names.resolution().exported(d->name) == d)
          return own;
        // In a signature alone, a type of the module looks like a parameter.
        using Is = lsp::Definition::Kind;
        if (own && own->is_type &&
            (d->kind == Is::size || d->kind == Is::type_parameter))
          return own;
      }
      return nullptr;
    }
    case Kind::member: {
      const lsp::Definition& d = names.definitions()[static_cast<size_t>(
          std::max(occurrence.definition, 0))];
      if (!d.import || !occurrence.argument.empty()) return nullptr;
      if (!d.import->is_file) return member(d.import->module.text, text);
      return module ? member(lsp::file_key(module->syntax->path_of(*d.import)),
                             text)
                    : nullptr;
    }
    case Kind::field: {
      const auto* object = occurrence.object
                               ? lang::as<lang::NameExpr>(*occurrence.object)
                               : nullptr;
      if (object)
        if (const Target* found = member(object->text, text)) return found;
      if (object && module && module->name.ends_with(object->text))
        if (const Target* found = member(module->key, text)) return found;
      return occurrence.is_called ? prelude(text) : nullptr;
    }
  }
  return nullptr;
}

LinkOf Links::link_of(std::string from, const Module* module) const {
  return [this, from = std::move(from), module](
             const lsp::Occurrence& occurrence,
             const lsp::Names& names) -> std::optional<NameLink> {
    const Target* target = find(occurrence, names, module);
    if (!target) return std::nullopt;
    return linked(from, *target);
  };
}

std::optional<NameLink> Links::link_of_code(const std::string& from,
                                            const Module* module,
                                            std::string_view code) const {
  if (const auto page =
          places_.find("docs/errors/" + std::string(code) + ".md");
      page != places_.end())
    return NameLink{relative(from, page->second), "", false};
  const std::string_view name = code.substr(0, code.find('('));
  if (name.size() < code.size() && !code.ends_with(')')) return std::nullopt;
  const size_t dot = name.find('.');
  const Target* found = nullptr;
  if (dot != name.npos) {
    found = member(name.substr(0, dot), name.substr(dot + 1));
  } else if (is_word(name)) {
    if (module) found = member(module->key, name);
    if (!found) found = prelude(name);
  }
  if (!found || found->place.empty()) return std::nullopt;
  return linked(from, *found);
}

const std::string* Links::place_of(const std::string& path,
                                   std::string_view url) const {
  const std::string file = path_of_url(url);
  const auto found =
      places_.find((std::filesystem::path(path).parent_path() / file)
                       .lexically_normal()
                       .string());
  return found == places_.end() ? nullptr : &found->second;
}

std::optional<std::string> Links::link_of_url(const std::string& from,
                                              const std::string& path,
                                              std::string_view url) const {
  for (const std::string_view scheme : {"https://", "http://", "mailto:"})
    if (url.starts_with(scheme)) return std::string(url);
  std::string place = from;
  if (!url.starts_with('#')) {
    const std::string* found = place_of(path, url);
    if (!found) return std::nullopt;
    place = *found;
  }
  const size_t mark = std::min(url.find('#'), url.size());
  const std::string fragment(url.substr(mark));
  if (!fragment.empty()) {
    const auto sections = sections_.find(place);
    if (sections == sections_.end() ||
        !sections->second.contains(fragment.substr(1)))
      return std::nullopt;
  }
  return relative(from, place + fragment);
}

std::string Links::title_of_url(const std::string& path,
                                std::string_view url) const {
  const std::string* place = place_of(path, url);
  const auto title = place ? titles_.find(*place) : titles_.end();
  return title == titles_.end() ? "" : title->second;
}

}  // namespace unisono::host::manual
