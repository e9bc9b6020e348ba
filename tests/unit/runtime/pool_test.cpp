#include "runtime/pool.h"

#include <doctest/doctest.h>

#include <chrono>
#include <numeric>
#include <vector>

namespace unisono {
namespace {

TEST_CASE("pool: a loop does every unit once, for any number of workers") {
  for (int workers : {1, 2, 4, 9}) {
    Pool pool(workers);
    CHECK(pool.workers() == workers);
    for (int64_t units : {0, 1, 2, 7, 100, 4099})
      for (int64_t grain : {1, 3, 1000}) {
        std::vector<std::atomic<int>> done(static_cast<size_t>(units));
        std::atomic<int> short_pieces{0};
        pool.parallel_for(units, grain, nullptr, [&](int64_t b, int64_t e) {
          if (e - b < grain) ++short_pieces;
          for (int64_t i = b; i < e; ++i) ++done[static_cast<size_t>(i)];
        });
        for (auto& count : done) REQUIRE(count == 1);
        CHECK(short_pieces <= (units < grain ? 1 : 0));
      }
  }
}

TEST_CASE("pool: loops within loops") {
  for (int workers : {1, 2, 4}) {
    Pool pool(workers);
    std::atomic<int64_t> sum{0};
    pool.parallel_for(20, 1, nullptr, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i)
        pool.parallel_for(30, 1, nullptr, [&](int64_t b, int64_t e) {
          for (int64_t j = b; j < e; ++j)
            pool.parallel_for(5, 1, nullptr, [&](int64_t x, int64_t y) {
              sum += (y - x) * (i * 30 + j);
            });
        });
    });
    CHECK(sum == 5 * 599 * 600 / 2);
  }
}

TEST_CASE("pool: many threads share it") {
  for (int workers : {1, 2, 4}) {
    Pool pool(workers);
    std::vector<std::thread> threads;
    std::atomic<int64_t> sum{0};
    for (int t = 0; t < 5; ++t)
      threads.emplace_back([&] {
        for (int turn = 0; turn < 300; ++turn)
          pool.parallel_for(50, 1, &pool, [&](int64_t begin, int64_t end) {
            for (int64_t i = begin; i < end; ++i) sum += i;
          });
      });
    for (std::thread& thread : threads) thread.join();
    CHECK(sum == 5 * 300 * 1225);
  }
}

TEST_CASE("pool: workers that have gone to sleep wake up") {
  Pool pool(3);
  for (int turn = 0; turn < 5; ++turn) {
    // Each of three units waits until all have begun: three threads are there.
    std::atomic<int> begun{0};
    pool.parallel_for(3, 1, nullptr, [&](int64_t begin, int64_t end) {
      begun += static_cast<int>(end - begin);
      while (begun < 3) std::this_thread::yield();
    });
    CHECK(begun == 3);
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
}

}  // namespace
}  // namespace unisono
