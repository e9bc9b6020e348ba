#include <cblas.h>
#include <fmt/format.h>

#include <string>

#include "bench/peers.h"
#include "bench/workload.h"

namespace bench {

using unisono::lang::Value;

namespace {

constexpr CBLAS_ORDER row_major = CblasRowMajor;

/// y = A x, or of A turned, A being rows x columns.
void product(CBLAS_TRANSPOSE turn, int rows, int columns, const float* a,
             const float* x, float* y) {
  cblas_sgemv(row_major, turn, rows, columns, 1, a, columns, x, 1, 0, y, 1);
}

}  // namespace

void vector_products(Table& table) {
  const std::string group = "5 vectors";
  const auto row = [&](const std::string& name, Script& s,
                       const std::vector<Value>& arguments, size_t results,
                       const std::function<void(float*)>& work) {
    Aligned<float> out(results);
    const Value f = s["f"];
    work(out.get());
    expect_same(name, s.floats(s.call(f, arguments)), out.get(), 1e-2);
    add_pair(table, s, group, name, [&] { s.call(f, arguments); },
             {[&] { work(out.get()); }, Team::openblas, "peer: OpenBLAS"});
  };
  constexpr int n = 4096;
  for (const bool turned : {false, true}) {
    const std::string name =
        turned ? "vector by matrix 4096^2" : "matrix 4096^2 by vector";
    if (!table.wanted(group, name)) continue;
    Script s(fmt::format("let a = reshape(sin(arange(16_777_216, f32)), "
                         "(4096, 4096))\nlet x = cos(arange(4096, f32))\n"
                         "let f = jit(fn(a, x) => {})\n",
                         turned ? "x @ a" : "a @ x"),
             1);
    const Aligned<float> a = copy_of(s, "a"), x = copy_of(s, "x");
    row(name, s, {s["a"], s["x"]}, n, [&](float* y) {
      product(turned ? CblasTrans : CblasNoTrans, n, n, a.get(), x.get(), y);
    });
  }
  if (table.wanted(group, "x @ y, 2^24")) {
    Script s(
        "let x = sin(arange(16_777_216, f32))\nlet y = cos(x)\n"
        "let f = jit(fn(x, y) => x @ y)\n",
        1);
    const Aligned<float> x = copy_of(s, "x"), y = copy_of(s, "y");
    row("x @ y, 2^24", s, {s["x"], s["y"]}, 1,
        [&](float* out) { *out = cblas_sdot(n * n, x.get(), 1, y.get(), 1); });
  }
  if (table.wanted(group, "ij,ij->i 4096^2")) {
    Script s(
        "let x = reshape(sin(arange(16_777_216, f32)), (4096, 4096))\n"
        "let y = cos(x)\nlet f = jit(fn(x, y) => einsum(\"ij,ij->i\", x, y))\n",
        1);
    const Aligned<float> x = copy_of(s, "x"), y = copy_of(s, "y");
    row("ij,ij->i 4096^2", s, {s["x"], s["y"]}, n, [&](float* out) {
      for (size_t i = 0; i < n; ++i)
        out[i] = cblas_sdot(n, x.get() + i * n, 1, y.get() + i * n, 1);
    });
  }
  constexpr int rows = 1 << 20, columns = 64;
  const std::string tall =
      "let a = reshape(sin(arange(67_108_864, f32)), (1_048_576, 64))\n";
  if (table.wanted(group, "A.T @ A, 2^20 x 64")) {
    Script s(tall + "let f = jit(fn(a) => transpose(a) @ a)\n", 1);
    const Aligned<float> a = copy_of(s, "a");
    row("A.T @ A, 2^20 x 64", s, {s["a"]}, columns * columns, [&](float* out) {
      cblas_sgemm(row_major, CblasTrans, CblasNoTrans, columns, columns, rows,
                  1, a.get(), columns, a.get(), columns, 0, out, columns);
    });
  }
  if (table.wanted(group, "least-squares step, 2^20 x 64")) {
    Script s(tall +
                 "let x = cos(arange(64, f32))\nlet y = cos(arange(1_048_576, "
                 "f32))\nlet f = jit(fn(a, x, y) => transpose(a) @ (a @ x - "
                 "y))\n",
             1);
    const Aligned<float> a = copy_of(s, "a"), x = copy_of(s, "x"),
                         y = copy_of(s, "y");
    Aligned<float> residual(rows);
    row("least-squares step, 2^20 x 64", s, {s["a"], s["x"], s["y"]}, columns,
        [&](float* out) {
          std::copy(y.get(), y.get() + rows, residual.get());
          cblas_sgemv(row_major, CblasNoTrans, rows, columns, 1, a.get(),
                      columns, x.get(), 1, -1, residual.get(), 1);
          product(CblasTrans, rows, columns, a.get(), residual.get(), out);
        });
  }
  if (table.wanted(group, "ij,kj,k->i 500^2")) {
    constexpr int m = 500;
    Script s(
        "let a = reshape(sin(arange(250_000, f32)), (500, 500))\n"
        "let x = cos(arange(500, f32))\n"
        "let f = jit(fn(a, x) => einsum(\"ij,kj,k->i\", a, a, x))\n",
        1);
    const Aligned<float> a = copy_of(s, "a"), x = copy_of(s, "x");
    Aligned<float> between(m);
    row("ij,kj,k->i 500^2", s, {s["a"], s["x"]}, m, [&](float* out) {
      product(CblasTrans, m, m, a.get(), x.get(), between.get());
      product(CblasNoTrans, m, m, a.get(), between.get(), out);
    });
  }
}

}  // namespace bench
