// What the system itself costs: start, first result, compile time, calls.
#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <string>
#include <vector>

#include "bench/harness.h"
#include "jit/ir/kinds.h"
#include "jit/scalar/element.h"

namespace bench {
namespace {

using unisono::lang::Value;

/// Runs `unisono COMMAND FILE`, with its output thrown away.
void run_unisono(const char* command, const std::string& file) {
  static const std::string program = beside_this("unisono");
  const pid_t child = fork();
  if (child == 0) {
    if (!freopen("/dev/null", "w", stdout)) _exit(3);
    execl(program.c_str(), "unisono", command, file.c_str(), nullptr);
    _exit(3);
  }
  int status = 0;
  waitpid(child, &status, 0);
  if (status != 0) fail(fmt::format("unisono {} {} failed", command, file));
}

/// A row of seconds, at most `target` if that is given.
void add_time(Table& table, const std::string& name, const Times& times,
              double target) {
  table.add({.group = "system",
             .name = name,
             .ours = times.median,
             .target = target,
             .at_most = true,
             .note = "least " + shown(times.least)});
}

std::string write_program(const std::string& name, const std::string& text) {
  const std::string path = "/tmp/unisono_bench_" + name + ".uni";
  std::ofstream(path) << text;
  return path;
}

/// f(x) = (x * a + x) * b + x ..., a chain of `operations` with a constant of
/// its own in each product, so that no two kernels are equal.
std::string chain_program(int operations) {
  std::string text = "def f(x) {\n  let t0 = x\n";
  for (int i = 0; i < operations; i += 2) {
    text +=
        fmt::format("  let t{} = t{} * 0.{:05} + x\n", i / 2 + 1, i / 2, i + 1);
  }
  return text + fmt::format("  t{}\n}}\n", (operations + 1) / 2);
}

/// At least 2,000 lines of definitions with symbolic sizes, loops and branches.
std::string long_program() {
  std::string text;
  for (int i = 0; i * 22 < 2000; ++i) {
    text += fmt::format(R"(
def dense{0}(x: f32[n, d], w: f32[d, k], b: f32[k]) {{
  let y = x @ w + b
  maximum(y, 0.0)
}}
def loss{0}(w: f32[d, k], b: f32[k], x: f32[n, d], t: f32[n, k]) {{
  let y = dense{0}(x, w, b)
  let e = y - t
  mean(e * e)
}}
def normalise{0}(x: f32[n, d]) {{
  let m = mean(x, axis=0)
  let s = sqrt(var(x, axis=0) + 1e-5)
  (x - m) / s
}}
def count{0}(n: i32) -> i32 {{
  var s = 0
  for i in range(n) {{
    if i % 3 == 0 {{ s += i }} else {{ s -= 1 }}
  }}
  s
}}
)",
                        i);
  }
  return text;
}

/// One fused kernel of ten operations, by the compiler alone.
void kernel_time(Table& table) {
  const std::string name = "compile one kernel, 10 operations";
  if (!table.wanted("system", name)) return;
  namespace ir = unisono::ir;
  const ir::Type type{unisono::DType::F32, {100'000}};
  int count = 0;
  const Times t = time_one([&] {
    ir::Graph graph;
    const ir::NodeId x = graph.add_input(type);
    ir::NodeId y = x;
    for (int i = 0; i < 5; ++i) {
      // Other constants each time: nothing is known from before.
      y = graph.add(
          ir::Op::mul,
          {y, graph.add_constant(
                  type, unisono::jit::element_bytes(
                            type.dtype, static_cast<double>(++count)))});
      y = graph.add(ir::Op::add, {y, x});
    }
    graph.outputs = {y};
    static unisono::jit::Compiler compiler;
    if (!compiler.compile(graph, {})) fail("a kernel does not compile");
  });
  add_time(table, name, t, 2e-3);
}

/// A row: seconds of the first call of g on x in `program`, which traces,
/// optimises, generates and runs.
void add_first_call(Table& table, const std::string& name,
                    const std::string& program, double target) {
  std::vector<double> times;
  time_one(
      [&] {
        Script s(program, 1);
        s.on_stack([&] {
          times.push_back(seconds([&] { s.call(s["g"], {s["x"]}); }));
        });
      },
      1);
  std::sort(times.begin(), times.end());
  add_time(table, name, {times[times.size() / 2], times[0]}, target);
}

void compile_time(Table& table, int operations, double target) {
  const std::string name = fmt::format("compile {} operations", operations);
  if (!table.wanted("system", name)) return;
  const std::string program = chain_program(operations) +
                              "let x = arange(8, f32)\n"
                              "let g = jit(f)\n";
  add_first_call(table, name, program, target);
}

/// A loop that is written out when it is traced: 1,000 turns of three
/// operations.
void unrolled_time(Table& table) {
  const std::string name = "compile unrolled(1000) of 3 operations";
  if (!table.wanted("system", name)) return;
  const std::string program =
      "def f(x) {\n  var y = x\n"
      "  for i in unrolled(1000) { y = sin(y) * 0.5 + x }\n  y\n}\n"
      "let x = arange(8, f32)\nlet g = jit(f)\n";
  add_first_call(table, name, program, 0.1);
}

/// A row: seconds of a call of f on x.
void add_call(Table& table, Script& s, const std::string& name, double target) {
  const Value f = s["f"], x = s["x"];
  Times t;
  s.on_stack([&] { t = time_one([&] { s.call(f, {x}); }, 1, 1000); });
  add_time(table, name, t, target);
}

void call_latency(Table& table) {
  if (table.wanted("system", "jit call")) {
    Script s("let f = jit(fn(x) => x * 2.0)\nlet x = arange(8, f32)\n", 1);
    add_call(table, s, "jit call, 1 argument", 0);
  }
  if (table.wanted("system", "small operation")) {
    Script s("def f(x) = x + 1.0\nlet x = arange(8, f32)\n", 1);
    add_call(table, s, "small operation, and the call of its function", 0.5e-6);
  }
  for (const int leaves : {20, 100}) {
    const std::string name =
        fmt::format("jit call, a tree of {} leaves", leaves);
    if (!table.wanted("system", name)) continue;
    std::string items, results;
    for (int i = 0; i < leaves; ++i) {
      items += "arange(8, f32), ";
      results += fmt::format("x[{}] * 2.0, ", i);
    }
    Script s(fmt::format("let f = jit(fn(x) => ({}))\nlet x = ({})\n", results,
                         items),
             1);
    add_call(table, s, name, leaves == 20 ? 3e-6 : 15e-6);
  }
  for (const int devices : {2, 8, 64}) {
    const std::string name = fmt::format("pmap call, {} devices", devices);
    if (!table.wanted("system", name)) continue;
    Script s(fmt::format("let f = pmap(fn(x) => x * 2.0)\n"
                         "let x = f(arange({}, f32))\n",
                         devices),
             devices);
    add_call(table, s, name, devices == 2 ? 10e-6 : 0);
  }
}

}  // namespace

void system_costs(Table& table) {
  if (table.wanted("system", "start")) {
    const std::string hello = write_program("hello", "print(1 + 2)\n");
    add_time(table, "start: print(1 + 2)",
             time_one([&] { run_unisono("run", hello); }), 15e-3);
  }
  if (table.wanted("system", "first result")) {
    const std::string first = write_program(
        "first", chain_program(10) +
                     "let g = jit(f)\nprint(sum(g(arange(100_000, f32))))\n");
    add_time(table, "first result, 10 operations, cold",
             time_one([&] { run_unisono("run", first); }), 40e-3);
  }
  if (table.wanted("system", "check of 2,000 lines")) {
    const std::string program = write_program("check", long_program());
    add_time(table, "check of 2,000 lines",
             time_one([&] { run_unisono("check", program); }), 20e-3);
  }
  kernel_time(table);
  for (const int operations : {10, 100, 1000, 10000})
    compile_time(table, operations, operations == 10000 ? 1.0 : 0);
  unrolled_time(table);
  call_latency(table);
}

}  // namespace bench
