#include <fmt/format.h>

#include <algorithm>

#include "host/lsp/answers.h"

namespace unisono::host::lsp {
namespace {

/// Hints are one line of code long; all of the type is in their tooltip.
constexpr size_t longest_hint = 60;

std::string code_block(const std::string& code) {
  return "```unisono\n" + code + "\n```";
}

std::string variable(View& view, const Meaning& meaning,
                     std::string_view keyword) {
  const std::string type = view.type(meaning);
  return fmt::format("{}{}{}", keyword, meaning.definition->name,
                     type.empty() ? "" : ": " + type);
}

std::string headline_of(View& view, const Meaning& meaning) {
  const Definition& d = *meaning.definition;
  switch (d.kind) {
    case Definition::Kind::variable:
      return variable(view, meaning, d.let ? d.is_var ? "var " : "let " : "");
    case Definition::Kind::parameter:
    case Definition::Kind::size:
    case Definition::Kind::type_parameter: return variable(view, meaning, "");
    case Definition::Kind::function: {
      std::string name(d.name);
      if (d.def && !d.function->type_params.empty()) {
        const uint32_t end = d.function->params_span.begin;
        name = lang::Span{d.where.file, d.where.begin, end}.text();
      }
      return (d.def ? "def " : "let ") +
             signature_of(one_line(name), *d.function).label;
    }
    case Definition::Kind::type:
    case Definition::Kind::axis:
    case Definition::Kind::module: return std::string(d.whole.text());
  }
  return std::string(d.name);
}

std::string headline_of(const LibraryName& name) {
  switch (name.kind) {
    case LibraryName::Kind::function: return "def " + name.signature->label;
    case LibraryName::Kind::constant: return "let " + name.name;
    case LibraryName::Kind::type: return "type " + name.name;
  }
  return name.name;
}

/// What a definition is that does not say so itself.
std::string about(const Definition& d) {
  switch (d.kind) {
    case Definition::Kind::parameter: return "a parameter";
    case Definition::Kind::size: return "a size";
    case Definition::Kind::type_parameter: return "an element type";
    case Definition::Kind::variable:
      return d.let || d.import ? "" : "bound in each turn";
    case Definition::Kind::function:
    case Definition::Kind::type:
    case Definition::Kind::axis:
    case Definition::Kind::module: return "";
  }
  return "";
}

/// `>>>` examples as code.
std::string as_markdown(const std::string& text) {
  std::string out;
  bool in_code = false;
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find('\n', at), text.size());
    std::string_view line = std::string_view(text).substr(at, end - at);
    const bool code = line.starts_with("    ");
    if (code != in_code) out += code ? "```unisono\n" : "```\n";
    in_code = code;
    if (code) line.remove_prefix(4);
    out += std::string(line) + "\n";
    at = end + 1;
  }
  if (in_code) out += "```\n";
  while (out.ends_with('\n')) out.pop_back();
  return out;
}

Json hover_text(View& view, lang::Span where,
                const std::vector<std::string>& parts) {
  std::string all;
  for (const std::string& part : parts)
    if (!part.empty()) all += (all.empty() ? "" : "\n\n") + part;
  return {{"contents", view.prose(all)}, {"range", view.range(where)}};
}

/// A field of a record, whose type is known.
Json field_hover(View& view, const Occurrence& o) {
  if (!o.object) return nullptr;
  const std::string object = view.type(view.shared_syntax(), *o.object);
  for (const auto& [name, type] : record_fields(object))
    if (name == o.where.text())
      return hover_text(view, o.where,
                        {code_block(fmt::format("{}: {}", name, type)),
                         "a field of `" + object + "`"});
  return nullptr;
}

Json hint(View& view, lang::Span where, const std::vector<std::string>& types) {
  // What stands for all calls needs no others beside it.
  const bool several = types.size() > 1 && !has_names_of_sizes(types[0]);
  std::string label = ": " + types[0] + (several ? " ..." : "");
  const bool cut = label.size() > longest_hint;
  if (cut) {
    size_t end = longest_hint;
    while (end > 0 && (label[end] & 0xC0) == 0x80) --end;
    label = label.substr(0, end) + "...";
  }
  Json out = {
      {"position", view.range(where)["end"]}, {"label", label}, {"kind", 1}};
  if (several || cut) {
    std::string all;
    for (const std::string& type : types)
      all += (all.empty() ? "" : "\n") + type;
    out["tooltip"] = view.prose(code_block(all));
  }
  return out;
}

void add_hints(View& view, const lang::Pattern& pattern, uint32_t begin,
               uint32_t end, std::vector<Json>& out) {
  for (const lang::Pattern& item : pattern.items)
    add_hints(view, item, begin, end, out);
  const lang::Span where = pattern.name.span;
  if (pattern.kind != lang::Pattern::Kind::name || where.end < begin ||
      where.end > end)
    return;
  const Occurrence* o = view.syntax().names().at(where.begin);
  if (!o || o->kind != Occurrence::Kind::local) return;
  const std::vector<std::string> types = view.types(view.meaning(*o));
  // A function's type says nothing that its value does not.
  if (types.empty() || types[0].starts_with("function ")) return;
  out.push_back(hint(view, where, types));
}

}  // namespace

std::string headline(View& view, const Meaning& meaning) {
  if (meaning.library) return headline_of(*meaning.library);
  return meaning.definition ? headline_of(view, meaning) : "";
}

std::string documentation(const Meaning& meaning) {
  if (meaning.library) return as_markdown(meaning.library->documentation);
  if (!meaning.definition || !meaning.definition->def) return "";
  return as_markdown(meaning.definition->def->documentation);
}

Json hover(View& view, uint32_t offset) {
  const Occurrence* o = view.syntax().names().at(offset);
  if (!o) return nullptr;
  const Meaning meaning = view.meaning(*o);
  if (o->kind == Occurrence::Kind::field && !meaning.definition &&
      !meaning.library)
    return field_hover(view, *o);
  if (meaning.library) {
    const std::string& module = meaning.library->module;
    return hover_text(
        view, o->where,
        {code_block(headline(view, meaning)), documentation(meaning),
         module.empty() ? "" : "in the library's `" + module + "`"});
  }
  if (!meaning.definition) return nullptr;
  const Definition& d = *meaning.definition;
  std::string more;
  const std::vector<std::string> types = view.types(meaning);
  for (size_t i = 1; i < types.size() && d.kind != Definition::Kind::function;
       ++i)
    more += (i == 1 ? "in calls also `" : ", `") + types[i] + "`";
  std::string module;
  if (d.import && !d.import->is_file)
    module =
        as_markdown(std::string(view.library().about(d.import->module.text)));
  return hover_text(view, o->where,
                    {code_block(headline(view, meaning)),
                     documentation(meaning), about(d), more, module});
}

Json inlay_hints(View& view, uint32_t begin, uint32_t end) {
  std::vector<Json> out;
  const lang::LetStmt* last = nullptr;
  for (const Definition& d : view.syntax().names().definitions()) {
    // A pattern has a definition for each of its names.
    if (!d.let || d.let == last || d.let->type) continue;
    last = d.let;
    add_hints(view, d.let->pattern, begin, end, out);
  }
  // Functions stand last among the definitions.
  std::ranges::sort(out, {}, [](const Json& hint) {
    const Json& at = hint["position"];
    return std::pair(at["line"].get<uint32_t>(),
                     at["character"].get<uint32_t>());
  });
  return out;
}

}  // namespace unisono::host::lsp
