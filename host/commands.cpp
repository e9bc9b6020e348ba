#include "host/commands.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <optional>
#include <string_view>
#include <thread>
#include <utility>

#include "host/cluster/report_together.h"
#include "host/cluster/shared_gpus.h"
#include "host/editor/terminal.h"
#include "host/manual/manual.h"
#include "host/option_values.h"
#include "host/repl/repl.h"
#include "host/session/devices.h"
#include "host/session/inspect.h"
#include "host/session/interrupt.h"
#include "host/session/messages_json.h"
#include "host/session/perf_map.h"
#include "host/session/processes.h"
#include "host/session/progress.h"
#include "host/session/replace_file.h"
#include "host/session/report.h"
#include "host/session/session.h"
#include "host/session/speed_report.h"
#include "host/testing/bench_command.h"
#include "host/testing/test_command.h"
#include "jit/pipeline.h"
#include "jit/target/nvptx.h"
#include "lang/context/line_times.h"
#include "lang/format/format.h"
#include "lang/source/utf8.h"
#include "lang/syntax/parser.h"
#include "lang/syntax/read_source.h"
#include "runtime/cluster/cluster_device.h"
#include "runtime/files/file.h"
#include "runtime/heap.h"
#include "runtime/stop.h"

namespace unisono::host {
namespace {

constexpr int stopped = 130;  // as a shell says of who Ctrl-C ended

/// Messages go to standard error, after all output that came before.
void show(const lang::Diagnostics& diagnostics) {
  std::fflush(stdout);
  const bool colour = shows_colours(STDERR_FILENO);
  tell(lang::render(diagnostics, {colour}));
}

/// What was asked for is not there.
int no_devices(const Error& error) {
  // The first tells, or where that is gone the next one.
  const bool first_is_gone = error.kind == Error::Kind::device_lost &&
                             error.message.starts_with("process 0 ");
  if (launched_process() > (first_is_gone ? 1 : 0)) return 1;
  tell(fmt::format("error: {}\n", error.message));
  return 1;
}

/// For tests, which want small work compiled, too: `UNISONO_COMPILE_FROM=0`.
void take_compile_threshold(SessionOptions& options) {
  const char* text = std::getenv("UNISONO_COMPILE_FROM");
  if (text) options.compile_threshold = std::max(0LL, std::atoll(text));
}

/// Whether `--trace` can be written later; an error of the command line if not.
Status check_trace(const CommandOptions& options) {
  if (!options.trace) return Unit{};
  if (options.trace->empty())
    return Error{.message = "--trace expects a file; got ``"};
  if (auto file = OutputFile::create(*options.trace); !file)
    return Error{.message = fmt::format("--trace cannot write `{}`: {}",
                                        *options.trace, file.error().message)};
  return Unit{};
}

/// A stage of what is compiled.
bool is_code(std::string_view emit) {
  return emit != "tokens" && emit != "ast" && emit != "types";
}

/// A program's text and the name that messages give it.
struct Source {
  std::string name, text;
};

/// The program in a file or on standard input; reports why there is none.
std::optional<Source> read_program(const std::string& path,
                                   lang::Diagnostics& diagnostics) {
  Result<std::string> text =
      path == "-" ? lang::read_source(stdin) : lang::read_source(path);
  const std::string name = path == "-" ? "<stdin>" : path;
  if (text) return Source{name, std::move(*text)};
  diagnostics.report(lang::Code::cannot_read, {}, fmt::format("`{}`", name),
                     text.error().message);
  return std::nullopt;
}

bool was_stopped(const lang::Diagnostics& diagnostics) {
  return std::ranges::any_of(diagnostics.all(),
                             [](const lang::Diagnostic& diagnostic) {
                               return diagnostic.code == lang::Code::cancelled;
                             });
}

/// What is recorded of a run, for `--stats`, `--trace` and `--explain-speed`.
struct Recorded {
  explicit Recorded(const CommandOptions& options)
      : recorder(options.trace.has_value()) {
    if (options.explain_speed) times.emplace(recorder);
  }
  Recorder recorder;
  std::optional<lang::LineTimes> times;
};

bool is_recorded(const CommandOptions& options) {
  return options.stats || options.trace || options.explain_speed;
}

std::string cannot_write(const std::string& path, const std::string& why) {
  return fmt::format("error: cannot write `{}`: {}\n", lang::visible(path),
                     why);
}

/// What they asked for; false if it cannot be written.
bool report(const CommandOptions& options, Session& session,
            const Recorded& recorded) {
  const Recorder& recorder = recorded.recorder;
  if (options.stats) {
    std::fflush(stdout);
    const std::string own = statistics(session, recorder);
    tell(stats_table({&own, 1}));
  }
  if (recorded.times) {
    std::fflush(stdout);
    tell(speed_report(session, recorder, *recorded.times));
  }
  if (!options.trace) return true;
  const std::string events =
      traced_events(session, recorder, {.start = recorder.started()});
  const Status written = write_trace(*options.trace, {&events, 1});
  if (!written) tell(cannot_write(*options.trace, written.error().message));
  return static_cast<bool>(written);
}

/// What is wrong with the command line, or nothing.
Status check_options(const CommandOptions& options) {
  if (const auto request = parse_devices(options.devices); !request)
    return request.error();
  if (!parse_watchdog(options.watchdog))
    return Error{.message = fmt::format(
                     "--watchdog expects seconds from 0 (for ever) to "
                     "1000000000, such as 60 or 0.5; got `{}`",
                     options.watchdog)};
  DeviceRequest unused;
  if (options.memory_limit)
    TRY(parse_memory_limit(*options.memory_limit, unused));
  return check_trace(options);
}

/// Opens the devices for a session; an error in one line if there are none. In
/// several processes `own` are those that this one opens.
Result<SessionOptions> session_options(
    const CommandOptions& options,
    const std::shared_ptr<Cluster>& cluster = nullptr,
    const std::optional<DeviceRequest>& own = std::nullopt) {
  Result<DeviceRequest> request =
      own ? Result<DeviceRequest>(*own) : parse_devices(options.devices);
  if (!request) return request.error();
  request->cublas = !options.no_cublas;
  if (options.memory_limit)
    TRY(parse_memory_limit(*options.memory_limit, *request));
  SessionOptions out;
  out.memory_limit = request->memory_limit;
  if (request->memory_share > 0)
    out.memory_limit =
        static_cast<int64_t>(request->memory_share *
                             static_cast<double>(MemoryBudget::of_machine()));
  if (!options.no_cache) {
    std::string why_not;
    out.cache = open_kernel_cache(kernel_cache_folder(request->kind), &why_not);
    // A folder that nobody asked for may be missing.
    const bool tells = !options.quiet && std::getenv("UNISONO_CACHE") &&
                       (!cluster || cluster->process() == 0);
    if (!why_not.empty() && tells)
      tell(fmt::format("note: no kernels are kept in UNISONO_CACHE={}\n",
                       why_not));
  }
  if (cluster) {
    auto common = TRY(open_devices_together(cluster, *request, out.cache));
    out.devices = std::move(common.devices);
    if (!common.without_nccl.empty() && cluster->process() == 0 &&
        !options.quiet)
      tell(
          fmt::format("note: GPUs of several processes exchange by way of the "
                      "host's memory: {}\n",
                      common.without_nccl));
  } else {
    out.devices = TRY(open_devices(*request, out.cache));
  }
  out.cpu_devices = request->count;
  out.reference_only = options.reference;
  out.checked = !options.unchecked;
  out.arguments = options.arguments;
  out.output = write_output;
  out.stop = interrupt_flag();
  out.compile_only = options.compile_only;
  if (!is_recorded(options) && !options.profile_kernels)
    out.compiler = options.compiler;
  out.colour = shows_colours(STDOUT_FILENO);
  out.performance_notes = !options.quiet;
  out.watchdog = *parse_watchdog(options.watchdog);
  take_compile_threshold(out);
  return out;
}

/// The progress of a script's loops, on standard error if that is a terminal.
std::unique_ptr<ProgressBar> progress_bar(const CommandOptions& options) {
  const char* terminal = std::getenv("TERM");
  if (options.no_progress || isatty(STDERR_FILENO) == 0 ||
      !Terminal::can_edit(terminal))
    return nullptr;
  return std::make_unique<ProgressBar>(
      [](std::string_view text) {
        std::fflush(stdout);
        tell(text);
      },
      [] { return terminal_size(STDERR_FILENO).columns; });
}

/// What several processes cannot do yet; an error of the command line.
Status check_together(const CommandOptions& options) {
  const auto wrong = [](std::string message) {
    return Error{.message = std::move(message)};
  };
  for (const auto& [given, name] :
       {std::pair(options.explain_speed, "--explain-speed"),
        std::pair(options.profile_kernels, "--profile-kernels")})
    if (given)
      return wrong(fmt::format(
          "{} tells of one process, and several were started together", name));
  if (options.file == "-")
    return wrong(
        "several processes cannot share standard input: name the program's "
        "file");
  return Unit{};
}

/// How many devices each process has; 0 if that depends on the GPUs that it
/// finds.
int devices_each(const DeviceRequest& request) {
  return request.kind == DeviceRequest::Kind::cuda
             ? static_cast<int>(request.gpus.size())
             : request.count;
}

/// An error of the command line, in the first of several processes.
int one_alone(std::string_view what) {
  return wrong_usage(fmt::format(
      "{} in one process, and several were started together", what));
}

/// Meets the other processes, if there are some; null if there are none.
Result<std::shared_ptr<Cluster>> meet_others(const CommandOptions& options) {
  if (!is_launched()) return std::shared_ptr<Cluster>();
  ClusterOptions out;
  out.limit = *parse_watchdog(options.watchdog);
  out.kind = options.devices.substr(0, options.devices.find(':'));
  out.devices = devices_each(*parse_devices(options.devices));
  out.stop = interrupt_flag();
  out.output = write_together;
  std::signal(SIGPIPE, SIG_IGN);
  return join_cluster(std::move(out));
}

/// What must be equal in all processes for them to do the same.
uint64_t fingerprint(const CommandOptions& options, const Source& source) {
  uint64_t hash = 0xcbf29ce484222325;  // FNV-1a
  const auto add = [&](std::string_view text) {
    for (const char c : text)
      hash = (hash ^ static_cast<uint8_t>(c)) * 0x100000001b3;
    hash = (hash ^ 0xff) * 0x100000001b3;
  };
  add(source.text);
  for (const std::string& argument : options.arguments) add(argument);
  add(options.reference ? "reference" : "");
  add(options.unchecked ? "unchecked" : "");
  return hash;
}

/// Devices, output and messages of one of several processes.
void run_together(const CommandOptions& options,
                  const std::shared_ptr<Cluster>& cluster,
                  SessionOptions& session) {
  session.performance_notes &= cluster->process() == 0;
  if (session.workers == 0)
    session.workers =
        std::max(1, static_cast<int>(std::thread::hardware_concurrency()) /
                        cluster->on_this_host());
  session.output = [shared = cluster.get()](std::string_view text) {
    shared->output(text);
  };
  if (!options.all_output) return;
  session.output = [shared = cluster.get()](std::string_view text) {
    std::string out;
    while (!text.empty()) {
      const size_t end = std::min(text.find('\n'), text.size() - 1) + 1;
      out += fmt::format("[{}] {}", shared->label(shared->process()),
                         text.substr(0, end));
      text.remove_prefix(end);
    }
    write_together(out);
    flush_together();  // beside those of the others
  };
}

/// Processes that have met end before the program begins. One of them tells.
int end_before(Cluster& cluster, int status, const Error& error) {
  const Cluster::End end =
      cluster.finish(status, fmt::format("error: {}\n", error.message));
  if (end.messages) tell(*end.messages);
  return end.status;
}

/// Where GPUs cannot be shared: they are not there, or the command line is
/// wrong.
int status_of(const Error& error) {
  return error.kind == Error::Kind::device_lost ? 1 : usage_error;
}

/// False, and reported, if another process has another program.
bool is_same_program(Cluster& cluster, uint64_t fingerprint, Session& session) {
  cluster.at("the program's text and arguments");
  const Status same = cluster.barrier(fingerprint);
  if (same) return true;
  const lang::Code code = same.error().kind == Error::Kind::cancelled
                              ? lang::Code::cancelled
                          : same.error().kind == Error::Kind::device_lost
                              ? lang::Code::device_lost
                              : lang::Code::check_failed_at_run_time;
  if (code == lang::Code::cancelled)
    session.diagnostics().report(lang::Code::cancelled, lang::Span());
  else if (code == lang::Code::device_lost)
    session.diagnostics().report(lang::Code::device_lost, lang::Span(),
                                 same.error().message);
  else
    session.diagnostics().report(lang::Code::check_failed_at_run_time,
                                 lang::Span(), same.error().message);
  return false;
}

/// All processes end as one: the exit status.
int end_together(Cluster& cluster, bool ok, Session& session,
                 const CommandOptions& options,
                 const std::optional<Recorded>& recorded) {
  const lang::Diagnostics& diagnostics = session.diagnostics();
  int status = ok && !diagnostics.has_errors() ? 0 : 1;
  if (was_stopped(diagnostics)) status = stopped;
  std::string messages =
      lang::render(diagnostics, {shows_colours(STDERR_FILENO)});
  flush_together();
  if (is_unread()) {
    status = unread_status;
    messages.clear();
  }
  TogetherReport report;
  if (recorded) {
    report = report_together(cluster, status == 0, session, recorded->recorder,
                             options.stats, options.trace);
    if (!report.problem.empty()) {
      status = std::max(status, 1);
      messages += cannot_write(*options.trace, report.problem);
    }
  }
  const Cluster::End end = cluster.finish(status, std::move(messages));
  flush_together();  // what was kept of other processes
  if (end.messages) tell(*end.messages);
  tell(report.stats);
  end_at_interrupts();
  return is_unread() ? unread_status : end.status;
}

/// Opens a session for the options' devices and gives it to `body`, with the
/// program in `source` or else in the options' file; its result decides the
/// exit status after the messages. One that `runs` has its arguments; else they
/// are known if there was a `--`.
/// With `together` it may be one of several processes.
template <class Body>
int with_program(const CommandOptions& options, std::optional<Source> source,
                 bool runs, Body body, bool together = false) {
  if (const Status usage = check_options(options); !usage)
    return wrong_usage(usage.error().message);
  if (together && is_launched())
    if (const Status usage = check_together(options); !usage)
      return wrong_usage(usage.error().message);
  auto met = together ? meet_others(options)
                      : Result<std::shared_ptr<Cluster>>(nullptr);
  if (!met) return no_devices(met.error());
  const std::shared_ptr<Cluster> cluster = std::move(*met);
  std::optional<DeviceRequest> own;
  if (cluster) {
    auto request = request_own_gpus(*cluster, *parse_devices(options.devices));
    if (!request)
      return end_before(*cluster, status_of(request.error()), request.error());
    own = std::move(*request);
  }
  Result<SessionOptions> opened = session_options(options, cluster, own);
  if (!opened && cluster) return end_before(*cluster, 1, opened.error());
  if (!opened) return no_devices(opened.error());
  SessionOptions& session_options = *opened;
  if (cluster) run_together(options, cluster, session_options);
  session_options.arguments_known = runs || options.arguments_given;
  const std::unique_ptr<ProgressBar> progress =
      cluster ? nullptr : progress_bar(options);
  if (progress) {
    session_options.progress = [&](const lang::LoopProgress& loop) {
      progress->turn(loop);
    };
    session_options.output = [&](std::string_view text) {
      progress->hide();
      write_output(text);
    };
  }
  std::optional<Recorded> recorded;
  if (is_recorded(options)) {
    recorded.emplace(options);
    session_options.recorder = &recorded->recorder;
  }
  std::unique_ptr<PerfMap> perf_map;
  if (options.profile_kernels) {
    auto opened = PerfMap::open();
    if (!opened) {
      tell(fmt::format("error: {}\n", opened.error().message));
      return 1;
    }
    perf_map = std::move(*opened);
    session_options.on_code = [&](const void* code, int64_t bytes,
                                  const std::string& line) {
      perf_map->add(code, bytes, line);
    };
  }
  Session session(std::move(*opened));
  if (recorded && recorded->times)
    lang::set_line_times(session.walk(), &*recorded->times);
  // Who waits for input is ended by the signal itself.
  if (!source) source = read_program(options.file, session.diagnostics());
  // Where the first has a file that another one lacks.
  if (!source && cluster && cluster->process() > 0)
    session.diagnostics().last().set_help(fmt::format(
        "all processes must see the same files; this is what {} finds",
        cluster->label_with_host(cluster->process())));
  hear_interrupts();
  bool ok = false;
  {
    const StopScope stop(interrupt_flag());  // not of what is told afterwards
    ok = source.has_value();
    if (ok && cluster)
      ok = is_same_program(*cluster, fingerprint(options, *source), session);
    ok = ok && body(session, std::move(*source));
  }
  if (progress) progress->hide();
  if (cluster) return end_together(*cluster, ok, session, options, recorded);
  if (options.json)
    write_output(to_json(session.diagnostics()));
  else
    show(session.diagnostics());
  const bool reported = !recorded || report(options, session, *recorded);
  std::fflush(stdout);
  end_at_interrupts();
  if (was_stopped(session.diagnostics())) return stopped;
  return ok && reported && !session.diagnostics().has_errors() ? 0 : 1;
}

/// Formats one file; false if it has errors, cannot be written, or (with
/// `--check`) is not formatted.
bool format_file(const std::string& path, bool check_only,
                 lang::Diagnostics& diagnostics, lang::SourceMap& sources) {
  std::optional<Source> source = read_program(path, diagnostics);
  if (!source) return false;
  const lang::SourceFile& file =
      sources.add(std::move(source->name), std::move(source->text));
  const lang::ParseResult parsed = lang::parse_as_written(file, diagnostics);
  if (!parsed.ok) return false;
  std::string formatted;
  try {
    formatted = lang::format(*parsed.program);
  } catch (const Stopped&) {
    diagnostics.report(lang::Code::cancelled, lang::Span{&file, 0, 1});
    return false;
  }
  const bool changed = formatted != file.text();
  if (check_only) {
    if (changed)
      write_output(fmt::format("{}: not formatted; `unisono fmt` formats it\n",
                               file.path()));
    return !changed;
  }
  if (path == "-") write_output(formatted);
  if (path == "-" || !changed) return true;
  const Status written = replace_file(path, formatted);
  if (!written)
    diagnostics.report(lang::Code::cannot_write, {}, fmt::format("`{}`", path),
                       written.error().message);
  return static_cast<bool>(written);
}

/// What `inspect` is asked for; an error of the command line.
Result<InspectOptions> inspect_options(const CommandOptions& options) {
  auto wrong = [](std::string message) {
    return Error{.message = std::move(message)};
  };
  if (!is_stage(options.emit))
    return wrong(fmt::format("--emit expects one of {}; got `{}`",
                             fmt::join(stage_names(), ", "), options.emit));
  InspectOptions out{
      .emit = options.emit,
      .after = options.after.value_or(std::string(jit::pass_names().back())),
      .capability = 0,
      .types = {},
      .graph = options.graph,
      .folder = options.folder};
  const std::vector<std::string_view> passes = jit::pass_names();
  if (options.after && options.emit != "ir")
    return wrong("--after chooses among the stages of --emit=ir");
  if (std::ranges::find(passes, out.after) == passes.end())
    return wrong(fmt::format("there is no pass `{}`; there are {}", out.after,
                             fmt::join(passes, ", ")));
  const std::optional<int> capability =
      options.target ? parse_target(*options.target) : 0;
  if (!capability)
    return wrong(fmt::format(
        "--target expects sm_N with N from {} to {}, such as sm_90; got `{}`",
        jit::oldest_capability, newest_target, *options.target));
  out.capability = *capability;
  for (const std::string& text : options.shapes) {
    auto type = parse_shape(text);
    if (!type)
      return wrong(fmt::format(
          "--shape expects NAME=TYPE, such as x=f32[4096, 4096], or "
          "FUNCTION.NAME=TYPE; got `{}`",
          text));
    out.types.push_back(std::move(*type));
  }
  const bool chooses = !out.types.empty() || out.graph || out.folder;
  if ((options.run || chooses) && !is_code(options.emit))
    return wrong(fmt::format(
        "--run, --shape, --graph and --out are for what is compiled, not for "
        "--emit={}",
        options.emit));
  if (options.run && !out.types.empty())
    return wrong("--run takes types from what runs, not from --shape");
  if (out.graph && out.folder)
    return wrong("--out writes all graphs, --graph shows one");
  if (out.graph && out.graph->empty())
    return wrong("--graph expects a number or a function; got ``");
  if (out.folder && out.folder->empty())
    return wrong("--out expects a folder; got ``");
  return out;
}

}  // namespace

ShellOptions shell_options(const CommandOptions& options) {
  return {.devices = options.devices,
          .open =
              [options](const std::string& devices) {
                CommandOptions other = options;
                other.devices = devices;
                return session_options(other);
              },
          .progress = !options.no_progress};
}

int run_file(const CommandOptions& options) {
  return with_program(
      options, std::nullopt, true,
      [](Session& session, Source source) {
        const lang::Program* program =
            session.check(std::move(source.name), std::move(source.text));
        return program && session.run(*program);
      },
      /*together=*/true);
}

int run_session(const CommandOptions& options, std::string_view version) {
  if (const Status usage = check_options(options); !usage)
    return wrong_usage(usage.error().message);
  for (const auto& [given, name] :
       {std::pair(options.stats, "--stats"),
        std::pair(options.explain_speed, "--explain-speed"),
        std::pair(options.trace.has_value(), "--trace"),
        std::pair(options.profile_kernels, "--profile-kernels")})
    if (given)
      return wrong_usage(fmt::format(
          "{} is for a program: `unisono run FILE`, or `-e`", name));
  return run_repl(
      {.shell = shell_options(options), .version = std::string(version)});
}

int run_expression(const CommandOptions& options, const std::string& text) {
  return with_program(
      options, Source{"<expression>", text}, true,
      [](Session& session, Source source) {
        const lang::Program* program =
            session.check(std::move(source.name), std::move(source.text));
        return program && session.run_and_print(*program);
      },
      /*together=*/true);
}

int check_file(const CommandOptions& options) {
  return with_program(
      options, std::nullopt, false, [](Session& session, Source source) {
        return session.check(std::move(source.name), std::move(source.text)) !=
               nullptr;
      });
}

namespace {

/// Opens sessions for these options, as tools need them.
OpenSession session_opener(const CommandOptions& options) {
  return
      [options](auto output, int devices) -> Result<std::unique_ptr<Session>> {
        CommandOptions other = options;
        if (devices > 0) other.devices = fmt::format("cpu:{}", devices);
        SessionOptions opened = TRY(session_options(other));
        opened.output = std::move(output);
        opened.colour = false;
        return std::make_unique<Session>(std::move(opened));
      };
}

}  // namespace

int test_files(const CommandOptions& options, const TestOptions& tests) {
  if (is_launched()) return one_alone("tests run");
  if (const Status usage = check_options(options); !usage)
    return wrong_usage(usage.error().message);
  if (const auto opened = session_options(options); !opened)
    return no_devices(opened.error());
  hear_interrupts();
  const StopScope stop(interrupt_flag());
  const auto status = run_tests(tests, session_opener(options), tell);
  return status ? *status : wrong_usage(status.error().message);
}

int bench_files(const CommandOptions& options, BenchOptions benches,
                const std::string& seconds) {
  if (is_launched()) return one_alone("benches run");
  if (const Status usage = check_options(options); !usage)
    return wrong_usage(usage.error().message);
  const auto most = parse_seconds(seconds);
  if (!most)
    return wrong_usage(fmt::format(
        "--seconds expects a number from 0 to 1000000000, such as 5; got `{}`",
        seconds));
  benches.seconds = *most;
  // What is simulated has no speed of its own.
  benches.peak &=
      parse_devices(options.devices)->kind != DeviceRequest::Kind::sim;
  if (const auto opened = session_options(options); !opened)
    return no_devices(opened.error());
  hear_interrupts();
  const StopScope stop(interrupt_flag());
  const auto say = [](std::string_view text) {
    write_output(text);
    std::fflush(stdout);  // each line when it is known
  };
  const auto status =
      run_benches(benches, session_opener(options), {say, tell});
  return status ? *status : wrong_usage(status.error().message);
}

int format_files(const std::vector<std::string>& files,
                 const CommandOptions& options) {
  bool ok = true;
  const StopScope stop(interrupt_flag());
  // Who waits for input is ended by the signal itself.
  if (std::ranges::find(files, "-") == files.end()) hear_interrupts();
  for (const std::string& path : files) {
    lang::SourceMap sources;
    lang::Diagnostics diagnostics;
    ok &= format_file(path, options.format_check, diagnostics, sources);
    show(diagnostics);
    if (was_stopped(diagnostics)) return stopped;
  }
  return ok ? 0 : 1;
}

int make_manual(const ManualOptions& options, std::string_view version) {
  if (options.folder.empty())
    return wrong_usage("--out expects a folder; got ``");
  lang::SourceMap sources;
  lang::Diagnostics diagnostics;
  const StopScope stoppable(interrupt_flag());
  const auto written = write_manual(options, version, sources, diagnostics);
  show(diagnostics);
  if (!written && written.error().kind == Error::Kind::cancelled)
    return stopped;
  if (!written) {
    tell(fmt::format("error: {}\n", lang::visible(written.error().message)));
    return 1;
  }
  if (diagnostics.has_errors()) return 1;
  for (const std::string& link : written->dead_links)
    tell(fmt::format("warning: {}\n", link));
  tell(fmt::format("{}: {} pages, {} names\n", lang::visible(written->index),
                   written->pages, written->names));
  return 0;
}

/// Of all processes, once.
int list_devices(const CommandOptions& options,
                 const std::shared_ptr<Cluster>& cluster) {
  const auto request =
      request_own_gpus(*cluster, *parse_devices(options.devices));
  if (!request)
    return end_before(*cluster, status_of(request.error()), request.error());
  auto opened = open_devices_together(cluster, *request, nullptr);
  if (!opened) return end_before(*cluster, 1, opened.error());
  if (cluster->process() == 0) {
    for (const auto& device : opened->devices) {
      const int process = cluster_device(*device)->process();
      write_output(fmt::format("{}  process {} on {}\n", device->name(),
                               process, cluster->host(process)));
    }
    write_output(fmt::format("{} processes, which talk over {}\n",
                             cluster->processes(), cluster->transport()));
    if (request->kind != DeviceRequest::Kind::cpu)
      write_output(
          fmt::format("between their GPUs bytes go by {}\n", opened->moved_by));
  }
  opened->devices.clear();
  return cluster->finish(0, "").status;
}

int list_devices(const CommandOptions& options) {
  const Result<DeviceRequest> request = parse_devices(options.devices);
  if (!request) return wrong_usage(request.error().message);
  auto met = meet_others(options);
  if (!met) return no_devices(met.error());
  if (*met) return list_devices(options, *met);
  auto opened = open_devices(*request);
  if (!opened) return no_devices(opened.error());
  const Runtime runtime =
      opened->empty() ? Runtime(request->count) : Runtime(std::move(*opened));
  for (const Device* device : runtime.devices())
    write_output(fmt::format("{}\n", device->name()));
  write_output(fmt::format(
      "{} processors; --devices cpu:N gives N CPU devices, 1 to {}\n",
      std::thread::hardware_concurrency(), max_devices));
  write_output(describe_gpus());
  return 0;
}

int inspect_file(const CommandOptions& options) {
  const Result<InspectOptions> shown = inspect_options(options);
  if (!shown) return wrong_usage(shown.error().message);
  CommandOptions without = options;
  without.compile_only = is_code(options.emit) && !options.run;
  return with_program(without, std::nullopt, options.emit != "types",
                      [&](Session& session, Source source) {
                        return inspect(session, std::move(source.name),
                                       std::move(source.text), *shown,
                                       write_output);
                      });
}

}  // namespace unisono::host
