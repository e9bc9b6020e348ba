#include <cblas.h>
#include <fmt/format.h>

#include <cmath>
#include <cstdlib>
#include <memory>
#include <string>

#include "bench/harness.h"
#include "bench/peers.h"

namespace bench {
namespace {

using unisono::lang::Value;

/// Host memory for a peer, aligned to 64 bytes, touched once.
template <class T>
struct Aligned {
  explicit Aligned(size_t n)
      : data(static_cast<T*>(std::aligned_alloc(64, n * sizeof(T))), std::free),
        size(n) {
    std::fill_n(data.get(), n, T{});
  }
  T* get() const { return data.get(); }
  std::unique_ptr<T, decltype(&std::free)> data;
  size_t size;
};

Aligned<float> copy_of(Script& script, const std::string& name) {
  const std::vector<float> values = script.floats(script[name]);
  Aligned<float> result(values.size());
  std::copy(values.begin(), values.end(), result.get());
  return result;
}

void expect_close(const std::string& what, double got, double want,
                  double relative) {
  if (!(std::fabs(got - want) <= relative * std::max(1.0, std::fabs(want)))) {
    fail(fmt::format("{}: got {}, the peer {}", what, got, want));
  }
}

/// Every 4,099th element of both results agrees.
void expect_same(const std::string& what, const std::vector<float>& got,
                 const float* want, double relative) {
  for (size_t i = 0; i < got.size(); i += 4099) {
    expect_close(fmt::format("{}[{}]", what, i), got[i], want[i], relative);
  }
}

void add_pair(Table& table, const std::string& group, const std::string& name,
              const std::function<void()>& ours,
              const std::function<void()>& peer, double target,
              const std::string& note = "") {
  const Paired t = time_pair(ours, peer);
  // The table divides: keep the paired ratio, which is robust to drift.
  table.add({group, name, t.ours, t.ours * t.ratio, target, false, note});
}

}  // namespace

void elementwise(Table& table) {
  const std::string group = "1 elementwise";
  const size_t n = size_t{1} << 24;
  if (table.wanted(group, "chain")) {
    Script s(
        "let n = 16_777_216\n"
        "let x = sin(arange(n, f32))\n"
        "let y = cos(arange(n, f32))\n"
        "def c1(x, y) = x + y\n"
        "def c4(x, y) = maximum((x + y) * 0.9, -1.0) - y\n"
        "def four(t, y) = maximum((t + y) * 0.9, -1.0) - y\n"
        "def c16(x, y) = four(four(four(four(x, y), y), y), y)\n"
        "let f1 = jit(c1)\nlet f4 = jit(c4)\nlet f16 = jit(c16)\n",
        1);
    const Aligned<float> x = copy_of(s, "x"), y = copy_of(s, "y");
    Aligned<float> out(n);
    for (const int operations : {1, 4, 16}) {
      const Value f = s[fmt::format("f{}", operations)];
      const std::vector<Value> arguments = {s["x"], s["y"]};
      peers::chain(operations, x.get(), y.get(), out.get(), n);
      expect_same("chain", s.floats(s.call(f, arguments)), out.get(), 1e-5);
      add_pair(
          table, group, fmt::format("chain of {}, 2^24", operations),
          [&] { s.call(f, arguments); },
          [&] { peers::chain(operations, x.get(), y.get(), out.get(), n); },
          0.8);
    }
  }
  if (table.wanted("2 Black-Scholes", "call and put")) {
    Script s(
        "let n = 16_777_216\n"
        "let s = linspace(50.0, 150.0, n)\n"
        "let k = 100.0 + 50.0 * sin(arange(n, f32))\n"
        "let t = 1.1 + cos(arange(n, f32))\n"
        "def cdf(x) {\n"
        "  let a = abs(x)\n"
        "  let k = 1.0 / (1.0 + 0.2316419 * a)\n"
        "  let w = exp(-0.5 * a * a) * 0.39894228\n"
        "  let p = ((((1.330274429 * k - 1.821255978) * k + 1.781477937) * k "
        "- 0.356563782) * k + 0.319381530)\n"
        "  let c = 1.0 - w * p * k\n"
        "  where(x < 0.0, 1.0 - c, c)\n"
        "}\n"
        "def price(s, k, t) {\n"
        "  let root = sqrt(t) * 0.3\n"
        "  let d1 = (log(s / k) + 0.065 * t) / root\n"
        "  let e = k * exp(-0.02 * t)\n"
        "  let c = s * cdf(d1) - e * cdf(d1 - root)\n"
        "  (c, c - s + e)\n"
        "}\n"
        "let f = jit(price)\n",
        1);
    const Aligned<float> spot = copy_of(s, "s"), strike = copy_of(s, "k"),
                         time = copy_of(s, "t");
    Aligned<float> call(n), put(n);
    const std::vector<Value> arguments = {s["s"], s["k"], s["t"]};
    const Value f = s["f"];
    peers::black_scholes(spot.get(), strike.get(), time.get(), call.get(),
                         put.get(), n);
    expect_same("call", s.floats(s.call(f, arguments).tuple()->items[0]),
                call.get(), 1e-3);
    add_pair(
        table, "2 Black-Scholes", "call and put, 2^24",
        [&] { s.call(f, arguments); },
        [&] {
          peers::black_scholes(spot.get(), strike.get(), time.get(), call.get(),
                               put.get(), n);
        },
        0.8, "(peer: -ffast-math, libmvec)");
  }
}

void reductions(Table& table) {
  const std::string group = "3 reductions";
  if (!table.wanted(group, "sum mean max argmax")) return;
  const size_t n = size_t{1} << 26;
  Script s(
      "let n = 67_108_864\n"
      "let x = sin(arange(n, f32) * 0.37)\n"
      "let f_sum = jit(fn(x) => sum(x))\n"
      "let f_mean = jit(fn(x) => (mean(x), var(x)))\n"
      "let f_max = jit(fn(x) => max(x))\n"
      "let f_argmax = jit(fn(x) => argmax(x))\n",
      1);
  const Aligned<float> x = copy_of(s, "x");
  const std::vector<Value> arguments = {s["x"]};
  float mean = 0, variance = 0;
  volatile float kept = 0;
  auto row = [&](const std::string& name, const Value& f, auto peer) {
    add_pair(
        table, group, name + ", 2^26", [&] { s.call(f, arguments); }, peer,
        0.8);
  };
  expect_close("sum", s.floats(s.call(s["f_sum"], arguments))[0],
               peers::sum(x.get(), n), 1e-2);
  peers::mean_variance(x.get(), n, &mean, &variance);
  expect_close("variance",
               s.floats(s.call(s["f_mean"], arguments).tuple()->items[1])[0],
               variance, 1e-4);
  row("sum", s["f_sum"], [&] { kept = peers::sum(x.get(), n); });
  row("mean and variance", s["f_mean"],
      [&] { peers::mean_variance(x.get(), n, &mean, &variance); });
  row("max", s["f_max"], [&] { kept = peers::max(x.get(), n); });
  row("argmax", s["f_argmax"],
      [&] { kept = static_cast<float>(peers::argmax(x.get(), n)); });
  (void)kept;
}

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
    if (single) {
      expect_same(name, s.floats(s.call(f, arguments)), c.get(), 1e-2);
    }
    add_pair(
        table, group, name, [&] { s.call(f, arguments); }, peer, target,
        "(peer: OpenBLAS)");
  };
  for (const int n : {8, 32, 128, 512}) product(n, "f32", 0);
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
    add_pair(
        table, "6 batched matmul", "64 x 256^3", [&] { s.call(f, arguments); },
        [&] {
          for (int i = 0; i < batch; ++i) {
            const float* p = a.get() + static_cast<size_t>(i) * n * n;
            cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, n, n, n, 1,
                        p, n, p, n, 0, c.get() + (p - a.get()), n);
          }
        },
        0, "(peer: OpenBLAS)");
  }
}

