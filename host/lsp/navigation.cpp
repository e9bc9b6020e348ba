#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "host/lsp/answers.h"
#include "lang/source/diagnostics.h"

namespace unisono::host::lsp {
namespace {

/// The name at a byte and what it means.
struct Found {
  const Occurrence* occurrence = nullptr;
  Meaning meaning;
};
Found find(View& view, uint32_t offset) {
  Found out;
  out.occurrence = view.syntax().names().at(offset);
  if (out.occurrence) out.meaning = view.meaning(*out.occurrence);
  return out;
}

/// The file that the import at a byte means.
std::shared_ptr<const Syntax> imported_file(View& view, uint32_t offset) {
  for (const lang::ImportStmt* import : view.syntax().names().imports())
    if (import->is_file && import->span.begin <= offset &&
        offset <= import->span.end)
      return view.files().file(view.syntax().path_of(*import));
  return nullptr;
}

/// All places of one file that mean what `of` means.
std::vector<const Occurrence*> places(View& view,
                                      const std::shared_ptr<const Syntax>& in,
                                      const Meaning& of) {
  std::vector<const Occurrence*> out;
  const std::string home = of.home ? file_key(of.home->path()) : "";
  const bool at_home = of.home && file_key(in->path()) == home;
  for (const Occurrence& o : in->names().occurrences()) {
    // Most are told apart without a look at other files.
    if (of.library && o.where.text() != of.library->name) continue;
    if (of.definition && !at_home && o.kind != Occurrence::Kind::member)
      continue;
    const Meaning meaning = view.meaning(in, o);
    bool same = false;
    if (of.library) {
      same = meaning.library == of.library;
    } else if (meaning.definition) {
      same =
          meaning.home->names().group(*meaning.definition) ==
              of.home->names().group(*of.definition) &&
          (meaning.home == of.home || file_key(meaning.home->path()) == home);
    }
    if (same) out.push_back(&o);
  }
  return out;
}

/// The files that may have the name: the one that binds it and the open ones.
std::vector<std::shared_ptr<const Syntax>> files_with(View& view,
                                                      const Meaning& of) {
  std::vector<std::shared_ptr<const Syntax>> out;
  std::set<std::string> keys;
  if (of.home && keys.insert(file_key(of.home->path())).second)
    out.push_back(of.home);
  for (Document* document : view.files().all())
    if (keys.insert(document->key).second)
      out.push_back(view.files().syntax(*document));
  return out;
}

Error refused(std::string why) {
  return {.kind = Error::Kind::io, .message = std::move(why)};
}

/// Why a name cannot be renamed; empty if it can.
std::string why_not(const Found& found) {
  if (!found.occurrence) return "there is no name here";
  if (found.meaning.library) return "the name belongs to the library";
  if (found.meaning.definition) return "";
  if (!found.occurrence->argument.empty())
    return "the function of this argument is not known here";
  switch (found.occurrence->kind) {
    case Occurrence::Kind::field: return "fields are not renamed";
    case Occurrence::Kind::argument:
    case Occurrence::Kind::local:
    case Occurrence::Kind::library:
    case Occurrence::Kind::member: return "the name means nothing here";
  }
  return "";
}

bool is_name(const std::string& text) {
  lang::SourceMap sources;
  lang::Diagnostics diagnostics;
  const lang::Tokens lexed = lang::lex(sources.add("", text), diagnostics);
  return diagnostics.empty() && lexed.comments.empty() &&
         lexed.tokens.size() == 2 && text != "_" &&
         lexed.tokens[0].kind == lang::TokenKind::Identifier &&
         lexed.tokens[0].end == text.size();
}

/// What a place becomes: `import nn` needs an alias.
struct Edit {
  uint32_t begin, end;
  std::string text;
};
Edit edit_of(const Syntax& in, const Occurrence& o, const std::string& name) {
  const Definition* d =
      o.definition >= 0 ? &in.names().definitions()[o.definition] : nullptr;
  const bool new_alias = d && d->import && !d->import->alias &&
                         o.use == Occurrence::Use::definition;
  if (new_alias) return {o.where.end, o.where.end, " as " + name};
  return {o.where.begin, o.where.end, name};
}

/// The edits of one file, in its order, and what it becomes.
struct Change {
  std::shared_ptr<const Syntax> before, after;
  std::vector<Edit> edits;
};

Change change(const std::shared_ptr<const Syntax>& in,
              const std::vector<const Occurrence*>& at,
              const std::string& name) {
  Change out{in, nullptr, {}};
  const std::string& text = in->text().str();
  std::string result;
  uint32_t from = 0;
  for (const Occurrence* o : at) {
    out.edits.push_back(edit_of(*in, *o, name));
    const Edit& edit = out.edits.back();
    result += text.substr(from, edit.begin - from) + edit.text;
    from = edit.end;
  }
  result += text.substr(from);
  out.after = std::make_shared<const Syntax>(in->path(), std::move(result));
  return out;
}

/// The first place of the changed file that means something else than before.
const Occurrence* other_meaning(const Change& change) {
  const auto& before = change.before->names();
  const auto& after = change.after->names();
  const size_t count =
      std::min(before.occurrences().size(), after.occurrences().size());
  for (size_t i = 0; i < count; ++i) {
    const Occurrence& a = before.occurrences()[i];
    const Occurrence& b = after.occurrences()[i];
    const auto group = [](const Names& names, const Occurrence& o) {
      return o.definition < 0 ? -1
                              : names.group(names.definitions()[o.definition]);
    };
    if (a.kind != b.kind || group(before, a) != group(after, b)) return &a;
  }
  if (before.occurrences().size() == after.occurrences().size()) return nullptr;
  return before.occurrences().empty() ? nullptr : &before.occurrences().back();
}

/// Why the changed files are not what they were but for a name; empty if they
/// are.
std::string damage(View& view, const std::vector<Change>& changes,
                   const std::string& name, const std::atomic<bool>* stop,
                   int devices) {
  std::vector<std::pair<std::string, std::string>> texts;
  for (const Change& c : changes) {
    const auto where = [&](lang::Span span) {
      return fmt::format("line {} of {}",
                         c.before->text().line_of(span.begin) + 1,
                         c.before->path());
    };
    if (!c.before->ok())
      return fmt::format("{} has errors that hide some of its names",
                         c.before->path());
    if (!c.after->ok()) return fmt::format("`{}` cannot be a name here", name);
    if (const Occurrence* o = other_meaning(c))
      return fmt::format("`{}` is bound already: {} would mean something else",
                         name, where(o->where));
    texts.emplace_back(c.after->path(), c.after->text().str());
  }
  // What the index cannot see: `let (a, b) = record` binds its fields.
  for (const Change& c : changes) {
    CheckRequest request{c.before, view.files().modules(*c.before), devices,
                         view.client().encoding};
    const auto before = check(request, stop);
    if (before && before->has_errors) continue;  // nothing can be told
    request.syntax = c.after;
    request.modules.insert(request.modules.begin(), texts.begin(), texts.end());
    const auto after = check(request, stop);
    if (!before || !after) return "it was cancelled";
    const auto wrong =
        std::ranges::find(after->messages, lang::Severity::error,
                          [](const Message& m) { return m.severity; });
    if (wrong != after->messages.end())
      return fmt::format("the program would have an error on line {}: {}",
                         wrong->range.start.line + 1, wrong->text);
  }
  return "";
}

}  // namespace

Json definition(View& view, uint32_t offset) {
  if (const auto file = imported_file(view, offset))
    return view.location(*file, {nullptr, 0, 0});
  const Found found = find(view, offset);
  if (!found.meaning.definition) return nullptr;
  const Syntax& home = *found.meaning.home;
  Json out = Json::array();
  out.push_back(view.location(home, found.meaning.definition->where));
  if (&home == &view.syntax())
    for (const Definition* other : home.names().targets(*found.occurrence))
      if (other != found.meaning.definition)
        out.push_back(view.location(home, other->where));
  return out;
}

Json references(View& view, uint32_t offset, bool with_definition) {
  const Found found = find(view, offset);
  if (!found.meaning.definition && !found.meaning.library) return nullptr;
  Json out = Json::array();
  for (const auto& file : files_with(view, found.meaning))
    for (const Occurrence* o : places(view, file, found.meaning))
      if (with_definition || o->use != Occurrence::Use::definition)
        out.push_back(view.location(*file, o->where));
  return out;
}

Json highlights(View& view, uint32_t offset) {
  constexpr int read = 2, write = 3;
  const Found found = find(view, offset);
  if (!found.meaning.definition && !found.meaning.library) return nullptr;
  Json out = Json::array();
  for (const Occurrence* o : places(view, view.shared_syntax(), found.meaning))
    out.push_back({{"range", view.range(o->where)},
                   {"kind", o->use == Occurrence::Use::read ? read : write}});
  return out;
}

Result<Json> prepare_rename(View& view, uint32_t offset) {
  const Found found = find(view, offset);
  if (std::string why = why_not(found); !why.empty())
    return refused(std::move(why));
  return Json{{"range", view.range(found.occurrence->where)},
              {"placeholder", found.meaning.definition->name}};
}

Result<Json> rename(View& view, uint32_t offset, const std::string& name,
                    const std::atomic<bool>* stop, int devices) {
  const Found found = find(view, offset);
  if (std::string why = why_not(found); !why.empty())
    return refused(std::move(why));
  if (!is_name(name)) return refused(fmt::format("`{}` is no name", name));
  Json edits = Json::object();
  if (name == found.meaning.definition->name) return Json{{"changes", edits}};
  std::vector<Change> changes;
  for (const auto& file : files_with(view, found.meaning)) {
    const auto at = places(view, file, found.meaning);
    if (!at.empty()) changes.push_back(change(file, at, name));
  }
  if (std::string why = damage(view, changes, name, stop, devices);
      !why.empty())
    return refused(std::move(why));
  for (const Change& c : changes) {
    Document* open = view.files().document(c.before->path());
    Json& list = edits[open ? open->uri : uri_of_path(c.before->path())];
    for (const Edit& edit : c.edits)
      list.push_back(
          {{"range", view.range(*c.before, {nullptr, edit.begin, edit.end})},
           {"newText", edit.text}});
  }
  return Json{{"changes", edits}};
}

}  // namespace unisono::host::lsp
