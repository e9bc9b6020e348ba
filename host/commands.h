#pragma once
// The commands of the command line.
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "host/interactive/shell.h"
#include "host/output.h"

namespace unisono::host {

/// What the command line asked for. Each command is one function below, which
/// returns the exit status: 0; 1 when the program (or file) has or gets an
/// error, or standard output cannot be written; 130 when it was stopped; or
/// `usage_error`.
struct CommandOptions {
  std::string file;  // a path, or "-" for standard input
  std::string devices = "cpu:1";
  std::vector<std::string> arguments;
  /// There was a `--`: `check` knows the program's arguments.
  bool arguments_given = false;
  bool reference = false;  // the reference evaluator only
  bool unchecked = false;
  bool no_cublas = false;
  bool no_cache = false;
  std::string watchdog = "60";  // seconds
  bool quiet = false;           // no performance notes
  bool no_progress = false;
  bool stats = false;
  bool explain_speed = false;
  std::optional<std::string> trace;  // a file
  bool profile_kernels = false;
  bool all_output = false;  // of all processes, not of the first alone
  bool json = false;        // check
  bool format_check = false;
  std::string emit = "ir";            // inspect
  std::optional<std::string> after;   // inspect: the IR after this pass
  std::optional<std::string> target;  // inspect: "sm_90"
  bool run = false;                   // inspect: really run the program
  std::vector<std::string> shapes;    // inspect: "x=f32[4, 4]", "f.x=f32[4]"
  std::optional<std::string> graph;   // inspect: a number or a function
  std::optional<std::string> folder;  // inspect: for files
  bool compile_only = false;          // see lang::Machine
  std::optional<std::string> memory_limit;  // 20G, 75%
  /// In common with other sessions (main.h); null: each has one of its own.
  std::shared_ptr<jit::Compiler> compiler = nullptr;
};

/// What a shell is opened with, for who shows one.
ShellOptions shell_options(const CommandOptions& options);

int run_file(const CommandOptions& options);
/// A session on the terminal that is standard input.
int run_session(const CommandOptions& options, std::string_view version);
/// `-e`: prints the value of the last expression.
int run_expression(const CommandOptions& options, const std::string& text);
int check_file(const CommandOptions& options);
struct TestOptions;  // testing/test_command.h
int test_files(const CommandOptions& options, const TestOptions& tests);
struct BenchOptions;  // testing/bench_command.h
/// `seconds` is BenchOptions::seconds as it was typed.
int bench_files(const CommandOptions& options, BenchOptions benches,
                const std::string& seconds);
/// Formats each file in place, "-" from standard input to standard output.
int format_files(const std::vector<std::string>& files,
                 const CommandOptions& options);
int explain_code(const std::string& code);
struct ManualOptions;  // manual/manual.h
int make_manual(const ManualOptions& options, std::string_view version);
int list_devices(const CommandOptions& options);
int inspect_file(const CommandOptions& options);
/// The Language Server Protocol on standard input and output.
int serve_editor(const CommandOptions& options);

}  // namespace unisono::host
