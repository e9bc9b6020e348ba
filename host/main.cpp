// The command line: what `unisono --help` shows, and nothing else.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <string>
#include <vector>

#include "host/commands.h"

namespace {

using unisono::host::CommandOptions;

constexpr const char* footer = R"(examples:
  unisono run train.uni --devices cpu:8     run a program on eight CPU devices
  unisono -e 'sum(arange(10))'              print the value of an expression
  echo 'print(1 + 2)' | unisono -           run standard input
  unisono check train.uni                   find mistakes without running
  unisono fmt *.uni                         format files in place
  unisono explain U0412                     what a message means
  unisono inspect --emit=ir train.uni       the array IR of what is compiled)";

void add_run_options(CLI::App* app, CommandOptions& options) {
  app->add_option("--devices", options.devices,
                  "devices to run on: cpu:N is N CPU devices, 1 to 64");
  app->add_flag("--reference", options.reference,
                "use the reference evaluator instead of compiled code");
  app->add_flag("--unchecked", options.unchecked,
                "no errors for bad indexes and integer division by zero");
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app{
      "Unisono, an array language that plays one program on many devices"};
  app.footer(footer);
  app.set_version_flag("--version", "unisono " UNISONO_VERSION);
  CommandOptions options;
  std::string expression, code;
  std::vector<std::string> files;

  app.add_option("-e", expression, "evaluate an expression and print it");
  add_run_options(&app, options);
  app.add_option("file", options.file, "a program to run; - is standard input");

  auto* run = app.add_subcommand("run", "run a program");
  run->add_option("file", options.file, "the program; - is standard input")
      ->required();
  add_run_options(run, options);
  run->add_option("arguments", options.arguments,
                  "for the program, which sees them as `args()`");

  auto* check = app.add_subcommand("check", "check a program, run nothing");
  check->add_option("file", options.file, "the program")->required();
  check->add_flag("--json", options.json, "messages as JSON");
  add_run_options(check, options);

  auto* format = app.add_subcommand("fmt", "format programs in place");
  format->add_option("files", files, "the programs")->required();
  format->add_flag("--check", options.format_check,
                   "change nothing; fail if a file would change");

  auto* explain = app.add_subcommand("explain", "what a message means");
  explain->add_option("code", code, "its code: U0412")->required();

  auto* devices = app.add_subcommand("devices", "list the devices");
  add_run_options(devices, options);

  auto* inspect = app.add_subcommand("inspect", "show a stage of the compiler");
  inspect->add_option("file", options.file, "the program")->required();
  inspect
      ->add_option("--emit", options.emit,
                   "tokens, ast, types, ir, kernels, llvm or asm")
      ->check(CLI::IsMember(
          {"tokens", "ast", "types", "ir", "kernels", "llvm", "asm"}));
  inspect->add_option("--after", options.after, "the IR after this pass");
  add_run_options(inspect, options);

  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 2;
  }

  using namespace unisono::host;
  if (*run) return run_file(options);
  if (*check) return check_file(options);
  if (*format) return format_files(files, options);
  if (*explain) return explain_code(code);
  if (*devices) return list_devices(options);
  if (*inspect) return inspect_file(options);
  if (app.count("-e")) return run_expression(options, expression);
  if (!options.file.empty()) return run_file(options);
  std::fputs(app.help().c_str(), stderr);
  return 2;
}
