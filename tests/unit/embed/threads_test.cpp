// Many threads, many sessions, and what the process had before.
#include <dirent.h>
#include <doctest/doctest.h>
#include <unistd.h>

#include <atomic>
#include <cfenv>
#include <clocale>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "embed/unisono.hpp"

using unisono::Kind;
using unisono::Value;

namespace {

/// Bytes of the process's memory that are not the kernel's to take back.
int64_t resident() {
  std::ifstream file("/proc/self/statm");
  int64_t all = 0, pages = 0;
  file >> all >> pages;
  return pages * sysconf(_SC_PAGESIZE);
}

int count_entries(const char* folder) {
  int count = 0;
  DIR* directory = opendir(folder);
  while (readdir(directory)) ++count;
  closedir(directory);
  return count;
}

/// 10,000 in the long run: UNISONO_SESSIONS.
int sessions_wanted() {
  const char* text = std::getenv("UNISONO_SESSIONS");
  return text ? std::atoi(text) : 60;
}

}  // namespace

TEST_CASE("32 threads share an engine, and values") {
  unisono::Engine engine({.workers = 2});
  auto shared = engine.session();
  shared.eval("def f(x) { sum(x * 2.0) }\nlet table = ones(100)").value();
  const auto f = shared.function("f").value();
  const Value table = shared.get("table").value();
  const auto typed = shared.eval("fn(x: f32) => x + 1.0").value();
  const auto next = unisono::Function(typed).typed<float(float)>().value();
  std::atomic<int> wrong{0}, busy{0};
  {
    std::vector<std::jthread> threads;
    for (int t = 0; t < 32; ++t)
      threads.emplace_back([&, t] {
        auto own = engine.session();
        auto value = own.eval("sum(arange(" + std::to_string(t + 1) + "))");
        wrong += !value || value->as<int>().value() != t * (t + 1) / 2;
        for (int i = 0; i < 3; ++i) {
          auto result = f.call({table});
          wrong += !result || result->as<float>().value() != 200;
          wrong +=
              next(static_cast<float>(t)).value() != static_cast<float>(t + 1);
          const Value copy = table;
          wrong += copy.view<float, 1>().value()(3) != 1;
        }
        own.eval("def g(x) { sum(x) }").value();
        wrong +=
            own.function("g")->call({table}).value().as<float>().value() != 100;
        // One thread at a time.
        auto eval = shared.eval("1");
        if (!eval) {
          wrong += eval.error().kind() != Kind::busy;
          ++busy;
        }
      });
  }
  CHECK(wrong == 0);
  MESSAGE(busy.load() << " of 32 found the session in use");
}

TEST_CASE("a session moves from thread to thread") {
  unisono::Engine engine;
  auto session = engine.session();
  for (int i = 0; i < 4; ++i) {
    std::jthread([&, moved = std::move(session)]() mutable {
      moved.eval("let a" + std::to_string(i) + " = " + std::to_string(i))
          .value();
      session = std::move(moved);
    }).join();
  }
  CHECK(session.eval("a0 + a3").value().as<int>().value() == 3);
}

