#include "host/command_line.h"

#include <fmt/format.h>

#include <cctype>

#include "host/session/inspect.h"
#include "jit/pipeline.h"
#include "lang/source/explain.h"

namespace unisono::host {
namespace {

/// Words in lines of `columns` that begin at column `indent`, where the text
/// stands already; without a line end.
std::string wrapped(std::string_view text, size_t indent, size_t columns = 80) {
  std::string out;
  size_t at = indent;
  while (!text.empty()) {
    const size_t end = std::min(text.find(' '), text.size());
    if (at > indent && at + 1 + end > columns) {
      out += '\n' + std::string(indent, ' ');
      at = indent;
    } else if (at > indent) {
      out += ' ';
      ++at;
    }
    out += text.substr(0, end);
    at += end;
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return out;
}

/// A head, and a text beside it that begins at `column`, below it if the head
/// is long.
std::string row(std::string head, std::string_view text, size_t column) {
  if (text.empty()) return head + "\n";
  head += head.size() < column ? std::string(column - head.size(), ' ')
                               : "\n" + std::string(column, ' ');
  return head + wrapped(text, column) + "\n";
}

std::string option_head(const CLI::Option& option) {
  return option.get_name() +
         (takes_value(option) ? " " + option.get_type_name() : "");
}

std::string option_rows(const std::vector<const CLI::Option*>& options) {
  std::string out;
  for (const CLI::Option* option : options)
    out += row("  " + option_head(*option), option->get_description(), 20);
  return out;
}

std::string usage_rows(std::span<const UsageLine> lines, size_t column) {
  std::string out;
  for (const UsageLine& line : lines)
    out += row(fmt::format("  {}", line.typed), line.about, column);
  return out;
}

/// The options of the program itself but `-e` and `--version`, which the usage
/// shows.
std::vector<const CLI::Option*> run_options(const CLI::App& app) {
  std::vector<const CLI::Option*> out = named_options(app);
  std::erase_if(out, [](const CLI::Option* option) {
    const std::string name = option->get_name();
    return !name.starts_with("--") || name == "--version";
  });
  return out;
}

/// "unisono run [OPTION ...] [file] [arguments ...]"
std::string synopsis(const CLI::App& command) {
  std::string out = "unisono " + command.get_name();
  if (!named_options(command).empty()) out += " [OPTION ...]";
  for (const CLI::Option* option : positional_options(command)) {
    const bool many = option->get_items_expected_max() > 1;
    const std::string name = option->get_name() + (many ? " ..." : "");
    out += option->get_required() ? " " + name : " [" + name + "]";
  }
  return out;
}

/// What `unisono COMMAND --help` prints.
std::string command_help(const CLI::App& command) {
  std::string out = fmt::format("{}\n\nusage: {}\n", command.get_description(),
                                synopsis(command));
  const auto positional = positional_options(command);
  if (!positional.empty()) out += "\n";
  for (const CLI::Option* option : positional)
    out += row("  " + option->get_name(), option->get_description(), 20);
  const auto named = named_options(command);
  if (!named.empty()) out += "\noptions:\n";
  return out + option_rows(named);
}

// ---- the manual page

/// Text as roff: what it would take for a request, an escape or a hyphen is
/// none.
std::string roff(std::string_view text) {
  std::string out;
  if (text.starts_with('.') || text.starts_with('\'')) out = "\\&";
  for (const char c : text)
    if (c == '\\')
      out += "\\e";
    else if (c == '-')
      out += "\\-";
    else if (c == '`' || c == '\'')  // as in `code`
      out += "\\(aq";
    else if (c == '^' || c == '~')
      out += c == '^' ? "\\(ha" : "\\(ti";
    else
      out += c;
  return out;
}

/// Lines of roff, broken between words; none begins like a request.
std::string paragraph(std::string_view text) {
  std::string out, lines = wrapped(text, 0, 70);
  std::string_view rest = lines;
  while (!rest.empty()) {
    const size_t end = std::min(rest.find('\n'), rest.size());
    out += roff(rest.substr(0, end)) + "\n";
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  return out;
}

std::string tagged(std::string_view tag, std::string_view text) {
  return fmt::format(".TP\n{}\n{}", tag, paragraph(text));
}

/// "\fB--devices\fR \fIDEVICES\fR"
std::string option_tag(const CLI::Option& option) {
  std::string out = "\\fB" + roff(option.get_name()) + "\\fR";
  if (takes_value(option))
    out += " \\fI" + roff(option.get_type_name()) + "\\fR";
  return out;
}

std::string usage_section(std::string_view title,
                          std::span<const UsageLine> lines) {
  std::string out = fmt::format(".SH {}\n", title);
  for (const UsageLine& line : lines)
    out += tagged("\\fB" + roff(line.typed) + "\\fR", line.about);
  return out;
}

/// A command, and of its options those that the program itself has not.
std::string command_section(const CLI::App& app, const CLI::App& command) {
  std::string out = fmt::format(".SS {}\n{}", roff(synopsis(command)),
                                paragraph(command.get_description() + "."));
  for (const CLI::Option* option : positional_options(command))
    out += tagged("\\fI" + roff(option->get_name()) + "\\fR",
                  option->get_description());
  std::string others;
  for (const CLI::Option* option : named_options(command)) {
    const CLI::Option* same = app.get_option_no_throw(option->get_name());
    if (same && same->get_description() == option->get_description())
      others += (others.empty() ? "" : ", ") + option->get_name();
    else
      out += tagged(option_tag(*option), option->get_description());
  }
  if (!others.empty())
    out += ".PP\n" + paragraph("Also " + others + ": see OPTIONS.");
  return out;
}

}  // namespace

bool takes_value(const CLI::Option& option) {
  return option.get_items_expected_max() > 0;
}

std::vector<const CLI::Option*> named_options(const CLI::App& app) {
  std::vector<const CLI::Option*> out;
  for (const CLI::Option* option : app.get_options())
    if (!option->get_positional() && option != app.get_help_ptr())
      out.push_back(option);
  return out;
}

std::vector<const CLI::Option*> positional_options(const CLI::App& app) {
  std::vector<const CLI::Option*> out;
  for (const CLI::Option* option : app.get_options())
    if (option->get_positional()) out.push_back(option);
  return out;
}

std::vector<const CLI::App*> commands_of(const CLI::App& app) {
  return app.get_subcommands({});
}

std::vector<std::string> choices_of(const CLI::Option& option) {
  const std::string type = option.get_type_name();
  std::vector<std::string> out;
  if (type == "SHELL") return {"bash", "zsh", "fish"};
  if (type == "STAGE")
    for (const std::string_view name : stage_names()) out.emplace_back(name);
  if (type == "PASS")
    for (const std::string_view name : jit::pass_names())
      out.emplace_back(name);
  if (type == "CODE")
    for (const lang::ErrorPage& page : lang::error_pages())
      out.emplace_back(page.code);
  return out;
}

std::string help_text(const CLI::App& app, const CommandLineTexts& texts) {
  if (app.get_parent()) return command_help(app);
  std::string out = fmt::format("Unisono, {}\n\nusage:\n{}\n", texts.summary,
                                usage_rows(texts.usage, 54));
  for (const UsageLine& note : texts.notes)
    out += wrapped(note.about, 0) + "\n";
  out += "\noptions of run, -, -e and a session:\n" +
         option_rows(run_options(app)) + "\nexamples:\n" +
         usage_rows(texts.examples, 42) + "\n";
  std::string status;
  for (const UsageLine& line : texts.exit_status)
    status += fmt::format("{}{} {}", status.empty() ? "" : "; ", line.typed,
                          line.about);
  return out + wrapped("exit status: " + status, 0) + "\n";
}

std::string manual_page(const CLI::App& app, const CommandLineTexts& texts,
                        std::string_view version, std::string_view date) {
  std::string out = fmt::format(
      ".\\\" Made by `unisono man` from the declared command line.\n"
      ".TH UNISONO 1 {} \"unisono {}\" \"User Commands\"\n"
      ".SH NAME\nunisono \\- {}\n.SH SYNOPSIS\n",
      date, version, roff(texts.summary));
  for (const UsageLine& line : texts.usage)
    out += (&line == texts.usage.data() ? ".B " : ".br\n.B ") +
           roff(line.typed) + "\n";
  out += ".SH DESCRIPTION\n";
  for (const UsageLine& note : texts.notes)
    out += (&note == texts.notes.data() ? "" : ".PP\n") + paragraph(note.about);
  out += ".SH COMMANDS\n";
  for (const CLI::App* command : commands_of(app))
    out += command_section(app, *command);
  out += ".SH OPTIONS\nOf run, -, -e and a session:\n";
  for (const CLI::Option* option : named_options(app))
    out += tagged(option_tag(*option), option->get_description());
  out += usage_section("EXIT STATUS", texts.exit_status);
  out += usage_section("ENVIRONMENT", texts.environment);
  return out + usage_section("EXAMPLES", texts.examples);
}

}  // namespace unisono::host
