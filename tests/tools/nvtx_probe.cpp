// A tool for tests, as NVIDIA's are: a library that a program loads by
// NVTX_INJECTION64_PATH, and that asks for the ranges that it names. It appends
// "push NAME" and "pop" to the file $NVTX_PROBE_LOG. The layouts are those of
// nvtxDetail/nvtxTypes.h.
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <mutex>

namespace {

using Function = void (*)();

struct Callbacks {
  size_t bytes;
  int (*get_module_function_table)(int module, Function*** table,
                                   unsigned* size);
};
struct VersionInfo {
  size_t bytes;
  uint32_t version, reserved;
  void (*set_injection_version)(uint32_t version);
};

std::mutex mutex;

void write(const char* what, const char* name) {
  const std::lock_guard lock(mutex);
  std::FILE* log = std::fopen(std::getenv("NVTX_PROBE_LOG"), "a");
  if (!log) std::abort();
  std::fprintf(log, "%s%s\n", what, name);
  std::fclose(log);
}

int push(const char* name) {
  write("push ", name);
  return 0;
}
int pop() {
  write("pop", "");
  return 0;
}

}  // namespace

extern "C" int InitializeInjectionNvtx2(const void* (*table_of)(uint32_t)) {
  if (std::getenv("NVTX_PROBE_REFUSES")) return 0;
  const auto* callbacks = static_cast<const Callbacks*>(table_of(1));
  const auto* version = static_cast<const VersionInfo*>(table_of(3));
  if (!callbacks || callbacks->bytes < sizeof *callbacks || !version ||
      version->bytes < sizeof *version || version->version < 3 || table_of(0))
    return 0;
  version->set_injection_version(3);
  Function** table = nullptr;
  unsigned size = 0;
  if (callbacks->get_module_function_table(99, &table, &size)) return 0;
  if (!callbacks->get_module_function_table(1, &table, &size) || size < 16)
    return 0;
  *table[9] = reinterpret_cast<Function>(push);
  *table[11] = reinterpret_cast<Function>(pop);
  return 1;
}
