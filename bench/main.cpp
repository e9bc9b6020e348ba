// usage: bench [NAME ...]: measures the groups and rows whose name contains
// one of the words (all without), and prints a Markdown table.
// On a machine that others use, too, `BENCH_PROCESSOR_TIME=1 taskset -c 0
// bench` compares the processor time of one thread.
#include <cblas.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cstdlib>
#include <string>
#include <vector>

#include "bench/harness.h"

namespace {

/// Whose kernels OpenBLAS shall use on a processor that is newer than it, for
/// which it takes those of 2004; null where it knows better.
const char* openblas_processor() {
  if (std::string(openblas_get_corename()) != "Prescott") return nullptr;
  return __builtin_cpu_supports("avx512bw") ? "SkylakeX"
         : __builtin_cpu_supports("avx2")   ? "Haswell"
                                            : nullptr;
}

/// Peers read this when they are loaded. Their threads spin after their work,
/// on the processors that ours needs next: at most a millisecond here.
void prepare_peers(char** argv) {
  if (getenv("OPENBLAS_THREAD_TIMEOUT")) return;
  setenv("OPENBLAS_THREAD_TIMEOUT", "20", 1);
  setenv("KMP_BLOCKTIME", "1", 1);
  if (const char* processor = openblas_processor())
    setenv("OPENBLAS_CORETYPE", processor, 0);
  execv("/proc/self/exe", argv);
}

}  // namespace

int main(int argc, char** argv) {
  prepare_peers(argv);
  bench::Table table(std::vector<std::string>(argv + 1, argv + argc));
  bench::system_costs(table);
  bench::sessions(table);
  bench::embedding(table);
  bench::scripts(table);
  bench::elementwise(table);
  bench::reductions(table);
  bench::normalise(table);
  bench::matrix_products(table);
  bench::vector_products(table);
  bench::factors(table);
  bench::stencils(table);
  bench::primitives(table);
  bench::updates(table);
  bench::loops(table);
  bench::nested_loops(table);
  bench::networks(table);
  bench::random_numbers(table);
  bench::fourier(table);
  bench::collectives(table);
  fmt::print("{}", table.markdown());
}
