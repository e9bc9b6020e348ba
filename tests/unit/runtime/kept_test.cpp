// What is kept for the next time: programs by what they cost, and memory of
// collectives.
#include <doctest/doctest.h>

#include "runtime/cluster/scratch.h"
#include "runtime/lru_cache.h"
#include "tests/unit/moved.h"

using namespace unisono;

TEST_CASE("values by cost: those used last stay, and the last one anyway") {
  LruCache<int> cache(10);
  cache.put("a", 1, 4);
  cache.put("b", 2, 4);
  REQUIRE(cache.find("a"));
  cache.put("c", 3, 4);  // b was not used since
  CHECK(cache.find("a"));
  CHECK_FALSE(cache.find("b"));
  CHECK(cache.find("c"));
  // In the place of an old one, whose cost goes.
  cache.put("c", 4, 6);
  CHECK(cache.find("a"));
  REQUIRE(cache.find("c"));
  CHECK(*cache.find("c") == 4);
  // One that costs more than there is room for is alone.
  cache.put("d", 5, 11);
  CHECK(cache.find("d"));
  CHECK_FALSE(cache.find("a"));
  CHECK_FALSE(cache.find("c"));
  cache.put("e", 6, 1);
  CHECK(cache.find("e"));
  CHECK_FALSE(cache.find("d"));
}

TEST_CASE("memory of collectives is one piece the next time") {
  const Moved moved([](Tuning& own) {
    own.scratch_bytes = 256;
    own.scratch_kept_bytes = 4096;
  });
  Scratch scratch;
  char* first = scratch.take(100);
  CHECK(scratch.take(100) == first + 128);  // whole lines of the cache
  scratch.reuse();
  CHECK(scratch.take(200) == first);
  scratch.take(1000);  // another piece
  scratch.reuse();
  char* all = scratch.take(1);
  CHECK(scratch.take(1100) == all + 64);
  scratch.reuse();
  // More than is kept: the next time begins anew, with little.
  scratch.take(4096);
  scratch.take(4096);
  scratch.reuse();
  first = scratch.take(64);
  CHECK(scratch.take(64) == first + 64);
}
