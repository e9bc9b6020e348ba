#include "host/testing/test_command.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <map>
#include <system_error>
#include <utility>

#include "host/session/replace_file.h"
#include "host/session/source_files.h"
#include "host/testing/examples.h"
#include "lang/source/utf8.h"
#include "lang/syntax/read_source.h"
#include "runtime/files/file.h"
#include "runtime/stop.h"

namespace unisono::host {
namespace {

namespace fs = std::filesystem;

constexpr int stopped = 130;

struct TestResult {
  std::string file, name;
  int line = 1;
  double seconds = 0;
  std::string failure;  // several lines; empty: it passed
};

/// Lines without spaces at their ends, and without empty lines, which end what
/// is expected.
std::string without_space(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    const size_t last = line.find_last_not_of(" \t\r");
    if (last == line.npos) continue;
    if (!out.empty()) out += '\n';
    out += line.substr(0, last + 1);
  }
  return out;
}

std::string indented(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    if (end > 0) (out += "    ") += text.substr(0, end);
    out += '\n';
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return out;
}

std::string difference(const Example& example, std::string_view got) {
  std::string out = "  this\n" + indented(example.code) + "  gives\n";
  out += got.empty() ? "    nothing\n" : indented(got);
  out += "  not\n";
  return out + (example.expected.empty() ? "    nothing\n"
                                         : indented(example.expected));
}

/// A program of a page, or the inputs of one file, and their messages.
class Transcript {
 public:
  explicit Transcript(const OpenSession& open, int devices) {
    auto opened =
        open([this](std::string_view text) { output_ += text; }, devices);
    if (opened)
      session_ = std::move(*opened);
    else
      problem_ = fmt::format("error: {}\n", opened.error().message);
  }

  /// Null if there are no devices for it.
  Session* session() { return session_.get(); }
  const std::string& problem() const { return problem_; }

  /// What was printed, and the messages, since the last call: in full, or the
  /// first line of each.
  struct Told {
    std::string output, messages, first_lines;
    bool failed = false;
  };
  Told take() {
    Told told;
    told.output = std::exchange(output_, {});
    const auto& all = session_->diagnostics().all();
    for (const lang::Diagnostic& diagnostic : all) {
      if (!told.messages.empty()) told.messages += '\n';
      told.messages += lang::render(diagnostic);
      told.first_lines +=
          fmt::format("{}[{}]: {}\n", lang::name(diagnostic.severity),
                      lang::info(diagnostic.code).number, diagnostic.message);
      if (diagnostic.severity == lang::Severity::error) told.failed = true;
    }
    session_->diagnostics().truncate(0);
    return told;
  }

  /// Runs an input as if it stood where it does in its file, and gives what it
  /// shows.
  Told run(const std::string& file, const Example& example) {
    std::string text(static_cast<size_t>(example.line - 1), '\n');
    const std::string margin(static_cast<size_t>(example.column), ' ');
    text += margin;
    for (const char c : example.code) {
      text += c;
      if (c == '\n') text += margin;
    }
    text += '\n';
    if (const auto* program = session_->check(file, std::move(text)))
      session_->run_and_print(*program);
    return take();
  }

 private:
  std::string output_, problem_;
  std::unique_ptr<Session> session_;
};

class TestRun {
 public:
  TestRun(const TestOptions& options, const OpenSession& open,
          const std::function<void(std::string_view)>& tell)
      : options_(options), open_(open), tell_(tell) {}

  Result<int> run() {
    const std::vector<std::string> files =
        TRY(source_files(options_.paths, {".uni", ".md"}));
    for (const std::string& file : files) {
      if (stop_requested()) break;
      test_file(file);
    }
    return finish();
  }

 private:
  using Clock = std::chrono::steady_clock;

  bool wanted(const std::string& file, const std::string& name) const {
    return fmt::format("{}: {}", file, name).find(options_.filter) !=
           std::string::npos;
  }

  /// Runs one test; `body` gives what is wrong.
  template <class Body>
  void test(const std::string& file, const std::string& name, int line,
            Body body) {
    if (stop_requested()) return;
    const auto start = Clock::now();
    TestResult result{file, name, line, 0, body()};
    if (stop_requested()) return;  // what it says is about that
    result.seconds =
        std::chrono::duration<double>(Clock::now() - start).count();
    if (!result.failure.empty())
      tell_(fmt::format("FAILED {}:{}: {}\n{}\n", lang::visible(file), line,
                        lang::visible(name), result.failure));
    results_.push_back(std::move(result));
  }

