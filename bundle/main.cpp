// The executable of the bundle: unisono, and under other names what selftest
// needs. One file, since LLVM is most of each.
#define DOCTEST_CONFIG_IMPLEMENT
#include <commit.h>
#include <doctest/doctest.h>

#include <string_view>

#include "bench/gpu/gpu_bench.h"
#include "host/main.h"

namespace {

/// Suites whose files match, or (`-exclude`) do not.
int run_tests(int argc, char** argv, const char* filter) {
  doctest::Context context;
  context.addFilter(filter, "*conformance/devices/*");
  context.applyCommandLine(argc, argv);
  return context.run();
}

}  // namespace

int main(int argc, char** argv) {
  std::string_view name = argc > 0 ? argv[0] : "";
  name = name.substr(name.rfind('/') + 1);
  if (name == "bench_gpu") return bench::gpu_bench(argc, argv);
  if (name == "test_devices") return run_tests(argc, argv, "source-file");
  if (name == "test_conformance")
    return run_tests(argc, argv, "source-file-exclude");
  return unisono::host::command_line(argc, argv, UNISONO_COMMIT);
}
