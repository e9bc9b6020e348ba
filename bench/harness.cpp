#include "bench/harness.h"

#include <fmt/format.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <thread>

#include "bench/peers.h"

namespace bench {

using unisono::lang::Value;

namespace {

double clock_seconds(clockid_t clock) {
  timespec time{};
  clock_gettime(clock, &time);
  return static_cast<double>(time.tv_sec) +
         static_cast<double>(time.tv_nsec) * 1e-9;
}

double now() { return clock_seconds(CLOCK_MONOTONIC); }

/// Of this process and of those that it started and waited for.
double processor_seconds() {
  rusage children{};
  getrusage(RUSAGE_CHILDREN, &children);
  auto of = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) +
           static_cast<double>(time.tv_usec) * 1e-6;
  };
  return clock_seconds(CLOCK_PROCESS_CPUTIME_ID) + of(children.ru_utime) +
         of(children.ru_stime);
}

double median(std::vector<double> v) {
  std::nth_element(v.begin(), v.begin() + v.size() / 2, v.end());
  return v[v.size() / 2];
}

}  // namespace

double seconds(const std::function<void()>& work) {
  static const bool of_processor = std::getenv("BENCH_PROCESSOR_TIME");
  const auto clock = of_processor ? processor_seconds : now;
  const double start = clock();
  work();
  return clock() - start;
}

std::string shown(double s) {
  if (s == 0) return "";
  if (s < 1e-3) return fmt::format("{:.3g} µs", s * 1e6);
  if (s < 1) return fmt::format("{:.3g} ms", s * 1e3);
  return fmt::format("{:.3g} s", s);
}

Paired time_pair(const std::function<void()>& ours,
                 const std::function<void()>& peer, Team team,
                 double budget_seconds) {
  ours();
  peer();
  const double once = std::min(seconds(ours), seconds(peer));
  const int inner = static_cast<int>(std::clamp(1e-3 / once, 1.0, 10000.0));
  auto timed = [&](const std::function<void()>& work) {
    return seconds([&] {
             for (int i = 0; i < inner; ++i) work();
           }) /
           inner;
  };
  std::vector<double> a, b, ratio;
  const double end = now() + budget_seconds;
  while (a.size() < 7 || (now() < end && a.size() < 400)) {
    if (team != Team::one_thread)
      std::this_thread::sleep_for(std::chrono::milliseconds(3));
    a.push_back(timed(ours));
    peers::wake(team == Team::openmp, team == Team::openblas);
    b.push_back(timed(peer));
    ratio.push_back(b.back() / a.back());
  }
  const double best_ours = *std::min_element(a.begin(), a.end());
  const double best_peer = *std::min_element(b.begin(), b.end());
  return {median(a), median(b), median(ratio), best_peer / best_ours};
}

Times time_one(const std::function<void()>& work, double budget_seconds,
               int inner) {
  work();
  std::vector<double> times;
  const double end = now() + budget_seconds;
  while (times.size() < 7 || (now() < end && times.size() < 1000)) {
    times.push_back(seconds([&] {
                      for (int i = 0; i < inner; ++i) work();
                    }) /
                    inner);
  }
  return {median(times), *std::min_element(times.begin(), times.end())};
}

std::string beside_this(const std::string& name) {
  std::array<char, 4096> path{};
  const ssize_t size = readlink("/proc/self/exe", path.data(), path.size());
  const std::string self(path.data(), size > 0 ? static_cast<size_t>(size) : 0);
  return self.substr(0, self.rfind('/')) + "/" + name;
}

void fail(const std::string& message) {
  fmt::print(stderr, "bench: {}\n", message);
  std::exit(1);
}

Script::Script(const std::string& text, int devices) {
  unisono::host::SessionOptions options;
  options.cpu_devices = devices;
  options.output = [](std::string_view) {};
  session_ = std::make_unique<unisono::host::Session>(std::move(options));
  const unisono::lang::Program* program = session_->check("bench.uni", text);
  if (!program || !session_->run(*program))
    fail(unisono::lang::render(session_->diagnostics()));
}

Value Script::operator[](const std::string& name) {
  const Value* value = session_->walk().global(name);
  if (!value) fail("no global `" + name + "`");
  return *value;
}

Value Script::call(const Value& function, const std::vector<Value>& arguments) {
  std::optional<Value> result =
      session_->walk().call_from_host(function, arguments);
  if (!result) fail(unisono::lang::render(session_->diagnostics()));
  return *result;
}

void Script::on_stack(const std::function<void()>& body) {
  session_->walk().on_stack(body);
}

std::vector<float> Script::floats(const Value& value) {
  const auto read = unisono::array_to_host(*value.array()->array);
  if (!read) fail(read.error().message);
  const std::vector<uint8_t>& bytes = *read;
  std::vector<float> result(bytes.size() / sizeof(float));
  std::memcpy(result.data(), bytes.data(), bytes.size());
  return result;
}

bool Table::wanted(std::string_view group, std::string_view name) const {
  return filters_.empty() ||
         std::any_of(filters_.begin(), filters_.end(), [&](const auto& f) {
           return group.find(f) != group.npos || name.find(f) != name.npos;
         });
}

void Table::add(Row row) {
  fmt::print(stderr, "{:<16} {:<34} {:>10} {:>10}{}\n", row.group, row.name,
             shown(row.ours), shown(row.peer),
             row.peer == 0 ? ""
                           : fmt::format(" {:>6.2f} {:>6.2f}", row.ratio,
                                         row.best_ratio));
  rows_.push_back(std::move(row));
}

std::string Table::markdown() const {
  std::string text =
      "| group | what | Unisono | peer | peer / Unisono | of the best runs | "
      "wanted | |\n|---|---|---|---|---|---|---|---|\n";
  for (const Row& row : rows_) {
    const bool reached =
        row.at_most ? row.ours <= row.target : row.ratio >= row.target;
    const std::string wanted = row.target == 0 ? ""
                               : row.at_most
                                   ? "≤ " + shown(row.target)
                                   : fmt::format("≥ {:.2f}", row.target);
    auto ratio = [&](double value) {
      return row.peer == 0 ? "" : fmt::format("{:.2f}", value);
    };
    const std::string verdict = row.target == 0 ? ""
                                : reached       ? "reached"
                                                : "**not reached**";
    const char* space = verdict.empty() || row.note.empty() ? "" : " ";
    text += fmt::format("| {} | {} | {} | {} | {} | {} | {} | {}{}{} |\n",
                        row.group, row.name, shown(row.ours), shown(row.peer),
                        ratio(row.ratio), ratio(row.best_ratio), wanted,
                        verdict, space, row.note);
  }
  return text;
}

}  // namespace bench
