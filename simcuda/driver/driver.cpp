// How calls begin; the functions about the driver itself; the exports of
// simcuda.h.
#include "simcuda/driver/driver.h"

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>

#include "simcuda/driver/simcuda.h"

namespace simcuda {
namespace {

/// The one simulation of this process, as there is one driver.
struct Process {
  std::mutex mutex;
  std::unique_ptr<Simulator> simulator;
  std::string text;  // what simcuda_configure asked for
  std::atomic<uint64_t> generation{1};
  bool registered = false;
};
Process& process() {
  static Process* one = new Process;  // outlives all that may call it
  return *one;
}

struct Thread {
  std::vector<DeviceState*> contexts;
  uint64_t generation = 0;
};
Thread& this_thread() {
  thread_local Thread thread;
  if (thread.generation != process().generation) {
    thread.contexts.clear();
    thread.generation = process().generation;
  }
  return thread;
}

bool read_configuration(const std::string& text, Configuration& result) {
  std::string error;
  if (const char* path = std::getenv("SIMCUDA_CONFIG")) {
    std::ifstream file(path);
    if (!file) {
      std::fprintf(stderr, "simcuda: cannot read `%s`\n", path);
      return false;
    }
    std::string all((std::istreambuf_iterator<char>(file)), {});
    if (!configure(all, result, error)) {
      std::fprintf(stderr, "%s\n", error.c_str());
      return false;
    }
  }
  const char* environment = std::getenv("SIMCUDA");
  for (const char* part : {environment, text.c_str()}) {
    if (part != nullptr && !configure(part, result, error)) {
      std::fprintf(stderr, "%s\n", error.c_str());
      return false;
    }
  }
  complete(result);
  return true;
}

void at_exit() {
  std::lock_guard lock(process().mutex);
  if (process().simulator) process().simulator->print_report();
}

/// Null: the configuration is wrong.
Simulator* simulator() {
  Process& p = process();
  std::lock_guard lock(p.mutex);
  if (!p.simulator) {
    Configuration configuration;
    if (!read_configuration(p.text, configuration)) return nullptr;
    p.simulator = std::make_unique<Simulator>(std::move(configuration));
    if (!p.registered) std::atexit(at_exit);
    p.registered = true;
  }
  return p.simulator.get();
}

size_t hand_out(const std::string& text, char* buffer, size_t size) {
  if (size > 0) {
    size_t n = std::min(text.size(), size - 1);
    std::memcpy(buffer, text.data(), n);
    buffer[n] = '\0';
  }
  return text.size() + 1;
}

constexpr EntryRow entry_rows[] = {
#define CUDA_FUNCTION(name, symbol, since, parameters) {#name, #symbol, since},
#include "runtime/cuda/driver.def"
};

/// The instructions that this library was compiled for.
bool processor_fits() {
#if defined(__x86_64__)
  return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
#else
  return true;
#endif
}

}  // namespace

const EntryRow& entry_row(Entry entry) {
  return entry_rows[static_cast<size_t>(entry)];
}

std::vector<DeviceState*>& context_stack() { return this_thread().contexts; }

Simulator::Simulator(Configuration c)
    : configuration(std::move(c)),
      memory(configuration.seed),
      workers(configuration.threads),
      random_(configuration.seed),
      faults_(configuration.faults) {
  progress_ = std::chrono::steady_clock::now();
  if (configuration.races != LaunchShape::Races::off) {
    races = std::make_unique<OperationRaces>(
        [this](const std::string& finding) { report(finding); });
  }
  for (int d = 0; d < configuration.devices; ++d) {
    auto device = std::make_unique<DeviceState>();
    device->simulator = this;
    device->number = d;
    device->model = configuration.models[static_cast<size_t>(d)];
    device->default_pool.device = device.get();
    device->default_pool.is_default = true;
    device->pool = &device->default_pool;
    device->legacy.device = device.get();
    device->legacy.number = 0;
    devices.push_back(std::move(device));
  }
  if (configuration.goes_on) goes_on_ = std::thread([this] { go_on(); });
}
Simulator::~Simulator() {
  if (!goes_on_.joinable()) return;
  {
    Lock lock(mutex);
    ends_ = true;
  }
  changed_.notify_all();
  goes_on_.join();
}

StreamObject* Call::stream(Stream handle) {
  if (handle == nullptr || handle == legacy_stream)
    return device ? &device->legacy : nullptr;
  return find(simulator.streams, handle);
}

Code Call::refuse_in_capture() {
  bool refused = false;
  for (auto& weak : simulator.captures) {
    CapturePtr capture = weak.lock();
    if (!capture || capture->mode == CaptureMode::relaxed) continue;
    if (capture->mode == CaptureMode::thread_local_ &&
        capture->thread != std::this_thread::get_id()) {
      continue;
    }
    capture->invalidated = true;
    refused = true;
  }
  return refused ? stream_capture_unsupported : success;
}

// Set while a function of the host runs in a stream: it may not call us.
thread_local bool in_host_function = false;
bool& host_function_flag() { return in_host_function; }

Code enter(Entry entry, Needs needs,
           const std::function<Code(Call& call)>& body,
           const Returned& gives_back) {
  if (in_host_function && needs != Needs::nothing) return not_permitted;
  Simulator* one = simulator();
  if (one == nullptr) return invalid_value;
  Call call{*one, Simulator::Lock(one->mutex)};
  if (Code code = one->planned_call_fault(entry); code != success) {
    // A planned error that is sticky by nature takes the context with it.
    if (is_sticky(code) && !context_stack().empty()) {
      one->lose(
          *context_stack().back(),
          {code, std::string("planned fault in ") + entry_row(entry).symbol});
    }
    one->refuse_back(gives_back);
    return code;
  }
  if (needs == Needs::nothing) return body(call);
  if (!one->initialised) return not_initialized;
  if (!context_stack().empty()) call.device = context_stack().back();
  if (needs == Needs::context) {
    if (call.device == nullptr) {
      if (one->context_refused()) one->refuse_back(gives_back);
      return invalid_context;
    }
    if (call.device->retained == 0) return context_is_destroyed;
    if (call.device->sticky != success) {
      one->refuse_back(gives_back);
      return call.device->sticky;
    }
  }
  return body(call);
}

extern "C" {

Code cuInit(unsigned flags) {
  return enter(Entry::init, Needs::nothing, [&](Call& call) {
    if (flags != 0) return invalid_value;
    if (!processor_fits()) return not_supported;
    if (call.simulator.configuration.devices == 0) return no_device;
    call.simulator.initialised = true;
    return success;
  });
}

Code cuDriverGetVersion(int* version) {
  return enter(Entry::driver_get_version, Needs::nothing, [&](Call& call) {
    if (version == nullptr) return invalid_value;
    *version = call.simulator.configuration.driver_version;
    return success;
  });
}

Code cuGetErrorName(Code code, const char** name) {
  return enter(Entry::get_error_name, Needs::nothing, [&](Call&) {
    if (name == nullptr) return invalid_value;
    *name = code_name(code);
    return *name ? success : invalid_value;
  });
}

Code cuGetErrorString(Code code, const char** text) {
  return enter(Entry::get_error_string, Needs::nothing, [&](Call&) {
    if (text == nullptr) return invalid_value;
    *text = code_text(code);
    return *text ? success : invalid_value;
  });
}

Code cuGetProcAddress_v2(const char* symbol, void** function, int version,
                         uint64_t, ProcAddressResult* result) {
  return enter(Entry::get_proc_address, Needs::nothing, [&](Call& call) {
    if (symbol == nullptr || function == nullptr) return invalid_value;
    // The name comes without a version; which one, follows from `version`.
    static const std::unordered_map<std::string, std::pair<int, void*>> all =
        [] {
          std::unordered_map<std::string, std::pair<int, void*>> map;
          auto enter_one = [&](std::string name, int since, void* address) {
            for (const char* suffix : {"_v2", "_v3"})
              if (name.ends_with(suffix)) name.resize(name.size() - 3);
            map[name] = {since, address};
          };
#define CUDA_FUNCTION(name, symbol, since, parameters) \
  enter_one(#symbol, since, reinterpret_cast<void*>(&symbol));
#include "runtime/cuda/driver.def"
          return map;
        }();
    auto it = all.find(symbol);
    *function = nullptr;
    ProcAddressResult outcome = ProcAddressResult::success;
    if (it == all.end()) {
      outcome = ProcAddressResult::symbol_not_found;
    } else if (it->second.first > version ||
               it->second.first > call.simulator.configuration.driver_version) {
      outcome = ProcAddressResult::version_not_sufficient;
    } else {
      *function = it->second.second;
    }
    if (result) *result = outcome;
    return outcome == ProcAddressResult::success || result ? success
                                                           : not_found;
  });
}

__attribute__((visibility("default"))) int simcuda_configure(const char* text) {
  Process& p = process();
  std::lock_guard lock(p.mutex);
  Configuration configuration;
  const std::string asked = text ? text : "";
  if (!read_configuration(asked, configuration)) return 1;
  if (p.simulator) {
    Simulator::Lock in_use(p.simulator->mutex);
    for (auto& device : p.simulator->devices) {
      if (device->retained == 0) continue;
      if (asked == p.text) return 0;
      return 2;
    }
  }
  p.text = asked;
  p.simulator.reset();
  ++p.generation;
  return 0;
}

__attribute__((visibility("default"))) void simcuda_end() {
  at_exit();
  Process& p = process();
  std::lock_guard lock(p.mutex);
  p.simulator.reset();
  ++p.generation;
}

__attribute__((visibility("default"))) int simcuda_plan(const char* text) {
  Simulator* one = simulator();
  Configuration plan;
  std::string error;
  if (one == nullptr || !configure(text ? text : "", plan, error)) {
    std::fprintf(stderr, "%s\n", error.c_str());
    return 1;
  }
  Simulator::Lock lock(one->mutex);
  one->plan(std::move(plan.faults));
  return 0;
}

__attribute__((visibility("default"))) const char* simcuda_failed() {
  Simulator* one = simulator();
  if (one == nullptr) return nullptr;
  Simulator::Lock lock(one->mutex);
  return one->failed();
}

__attribute__((visibility("default"))) size_t simcuda_findings(char* buffer,
                                                               size_t size) {
  Simulator* one = simulator();
  return one ? hand_out(one->findings(), buffer, size) : 0;
}

__attribute__((visibility("default"))) size_t simcuda_leaks(char* buffer,
                                                            size_t size) {
  Simulator* one = simulator();
  if (one == nullptr) return 0;
  Simulator::Lock lock(one->mutex);
  return hand_out(one->leaks(), buffer, size);
}

__attribute__((visibility("default"))) int simcuda_interrupt(void* handle,
                                                             const bool* flag) {
  Simulator* one = simulator();
  if (one == nullptr) return 1;
  Simulator::Lock lock(one->mutex);
  const auto stream = one->streams.find(handle);
  if (stream == one->streams.end()) return 1;
  stream->second->interrupt = flag;
  stream->second->device->interrupt = flag;
  return 0;
}

__attribute__((visibility("default"))) size_t simcuda_log(char* buffer,
                                                          size_t size) {
  Simulator* one = simulator();
  if (one == nullptr) return 0;
  Simulator::Lock lock(one->mutex);
  std::string text;
  for (Entry entry : one->log()) {
    text += entry_row(entry).symbol;
    text += '\n';
  }
  return hand_out(text, buffer, size);
}

__attribute__((visibility("default"))) uint64_t
simcuda_calls(const char* function) {
  Simulator* one = simulator();
  if (one == nullptr) return 0;
  Simulator::Lock lock(one->mutex);
  uint64_t total = 0;
  for (size_t e = 0; e < static_cast<size_t>(Entry::count); ++e) {
    const EntryRow& row = entry_rows[e];
    if (function == nullptr || std::strcmp(function, row.name) == 0 ||
        std::strcmp(function, row.symbol) == 0) {
      total += one->calls(static_cast<Entry>(e));
    }
  }
  return total;
}

__attribute__((visibility("default"))) uint64_t
simcuda_counter(const char* name) {
  Simulator* one = simulator();
  if (one == nullptr || name == nullptr) return 0;
  Simulator::Lock lock(one->mutex);
  if (std::strcmp(name, "pending") == 0) return one->pending();
  if (std::strcmp(name, "launches") == 0) return one->launches;
  if (std::strcmp(name, "copied_bytes") == 0) return one->copied_bytes;
  if (std::strcmp(name, "peer_bytes") == 0) return one->peer_bytes;
  return 0;
}

}  // extern "C"
}  // namespace simcuda
