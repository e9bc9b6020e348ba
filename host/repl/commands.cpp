#include "host/repl/commands.h"

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

std::string time_text(double seconds) {
  if (seconds < 1e-3) return fmt::format("{:.3g} us", seconds * 1e6);
  if (seconds < 1) return fmt::format("{:.3g} ms", seconds * 1e3);
  return fmt::format("{:.3g} s", seconds);
}

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

/// False, and said, if a command that needs it has none.
bool has_argument(Repl& repl, std::string_view argument,
                  std::string_view form) {
  if (argument.empty())
    repl.complain(fmt::format("`{}` is missing something: `{}`",
                              form.substr(0, form.find(' ')), form));
  return !argument.empty();
}

void help_on_keys(Repl& repl) {
  std::string keys, help, out;
  const auto flush = [&] {
    if (!help.empty()) out += fmt::format("  {:28} {}\n", keys, help);
  };
  for (const KeyBinding& row : key_bindings()) {
    if (row.help.empty()) {
      keys += fmt::format(", {}", row.key);
      continue;
    }
    flush();
    keys = row.key;
    help = row.help;
  }
  flush();
  repl.say(out + "C- is Ctrl, M- is Alt, or Esc before it\n");
}

void command_help(Repl& repl, std::string_view argument) {
  if (argument == "keys") return help_on_keys(repl);
  const bool of_command = argument.starts_with(':');
  std::string out;
  for (const Command& command : commands())
    if (argument.empty() || command.name == argument.substr(of_command))
      out += fmt::format("  :{:24} {}\n",
                         fmt::format("{} {}", command.name, command.argument),
                         command.help);
  if (!argument.empty() && (out.empty() || !of_command))
    out += describe(repl.session(), argument);
  if (!argument.empty()) return repl.say(out);
  repl.say(out + R"(  ?NAME, ??NAME             what it is; its source
  INPUT ;                   the value is not shown
  ans, _3                   the last value; that which was shown as _3
Tab completes; Ctrl-C stops what runs; `:help keys` lists the keys
the manual is docs/repl.md
)");
}

void command_type(Repl& repl, std::string_view argument) {
  if (!has_argument(repl, argument, ":type EXPRESSION")) return;
  std::optional<lang::Value> value;
  const bool ok = repl.attempt(
      std::string(argument), [](const lang::Program&) { return true; }, &value);
  if (!ok) return;
  if (!value) return repl.complain("this is no expression: it has no type");
  const auto* function =
      value->get_if<std::shared_ptr<const lang::FunctionValue>>();
  repl.say((function ? signature_of(**function) : lang::type_name(*value)) +
           "\n");
}

void command_ir(Repl& repl, std::string_view argument) {
  if (!has_argument(repl, argument, ":ir INPUT")) return;
  lang::Machine& machine = repl.session().machine();
  const bool compile_only = std::exchange(machine.compile_only, true);
  const int64_t threshold = std::exchange(machine.compile_threshold, 0);
  const int usual = std::exchange(machine.compiled_for, repl.next_number());
  std::string out;
  repl.attempt(std::string(argument), [&](const lang::Program& program) {
    InspectOptions options;
    options.after = jit::pass_names().back();
    options.keep_value = true;
    return inspect_program(repl.session(), program, options,
                           [&](std::string_view text) { out += text; });
  });
  machine.compile_only = compile_only;
  machine.compile_threshold = threshold;
  machine.compiled_for = usual;
  repl.session().walk().on_stack(
      [&] { repl.session().walk().forget_absent(); });
  repl.say(out);
}

void command_time(Repl& repl, std::string_view argument) {
  if (!has_argument(repl, argument, ":time INPUT")) return;
  const Clock::time_point start = Clock::now();
  const bool ok = repl.evaluate(std::string(argument));
  if (ok) repl.say(time_text(seconds_since(start)) + "\n");
}

void command_bench(Repl& repl, std::string_view argument) {
  if (!has_argument(repl, argument, ":bench INPUT")) return;
  constexpr double enough_seconds = 0.5;
  constexpr size_t enough_runs = 10'000, least_runs = 3;
  std::vector<double> times;
  lang::Machine& machine = repl.session().machine();
  const auto output = std::exchange(machine.output, [](std::string_view) {});
  const bool ok =
      repl.attempt(std::string(argument), [&](const lang::Program& program) {
        if (!repl.session().run(program)) return false;  // compiled by now
        const Clock::time_point start = Clock::now();
        while (times.size() < least_runs ||
               (times.size() < enough_runs &&
                seconds_since(start) < enough_seconds)) {
          const Clock::time_point begin = Clock::now();
          if (!repl.session().run(program)) return false;
          times.push_back(seconds_since(begin));
        }
        return true;
      });
  machine.output = output;
  if (!ok || times.empty()) return;
  std::ranges::sort(times);
  repl.say(fmt::format("median {}, fastest {}, {} runs\n",
                       time_text(times[times.size() / 2]), time_text(times[0]),
                       times.size()));
}

void command_trace(Repl& repl, std::string_view argument) {
  const auto [path, input] = divided(argument);
  if (!has_argument(repl, input, ":trace FILE INPUT")) return;
  Recorder recorder(/*keep_events=*/true);
  lang::Machine& machine = repl.session().machine();
  Recorder* before = std::exchange(machine.recorder, &recorder);
  repl.evaluate(std::string(input));
  machine.recorder = before;
  const Status written =
      write_trace(std::string(path), repl.session(), recorder);
  if (!written)
    return repl.complain(
        fmt::format("cannot write `{}`: {}", path, written.error().message));
  repl.say(fmt::format("the trace is in {}\n", path));
}

