// Products of networks beside as many multiply-adds as fast as the machine does
// them: a ratio is the part of that peak.
#include <cmath>
#include <string>

#include "bench/peers.h"
#include "bench/workload.h"

namespace bench {
namespace {

constexpr const char* program = R"(
import nn
let picture = sin(reshape(arange(2_097_152, f32), (32, 32, 32, 64)))
let kernel = 0.05 * cos(reshape(arange(36_864, f32), (3, 3, 64, 64)))
let back = cos(0.3 * reshape(arange(2_097_152, f32), (32, 32, 32, 64)))
let conv = jit(fn(x, w) => nn.conv2d(x, w))
let d_conv = jit(vjp(fn(x, w) => nn.conv2d(x, w)))

let layers = tree_map(
  fn(i) => (w = sin((1.0 + i) * reshape(arange(1_048_576, f32), (1024, 1024))) / 32, b = zeros(1024)),
  (0, 1, 2, 3)
)
let input = sin(0.7 * reshape(arange(262_144, f32), (256, 1024)))
let wanted = cos(0.9 * reshape(arange(262_144, f32), (256, 1024)))
let d_mlp = jit(value_and_grad(fn(layers, x, y) => nn.mse(nn.mlp(layers, x), y)))

# The whole matrix of scores at once.
def whole(q, k, v) {
  let by_head = fn(x) => swapaxes(x, -3, -2)
  let scores = by_head(q) @ swapaxes(by_head(k), -1, -2) / sqrt(f32(size(q, -1)))
  let t = size(q, -3)
  swapaxes(softmax(where(arange(t) <= arange(t)[:, none], scores, -2e38)) @ by_head(v), -3, -2)
}
let tokens = fn(n, a) => sin(a * reshape(arange(n * 256, f32), (n, 4, 64)))
let few = (tokens(128, 1.0), tokens(128, 0.3), tokens(128, 0.7))
let many = (tokens(2048, 1.0), tokens(2048, 0.3), tokens(2048, 0.7))
let seen = jit(fn(q, k, v) => nn.attention(q, k, v, causal=true))
let seen_whole = jit(whole)
let d_seen = jit(grad(fn(q, k, v) => sum(sin(nn.attention(q, k, v, causal=true))), wrt=(0, 1, 2)))
let d_seen_whole = jit(grad(fn(q, k, v) => sum(sin(whole(q, k, v))), wrt=(0, 1, 2)))
)";

}  // namespace

void networks(Table& table) {
  const std::string group = "7 networks";
  if (!table.wanted(group, "conv MLP attention")) return;
  Script s(program, 1);
  using unisono::lang::Value;

  // Each element of the result by hand, at some places.
  const Aligned<float> x = copy_of(s, "picture"), w = copy_of(s, "kernel");
  const std::vector<float> y =
      s.floats(s.call(s["conv"], {s["picture"], s["kernel"]}));
  for (const int at : {0, 1, 31, 32, 500, 1023, 32'767}) {
    const int n = at / 1024, i = at / 32 % 32, j = at % 32;
    double sum = 0;
    for (int k = 0; k < 3; ++k)
      for (int l = 0; l < 3; ++l) {
        const int row = i + k - 1, column = j + l - 1;
        if (row < 0 || row > 31 || column < 0 || column > 31) continue;
        for (int c = 0; c < 64; ++c)
          sum += double{x.get()[((n * 32 + row) * 32 + column) * 64 + c]} *
                 w.get()[((k * 3 + l) * 64 + c) * 64 + 5];
      }
    expect_close("conv", y[static_cast<size_t>(at) * 64 + 5], sum, 1e-4);
  }
  const double each = 32768.0 * 576 * 64;
  const auto peak = [](double multiply_adds) {
    return Peer{[=] { peers::multiply_adds(multiply_adds); }, Team::openmp,
                "peer: as many multiply-adds, the machine's peak"};
  };
  add_pair(
      table, s, group, "conv 3x3, 64 channels, 32 x 32, batch 32",
      [&] { s.call(s["conv"], {s["picture"], s["kernel"]}); }, peak(each), 0.8);
  add_pair(
      table, s, group, "conv 3x3, 64 channels, by both operands",
      [&] { s.call(s["d_conv"], {s["picture"], s["kernel"], s["back"]}); },
      peak(3 * each), 0.8);

  const double mlp = 256.0 * 1024 * 1024 * 11;
  add_pair(
      table, s, group, "MLP 4 x 1024, batch 256, loss and gradient",
      [&] { s.call(s["d_mlp"], {s["layers"], s["input"], s["wanted"]}); },
      peak(mlp), 0.85);

  for (const std::string tokens : {"few", "many"}) {
    const auto& all = s[tokens].tuple()->items;
    const std::vector<Value> arguments(all.begin(), all.end());
    const std::string length = tokens == "few" ? "128" : "2048";
    for (const bool gradient : {false, true}) {
      const std::string ours = gradient ? "d_seen" : "seen";
      const auto other = [&] { return s.call(s[ours + "_whole"], arguments); };
      const Value a = s.call(s[ours], arguments), b = other();
      const std::vector<float> want =
          s.floats(gradient ? b.tuple()->items[1] : b);
      expect_same("attention", s.floats(gradient ? a.tuple()->items[1] : a),
                  want.data(), 1e-4);
      add_pair(
          table, s, group,
          "attention, 4 heads of 64, causal, length " + length +
              (gradient ? ", gradient" : ""),
          [&] { s.call(s[ours], arguments); },
          {[&] { other(); }, Team::own_threads,
           "peer: the whole matrix of scores"},
          1);
    }
  }
}

}  // namespace bench
