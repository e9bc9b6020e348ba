#pragma once
// A CUDA driver under test, opened as the runtime opens it: by its path, its
// functions by their exact names.
#include <dlfcn.h>
#include <doctest/doctest.h>

#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "runtime/cuda/types.h"
#include "simcuda/driver/simcuda.h"

namespace driver_test {

using namespace unisono::cuda;

struct Driver {
#define CUDA_FUNCTION(name, symbol, since, parameters) \
  Code(*name) parameters = nullptr;
#include "runtime/cuda/driver.def"

  // Null in a real driver.
  decltype(&simcuda_configure) configure = nullptr;
  decltype(&simcuda_findings) findings = nullptr;
  decltype(&simcuda_leaks) leaks = nullptr;
  decltype(&simcuda_calls) calls = nullptr;
  decltype(&simcuda_counter) counter = nullptr;

  void* library = nullptr;
  std::string missing;  // required functions that it does not have
};

/// The driver named by $UNISONO_CUDA_DRIVER, else the simulated one.
inline Driver& driver() {
  static Driver one = [] {
    Driver d;
    const char* path = std::getenv("UNISONO_CUDA_DRIVER");
    d.library = dlopen(path ? path : SIMCUDA_LIBRARY, RTLD_NOW | RTLD_LOCAL);
    if (d.library == nullptr) {
      d.missing = dlerror();
      return d;
    }
    auto look = [&](const char* symbol, bool required, auto& function) {
      void* address = dlsym(d.library, symbol);
      std::memcpy(&function, &address, sizeof(address));
      if (!address && required) d.missing += std::string(symbol) + " ";
    };
#define CUDA_FUNCTION(name, symbol, since, parameters) \
  look(#symbol, true, d.name);
#include "runtime/cuda/driver.def"
    look("simcuda_configure", false, d.configure);
    look("simcuda_findings", false, d.findings);
    look("simcuda_leaks", false, d.leaks);
    look("simcuda_calls", false, d.calls);
    look("simcuda_counter", false, d.counter);
    return d;
  }();
  return one;
}

inline bool simulated() { return driver().configure != nullptr; }

inline std::string text_of(decltype(&simcuda_findings) function) {
  std::string text(function(nullptr, 0), '\0');
  function(text.data(), text.size());
  text.resize(std::strlen(text.c_str()));
  return text;
}

inline std::string read_text(const std::string& path) {
  std::ifstream file(std::string(UNISONO_SOURCE_DIR) + "/" + path);
  return {std::istreambuf_iterator<char>(file), {}};
}

/// The driver, freshly started, with the first `contexts` devices' primary
/// contexts retained and device 0's current. All is given back at the end.
class Session {
 public:
  explicit Session(const char* configuration = "devices=2", int contexts = 1)
      : d(driver()), count_(contexts) {
    REQUIRE_MESSAGE(d.missing.empty(), d.missing);
    // Tests that mean to have a race say `races=off`.
    const std::string all = std::string("races=fault;") + configuration;
    if (simulated()) REQUIRE(d.configure(all.c_str()) == 0);
    REQUIRE(d.init(0) == success);
    context.resize(static_cast<size_t>(contexts));
    for (int i = 0; i < contexts; ++i) {
      REQUIRE(d.primary_ctx_retain(&context[static_cast<size_t>(i)], i) ==
              success);
    }
    if (contexts > 0) REQUIRE(d.ctx_push_current(context[0]) == success);
  }
  ~Session() {
    Context popped;
    while (d.ctx_get_current(&popped) == success && popped != nullptr)
      d.ctx_pop_current(&popped);
    for (int i = 0; i < count_; ++i) d.primary_ctx_release(i);
  }
  Session(const Session&) = delete;

  Driver& d;
  std::vector<Context> context;

  Module load(const std::string& ptx) {
    Module module = nullptr;
    char log[4096] = "";
    JitOption options[] = {JitOption::error_log_buffer,
                           JitOption::error_log_buffer_size_bytes};
    void* values[] = {log, reinterpret_cast<void*>(sizeof(log))};
    Code code = d.module_load_data_ex(&module, ptx.c_str(), 2, options, values);
    REQUIRE_MESSAGE(code == success, code, " ", log);
    return module;
  }
  Function function(Module module, const char* name) {
    Function f = nullptr;
    REQUIRE(d.module_get_function(&f, module, name) == success);
    return f;
  }
  template <class T>
  DevicePointer upload(const std::vector<T>& values) {
    DevicePointer p = 0;
    REQUIRE(d.mem_alloc(&p, values.size() * sizeof(T)) == success);
    REQUIRE(d.memcpy_htod(p, values.data(), values.size() * sizeof(T)) ==
            success);
    return p;
  }
  template <class T>
  DevicePointer allocate(size_t count) {
    DevicePointer p = 0;
    REQUIRE(d.mem_alloc(&p, count * sizeof(T)) == success);
    return p;
  }
  template <class T>
  std::vector<T> download(DevicePointer p, size_t count) {
    std::vector<T> values(count);
    REQUIRE(d.memcpy_dtoh(values.data(), p, count * sizeof(T)) == success);
    return values;
  }
  /// Launches with any values as arguments.
  template <class... Arguments>
  Code launch(Function f, unsigned blocks, unsigned threads, Stream stream,
              Arguments... arguments) {
    void* list[] = {&arguments..., nullptr};
    return d.launch_kernel(f, blocks, 1, 1, threads, 1, 1, 0, stream, list,
                           nullptr);
  }

 private:
  int count_;
};

}  // namespace driver_test
