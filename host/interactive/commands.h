#pragma once
// Inputs that begin with a colon.
#include <string>
#include <string_view>
#include <vector>

#include "host/interactive/shell.h"

namespace unisono::host {

/// What may follow a command, on its line; `input` and `path_and_input` end
/// with the text.
enum class CommandArgument {
  nothing,
  name,
  input,
  path,
  path_and_input,
  devices,
  code,
  setting,
};

struct Command {
  std::string_view name, argument, help;
  CommandArgument followed_by;
  void (*function)(InteractiveShell& shell, std::string_view argument);
};
/// All rows of commands.def.
const std::vector<Command>& commands();

/// ":type x": finds the command, which may be shortened, and does it.
void run_command(InteractiveShell& shell, std::string_view text);

/// The text behind the command that `text` begins with; empty if that takes
/// all.
std::string_view after_command(std::string_view text);

/// What to write for a `%magic` or `!command` of IPython, with which `text`
/// begins: one line without its end.
std::string help_on_magic(std::string_view text);

/// Names of what `:set` changes.
std::vector<std::string> setting_names();

}  // namespace unisono::host
