#include "embed/error.h"

#include <array>
#include <exception>
#include <new>
#include <utility>

#include "embed/counted.h"
#include "embed/options.h"
#include "host/session/messages_json.h"
#include "lang/source/source.h"
#include "runtime/stop.h"

namespace unisono::embed {
namespace {

using lang::Code;

/// Those of which the number does not say it.
constexpr std::array<std::pair<Code, UnisonoErrorKind>, 17> kinds = {{
    {Code::cancelled, UNISONO_CANCELLED},
    {Code::limit_reached, UNISONO_LIMIT},
    {Code::recursion_too_deep, UNISONO_LIMIT},
    {Code::too_many_steps, UNISONO_LIMIT},
    {Code::too_long, UNISONO_LIMIT},
    {Code::nesting_too_deep, UNISONO_LIMIT},
    {Code::too_large, UNISONO_MEMORY},
    {Code::out_of_memory, UNISONO_MEMORY},
    {Code::device_lost, UNISONO_DEVICE},
    {Code::collective_stalled, UNISONO_DEVICE},
    {Code::host_function_failed, UNISONO_HOST},
    {Code::host_declaration, UNISONO_CHECK},
    {Code::host_mistake, UNISONO_MISUSE},
    {Code::internal_error, UNISONO_INTERNAL},
    {Code::compile_failed, UNISONO_INTERNAL},
    {Code::import_not_found, UNISONO_FILE},
    {Code::loop_not_ended, UNISONO_RUNTIME},
}};

UnisonoErrorKind kind_of(Code code) {
  for (const auto& [known, kind] : kinds)
    if (known == code) return kind;
  // U01xx and so on: see diagnostics.def. Of U06xx derivatives come first.
  const std::string_view number = lang::info(code).number;
  switch (number[2]) {
    case '1': return UNISONO_SYNTAX;
    case '5': return UNISONO_RUNTIME;
    case '6': return number >= "U0650" ? UNISONO_FILE : UNISONO_CHECK;
    default: return UNISONO_CHECK;
  }
}

UnisonoSeverity severity_of(lang::Severity severity) {
  switch (severity) {
    case lang::Severity::error: return UNISONO_SEVERITY_ERROR;
    case lang::Severity::warning: return UNISONO_SEVERITY_WARNING;
    case lang::Severity::note: return UNISONO_SEVERITY_NOTE;
    case lang::Severity::performance: return UNISONO_SEVERITY_PERFORMANCE;
  }
  __builtin_unreachable();
}

UnisonoError::Place place_of(const lang::Span& where) {
  UnisonoError::Place place;
  if (!where) return place;
  const auto begin = where.file->place(where.begin);
  const auto end = where.file->place(where.end);
  return {true,     where.file->path(), begin.line,  begin.column,
          end.line, end.column,         where.begin, where.end};
}

UnisonoError::Message message_of(const lang::Diagnostic& d) {
  UnisonoError::Message message;
  message.code = lang::info(d.code).number;
  message.severity = severity_of(d.severity);
  message.text = d.message;
  message.where = place_of(d.where);
  message.label = d.label;
  for (const lang::Note& note : d.notes)
    message.notes.push_back({place_of(note.where), note.text});
  message.facts = d.facts;
  message.help = d.help;
  return message;
}

/// What there is to say without memory for it.
constexpr const char* no_memory_summary = "there is not enough memory";
constexpr const char* no_memory_text = "error: there is not enough memory\n";
constexpr const char* no_memory_json =
    R"({"version": 1, "ok": false, "messages": []})"
    "\n";

UnisonoError* no_memory() noexcept {
  static UnisonoError error{.kind = UNISONO_MEMORY, .is_shared = true};
  return &error;
}

/// A mistake of the host, or of ours, as a message like all others.
std::unique_ptr<UnisonoError> refused_error(const Refused& refused) {
  lang::Diagnostics diagnostics;
  switch (refused.kind) {
    case UNISONO_DEVICE:
      diagnostics.report(Code::device_lost, lang::Span(), refused.message);
      break;
    case UNISONO_MEMORY:
      diagnostics.report(Code::out_of_memory, lang::Span(), refused.message);
      break;
    case UNISONO_LIMIT:
      diagnostics.report(Code::limit_reached, lang::Span(), refused.message);
      break;
    case UNISONO_CANCELLED:
      diagnostics.report(Code::cancelled, lang::Span());
      break;
    case UNISONO_RUNTIME:
      diagnostics.report(Code::check_failed_at_run_time, lang::Span(),
                         refused.message);
      break;
    case UNISONO_INTERNAL:
      diagnostics.report(Code::internal_error, lang::Span(), refused.message)
          .set_help("please report it with the program");
      break;
    case UNISONO_NO_ERROR:
    case UNISONO_SYNTAX:
    case UNISONO_CHECK:
    case UNISONO_FILE:
    case UNISONO_HOST:
    case UNISONO_MISUSE:
    case UNISONO_BUSY:
      diagnostics.report(Code::host_mistake, lang::Span(), refused.message);
      break;
  }
  return make_error(refused.kind, diagnostics);
}

void write_place(const UnisonoError::Place& place, UnisonoPlace* out) {
  *out = {place.known ? place.file.c_str() : nullptr,
          place.line,
          place.column,
          place.end_line,
          place.end_column,
          place.begin,
          place.end};
}

const UnisonoError::Message* message_at(const UnisonoError* error,
                                        size_t index) {
  return error && index < error->messages.size() ? &error->messages[index]
                                                 : nullptr;
}

}  // namespace

UnisonoErrorKind kind_of(const lang::Diagnostics& diagnostics) {
  for (const lang::Diagnostic& d : diagnostics.all())
    if (d.severity == lang::Severity::error) return kind_of(d.code);
  return UNISONO_NO_ERROR;
}

std::unique_ptr<UnisonoError> make_error(UnisonoErrorKind kind,
                                         const lang::Diagnostics& diagnostics) {
  auto error = std::make_unique<UnisonoError>();
  error->kind = kind;
  for (const lang::Diagnostic& d : diagnostics.all())
    error->messages.push_back(message_of(d));
  error->text = lang::render(diagnostics);
  error->coloured = lang::render(diagnostics, {.colour = true});
  error->json = host::to_json(diagnostics);
  return error;
}

UnisonoError* caught_error() noexcept {
  try {
    try {
      throw;
    } catch (Reported& reported) {
      return reported.error.release();
    } catch (const Refused& refused) {
      return refused_error(refused).release();
    } catch (const std::bad_alloc&) {
      return no_memory();
    } catch (const Stopped&) {
      return refused_error({UNISONO_CANCELLED, ""}).release();
    } catch (const std::exception& exception) {
      return refused_error({UNISONO_INTERNAL, exception.what()}).release();
    } catch (...) {
      return refused_error({UNISONO_INTERNAL, "an unknown exception"})
          .release();
    }
  } catch (...) {
    return no_memory();  // for the message
  }
}

}  // namespace unisono::embed

