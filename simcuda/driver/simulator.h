#pragma once
// The simulated driver's state. One mutex guards all of it; it is released
// while an operation executes. Handles are the addresses of objects that are
// looked up before they are used, so a wrong handle is an error, not a crash.
#include <array>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <random>
#include <string>
#include <thread>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "simcuda/machine/device_memory.h"
#include "simcuda/machine/launch.h"
#include "simcuda/machine/operation_races.h"
#include "simcuda/machine/topology.h"
#include "simcuda/machine/workers.h"
#include "simcuda/opcodes/decode.h"

namespace simcuda {

using namespace unisono::cuda;

/// The functions of the driver, by their name in runtime/cuda/driver.def.
enum class Entry : uint16_t {
#define CUDA_FUNCTION(name, symbol, since, parameters) name,
#include "runtime/cuda/driver.def"
  count,
};
struct EntryRow {
  const char* name;
  const char* symbol;
  int since;
};
const EntryRow& entry_row(Entry entry);

class Simulator;
struct DeviceState;
struct Operation;
using OperationPtr = std::shared_ptr<Operation>;

/// An object that a caller makes and has to give back.
struct Owned {
  /// The caller tried to give it back, and was refused, as happens when the
  /// context is lost.
  bool given_back = false;
};

/// What a call gives back: the object of a handle, or a device's context.
struct Returned {
  Returned() = default;
  Returned(const void* handle) : handle(handle) {}         // NOLINT: implicit
  Returned(DevicePointer pointer)                          // NOLINT: implicit
      : handle(reinterpret_cast<const void*>(pointer)) {}  // NOLINT
  static Returned context(Device device) {
    Returned returned;
    returned.context_of = device;
    return returned;
  }
  const void* handle = nullptr;
  Device context_of = -1;
};

/// Why an operation failed; success when it did not.
struct Failure {
  Code code = success;
  std::string text;
};

/// What an operation does, as often as it is executed.
struct Work {
  std::string what;  // "memcpy of 400 bytes", "kernel `add`"
  DeviceState* device = nullptr;
  std::function<Failure()> run;                     // or null, and then:
  std::function<std::unique_ptr<Launch>()> launch;  // both null: a marker
  /// Of `run`: whether it can be executed yet, which is another process's
  /// doing; null: always.
  std::function<bool()> may_run = {};
  std::vector<MemoryUse> uses;  // of `run`; a launch finds out its own
  /// Of a copy: the devices whose memory it reads and writes.
  std::array<int, 2> memory_of = {host_device, host_device};
};

/// One execution of a Work, in the order of its stream.
struct Operation {
  enum class State : uint8_t { waiting, ready, running, done };
  uint64_t number = 0;
  uint64_t stream = 0;  // the number of its stream
  std::shared_ptr<const Work> work;
  State state = State::waiting;
  /// It was queued on a device that is lost now, or waits for what was: the
  /// bytes that it would have made are not there. What is queued behind it is
  /// dropped, too, until the host has waited for it; on devices that are well
  /// only kernels are, and copies of the lost one's memory, so that memory
  /// begins and ends, and the host gets what it asks for.
  bool dropped = false;
  bool host_waited = false;
  std::vector<Operation*> before;  // that must be done first, and are not yet
  std::vector<OperationPtr> dependents;
  std::unique_ptr<Launch> launch;   // null before it has begun
  const bool* interrupt = nullptr;  // of the stream, when it was put there
  OperationTracePtr trace;          // where races are looked for
  std::chrono::steady_clock::time_point end;
};

struct GraphObject : Owned {
  struct Node {
    std::shared_ptr<const Work> work;
    std::vector<size_t> after;
  };
  std::vector<Node> nodes;
};

/// A capture that is under way, on one or several streams.
struct Capture {
  GraphObject graph;
  CaptureMode mode = CaptureMode::global;
  std::thread::id thread;
  bool invalidated = false;
};
using CapturePtr = std::shared_ptr<Capture>;

struct StreamObject : Owned {
  DeviceState* device = nullptr;
  uint64_t number = 0;
  bool blocking = true;  // waits for the legacy stream, which waits for this
  int priority = 0;
  OperationPtr last;
  OperationPtr last_free;  // the last free of stream-ordered memory
  CapturePtr capture;
  bool is_origin = false;
  std::vector<size_t> frontier;  // nodes of the capture before the next one
  const bool* interrupt = nullptr;
};

struct EventObject : Owned {
  DeviceState* device = nullptr;
  unsigned flags = 0;
  OperationPtr recorded;
  CapturePtr capture;  // recorded in a capture, behind these nodes
  std::vector<size_t> frontier;
};

struct ModuleObject;
struct FunctionObject {
  ModuleObject* module = nullptr;
  std::shared_ptr<Kernel> kernel;
  int max_dynamic_shared = 48 << 10;
  int carveout = -1;
};
struct ModuleObject : Owned {
  DeviceState* device = nullptr;
  int target = 0;
  int ptx_version = 0;
  std::map<std::string, std::unique_ptr<FunctionObject>> functions;
  std::map<std::string, std::shared_ptr<Allocation>> variables;
};

/// A set of devices, which kernels on other threads may ask.
class DeviceSet {
 public:
  bool has(int device) const { return bits_.load() >> device & 1; }
  /// False: it was in already.
  bool add(int device) {
    return !(bits_.fetch_or(uint64_t{1} << device) >> device & 1);
  }
  /// False: it was not in.
  bool remove(int device) {
    return bits_.fetch_and(~(uint64_t{1} << device)) >> device & 1;
  }
  void clear() { bits_ = 0; }

