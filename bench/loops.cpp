#include <cmath>
#include <string>

#include "bench/peers.h"
#include "bench/workload.h"

namespace bench {
namespace {

constexpr const char* program = R"(
import nn
def field(x, y, z) {
  (10.0 * (y - x), x * (28.0 - z) - y, x * y - cast(2.6666667, f32) * z)
}
def lorenz(x0, y0, z0) {
  var x = x0
  var y = y0
  var z = z0
  let h = cast(0.00001, f32)
  for i in range(1_000_000) {
    let (ax, ay, az) = field(x, y, z)
    let (bx, by, bz) = field(x + h / 2 * ax, y + h / 2 * ay, z + h / 2 * az)
    let (cx, cy, cz) = field(x + h / 2 * bx, y + h / 2 * by, z + h / 2 * bz)
    let (dx, dy, dz) = field(x + h * cx, y + h * cy, z + h * cz)
    x = x + h / 6 * (ax + 2 * (bx + cx) + dx)
    y = y + h / 6 * (ay + 2 * (by + cy) + dy)
    z = z + h / 6 * (az + 2 * (bz + cz) + dz)
  }
  (x, y, z)
}
let one = cast(1.0, f32)
let many = one + arange(16, f32) * 0.001
let lorenz_1 = jit(lorenz)
let lorenz_16 = jit(vmap(lorenz))
let lorenz_gradient = jit(value_and_grad(fn(x, y, z) => {
  let (a, b, c) = lorenz(x, y, z)
  a + b + c
}, wrt=(0, 1, 2)))

# x' = F x, P' = F P F^T + q I; x[0] is measured with variance r.
def kalman(ys, F, q, r) {
  var x = zeros(f32[3])
  var P = eye(3)
  var likelihood = cast(0.0, f32)
  for i in range(10_000) {
    x = F @ x
    let M = F @ P @ transpose(F) + q * eye(3)
    let S = M[0, 0] + r
    let e = ys[i] - x[0]
    let K = M[:, 0] / S
    x = x + K * e
    P = M - outer(K, M[0])
    likelihood = likelihood + 0.5 * (e * e / S + log(S))
  }
  likelihood
}
let t = arange(10_000, f32)
let ys = sin(0.01 * t) + 0.1 * sin(12.9898 * t)
let F = cast([[1.0, 0.1, 0.005], [0.0, 1.0, 0.1], [0.0, 0.0, 1.0]], f32)
let q = cast(0.001, f32)
let r = cast(0.1, f32)
let f_kalman = jit(kalman)
let d_kalman = jit(value_and_grad(kalman, wrt=(2, 3)))

# The same by scan and by for.
let x = sin(0.001 * arange(1_000_000, f32))
def ema(c, v) {
  let next = 0.9 * c + 0.1 * v
  (next, next)
}
def ema_scan(x) = scan(ema, 0.0, x).1
let ema_for = jit(fn(x) => {
  var c = cast(0.0, f32)
  var ys = zeros_like(x)
  for i in range(len(x)) {
    c = 0.9 * c + 0.1 * x[i]
    ys[i] = c
  }
  ys
})
# A linear recurrence from the last row on: the advantages of returns.
def returns_scan(r, g) = scan(fn(s, (r, g)) => {
  let next = r + g * s
  (next, next)
}, 0.0, (r, g), reverse=true).1
let returns_for = jit(fn(r, g) => {
  var s = cast(0.0, f32)
  var ys = zeros_like(r)
  for i in range(len(r) - 1, -1, -1) {
    s = r[i] + g[i] * s
    ys[i] = s
  }
  ys
})
def cell((h, c), x, w) {
  let z = x + h @ w
  let next = nn.sigmoid(z[64:128]) * c + nn.sigmoid(z[:64]) * tanh(z[128:192])
  (nn.sigmoid(z[192:]) * tanh(next), next)
}
let w = 0.2 * sin(reshape(arange(64 * 256, f32), (64, 256)))
let steps = cos(0.37 * reshape(arange(256_000, f32), (1000, 256)))
def lstm_scan(x, w) = scan(fn(s, v) => {
  let next = cell(s, v, w)
  (next, next.0)
}, (zeros(f32[64]), zeros(f32[64])), x).1
let lstm_for = jit(fn(x, w) => {
  var h = zeros(f32[64])
  var c = zeros(f32[64])
  var hs = zeros(f32[1000, 64])
  for i in range(1000) {
    let next = cell((h, c), x[i], w)
    h = next.0
    c = next.1
    hs[i] = h
  }
  hs
})

# A cell as it is trained, by all its weights.
def lstm_loss(w, b, xs) {
  let step = fn((h, c), x) => {
    let z = concat((x, h)) @ w + b
    let next = nn.sigmoid(z[64:128]) * c + nn.sigmoid(z[:64]) * tanh(z[128:192])
    ((nn.sigmoid(z[192:]) * tanh(next), next), 0)
  }
  sum(square(scan(step, (zeros(f32[64]), zeros(f32[64])), xs).0.0))
}
let d_lstm = jit(value_and_grad(lstm_loss, wrt=(0, 1)))
let cell_w = 0.1 * sin(reshape(arange(128 * 256, f32), (128, 256)))
let cell_b = 0.1 * sin(arange(256, f32))
let cell_x = cos(0.37 * reshape(arange(64_000, f32), (1000, 64)))

# A step of a training that is written where it is called.
def few(w, x) = sum(square(w * x - 1.0))
let few_compiled = jit(value_and_grad(few))
def made_again(w, x) = value_and_grad(fn(w) => few(w, x))(w)
def made_once(w, x) = few_compiled(w, x)
let few_w = [0.5, 0.25]
let few_x = [1.0, 2.0]
)";

}  // namespace