  void test_file(const std::string& path) {
    const Result<std::string> text = lang::read_source(path);
    if (!text) {
      test(path, "can be read", 1,
           [&] { return fmt::format("  {}\n", text.error().message); });
      return;
    }
    replacements_.clear();
    if (fs::path(path).extension() == ".uni")
      test_program(path, *text);
    else
      test_page(path, *text);
    if (replacements_.empty()) return;
    const Status written =
        replace_file(path, with_results(*text, replacements_));
    if (!written)
      test(path, "can be written", 1,
           [&] { return fmt::format("  {}\n", written.error().message); });
    else
      tell_(fmt::format("updated {} in {}\n", replacements_.size(),
                        lang::visible(path)));
  }

  void test_program(const std::string& path, const std::string& text) {
    const std::vector<ExampleGroup> groups = examples_of_program(text);
    if (groups.empty() && text.find("test") == text.npos) return;
    Transcript transcript(open_, 0);
    Session* session = transcript.session();
    if (!session)
      return test(path, "devices", 1, [&] { return transcript.problem(); });
    const lang::Program* program = session->check(path, text);
    Transcript::Told checked = transcript.take();
    if (!program)
      return test(path, "check", 1,
                  [&] { return std::move(checked.messages); });
    // In the order of the file, by the line.
    std::multimap<int, std::function<void()>> tests;
    for (const lang::StmtPtr& stmt : program->statements) {
      const auto* block = lang::as<lang::ToolStmt>(*stmt);
      if (!block || block->tool != lang::ToolStmt::Tool::test ||
          !wanted(path, block->name))
        continue;
      const int line =
          block->name_span.file->place(block->name_span.begin).line;
      tests.emplace(line, [=, this, &transcript] {
        test(path, block->name, line, [&] {
          session->run_block(*program, *block);
          const Transcript::Told told = transcript.take();
          return told.failed ? indented(told.output) + told.messages : "";
        });
      });
    }
    for (const ExampleGroup& group : groups)
      if (wanted(path, group.name))
        tests.emplace(group.line, [&] { test_group(path, group, transcript); });
    if (tests.empty()) return;
    if (!session->run(*program)) {
      const Transcript::Told told = transcript.take();
      return test(path, "top level", 1, [&] { return told.messages; });
    }
    transcript.take();
    import_itself(path, groups, *session);
    transcript.take();
    for (const auto& [line, run] : tests) run();
  }

  /// Examples say what who imports the file writes: `stats.mean(x)`; also of a
  /// file that defines what it is called, as `fft.fft(x)` shows.
  static void import_itself(const std::string& path,
                            const std::vector<ExampleGroup>& groups,
                            Session& session) {
    const std::string name = fs::path(path).stem().string();
    const auto is_written = [&](const std::string& code) {
      return std::ranges::any_of(groups, [&](const ExampleGroup& group) {
        return std::ranges::any_of(group.examples, [&](const Example& example) {
          return example.code.find(code) != std::string::npos;
        });
      });
    };
    if (!is_written(name + ".")) return;
    if (session.walk().global(name) && !is_written(name + "." + name + "("))
      return;
    const std::string file = fs::path(path).filename().string();
    if (const auto* program = session.check(
            path, fmt::format("import \"{}\" as {}\n", file, name)))
      session.run(*program);
  }

  void test_page(const std::string& path, const std::string& text) {
    pages_.push_back(std::make_unique<PageTests>(tests_of_page(text)));
    const PageTests& tests = *pages_.back();
    for (const PageProgram& program : tests.programs) {
      const Example& example = program.example;
      const std::string name = fmt::format("line {}", example.line);
      if (!wanted(path, name)) continue;
      test(path, name, example.line, [&] {
        Transcript transcript(open_, program.devices);
        if (!transcript.session()) return transcript.problem();
        Session& session = *transcript.session();
        std::string padded(static_cast<size_t>(example.line - 1), '\n');
        if (const auto* checked =
                session.check(path, std::move(padded) + example.code))
          session.run(*checked);
        const Transcript::Told told = transcript.take();
        return compare(example, told);
      });
    }
    if (tests.groups.empty()) return;
    Transcript transcript(open_, 0);
    for (const ExampleGroup& group : tests.groups) {
      if (!wanted(path, group.name)) continue;
      if (!transcript.session())
        return test(path, "devices", 1, [&] { return transcript.problem(); });
      test_group(path, group, transcript);
    }
  }

