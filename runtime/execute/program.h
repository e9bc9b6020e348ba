#pragma once
// A compiled program: what each device does, in order. The same steps run on
// every device, on that device's own slots; only collectives meet.
#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "runtime/array.h"
#include "runtime/device.h"
#include "runtime/dtype.h"
#include "runtime/grid.h"
#include "runtime/result.h"

namespace unisono {

/// Written by compiled code when a checked operation fails: the error of the
/// first member, and of its errors that of the check with the lowest rank. One
/// thread writes at a time. Layout is known to the emitter.
struct ErrorWord {
  enum Code : int32_t {
    none = 0,
    integer_division_by_zero = 1,
    index_out_of_bounds = 2,  // value = index, bound = size
    negative_exponent = 3,    // value = exponent
  };
  std::atomic<int32_t> code{0};
  uint32_t source = 0;
  int64_t value = 0;
  int64_t bound = 0;
  int64_t member = 0;  // among those of the device
  uint32_t rank = 0;   // of the check in its kernel
};

/// The error that a failed check is reported as, wherever it ran; without
/// place, device and member.
Error checked_error(ErrorWord::Code code, int64_t value, int64_t bound);

/// What a kernel is called with besides its buffers. Layout is known to the
/// emitter. A kernel whose loops may run long reads both flags at their
/// back-edges and returns when one is set; neither is ever null.
struct KernelContext {
  ErrorWord* error;
  const std::atomic<bool>* stop;    // the whole run shall stop
  int32_t device_position;          // along the program's axis
  const std::atomic<bool>* cancel;  // another device failed: this one's work
                                    // is no longer wanted
};

/// A compiled kernel: does units begin ... end-1 of its outermost parallel
/// loop. Never unwinds. buffers[i] is the kernel's i-th argument.
using KernelFunction = void (*)(void* const* buffers, int64_t begin,
                                int64_t end, const KernelContext* context);

/// A place for one array on each device. Offset into the device's arena,
/// unless it is an input or an output (own buffers) or a constant.
struct Slot {
  enum class Home : uint8_t { arena, input, output, constant };
  Home home = Home::arena;
  int64_t bytes = 0;
  int64_t offset = 0;  // arena: bytes from its start, 64-byte aligned
  int index = 0;       // input, output, constant: which
  /// All devices have the same array at the same place, the first one's. Only
  /// collectives and steps that are done once write it. Never a constant, and
  /// only where one device sees the other's memory: on CPUs.
  bool shared = false;
};
using SlotId = int;

struct Step;
using Steps = std::vector<Step>;

struct LaunchStep {
  KernelFunction function = nullptr;
  std::string name;
  std::vector<SlotId> arguments;
  int64_t units = 1;  // the parallel loop's length
  int64_t grain = 1;  // fewer units than this are not worth another worker
  std::shared_ptr<const GridLaunch> grid = nullptr;  // on GPUs, instead
  /// The places in the program of what it computes, ascending.
  std::vector<uint32_t> sources = {};
  /// What the program asks of it, however it is done: operations on floats (an
  /// fma is two), and bytes of arrays, each element that is read or written
  /// once.
  double flops = 0;
  int64_t bytes = 0;
};
/// Dense copy of the first `bytes` of a slot. Here and below, `from` and `to`
/// do not overlap, except that those of an all_reduce may be one slot.
struct CopyStep {
  SlotId from = 0, to = 0;
  int64_t bytes = 0;
};
enum class ReduceOp : uint8_t { sum, max, min };
/// Lists of devices, each device in one: those of a group meet by themselves,
/// in its order. No groups: all meet.
using Groups = std::vector<std::vector<int>>;

/// What devices do together. `elements` are those that one device has for one
/// other: all of an operand that all get, a part of one that is shared out.
struct CollectiveStep {
  enum class Kind : uint8_t {
    /// to = the combination of all devices' `from`, in the fixed tree over
    /// positions: neighbours first, in aligned blocks of powers of two.
    all_reduce,
    /// to (devices * elements) = all devices' `from`, stacked in order. Here
    /// and in the next two all groups are of one size.
    all_gather,
    /// to of the j-th device = the combination of all devices' elements j *
    /// `elements` and on, in the tree of all_reduce.
    reduce_scatter,
    /// to of the j-th device = part j of every device's `from`, in order.
    all_to_all,
    /// to = `from` of the device that sends here, zeros if none.
    permute,
  };
  Kind kind = Kind::all_reduce;
  SlotId from = 0, to = 0;
  DType dtype = DType::F32;
  int64_t elements = 0;
  ReduceOp op = ReduceOp::sum;  // of those that combine
  uint32_t source = 0;
  Groups groups = {};
  /// permute: (source, destination) positions, each destination at most once.
  std::vector<std::pair<int, int>> pairs = {};
  /// all_reduce on GPUs: kernels whose arguments are the addresses of all
  /// operands, then of results. `full` combines `part` elements for all
  /// devices, `last` those that remain; `own` all elements for one device. How
  /// they are used depends on sizes and on who reaches whom
  /// (queue_collective.cpp).
  struct Kernels {
    int64_t part = 0;
    std::shared_ptr<const GridLaunch> full, last, own;
  };
  Kernels kernels = {};

