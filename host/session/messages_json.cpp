#include "host/session/messages_json.h"

#include <nlohmann/json.hpp>

namespace unisono::host {
namespace {

using Json = nlohmann::ordered_json;

/// Raised when a program that reads the output would have to change.
constexpr int schema_version = 1;

Json place(lang::Span where) {
  if (!where) return nullptr;
  const auto begin = where.file->place(where.begin);
  const auto end = where.file->place(where.end);
  return {{"file", where.file->path()},
          {"line", begin.line},
          {"column", begin.column},
          {"end_line", end.line},
          {"end_column", end.column},
          {"begin", where.begin},
          {"end", where.end}};
}

Json message(const lang::Diagnostic& d) {
  Json notes = Json::array();
  for (const lang::Note& note : d.notes)
    notes.push_back({{"where", place(note.where)}, {"text", note.text}});
  return {{"code", lang::info(d.code).number},
          {"severity", lang::name(d.severity)},
          {"message", d.message},
          {"where", place(d.where)},
          {"label", d.label},
          {"notes", notes},
          {"facts", d.facts},
          {"help", d.help}};
}

}  // namespace

std::string to_json(const lang::Diagnostics& diagnostics) {
  Json messages = Json::array();
  for (const lang::Diagnostic& d : diagnostics.all())
    messages.push_back(message(d));
  const Json all = {{"version", schema_version},
                    {"ok", !diagnostics.has_errors()},
                    {"messages", messages}};
  // A path may hold bytes that are no UTF-8.
  return all.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace unisono::host
