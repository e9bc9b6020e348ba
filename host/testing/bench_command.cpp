#include "host/testing/bench_command.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <set>
#include <utility>

#include "host/session/source_files.h"
#include "host/testing/bench_results.h"
#include "host/testing/measure.h"
#include "host/testing/peak.h"
#include "lang/source/utf8.h"
#include "lang/syntax/read_source.h"
#include "runtime/files/file.h"
#include "runtime/stop.h"

namespace unisono::host {
namespace {

constexpr int stopped = 130;

class BenchRun {
 public:
  BenchRun(const BenchOptions& options, const OpenSession& open,
           const BenchOutput& output)
      : options_(options), open_(open), output_(output) {}

  Result<int> run() {
    const std::vector<std::string> files =
        TRY(source_files(options_.paths, {".uni"}));
    if (options_.compare) {
      auto earlier = read_earlier(*options_.compare);
      if (!earlier)
        return Error{.message = fmt::format("cannot compare with `{}`: {}",
                                            lang::visible(*options_.compare),
                                            earlier.error().message)};
      earlier_ = std::move(*earlier);
    }
    for (const std::string& file : files) {
      if (stop_requested()) break;
      bench_file(file);
    }
    return finish();
  }

 private:
  static Result<EarlierResults> read_earlier(const std::string& path) {
    const InputFile file = TRY(InputFile::open(path));
    auto bytes = TRY(allocate_bytes(file.size(), int64_t{1} << 28));
    TRY(file.read(0, bytes));
    return from_json({bytes.begin(), bytes.end()});
  }

  void failed(std::string_view what) {
    any_failed_ = true;
    output_.tell(what);
  }

  /// The messages since the last call, as they are shown.
  static std::string take_messages(Session& session) {
    std::string out = lang::render(session.diagnostics());
    session.diagnostics().truncate(0);
    return out;
  }

  bool wanted(const std::string& file, const std::string& name) const {
    return full_name(file, name).find(options_.filter) != std::string::npos;
  }

  void bench_file(const std::string& path) {
    const Result<std::string> text = lang::read_source(path);
    if (!text)
      return failed(fmt::format("error: cannot read `{}`: {}\n",
                                lang::visible(path), text.error().message));
    if (text->find(word(lang::ToolStmt::Tool::bench)) == std::string::npos)
      return;
    const auto opened = open_([](std::string_view) {}, 0);
    if (!opened)
      return failed(fmt::format("error: {}\n", opened.error().message));
    Session& session = **opened;
    const lang::Program* program = session.check(path, *text);
    std::string messages = take_messages(session);
    if (!program) return failed(messages);
    std::vector<const lang::ToolStmt*> blocks;
    for (const lang::StmtPtr& stmt : program->statements) {
      const auto* block = lang::as<lang::ToolStmt>(*stmt);
      if (block && block->tool == lang::ToolStmt::Tool::bench &&
          wanted(path, block->name))
        blocks.push_back(block);
    }
    if (blocks.empty()) return;
    output_.tell(messages);
    begin();
    const bool ran = !stop_requested() && session.run(*program);
    messages = take_messages(session);
    if (!ran) return failed(messages);
    output_.tell(messages);
    for (const lang::ToolStmt* block : blocks) {
      if (stop_requested()) return;
      bench(path, session, *program, *block);
    }
  }

  /// Before the first block: the peak, and the head of the table.
  void begin() {
    if (std::exchange(begun_, true)) return;
    if (options_.peak) {
      const auto opened = open_([](std::string_view) {}, 0);
      if (opened) {
        peak_ = measure_peak(**opened);
        if (!peak_ && !stop_requested())
          output_.tell("warning: the machine's peak cannot be measured\n" +
                       take_messages(**opened));
      }
    }
    output_.say(table_head(peak_));
  }

  void bench(const std::string& path, Session& session,
             const lang::Program& program, const lang::ToolStmt& block) {
    const auto run = [&] { return session.run_block(program, block); };
    const auto& devices = session.runtime().devices();
    std::optional<Measurement> times;
    Recorder recorder(/*keep_events=*/false);
    session.walk().on_stack([&] {
      times = measure(run, {.most_seconds = options_.seconds});
      // Apart, as what is recorded takes longer.
      session.machine().recorder = &recorder;
      if (times && !run()) times.reset();
      session.machine().recorder = nullptr;
    });
    const std::string messages = take_messages(session);
    if (!times) {
      if (stop_requested()) return output_.tell(messages);
      return failed(fmt::format("FAILED {}\n{}",
                                lang::visible(full_name(path, block.name)),
                                messages));
    }
    output_.tell(messages);
    BenchResult result{path, block.name,
                       block.name_span.file->place(block.name_span.begin).line,
                       std::move(*times),
                       traffic_of(recorder, static_cast<int>(devices.size()))};
    const auto before = earlier_.find(full_name(path, block.name));
    output_.say(table_row(
        result, peak_, before == earlier_.end() ? nullptr : &before->second));
    if (devices_.empty())
      for (const Device* device : devices) devices_.push_back(device->name());
    results_.push_back(std::move(result));
  }

  int finish() {
    if (results_.empty() && !any_failed_ && !stop_requested())
      output_.tell(options_.filter.empty()
                       ? "no benches: they are `bench \"name\" { ... }`\n"
                       : fmt::format("no bench has `{}` in its name\n",
                                     lang::visible(options_.filter)));
    if (options_.compare && !stop_requested()) say_comparison();
    if (stop_requested()) return stopped;
    if (options_.json) {
      const Status written =
          write_text(*options_.json, to_json(results_, peak_, devices_));
      if (!written) {
        output_.tell(fmt::format("error: cannot write `{}`: {}\n",
                                 lang::visible(*options_.json),
                                 written.error().message));
        return 1;
      }
    }
    return results_.empty() || any_failed_ ? 1 : 0;
  }

  void say_comparison() {
    int faster = 0, slower = 0, same = 0, added = 0;
    std::set<std::string> gone;
    for (const auto& [name, before] : earlier_)
      if (name.find(options_.filter) != std::string::npos) gone.insert(name);
    for (const BenchResult& result : results_) {
      const std::string name = full_name(result.file, result.name);
      gone.erase(name);
      const auto before = earlier_.find(name);
      if (before == earlier_.end()) {
        ++added;
        continue;
      }
      const Measurement& times = result.times;
      const Change change =
          change_of(before->second, {times.median, times.low, times.high});
      ++(change == Change::faster   ? faster
         : change == Change::slower ? slower
                                    : same);
    }
    output_.say(fmt::format("{} faster, {} slower, {} as before, {} new\n",
                            faster, slower, same, added));
    for (const std::string& name : gone)
      output_.say(fmt::format("{}: not there any more\n", lang::visible(name)));
  }

  const BenchOptions& options_;
  const OpenSession& open_;
  const BenchOutput& output_;
  EarlierResults earlier_;
  std::optional<Peak> peak_;
  bool begun_ = false, any_failed_ = false;
  std::vector<std::string> devices_;
  std::vector<BenchResult> results_;
};

}  // namespace

Result<int> run_benches(const BenchOptions& options, const OpenSession& open,
                        const BenchOutput& output) {
  return BenchRun(options, open, output).run();
}

}  // namespace unisono::host