void primitives(Table& table) {
  const std::string group = "8 primitives";
  if (!table.wanted(group, "cumsum sort argsort transpose gather")) return;
  const size_t n = size_t{1} << 24, m = size_t{1} << 22, side = 4096;
  Script s(
      "let x = sin(arange(16_777_216, f32)) + 1.0\n"
      "let y = sin(arange(4_194_304, f32) * 12.9898)\n"
      "let square = reshape(x, (4096, 4096))\n"
      "let index = arange(16_777_216) * 7919 % 16_777_216\n"
      "let rows = arange(4096) * 7919 % 4096\n"
      "let f_cumsum = jit(fn(x) => cumsum(x))\n"
      "let f_sort = jit(fn(x) => sort(x))\n"
      "let f_argsort = jit(fn(x) => argsort(x))\n"
      "let f_transpose = jit(fn(x) => transpose(x))\n"
      "let f_gather = jit(fn(x, i) => x[i])\n",
      1);
  const Aligned<float> x = copy_of(s, "x"), y = copy_of(s, "y");
  Aligned<float> out(n);
  Aligned<int32_t> index(n), order(m), rows(side);
  for (size_t i = 0; i < n; ++i) {
    const int32_t wrapped =
        static_cast<int32_t>(static_cast<uint32_t>(i) * 7919u);
    const int32_t size = static_cast<int32_t>(n);
    index.get()[i] = (wrapped % size + size) % size;
  }
  for (size_t i = 0; i < side; ++i) {
    rows.get()[i] = static_cast<int32_t>(i * 7919 % side);
  }
  peers::cumsum(x.get(), out.get(), n);
  expect_same("cumsum", s.floats(s.call(s["f_cumsum"], {s["x"]})), out.get(),
              1e-2);
  add_pair(
      table, group, "cumsum 2^24", [&] { s.call(s["f_cumsum"], {s["x"]}); },
      [&] { peers::cumsum(x.get(), out.get(), n); }, 0.5);
  peers::sort(y.get(), out.get(), m);
  expect_same("sort", s.floats(s.call(s["f_sort"], {s["y"]})), out.get(), 0);
  add_pair(
      table, group, "sort 2^22", [&] { s.call(s["f_sort"], {s["y"]}); },
      [&] { peers::sort(y.get(), out.get(), m); }, 0.5);
  add_pair(
      table, group, "argsort 2^22", [&] { s.call(s["f_argsort"], {s["y"]}); },
      [&] { peers::argsort(y.get(), order.get(), m); }, 0);
  peers::transpose(x.get(), out.get(), side);
  expect_same("transpose", s.floats(s.call(s["f_transpose"], {s["square"]})),
              out.get(), 0);
  add_pair(
      table, group, "transpose 4096^2",
      [&] { s.call(s["f_transpose"], {s["square"]}); },
      [&] { peers::transpose(x.get(), out.get(), side); }, 0.5);
  peers::gather(x.get(), index.get(), out.get(), n);
  expect_same("gather", s.floats(s.call(s["f_gather"], {s["x"], s["index"]})),
              out.get(), 0);
  add_pair(
      table, group, "gather 2^24 elements",
      [&] { s.call(s["f_gather"], {s["x"], s["index"]}); },
      [&] { peers::gather(x.get(), index.get(), out.get(), n); }, 0);
  add_pair(
      table, group, "gather 4096 rows",
      [&] { s.call(s["f_gather"], {s["square"], s["rows"]}); },
      [&] { peers::gather_rows(x.get(), rows.get(), out.get(), side, side); },
      0);
}

}  // namespace bench