void command_devices(Repl& repl, std::string_view argument) {
  if (!argument.empty()) return repl.change_devices(std::string(argument));
  std::string out;
  for (const Device* device : repl.session().runtime().devices())
    out += device->name() + "\n";
  repl.say(out + "`:devices cpu:8` opens others\n");
}

void command_load(Repl& repl, std::string_view argument) {
  if (argument.size() > 1 && argument.front() == '"' && argument.back() == '"')
    argument = argument.substr(1, argument.size() - 2);
  if (!has_argument(repl, argument, ":load FILE")) return;
  repl.load(std::string(argument));
}

void command_reload(Repl& repl, std::string_view) { repl.reload(); }

void command_save(Repl& repl, std::string_view argument) {
  if (!has_argument(repl, argument, ":save FILE")) return;
  const std::string path(argument);
  std::string text;
  for (const std::string& input : repl.inputs())
    text += input + (input.ends_with('\n') ? "" : "\n");
  // What a link leads to is replaced, what is no file is left alone.
  Status written = replace_file(path, text);
  if (!written && written.error().message == "No such file or directory")
    written = write_text(path, text);
  if (!written)
    return repl.complain(
        fmt::format("cannot write `{}`: {}", path, written.error().message));
  repl.say(fmt::format("{} inputs are in {}\n", repl.inputs().size(), path));
}

void command_explain(Repl& repl, std::string_view argument) {
  const std::string code =
      argument.empty() ? repl.last_code() : std::string(argument);
  if (code.empty()) return repl.say("there was no error yet\n");
  const auto page = lang::explain(code);
  if (!page)
    return repl.complain(
        fmt::format("there is no message `{}`; codes look like U0412", code));
  repl.say(*page);
}

void command_vars(Repl& repl, std::string_view) {
  const auto& globals = repl.session().walk().globals();
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
  repl.say(lines.empty() ? "there are no names yet\n"
                         : fmt::format("{}", fmt::join(lines, "")));
}

// ---- settings --------------------------------------------------------------

struct Setting {
  std::string_view name, help;
  std::string (*get)(Repl&);
  /// False if the value is none.
  bool (*set)(Repl&, std::string_view value);
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
     [](Repl& repl) {
       return switch_text(repl.session().machine().performance_notes);
     },
     [](Repl& repl, std::string_view value) {
       return set_switch(repl.session().machine().performance_notes, value);
     }},
    {"progress", "how far loops are that take over 2 s: on, off",
     [](Repl& repl) { return switch_text(repl.settings().progress); },
     [](Repl& repl, std::string_view value) {
       return set_switch(repl.settings().progress, value);
     }},
    {"results", "so many values stay as _1, _2, ...: 0 to 10000",
     [](Repl& repl) { return std::to_string(repl.settings().results); },
     [](Repl& repl, std::string_view value) {
       return set_number(repl.settings().results, value, 10'000);
     }},
    {"time", "after each input, how long it took: on, off",
     [](Repl& repl) { return switch_text(repl.settings().time); },
     [](Repl& repl, std::string_view value) {
       return set_switch(repl.settings().time, value);
     }},
    {"watchdog", "seconds that devices wait for one that does not arrive",
     [](Repl& repl) {
       return fmt::format("{}", static_cast<double>(
                                    repl.session().machine().watchdog.count()) /
                                    1000);
     },
     [](Repl& repl, std::string_view value) {
       int64_t seconds = 0;
       if (!set_number(seconds, value, 1'000'000)) return false;
       repl.session().machine().watchdog = std::chrono::seconds(seconds);
       return true;
     }},
};

void command_set(Repl& repl, std::string_view argument) {
  const auto [name, value] = divided(argument);
  std::string out;
  for (const Setting& setting : settings) {
    if (!name.empty() && setting.name != name) continue;
    if (!value.empty()) {
      if (!setting.set(repl, value))
        repl.complain(fmt::format("`{}` is no value of `{}`: {}", value, name,
                                  setting.help));
      return;
    }
    out += fmt::format("  {:10} {:8} {}\n", setting.name, setting.get(repl),
                       setting.help);
  }
  if (out.empty())
    return repl.complain(fmt::format("there is no setting `{}`; there are {}",
                                     name, fmt::join(setting_names(), ", ")));
  repl.say(out);
}

void command_quit(Repl& repl, std::string_view) { repl.leave(); }

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
#include "host/repl/commands.def"
  };
  return all;
}

void run_command(Repl& repl, std::string_view text) {
  const auto [word, argument] = divided(trimmed(text).substr(1));
  const Command* found = nullptr;
  std::vector<std::string> like;
  for (const Command& command : commands()) {
    if (!word.empty() && command.name.starts_with(word)) {
      found = &command;
      like.push_back(fmt::format(":{}", command.name));
    }
    if (command.name == word) {
      like.resize(1);
      break;
    }
  }
  if (like.size() == 1) return found->function(repl, argument);
  if (like.empty())
    return repl.complain(fmt::format(
        "there is no command `:{}`; `:help` lists them", lang::visible(word)));
  repl.complain(fmt::format("`:{}` may be {}", word, fmt::join(like, ", ")));
}

}  // namespace unisono::host
