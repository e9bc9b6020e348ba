// usage: bench [NAME ...]: measures the groups and rows whose name contains
// one of the words (all without), and prints a Markdown table.
#include <fmt/format.h>

#include <string>
#include <vector>

#include "bench/harness.h"

int main(int argc, char** argv) {
  bench::Table table(std::vector<std::string>(argv + 1, argv + argc));
  bench::system_costs(table);
  bench::elementwise(table);
  bench::reductions(table);
  bench::matrix_products(table);
  bench::primitives(table);
  fmt::print("{}", table.markdown());
}
