// A step of the heat equation, written in the ways in which people write it: by
// slices, writes to slices, concat, pad and roll; and with the rows split over
// devices.
#include <fmt/format.h>

#include <string>
#include <utility>
#include <vector>

#include "bench/peers.h"
#include "bench/workload.h"

namespace bench {
namespace {

using unisono::lang::Value;

constexpr int turns = 10;

/// Steps on one device: of u, whole.
constexpr const char* whole = R"(
def by_slices(u) {
  let c = u[1:-1, 1:-1]
  pad(c + 0.1 * (u[2:, 1:-1] + u[:-2, 1:-1] + u[1:-1, 2:] + u[1:-1, :-2] - 4.0 * c), 1)
}
def by_update(u) {
  var v = zeros_like(u)
  v[1:-1, 1:-1] = u[1:-1, 1:-1] + 0.1 * (u[2:, 1:-1] + u[:-2, 1:-1] + u[1:-1, 2:] + u[1:-1, :-2] - 4.0 * u[1:-1, 1:-1])
  v
}
def by_concat(u) {
  let row = zeros_like(u[:1, :])
  let column = zeros_like(u[:, :1])
  let v = concat((row, u, row))
  let w = concat((column, u, column), axis=1)
  u + 0.1 * (v[2:, :] + v[:-2, :] + w[:, 2:] + w[:, :-2] - 4.0 * u)
}
def by_pad(u) {
  let v = pad(u, 1)
  u + 0.1 * (v[2:, 1:-1] + v[:-2, 1:-1] + v[1:-1, 2:] + v[1:-1, :-2] - 4.0 * u)
}
def by_roll(u) =
  u + 0.1 * (roll(u, -1, axis=0) + roll(u, 1, axis=0) + roll(u, -1, axis=1) + roll(u, 1, axis=1) - 4.0 * u)
)";
/// The same of a device's rows, and the neighbours' next to them.
constexpr const char* split = R"(
axis dev = devices()
def halo(u, wraps) = (ppermute(u[-1:, :], dev, shift=1, wrap=wraps), ppermute(u[:1, :], dev, shift=-1, wrap=wraps))
def by_slices(u) {
  let (above, below) = halo(u, false)
  let v = concat((above, u, below))
  let c = v[1:-1, 1:-1]
  pad(c + 0.1 * (v[2:, 1:-1] + v[:-2, 1:-1] + u[:, 2:] + u[:, :-2] - 4.0 * c), ((0, 0), (1, 1)))
}
def by_update(u) {
  let (above, below) = halo(u, false)
  let v = concat((above, u, below))
  var w = zeros_like(u)
  w[:, 1:-1] = u[:, 1:-1] + 0.1 * (v[2:, 1:-1] + v[:-2, 1:-1] + u[:, 2:] + u[:, :-2] - 4.0 * u[:, 1:-1])
  w
}
def by_concat(u) {
  let (above, below) = halo(u, false)
  let column = zeros_like(u[:, :1])
  let v = concat((above, u, below))
  let w = concat((column, u, column), axis=1)
  u + 0.1 * (v[2:, :] + v[:-2, :] + w[:, 2:] + w[:, :-2] - 4.0 * u)
}
def by_pad(u) {
  let (above, below) = halo(u, false)
  let v = pad(concat((above, u, below)), ((0, 0), (1, 1)))
  u + 0.1 * (v[2:, 1:-1] + v[:-2, 1:-1] + v[1:-1, 2:] + v[1:-1, :-2] - 4.0 * u)
}
def by_roll(u) {
  let (above, below) = halo(u, true)
  let v = concat((above, u, below))
  u + 0.1 * (v[2:, :] + v[:-2, :] + roll(u, -1, axis=1) + roll(u, 1, axis=1) - 4.0 * u)
}
)";

std::string loop_of(const std::string& form) {
  return fmt::format(
      "def f_{0}(u0) {{\n  var u = u0\n"
      "  for _ in range({1}) {{ u = by_{0}(u) }}\n  u\n}}\n",
      form, turns);
}

void heat_rows(Table& table, int devices, size_t rows, size_t columns) {
  const std::string group = "10 heat";
  const std::vector<std::string> forms = {"slices", "update", "concat", "pad",
                                          "roll"};
  const auto name = [&](const std::string& form) {
    return fmt::format(
        "heat {} x {}, {} by {}", rows, columns,
        devices == 1 ? "1 device" : fmt::format("{} devices", devices), form);
  };
  bool wanted = false;
  for (const auto& form : forms)
    wanted = wanted || table.wanted(group, name(form));
  if (!wanted) return;
  std::string program = devices == 1 ? whole : split;
  for (const auto& form : forms) {
    program += loop_of(form);
    program += devices == 1 ? fmt::format("let g_{0} = jit(f_{0})\n", form)
                            : fmt::format(
                                  "let g_{0} = pmap(f_{0}, over=dev, "
                                  "in_axes=split(0), out_axes=split(0))\n",
                                  form);
  }
  Script s(program +
               fmt::format("let x = reshape(sin(arange({}, f32)), ({}, {}))\n",
                           rows * columns, rows, columns) +
               (devices == 1 ? ""
                             : "let u = pmap(fn(x) => x + 0.0, over=dev, "
                               "in_axes=split(0), out_axes=split(0))(x)\n"),
           devices);
  const std::vector<Value> arguments = {s[devices == 1 ? "x" : "u"]};
  const Aligned<float> x = copy_of(s, "x");
  Aligned<float> first(x.size), second(x.size), zeros(columns);
  for (const auto& form : forms) {
    if (!table.wanted(group, name(form))) continue;
    // Several devices of a column's ends by slices have rows beside them, which
    // are zeros.
    const peers::Edge edge = form == "roll" ? peers::Edge::wrapped
                             : form != "slices" && form != "update"
                                 ? peers::Edge::zeros
                             : devices == 1 ? peers::Edge::fixed
                                            : peers::Edge::fixed_columns;
    const float* result = nullptr;
    const auto peer = [&] {
      const float* from = x.get();
      float *to = first.get(), *other = second.get();
      for (int i = 0; i < turns; ++i) {
        peers::heat(from, to, zeros.get(), rows, columns, edge);
        from = to;
        std::swap(to, other);
      }
      result = from;
    };
    const Value f = s["g_" + form];
    peer();
    expect_same("heat by " + form, s.floats(s.call(f, arguments)), result,
                1e-4);
    Paired t;
    s.on_stack([&] {
      t = time_pair([&] { s.call(f, arguments); }, peer, Team::openmp);
    });
    table.add({.group = group,
               .name = name(form),
               .ours = t.ours / turns,
               .peer = t.peer / turns,
               .ratio = t.ratio,
               .best_ratio = t.best_ratio,
               .target = 0.9,
               .note = "a step"});
  }
}

}  // namespace

void stencils(Table& table) {
  for (const int devices : {1, 2}) {
    heat_rows(table, devices, 4096, 4096);
    heat_rows(table, devices, 1000, 1500);
  }
  for (const int devices : {8, 64}) heat_rows(table, devices, 4096, 4096);
}

}  // namespace bench
