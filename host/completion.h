#pragma once
// Texts that are made from the declared command line: the list of options in
// the help, and scripts that tell shells what may follow.
#include <CLI/CLI.hpp>

#include <string>
#include <string_view>

namespace unisono::host {

/// The options of `app` with their descriptions, a paragraph each, 80 columns
/// wide.
std::string option_list(const CLI::App& app);

/// Prints a script for bash, zsh or fish that completes commands, their options
/// and files; 2, and an error, for another shell.
int print_completion(const CLI::App& app, std::string_view shell);

}  // namespace unisono::host
