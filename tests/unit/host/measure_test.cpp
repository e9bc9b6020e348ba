// The statistics of `unisono bench`, and what it calls a change.
#include <doctest/doctest.h>

#include <algorithm>
#include <vector>

#include "host/testing/bench_results.h"
#include "host/testing/measure.h"

using namespace unisono::host;

TEST_CASE("statistics of few samples") {
  const Measurement one = statistics({0.5}, 3);
  CHECK(one.runs == 3);
  CHECK(one.median == 0.5);
  CHECK(one.low == 0.5);
  CHECK(one.high == 0.5);
  const Measurement four = statistics({4, 1, 3, 2}, 1);
  CHECK(four.median == 2.5);
  CHECK(four.mean == 2.5);
  CHECK(four.low == 1);
  CHECK(four.high == 4);
}

TEST_CASE("the interval of a median by ranks") {
  std::vector<double> samples;
  for (int i = 100; i >= 1; --i) samples.push_back(i);
  const Measurement of = statistics(samples, 1);
  CHECK(of.median == 50.5);
  // Tables have 40 and 61 for 95 % of a hundred.
  CHECK(of.low <= 40);
  CHECK(of.low >= 38);
  CHECK(of.high >= 61);
  CHECK(of.high <= 62);
  CHECK(std::ranges::is_sorted(of.samples));
}

TEST_CASE("a run that fails ends the measurement") {
  int runs = 0;
  const auto never = measure([&] { return ++runs < 3; },
                             {.most_seconds = 1000, .least_seconds = 0});
  CHECK(!never);
  CHECK(runs == 3);
  const auto some =
      measure([] { return true; }, {.most_seconds = 0.01, .least_seconds = 0});
  REQUIRE(some);
  CHECK(some->samples.size() >= 3);
}

TEST_CASE("a change is beyond both intervals and beyond noise") {
  const EarlierResult before{1.0, 0.99, 1.01};
  CHECK(change_of(before, {0.8, 0.79, 0.81}) == Change::faster);
  CHECK(change_of(before, {1.2, 1.19, 1.21}) == Change::slower);
  CHECK(change_of(before, {0.97, 0.96, 0.98}) == Change::none);
  CHECK(change_of(before, {1.04, 1.03, 1.05}) == Change::none);
  CHECK(change_of(before, {1.3, 1.0, 1.6}) == Change::none);
}

TEST_CASE("times as text") {
  CHECK(time_text(1.234e-8) == "12.3 ns");
  CHECK(time_text(0.9994e-6) == "999 ns");
  CHECK(time_text(0.9996e-6) == "1 us");
  CHECK(time_text(0.99999) == "1 s");
  CHECK(time_text(0.25) == "250 ms");
  CHECK(time_text(1234.5) == "1234 s");
}

TEST_CASE("results as JSON and back") {
  BenchResult result{"a.uni", "b \"c\"", 3, statistics({1, 2, 3}, 1), {}};
  const std::string text = to_json({result}, std::nullopt, {"cpu:0"});
  const auto read = from_json(text);
  REQUIRE(read);
  REQUIRE(read->size() == 1);
  CHECK(read->begin()->first == "a.uni: b \"c\"");
  CHECK(read->begin()->second.median == 2);
  for (const char* wrong :
       {"", "[]", "{}", "nul", R"({"version": 1, "benches": 3})",
        R"({"version": 9, "benches": []})",
        R"({"version": 1, "benches": [{"file": "a"}]})",
        R"({"version": 1, "benches": [{"file": "a", "name": "b",
            "median": 0, "low": 1, "high": 1}]})"}) {
    CAPTURE(wrong);
    CHECK(!from_json(wrong));
  }
}