  int64_t bytes() const { return elements * byte_size(dtype); }
};
/// while (run(condition), slot `flag` holds a true bool) run(body). Where it is
/// known how often that is, devices need not ask.
struct LoopStep {
  std::shared_ptr<const Steps> condition, body;
  SlotId flag = 0;
  int64_t turns = -1;  // not known
};
struct IfStep {
  SlotId flag = 0;
  std::shared_ptr<const Steps> then_steps, else_steps;
};
/// Calls back on the host with copies of the slots' bytes, in program order
/// on each device, one device at a time, and between two collectives first all
/// calls of device 0, then those of device 1, ...: the same order in every run
/// (unless it is not `in_turn`).
struct HostCallStep {
  std::vector<SlotId> arguments;
  std::vector<int64_t> bytes;
  std::vector<SlotId> results = {};
  std::vector<int64_t> result_bytes = {};
  int call = 0;  // index into Program::host_calls
  /// By position: whose call it is, which comes no later in this order; what
  /// that gives is this device's result, too. Empty: each one's own.
  std::vector<int> callers = {};
  /// False: what is called can neither fail nor be seen, and each device calls
  /// for itself, so devices call at once. It is worth so many workers.
  bool in_turn = true;
  float work = 0;
};

struct Step {
  std::variant<LaunchStep, CopyStep, CollectiveStep, LoopStep, IfStep,
               HostCallStep>
      what;
  /// A launch or copy that one device does for all of them, when all have come
  /// to it, and before any goes on. What it writes is shared, and what it reads
  /// is the same on all devices.
  bool once = false;
};

/// `arguments` are copies of the operands, `results` zeros to be replaced;
/// `position` is the device's.
using HostCallback = std::function<Status(
    int position, const std::vector<std::vector<uint8_t>>& arguments,
    std::vector<std::vector<uint8_t>>& results)>;

class ProgramCache;

/// What runs of a program leave for the next one: its steps in a form that is
/// quick to execute, constants on devices, working memory. A copy starts empty.
class ProgramCacheHandle {
 public:
  ProgramCacheHandle();
  ProgramCacheHandle(const ProgramCacheHandle&) : ProgramCacheHandle() {}
  ProgramCacheHandle& operator=(const ProgramCacheHandle&);
  ~ProgramCacheHandle();
  const std::shared_ptr<ProgramCache>& get() const { return cache_; }

 private:
  std::shared_ptr<ProgramCache> cache_;
};

/// Immutable after compilation; shared by calls. Thread-safe.
struct Program {
  std::vector<Slot> slots;
  std::vector<SlotId> inputs, outputs;
  std::vector<std::vector<uint8_t>> constants;  // copied to each device once
  std::vector<HostCallback> host_calls;
  int64_t arena_bytes = 0;         // of each device
  int64_t shared_arena_bytes = 0;  // of all together, for shared slots
  /// What messages say that there is no memory for: the arena's largest array,
  /// and each of the program's outputs that has memory of its own.
  struct Contents {
    std::string what;  // "f32[4, 3]"; empty: not known
    uint32_t source = 0;
  };
  Contents in_arena;
  std::vector<Contents> in_outputs;
  Steps steps;
  int devices = 1;
  /// Inputs whose memory outputs are written to (memory_plan.h): their blocks
  /// are nobody else's.
  std::vector<int> overwritten;
  /// Updates of large arrays that copy the array in each turn of a loop, as it
  /// is still read afterwards: their places in the program.
  struct CopiedUpdate {
    uint32_t source = 0;
    int64_t bytes = 0;
  };
  std::vector<CopiedUpdate> copied_updates;
  /// Keeps the machine code alive.
  std::shared_ptr<void> code;
  ProgramCacheHandle cache;
};

/// What code the devices of a program run.
struct CodeTarget {
  DeviceKind kind = DeviceKind::cpu;
  /// GPUs: their compute capabilities (75 is sm_75), each once, ascending.
  std::vector<int> capabilities = {};

