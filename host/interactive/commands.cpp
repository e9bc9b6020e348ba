#include "host/interactive/commands.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <optional>
#include <utility>

#include "host/session/help.h"
#include "host/session/inspect.h"
#include "host/session/replace_file.h"
#include "host/session/report.h"
#include "host/testing/measure.h"
#include "jit/pipeline.h"
#include "lang/context/environment.h"
#include "lang/context/function.h"
#include "lang/source/explain.h"
#include "lang/source/utf8.h"
#include "runtime/files/file.h"
#include "runtime/stop.h"

namespace unisono::host {
namespace {

using Clock = std::chrono::steady_clock;

std::string_view trimmed(std::string_view text) {
  const size_t begin = text.find_first_not_of(" \t\n");
  if (begin == text.npos) return {};
  return text.substr(begin, text.find_last_not_of(" \t\n") - begin + 1);
}

/// The first word, and what follows it.
std::pair<std::string_view, std::string_view> divided(std::string_view text) {
  const size_t end = std::min(text.find_first_of(" \t\n"), text.size());
  return {text.substr(0, end), trimmed(text.substr(end))};
}

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

/// False, and said, if a command that needs it has none.
bool has_argument(InteractiveShell& shell, std::string_view argument,
                  std::string_view form) {
  if (argument.empty())
    shell.complain(fmt::format("`{}` is missing something: `{}`",
                               form.substr(0, form.find(' ')), form));
  return !argument.empty();
}

void command_help(InteractiveShell& shell, std::string_view argument) {
  if (argument == "keys") return shell.say(shell.frontend().key_list());
  const bool of_command = argument.starts_with(':');
  std::string out;
  for (const Command& command : commands())
    if (argument.empty() || command.name == argument.substr(of_command))
      out += fmt::format("  :{:24} {}\n",
                         fmt::format("{} {}", command.name, command.argument),
                         command.help);
  if (!argument.empty() && (out.empty() || !of_command))
    out += describe(shell.session(), argument);
  if (!argument.empty()) return shell.say(out);
  shell.say(out + R"(  ?NAME, ??NAME             what it is; its source
  INPUT ;                   the value is not shown
  ans, _3                   the last value; that which was shown as _3
)" + shell.frontend().key_hint() +
            "the manual is docs/repl.md\n");
}

void command_type(InteractiveShell& shell, std::string_view argument) {
  if (!has_argument(shell, argument, ":type EXPRESSION")) return;
  std::optional<lang::Value> value;
  const bool ok = shell.attempt(
      std::string(argument), [](const lang::Program&) { return true; }, &value);
  if (!ok) return;
  if (!value) return shell.complain("this is no expression: it has no type");
  const auto* function =
      value->get_if<std::shared_ptr<const lang::FunctionValue>>();
  shell.say((function ? signature_of(**function) : lang::type_name(*value)) +
            "\n");
}

void command_ir(InteractiveShell& shell, std::string_view argument) {
  if (!has_argument(shell, argument, ":ir INPUT")) return;
  lang::Machine& machine = shell.session().machine();
  const bool compile_only = std::exchange(machine.compile_only, true);
  const int64_t threshold = std::exchange(machine.compile_threshold, 0);
  const int usual = std::exchange(machine.compiled_for, shell.next_number());
  std::string out;
  shell.attempt(std::string(argument), [&](const lang::Program& program) {
    InspectOptions options;
    options.after = jit::pass_names().back();
    options.keep_value = true;
    return inspect_program(shell.session(), program, options,
                           [&](std::string_view text) { out += text; });
  });
  machine.compile_only = compile_only;
  machine.compile_threshold = threshold;
  machine.compiled_for = usual;
  shell.session().walk().on_stack(
      [&] { shell.session().walk().forget_absent(); });
  shell.say(out);
}

void command_time(InteractiveShell& shell, std::string_view argument) {
  if (!has_argument(shell, argument, ":time INPUT")) return;
  const Clock::time_point start = Clock::now();
  const bool ok = shell.evaluate(std::string(argument));
  if (ok) shell.say(time_text(seconds_since(start)) + "\n");
}

void command_bench(InteractiveShell& shell, std::string_view argument) {
  if (!has_argument(shell, argument, ":bench INPUT")) return;
  std::optional<Measurement> times;
  lang::Machine& machine = shell.session().machine();
  const auto output = std::exchange(machine.output, [](std::string_view) {});
  shell.attempt(std::string(argument), [&](const lang::Program& program) {
    times = measure([&] { return shell.session().run(program); },
                    {.most_seconds = 2});
    return times.has_value();
  });
  machine.output = output;
  if (!times) return;
  shell.say(fmt::format("median {}, with 95 % from {} to {}\n",
                        time_text(times->median), time_text(times->low),
                        time_text(times->high)));
}

void command_trace(InteractiveShell& shell, std::string_view argument) {
  const auto [path, input] = divided(argument);
  if (!has_argument(shell, input, ":trace FILE INPUT")) return;
  Recorder recorder(/*keep_events=*/true);
  lang::Machine& machine = shell.session().machine();
  Recorder* before = std::exchange(machine.recorder, &recorder);
  shell.evaluate(std::string(input));
  machine.recorder = before;
  const std::string events =
      traced_events(shell.session(), recorder, {.start = recorder.started()});
  const Status written = write_trace(std::string(path), {&events, 1});
  if (!written)
    return shell.complain(
        fmt::format("cannot write `{}`: {}", path, written.error().message));
  shell.say(fmt::format("the trace is in {}\n", path));
}

void command_devices(InteractiveShell& shell, std::string_view argument) {
  if (!argument.empty()) return shell.change_devices(std::string(argument));
  std::string out;
  for (const Device* device : shell.session().runtime().devices())
    out += device->name() + "\n";
  shell.say(out + "`:devices cpu:8` opens others\n");
}

void command_load(InteractiveShell& shell, std::string_view argument) {
  if (argument.size() > 1 && argument.front() == '"' && argument.back() == '"')
    argument = argument.substr(1, argument.size() - 2);
  if (!has_argument(shell, argument, ":load FILE")) return;
  shell.load(std::string(argument));
}

void command_reload(InteractiveShell& shell, std::string_view) {
  shell.reload();
}

void command_save(InteractiveShell& shell, std::string_view argument) {
  if (!has_argument(shell, argument, ":save FILE")) return;
  const std::string path(argument);
  std::string text;
  for (const std::string& input : shell.inputs())
    text += input + (input.ends_with('\n') ? "" : "\n");
  // What a link leads to is replaced, what is no file is left alone.
  Status written = replace_file(path, text);
  if (!written && written.error().message == "No such file or directory")
    written = write_text(path, text);
  if (!written)
    return shell.complain(
        fmt::format("cannot write `{}`: {}", path, written.error().message));
  shell.say(fmt::format("{} inputs are in {}\n", shell.inputs().size(), path));
}

void command_explain(InteractiveShell& shell, std::string_view argument) {
  const std::string code =
      argument.empty() ? shell.last_code() : std::string(argument);
  if (code.empty()) return shell.say("there was no error yet\n");
  const auto page = lang::explain(code);
  if (!page)
    return shell.complain(
        fmt::format("there is no message `{}`; codes look like U0412", code));
  shell.say(*page);
}

void command_vars(InteractiveShell& shell, std::string_view) {
  const auto& globals = shell.session().walk().globals();
  std::vector<std::string> lines;
  size_t widest = 0;
  for (const auto& [name, binding] : globals->names)
    widest = std::max(widest, name.size());
  for (const auto& [name, binding] : globals->names) {
    const lang::Value& value = binding.value;
    const auto* function =
        value.get_if<std::shared_ptr<const lang::FunctionValue>>();
    std::string what =
        function ? signature_of(**function) : lang::type_name(value);
    if (const auto* alias = value.get_if<lang::TypeAliasValue>())
      what = alias->definition->span.text();
    const lang::ArrayCell* array = value.array();
    if (array && array->array && array->type.rank() > 0)
      what += fmt::format(" {}", array->array->sharding().to_string());
    what = what.substr(0, what.find('\n'));
    lines.push_back(fmt::format("{:{}}  {}{}\n", name, widest,
                                binding.is_var ? "var " : "", what));
  }
  std::ranges::sort(lines);
  shell.say(lines.empty() ? "there are no names yet\n"
                          : fmt::format("{}", fmt::join(lines, "")));
}

// ---- settings --------------------------------------------------------------

struct Setting {
  std::string_view name, help;
  std::string (*get)(InteractiveShell&);
  /// False if the value is none.
  bool (*set)(InteractiveShell&, std::string_view value);
};

std::string switch_text(bool on) { return on ? "on" : "off"; }

bool set_switch(bool& place, std::string_view value) {
  if (value != "on" && value != "off") return false;
  place = value == "on";
  return true;
}

bool set_number(int64_t& place, std::string_view value, int64_t most) {
  int64_t number = 0;
  const char* end = value.data() + value.size();
  const auto [stop, error] = std::from_chars(value.data(), end, number);
  if (error != std::errc() || stop != end || number < 0 || number > most)
    return false;
  place = number;
  return true;
}

constexpr Setting settings[] = {
    {"notes", "notes about what is slower than it looks: on, off",
     [](InteractiveShell& shell) {
       return switch_text(shell.session().machine().performance_notes);
     },
     [](InteractiveShell& shell, std::string_view value) {
       return set_switch(shell.session().machine().performance_notes, value);
     }},
    {"progress", "how far loops are that take over 2 s: on, off",
     [](InteractiveShell& shell) {
       return switch_text(shell.settings().progress);
     },
     [](InteractiveShell& shell, std::string_view value) {
       return set_switch(shell.settings().progress, value);
     }},
    {"results", "so many values stay as _1, _2, ...: 0 to 10000",
     [](InteractiveShell& shell) {
       return std::to_string(shell.settings().results);
     },
     [](InteractiveShell& shell, std::string_view value) {
       return set_number(shell.settings().results, value, 10'000);
     }},
    {"time", "after each input, how long it took: on, off",
     [](InteractiveShell& shell) { return switch_text(shell.settings().time); },
     [](InteractiveShell& shell, std::string_view value) {
       return set_switch(shell.settings().time, value);
     }},
    {"watchdog", "seconds that devices wait for one that does not arrive",
     [](InteractiveShell& shell) {
       return fmt::format(
           "{}",
           static_cast<double>(shell.session().machine().watchdog.count()) /
               1000);
     },
     [](InteractiveShell& shell, std::string_view value) {
       int64_t seconds = 0;
       if (!set_number(seconds, value, 1'000'000)) return false;
       shell.session().machine().watchdog = std::chrono::seconds(seconds);
       return true;
     }},
};

void command_set(InteractiveShell& shell, std::string_view argument) {
  const auto [name, value] = divided(argument);
  std::string out;
  for (const Setting& setting : settings) {
    if (!name.empty() && setting.name != name) continue;
    if (!value.empty()) {
      if (!setting.set(shell, value))
        shell.complain(fmt::format("`{}` is no value of `{}`: {}", value, name,
                                   setting.help));
      return;
    }
    out += fmt::format("  {:10} {:8} {}\n", setting.name, setting.get(shell),
                       setting.help);
  }
  if (out.empty())
    return shell.complain(fmt::format("there is no setting `{}`; there are {}",
                                      name, fmt::join(setting_names(), ", ")));
  shell.say(out);
}

void command_quit(InteractiveShell& shell, std::string_view) {
  shell.frontend().leave();
}

}  // namespace

std::vector<std::string> setting_names() {
  std::vector<std::string> out;
  for (const Setting& setting : settings) out.emplace_back(setting.name);
  return out;
}

const std::vector<Command>& commands() {
  static const std::vector<Command> all = {
#define COMMAND(name, argument, completed_by, help) \
  {#name, argument, help, CommandArgument::completed_by, command_##name},
#include "host/interactive/commands.def"
  };
  return all;
}

namespace {

/// Those that a word may mean.
std::vector<const Command*> commands_like(std::string_view word) {
  std::vector<const Command*> out;
  for (const Command& command : commands()) {
    if (command.name == word) return {&command};
    if (!word.empty() && command.name.starts_with(word))
      out.push_back(&command);
  }
  return out;
}

}  // namespace

void run_command(InteractiveShell& shell, std::string_view text) {
  const auto [word, argument] = divided(trimmed(text).substr(1));
  const std::vector<const Command*> like = commands_like(word);
  if (like.size() == 1) return like[0]->function(shell, argument);
  if (like.empty())
    return shell.complain(fmt::format(
        "there is no command `:{}`; `:help` lists them", lang::visible(word)));
  std::vector<std::string> names;
  for (const Command* command : like)
    names.push_back(fmt::format(":{}", command->name));
  shell.complain(fmt::format("`:{}` may be {}", word, fmt::join(names, ", ")));
}

std::string_view after_command(std::string_view text) {
  text = trimmed(text);
  const std::vector<const Command*> like =
      commands_like(divided(text.substr(1)).first);
  const size_t line_end = text.find('\n');
  if (like.size() != 1 || line_end == text.npos) return {};
  switch (like[0]->followed_by) {
    case CommandArgument::input:
    case CommandArgument::path_and_input: return {};
    case CommandArgument::nothing:
    case CommandArgument::name:
    case CommandArgument::path:
    case CommandArgument::devices:
    case CommandArgument::code:
    case CommandArgument::setting: return text.substr(line_end);
  }
  return {};
}

std::string help_on_magic(std::string_view text) {
  constexpr std::pair<std::string_view, std::string_view> ours[] = {
      {"time", ":time"},    {"timeit", ":bench"},  {"prun", ":trace"},
      {"who", ":vars"},     {"whos", ":vars"},     {"who_ls", ":vars"},
      {"run", ":load"},     {"load", ":load"},     {"save", ":save"},
      {"pinfo", ":help"},   {"pdoc", ":help"},     {"config", ":set"},
      {"lsmagic", ":help"}, {"quickref", ":help"},
  };
  if (text.starts_with('!'))
    return "there are no commands of the system here, such as `!ls`";
  const std::string_view marked = divided(text).first;
  const std::string_view name =
      marked.substr(std::min(marked.find_first_not_of('%'), marked.size()));
  const auto* found =
      std::ranges::find(ours, name, [](const auto& row) { return row.first; });
  const std::string_view command =
      found == std::end(ours) ? std::string_view() : found->second;
  return fmt::format("`{}` is IPython's; {}", marked,
                     command.empty() ? std::string("`:help` lists the commands")
                                     : fmt::format("write `{}`", command));
}

}  // namespace unisono::host
