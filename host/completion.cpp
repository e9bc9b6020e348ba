#include "host/completion.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cstdio>
#include <vector>

#include "host/commands.h"
#include "lang/source/utf8.h"

namespace unisono::host {
namespace {

constexpr size_t text_column = 20, columns = 80;

/// A description in lines that begin at `text_column`.
std::string wrapped(std::string_view text) {
  std::string out;
  size_t at = text_column;
  while (!text.empty()) {
    const size_t end = std::min(text.find(' '), text.size());
    if (at > text_column && at + 1 + end > columns) {
      out += '\n' + std::string(text_column, ' ');
      at = text_column;
    } else if (at > text_column) {
      out += ' ';
      ++at;
    }
    out += text.substr(0, end);
    at += end;
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return out;
}

bool takes_value(const CLI::Option& option) {
  return option.get_items_expected_max() > 0;
}

/// Options with names, but that for help.
std::vector<const CLI::Option*> named_options(const CLI::App& app) {
  std::vector<const CLI::Option*> out;
  for (const CLI::Option* option : app.get_options())
    if (!option->get_positional() && option != app.get_help_ptr())
      out.push_back(option);
  return out;
}

std::vector<std::string> names_of(const CLI::App& app) {
  std::vector<std::string> out;
  for (const CLI::Option* option : named_options(app))
    out.push_back(option->get_name());
  out.push_back("--help");
  return out;
}

std::vector<std::string> commands_of(const CLI::App& app) {
  std::vector<std::string> out;
  for (const CLI::App* command : app.get_subcommands({}))
    out.push_back(command->get_name());
  return out;
}

/// Words that a command completes instead of files.
std::string words_of(const CLI::App& command) {
  return command.get_name() == "completion" ? "bash zsh fish" : "";
}

std::string bash(const CLI::App& app) {
  std::string cases;
  for (const CLI::App* command : app.get_subcommands({}))
    cases += fmt::format(
        "    {}) options=\"{}\" words=\"{}\" ;;\n", command->get_name(),
        fmt::join(names_of(*command), " "), words_of(*command));
  return fmt::format(
      R"(# unisono completion bash > /etc/bash_completion.d/unisono
_unisono() {{
  local word=${{COMP_WORDS[COMP_CWORD]}} options words=
  case ${{COMP_WORDS[1]}} in
{}    *) options="{}" ;;
  esac
  if [ "$COMP_CWORD" -eq 1 ]; then options="{}" words="{}"; fi
  COMPREPLY=()
  case $word in
    -*) mapfile -t COMPREPLY < <(compgen -W "$options" -- "$word") ;;
    *) [ -z "$words" ] || mapfile -t COMPREPLY < <(compgen -W "$words" -- "$word") ;;
  esac
}}
complete -o bashdefault -o default -F _unisono unisono
)",
      cases, fmt::join(names_of(app), " "), fmt::join(names_of(app), " "),
      fmt::join(commands_of(app), " "));
}

/// A text between single quotes; `special` are characters that the shell's own
/// table would read as more than themselves.
std::string shell_text(std::string_view text, std::string_view special = "") {
  std::string out;
  for (const char c : text) {
    if (c == '\'') {
      out += "'\\''";
    } else {
      if (special.find(c) != special.npos) out += '\\';
      out += c;
    }
  }
  return out;
}

std::string zsh(const CLI::App& app) {
  auto table = [](const CLI::App& of) {
    std::string out;
    for (const CLI::Option* option : named_options(of))
      out += fmt::format(" '{}[{}]{}'", option->get_name(),
                         shell_text(option->get_description(), "[]:"),
                         takes_value(*option)
                             ? ":" + option->get_type_name() + ":_files"
                             : "");
    return out + " '--help[what it does]'";
  };
  std::string commands, cases;
  for (const CLI::App* command : app.get_subcommands({})) {
    commands += fmt::format(" '{}:{}'", command->get_name(),
                            shell_text(command->get_description(), "[]:"));
    const std::string words = words_of(*command);
    cases += fmt::format("    {}) _arguments{} '*:word:{}' ;;\n",
                         command->get_name(), table(*command),
                         words.empty() ? "_files" : "(" + words + ")");
  }
  return fmt::format(R"(#compdef unisono
# unisono completion zsh > "${{fpath[1]}}/_unisono"
_unisono() {{
  local -a commands=({})
  if (( CURRENT == 2 )) && [[ $words[2] != -* ]]; then
    _describe command commands
    return
  fi
  local command=$words[2]
  if [[ $command == -* ]]; then
    _arguments{} '*:word:_files'
    return
  fi
  words=("${{words[@]:1}}")
  (( CURRENT-- ))
  case $command in
{}  esac
}}
_unisono "$@"
)",
                     commands, table(app), cases);
}

std::string fish(const CLI::App& app) {
  std::string out =
      "# unisono completion fish > ~/.config/fish/completions/unisono.fish\n";
  auto add = [&](const CLI::App& of, const std::string& condition) {
    for (const CLI::Option* option : named_options(of)) {
      const std::string name = option->get_name();
      const bool is_long = name.starts_with("--");
      out += fmt::format("complete -c unisono -n '{}' {} {} -d '{}'{}\n",
                         condition, is_long ? "-l" : "-s",
                         name.substr(is_long ? 2 : 1),
                         shell_text(option->get_description()),
                         takes_value(*option) ? " -r" : "");
    }
  };
  add(app, "__fish_use_subcommand");
  for (const CLI::App* command : app.get_subcommands({})) {
    const std::string& name = command->get_name();
    out += fmt::format(
        "complete -c unisono -f -n __fish_use_subcommand -a {} -d '{}'\n", name,
        shell_text(command->get_description()));
    const std::string condition = "__fish_seen_subcommand_from " + name;
    add(*command, condition);
    if (const std::string words = words_of(*command); !words.empty())
      out += fmt::format("complete -c unisono -f -n '{}' -a '{}'\n", condition,
                         words);
  }
  return out;
}

}  // namespace

std::string option_list(const CLI::App& app) {
  std::string out = "options of run, -, -e and a session:\n";
  for (const CLI::Option* option : app.get_options()) {
    const std::string name = option->get_name();
    if (!name.starts_with("--") || option == app.get_help_ptr() ||
        name == "--version")
      continue;
    std::string head = "  " + name;
    if (takes_value(*option)) head += " " + option->get_type_name();
    head += head.size() < text_column
                ? std::string(text_column - head.size(), ' ')
                : "\n" + std::string(text_column, ' ');
    out += head + wrapped(option->get_description()) + "\n";
  }
  return out;
}

int print_completion(const CLI::App& app, std::string_view shell) {
  std::string script;
  if (shell == "bash") script = bash(app);
  if (shell == "zsh") script = zsh(app);
  if (shell == "fish") script = fish(app);
  if (script.empty())
    return wrong_usage(
        fmt::format("there are scripts for bash, zsh and fish, none for `{}`",
                    lang::visible(shell)));
  std::fputs(script.c_str(), stdout);
  return 0;
}

}  // namespace unisono::host
