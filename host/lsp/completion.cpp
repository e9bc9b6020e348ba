#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "host/lsp/answers.h"
#include "host/lsp/cursor.h"

namespace unisono::host::lsp {
namespace {

/// CompletionItemKind.
enum class ItemKind : int {
  function = 3,
  field = 5,
  variable = 6,
  module = 9,
  property = 10,
  keyword = 14,
  constant = 21,
  structure = 22,
  type_parameter = 25
};

ItemKind kind_of(const Definition& d) {
  switch (d.kind) {
    case Definition::Kind::function: return ItemKind::function;
    case Definition::Kind::type: return ItemKind::structure;
    case Definition::Kind::module: return ItemKind::module;
    case Definition::Kind::type_parameter: return ItemKind::type_parameter;
    case Definition::Kind::axis: return ItemKind::constant;
    case Definition::Kind::variable:
    case Definition::Kind::parameter:
    case Definition::Kind::size: return ItemKind::variable;
  }
  return ItemKind::variable;
}

ItemKind kind_of(const LibraryName& name) {
  switch (name.kind) {
    case LibraryName::Kind::function: return ItemKind::function;
    case LibraryName::Kind::constant: return ItemKind::constant;
    case LibraryName::Kind::type: return ItemKind::structure;
  }
  return ItemKind::variable;
}

/// Items in groups: what is nearer is shown first.
class Items {
 public:
  explicit Items(View& view) : view_(view) {}

  void add(const std::string& label, ItemKind kind, char group,
           const std::string& detail = "", const std::string& about = "") {
    if (!seen_.insert(label).second) return;
    Json item = {{"label", label},
                 {"kind", static_cast<int>(kind)},
                 {"sortText", group + label}};
    if (!detail.empty()) item["detail"] = detail;
    if (!about.empty()) item["documentation"] = view_.prose(about);
    items_.push_back(std::move(item));
  }
  void add(const Meaning& meaning, char group) {
    const std::string detail = headline(view_, meaning);
    if (meaning.library)
      add(meaning.library->name, kind_of(*meaning.library), group, detail,
          documentation(meaning));
    else if (meaning.definition)
      add(std::string(meaning.definition->name), kind_of(*meaning.definition),
          group, detail, documentation(meaning));
  }
  Json take() {
    return {{"isIncomplete", false}, {"items", std::move(items_)}};
  }

