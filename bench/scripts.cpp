// What scripts cost whose work is in loops of the host, beside the same scripts
// in Python: whole processes, from their start to their end.
#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "bench/harness.h"

extern char** environ;

namespace bench {
namespace {

struct Case {
  const char* name;
  const char* ours;
  const char* python;
  double target;  // times as fast as Python
};

// The targets are those of a loop's turn, 0.02 to 0.1 µs, where Python's takes
// 0.03 to 0.06, and to be ahead elsewhere.
constexpr Case cases[] = {
    {"turn with t += i, 5 10^6", R"(
var t = 0i64
for i in range(5_000_000) { t += i64(i) }
print(t)
)",
     R"(
t = 0
for i in range(5_000_000): t += i
print(t)
)",
     2},
    {"step s = s * 0.5 + 1.0, 5 10^6", R"(
var s = 1.0
for i in range(5_000_000) { s = s * 0.5 + 1.0 }
print(s)
)",
     R"(
s = 1.0
for i in range(5_000_000): s = s * 0.5 + 1.0
print(s)
)",
     2},
    {"queens of 9, all ways", R"(
def solve(row: i32, columns: i32, left: i32, right: i32) -> i32 {
  var count = 0
  if row == 9 { count = 1 } else {
    for c in range(9) {
      let taken = (columns >> c) & 1 | (left >> (row + c)) & 1 | (right >> (row - c + 8)) & 1
      if taken == 0 {
        count += solve(row + 1, columns | 1 << c, left | 1 << (row + c), right | 1 << (row - c + 8))
      }
    }
  }
  count
}
print(solve(0, 0, 0, 0))
)",
     R"(
def solve(row, columns, left, right):
    if row == 9: return 1
    count = 0
    for c in range(9):
        if not ((columns >> c) & 1 | (left >> (row + c)) & 1 | (right >> (row - c + 8)) & 1):
            count += solve(row + 1, columns | 1 << c, left | 1 << (row + c), right | 1 << (row - c + 8))
    return count
print(solve(0, 0, 0, 0))
)",
     1},
    {"gcd in a nested loop, 500^2", R"(
def gcd(a: i32, b: i32) -> i32 = if b == 0 { a } else { gcd(b, a % b) }
var n = 0
for i in range(1, 501) {
  for j in range(1, 501) {
    if gcd(i, j) == 1 { n += 1 }
  }
}
print(n)
)",
     R"(
def gcd(a, b): return a if b == 0 else gcd(b, a % b)
n = 0
for i in range(1, 501):
    for j in range(1, 501):
        if gcd(i, j) == 1: n += 1
print(n)
)",
     1},
    {"call of a function, 5 10^6", R"(
def f(x) = x * 0.5 + 1.0
var s = 1.0
for i in range(5_000_000) { s = f(s) }
print(s)
)",
     R"(
def f(x): return x * 0.5 + 1.0
s = 1.0
for i in range(5_000_000): s = f(s)
print(s)
)",
     1},
    {"x[i] = v, 10^6 elements, 4 times", R"(
var x = zeros(f64[1_000_000])
for k in range(4) { for i in range(1_000_000) { x[i] = f64(i + k) * 0.5 } }
print(x[999_999])
)",
     R"(
x = [0.0] * 1_000_000
for k in range(4):
    for i in range(1_000_000): x[i] = (i + k) * 0.5
print(x[999_999])
)",
     1},
    {"sieve of 10^6", R"(
var p = full(bool[1_000_000], true)
for i in range(2, 1000) {
  if p[i] { for j in range(i * i, 1_000_000, i) { p[j] = false } }
}
print(p[999_983])
)",
     R"(
p = [True] * 1_000_000
for i in range(2, 1000):
    if p[i]:
        for j in range(i * i, 1_000_000, i): p[j] = False
print(p[999_983])
)",
     1},
    {"Collatz, 1 ... 10,000", R"(
var best = 0
for start in range(1, 10_001) {
  var x = start
  var n = 0
  while x != 1 {
    if x % 2 == 0 { x = x // 2 } else { x = 3 * x + 1 }
    n += 1
  }
  best = maximum(best, n)
}
print(best)
)",
     R"(
best = 0
for start in range(1, 10_001):
    x = start
    n = 0
    while x != 1:
        if x % 2 == 0: x = x // 2
        else: x = 3 * x + 1
        n += 1
    best = max(best, n)
print(best)
)",
     1},
    {"1000 x 1000 nested", R"(
var m = zeros(i32[1000, 1000])
for i in range(1000) { for j in range(1000) { m[i, j] = i ^ j } }
print(m[299, 17])
)",
     R"(
m = [[0] * 1000 for _ in range(1000)]
for i in range(1000):
    for j in range(1000): m[i][j] = i ^ j
print(m[299][17])
)",
     1},
    {"fib(25), recursive", R"(
def fib(n: int) -> int { if n < 2 { n } else { fib(n - 1) + fib(n - 2) } }
print(fib(25))
)",
     R"(
def fib(n): return n if n < 2 else fib(n - 1) + fib(n - 2)
print(fib(25))
)",
     1},
    {"function that prints and converts, 2 10^6", R"(
def f(n: int) -> f64 {
  if n == 1000 { print("{n}") }
  if n == 0 { 0.0 } else { f64(n % 100) * 0.5 + f(n - 1) }
}
var t = 0.0
for i in range(2222) { t = t + f(900) }
print(t)
)",
     R"(
import sys
sys.setrecursionlimit(2000)
def f(n):
    if n == 1000: print(n)
    return 0.0 if n == 0 else float(n % 100) * 0.5 + f(n - 1)
t = 0.0
for i in range(2222): t = t + f(900)
print(t)
)",
     1},
    {"text of 20,000 pieces", R"(
var text = ""
for i in range(20_000) { text = text + "piece " }
print(len(text))
)",
     R"(
text = ""
for i in range(20_000): text = text + "piece "
print(len(text))
)",
     1},
};

/// Runs a command to its end, without its output.
void run(const std::vector<std::string>& words) {
  std::vector<char*> arguments;
  for (const std::string& word : words)
    arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, "/dev/null",
                                   O_WRONLY, 0);
  pid_t child = -1;
  const int failed = posix_spawnp(&child, arguments[0], &actions, nullptr,
                                  arguments.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  int status = 0;
  if (failed || waitpid(child, &status, 0) != child || status != 0)
    fail("cannot run " + words[0]);
}

}  // namespace

void scripts(Table& table) {
  std::string folder =
      (std::filesystem::temp_directory_path() / "unisono-bench-XXXXXX")
          .string();
  if (!mkdtemp(folder.data())) fail("cannot make " + folder);
  for (const Case& each : cases) {
    if (!table.wanted("script", each.name)) continue;
    const std::string ours = folder + "/script.uni",
                      python = folder + "/script.py";
    std::ofstream(ours) << each.ours;
    std::ofstream(python) << each.python;
    const Paired times = time_pair(
        [&] { run({beside_this("unisono"), "run", ours}); },
        [&] { run({"python3", "-I", "-S", python}); }, Team::own_threads);
    table.add({.group = "script",
               .name = each.name,
               .ours = times.ours,
               .peer = times.peer,
               .ratio = times.ratio,
               .best_ratio = times.best_ratio,
               .target = each.target,
               .note = "peer: python3 -I -S"});
  }
  std::filesystem::remove_all(folder);
}

}  // namespace bench