TEST_CASE("sessions leave nothing behind") {
  unisono::Engine engine({.workers = 1});
  const auto life = [&] {
    auto session = engine.session();
    const Value value = session
                            .eval(
                                "def f(x: f32[n]) -> f32[n] { x * 2.0 }\n"
                                "let x = f(ones(1000))\nfn(y) => y + sum(x)")
                            .value();
    CHECK(unisono::Function(value).call({1.0}).value().as<float>().value() ==
          2001);
  };
  const int wanted = sessions_wanted();
  for (int i = 0; i < wanted / 4 + 10; ++i) life();
  const int64_t before = resident();
  const int files = count_entries("/proc/self/fd");
  const int threads = count_entries("/proc/self/task");
  for (int i = 0; i < wanted; ++i) life();
  const int64_t grown = resident() - before;
  MESSAGE(wanted << " sessions, " << grown / 1024 << " KiB more");
  // What one session has is some hundred times as much. AddressSanitizer keeps
  // what is freed for a while, and looks for leaks itself.
  if (!__has_feature(address_sanitizer))
    CHECK(grown < int64_t{wanted} * 20'000 + (4 << 20));
  CHECK(count_entries("/proc/self/fd") == files);
  CHECK(count_entries("/proc/self/task") == threads);
}

TEST_CASE("engines come and go") {
  for (int i = 0; i < 5; ++i) {
    unisono::Engine engine({.devices = "cpu:2", .workers = 3});
    auto session = engine.session();
    session.eval("sum(ones((1000, 1000)))").value();
  }
}

TEST_CASE("the process is what it was") {
  // As a host in Germany might have it.
  const bool has_comma = std::setlocale(LC_ALL, "de_DE.UTF-8") != nullptr;
  const std::string locale = std::setlocale(LC_ALL, nullptr);
  std::vector<struct sigaction> actions(65);
  for (int s = 1; s < 65; ++s) sigaction(s, nullptr, &actions[s]);
  sigset_t mask, mask_after;
  pthread_sigmask(SIG_SETMASK, nullptr, &mask);
  std::fesetround(FE_UPWARD);
  std::feclearexcept(FE_ALL_EXCEPT);
  std::feraiseexcept(FE_UNDERFLOW);
  const std::string folder = [] {
    char path[4096] = "";
    return std::string(getcwd(path, sizeof path));
  }();
  {
    unisono::Engine engine({.devices = "cpu:2", .workers = 2});
    auto session = engine.session();
    // To nearest, and with a point, whatever the host has.
    const Value third = session.eval("1f64 / 3f64").value();
    const double number = third.as<double>().value();
    CHECK(session.format(session.eval("float(\"1.5e3\") + 0.25").value())
              .value() == "1500.25");
    CHECK(session.format(session.eval("ones(2, f16) * 0.1").value()).value() ==
          "[0.1 0.1]");
    session.eval("def f(x: f64) -> f64 { 1.0 / x }").value();
    const auto f = session.function("f")->typed<double(double)>().value();
    const double fast = f(3.0).value();
    CHECK(std::fegetround() == FE_UPWARD);
    CHECK(!session.eval("1 // 0"));
    CHECK(!session.eval("[1, 2][5]"));
    std::fesetround(FE_TONEAREST);
    volatile double three = 3.0;
    CHECK(number == 1.0 / three);
    CHECK(fast == 1.0 / three);
    std::fesetround(FE_UPWARD);
    std::feclearexcept(FE_ALL_EXCEPT);
    std::feraiseexcept(FE_UNDERFLOW);
    session.eval("sum(linspace(0.0, 1.0, 1000000))").value();
    f(3.0).value();
  }
  CHECK(std::fetestexcept(FE_ALL_EXCEPT) == FE_UNDERFLOW);
  CHECK(std::fegetround() == FE_UPWARD);
  std::fesetround(FE_TONEAREST);
  std::feclearexcept(FE_ALL_EXCEPT);
  CHECK(std::setlocale(LC_ALL, nullptr) == locale);
  std::setlocale(LC_ALL, "C");
  for (int s = 1; s < 65; ++s) {
    struct sigaction after{};
    sigaction(s, nullptr, &after);
    CHECK((after.sa_handler == actions[s].sa_handler));
    CHECK(after.sa_flags == actions[s].sa_flags);
  }
  pthread_sigmask(SIG_SETMASK, nullptr, &mask_after);
  for (int s = 1; s < 65; ++s)
    CHECK(sigismember(&mask, s) == sigismember(&mask_after, s));
  char path[4096] = "";
  CHECK(folder == getcwd(path, sizeof path));
  if (!has_comma) MESSAGE("there is no de_DE.UTF-8 here");
}
