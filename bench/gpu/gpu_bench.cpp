#include "bench/gpu/gpu_bench.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstring>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "host/session/devices.h"
#include "host/session/session.h"
#include "runtime/files/file.h"
#include "runtime/queue.h"

namespace bench {
namespace {

using unisono::Array;
using unisono::Buffer;
using unisono::Device;
using unisono::lang::Value;

double now() {
  return std::chrono::duration<double>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

/// A session whose functions are called from here; `problem` says why not.
class Gpus {
 public:
  Gpus(const std::string& devices, bool cublas, const std::string& program) {
    auto request = unisono::host::parse_devices(devices);
    if (!request) {
      fail(request.error().message);
      return;
    }
    request->cublas = cublas;
    auto opened = unisono::host::open_devices(*request);
    if (!opened) {
      fail(opened.error().message);
      return;
    }
    unisono::host::SessionOptions options;
    options.cpu_devices = request->count;
    options.devices = std::move(*opened);
    options.output = [](std::string_view) {};
    session_ = std::make_unique<unisono::host::Session>(std::move(options));
    const auto* checked = session_->check("bench.uni", program);
    if (!checked || !session_->run(*checked)) fail_with_messages();
  }
  const std::vector<Device*>& devices() {
    return session_->runtime().devices();
  }
  Value global(const std::string& name) {
    const Value* value = session_->walk().global(name);
    return value ? *value : Value();
  }
  std::optional<Value> call(const std::string& function,
                            const std::vector<Value>& arguments) {
    auto result = session_->walk().call_from_host(global(function), arguments);
    if (!result) fail_with_messages();
    return result;
  }
  void on_stack(const std::function<void()>& body) {
    session_->walk().on_stack(body);
  }
  std::string problem;

 private:
  void fail(const std::string& message) {
    if (problem.empty()) problem = message;
  }
  void fail_with_messages() {
    fail(unisono::lang::render(session_->diagnostics()));
  }
  std::unique_ptr<unisono::host::Session> session_;
};

/// A copy within a device, put and waited for.
class Copying {
 public:
  Copying(Device& device, int64_t bytes) : queue_(*device.queue()) {
    auto from = device.allocate(std::max<int64_t>(bytes, 1));
    auto to = device.allocate(std::max<int64_t>(bytes, 1));
    if (!from || !to) return;
    from_ = std::move(*from);
    to_ = std::move(*to);
    bytes_ = bytes;
    ok_ = static_cast<bool>(queue_.zero(from_.data(), bytes));
  }
  bool run() {
    uint8_t last = 0;
    const unisono::Queue::Read read{&last, to_.data(), 1};
    return ok_ && queue_.copy(to_.data(), queue_, from_.data(), bytes_) &&
           queue_.read({&read, 1});
  }

 private:
  unisono::Queue& queue_;
  Buffer from_, to_;
  int64_t bytes_ = 0;
  bool ok_ = false;
};

/// Seconds: the median, and what four of five measurements lie between.
struct Times {
  double median = 0, low = 0, high = 0;
};

struct Row {
  std::string name;
  Times ours, peer;
  double ratio = 0;  // the median, pair by pair
  double target = 0;
  std::string note;
};

Times times_of(std::vector<double> seconds) {
  std::sort(seconds.begin(), seconds.end());
  const size_t n = seconds.size();
  return {seconds[n / 2], seconds[n / 10], seconds[n - 1 - n / 10]};
}

/// Both in turn; short work is repeated within each timing.
Row time_pair(std::string name, const std::function<void()>& ours,
              const std::function<void()>& peer, double budget) {
  auto seconds = [](const std::function<void()>& work, int times) {
    const double start = now();
    for (int i = 0; i < times; ++i) work();
    return (now() - start) / times;
  };
  for (int i = 0; i < 3; ++i) ours(), peer();
  const double once = std::min(seconds(ours, 1), seconds(peer, 1));
  const int inner = static_cast<int>(std::clamp(1e-3 / once, 1.0, 1000.0));
  std::vector<double> a, b, ratio;
  const double end = now() + budget;
  while (a.size() < 7 || (now() < end && a.size() < 200)) {
    a.push_back(seconds(ours, inner));
    b.push_back(seconds(peer, inner));
    ratio.push_back(b.back() / a.back());
  }
  return {std::move(name),        times_of(a), times_of(b),
          times_of(ratio).median, 0,           {}};
}

std::string shown(double s) {
  if (s == 0) return "";
  if (s < 1e-3) return fmt::format("{:.3g} µs", s * 1e6);
  return s < 1 ? fmt::format("{:.3g} ms", s * 1e3) : fmt::format("{:.3g} s", s);
}

/// `bytes` bytes in `seconds`, in GB/s.
std::string rate(double bytes, double seconds) {
  return fmt::format("{:.0f} GB/s", bytes / seconds * 1e-9);
}

/// One figure: `call` of the program, and what it moves.
struct Workload {
  const char* name;
  const char* function;
  std::vector<const char*> arguments;
  double reads, writes;  // bytes, of all its arrays
  double target;         // of the bandwidth of a copy
};

struct Options {
  std::string devices = "cuda:0";
  bool small = false, program = false;
  std::string json;  // a file, or none
  std::vector<std::string> names;
  bool wanted(std::string_view name) const {
    return names.empty() ||
           std::any_of(names.begin(), names.end(), [&](const auto& part) {
             return name.find(part) != name.npos;
           });
  }
};

/// Definitions for arrays of n elements, and of r rows of c.
std::string definitions(int64_t n, int64_t r, int64_t c, int64_t m) {
  return fmt::format(
      "let n = {}\nlet r = {}\nlet c = {}\nlet m = {}\n"
      "let x = sin(arange(n, f32) * 0.37)\n"
      "let s = 100.0 + 5.0 * x\nlet k = 100.0 - 3.0 * x\n"
      "let t = 1.5 + x * 0.5\n"
      "let y = sin(reshape(arange(r * c, f32), (r, c)) * 0.11)\n"
      "let a = cast(sin(reshape(arange(m * m, f32), (m, m)) * 0.3), bf16)\n"
      "let one = ones(f32[1])\n"
      "let f_add = jit(fn(x) => x + 1.5)\n"
      "let f_sixteen = jit(fn(x) => ((((((((x * 1.1 + 0.1) * x - 0.2) * x + "
      "0.3) * x - 0.4) * x + 0.5) * x - 0.6) * x + 0.7) * x - 0.8))\n"
      "def cdf(z) = 0.5 * (1.0 + erf(z * 0.70710678))\n"
      "def black_scholes(s, k, t) {{\n"
      "  let v = 0.2 * sqrt(t)\n"
      "  let d1 = (log(s / k) + (0.05 + 0.02) * t) / v\n"
      "  let d2 = d1 - v\n"
      "  let e = k * exp(-0.05 * t)\n"
      "  (s * cdf(d1) - e * cdf(d2), e * cdf(-d2) - s * cdf(-d1))\n"
      "}}\n"
      "let f_options = jit(black_scholes)\n"
      "let f_sum = jit(fn(x) => sum(x))\n"
      "let f_moments = jit(fn(x) => (mean(x), var(x)))\n"
      "let f_max = jit(fn(x) => max(x))\n"
      "let f_scan = jit(fn(x) => cumsum(x))\n"
      "def softmax_rows(y) {{\n"
      "  let e = exp(y - max(y, axis=1, keepdims=true))\n"
      "  e / sum(e, axis=1, keepdims=true)\n"
      "}}\n"
      "let f_softmax = jit(softmax_rows)\n"
      "def normalise_rows(y) {{\n"
      "  let d = y - mean(y, axis=1, keepdims=true)\n"
      "  d / sqrt(mean(d * d, axis=1, keepdims=true) + 1e-5)\n"
      "}}\n"
      "let f_layernorm = jit(normalise_rows)\n"
      "let f_product = jit(fn(a) => a @ a)\n"
      "@jit\n"
      "def f_steps(x: f32[q]) -> f32[q] {{\n"
      "  var y = x\n"
      "  var i = 0\n"
      // Each step reads its neighbours' last one: it stays a kernel of its own,
      // of a graph that is replayed.
      "  while i < {} {{\n    y = y * 0.6 + flip(y, axis=0) * 0.4\n"
      "    i += 1\n  }}\n"
      "  y\n}}\n"
      "let thousand = ones(f32[100000])\n",
      n, r, c, m, n > (1 << 20) ? 10000 : 10);
}

class Bench {
 public:
  explicit Bench(Options options) : options_(std::move(options)) {}

  int run() {
    const bool small = options_.small;
    const int64_t n = small ? 1 << 12 : 1 << 28, r = small ? 8 : 32768,
                  c = small ? 256 : 8192, m = small ? 128 : 8192;
    program_ = definitions(n, r, c, m);
    if (!open()) return 1;
    check();
    single(4.0 * static_cast<double>(n), 4.0 * static_cast<double>(r * c),
           static_cast<double>(m));
    collectives();
    print();
    const bool written = options_.json.empty() || write_json();
    return written && problems_.empty() ? 0 : 1;
  }

  /// The kernels that are measured, for other tools: a program that calls each
  /// function once, with arrays that are large enough for the same kernels.
  static void print_program() {
    std::string text = definitions(1 << 20, 128, 8192, 1024);
    int calls = 0;
    for (const Workload& work : workloads(1, 1))
      text += fmt::format("let call{} = {}({})\n", calls++, work.function,
                          fmt::join(work.arguments, ", "));
    fmt::print("{}let product = f_product(a)\n", text);
  }

 private:
  /// What is wrong with a row; the others are measured all the same.
  void report(const std::string& row, const std::string& why) {
    fmt::print(stderr, "bench_gpu: {}: {}\n", row, why);
    problems_.push_back(row + ": " + why);
  }
  /// Whether there is a GPU.
  bool open() {
    Gpus gpus(options_.devices, false, "let one = 1");
    std::string why = gpus.problem;
    if (why.empty() && !gpus.devices()[0]->queue())
      why = "these devices are no GPUs";
    if (!why.empty()) fmt::print(stderr, "bench_gpu: {}\n", why);
    return why.empty();
  }
  double budget() const { return options_.small ? 0.05 : 1; }

  void add(Row row) {
    fmt::print(stderr, "{:<44} {:>10} {:>10} {:>6.2f} {}\n", row.name,
               shown(row.ours.median), shown(row.peer.median), row.ratio,
               row.note);
    rows_.push_back(std::move(row));
  }

  /// Measures one row, in the session `gpus`, which is opened anew after one
  /// that failed.
  void measure(std::unique_ptr<Gpus>& gpus, const std::string& name,
               const std::function<Row(Gpus&)>& row) {
    if (!options_.wanted(name)) return;
    if (!gpus) gpus = std::make_unique<Gpus>(options_.devices, false, program_);
    std::optional<Row> measured;
    if (gpus->problem.empty()) gpus->on_stack([&] { measured = row(*gpus); });
    if (gpus->problem.empty()) {
      if (differing_.contains(name)) measured->note += "; NOT THE CPU'S BITS";
      add(std::move(*measured));
      return;
    }
    report(name, gpus->problem);
    gpus = nullptr;
  }

  /// On one device, which is closed again.
  void single(double x, double y, double m) {
    std::unique_ptr<Gpus> gpus;
    memory_bound(gpus, x, y);
    latencies(gpus);
    product(gpus, m);
  }

  static std::vector<uint8_t> bytes_of(const Value& value) {
    std::vector<uint8_t> all;
    auto take = [&](const Value& part) {
      if (auto bytes = unisono::array_to_host(*part.array()->array))
        all.insert(all.end(), bytes->begin(), bytes->end());
    };
    if (const auto* tuple = value.tuple())
      for (const Value& item : tuple->items) take(item);
    else
      take(value);
    return all;
  }

  /// The same functions on small arrays give the CPU's bits.
  void check() {
    const std::string small = definitions(1 << 12, 8, 256, 64);
    for (const Workload& work : workloads(1, 1)) {
      if (!options_.wanted(work.name)) continue;
      Gpus gpus(options_.devices, false, small), cpus("cpu:1", false, small);
      std::vector<Value> here, there;
      for (const char* name : work.arguments) {
        here.push_back(gpus.global(name));
        there.push_back(cpus.global(name));
      }
      const auto ours = gpus.call(work.function, here);
      const auto theirs = cpus.call(work.function, there);
      if (!ours || !theirs) {
        report(work.name, gpus.problem + cpus.problem);
      } else if (bytes_of(*ours) != bytes_of(*theirs)) {
        report(work.name, "the results are not the CPU's");
        differing_.insert(work.name);
      }
    }
  }

  static std::vector<Workload> workloads(double x, double y) {
    return {
        {"1 operation", "f_add", {"x"}, x, x, 0.93},
        {"16 operations", "f_sixteen", {"x"}, x, x, 0.93},
        {"Black-Scholes", "f_options", {"s", "k", "t"}, 3 * x, 2 * x, 0.85},
        {"sum", "f_sum", {"x"}, x, 0, 0.93},
        {"mean and variance", "f_moments", {"x"}, x, 0, 0.93},
        {"max", "f_max", {"x"}, x, 0, 0.93},
        {"cumsum", "f_scan", {"x"}, x, x, 0.85},
        {"softmax of rows", "f_softmax", {"y"}, y, y, 0.9},
        {"layer norm of rows", "f_layernorm", {"y"}, y, y, 0.9},
    };
  }

  void memory_bound(std::unique_ptr<Gpus>& session, double x, double y) {
    for (const Workload& work : workloads(x, y))
      measure(session, work.name, [&](Gpus& gpus) {
        std::vector<Value> arguments;
        for (const char* name : work.arguments)
          arguments.push_back(gpus.global(name));
        const double moved = work.reads + work.writes;
        Copying copy(*gpus.devices()[0], static_cast<int64_t>(moved / 2));
        Row row = time_pair(
            work.name, [&] { gpus.call(work.function, arguments); },
            [&] { copy.run(); }, budget());
        row.target = work.target;
        row.note = fmt::format("{}, the copy {}", rate(moved, row.ours.median),
                               rate(moved, row.peer.median));
        return row;
      });
  }

  void latencies(std::unique_ptr<Gpus>& session) {
    measure(session, "latency of a compiled call, 1 element", [&](Gpus& gpus) {
      Copying copy(*gpus.devices()[0], 4);
      Row row = time_pair(
          "latency of a compiled call, 1 element",
          [&] { gpus.call("f_add", {gpus.global("one")}); },
          [&] { copy.run(); }, budget());
      row.note = "peer: a copy of 4 bytes, waited for";
      return row;
    });
    measure(session, "a step of a loop over 100,000 elements", [&](Gpus& gpus) {
      Copying copy(*gpus.devices()[0], 4);
      const double steps = options_.small ? 10 : 10000;
      Row row = time_pair(
          "a step of a loop over 100,000 elements",
          [&] { gpus.call("f_steps", {gpus.global("thousand")}); },
          [&] { copy.run(); }, budget());
      for (double* time : {&row.ours.median, &row.ours.low, &row.ours.high})
        *time /= steps;
      row.ratio *= steps;
      row.note = "peer: a copy of 4 bytes, waited for; wanted: 2 µs a kernel";
      return row;
    });
  }

  /// Kernels of our own beside cuBLASLt, where that is found.
  void product(std::unique_ptr<Gpus>& session, double m) {
    const std::string name = fmt::format("product of bf16, {0}×{0}×{0}", m);
    if (!options_.wanted(name)) return;
    Gpus library(options_.devices, true, program_);
    if (!library.problem.empty()) return report(name, library.problem);
    measure(session, name, [&](Gpus& own) {
      const std::vector<Value> a = {own.global("a")}, b = {library.global("a")};
      Row row;
      library.on_stack([&] {
        row = time_pair(
            name, [&] { own.call("f_product", a); },
            [&] { library.call("f_product", b); }, budget());
      });
      row.target = 0.5;
      const double work = 2 * m * m * m * 1e-12;
      row.note = fmt::format(
          "{:.1f} TFLOP/s; with cuBLASLt, if `unisono devices` finds it, "
          "{:.1f}",
          work / row.ours.median, work / row.peer.median);
      return row;
    });
    if (!library.problem.empty()) report(name, library.problem);
  }

  /// Two logical devices, on one GPU where there is one: no speed-up can be
  /// seen there, only what a meeting costs.
  void collectives() {
    const std::string two = options_.devices.starts_with("sim:") ? "sim:2"
                            : options_.devices.find(',') != std::string::npos
                                ? options_.devices
                                : options_.devices + "," + options_.devices;
    const int64_t largest = options_.small ? 1 << 10 : 1 << 26;
    for (int64_t elements :
         {int64_t{2}, int64_t{1} << 10, int64_t{1} << 18, int64_t{1} << 26}) {
      if (elements > largest) break;
      const std::string name =
          fmt::format("psum of {} bytes, {}", 4 * elements, two);
      if (!options_.wanted(name)) continue;
      Gpus gpus(two, false,
                fmt::format("axis dev = devices()\n"
                            "let d = device_count()\n"
                            "let f = pmap(fn(x) => psum(x, dev), over=dev)\n"
                            "let x = pmap(fn(x) => x * 1.0, over=dev)"
                            "(ones(f32[d, {}]))\n",
                            elements));
      if (!gpus.problem.empty()) {
        report(name, gpus.problem);
        continue;
      }
      Copying copy(*gpus.devices()[0], 4 * elements);
      gpus.on_stack([&] {
        Row row = time_pair(
            name, [&] { gpus.call("f", {gpus.global("x")}); },
            [&] { copy.run(); }, budget());
        row.note = fmt::format(
            "peer: a copy of as many bytes, {}",
            rate(8.0 * static_cast<double>(elements), row.peer.median));
        if (gpus.problem.empty()) add(std::move(row));
      });
      if (!gpus.problem.empty()) report(name, gpus.problem);
    }
  }

  void print() const {
    fmt::print(
        "| what | Unisono | peer | peer / Unisono | wanted | |\n"
        "|---|---|---|---|---|---|\n");
    for (const Row& row : rows_)
      fmt::print("| {} | {} | {} | {:.2f} | {} | {}{} |\n", row.name,
                 shown(row.ours.median), shown(row.peer.median), row.ratio,
                 row.target == 0 ? "" : fmt::format("≥ {:.2f}", row.target),
                 row.target == 0           ? ""
                 : row.ratio >= row.target ? "reached; "
                                           : "**not reached**; ",
                 row.note);
    for (const std::string& problem : problems_)
      fmt::print("\n**failed**: {}\n", problem);
  }

  /// For peers.py.
  bool write_json() const {
    auto times = [](const Times& t) {
      return fmt::format(R"({{"median": {}, "low": {}, "high": {}}})", t.median,
                         t.low, t.high);
    };
    std::string text = fmt::format(
        "{{\"who\": \"Unisono\", \"devices\": \"{}\", \"small\": {},\n "
        "\"rows\": [\n",
        options_.devices, options_.small);
    for (const Row& row : rows_)
      text += fmt::format(
          "  {{\"name\": \"{}\", \"seconds\": {}, \"copy\": {}}}{}\n", row.name,
          times(row.ours), times(row.peer), &row == &rows_.back() ? "" : ",");
    text += " ]}\n";
    if (unisono::Status done = unisono::write_text(options_.json, text);
        !done) {
      fmt::print(stderr, "bench_gpu: {}\n", done.error().message);
      return false;
    }
    return true;
  }

  const Options options_;
  std::string program_;
  std::vector<std::string> problems_;
  std::set<std::string> differing_;  // rows whose results are not the CPU's
  std::vector<Row> rows_;
};

}  // namespace

int gpu_bench(int argc, char** argv) {
  Options options;
  for (int i = 1; i < argc; ++i) {
    const std::string_view word = argv[i];
    if (word == "--small")
      options.small = true;
    else if (word == "--program")
      options.program = true;
    else if (word == "--json" && i + 1 < argc)
      options.json = argv[++i];
    else if (word == "--devices" && i + 1 < argc)
      options.devices = argv[++i];
    else
      options.names.emplace_back(word);
  }
  if (options.program) {
    Bench::print_program();
    return 0;
  }
  return Bench(std::move(options)).run();
}

}  // namespace bench
