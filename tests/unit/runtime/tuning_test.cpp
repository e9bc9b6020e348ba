#include "runtime/tuning/tuning.h"

#include <doctest/doctest.h>

#include <string>

using namespace unisono;

TEST_CASE("a tuning is read from words") {
  Tuning tuning;
  CHECK(read_tuning("least", tuning) == "");
  CHECK(tuning.most_kernel_nests == 1);
  CHECK(tuning.cpu_two_stage_runs_elements == 0);
  CHECK(read_tuning("most", tuning) == "");
  CHECK(tuning.most_kernel_nests == 64);
  CHECK(read_tuning("most_kernel_nests=3,few_sharers=1", tuning) == "");
  CHECK(tuning.most_kernel_nests == 3);
  CHECK(tuning.few_sharers == 1);
  CHECK(tuning.copied_at_once == Tuning().copied_at_once);
  CHECK(read_tuning("least,most_kernel_nests=3", tuning) == "");
  CHECK(tuning.most_kernel_nests == 3);
  CHECK(tuning.few_sharers == 1);
  CHECK(read_tuning("", tuning) == "");
  CHECK(tuning.most_kernel_nests == Tuning().most_kernel_nests);
}

TEST_CASE("orders are powers of two") {
  Orders orders;
  CHECK(read_orders("small", orders) == "");
  CHECK(orders.reduce_chunk == Orders::scan_block);
  CHECK(orders.reduce_run == 4);
  CHECK(read_orders("reduce_chunk=512", orders) == "");
  CHECK(orders.reduce_chunk == 512);
  CHECK(read_orders("reduce_chunk=100", orders) ==
        "expects reduce_chunk from 256 to 4096; got `100`");
}

TEST_CASE("a wrong word says what is expected") {
  Tuning tuning;
  CHECK(read_tuning("lesat", tuning) ==
        "expects least, most, seed:N or NAME=VALUE, with `,` between; got "
        "`lesat`");
  CHECK(read_tuning("least,few=1", tuning) == "has no row `few`");
  CHECK(read_tuning("most_kernel_nests=0", tuning) ==
        "expects most_kernel_nests from 1 to 64; got `0`");
  CHECK(read_tuning("most_kernel_nests=x", tuning) ==
        "expects most_kernel_nests from 1 to 64; got `x`");
}

TEST_CASE("random tunings are legal, and the same each time") {
  Tuning least, most;
  REQUIRE(read_tuning("least", least) == "");
  REQUIRE(read_tuning("most", most) == "");
  for (int seed = 0; seed < 200; ++seed) {
    const std::string words = "seed:" + std::to_string(seed);
    Tuning one, other;
    REQUIRE(read_tuning(words, one) == "");
    REQUIRE(read_tuning(words, other) == "");
#define THRESHOLD(type, name, value, unit, low, high, bench, processor) \
  CHECK(least.name <= one.name);                                        \
  CHECK(one.name <= most.name);                                         \
  CHECK(one.name == other.name);
#include "runtime/tuning/tuning.def"
  }
}

TEST_CASE("each row's value lies between its ends") {
  Tuning value, least, most;
  REQUIRE(read_tuning("least", least) == "");
  REQUIRE(read_tuning("most", most) == "");
#define THRESHOLD(type, name, value_, unit, low, high, bench, processor) \
  CHECK(least.name <= value.name);                                       \
  CHECK(value.name <= most.name);
#include "runtime/tuning/tuning.def"
}

TEST_CASE("the fingerprint names what differs") {
  const Tuning before = tuning();
  Tuning own;
  set_tuning(own);
  const std::string ordinary = tuning_fingerprint();
  REQUIRE(read_tuning("few_sharers=3", own) == "");
  set_tuning(own);
  CHECK(tuning_fingerprint() == "few_sharers=3," + ordinary);
  set_tuning(before);
}
