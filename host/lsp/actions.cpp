#include <fmt/format.h>

#include "host/lsp/answers.h"

namespace unisono::host::lsp {
namespace {

Json to_json(const Range& r) {
  return {{"start", {{"line", r.start.line}, {"character", r.start.character}}},
          {"end", {{"line", r.end.line}, {"character", r.end.character}}}};
}

int severity_number(lang::Severity severity) {
  switch (severity) {
    case lang::Severity::error: return 1;
    case lang::Severity::warning: return 2;
    case lang::Severity::note: return 3;
    case lang::Severity::performance: return 4;
  }
  return 1;
}

}  // namespace

Json diagnostic(Files& files, const Client& client, const Message& m) {
  std::string text = m.text;
  Json related = Json::array();
  for (const auto& [place, note] : m.related) {
    const Document* open = files.document(place.path);
    related.push_back({{"location",
                        {{"uri", open ? open->uri : uri_of_path(place.path)},
                         {"range", to_json(place.range)}}},
                       {"message", note}});
    if (!client.related)
      text += fmt::format("\nnote: {} ({}:{}:{})", note, place.path,
                          place.range.start.line + 1,
                          place.range.start.character + 1);
  }
  Json out = {{"range", to_json(m.range)},
              {"severity", severity_number(m.severity)},
              {"code", m.code},
              {"source", "unisono"},
              {"message", std::move(text)}};
  if (client.related && !related.empty())
    out["relatedInformation"] = std::move(related);
  return out;
}

Json quick_fixes(View& view, uint32_t begin, uint32_t end) {
  Json out = Json::array();
  const Document& document = view.document();
  // Edits of an older text would be at other places.
  if (!view.client().actions || !document.checked ||
      document.checked_version != document.version)
    return out;
  for (const Message& m : document.checked->messages) {
    if (view.offset(m.range.end) < begin || end < view.offset(m.range.start))
      continue;
    for (const Fix& fix : m.fixes) {
      Json edits = Json::array();
      for (const TextEdit& edit : fix.edits)
        edits.push_back({{"range", view.range({nullptr, edit.begin, edit.end})},
                         {"newText", edit.text}});
      out.push_back(
          {{"title", fix.title},
           {"kind", "quickfix"},
           {"diagnostics",
            Json::array({diagnostic(view.files(), view.client(), m)})},
           {"isPreferred", m.fixes.size() == 1},
           {"edit", {{"changes", {{document.uri, std::move(edits)}}}}}});
    }
  }
  return out;
}

}  // namespace unisono::host::lsp
