#include <string>

#include "bench/peers.h"
#include "bench/workload.h"

namespace bench {
namespace {

constexpr const char* program = R"(
def shortest(w: f32[n, n]) {
  var d = w
  for k in range(n) {
    for i in range(n) {
      for j in range(n) { d[i, j] = minimum(d[i, j], d[i, k] + d[k, j]) }
    }
  }
  sum(d)
}
def edit(a: f32[n], b: f32[m]) {
  var d = zeros(i32[n + 1, m + 1])
  for i in range(n + 1) { d[i, 0] = i32(i) }
  for j in range(m + 1) { d[0, j] = i32(j) }
  for i in range(n) {
    for j in range(m) {
      let change = d[i, j] + i32(a[i] != b[j])
      d[i + 1, j + 1] = minimum(change, minimum(d[i, j + 1], d[i + 1, j]) + 1)
    }
  }
  f32(d[n, m])
}
def collatz(x: f32[n]) {
  var most = 0
  for i in range(1, n) {
    var c = i64(i)
    var turns = 0
    while c != 1 {
      c = if c % 2 == 0 { c // 2 } else { 3 * c + 1 }
      turns += 1
    }
    most = maximum(most, turns)
  }
  f32(most)
}
def mandelbrot(x: f32[n]) {
  var inside = 0
  for i in range(n) {
    for j in range(n) {
      let a = f64(j) * 3.0 / f64(n) - 2.0
      let b = f64(i) * 2.0 / f64(n) - 1.0
      var x = 0.0f64
      var y = 0.0f64
      var t = 0
      while t < 100 and x * x + y * y < 4.0 {
        (x, y) = (x * x - y * y + a, 2.0 * x * y + b)
        t += 1
      }
      inside += i32(t == 100)
    }
  }
  f32(inside)
}
def sieve(x: f32[n]) {
  var prime = ones(bool[n])
  var i = 2
  while i * i < n {
    if prime[i] {
      var j = i * i
      while j < n { prime[j] = false; j += i }
    }
    i += 1
  }
  f32(sum(i32(prime)) - 2)
}
def cholesky(a: f32[n, n]) {
  var l = zeros(f32[n, n])
  for i in range(n) {
    for j in range(i + 1) {
      var s = a[i, j]
      for k in range(j) { s -= l[i, k] * l[j, k] }
      l[i, j] = if i == j { sqrt(s) } else { s / l[j, j] }
    }
  }
  sum(l)
}
let f_shortest = jit(shortest)
let f_edit = jit(edit)
let f_collatz = jit(collatz)
let f_mandelbrot = jit(mandelbrot)
let f_sieve = jit(sieve)
let f_cholesky = jit(cholesky)
let ways = reshape(f32(arange(128 * 128) * 7919 % 1009), (128, 128))
let one = f32(arange(500) * 7 % 5)
let other = f32(arange(400) * 11 % 7)
let starts = zeros(f32[30_000])
let pixels = zeros(f32[200])
let numbers = zeros(f32[1_000_000])
let part = f32(arange(128 * 128) * 37 % 11).reshape((128, 128))
let covariance = part @ transpose(part) + eye(128) * 5000.0
)";

}  // namespace

void nested_loops(Table& table) {
  const std::string group = "9 nested loops";
  if (!table.wanted(group, "Floyd edit Collatz Mandelbrot sieve Cholesky"))
    return;
  Script s(program, 1);
  auto row = [&](const std::string& name, const std::string& function,
                 const std::vector<std::string>& arguments,
                 const std::function<float()>& work, double target) {
    std::vector<unisono::lang::Value> values;
    for (const std::string& argument : arguments) values.push_back(s[argument]);
    auto ours = [&] { return s.call(s[function], values); };
    expect_close(name, s.floats(ours())[0], work(), 1e-4);
    float result = 0;
    const Peer peer{[&] { result += work(); }, Team::one_thread,
                    "the same operations"};
    add_pair(table, s, group, name, ours, peer, target);
  };
  const Aligned<float> ways = copy_of(s, "ways"), one = copy_of(s, "one"),
                       other = copy_of(s, "other"),
                       covariance = copy_of(s, "covariance");
  row(
      "Floyd-Warshall, 128 nodes", "f_shortest", {"ways"},
      [&] { return peers::shortest_ways(ways.get(), 128); }, 0);
  row(
      "edit distance, 500 x 400", "f_edit", {"one", "other"},
      [&] { return peers::edit_distance(one.get(), 500, other.get(), 400); },
      0);
  row(
      "Collatz, 1 ... 30,000", "f_collatz", {"starts"},
      [] { return peers::collatz(30'000); }, 0.95);
  row(
      "Mandelbrot, 200 x 200", "f_mandelbrot", {"pixels"},
      [] { return peers::mandelbrot(200); }, 0.95);
  row(
      "sieve of 10^6", "f_sieve", {"numbers"},
      [] { return peers::sieve(1'000'000); }, 0);
  row(
      "Cholesky by elements, 128", "f_cholesky", {"covariance"},
      [&] { return peers::cholesky(covariance.get(), 128); }, 0);
}

}  // namespace bench