 private:
  std::atomic<uint64_t> bits_{0};
};

struct PoolObject : Owned {
  DeviceState* device = nullptr;
  bool is_default = false;
  uint64_t threshold = 0;  // bytes to keep when all is free
  uint64_t used = 0, used_high = 0;
  uint64_t reserved = 0, reserved_high = 0;
  int reuse[3] = {1, 1, 1};
  DeviceSet readers, writers;  // other devices
  uint64_t max_size = 0;
};

struct ExecObject : Owned {
  DeviceState* device = nullptr;
  GraphObject graph;
  OperationPtr last;  // of its last launch; launches follow each other
};

struct LinkObject : Owned {
  DeviceState* device = nullptr;
  std::string text;
  std::vector<char> image;
  std::function<void(const std::string&)> log;  // gets messages; may be null
};

/// A device, its primary context, and what its kernels see.
struct DeviceState final : MemoryView {
  Simulator* simulator = nullptr;
  int number = 0;
  DeviceModel model;
  int retained = 0;
  int releases_refused = 0;
  unsigned flags = 0;
  Code sticky = success;  // the error to which the context was lost
  std::string sticky_text;
  DeviceSet peers;  // whose memory is mapped
  PoolObject default_pool;
  PoolObject* pool = nullptr;
  StreamObject legacy;
  std::vector<OperationPtr> orphans;  // the last ones of destroyed streams
  uint64_t used = 0;       // bytes, of device memory and reserved by pools
  uint64_t allocated = 0;  // bytes, ever: for the fault plan
  uint64_t operations = 0;
  size_t limits[3] = {1024, 1 << 20, 8 << 20};
  std::atomic<const bool*> interrupt{nullptr};  // of the stream that has one

  Context handle() { return reinterpret_cast<Context>(this); }
  DeviceMemory& memory() override;
  int device() const override { return number; }
  bool may_read(const Allocation& allocation) const override;
  bool may_write(const Allocation& allocation) const override;
  void report(const std::string& finding) override;
  bool strict_reads() const override;
};

/// One simulation: there is one in the process at a time.
class Simulator {
 public:
  explicit Simulator(Configuration configuration);
  ~Simulator();

  const Configuration configuration;
  std::mutex mutex;
  bool initialised = false;
  DeviceMemory memory;
  Workers workers;
  std::vector<std::unique_ptr<DeviceState>> devices;

  // Objects by their handles.
  std::unordered_map<void*, std::unique_ptr<StreamObject>> streams;
  std::unordered_map<void*, std::unique_ptr<EventObject>> events;
  std::unordered_map<void*, std::unique_ptr<ModuleObject>> modules;
  std::unordered_map<void*, FunctionObject*> functions;
  std::unordered_map<void*, std::unique_ptr<PoolObject>> pools;
  std::unordered_map<void*, std::unique_ptr<GraphObject>> graphs;
  std::unordered_map<void*, std::unique_ptr<ExecObject>> execs;
  std::unordered_map<void*, std::unique_ptr<LinkObject>> links;
  std::vector<std::weak_ptr<Capture>> captures;

