#include "host/commands.h"

#include <fmt/format.h>
#include <unistd.h>

#include <charconv>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <optional>
#include <string_view>
#include <thread>
#include <utility>

#include "host/inspect.h"
#include "host/read_file.h"
#include "host/session.h"
#include "lang/explain.h"
#include "lang/format.h"
#include "lang/parser.h"

namespace unisono::host {
namespace {

constexpr int usage_error = 2;
constexpr int max_devices = 64;

void print_error(std::string_view message) {
  std::fflush(stdout);
  fmt::print(stderr, "error: {}\n", message);
}

void write_output(std::string_view text) {
  std::fwrite(text.data(), 1, text.size(), stdout);
}

/// Messages go to standard error, after all output that came before.
void show(const lang::Diagnostics& diagnostics) {
  std::fflush(stdout);
  const bool colour = isatty(STDERR_FILENO) != 0;
  const std::string text = lang::render(diagnostics, {colour});
  std::fwrite(text.data(), 1, text.size(), stderr);
}

/// The number of CPU devices that a `--devices` text means: 4 for "cpu:4".
/// Nothing if it is malformed; then a message was printed.
std::optional<int> parse_devices(const std::string& text) {
  if (text.empty()) return 1;
  int count = 0;
  constexpr std::string_view prefix = "cpu:";
  const char* end = text.data() + text.size();
  if (text.starts_with(prefix)) {
    const auto [stop, problem] =
        std::from_chars(text.data() + prefix.size(), end, count);
    if (problem == std::errc() && stop == end && count >= 1 &&
        count <= max_devices) {
      return count;
    }
  }
  print_error(fmt::format(
      "--devices expects cpu:N with N from 1 to {}, such as cpu:8; got `{}`",
      max_devices, text));
  return std::nullopt;
}

/// Opens a session for the options' devices, reads the file, and gives both
/// to `body`; its result decides the exit status after the messages.
template <class Body>
int with_program(const CommandOptions& options, Body body) {
  const std::optional<int> devices = parse_devices(options.devices);
  if (!devices) return usage_error;
  Result<std::string> text = read_text(options.file);
  if (!text) {
    print_error(text.error().message);
    return 1;
  }
  SessionOptions session_options;
  session_options.cpu_devices = *devices;
  session_options.reference_only = options.reference;
  session_options.checked = !options.unchecked;
  session_options.arguments = options.arguments;
  session_options.output = write_output;
  Session session(std::move(session_options));
  const std::string name = options.file == "-" ? "<stdin>" : options.file;
  const bool ok = body(session, name, std::move(*text));
  if (!options.json) show(session.diagnostics());
  return ok && !session.diagnostics().has_errors() ? 0 : 1;
}

nlohmann::json to_json(lang::Span where) {
  if (!where) return nullptr;
  const auto begin = where.file->place(where.begin);
  const auto end = where.file->place(where.end);
  return {{"file", where.file->path()},
          {"line", begin.line},
          {"column", begin.column},
          {"end_line", end.line},
          {"end_column", end.column}};
}

nlohmann::json to_json(const lang::Diagnostic& d) {
  nlohmann::json notes = nlohmann::json::array();
  for (const lang::Note& note : d.notes) {
    notes.push_back({{"where", to_json(note.where)}, {"text", note.text}});
  }
  return {{"code", lang::info(d.code).number},
          {"severity", lang::name(d.severity)},
          {"message", d.message},
          {"where", to_json(d.where)},
          {"label", d.label},
          {"notes", notes},
          {"facts", d.facts},
          {"help", d.help}};
}

/// Formats one file; false if it has errors, cannot be written, or (with
/// `--check`) is not formatted.
bool format_file(const std::string& path, bool check_only) {
  const Result<std::string> text = read_text(path);
  if (!text) {
    print_error(text.error().message);
    return false;
  }
  lang::SourceMap sources;
  lang::Diagnostics diagnostics;
  const lang::SourceFile& file = sources.add(path, *text);
  const lang::ParseResult parsed = lang::parse(file, diagnostics);
  if (!parsed.ok) {
    show(diagnostics);
    return false;
  }
  const std::string formatted = lang::format(*parsed.program);
  if (path == "-") {
    write_output(formatted);
    return true;
  }
  if (formatted == *text) return true;
  if (check_only) {
    fmt::print("{}: not formatted; run `unisono fmt {}`\n", path, path);
    return false;
  }
  const Status written = replace_file(path, formatted);
  if (!written) print_error(written.error().message);
  return static_cast<bool>(written);
}

}  // namespace

int run_file(const CommandOptions& options) {
  return with_program(options,
                      [](Session& session, std::string name, std::string text) {
                        const lang::Program* program =
                            session.check(std::move(name), std::move(text));
                        return program && session.run(*program);
                      });
}

int run_expression(const CommandOptions& options, const std::string& text) {
  CommandOptions nothing = options;
  nothing.file = "/dev/null";
  return with_program(nothing, [&](Session& session, std::string, std::string) {
    const lang::Program* program = session.check("<expression>", text);
    return program && session.run_and_print(*program);
  });
}

int check_file(const CommandOptions& options) {
  return with_program(options, [&](Session& session, std::string name,
                                   std::string text) {
    const bool ok = session.check(std::move(name), std::move(text)) != nullptr;
    if (options.json) {
      nlohmann::json all = nlohmann::json::array();
      for (const lang::Diagnostic& d : session.diagnostics().all()) {
        all.push_back(to_json(d));
      }
      fmt::print("{}\n", all.dump(2));
    }
    return ok;
  });
}

int format_files(const std::vector<std::string>& files,
                 const CommandOptions& options) {
  bool ok = true;
  for (const std::string& path : files) {
    ok = format_file(path, options.format_check) && ok;
  }
  return ok ? 0 : 1;
}

int explain_code(const std::string& code) {
  const auto page = lang::explain(code);
  if (!page) {
    print_error(
        fmt::format("there is no message `{}`; codes look like U0412", code));
    return usage_error;
  }
  write_output(*page);
  return 0;
}

int list_devices(const CommandOptions& options) {
  const std::optional<int> count = parse_devices(options.devices);
  if (!count) return usage_error;
  const Runtime runtime(*count);
  for (const Device* device : runtime.devices()) {
    fmt::print("{}\n", device->name());
  }
  fmt::print("{} processors; --devices cpu:N gives N CPU devices, 1 to {}\n",
             std::thread::hardware_concurrency(), max_devices);
  return 0;
}

int inspect_file(const CommandOptions& options) {
  return with_program(
      options, [&](Session& session, std::string name, std::string text) {
        return inspect(session, std::move(name), std::move(text), options.emit,
                       options.after, write_output);
      });
}

}  // namespace unisono::host
