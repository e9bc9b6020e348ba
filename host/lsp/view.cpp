#include "host/lsp/view.h"

#include <algorithm>
#include <set>

namespace unisono::host::lsp {

using lang::as;

std::vector<std::pair<std::string, std::string>> record_fields(
    std::string_view type) {
  std::vector<std::pair<std::string, std::string>> out;
  if (!type.starts_with('(') || !type.ends_with(')')) return out;
  for (const std::string_view part :
       split_at_commas(type.substr(1, type.size() - 2))) {
    const size_t colon = part.find(": ");
    const bool is_name =
        colon != part.npos &&
        part.find_first_of(" ([\"") > colon;  // no type with a note
    if (is_name)
      out.emplace_back(part.substr(0, colon), part.substr(colon + 2));
  }
  return out;
}

View::View(Files& files, const Library& library, const Client& client,
           Document& document)
    : files_(files),
      library_(library),
      client_(client),
      document_(document),
      syntax_(files.syntax(document)) {}

Json View::range(const Syntax& in, lang::Span span) const {
  const Range r = in.text().range(span.begin, span.end, client_.encoding);
  return {{"start", {{"line", r.start.line}, {"character", r.start.character}}},
          {"end", {{"line", r.end.line}, {"character", r.end.character}}}};
}

const View::Known& View::known(const Syntax& in) {
  const auto [place, fresh] = known_.try_emplace(&in);
  Known& out = place->second;
  if (!fresh) return out;
  // A document by the name that the client has for it.
  const Document* open = files_.document(in.path());
  out.uri = open ? open->uri : uri_of_path(in.path());
  if (!open || !open->typed) return out;
  out.typed = open->typed;
  out.shift.emplace(in.text().str(), out.typed->syntax->text().str());
  return out;
}

Json View::location(const Syntax& in, lang::Span span) {
  return {{"uri", known(in).uri}, {"range", range(in, span)}};
}

Json View::prose(const std::string& markdown) const {
  if (client_.markdown) return {{"kind", "markdown"}, {"value", markdown}};
  std::string plain;
  for (size_t at = 0; at < markdown.size();) {
    const size_t end = std::min(markdown.find('\n', at), markdown.size());
    const std::string_view line =
        std::string_view(markdown).substr(at, end - at);
    if (!line.starts_with("```")) plain += std::string(line) + "\n";
    at = end + 1;
  }
  while (plain.ends_with('\n')) plain.pop_back();
  return {{"kind", "plaintext"}, {"value", plain}};
}

Meaning View::member(const Meaning& module, const std::string& name) {
  if (!module.definition || !module.definition->import) return {};
  const lang::ImportStmt& import = *module.definition->import;
  if (import.is_file) {
    const auto [place, fresh] = imported_.try_emplace(&import);
    if (fresh) place->second = files_.file(module.home->path_of(import));
    const std::shared_ptr<const Syntax>& home = place->second;
    const Definition* found =
        home ? home->names().resolution().exported(name) : nullptr;
    return {found ? home : nullptr, found, nullptr};
  }
  const Library::Members* members = library_.module(import.module.text);
  if (!members) return {};
  const auto found = members->find(name);
  return {nullptr, nullptr, found == members->end() ? nullptr : &found->second};
}

Meaning View::meaning(const std::shared_ptr<const Syntax>& in,
                      const Occurrence& o) {
  const auto of_library = [&](std::string_view name) {
    const auto found = library_.prelude().find(name);
    return Meaning{
        nullptr, nullptr,
        found == library_.prelude().end() ? nullptr : &found->second};
  };
  const auto definition = [&] {
    return local(in, in->names().definitions()[o.definition]);
  };
  switch (o.kind) {
    case Occurrence::Kind::local: return definition();
    case Occurrence::Kind::library: return of_library(o.where.text());
    case Occurrence::Kind::member: {
      Meaning found = member(definition(), o.member);
      if (o.argument.empty()) return found;
      if (found.definition)
        found.definition =
            found.home->names().parameter(*found.definition, o.argument);
      return found.definition ? found : Meaning();
    }
    case Occurrence::Kind::argument: return {};
    case Occurrence::Kind::field:
      if (!o.is_called || is_record_field(in, o)) return {};
      return o.definition >= 0 ? definition() : of_library(o.where.text());
  }
  return {};
}

std::vector<Meaning> View::visible(uint32_t offset) {
  std::vector<Meaning> out;
  std::set<std::string_view> seen;
  const auto add = [&](const std::shared_ptr<const Syntax>& in, uint32_t at) {
    for (const Definition* d : in->names().resolution().visible(at))
      if (seen.insert(d->name).second) out.push_back(local(in, *d));
  };
  add(syntax_, offset);
  const auto& good = document_.good;
  if (!syntax_->ok() && good)
    add(good, Shift(syntax_->text().str(), good->text().str())(offset));
  return out;
}

Meaning View::lookup(const std::string& name, uint32_t offset) {
  for (Meaning& m : visible(offset))
    if (m.definition->name == name) return m;
  const auto found = library_.prelude().find(name);
  if (found == library_.prelude().end()) return {};
  return {nullptr, nullptr, &found->second};
}

std::vector<std::string> View::types(const Meaning& meaning) {
  if (!meaning.definition) return {};
  const Known& file = known(*meaning.home);
  const lang::Span where = meaning.definition->where;
  if (!file.typed || !file.shift->keeps(where.begin) ||
      !file.shift->keeps(where.end))
    return {};
  const uint32_t at = (*file.shift)(where.begin);
  const auto found = file.typed->types.find(at);
  if (found == file.typed->types.end()) return {};
  // An edit may have put another name there.
  const std::string_view text = where.text();
  const std::string& checked = file.typed->syntax->text().str();
  const bool same = checked.compare(at, text.size(), text) == 0;
  return same ? found->second : std::vector<std::string>();
}

/// The type that a definition writes, with the text of a named one in place of
/// its name.
std::string View::declared(const Meaning& meaning) {
  const lang::Expr* type = meaning.definition->type;
  if (!type) return "";
  const auto* index = as<lang::Index>(*type);
  const lang::Expr& name = index ? *index->object : *type;
  const Occurrence* o = meaning.home->names().at(name.inner.begin);
  if (name.kind == lang::ExprKind::NameExpr && o) {
    const Meaning named = this->meaning(meaning.home, *o);
    if (named.definition && named.definition->alias)
      return one_line(named.definition->alias->type->span.text());
  }
  return one_line(type->span.text());
}

std::string View::type(const Meaning& meaning) {
  if (!meaning.definition) return "";
  const std::vector<std::string> known = types(meaning);
  return known.empty() ? declared(meaning) : known.front();
}

std::string View::type(const std::shared_ptr<const Syntax>& in,
                       const lang::Expr& expr) {
  if (const auto* name = as<lang::NameExpr>(expr)) {
    const Occurrence* o = in->names().at(name->inner.begin);
    return o ? type(meaning(in, *o)) : "";
  }
  if (const auto* with = as<lang::With>(expr)) return type(in, *with->base);
  const auto* field = as<lang::Field>(expr);
  if (!field) return "";
  const std::string object = type(in, *field->object);
  for (auto& [name, type] : record_fields(object))
    if (name == field->name.text) return type;
  if (field->index && object.starts_with('(') && object.ends_with(')')) {
    const auto items =
        split_at_commas(std::string_view(object).substr(1, object.size() - 2));
    const auto i = static_cast<size_t>(*field->index);
    if (i < items.size()) return std::string(items[i]);
  }
  return "";
}

bool View::is_record_field(const std::shared_ptr<const Syntax>& in,
                           const Occurrence& field) {
  if (!field.object) return false;
  const std::string object = type(in, *field.object);
  return std::ranges::any_of(record_fields(object), [&](const auto& f) {
    return f.first == field.where.text();
  });
}

}  // namespace unisono::host::lsp
