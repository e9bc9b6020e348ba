// What devices cost: psum against a hand-written all-reduce, calls of pmap, and
// the same work on more devices.
#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "bench/workload.h"

namespace bench {
namespace {

using unisono::lang::Value;

/// Threads that spin between two pieces of work, as a program written for this
/// would have them, and sleep after a millisecond without. The one that calls
/// is one of them.
class Threads {
 public:
  explicit Threads(int size) : size_(size) {
    for (int t = 1; t < size; ++t)
      threads_.emplace_back([this, t] { serve(t); });
  }
  ~Threads() {
    quit_ = true;
    ++turn_;
    turn_.notify_all();
    for (std::thread& thread : threads_) thread.join();
  }
  int size() const { return size_; }
  /// work(t) on each thread t; returns when all are done.
  void run(const std::function<void(int)>& work) {
    work_ = &work;
    left_ = size_ - 1;
    ++turn_;
    turn_.notify_all();
    work(0);
    for (int spins = 0; left_ > 0; ++spins) pause(spins);
  }

 private:
  static void pause(int spins) {
    if (spins > 2000) std::this_thread::yield();
  }
  void serve(int t) {
    for (int seen = 0;;) {
      for (int spins = 0; turn_ == seen; ++spins) {
        pause(spins);
        if (spins > 4000) turn_.wait(seen);
      }
      ++seen;
      if (quit_) return;
      (*work_)(t);
      --left_;
    }
  }

