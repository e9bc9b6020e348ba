#include "host/session.h"

#include <new>
#include <optional>
#include <utility>

#include "lang/syntax/parser.h"
#include "runtime/stop.h"

namespace unisono::host {

namespace {

std::unique_ptr<Runtime> open_runtime(SessionOptions& options) {
  if (options.devices.empty())
    return std::make_unique<Runtime>(options.cpu_devices, options.workers,
                                     options.memory_limit);
  return std::make_unique<Runtime>(std::move(options.devices), options.workers);
}

}  // namespace

Session::Session(SessionOptions options) : runtime_(open_runtime(options)) {
  machine_.runtime = runtime_.get();
  machine_.compiler = &compiler_;
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
  walk_ = std::make_unique<lang::Walk>(machine_, sources_, diagnostics_);
}

Session::~Session() = default;

const lang::Program* Session::check(std::string path, std::string text) {
  const size_t errors = diagnostics_.error_count();
  const lang::SourceFile& file = sources_.add(std::move(path), std::move(text));
  const StopScope stop(machine_.stop);
  try {
    lang::ParseResult parsed = lang::parse(file, diagnostics_);  // text to AST
    programs_.push_back(std::move(parsed.program));
  } catch (const std::bad_alloc&) {
    diagnostics_.report(lang::Code::out_of_memory, lang::Span{&file, 0, 0},
                        "there is not enough memory on the host for its tree");
  } catch (const std::exception& exception) {
    diagnostics_.add(
        lang::internal_error(lang::Span{&file, 0, 0}, exception.what()));
  }
  if (diagnostics_.error_count() > errors) return nullptr;
  const lang::Program& program = *programs_.back();
  return walk_->check(program) ? &program : nullptr;  // types and sizes
}

bool Session::run(const lang::Program& program) {
  return walk_->run(program);  // array IR, machine code, devices
}

bool Session::run_and_print(const lang::Program& program) {
  std::optional<lang::Value> last;
  if (!walk_->run(program, &last)) return false;
  if (!last || last->is<lang::NoneValue>()) return true;
  return walk_->print(*last);
}

void Session::mute() {
  machine_.output = [](std::string_view) {};
}

}  // namespace unisono::host
