#include <cmath>
#include <string>

#include "bench/peers.h"
#include "bench/workload.h"

namespace bench {

using unisono::lang::Value;

void normalise(Table& table) {
  const std::string group = "4 normalise";
  if (!table.wanted(group, "softmax layer_norm")) return;
  const size_t side = 4096;
  Script s(
      "import nn\n"
      "let x = reshape(sin(arange(16_777_216, f32)), (4096, 4096))\n"
      "let gain = 1.0 + 0.1 * sin(arange(4096, f32))\n"
      "let bias = cos(arange(4096, f32))\n"
      "let f_softmax = jit(fn(x) => softmax(x))\n"
      "let f_norm = jit(fn(x, g, b) => nn.layer_norm(x, g, b))\n"
      "let c = reshape(cos(0.3 * arange(16_777_216, f32)), (4096, 4096))\n"
      "let d_softmax = jit(grad(fn(x, c) => sum(softmax(x) * c)))\n"
      "let d_norm = jit(grad(fn(x, g, b, c) => sum(nn.layer_norm(x, g, b) * c),"
      " wrt=(0, 1, 2)))\n",
      1);
  const Aligned<float> x = copy_of(s, "x"), gain = copy_of(s, "gain"),
                       bias = copy_of(s, "bias");
  Aligned<float> out(x.size);
  const std::string note = "peer: -ffast-math, libmvec";

  const std::vector<Value> rows = {s["x"]};
  peers::softmax(x.get(), out.get(), side, side);
  expect_same("softmax", s.floats(s.call(s["f_softmax"], rows)), out.get(),
              1e-5);
  add_pair(table, s, group, "softmax 4096^2",
           [&] { s.call(s["f_softmax"], rows); },
           {[&] { peers::softmax(x.get(), out.get(), side, side); },
            Team::openmp, note});

  const std::vector<Value> all = {s["x"], s["gain"], s["bias"]};
  const auto norm = [&] {
    peers::layer_norm(x.get(), gain.get(), bias.get(), out.get(), side, side);
  };
  norm();
  expect_same("layer_norm", s.floats(s.call(s["f_norm"], all)), out.get(),
              1e-4);
  add_pair(table, s, group, "layer_norm 4096^2",
           [&] { s.call(s["f_norm"], all); }, {norm, Team::openmp, note});

  // Gradients, which compute the values too.
  const Aligned<float> c = copy_of(s, "c");
  Aligned<float> by_gain(side), by_bias(side);
  const auto softmax_gradient = [&] {
    peers::softmax_gradient(x.get(), c.get(), out.get(), side, side);
  };
  softmax_gradient();
  expect_same("softmax gradient",
              s.floats(s.call(s["d_softmax"], {s["x"], s["c"]})), out.get(),
              1e-5);
  add_pair(
      table, s, group, "softmax 4096^2, gradient",
      [&] { s.call(s["d_softmax"], {s["x"], s["c"]}); },
      {softmax_gradient, Team::openmp, note}, 0.95);
  const auto norm_gradient = [&] {
    peers::layer_norm_gradient(x.get(), gain.get(), c.get(), out.get(),
                               by_gain.get(), by_bias.get(), side, side);
  };
  const std::vector<Value> norm_arguments = {s["x"], s["gain"], s["bias"],
                                             s["c"]};
  norm_gradient();
  const Value gradients = s.call(s["d_norm"], norm_arguments);
  expect_same("layer_norm gradient", s.floats(gradients.tuple()->items[0]),
              out.get(), 1e-4);
  add_pair(
      table, s, group, "layer_norm 4096^2, gradient",
      [&] { s.call(s["d_norm"], norm_arguments); },
      {norm_gradient, Team::openmp, note}, 0.95);
}

}  // namespace bench
