// The command line: what `unisono --help` and `unisono man` show, and nothing
// else.
#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>

#include <algorithm>
#include <cstdio>
#include <exception>
#include <memory>
#include <new>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "host/command_line.h"
#include "host/commands.h"
#include "host/jupyter_install.h"
#include "host/launch.h"
#include "host/main.h"
#include "host/manual/manual.h"
#include "host/process.h"
#include "host/session/processes.h"
#include "host/testing/bench_command.h"
#include "host/testing/test_command.h"
#include "lang/source/utf8.h"
#include "runtime/tuning/tuning.h"

namespace {

using namespace unisono::host;

constexpr UsageLine usage[] = {
    {"unisono [run] FILE [--devices cpu:N] [ARGUMENT ...]", "run a program"},
    {"unisono -e 'EXPRESSION' [-- ARGUMENT ...]", "print a value"},
    {"unisono -", "run standard input"},
    {"unisono launch -n N FILE [--devices cpu:N] [ARGUMENT ...]",
     "run it in N processes of this machine"},
    {"unisono [--devices cpu:N]", "a session on a terminal"},
    {"unisono check FILE [--json] [-- ARGUMENT ...]",
     "find mistakes, run nothing"},
    {"unisono test [FILE ...]", "run tests and examples"},
    {"unisono bench [FILE ...]", "measure `bench` blocks"},
    {"unisono fmt [--check] FILE ...", "format in place"},
    {"unisono explain CODE", "what a message means"},
    {"unisono doc [FILE ...] [--out FOLDER]", "a manual, as web pages"},
    {"unisono devices [--devices cpu:N]", "list the devices"},
    {"unisono inspect --emit=STAGE FILE", "what the compiler makes"},
    {"unisono lsp [--devices cpu:N]", "serve an editor"},
    {"unisono jupyter install [--user|--prefix FOLDER]", "Jupyter's kernel"},
    {"unisono completion SHELL", "what a shell completes"},
    {"unisono man", "the manual page"},
    {"unisono --version, unisono --help, unisono COMMAND --help", ""},
};
constexpr UsageLine notes[] = {
    {"",
     "FILE may be - for standard input. A session needs a terminal; "
     "without one, standard input is run. `:help` helps in it."},
};
constexpr UsageLine examples[] = {
    {"unisono run train.uni --devices cpu:8",
     "run a program on eight CPU devices"},
    {"unisono run train.uni data.npy -- -v",
     "the program's args() are data.npy, -v"},
    {"unisono -e 'sum(arange(10))'", "print the value of an expression"},
    {"echo 'print(1 + 2)' | unisono -", "run standard input"},
    {"unisono check train.uni", "find mistakes without running"},
    {"unisono test lib --filter scale", "tests of a folder, some of them"},
    {"unisono bench f.uni --compare old.json",
     "how long f's `bench` blocks take now"},
    {"unisono fmt *.uni", "format files in place"},
    {"unisono explain U0412", "what a message means"},
    {"unisono inspect --emit=ir train.uni", "the array IR of what is compiled"},
    {"unisono inspect --emit=ptx --shape 'x=f32[64, 64]' f.uni",
     "the code of f for these"},
};
constexpr UsageLine exit_status[] = {
    {"0", "when all went well"},
    {"1", "when the program has or gets an error"},
    {"2", "when the command line is wrong"},
    {"130", "when Ctrl-C stopped it"},
};
constexpr UsageLine environment[] = {
    {"NO_COLOR", "If it is set and not empty, nothing is in colour."},
    {"UNISONO_HISTORY",
     "The file for what was typed in sessions, or off. Without it, "
     "unisono/history in XDG_STATE_HOME or ~/.local/state."},
    {"UNISONO_CACHE",
     "The folder for kernels that were compiled, or off. "
     "Without it, unisono in XDG_CACHE_HOME or ~/.cache."},
    {"UNISONO_CUDA_DRIVER", "The CUDA driver in place of the system's."},
    {"UNISONO_CUBLASLT", "The cuBLASLt in place of the system's."},
};
constexpr CommandLineTexts texts = {
    .summary = "an array language that plays one program on many devices",
    .usage = usage,
    .notes = notes,
    .examples = examples,
    .exit_status = exit_status,
    .environment = environment,
};

/// What one parse of the command line fills.
struct CommandLine {
  CLI::App app{"", "unisono"};
  CommandOptions options;
  TestOptions tests;
  JupyterOptions kernel;
  ManualOptions manual;
  BenchOptions benches;
  std::string bench_seconds = "5";
  std::string expression, code, shell, jupyter_action;
  std::vector<std::string> files, words;
  std::string commit;
  bool stdio = false;  // of lsp
  /// What stood behind `--`: for the program; nothing where there was no `--`.
  std::optional<std::vector<std::string>> after_dashes;
  CLI::App* run = nullptr;
  CLI::App* check = nullptr;
  CLI::App* test = nullptr;
  CLI::App* bench = nullptr;
  CLI::App* format = nullptr;
  CLI::App* explain = nullptr;
  CLI::App* devices = nullptr;
  CLI::App* inspect = nullptr;
  CLI::App* lsp = nullptr;
  CLI::App* jupyter = nullptr;
  CLI::App* completion = nullptr;
  CLI::App* man = nullptr;
  CLI::App* doc = nullptr;
  CLI::App* launch = nullptr;
  int processes = 2;

