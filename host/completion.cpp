// Scripts that tell shells what may follow.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <set>
#include <vector>

#include "host/command_line.h"

namespace unisono::host {
namespace {

std::vector<std::string> names_of(const CLI::App& app) {
  std::vector<std::string> out;
  for (const CLI::Option* option : named_options(app))
    out.push_back(option->get_name());
  out.push_back("--help");
  return out;
}

/// Words that a command completes instead of files.
std::string words_of(const CLI::App& command) {
  std::vector<std::string> out;
  for (const CLI::Option* option : positional_options(command))
    for (std::string& word : choices_of(*option))
      out.push_back(std::move(word));
  return fmt::format("{}", fmt::join(out, " "));
}

/// Branches of a `case` over the word before: what the values of options are.
std::string bash_values(const CLI::App& app) {
  std::string out;
  std::set<std::string> done;  // an option is the same in all commands
  for (const CLI::App* command : commands_of(app))
    for (const CLI::Option* option : named_options(*command)) {
      const std::vector<std::string> words = choices_of(*option);
      if (words.empty() || !done.insert(option->get_name()).second) continue;
      out += fmt::format("    {}) words=\"{}\" ;;\n", option->get_name(),
                         fmt::join(words, " "));
    }
  return out;
}

std::string bash(const CLI::App& app) {
  std::string cases, commands;
  for (const CLI::App* command : commands_of(app)) {
    cases += fmt::format(
        "    {}) options=\"{}\" words=\"{}\" ;;\n", command->get_name(),
        fmt::join(names_of(*command), " "), words_of(*command));
    commands += " " + command->get_name();
  }
  // bash makes a word of the `=` in `--emit=ir`.
  return fmt::format(
      R"(# unisono completion bash > /etc/bash_completion.d/unisono
_unisono() {{
  local word=${{COMP_WORDS[COMP_CWORD]}} before=${{COMP_WORDS[COMP_CWORD-1]}} options words=
  case ${{COMP_WORDS[1]}} in
{}    *) options="{}" ;;
  esac
  if [ "$COMP_CWORD" -eq 1 ]; then words="{}"; fi
  if [ "$word" = = ]; then word=
  elif [ "$before" = = ]; then before=${{COMP_WORDS[COMP_CWORD-2]}}; fi
  case $before in
{}  esac
  COMPREPLY=()
  case $word in
    -*) mapfile -t COMPREPLY < <(compgen -W "$options" -- "$word") ;;
    *) [ -z "$words" ] || mapfile -t COMPREPLY < <(compgen -W "$words" -- "$word") ;;
  esac
}}
complete -o bashdefault -o default -F _unisono unisono
)",
      cases, fmt::join(names_of(app), " "), commands.substr(1),
      bash_values(app));
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

/// What stands behind an option: "=[about]:STAGE:(tokens ast)".
std::string zsh_value(const CLI::Option& option) {
  const std::string about =
      "[" + shell_text(option.get_description(), "[]:") + "]";
  if (!takes_value(option)) return about;
  const std::vector<std::string> words = choices_of(option);
  const bool is_long = option.get_name().starts_with("--");
  return fmt::format(
      "{}{}:{}:{}", is_long ? "=" : "", about, option.get_type_name(),
      words.empty() ? "_files" : fmt::format("({})", fmt::join(words, " ")));
}

std::string zsh(const CLI::App& app) {
  auto table = [](const CLI::App& of) {
    std::string out;
    for (const CLI::Option* option : named_options(of))
      out += fmt::format(" '{}{}'", option->get_name(), zsh_value(*option));
    return out + " '--help[what it does]'";
  };
  std::string commands, cases;
  for (const CLI::App* command : commands_of(app)) {
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
      const std::vector<std::string> words = choices_of(*option);
      std::string value = takes_value(*option) ? " -r" : "";
      if (!words.empty())
        value = fmt::format(" -x -a '{}'", fmt::join(words, " "));
      out += fmt::format("complete -c unisono -n '{}' {} {} -d '{}'{}\n",
                         condition, is_long ? "-l" : "-s",
                         name.substr(is_long ? 2 : 1),
                         shell_text(option->get_description()), value);
    }
  };
  add(app, "__fish_use_subcommand");
  for (const CLI::App* command : commands_of(app)) {
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

std::string completion_script(const CLI::App& app, std::string_view shell) {
  if (shell == "bash") return bash(app);
  if (shell == "zsh") return zsh(app);
  if (shell == "fish") return fish(app);
  return "";
}

}  // namespace unisono::host