 private:
  View& view_;
  std::set<std::string> seen_;
  Json items_ = Json::array();
};

/// What `a.b` means: a module's member, or a value of which only the type is.
struct ChainMeaning {
  Meaning meaning;
  std::string type;
};
ChainMeaning resolve(View& view, const Chain& chain, uint32_t offset) {
  ChainMeaning out;
  if (chain.continues || chain.names.empty()) return out;
  out.meaning = view.lookup(chain.names[0], offset);
  out.type = view.type(out.meaning);
  for (size_t i = 1; i < chain.names.size(); ++i) {
    const Definition* d = out.meaning.definition;
    if (d && d->import) {
      out.meaning = view.member(out.meaning, chain.names[i]);
      out.type = view.type(out.meaning);
      continue;
    }
    out.meaning = {};
    std::string field;
    for (auto& [name, type] : record_fields(out.type))
      if (name == chain.names[i]) field = std::move(type);
    out.type = std::move(field);
  }
  return out;
}

std::optional<Signature> signature(const Meaning& meaning) {
  if (meaning.library) return meaning.library->signature;
  if (!meaning.definition || !meaning.definition->function) return std::nullopt;
  return signature_of(meaning.definition->name, *meaning.definition->function);
}

/// The function that is called, and whether its first argument stands before
/// the dot.
struct Callee {
  Meaning meaning;
  bool is_method = false;
};
Callee resolve(View& view, const OpenCall& call, uint32_t offset) {
  if (call.callee.names.empty()) return {};
  const bool dotted = call.callee.continues || call.callee.names.size() > 1;
  const Meaning found = resolve(view, call.callee, offset).meaning;
  if (!dotted || found.definition || found.library) return {found, false};
  return {view.lookup(call.callee.names.back(), offset), true};
}

void add_members(View& view, const Chain& object, uint32_t offset,
                 Items& items) {
  const ChainMeaning of = resolve(view, object, offset);
  const Definition* d = of.meaning.definition;
  if (d && d->import && d->import->is_file) {
    const auto home = view.files().file(of.meaning.home->path_of(*d->import));
    if (!home) return;
    for (const auto& [name, variable] :
         home->names().resolution().scopes[0].variables)
      items.add(view.member(of.meaning, std::string(name)), 'a');
    return;
  }
  if (d && d->import) {
    if (const auto* members = view.library().module(d->import->module.text))
      for (const auto& [name, member] : *members)
        items.add({nullptr, nullptr, &member}, 'a');
    return;
  }
  for (const auto& [name, type] : record_fields(of.type))
    items.add(name, ItemKind::field, 'a', fmt::format("{}: {}", name, type));
  // x.f(y) is f(x, y).
  for (const Meaning& m : view.visible(offset))
    if (m.definition->function && !m.definition->function->params.empty())
      items.add(m, 'b');
  for (const auto& [name, entry] : view.library().prelude())
    if (entry.signature && !entry.signature->parameters.empty())
      items.add({nullptr, nullptr, &entry}, 'c');
}

void add_arguments(View& view, const OpenCall& call, uint32_t offset,
                   Items& items) {
  if (!call.at_start) return;
  const Callee callee = resolve(view, call, offset);
  const auto called = signature(callee.meaning);
  if (!called) return;
  int position = callee.is_method ? -1 : 0;
  for (const SignatureParameter& p : called->parameters) {
    const bool taken = !p.keyword_only && position++ < call.argument;
    const bool given = std::ranges::count(call.given, p.name) > 0;
    if (p.name.empty() || taken || given) continue;
    items.add(p.name + "=", ItemKind::property, 'a',
              called->label.substr(p.begin, p.end - p.begin));
  }
}

void add_names(View& view, uint32_t offset, Items& items) {
  for (const Meaning& m : view.visible(offset)) items.add(m, 'b');
  for (const auto& [name, entry] : view.library().prelude())
    items.add({nullptr, nullptr, &entry}, 'c');
#define KEYWORD(enumerator, text, ...) items.add(text, ItemKind::keyword, 'd');
#define DECLARATION(text) items.add(text, ItemKind::keyword, 'd');
#define SPECIAL(...)
#define PUNCTUATION(...)
#include "lang/syntax/token.def"
}

}  // namespace

Json completions(View& view, uint32_t offset) {
  const Cursor cursor = cursor_at(view.syntax(), offset);
  Items items(view);
  switch (cursor.where) {
    case Cursor::Where::nowhere: break;
    case Cursor::Where::module:
      for (const std::string_view name : view.library().modules())
        items.add(std::string(name), ItemKind::module, 'a', "",
                  std::string(view.library().about(name)));
      break;
    case Cursor::Where::member:
      add_members(view, cursor.object, offset, items);
      break;
    case Cursor::Where::name:
      if (cursor.call) add_arguments(view, *cursor.call, offset, items);
      add_names(view, offset, items);
      break;
  }
  return items.take();
}

Json signature_help(View& view, uint32_t offset) {
  const Cursor cursor = cursor_at(view.syntax(), offset);
  if (!cursor.call) return nullptr;
  const Callee callee = resolve(view, *cursor.call, offset);
  const auto called = signature(callee.meaning);
  if (!called) return nullptr;
  Json parameters = Json::array();
  size_t active = called->parameters.size();
  int position = callee.is_method ? -1 : 0;
  for (size_t i = 0; i < called->parameters.size(); ++i) {
    const SignatureParameter& p = called->parameters[i];
    Json label;
    // Counted as UTF-16, whatever positions are.
    if (view.client().label_offsets)
      label = {units(std::string_view(called->label).substr(0, p.begin),
                     Encoding::utf16),
               units(std::string_view(called->label).substr(0, p.end),
                     Encoding::utf16)};
    else
      label = called->label.substr(p.begin, p.end - p.begin);
    parameters.push_back({{"label", std::move(label)}});
    const bool here =
        cursor.call->name
            ? p.name == *cursor.call->name
            : p.rest || p.keyword_only || position++ == cursor.call->argument;
    if (here) active = std::min(active, i);
  }
  Json signature = {{"label", called->label},
                    {"parameters", std::move(parameters)}};
  if (const std::string text = documentation(callee.meaning); !text.empty())
    signature["documentation"] = view.prose(text);
  Json out = {{"signatures", Json::array({std::move(signature)})},
              {"activeSignature", 0}};
  if (active < called->parameters.size()) out["activeParameter"] = active;
  return out;
}

}  // namespace unisono::host::lsp