  // scheduler.cpp. All are called with `lock` held, and release it while they
  // execute operations.
  using Lock = std::unique_lock<std::mutex>;
  /// Queues work behind what the stream has and behind `after`. `alone`: what
  /// the stream has next need not come behind this.
  OperationPtr add(std::shared_ptr<const Work> work, StreamObject& stream,
                   const std::vector<OperationPtr>& after = {},
                   bool alone = false);
  /// Puts work behind what the stream has, or into its capture.
  Code enqueue(Lock& lock, StreamObject& stream,
               std::shared_ptr<const Work> work);
  /// Executes a ready operation that the schedule chooses; Schedule::lazy
  /// chooses one that `wanted`, unless null, needs. False when none is ready.
  bool run_one(Lock& lock, const Operation* wanted);
  void wait_for(Lock& lock, OperationPtr operation);
  void wait_device(Lock& lock, DeviceState& device);
  void wait_all(Lock& lock);
  /// Notes for the detector of races that the host knows that this is done:
  /// what it queues from now on comes behind it.
  void host_waited(const OperationPtr& operation);
  /// Null unless races between operations are looked for.
  std::unique_ptr<OperationRaces> races;
  /// The last operations of all streams of a device.
  std::vector<OperationPtr> tails(DeviceState& device, bool blocking_only);
  /// Marks the context as lost to this error.
  void lose(DeviceState& device, const Failure& failure);

  // faults.cpp
  /// The code with which this call shall fail, or success.
  Code planned_call_fault(Entry entry);
  Code planned_operation_fault(DeviceState& device);
  bool planned_out_of_memory(DeviceState& device, uint64_t bytes);
  /// Replaces the plan by one that counts from now on.
  void plan(std::vector<FaultRule> rules);
  /// The function whose call the plan failed last, or null.
  const char* failed() const { return failed_; }
  /// Whether calls may lack their context because the plan says so.
  bool context_refused() const { return context_refused_; }
  /// The calls since the plan was made, where they are kept.
  const std::vector<Entry>& log() const { return log_; }
  /// The number of operations that are not done yet.
  uint64_t pending() const { return pending_; }
  uint64_t calls(Entry entry) const {
    return calls_[static_cast<size_t>(entry)];
  }

  // ledger.cpp. The findings have a lock of their own.
  /// Whether the flag of some device is set (simcuda_interrupt).
  bool interrupted() const;
  void report(const std::string& finding);
  std::string findings() const;
  uint64_t finding_count() const;
  /// The objects that still exist, one line each.
  std::string leaks();
  void print_report();
  /// When a context ends: notes the objects that it still has and nobody tried
  /// to give back; they are lost with it.
  void left_behind(DeviceState& device);
  /// Notes that the caller tried to give an object back, and was refused
  /// through no fault of its own.
  void refuse_back(const Returned& returned);

  uint64_t next_stream = 1, next_launch = 1;
  uint64_t launches = 0, copied_bytes = 0, peer_bytes = 0;

 private:
  OperationPtr choose(const Operation* wanted);
  /// The place in ready_ of an operation on which `wanted` depends, or the size
  /// of ready_.
  size_t needed_first(const Operation& wanted);
  /// Whether it copies memory of a device that is lost.
  bool touches_lost(const Work& work) const;
  void execute(Lock& lock, const OperationPtr& operation);
  void finish(const OperationPtr& operation);
  void make_ready(const OperationPtr& operation);
  /// What the thread of `goes_on` does.
  void go_on();
  bool deadlocked(Lock& lock);

  std::mt19937_64 random_;
  std::condition_variable changed_;
  bool ends_ = false;
  std::thread goes_on_;
  std::vector<OperationPtr> ready_;
  uint64_t next_operation_ = 1;
  uint64_t pending_ = 0;
  int executing_ = 0;
  uint64_t stalled_ = 0;
  std::chrono::steady_clock::time_point progress_;
  std::array<uint64_t, static_cast<size_t>(Entry::count)> calls_{};
  uint64_t all_calls_ = 0;
  std::vector<Entry> log_;
  std::vector<FaultRule> faults_;
  const char* failed_ = nullptr;
  bool context_refused_ = false;
  std::string left_behind_;
  mutable std::mutex findings_mutex_;
  std::map<std::string, uint64_t> findings_;
};

}  // namespace simcuda
