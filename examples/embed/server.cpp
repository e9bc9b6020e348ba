// A server of requests, which are programs, on eight threads. Each runs in a
// session of its own, with limits, without files; one sender means ill.
#include <atomic>
#include <chrono>
#include <cstdio>
#include <map>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include <unisono.hpp>

using namespace std::chrono_literals;

namespace {

constexpr std::string_view requests[] = {
    "sum(arange(1000))",
    "let x = linspace(0.0, 1.0, 101)\nsum(x * x) / 101.0",
    "prod(arange(1, 6))",
};
constexpr std::string_view hostile[] = {
    "while true { }",                           // never ends
    "arange(1000000000)",                       // 40 GB
    "load(\"/etc/passwd.npy\")",                // somebody else's files
    "import \"../secrets.uni\"",                // likewise
    "def f(n: int) -> int { f(n + 1) }\nf(0)",  // recursion without end
    "var s = \"x\"\nwhile true { s = s + s }",  // all of the host's memory
    "print(1 / 0",                              // no program
};

std::string serve(const unisono::Engine& engine, std::string_view program) {
  unisono::Session session = engine.session(
      {.depth = 200, .device_bytes = 64 << 20, .host_bytes = 16 << 20});
  const unisono::CallOptions limits{
      .limits = {.wall = 500ms, .steps = 1'000'000}};
  auto value = session.eval(program, "request", limits);
  if (!value) return std::string(value.error().messages()[0].code);
  return session.format(*value).value();
}

}  // namespace

int main() {
  unisono::Engine engine({.workers = 2});
  std::mutex mutex;
  std::map<std::string, int> answers;
  const auto ask = [&](std::string_view program) {
    const std::string answer = serve(engine, program);
    const std::lock_guard lock(mutex);
    ++answers[std::string(program.substr(0, program.find('\n'))) + " -> " +
              answer];
  };
  {
    std::vector<std::jthread> threads;
    for (int t = 0; t < 7; ++t)
      threads.emplace_back([&] {
        for (const std::string_view request : requests) ask(request);
      });
    threads.emplace_back([&] {
      for (const std::string_view request : hostile) ask(request);
    });
  }
  for (const auto& [answer, count] : answers)
    std::printf("%d x %s\n", count, answer.c_str());
  return 0;
}