using namespace unisono::embed;

int32_t unisono_error_kind(const UnisonoError* error) {
  return error ? error->kind : UNISONO_NO_ERROR;
}

const char* unisono_error_summary(const UnisonoError* error) {
  if (!error) return "";
  if (error->is_shared) return no_memory_summary;
  for (const UnisonoError::Message& message : error->messages)
    if (message.severity == UNISONO_SEVERITY_ERROR) return message.text.c_str();
  return "";
}

const char* unisono_error_text(const UnisonoError* error, int colour) {
  if (!error) return "";
  if (error->is_shared) return no_memory_text;
  return colour ? error->coloured.c_str() : error->text.c_str();
}

const char* unisono_error_json(const UnisonoError* error) {
  if (!error) return "";
  return error->is_shared ? no_memory_json : error->json.c_str();
}

size_t unisono_error_message_count(const UnisonoError* error) {
  return error ? error->messages.size() : 0;
}

int unisono_error_message(const UnisonoError* error, size_t index,
                          UnisonoMessage* message) {
  const UnisonoError::Message* from = message_at(error, index);
  if (!from || !message) return 0;
  UnisonoMessage all = UNISONO_MESSAGE_INIT;
  all.code = from->code.c_str();
  all.severity = from->severity;
  all.text = from->text.c_str();
  write_place(from->where, &all.where);
  all.label = from->label.c_str();
  all.note_count = from->notes.size();
  all.fact_count = from->facts.size();
  all.help = from->help.c_str();
  write_options(all, message);
  return 1;
}

int unisono_error_note(const UnisonoError* error, size_t message, size_t index,
                       UnisonoPlace* where, const char** text) {
  const UnisonoError::Message* from = message_at(error, message);
  if (!from || index >= from->notes.size()) return 0;
  if (where) write_place(from->notes[index].where, where);
  if (text) *text = from->notes[index].text.c_str();
  return 1;
}

const char* unisono_error_fact(const UnisonoError* error, size_t message,
                               size_t index) {
  const UnisonoError::Message* from = message_at(error, message);
  return from && index < from->facts.size() ? from->facts[index].c_str()
                                            : nullptr;
}

UnisonoError* unisono_error_create(int32_t kind, const char* message,
                                   size_t length) {
  const bool is_known = kind > UNISONO_NO_ERROR && kind <= UNISONO_INTERNAL;
  return guarded([&] {
    refuse(message ? std::string(message, length) : std::string(),
           is_known ? static_cast<UnisonoErrorKind>(kind) : UNISONO_MISUSE);
  });
}

void unisono_error_release(UnisonoError* error) {
  if (error && !error->is_shared) delete error;
}
