#include "host/session/session.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <new>
#include <optional>
#include <system_error>
#include <utility>

#include "lang/context/under_way.h"
#include "lang/source/stdlib.h"
#include "lang/syntax/parser.h"
#include "runtime/cuda/nvtx.h"
#include "runtime/stop.h"

namespace unisono::host {

namespace {

/// The line of a place that has a number, as debuggers find it.
jit::SourceLine line_of(Session& session, uint32_t source) {
  const lang::Span span = session.walk().source_span(source);
  if (!span) return {};
  const lang::SourceFile::Place place = span.file->place(span.begin);
  std::error_code error;
  const std::filesystem::path path(span.file->path());
  const auto whole = std::filesystem::exists(path, error)
                         ? std::filesystem::absolute(path, error)
                         : path;
  return {whole.string(), place.line, place.column};
}

std::shared_ptr<jit::Compiler> open_compiler(Session& session,
                                             SessionOptions& options) {
  if (options.compiler) return std::move(options.compiler);
  jit::CompilerOptions own{.cache = std::move(options.cache)};
  if (options.on_code) {
    own.on_code = [&session, on_code = std::move(options.on_code)](
                      const void* code, int64_t bytes,
                      const std::vector<uint32_t>& sources) {
      on_code(code, bytes, session.kernel_line(sources));
    };
    own.lines = [&session](uint32_t place) { return line_of(session, place); };
  }
  return std::make_shared<jit::Compiler>(std::move(own));
}

/// Ranges for NVIDIA's tools, with the lines of the program.
class NamedRanges final : public Ranges {
 public:
  NamedRanges(const Session& session, const cuda::Nvtx& nvtx)
      : session_(session), nvtx_(nvtx) {}
  void begin(const std::vector<uint32_t>& places) override {
    nvtx_.push(session_.kernel_line(places).c_str());
  }
  void end() override { nvtx_.pop(); }

 private:
  const Session& session_;
  const cuda::Nvtx& nvtx_;
};

}  // namespace

std::shared_ptr<Runtime> open_runtime(SessionOptions& options) {
  if (options.runtime) return std::move(options.runtime);
  if (options.devices.empty())
    return std::make_shared<Runtime>(options.cpu_devices, options.workers,
                                     options.memory_limit);
  return std::make_shared<Runtime>(std::move(options.devices), options.workers);
}

Session::Session(SessionOptions options)
    : runtime_(open_runtime(options)),
      compiler_(open_compiler(*this, options)) {
  machine_.runtime = runtime_.get();
  machine_.compiler = compiler_.get();
  machine_.reference_only = options.reference_only;
  machine_.checked = options.checked;
  machine_.compile_threshold = options.compile_threshold;
  machine_.arguments = std::move(options.arguments);
  machine_.arguments_known = options.arguments_known;
  machine_.output = std::move(options.output);
  machine_.stop = options.stop;
  machine_.compile_only = options.compile_only;
  machine_.watchdog = options.watchdog;
  machine_.lose_device = options.lose_device;
  machine_.disturb = options.disturb;
  machine_.performance_notes = options.performance_notes;
  machine_.recorder = options.recorder;
  machine_.colour = options.colour;
  machine_.progress = std::move(options.progress);
  machine_.show_picture = std::move(options.show_picture);
  machine_.files = options.files;
  machine_.import = std::move(options.import);
  walk_ = std::make_unique<lang::Walk>(machine_, sources_, diagnostics_);
  walk_->interactive = options.interactive;
  if (const cuda::Nvtx* nvtx = cuda::Nvtx::open())
    lang::set_ranges(*walk_, std::make_unique<NamedRanges>(*this, *nvtx));
}

Session::~Session() = default;

const lang::Program* Session::parsed(
    std::string path, std::string text,
    lang::ParseResult parse(const lang::SourceFile&, lang::Diagnostics&)) {
  const size_t errors = diagnostics_.error_count();
  const lang::SourceFile& file = sources_.add(std::move(path), std::move(text));
  const StopScope stop(machine_.stop);
  try {
    lang::ParseResult parsed = parse(file, diagnostics_);  // text to AST
    programs_.push_back(std::move(parsed.program));
  } catch (const std::bad_alloc&) {
    diagnostics_.report(lang::Code::out_of_memory, lang::Span{&file, 0, 0},
                        "there is not enough memory on the host for its tree");
  } catch (const std::exception& exception) {
    diagnostics_.add(
        lang::internal_error(lang::Span{&file, 0, 0}, exception.what()));
  }
  if (diagnostics_.error_count() > errors) return nullptr;
  return programs_.back().get();
}

const lang::Program* Session::check(std::string path, std::string text,
                                    std::optional<lang::Value>* last) {
  const lang::Program* program =
      parsed(std::move(path), std::move(text), lang::parse);
  if (!program) return nullptr;
  return walk_->check(*program, last) ? program : nullptr;  // types and sizes
}

bool Session::define(std::string declaration, bool pure,
                     decltype(lang::HostFunction::call) call) {
  const lang::Program* program =
      parsed("<host>", std::move(declaration), lang::parse_declaration);
  if (!program) return false;
  lang::HostFunction function{
      .declaration = lang::as<lang::DefStmt>(*program->statements[0]),
      .pure = pure,
      .call = std::move(call)};
  machine_.host_functions.push_back(
      std::make_shared<const lang::HostFunction>(std::move(function)));
  return walk_->check(*program) && walk_->run(*program);
}

bool Session::run(const lang::Program& program,
                  std::optional<lang::Value>* last) {
  return walk_->run(program, last);  // array IR, machine code, devices
}

bool Session::run_and_print(const lang::Program& program) {
  std::optional<lang::Value> last;
  if (!run(program, &last)) return false;
  if (!last || last->is<lang::NoneValue>()) return true;
  return walk_->print(*last);
}

bool Session::run_block(const lang::Program& program,
                        const lang::ToolStmt& block) {
  return walk_->run_block(program, block);
}

std::string Session::kernel_line(const std::vector<uint32_t>& sources) const {
  constexpr size_t most = 48;
  lang::Span shown;
  for (uint32_t source : sources) {
    const lang::Span span = walk_->source_span(source);
    const bool better = span && (!shown || !lang::is_in_stdlib(span));
    if (better) shown = span;
  }
  if (!shown) return "(no place)";
  std::string_view text = shown.text();
  text = text.substr(0, text.find('\n'));
  const bool cut = text.size() > most;
  size_t end = std::min(text.size(), most);
  while (cut && end > 0 && (text[end] & 0xC0) == 0x80) --end;
  return fmt::format("{} {}{}", lang::to_string(shown), text.substr(0, end),
                     cut ? "..." : "");
}

void Session::mute() {
  machine_.output = [](std::string_view) {};
}

}  // namespace unisono::host