  bool has_expression() const {
    return evaluate->count() > 0 || run_evaluate->count() > 0;
  }
  CLI::Option* evaluate = nullptr;
  CLI::Option* run_evaluate = nullptr;
};

void add_devices(CLI::App* app, CommandOptions& options) {
  app->add_option("--devices", options.devices,
                  "cpu:N is N CPU devices, 1 to 64, on any machine (without "
                  "it, one); cuda all GPUs; cuda:0,cuda:1 two, cuda:0,cuda:0 "
                  "two on one; sim:N simulated GPUs, slow, on any machine")
      ->take_last()
      ->type_name("DEVICES");
}

void add_run_options(CLI::App* app, CommandOptions& options) {
  add_devices(app, options);
  app->add_flag("--reference", options.reference,
                "the reference evaluator alone: slow, without generated code");
  app->add_flag("--unchecked", options.unchecked,
                "no errors for bad indexes and integer division by zero");
  app->add_flag("--no-cublas", options.no_cublas,
                "large products on GPUs by kernels of our own, not by cuBLAS");
  app->add_flag(
      "--no-cache", options.no_cache,
      "neither look for compiled kernels on disk nor keep them there");
  app->add_flag("--quiet", options.quiet,
                "no notes about what is slower than it looks");
  app->add_flag("--stats", options.stats,
                "afterwards, what each device did, as a table");
  app->add_flag("--explain-speed", options.explain_speed,
                "afterwards, where time went, by line, and why");
  app->add_flag("--no-progress", options.no_progress,
                "no line on the terminal about loops that take over 2 s");
  app->add_option("--trace", options.trace,
                  "write what each device did, for chrome://tracing")
      ->take_last()
      ->type_name("FILE");
  app->add_flag("--profile-kernels", options.profile_kernels,
                "name kernels for perf, in /tmp/perf-PID.map, and for GDB; and "
                "lines in code for GPUs, for NVIDIA's tools");
  app->add_flag("--all-output", options.all_output,
                "of several processes, lines of each, with its number");
  app->add_option("--memory-limit", options.memory_limit,
                  "devices allocate no more than SIZE: 20G, 512M or 75%, of "
                  "each GPU or of all CPU devices together")
      ->take_last()
      ->type_name("SIZE");
  app->add_option("--watchdog", options.watchdog,
                  "devices wait SECONDS for one that does not arrive: 60; "
                  "0 is for ever")
      ->take_last()
      ->type_name("SECONDS");
}

void add_inspect(CommandLine& line) {
  CLI::App* inspect =
      line.app.add_subcommand("inspect", "show a stage of the compiler");
  line.inspect = inspect;
  inspect->add_option("file", line.options.file,
                      "the program; - is standard input");
  inspect
      ->add_option("--emit", line.options.emit,
                   "tokens, ast, types, ir, kernels, llvm, asm, nvvm or ptx")
      ->type_name("STAGE");
  inspect
      ->add_option("--target", line.options.target,
                   "the GPU that kernels, nvvm and ptx are for: "
                   "sm_75 ... sm_90")
      ->type_name("GPU");
  inspect
      ->add_option("--after", line.options.after,
                   "the IR after this pass: trace, vmap, join, spmd, pull, "
                   "simplify, fold, results, cse, captures or narrow")
      ->type_name("PASS");
  inspect
      ->add_option(
          "--shape", line.options.shapes,
          "a parameter's type: x=f32[4096, 4096], or f.x=... of one function")
      ->allow_extra_args(false)
      ->type_name("NAME=TYPE");
  inspect->add_flag("--run", line.options.run,
                    "really run the program, and show what it compiles");
  inspect
      ->add_option("--graph", line.options.graph,
                   "of several graphs one: its number, or a function")
      ->type_name("GRAPH");
  inspect
      ->add_option("--out", line.options.folder,
                   "a folder, for a file of each graph")
      ->type_name("FOLDER");
  add_devices(inspect, line.options);
  inspect->add_flag("--unchecked", line.options.unchecked,
                    "code without checks of indexes and divisors");
}

void add_bench(CommandLine& line) {
  line.bench =
      line.app.add_subcommand("bench", "measure `bench` blocks of programs");
  line.bench->add_option("files", line.benches.paths,
                         "programs (.uni), and folders of them; without one, "
                         "the folder one is in");
  line.bench
      ->add_option("--filter", line.benches.filter,
                   "only blocks with TEXT in FILE: NAME")
      ->take_last()
      ->type_name("TEXT");
  line.bench
      ->add_option("--json", line.benches.json, "write the results as JSON")
      ->take_last()
      ->type_name("FILE");
  line.bench
      ->add_option("--compare", line.benches.compare,
                   "show what changed since a run that wrote FILE by --json")
      ->take_last()
      ->type_name("FILE");
  line.bench
      ->add_option("--seconds", line.bench_seconds,
                   "a block is measured until its mean is stable, but not "
                   "longer than this: 5")
      ->take_last()
      ->type_name("SECONDS");
  line.bench->add_flag("!--no-peak", line.benches.peak,
                       "do not measure what the machine can do at best");
  add_devices(line.bench, line.options);
  line.bench->add_flag("--unchecked", line.options.unchecked,
                       "no errors for bad indexes and division by zero");
  line.bench->add_flag("--no-cublas", line.options.no_cublas,
                       "large products on GPUs by kernels of our own");
  line.bench->add_flag("--quiet", line.options.quiet,
                       "no notes about what is slower than it looks");
}

/// What is printed when the command line does not fit what was declared.
std::string failure_message(const CLI::App* app, const CLI::Error& error) {
  std::string command = "unisono";
  std::string_view hint;
  const bool unexpected = dynamic_cast<const CLI::ExtrasError*>(&error);
  for (const CLI::App* chosen : app->get_subcommands()) {
    command += " " + chosen->get_name();
    if (!unexpected) continue;
    if (chosen->get_name() == "run")
      hint =
          std::string_view(error.what()).ends_with(" -n")
              ? "several processes are started by `unisono launch -n N FILE`, "
                "or by `mpirun -n N unisono run FILE`; "
              : "what is for the program and starts with - stands after --; ";
    if (chosen->get_name() == "check" || chosen->get_name() == "inspect")
      hint = "it takes one file, what is for the program stands after --; ";
  }
  return fmt::format("error: {}\n{}see `{} --help`\n",
                     unisono::lang::visible(error.what()), hint, command);
}

void add_jupyter(CommandLine& line) {
  line.jupyter = line.app.add_subcommand(
      "jupyter", "notebooks: tell Jupyter of the kernel");
  line.jupyter->add_option("action", line.jupyter_action, "install")
      ->required()
      ->check(CLI::IsMember({"install"}));
  line.jupyter->add_flag("--user", line.kernel.user,
                         "for this user, as without it");
  line.jupyter
      ->add_option("--prefix", line.kernel.prefix,
                   "for all of /usr/local, or of a virtual environment: below "
                   "FOLDER/share/jupyter")
      ->take_last()
      ->type_name("FOLDER");
  line.jupyter
      ->add_option("--name", line.kernel.name,
                   "another than `unisono`, beside it")
      ->take_last()
      ->type_name("NAME");
  line.jupyter
      ->add_option("--devices", line.kernel.devices,
                   "what it opens, if not cpu:1; `:devices` opens others later")
      ->take_last()
      ->type_name("DEVICES");
}

void declare(CommandLine& line) {
  CommandOptions& options = line.options;
  // Commands copy it when they are added.
  line.app.formatter_fn(
      [](const CLI::App* app, auto&&...) { return help_text(*app, texts); });
  line.app.set_version_flag("--version",
                            "unisono " UNISONO_VERSION + line.commit,
                            "print the version");
  line.evaluate = line.app.add_option("-e", line.expression,
                                      "evaluate an expression and print it");
  add_run_options(&line.app, options);
  line.app.add_option("words", line.words,
                      "a program and its arguments; - is standard input");
  // Else a program's arguments could not be called as commands are.
  line.app.require_subcommand(0, 1);

  line.run = line.app.add_subcommand("run", "run a program");
  line.run->add_option("file", options.file,
                       "the program; - is standard input");
  line.run_evaluate = line.run->add_option(
      "-e", line.expression, "an expression, whose value is printed");
  add_run_options(line.run, options);
  line.run->add_option("arguments", options.arguments,
                       "for the program, which sees them as `args()`; those "
                       "that start with - stand after --");

  line.launch = line.app.add_subcommand(
      "launch",
      "run a program in several processes of this machine: a file, and what "
      "`run` takes");
  line.launch
      ->add_option("-n", line.processes, "how many: 1 to 64, without it 2")
      ->type_name("N");
  line.launch->prefix_command();

  line.check = line.app.add_subcommand("check", "check a program, run nothing");
  line.check->add_option("file", options.file,
                         "the program; - is standard input");
  line.check->add_flag("--json", options.json, "messages as JSON");
  add_devices(line.check, options);

  line.test = line.app.add_subcommand(
      "test", "run `test` blocks, and examples in documentation");
  line.test->add_option("files", line.tests.paths,
                        "programs (.uni), pages (.md), and folders of them; "
                        "without one, the folder one is in");
  line.test
      ->add_option("--filter", line.tests.filter,
                   "only tests with TEXT in FILE: NAME")
      ->take_last()
      ->type_name("TEXT");
  line.test->add_flag("--update", line.tests.update,
                      "write what examples give in place of what they expect");
  line.test
      ->add_option("--junit", line.tests.junit,
                   "write the results as JUnit's XML")
      ->take_last()
      ->type_name("FILE");
  add_devices(line.test, options);
  line.test->add_flag("--reference", options.reference,
                      "the reference evaluator alone");
  line.test->add_flag("--unchecked", options.unchecked,
                      "no errors for bad indexes and division by zero");

  add_bench(line);

  line.format = line.app.add_subcommand("fmt", "format programs in place");
  line.format
      ->add_option("files", line.files,
                   "the programs; - is standard input, to standard output")
      ->required();
  line.format->add_flag("--check", options.format_check,
                        "change nothing; fail if a file would change");

  line.explain = line.app.add_subcommand("explain", "what a message means");
  line.explain->add_option("code", line.code, "its code: U0412")
      ->required()
      ->type_name("CODE");

  line.doc =
      line.app.add_subcommand("doc", "make a manual, as a folder of web pages");
  line.doc
      ->add_option("files", line.manual.names,
                   "programs (.uni), whose `##` comments it shows, pages "
                   "(.md), folders of them, modules of the standard library; "
                   "without one, the manual of Unisono")
      ->type_name("FILE");
  line.doc
      ->add_option("--out", line.manual.folder,
                   "the folder to write to: manual; its index.html is the "
                   "page to begin with")
      ->take_last()
      ->type_name("FOLDER");
  line.doc->add_flag("--all", line.manual.all,
                     "the manual of Unisono, too, where links lead to it");

  line.completion = line.app.add_subcommand(
      "completion", "what a shell completes, as a script for it");
  line.completion->add_option("shell", line.shell, "bash, zsh or fish")
      ->required()
      ->type_name("SHELL");
  line.man = line.app.add_subcommand(
      "man", "print the manual page: unisono man | man -l -");
  line.devices = line.app.add_subcommand("devices", "list the devices");
  add_devices(line.devices, options);
  line.lsp = line.app.add_subcommand("lsp", "serve an editor");
  add_devices(line.lsp, options);
  line.lsp->add_flag("--stdio", line.stdio,
                     "nothing: editors add it, and there is nothing else");
  add_jupyter(line);
  add_inspect(line);
  line.app.failure_message(failure_message);
}

/// What stands before a command that does not take it; empty: nothing.
std::string misplaced(const CommandLine& line) {
  for (const CLI::App* command : line.app.get_subcommands()) {
    for (const CLI::Option* option : line.app.get_options()) {
      if (option->count() == 0) continue;
      std::string name = option->get_name();
      if (option->get_positional()) return line.words[0];
      if (!command->get_option_no_throw(name)) return name;
    }
  }
  return "";
}

/// Takes `--` and what follows it out of the words: it is for the program, of
/// the commands that have one, and no option of ours.
std::optional<std::vector<std::string>> take_after_dashes(
    std::vector<std::string>& words) {
  const bool of_files =
      !words.empty() &&
      (words[0] == "fmt" || words[0] == "explain" || words[0] == "test" ||
       words[0] == "devices" || words[0] == "lsp" || words[0] == "completion" ||
       words[0] == "jupyter" || words[0] == "doc" || words[0] == "man" ||
       words[0] == "bench");
  const auto dashes = std::find(words.begin(), words.end(), "--");
  if (of_files || dashes == words.end()) return std::nullopt;
  // The value of `-e` may be anything.
  if (dashes != words.begin() && *(dashes - 1) == "-e") return std::nullopt;
  std::vector<std::string> out(dashes + 1, words.end());
  words.erase(dashes, words.end());
  return out;
}

int print_completion(const CLI::App& app, const std::string& shell) {
  const std::string script = completion_script(app, shell);
  if (script.empty())
    return wrong_usage(fmt::format(
        "there are scripts for bash, zsh and fish, none for `{}`", shell));
  std::fputs(script.c_str(), stdout);
  return 0;
}

int evaluate(CommandLine& line, const std::vector<std::string>& surplus) {
  if (!surplus.empty())
    return wrong_usage(
        fmt::format("`{}` is not expected: -e takes one word, in "
                    "quotes: -e 'sum(arange(10))'; what is for args() stands "
                    "after --",
                    surplus[0]));
  return run_expression(line.options, line.expression);
}

/// The program's arguments from before and behind `--`. Without a file, the
/// first of those behind it is the file: `--` ends our options.
void add_arguments(CommandLine& line) {
  CommandOptions& options = line.options;
  if (!line.after_dashes) return;
  options.arguments_given = true;
  for (std::string& word : *line.after_dashes)
    if (options.file.empty() && !line.has_expression())
      options.file = std::move(word);
    else
      options.arguments.push_back(std::move(word));
}

/// Whether a word that is no command can only be meant as a program: `unisono
/// train.uni`, as with other languages.
bool is_file_name(const std::string& word) {
  if (word.starts_with('-')) return false;
  return word.find_first_of("./") != std::string::npos ||
         access(word.c_str(), F_OK) == 0;
}

/// What stands behind `launch -n N` is what `run` is given.
int launch_words(CommandLine& line) {
  if (line.processes < 1 || line.processes > 64)
    return wrong_usage(fmt::format(
        "-n expects 1 to 64 processes, such as 4; got `{}`", line.processes));
  std::vector<std::string> words = line.launch->remaining();
  if (words.empty())
    return wrong_usage(
        "there is no file: `unisono launch -n 4 FILE`, with what `unisono "
        "run` takes");
  if (is_launched())
    return wrong_usage(
        "a launcher has started several processes already, which are one "
        "program with `unisono run FILE`; `unisono launch` starts others");
  if (words[0].find_first_not_of("0123456789") == std::string::npos &&
      access(words[0].c_str(), F_OK) != 0)
    return wrong_usage(
        fmt::format("`{0}` is no file; how many processes stands behind -n: "
                    "`unisono launch -n {0} FILE`",
                    words[0]));
  if (line.after_dashes) {
    words.emplace_back("--");
    for (const std::string& word : *line.after_dashes) words.push_back(word);
  }
  return launch(line.processes, words);
}

int run_program(const CommandOptions& options) {
  if (const int tasks = tasks_apart(); tasks > 1 && !options.quiet)
    tell(fmt::format(
        "note: srun has started {} processes, and each of them runs the "
        "program for itself; they are one program with `srun --mpi=pmi2`, or "
        "`--mpi=pmix` for Open MPI (`srun --mpi=list` says what there is)\n",
        tasks));
  return run_file(options);
}

int dispatch(CommandLine& line) {
  CommandOptions& options = line.options;
  if (const std::string word = misplaced(line); !word.empty())
    return wrong_usage(
        fmt::format("`{}` is not expected before `{}`; see `unisono --help`",
                    word, line.app.get_subcommands()[0]->get_name()));
  const bool of_program = *line.run || *line.check || *line.inspect;
  if (*line.run && line.run_evaluate->count() > 0) {
    std::vector<std::string> surplus = std::move(options.arguments);
    if (!options.file.empty()) surplus.insert(surplus.begin(), options.file);
    options.arguments.clear();
    options.file.clear();
    add_arguments(line);
    return evaluate(line, surplus);
  }
  if (of_program) {
    add_arguments(line);
    if (options.file.empty())
      return wrong_usage("there is no file; - is standard input");
  }
  if (*line.run) return run_program(options);
  if (*line.launch) return launch_words(line);
  if (*line.check) return check_file(options);
  if (*line.test) return test_files(options, line.tests);
  if (*line.bench)
    return bench_files(options, line.benches, line.bench_seconds);
  if (*line.format) return format_files(line.files, options);
  if (*line.explain) return explain_code(line.code);
  if (*line.doc) return make_manual(line.manual, UNISONO_VERSION);
  if (*line.devices) return list_devices(options);
  if (*line.completion) return print_completion(line.app, line.shell);
  if (*line.man) {
    const std::string page =
        manual_page(line.app, texts, UNISONO_VERSION, UNISONO_DATE);
    std::fputs(page.c_str(), stdout);
    return 0;
  }
  if (*line.lsp) return serve_editor(options);
  if (*line.jupyter) return install_kernel(line.kernel);
  if (*line.inspect) return inspect_file(options);
  if (line.evaluate->count() > 0) {
    add_arguments(line);
    return evaluate(line, line.words);
  }
  if (line.words.empty() && isatty(STDIN_FILENO) != 0) {
    options.file = "-";  // what stands behind `--` are arguments
    add_arguments(line);
    return run_session(options, UNISONO_VERSION);
  }
  if (line.words.empty()) line.words.emplace_back("-");
  options.file = line.words[0];
  if (options.file != "-" && !is_file_name(options.file))
    return wrong_usage(
        fmt::format("there is no command and no file `{}`; `unisono --help` "
                    "lists the commands",
                    unisono::lang::visible(options.file)));
  options.arguments.assign(line.words.begin() + 1, line.words.end());
  add_arguments(line);
  return run_program(options);
}

int run_command(int argc, char** argv, std::string_view commit,
                std::shared_ptr<unisono::jit::Compiler> compiler) {
  CommandLine line;
  line.commit = commit;
  line.options.compiler = std::move(compiler);
  declare(line);
  std::vector<std::string> words(argv + 1, argv + argc);
  if (!unisono::tuning_problem().empty()) {
    if (launched_process() <= 0)
      tell(fmt::format("error: {}\n", unisono::tuning_problem()));
    return usage_error;
  }
  line.after_dashes = take_after_dashes(words);
  // Said in full, so that a program's arguments may be called as commands are.
  const auto called = [&](const CLI::App* command) {
    return command->get_name() == words[0];
  };
  if (!words.empty() && is_file_name(words[0]) &&
      line.app.get_subcommands(called).empty())
    words.insert(words.begin(), "run");
  try {
    std::reverse(words.begin(), words.end());  // as it wants them
    line.app.parse(std::move(words));
  } catch (const CLI::ParseError& error) {
    // Of several processes with one command line the first one tells.
    if (launched_process() > 0)
      return error.get_exit_code() == 0 ? 0 : usage_error;
    return finish_output(line.app.exit(error) == 0 ? 0 : usage_error);
  }
  return finish_output(dispatch(line));
}

}  // namespace

namespace unisono::host {

int command_line(int argc, char** argv, std::string_view commit,
                 std::shared_ptr<jit::Compiler> compiler) {
  int status = 1;
  prepare_process();
  on_enough_stack([&] {
    try {
      status = run_command(argc, argv, commit, std::move(compiler));
    } catch (const std::bad_alloc&) {
      tell("error: there is not enough memory\n");
    } catch (const std::exception& exception) {
      tell(fmt::format("error: a mistake in unisono itself: {}\n",
                       exception.what()));
    }
  });
  return status;
}

}  // namespace unisono::host