void loops(Table& table) {
  const std::string group = "9 small loops";
  if (!table.wanted(group, "Lorenz Kalman scan EMA returns LSTM made")) return;
  Script s(program, 1);
  const Peer without_fma{[] {}, Team::one_thread, "the same operations"};
  auto lorenz = [&](const char* function, const char* start, size_t systems,
                    const std::string& name) {
    std::vector<float> x, y, z;
    auto begin = [&] {
      x.clear();
      for (size_t i = 0; i < systems; ++i)
        x.push_back(1.0f + static_cast<float>(i) * 0.001f);
      y = z = x;
    };
    auto ours = [&] {
      return s.call(s[function], {s[start], s[start], s[start]});
    };
    Peer peer = without_fma;
    peer.work = [&] {
      begin();
      peers::lorenz(x.data(), y.data(), z.data(), systems, 1'000'000);
    };
    peer.work();
    const auto results = ours();
    const std::vector<float> got = s.floats(results.tuple()->items[0]);
    for (size_t i = 0; i < systems; ++i) expect_close(name, got[i], x[i], 1e-5);
    add_pair(table, s, group, name, ours, peer, 0.95);
  };
  lorenz("lorenz_1", "one", 1, "Lorenz RK4, 10^6 steps");
  lorenz("lorenz_16", "many", 16, "Lorenz RK4, 16 trajectories");

  {
    std::vector<float> states(3'000'000);
    float x = 1, y = 1, z = 1;
    Peer peer = without_fma;
    peer.work = [&] {
      x = y = z = 1;
      peers::lorenz_gradient(&x, &y, &z, 1'000'000, states.data());
    };
    peer.work();
    auto ours = [&] {
      return s.call(s["lorenz_gradient"], {s["one"], s["one"], s["one"]});
    };
    const auto both = ours();
    const auto& by = both.tuple()->items[1].tuple()->items;
    expect_close("Lorenz gradient", s.floats(by[0])[0], x, 1e-2);
    expect_close("Lorenz gradient", s.floats(by[2])[0], z, 1e-2);
    add_pair(table, s, group, "Lorenz RK4, 10^6 steps, gradient", ours, peer,
             0.9);
  }

  const Aligned<float> ys = copy_of(s, "ys");
  float likelihood = 0;
  Peer peer = without_fma;
  peer.work = [&] {
    likelihood = peers::kalman(ys.get(), ys.size, 0.001f, 0.1f);
  };
  peer.work();
  auto ours = [&] {
    return s.call(s["f_kalman"], {s["ys"], s["F"], s["q"], s["r"]});
  };
  expect_close("Kalman", s.floats(ours())[0], likelihood, 1e-4);
  add_pair(table, s, group, "Kalman 3x3, 10^4 steps", ours, peer, 0.95);

  {
    float by_q = 0, by_r = 0;
    Peer gradient = without_fma;
    gradient.work = [&] {
      peers::kalman_gradient(ys.get(), ys.size, 0.001f, 0.1f, &by_q, &by_r);
    };
    gradient.work();
    auto both = [&] {
      return s.call(s["d_kalman"], {s["ys"], s["F"], s["q"], s["r"]});
    };
    const auto result = both();
    const auto& by = result.tuple()->items[1].tuple()->items;
    expect_close("Kalman by q", s.floats(by[0])[0], by_q, 1e-3);
    expect_close("Kalman by r", s.floats(by[1])[0], by_r, 1e-3);
    add_pair(table, s, group, "Kalman 3x3, 10^4 steps, gradient", both,
             gradient, 0.91);
  }
  {
    const Aligned<float> w = copy_of(s, "cell_w"), b = copy_of(s, "cell_b"),
                         x = copy_of(s, "cell_x");
    Aligned<float> by_w(w.size), by_b(b.size);
    const Peer gradient{[&] {
                          peers::lstm_gradient(w.get(), b.get(), x.get(), 1000,
                                               by_w.get(), by_b.get());
                        },
                        Team::one_thread, "peer: -ffast-math, libmvec"};
    gradient.work();
    auto both = [&] {
      return s.call(s["d_lstm"], {s["cell_w"], s["cell_b"], s["cell_x"]});
    };
    const auto result = both();
    const auto& by = result.tuple()->items[1].tuple()->items;
    expect_same("LSTM by w", s.floats(by[0]), by_w.get(), 1e-3);
    expect_same("LSTM by b", s.floats(by[1]), by_b.get(), 1e-3);
    add_pair(table, s, group, "LSTM(64), 1000 steps, gradient", both, gradient,
             0.91);
  }

  // At the top level, beside a compiled function with a `for`.
  auto scan = [&](const char* name, const char* by_scan, const char* by_for,
                  std::vector<unisono::lang::Value> arguments) {
    auto ours = [&] { return s.call(s[by_scan], arguments); };
    auto other = [&] { return s.call(s[by_for], arguments); };
    const std::vector<float> want = s.floats(other());
    expect_same(name, s.floats(ours()), want.data(), 0);
    Peer peer{[&] { other(); }, Team::one_thread, "a jitted `for`"};
    add_pair(table, s, group, name, ours, peer, 0.95);
  };
  scan("EMA by scan, 10^6 rows", "ema_scan", "ema_for", {s["x"]});
  scan("returns by scan, 10^6 rows", "returns_scan", "returns_for",
       {s["x"], s["x"]});
  scan("LSTM(64) by scan, 1000 steps", "lstm_scan", "lstm_for",
       {s["steps"], s["w"]});

  const auto hundred = [&](const char* function) {
    return [&s, f = s[function], w = s["few_w"], x = s["few_x"]] {
      for (int i = 0; i < 100; ++i) s.call(f, {w, x});
    };
  };
  add_pair(table, s, group, "gradient of a function made in each call, 100",
           hundred("made_again"),
           {hundred("made_once"), Team::one_thread, "one that is jitted once"},
           0.6);
}

}  // namespace bench
