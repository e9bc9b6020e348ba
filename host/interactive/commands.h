#pragma once
// Inputs that begin with a colon.
#include <string>
#include <string_view>
#include <vector>

#include "host/interactive/shell.h"

namespace unisono::host {

/// What may follow a command.
enum class CommandArgument { nothing, names, paths, devices, codes, settings };

struct Command {
  std::string_view name, argument, help;
  CommandArgument completed_by;
  void (*function)(InteractiveShell& shell, std::string_view argument);
};
/// All rows of commands.def.
const std::vector<Command>& commands();

/// ":type x": finds the command, which may be shortened, and does it.
void run_command(InteractiveShell& shell, std::string_view text);

/// Names of what `:set` changes.
std::vector<std::string> setting_names();

}  // namespace unisono::host
