#pragma once
#include <string>
#include <vector>

namespace unisono::host {

/// What the command line asked for; one function below per command. Each
/// returns the exit status: 0, or 1 when the program (or file) had an error.
struct CommandOptions {
  std::string file;     // a path, or "-" for standard input
  std::string devices;  // "cpu:4"; empty is one CPU device
  std::vector<std::string> arguments;
  bool reference = false;  // the reference evaluator only
  bool unchecked = false;
  bool json = false;  // check
  bool format_check = false;
  std::string emit = "ir";  // inspect
  std::string after;        // inspect: the IR after this pass
};

int run_file(const CommandOptions& options);
/// `-e`: prints the value of the last expression.
int run_expression(const CommandOptions& options, const std::string& text);
int check_file(const CommandOptions& options);
int format_files(const std::vector<std::string>& files,
                 const CommandOptions& options);
int explain_code(const std::string& code);
int list_devices(const CommandOptions& options);
int inspect_file(const CommandOptions& options);

}  // namespace unisono::host