  bool operator==(const CodeTarget&) const = default;
  /// A key: another text for another target.
  std::string to_string() const;
};
/// Of devices of one kind (CHECK), at least one.
CodeTarget code_target(const std::vector<Device*>& devices);

class Runtime;

/// A run whose devices may still be at work. Its program and its devices
/// outlive it.
class RunUnderWay {
 public:
  virtual ~RunUnderWay() = default;
  /// Waits until it is over, and says what failed, as the run itself would
  /// have. Called once.
  virtual std::optional<Error> wait() = 0;
};

/// Whether the host decides by what devices compute before a run is over, or
/// does something with it.
bool asks_host(const Program& program);

struct RunOptions {
  /// Set by another thread to stop: the run fails with `cancelled`.
  const std::atomic<bool>* stop = nullptr;
  /// A device that others wait for at a collective, and that has been computing
  /// for so long, is taken to never arrive: the run fails with `stalled`. 0:
  /// they wait for ever.
  std::chrono::milliseconds watchdog{0};
  /// For tests: asked before each instruction of a device; true: it is lost
  /// there. Called from several threads.
  const std::function<bool(int device)>* lose_device = nullptr;
  /// Told of what each device does, if there is one.
  class Recorder* recorder = nullptr;
  /// Told of each launch while it is put on a device's queue, if there is one.
  class Ranges* ranges = nullptr;
  /// Where devices can do it, `run` may return with the outputs while they are
  /// still at work, and then puts here what is to be waited for before anything
  /// is made of these that others see. Null: it never does.
  std::unique_ptr<RunUnderWay>* under_way = nullptr;
};

/// Runs `program` on `devices` (as many as it is for, 64 of them here at most):
/// blocks[i][d] is input i's block on device d; of a shared input all devices
/// read the first one's. Everything is allocated before the first step. Gives
/// the outputs' blocks in the same form, of a shared one the same block for all
/// devices; an output that is an input is that input's block. On an error on
/// one device those after it stop, those before it go on to the next
/// collective, and the error of the first device that has one is returned: the
/// same one in every run. May be called from several threads at once, and from
/// a host callback.
Result<std::vector<DeviceBlocks>> run(Runtime& runtime, const Program& program,
                                      const std::vector<Device*>& devices,
                                      const std::vector<DeviceBlocks>& blocks,
                                      const RunOptions& options = {});

/// The same for callers whose inputs lie apart: *inputs[i] are the blocks of
/// input i, which the caller holds until the run is over.
Result<std::vector<DeviceBlocks>> run(
    Runtime& runtime, const Program& program,
    const std::vector<Device*>& devices,
    std::span<const DeviceBlocks* const> inputs, const RunOptions& options);

/// Runs a program of one CPU device on memory of the caller's: inputs[i] has
/// the dense elements of input i, and outputs[i] gets those of output i; both
/// are aligned to an element, and outputs lie apart from all else. Otherwise
/// like `run`, and quicker.
Status run_in_place(Runtime& runtime, const Program& program, Device& device,
                    const void* const* inputs, void* const* outputs,
                    const RunOptions& options = {});

/// The machine: its devices, and the pool of workers that CPU devices share.
/// Owns its devices; arrays must not outlive it, and no run may be under way
/// when it ends. Thread-safe.
class Runtime {
 public:
  /// `cpu_devices` in 1 ... 64; `workers` 0 means one per processor;
  /// `memory_limit`, of all devices together, 0 means 80 % of the machine's.
  explicit Runtime(int cpu_devices, int workers = 0, int64_t memory_limit = 0);
  /// The same, with a pool that other machines use, too.
  Runtime(int cpu_devices, std::shared_ptr<class Pool> pool,
          int64_t memory_limit);
  /// Devices of another kind, at least one, with Device::index from 0 on.
  explicit Runtime(std::vector<std::unique_ptr<Device>> devices,
                   int workers = 0);
  ~Runtime();
  const std::vector<Device*>& devices() const { return device_list_; }
  class Pool& pool() { return *pool_; }
  class Watchdog& watchdog() { return *watchdog_; }
  /// Remembers a program's cache, whose device memory goes before the devices.
  void keep(const std::shared_ptr<ProgramCache>& cache);
  /// Copies of arrays, which go where a device is short of memory.
  class CopyShelf& copies() { return *copies_; }
  /// While nothing runs: devices give back memory that they keep for later.
  void give_back_unused();

 private:
  void forget_all();
  std::shared_ptr<class Pool> pool_;
  std::unique_ptr<class MemoryBudget> budget_;
  std::unique_ptr<class Watchdog> watchdog_;
  std::unique_ptr<class CopyShelf> copies_;
  std::vector<std::unique_ptr<Device>> owned_;
  std::vector<Device*> device_list_;
  std::mutex caches_mutex_;
  std::vector<std::weak_ptr<ProgramCache>> caches_;
};

}  // namespace unisono
