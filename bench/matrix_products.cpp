#include <cblas.h>
#include <fmt/format.h>

#include <cmath>
#include <string>

#include "bench/peers.h"
#include "bench/workload.h"

namespace bench {

using unisono::lang::Value;

void matrix_products(Table& table) {
  const std::string group = "5 matmul";
  auto product = [&](int n, const std::string& type, double target) {
    const std::string name = fmt::format("{} {} x {}", type, n, n);
    if (!table.wanted(group, name)) return;
    Script s(fmt::format("let a = cast(sin(reshape(arange({0}, f32), ({1}, "
                         "{1}))), {2})\n"
                         "let b = cast(cos(reshape(arange({0}, f32), ({1}, "
                         "{1}))), {2})\n"
                         "let f = jit(fn(a, b) => a @ b)\n",
                         n * n, n, type),
             1);
    const Value f = s["f"];
    const std::vector<Value> arguments = {s["a"], s["b"]};
    const bool single = type == "f32";
    const size_t count = static_cast<size_t>(n) * n;
    Aligned<float> a(count), b(count), c(count);
    Aligned<double> da(count), db(count), dc(count);
    for (size_t i = 0; i < count; ++i) {
      a.get()[i] = std::sin(static_cast<float>(i));
      b.get()[i] = std::cos(static_cast<float>(i));
      da.get()[i] = a.get()[i];
      db.get()[i] = b.get()[i];
    }
    const auto peer = [&] {
      if (single) {
        cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, n, n, n, 1,
                    a.get(), n, b.get(), n, 0, c.get(), n);
      } else {
        cblas_dgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, n, n, n, 1,
                    da.get(), n, db.get(), n, 0, dc.get(), n);
      }
    };
    peer();
    if (single)
      expect_same(name, s.floats(s.call(f, arguments)), c.get(), 1e-2);
    add_pair(
        table, s, group, name, [&] { s.call(f, arguments); },
        {peer, n < 128 ? Team::one_thread : Team::openblas, "peer: OpenBLAS"},
        target);
  };
  for (const int n : {8, 32, 64, 96, 100, 128, 160, 257, 300, 512, 750, 1500})
    product(n, "f32", 0);
  product(1024, "f32", 0.6);
  product(2048, "f32", 0);
  product(1024, "f64", 0);

  if (table.wanted("6 batched matmul", "64 x 256^3")) {
    constexpr int n = 256, batch = 64;
    Script s(
        "let a = sin(reshape(arange(4_194_304, f32), (64, 256, 256)))\n"
        "let f = jit(fn(a) => a @ a)\n",
        1);
    const Aligned<float> a = copy_of(s, "a");
    Aligned<float> c(a.size);
    const Value f = s["f"];
    const std::vector<Value> arguments = {s["a"]};
    add_pair(table, s, "6 batched matmul", "64 x 256^3",
             [&] { s.call(f, arguments); },
             {[&] {
                for (int i = 0; i < batch; ++i) {
                  const float* p = a.get() + static_cast<size_t>(i) * n * n;
                  cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, n, n,
                              n, 1, p, n, p, n, 0, c.get() + (p - a.get()), n);
                }
              },
              Team::openblas, "peer: OpenBLAS"});
  }
}

}  // namespace bench
