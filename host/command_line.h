#pragma once
// What is asked of the declared command line by all that is made from it: the
// help, the manual page, the scripts for shells.
#include <CLI/CLI.hpp>

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace unisono::host {

/// A command as it is typed, and what it does, in a few words.
struct UsageLine {
  std::string_view typed, about;
};

/// What the help and the manual page say besides commands and options.
struct CommandLineTexts {
  std::string_view summary;
  std::span<const UsageLine> usage, notes, examples, exit_status, environment;
};

bool takes_value(const CLI::Option& option);
/// Options with names, but that for help, in the order of their declaration.
std::vector<const CLI::Option*> named_options(const CLI::App& app);
/// Arguments without names, in the order in which they stand.
std::vector<const CLI::Option*> positional_options(const CLI::App& app);
/// In the order of their declaration.
std::vector<const CLI::App*> commands_of(const CLI::App& app);
/// The words that the value of an option may be, told by the name of its type:
/// "STAGE", "CODE". None where it is a file, or anything.
std::vector<std::string> choices_of(const CLI::Option& option);

/// `unisono --help`, 80 columns wide.
std::string help_text(const CLI::App& app, const CommandLineTexts& texts);
/// `unisono man`: a page for man(7). `date` is that of the version, as
/// "2026-11-22".
std::string manual_page(const CLI::App& app, const CommandLineTexts& texts,
                        std::string_view version, std::string_view date);

/// A script for bash, zsh or fish that completes commands, their options, what
/// these may be, and files; empty for another shell.
std::string completion_script(const CLI::App& app, std::string_view shell);

}  // namespace unisono::host
