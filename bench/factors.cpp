// Factors of matrices beside OpenBLAS's own, of which a factor and what follows
// from it is a call each.
#include <dlfcn.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "bench/workload.h"

namespace bench {
namespace {

using unisono::lang::Value;

/// OpenBLAS's routine: its name alone is that of the one which we link in.
template <class F>
F* routine(const char* name) {
  void* library = dlopen("libopenblas.so.0", RTLD_NOW | RTLD_LOCAL);
  return library ? reinterpret_cast<F*>(dlsym(library, name)) : nullptr;
}

using Getrf = void(const int*, const int*, double*, const int*, int*, int*);
using Potrf = void(const char*, const int*, double*, const int*, int*, size_t);

}  // namespace

void factors(Table& table) {
  const std::string group = "15 factors";
  auto* const getrf = routine<Getrf>("dgetrf_");
  auto* const potrf = routine<Potrf>("dpotrf_");
  if (!getrf || !potrf) return;
  for (const int n : {10, 100, 300, 1000})
    for (const bool lu : {true, false}) {
      const std::string name =
          fmt::format("{} {} x {}, f64", lu ? "det" : "cholesky", n, n);
      if (!table.wanted(group, name)) continue;
      Script s(fmt::format("let a = sin(reshape(arange({1}, f64), ({0}, {0})))"
                           " + {0}.0 * eye({0}, dtype=f64)\n"
                           "let f = jit(fn(a) => {2})\n",
                           n, n * n, lu ? "det(a / 100.0)" : "cholesky(a)"),
               1);
      const Value f = s["f"];
      const std::vector<Value> arguments = {s["a"]};
      const size_t count = static_cast<size_t>(n) * static_cast<size_t>(n);
      Aligned<double> a(count), work(count);
      for (size_t i = 0; i < count; ++i)
        a.get()[i] = std::sin(static_cast<double>(i)) +
                     (i % static_cast<size_t>(n + 1) == 0 ? n : 0);
      std::vector<int> pivots(static_cast<size_t>(n));
      add_pair(table, s, group, name, [&] { s.call(f, arguments); },
               {[&] {
                  int info = 0;
                  std::copy_n(a.get(), count, work.get());
                  if (lu)
                    getrf(&n, &n, work.get(), &n, pivots.data(), &info);
                  else
                    potrf("U", &n, work.get(), &n, &info, 1);
                },
                Team::openblas, "peer: OpenBLAS"});
    }
}

}  // namespace bench