  const int size_;
  std::atomic<int> turn_{0}, left_{0};
  std::atomic<bool> quit_{false};
  const std::function<void(int)>* work_ = nullptr;
  std::vector<std::thread> threads_;
};

/// to = a + b.
__attribute__((target("avx2"))) void add(float* to, const float* a,
                                         const float* b, size_t n) {
  for (size_t i = 0; i < n; ++i) to[i] = a[i] + b[i];
}

/// out = the sum of elements begin ... begin + n - 1 of the buffers first ...
/// last - 1, neighbours first.
void tree(const std::vector<float*>& buffers, size_t first, size_t last,
          size_t begin, size_t n, float* out) {
  if (last - first == 1) {
    std::memcpy(out, buffers[first] + begin, n * sizeof(float));
    return;
  }
  if (last - first == 2)
    return add(out, buffers[first] + begin, buffers[first + 1] + begin, n);
  size_t half = 1;
  while (half * 2 < last - first) half *= 2;
  float right[1024];
  tree(buffers, first, first + half, begin, n, out);
  tree(buffers, first + half, last, begin, n, right);
  add(out, out, right, n);
}

/// Two shots: each thread owns a part of the elements and adds it up into its
/// device's buffer's place, then all parts go to all devices.
void all_reduce(Threads& team, const std::vector<float*>& from,
                const std::vector<float*>& to, size_t n) {
  constexpr size_t block = 1024;
  const auto threads = static_cast<size_t>(team.size());
  const size_t part = (n + threads - 1) / threads;
  if (n <= 4 * block) {  // not worth a second thread
    for (size_t i = 0; i < n; i += block)
      tree(from, 0, from.size(), i, std::min(block, n - i), to[0] + i);
    for (size_t d = 1; d < to.size(); ++d)
      std::memcpy(to[d], to[0], n * sizeof(float));
    return;
  }
  team.run([&](int t) {
    const size_t begin = std::min(n, part * static_cast<size_t>(t));
    const size_t end = std::min(n, begin + part);
    for (size_t i = begin; i < end; i += block)
      tree(from, 0, from.size(), i, std::min(block, end - i), to[0] + i);
  });
  team.run([&](int t) {
    const size_t begin = std::min(n, part * static_cast<size_t>(t));
    const size_t end = std::min(n, begin + part);
    for (size_t d = 1; d < to.size(); ++d)
      std::memcpy(to[d] + begin, to[0] + begin, (end - begin) * sizeof(float));
  });
}

/// One shot: each thread adds up its part of the elements into one result.
void reduce(Threads& team, const std::vector<float*>& from, float* to,
            size_t n) {
  constexpr size_t block = 1024;
  const auto threads = static_cast<size_t>(team.size());
  const size_t part = (n + threads - 1) / threads;
  team.run([&](int t) {
    const size_t begin = std::min(n, part * static_cast<size_t>(t));
    const size_t end = std::min(n, begin + part);
    for (size_t i = begin; i < end; i += block)
      tree(from, 0, from.size(), i, std::min(block, end - i), to + i);
  });
}

std::string size_text(size_t bytes) {
  if (bytes >= 1 << 20) return fmt::format("{} MiB", bytes >> 20);
  if (bytes >= 1 << 10) return fmt::format("{} KiB", bytes >> 10);
  return fmt::format("{} B", bytes);
}

void psum_row(Table& table, int devices, size_t bytes) {
  const std::string group = "11 collectives";
  const std::string name =
      fmt::format("psum, {}, {} devices", size_text(bytes), devices);
  if (!table.wanted(group, name)) return;
  const size_t n = bytes / sizeof(float);
  // Enough of them that the call of the program does not count.
  const int turns = static_cast<int>(std::clamp<size_t>(
      (size_t{400} << 20) / (bytes * static_cast<size_t>(devices)), 4, 2000));
  Script s(fmt::format("axis dev = devices()\n"
                       "def f(x) {{\n"
                       "  var y = x\n"
                       "  for i in range({}) {{ y = psum(y, dev) }}\n"
                       "  y\n"
                       "}}\n"
                       "let g = pmap(f, over=dev)\n"
                       "let x = pmap(fn(i) => zeros(f32[{}]) + i)"
                       "(zeros(f32[{}]))\n",
                       turns, n, devices),
           devices);
  const std::vector<Value> arguments = {s["x"]};
  const Value g = s["g"];
  std::vector<std::vector<float>> memory(2 * static_cast<size_t>(devices),
                                         std::vector<float>(n));
  std::vector<float*> from, to;
  for (int d = 0; d < devices; ++d) {
    from.push_back(memory[static_cast<size_t>(d)].data());
    to.push_back(memory[static_cast<size_t>(d + devices)].data());
  }
  Threads team(
      static_cast<int>(std::max(1u, std::thread::hardware_concurrency())));
  Paired times;
  s.on_stack([&] {
    times = time_pair([&] { s.call(g, arguments); },
                      [&] {
                        for (int i = 0; i < turns; ++i) {
                          all_reduce(team, from, to, n);
                          std::swap(from, to);
                        }
                      },
                      Team::own_threads);
  });
  const bool small = bytes < size_t{1} << 20;
  table.add({.group = group,
             .name = name,
             .ours = times.ours / turns,
             .peer = times.peer / turns,
             .ratio = times.ratio,
             .best_ratio = times.best_ratio,
             .target = small ? (bytes == 8 && devices == 2 ? 3e-6 : 0) : 0.8,
             .at_most = small,
             .note = "C++: two shots"});
}

/// A call of a sum whose result is the same for all devices, beside one shot
/// into one array.
void shared_row(Table& table, int devices, size_t bytes) {
  const std::string group = "11 collectives";
  const std::string name = fmt::format("psum to one result, {}, {} devices",
                                       size_text(bytes), devices);
  if (!table.wanted(group, name)) return;
  const size_t n = bytes / sizeof(float);
  Script s(fmt::format("axis dev = devices()\n"
                       "let g = pmap(fn(x) => psum(x, dev), over=dev, "
                       "out_axes=none)\n"
                       "let x = pmap(fn(i) => sin(arange({}, f32)) + i)"
                       "(zeros(f32[{}]))\n",
                       n, devices),
           devices);
  const std::vector<Value> arguments = {s["x"]};
  const Value g = s["g"];
  const std::vector<float> x = s.floats(arguments[0]);
  std::vector<std::vector<float>> memory;
  std::vector<float*> from;
  for (int d = 0; d < devices; ++d) {
    const auto at = x.begin() + static_cast<std::ptrdiff_t>(n) * d;
    memory.emplace_back(at, at + static_cast<std::ptrdiff_t>(n));
    from.push_back(memory.back().data());
  }
  std::vector<float> to(n);
  Threads team(
      static_cast<int>(std::max(1u, std::thread::hardware_concurrency())));
  const auto peer = [&] { reduce(team, from, to.data(), n); };
  peer();
  expect_same(name, s.floats(s.call(g, arguments)), to.data(), 0);
  Paired times;
  s.on_stack([&] {
    times = time_pair([&] { s.call(g, arguments); }, peer, Team::own_threads);
  });
  table.add({.group = group,
             .name = name,
             .ours = times.ours,
             .peer = times.peer,
             .ratio = times.ratio,
             .best_ratio = times.best_ratio,
             .target = bytes < size_t{1} << 20 ? 0 : 0.9,
             .note = "a call; C++: one shot"});
}

/// The mean gradient of a layer, an outer product of each example's input and
/// error: batches of a multiple of a power of two, and others.
void batch_rows(Table& table) {
  const std::string group = "11 collectives";
  if (!table.wanted(group, "per-example gradients")) return;
  const auto script = [](int batch) {
    return Script(
        fmt::format("let g = pmap(fn(x, d) => pmean(x[:, none] * d), "
                    "out_axes=none)\n"
                    "let x = reshape(sin(arange({}, f32)), ({}, 784))\n"
                    "let d = reshape(cos(arange({}, f32)), ({}, 300))\n",
                    batch * 784, batch, batch * 300, batch),
        8);
  };
  Script even = script(256);
  for (const int batch : {240, 200}) {
    Script other = script(batch);
    const auto call = [](Script& s) {
      s.on_stack([&] { s.call(s["g"], {s["x"], s["d"]}); });
    };
    const Paired times =
        time_pair([&] { call(other); }, [&] { call(even); }, Team::one_thread);
    table.add({.group = group,
               .name = fmt::format("per-example gradients, batch {}, 8 devices",
                                   batch),
               .ours = times.ours,
               .peer = times.peer,
               .ratio = times.ratio,
               .best_ratio = times.best_ratio,
               .target = 0.5,
               .note = "beside a batch of 256"});
  }
}

/// The same work on 2 ... 64 devices: the time beside that on 2, in turns.
void flat_rows(Table& table) {
  const std::string group = "11 collectives";
  if (!table.wanted(group, "fixed work")) return;
  const char* program =
      "axis dev = devices()\n"
      "def f(x) {\n"
      "  var y = x\n"
      "  for i in range(10) { y = 0.5 * sin(y) + 1e-9 * psum(sum(y), dev) }\n"
      "  y\n"
      "}\n"
      "let g = pmap(f, over=dev, in_axes=split(0), out_axes=split(0))\n"
      "let x = g(arange(4_194_304, f32) * 0.001)\n";
  Script two(program, 2);
  const Value g_two = two["g"];
  const std::vector<Value> on_two = {two["x"]};
  for (int devices : {4, 8, 16, 32, 64}) {
    Script more(program, devices);
    const Value g_more = more["g"];
    const std::vector<Value> on_more = {more["x"]};
    const Paired times =
        time_pair([&] { more.on_stack([&] { more.call(g_more, on_more); }); },
                  [&] { two.on_stack([&] { two.call(g_two, on_two); }); },
                  Team::one_thread);
    table.add({.group = group,
               .name = fmt::format("fixed work, {} devices", devices),
               .ours = times.ours,
               .peer = times.peer,
               .ratio = times.ratio,
               .best_ratio = times.best_ratio,
               .target = 1 / 1.15,
               .note = "beside 2 devices"});
  }
}

}  // namespace

void collectives(Table& table) {
  for (int devices : {2, 8, 64})
    for (size_t bytes : {size_t{8}, size_t{64} << 10, size_t{1} << 20,
                         size_t{8} << 20, size_t{64} << 20}) {
      // 64 devices of 64 MiB would take 16 GiB with the peer's.
      if (static_cast<size_t>(devices) * bytes > size_t{1} << 30) continue;
      psum_row(table, devices, bytes);
    }
  for (size_t bytes : {size_t{64} << 10, size_t{1} << 20, size_t{64} << 20})
    shared_row(table, 8, bytes);
  batch_rows(table);
  flat_rows(table);
}

}  // namespace bench
