// usage: bench [NAME ...]: measures the groups and rows whose name contains
// one of the words (all without), and prints a Markdown table.
// On a machine that others use, too, `BENCH_PROCESSOR_TIME=1 taskset -c 0
// bench` compares the processor time of one thread.
#include <fmt/format.h>
#include <unistd.h>

#include <cstdlib>
#include <string>
#include <vector>

#include "bench/harness.h"

namespace {

/// Peers' threads spin after their work, on the processors that ours needs
/// next: at most a millisecond here. They read this when they are loaded.
void let_idle_peers_sleep(char** argv) {
  if (getenv("OPENBLAS_THREAD_TIMEOUT")) return;
  setenv("OPENBLAS_THREAD_TIMEOUT", "20", 1);
  setenv("KMP_BLOCKTIME", "1", 1);
  execv("/proc/self/exe", argv);
}

}  // namespace

int main(int argc, char** argv) {
  let_idle_peers_sleep(argv);
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
  bench::stencils(table);
  bench::primitives(table);
  bench::updates(table);
  bench::loops(table);
  bench::networks(table);
  bench::random_numbers(table);
  bench::fourier(table);
  bench::collectives(table);
  fmt::print("{}", table.markdown());
}
