// Factors of matrices end soon after they are not wanted any more: processor
// time between the stop and the exception.
#include <doctest/doctest.h>
#include <time.h>

#include <atomic>
#include <cstdlib>
#include <functional>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "runtime/lapack/lapack.h"
#include "runtime/pool.h"
#include "runtime/stop.h"

using namespace unisono;

namespace {

/// Seconds that all threads have had.
double processor_time() {
  timespec now{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * now.tv_nsec;
}

/// 0.05 is what is promised; the rest is for machines that do other work, too.
double bound() {
  const char* slow = std::getenv("UNISONO_SLOW");
  return 0.1 * (slow ? std::strtod(slow, nullptr) : 1.0);
}

/// What a factor takes when nobody stops it.
double whole(const std::function<void()>& run) {
  const double begin = processor_time();
  run();
  return processor_time() - begin;
}

/// Processor time after a stop when `moment` of it has passed; negative if it
/// has ended before.
double after_stop(const std::function<void()>& run, double moment) {
  std::atomic<bool> stop = false, ended = false;
  double stopped = 0;
  const double begin = processor_time();
  std::thread other([&] {
    while (!ended && processor_time() - begin < moment)
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    stopped = processor_time();
    stop = true;
  });
  const StopScope scope(&stop);
  try {
    run();
  } catch (const Stopped&) {
  }
  const double end = processor_time();
  const bool was_stopped = stop;
  ended = true;
  other.join();
  return was_stopped ? end - stopped : -1;
}

template <class T>
void check_factors(int64_t n) {
  std::mt19937 bits(7);
  std::vector<T> a(static_cast<size_t>(n * n));
  for (T& x : a) x = static_cast<T>(bits() % 2001) / 1000 - 1;
  std::vector<T> positive(a.size(), T(0.1));  // and definite
  for (int64_t i = 0; i < n; ++i) positive[i * n + i] = static_cast<T>(n);
  std::vector<T> b(a), x(a.size()), y(a.size()), w(static_cast<size_t>(n));
  std::vector<int32_t> pivots(static_cast<size_t>(n));
  T* const none = nullptr;
  struct Factor {
    const char* name;
    std::function<void()> run;
  };
  const Factor factors[] = {
      {"cholesky", [&] { lapack::cholesky(n, positive.data(), x.data()); }},
      {"lu", [&] { lapack::lu(n, a.data(), x.data(), pivots.data()); }},
      {"solve", [&] { lapack::solve(n, n, a.data(), b.data(), x.data()); }},
      {"inverse", [&] { lapack::inverse(n, a.data(), x.data()); }},
      {"solve_triangular",
       [&] {
         lapack::solve_triangular(lapack::Triangle::lower, n, n,
                                  positive.data(), b.data(), x.data());
       }},
      {"qr", [&] { lapack::qr(n, n, n, a.data(), x.data(), y.data()); }},
      {"eigh", [&] { lapack::eigh(n, a.data(), w.data(), x.data()); }},
      {"eigvalsh", [&] { lapack::eigh(n, a.data(), w.data(), none); }},
      {"svd",
       [&] {
         lapack::svd(n, n, false, a.data(), x.data(), w.data(), y.data());
       }},
      {"svdvals",
       [&] { lapack::svd(n, n, false, a.data(), none, w.data(), none); }},
  };
  for (const auto& [name, run] : factors) {
    CAPTURE(name);
    const double takes = whole(run);
    const std::vector<T> before = x;
    for (int turn = 0; turn < 3; ++turn) {
      const double moment = takes * (bits() % 300) / 1000;
      const double after = after_stop(run, moment);
      CAPTURE(moment);
      CHECK(after < bound());
    }
    run();
    CHECK(x == before);  // a stop leaves nothing behind
  }
}

}  // namespace

TEST_CASE("factors end soon after a stop") {
  SUBCASE("alone") {
    check_factors<double>(900);
    check_factors<float>(900);
  }
  SUBCASE("with workers") {
    Pool pool(3);
    const PoolScope scope(pool);
    check_factors<double>(900);
    check_factors<float>(900);
  }
}

TEST_CASE("factors that are not wanted do not begin") {
  const std::atomic<bool> stop = true;
  const StopScope scope(&stop);
  std::vector<double> a(100 * 100, 1.0), x(a.size()), w(100);
  CHECK_THROWS_AS(lapack::cholesky(100, a.data(), x.data()), Stopped);
  CHECK_THROWS_AS(lapack::inverse(100, a.data(), x.data()), Stopped);
  CHECK_THROWS_AS(lapack::eigh(100, a.data(), w.data(), x.data()), Stopped);
}