  void test_group(const std::string& path, const ExampleGroup& group,
                  Transcript& transcript) {
    test(path, group.name, group.examples[0].line, [&] {
      std::string failure;
      for (const Example& example : group.examples)
        failure += compare(example, transcript.run(path, example));
      return failure;
    });
  }

  /// What is wrong with an example; with `--update` it is told to be right.
  std::string compare(const Example& example, const Transcript::Told& told) {
    const std::string got = without_space(told.output + told.first_lines);
    if (got == without_space(example.expected)) return "";
    if (!options_.update || stop_requested())
      return difference(example, got) +
             (told.failed ? "\n" + told.messages : "");
    updated_.push_back(std::make_unique<Example>(example));
    replacements_.push_back({updated_.back().get(), got});
    return "";
  }

  int finish() {
    const auto failed = std::ranges::count_if(
        results_, [](const TestResult& r) { return !r.failure.empty(); });
    double seconds = 0;
    for (const TestResult& result : results_) seconds += result.seconds;
    if (results_.empty() && !stop_requested())
      tell_(options_.filter.empty()
                ? "no tests: they are `test \"name\" { ... }` and, in "
                  "documentation, `>>>`\n"
                : fmt::format("no test has `{}` in its name\n",
                              lang::visible(options_.filter)));
    else
      tell_(fmt::format("{} passed, {} failed, in {:.1f} s\n",
                        results_.size() - failed, failed, seconds));
    if (options_.junit) {
      if (const Status done = write_junit(); !done) {
        tell_(fmt::format("error: cannot write `{}`: {}\n",
                          lang::visible(*options_.junit),
                          done.error().message));
        return 1;
      }
    }
    if (stop_requested()) return stopped;
    return failed == 0 && !results_.empty() ? 0 : 1;
  }

  Status write_junit() const {
    const auto escaped = [](std::string_view text) {
      std::string out;
      for (const char c : text)
        if (c == '<')
          out += "&lt;";
        else if (c == '>')
          out += "&gt;";
        else if (c == '&')
          out += "&amp;";
        else if (c == '"')
          out += "&quot;";
        else if (static_cast<unsigned char>(c) >= ' ' || c == '\n')
          out += c;
      return out;
    };
    std::string out = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n";
    out += "<testsuites>\n";
    for (size_t begin = 0; begin < results_.size();) {
      size_t end = begin;
      size_t failures = 0;
      double seconds = 0;
      while (end < results_.size() &&
             results_[end].file == results_[begin].file) {
        failures += results_[end].failure.empty() ? 0 : 1;
        seconds += results_[end].seconds;
        ++end;
      }
      out += fmt::format(
          "  <testsuite name=\"{}\" tests=\"{}\" failures=\"{}\" "
          "time=\"{:.6f}\">\n",
          escaped(results_[begin].file), end - begin, failures, seconds);
      for (; begin < end; ++begin) {
        const TestResult& r = results_[begin];
        out += fmt::format(
            "    <testcase classname=\"{}\" name=\"{}\" line=\"{}\" "
            "time=\"{:.6f}\"",
            escaped(r.file), escaped(r.name), r.line, r.seconds);
        if (r.failure.empty())
          out += "/>\n";
        else
          out += fmt::format(
              ">\n      <failure message=\"failed\">{}</failure>\n"
              "    </testcase>\n",
              escaped(r.failure));
      }
      out += "  </testsuite>\n";
    }
    out += "</testsuites>\n";
    return write_text(*options_.junit, out);
  }

  const TestOptions& options_;
  const OpenSession& open_;
  const std::function<void(std::string_view)>& tell_;
  std::vector<TestResult> results_;
  std::vector<std::unique_ptr<PageTests>> pages_;
  std::vector<std::unique_ptr<Example>> updated_;
  std::vector<Replacement> replacements_;  // of the file
};

}  // namespace

Result<int> run_tests(const TestOptions& options, const OpenSession& open,
                      const std::function<void(std::string_view)>& tell) {
  return TestRun(options, open, tell).run();
}

}  // namespace unisono::host
