#pragma once
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "jit/ir/graph.h"
#include "jit/kernel/source_lines.h"
#include "jit/pipeline.h"
#include "jit/reference/reference.h"
#include "jit/target/code_text.h"
#include "runtime/execute/program.h"
#include "runtime/files/disk_cache.h"
#include "runtime/recorder.h"

namespace unisono::jit {

/// What a compilation says about itself, for `inspect` and for tests that
/// assert structure: "1 kernel, 1 all_reduce, 0 copies".
struct CompileStats {
  int kernels = 0;
  int copies = 0;
  int collectives = 0;
  double seconds = 0;
};

/// Watches compilations (those found in the cache, too, which are then done
/// again to be seen).
struct CompileObserver {
  AfterPass after_pass;
  std::function<void(const CodeText&)> dump;      // unset: nothing is rendered
  bool wants_llvm = true, wants_assembly = true;  // else they stay empty
  /// Not 0: kernels, LLVM and PTX are rendered as for this compute capability,
  /// whatever the program is compiled for.
  int capability = 0;
};

struct CompileOptions {
  /// Number of devices that the program runs on, as many as the map's mesh has.
  /// Where it has none they are in line, and the graph's collectives are over
  /// all of them, whatever the axis.
  int devices = 1;
  bool checked = true;
  /// What code they run.
  CodeTarget target = {};
  /// By input: it is the program's own, and its memory may be written to.
  /// Empty: none is.
  std::vector<bool> donated = {};
  /// By input: all devices have the same array there; the compiler sets it for
  /// a map. Empty: not known.
  std::vector<bool> same = {};
  /// All devices are this process's: on CPUs they have one memory, so what is
  /// the same on all of them may be there once.
  bool one_memory = true;
  /// Else so many are; 0: all.
  int own_devices = 0;
  /// Makes the calls of the graph's host_call nodes, with the device's position
  /// as the member.
  HostCall host_call;
  /// Told how long it took, or that the program was known, if there is one.
  Recorder* recorder = nullptr;
};

/// Called with the address and size of generated code, once for each step that
/// launches it; `sources` are the places in the program of what it computes.
using CodeObserver = std::function<void(const void* code, int64_t bytes,
                                        const std::vector<uint32_t>& sources)>;

struct CompilerOptions {
  /// Vectors have at most so many bytes (16, 32 or 64; 0: the widest that the
  /// processor has). For tests of the code that narrower processors get.
  int vector_bytes = 0;
  /// Where code for CPUs is kept for later processes; null: nowhere.
  std::shared_ptr<DiskCache> cache = nullptr;
  /// If set, code is compiled so that profilers and debuggers can name it.
  CodeObserver on_code = nullptr;
  /// If set, code for GPUs says which lines of the program it computes.
  SourceLines lines = nullptr;
};

/// Compiles graphs for this machine's CPU or for GPUs, and keeps what it
/// compiled in memory, bounded; the key is the printed graph of a program, or
/// the printed kernel. Thread-safe. LLVM is not touched before the first
/// compile.
class Compiler {
 public:
  explicit Compiler(CompilerOptions options = {});
  ~Compiler();
  /// The program of a map, or of a graph that every device runs on its own
  /// blocks: concrete, and optimised here. Fails with compile_failed; with
  /// out_of_memory where no memory holds one of its arrays; with cancelled
  /// where this thread's work is stopped (runtime/stop.h).
  Result<std::shared_ptr<const Program>> compile(const MemberGraph& map,
                                                 const CompileOptions& options,
                                                 CompileStats* stats = nullptr);
  Result<std::shared_ptr<const Program>> compile(const ir::Graph& graph,
                                                 const CompileOptions& options,
                                                 CompileStats* stats = nullptr);
  /// Programs compiled and kernels generated so far (not those found in the
  /// cache): what tests of "compiled once" read.
  int64_t programs_compiled() const;
  int64_t kernels_generated() const;
  /// Kernels for CPUs whose code was found on disk.
  int64_t kernels_found() const;
  /// Not while another thread compiles.
  void observe(CompileObserver observer);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace unisono::jit
