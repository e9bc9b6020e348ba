#pragma once
// One program's life, from text to output.
#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "jit/compile.h"
#include "lang/context/function.h"
#include "lang/context/walk.h"
#include "lang/source/diagnostics.h"
#include "lang/source/source.h"
#include "lang/syntax/ast.h"
#include "lang/syntax/parser.h"
#include "runtime/execute/program.h"
#include "runtime/files/disk_cache.h"
#include "runtime/tuning/tuning.h"

namespace unisono::host {

struct SessionOptions {
  int cpu_devices = 1;  // 1 ... 64
  /// These instead of CPU devices, if there are any.
  std::vector<std::unique_ptr<Device>> devices;
  /// The machine, which sessions may share; null: one of its own, of the
  /// devices above.
  std::shared_ptr<Runtime> runtime = nullptr;
  /// Likewise. `on_code` is then not used.
  std::shared_ptr<jit::Compiler> compiler = nullptr;
  /// Where the own compiler keeps code for later processes; null: nowhere.
  std::shared_ptr<DiskCache> cache = nullptr;
  bool reference_only = false;
  bool checked = true;
  std::vector<std::string> arguments;
  /// Programs are checked for these arguments; else for any.
  bool arguments_known = true;
  std::function<void(std::string_view)> output;
  const std::atomic<bool>* stop = nullptr;
  bool compile_only = false;  // see lang::Machine
  int workers = 0;            // threads; 0: one per processor
  int64_t memory_limit = 0;   // bytes on all devices; 0: 80 % of the machine's
  /// How long devices wait at a collective for one that computes; 0: for ever.
  std::chrono::milliseconds watchdog{60'000};
  /// A statement's array work from this many bytes on is compiled.
  int64_t compile_threshold = tuning().least_compiled_bytes;
  bool performance_notes = true;
  bool colour = false;  // where the output goes shows colours
  /// See lang::Walk::interactive.
  bool interactive = false;
  /// See lang::Machine.
  std::function<void(const lang::LoopProgress&)> progress = nullptr;
  std::function<void(std::string_view type, std::string_view bytes)>
      show_picture = nullptr;
  /// See lang::Machine.
  bool files = true;
  std::function<Result<std::string>(const std::string& path)> import = nullptr;
  Recorder* recorder = nullptr;  // told of what the devices do
  /// Told of code for this machine's CPU: where it lies, its bytes, and the
  /// line of the program that it computes. If set, code is compiled for a
  /// profile, and code for GPUs names lines for NVIDIA's tools.
  std::function<void(const void* code, int64_t bytes, const std::string& line)>
      on_code = nullptr;
  /// For tests: see RunOptions.
  const std::function<bool(int device)>* lose_device = nullptr;
  /// For tests: see lang::Machine.
  const std::function<void()>* disturb = nullptr;
};

/// The devices that the options ask for, which it takes out of them.
std::shared_ptr<Runtime> open_runtime(SessionOptions& options);

/// Devices, a compiler and the names defined so far. Not thread-safe.
class Session {
 public:
  explicit Session(SessionOptions options);
  ~Session();

  /// Reads, parses and checks a program; nothing runs. The program lives as
  /// long as the session. Null if there were errors (see diagnostics()). `last`
  /// is as in lang::Walk.
  const lang::Program* check(std::string path, std::string text,
                             std::optional<lang::Value>* last = nullptr);
  /// Runs a program that `check` gave. False when an error stopped it (see
  /// diagnostics()). `last` is as in lang::Walk.
  bool run(const lang::Program& program,
           std::optional<lang::Value>* last = nullptr);
  /// Like run, and prints the value of the last statement, if it is an
  /// expression with a value other than `none`.
  bool run_and_print(const lang::Program& program);

  /// Runs a block of a program that ran: see lang::Walk::run_block.
  bool run_block(const lang::Program& program, const lang::ToolStmt& block);
  /// Other devices. What names hold is brought to the first of them; names that
  /// hold anything but arrays and host values (functions, modules, axes) are
  /// defined again by their statements. Gives the names that are lost, as that
  /// was not possible; diagnostics() says why. `options` are for devices alone.
  std::vector<std::string> change_devices(SessionOptions options);
  /// The statement of a program, or module, that stands at a place; null if
  /// there is none.
  const lang::Stmt* statement_at(lang::Span where) const;

  /// Defines a function that the host performs. `declaration` is its head, with
  /// the types of all parameters and of the result, if it has one: `def clip(x:
  /// f32[n], most: f32) -> f32[n]`. Where it is called it is like any function,
  /// in compiled code and in maps, too; `call` and `pure` are as in
  /// lang::HostFunction. A derivative of it is an error, unless a decorator
  /// before the `def` gives a rule, `@custom_jvp(rule)`. False if the
  /// declaration is wrong (diagnostics()).
  bool define(std::string declaration, bool pure,
              decltype(lang::HostFunction::call) call);

  /// Throws the program's output away from now on.
  void mute();
  /// SessionOptions::compile_only
  bool runs_nothing() const { return machine_.compile_only; }

  lang::Diagnostics& diagnostics() { return diagnostics_; }
  lang::Walk& walk() { return *walk_; }
  /// What may change between programs.
  lang::Machine& machine() { return machine_; }
  Runtime& runtime() { return *runtime_; }
  jit::Compiler& compiler() { return *compiler_; }
  lang::SourceMap& sources() { return sources_; }
  /// One place of the program that a kernel computes, the last of `sources`
  /// that is in the program itself: "train.uni:12:5 x * 2".
  std::string kernel_line(const std::vector<uint32_t>& sources) const;

 private:
  /// What `parse` gives of a text, which lives as long as the session; null if
  /// there were errors.
  const lang::Program* parsed(std::string path, std::string text,
                              lang::ParseResult parse(const lang::SourceFile&,
                                                      lang::Diagnostics&));

  std::shared_ptr<Runtime> runtime_;
  std::shared_ptr<jit::Compiler> compiler_;
  lang::Machine machine_;
  lang::SourceMap sources_;
  lang::Diagnostics diagnostics_;
  std::vector<std::unique_ptr<lang::Program>> programs_;
  std::unique_ptr<lang::Walk> walk_;
};

}  // namespace unisono::host
